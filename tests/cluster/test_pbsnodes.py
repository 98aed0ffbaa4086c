"""Clusters from pbsnodes, in its three forms."""

import json
from pathlib import Path

import pytest

from bridge.base.errors import BridgeError
from bridge.cluster import Cluster, NodeGroup, Partition
from bridge.cluster.imported import ImportedCluster
from bridge.cluster.pbsnodes import import_pbsnodes

OPENPBS = """\
c001
     Mom = c001.site
     ntype = PBS
     state = free
     pcpus = 64
     resources_available.arch = linux
     resources_available.host = c001
     resources_available.mem = 528280472kb
     resources_available.ncpus = 64
     queue = workq
     sharing = default_shared

c002
     state = job-busy
     resources_available.mem = 528280472kb
     resources_available.ncpus = 64
     queue = workq

g001
     state = offline,job-exclusive
     resources_available.mem = 512gb
     resources_available.ncpus = 32
     resources_available.ngpus = 4
     resources_available.ib = True
     resources_available.scratch = 2tb
     queue = gpuq
"""
TORQUE = """\
node1
     state = free
     np = 16
     properties = big,ib
     ntype = cluster
     status = rectime=1,physmem=65957236kb,ncpus=16,state=free
     gpus = 2
"""


def imported(tmp_path: Path, text: str) -> ImportedCluster:
    (tmp_path / "nodes").write_text(text)
    return import_pbsnodes(tmp_path / "nodes")


def test_openpbs(tmp_path: Path) -> None:
    result = imported(tmp_path, OPENPBS)
    assert result.cluster == Cluster(
        nodes=(
            NodeGroup(name="c", nodes="c[001-002]", cores=64, memory=515_898),
            NodeGroup(
                name="g",
                nodes="g001",
                cores=32,
                memory=524_288,
                gpus={"gpu": 4},
                features=("ib",),
                state="down",
            ),
        ),
        partitions=(
            Partition(name="workq", nodes=("c[001-002]",), exclusive=False),
            Partition(name="gpuq", nodes=("g001",), exclusive=False),
        ),
    )
    assert result.unhonoured == {"nodes with the resource scratch": 1}


def test_torque(tmp_path: Path) -> None:
    result = imported(tmp_path, TORQUE)
    assert result.cluster.nodes == (
        NodeGroup(
            name="node",
            nodes="node1",
            cores=16,
            memory=64_411,
            gpus={"gpu": 2},
            features=("big", "ib"),
        ),
    )
    assert result.cluster.partitions == (Partition(name="all", default=True, exclusive=False),)
    assert result.notes == ("no node names its queue: all nodes are one partition, which jobs share",)


def test_json(tmp_path: Path) -> None:
    node = {"state": "free", "resources_available": {"ncpus": 8, "mem": "16gb", "fast": True}, "jobs": []}
    result = imported(tmp_path, json.dumps({"timestamp": 1, "nodes": {"a": node, "b": node}}))
    assert result.cluster.nodes == (
        NodeGroup(name="a", nodes="a,b", cores=8, memory=16_384, features=("fast",)),
    )


def test_nodes_of_no_queue_are_said(tmp_path: Path) -> None:
    result = imported(tmp_path, "a\n np = 2\n queue = q\nb\n np = 2\n")
    assert [(one.name, one.nodes) for one in result.cluster.partitions] == [("q", ("a",)), ("free", ("b",))]
    assert result.notes == ("1 node belongs to no queue: partition 'free'",)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a\n state = free\n", 1, "does not tell its cores"),
        ("a\n np = 2\nb\n np = x\n", 3, "'x' is no whole number"),
        ("a\n np = 2\n resources_available.mem = much\n", 1, "'much' is no size"),
        ("hello\n", 1, "'hello' has no attributes: this lists no nodes"),
        ("a\n np = 2\nb\n\nc\n np = 2\n", 3, "'b' has no attributes"),
        ("a\n np\n", 2, "is no attribute of a node"),
        (" np = 2\n", 1, "is no attribute of a node"),
        ("a\n np = 2\na\n np = 2\n", 3, "node 'a' is listed twice"),
        ("<xml>\n", 1, "is no name of a node"),
    ],
)
def test_no_list_of_nodes(tmp_path: Path, text: str, line: int, what: str) -> None:
    with pytest.raises(BridgeError, match=what) as error:
        imported(tmp_path, text)
    assert error.value.where == f"{tmp_path / 'nodes'}:{line}"


def test_nothing_is_listed(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="lists no node"):
        imported(tmp_path, "\n")
    with pytest.raises(BridgeError, match="has no table of nodes"):
        imported(tmp_path, "{}")
