"""A cluster's nodes as the hosts of a platform."""

from pathlib import Path

import pytest
from cli_commands import run_bridge, run_ok

from bridge.base.errors import BridgeError
from bridge.cluster import Cluster, NodeGroup
from bridge.cluster.node_table import build_node_table
from bridge.cluster.source import read_cluster
from bridge.platform.author import write_platform
from bridge.platform.check import check_platform
from bridge.platform.cluster_hosts import import_platform
from bridge.platform.read import read_platform

MIXED = """\
[[nodes]]
name = "n"
count = 3
cores = 4
[[nodes]]
nodes = "fat"
"""
SPEC = """\
name = "mine"
[nodes]
speed = "2Gf"
[network]
topology = "fat-tree"
switches = 2
bandwidth = "1GBps"
latency = "1us"
uplink = "2GBps"
"""


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    (tmp_path / "c.toml").write_text(MIXED)
    return str(tmp_path / "c.toml")


def test_hosts_are_the_nodes_by_name_and_cores(tmp_path: Path, cluster: str) -> None:
    write_platform(None, tmp_path / "p.xml", cluster=cluster)
    hosts = read_platform(tmp_path / "p.xml").compute
    assert {host.name: host.cores for host in hosts} == {"n0": 4, "n1": 4, "n2": 4, "fat": 1}
    assert not [one for one in check_platform(tmp_path / "p.xml") if one.severity == "error"]


def test_a_description_says_the_rest(tmp_path: Path, cluster: str) -> None:
    (tmp_path / "s.toml").write_text(SPEC)
    write_platform(tmp_path / "s.toml", tmp_path / "p.xml", cluster=cluster)
    platform = read_platform(tmp_path / "p.xml")
    assert {host.name: host.cores for host in platform.compute} == {"n0": 4, "n1": 4, "n2": 4, "fat": 1}
    assert {host.speed for host in platform.compute} == {2e9}
    assert platform.root.name == "mine"
    assert "c.toml and s.toml" in (tmp_path / "p.xml").read_text()


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("count = 5", "nodes.count is 5"),
        ("cores = 2", "nodes.cores is 2"),
        ('prefix = "x"', "nodes.prefix is x"),
    ],
)
def test_a_description_of_other_hosts_is_refused(tmp_path: Path, cluster: str, line: str, what: str) -> None:
    (tmp_path / "s.toml").write_text(SPEC.replace("[nodes]", f"[nodes]\n{line}"))
    with pytest.raises(BridgeError, match=f"{what}, and the hosts are those of the cluster"):
        write_platform(tmp_path / "s.toml", tmp_path / "p.xml", cluster=cluster)


def test_a_number_of_hosts_that_agrees_is_welcome(tmp_path: Path, cluster: str) -> None:
    (tmp_path / "s.toml").write_text(SPEC.replace("[nodes]", "[nodes]\ncount = 4"))
    write_platform(tmp_path / "s.toml", tmp_path / "p.xml", cluster=cluster)
    assert len(read_platform(tmp_path / "p.xml").compute) == 4


@pytest.mark.parametrize("name", ["teaching-site", "cirrus-like", "thetagpu-like"])
def test_shipped_sites_have_platforms(tmp_path: Path, name: str) -> None:
    run_ok("platform", "new", "--cluster", name, "-o", tmp_path / "p.xml")
    site = read_cluster(name)
    table = build_node_table(site)
    cores = {node: site.nodes[g].cores for node, g in zip(table.names, table.group.tolist(), strict=True)}
    hosts = read_platform(tmp_path / "p.xml").compute
    assert {host.name: host.cores for host in hosts} == cores


def test_a_platform_is_a_cluster_of_its_compute_hosts(tmp_path: Path, cluster: str) -> None:
    write_platform(None, tmp_path / "p.xml", cluster=cluster)
    assert import_platform(tmp_path / "p.xml").cluster == Cluster(
        name="cluster",
        nodes=(NodeGroup(name="fat", nodes="fat", cores=1), NodeGroup(name="n", nodes="n[0-2]", cores=4)),
    )


def test_a_node_that_no_host_can_be_called(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[[nodes]]\nnodes = "a<b"\n')
    with pytest.raises(BridgeError, match="node 'a<b' has a name that no host can have"):
        write_platform(None, tmp_path / "p.xml", cluster=str(tmp_path / "c.toml"))


def test_neither_description_nor_cluster(tmp_path: Path) -> None:
    told = run_bridge("platform", "new", "-o", tmp_path / "p.xml")
    assert told.status == 2
    assert "Missing argument 'SPEC', or --cluster FILE" in told.err
