"""What lists of nodes say of a site: partitions, what they share, cores of nodes; by hand."""

import numpy as np
import pandas as pd
import pytest

from bridge.base.errors import BridgeError
from bridge.cluster.node_ranges import short_list
from bridge.cluster.slurm_values import node_names
from bridge.judge.listed_nodes import cluster_of_lists, listed_nodes
from bridge.workload.ran_on import read_ran_on
from bridge.workload.table import Workload

NAMES = {0: "cpu", 1: "big", 2: "gpu", 3: "idle"}


def log(*lists: str) -> Workload:
    table = pd.DataFrame({"job_id": np.arange(1, len(lists) + 1), "ran_on": lists})
    return Workload("site", table, {}, {}, "site.parquet")


def listed(lists: list[str], partition: list[int], start: list[float], cores: list[int]):  # type: ignore[no-untyped-def]
    ids = np.arange(1, len(lists) + 1)
    nodes = read_ran_on(log(*lists), ids)
    assert nodes is not None
    begin = np.array(start, np.float64)
    return listed_nodes(nodes, np.array(partition), NAMES, begin, begin + 10, np.array(cores))


def test_partitions_are_the_nodes_that_their_jobs_ran_on() -> None:
    one = listed(["n[1-3]", "n3,n5", "n[1-2]", "g1", ""], [0, 1, 0, 2, 3], [0, 10, 20, 0, 0], [3, 2, 2, 1, 1])
    values = [(found.what, found.value) for found in one.estimates]
    assert values == [
        ("nodes of partition cpu", 3),
        ("nodes of partition big", 2),
        ("nodes of partition gpu", 1),
        ("nodes of partition idle", None),
        ("nodes that cpu and big share", 1),
    ]
    assert one.estimates[0].evidence == "NodeLists of 2 jobs; the last new node is of number 1"
    assert one.notes == ()  # the job of n3 and n5 starts when the one before it ends
    pools = one.pools()
    assert (pools.sizes, pools.overlaps) == ({0: 3, 1: 2, 2: 1}, {(0, 1): 1})
    cluster = cluster_of_lists("site", NAMES, one)
    nodes = {group.name: group.nodes for group in cluster.nodes}
    of = {part.name: sorted(nodes.get(name, name) for name in part.nodes) for part in cluster.partitions}
    assert of == {"cpu": ["n3", "n[1-2]"], "big": ["n3", "n5"], "gpu": ["g1"], "idle": ["ALL"]}
    assert all(part.exclusive for part in cluster.partitions)


def test_where_jobs_share_nodes_each_has_the_most_cores_that_were_in_use() -> None:
    one = listed(["n1", "n1", "n[1-2]", "n2"], [0, 0, 0, 0], [0, 5, 12, 30], [4, 8, 6, 5])
    assert one.cores is not None
    # n1: 4 and 8 until 10; then 8 and half of 6; n2: 3, then 5
    assert dict(zip(one.names, one.cores.tolist(), strict=True)) == {"n1": 12, "n2": 5}
    assert one.notes[0] == "jobs shared 1 of 2 nodes at one time (NodeList)"
    assert one.pools().sizes == {}
    cluster = cluster_of_lists("site", {0: "cpu"}, one)
    assert [(group.nodes, group.cores) for group in cluster.nodes] == [("n2", 5), ("n1", 12)]
    assert not cluster.partitions[0].exclusive


def test_without_cores_a_shared_node_is_given_as_a_whole() -> None:
    one = listed(["n1", "n1"], [0, 0], [0, 5], [-1, -1])
    assert one.cores is None
    assert "the file gives whole nodes" in one.notes[1]


def test_a_log_without_lists_says_nothing_and_a_bad_list_is_named() -> None:
    assert read_ran_on(log("", ""), np.arange(1, 3)) is None
    assert read_ran_on(Workload("site", pd.DataFrame({"job_id": [1]}), {}, {}, ""), np.array([1])) is None
    with pytest.raises(BridgeError, match=r"'ran_on' .* is no list of nodes") as error:
        read_ran_on(log("n1", "n]"), np.arange(1, 3))
    assert error.value.where == "site.parquet, job 2"


def test_short_lists_are_read_back() -> None:
    names = ["a", "n1", "n2", "n3", "n07", "n7", "g1-x", "r1n2", "r2n9", "r2n10"]
    text = short_list(names)
    assert text == "a,g1-x,n07,n[1-3,7],r1n2,r2n10,r2n9"
    assert sorted(node_names(text)) == sorted(names)
