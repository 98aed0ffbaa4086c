"""Nodes by index, and lists that name them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.base.errors import BridgeError
from bridge.cluster import Cluster, NodeGroup, Partition
from bridge.cluster.node_groups import format_nodes, group_nodes
from bridge.cluster.node_table import build_node_table, default_partition, partitions_of
from bridge.cluster.slurm_values import node_names

SITE = Cluster(
    nodes=(NodeGroup(count=3), NodeGroup(name="gpu", nodes="g[08-10],big"), NodeGroup(name="x", count=1))
)


def test_indices_follow_the_file() -> None:
    table = build_node_table(SITE)
    assert table.names == ("n0", "n1", "n2", "g08", "g09", "g10", "big", "x0")
    assert table.group.tolist() == [0, 0, 0, 1, 1, 1, 1, 2]


@pytest.mark.parametrize(
    ("lists", "indices", "unknown"),
    [
        (["ALL"], range(8), []),
        (["gpu,n1"], [1, 3, 4, 5, 6], []),
        (["n[0-1]", "g[09,08]", "big"], [0, 1, 3, 4, 6], []),
        (["n7", "n0"], [0], ["n7"]),
        (["x"], [7], []),
        ([], [], []),
    ],
)
def test_lists_name_nodes_groups_or_all(lists: list[str], indices: list[int], unknown: list[str]) -> None:
    members, missing = build_node_table(SITE).indices(lists)
    assert members.tolist() == list(indices)
    assert missing == unknown
    assert members.dtype == np.int64


@pytest.mark.parametrize(
    ("nodes", "what"),
    [
        ((NodeGroup(),), "states neither count nor nodes"),
        ((NodeGroup(nodes="n[0-3]", count=3),), "states count = 3, and its list names 4 nodes"),
        ((NodeGroup(nodes="n[3-0]"),), "is no range of nodes"),
        ((NodeGroup(count=2), NodeGroup(nodes="n1")), "node 'n1' is in two groups"),
        ((NodeGroup(count=2_000_000),), "has more than 1,000,000 nodes"),
        ((), "has no node"),
    ],
)
def test_groups_that_make_no_nodes(nodes: tuple[NodeGroup, ...], what: str) -> None:
    with pytest.raises(BridgeError, match=what):
        build_node_table(Cluster(nodes=nodes))


def test_a_cluster_of_nodes_alone_is_one_exclusive_partition() -> None:
    (whole,) = partitions_of(SITE)
    assert whole == Partition(name="all", default=True)
    assert whole.exclusive
    assert default_partition(SITE) == 0


def test_the_default_partition_is_the_first_unless_one_says_so() -> None:
    first = Cluster(nodes=SITE.nodes, partitions=(Partition(name="a"), Partition(name="b")))
    other = Cluster(nodes=SITE.nodes, partitions=(Partition(name="a"), Partition(name="b", default=True)))
    assert [default_partition(site) for site in (first, other)] == [0, 1]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["n", "r1i0n", "gpu-"]), st.integers(0, 120), st.integers(1, 3)).map(
                lambda parts: f"{parts[0]}{parts[1]:0{parts[2]}d}"
            ),
            st.sampled_from(["login", "fat"]),
        ),
        min_size=1,
        max_size=12,
        unique=True,
    )
)
def test_lists_name_their_nodes_in_order(names: list[str]) -> None:
    assert list(node_names(format_nodes(names))) == names


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["n0", "n1", "n2", "n4"], "n[0-2,4]"),
        (["n08", "n09", "n10", "n11"], "n[08-11]"),
        (["n8", "n9", "n10"], "n[8-10]"),
        (["n09", "n010"], "n[09,010]"),
        (["n1"], "n1"),
        (["fat", "n1", "login"], "fat,n1,login"),
        (["a1", "b1", "a2"], "a1,b1,a2"),
    ],
)
def test_lists_are_short(names: list[str], text: str) -> None:
    assert format_nodes(names) == text


def test_equal_neighbours_become_groups_and_keep_their_places() -> None:
    thin, fat = {"cores": 4}, {"cores": 8}
    nodes = {"n0": thin, "n1": thin, "n2": fat, "n3": thin, "gpu0": fat}
    groups = group_nodes(nodes)
    assert [(one.name, one.nodes, one.cores) for one in groups] == [
        ("n", "n[0-1]", 4),
        ("n-2", "n2", 8),
        ("n-3", "n3", 4),
        ("gpu", "gpu0", 8),
    ]
    assert build_node_table(Cluster(nodes=groups)).names == tuple(nodes)
