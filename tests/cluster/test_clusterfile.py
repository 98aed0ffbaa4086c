"""Files of clusters: round trips, and digests of what they say."""

from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.base.cache import bundled_files
from bridge.base.errors import BridgeError
from bridge.cluster import Account, Cluster, NodeGroup, Partition, PriorityConfig, Qos, User
from bridge.cluster.clusterfile import cluster_digest, cluster_tables, read_cluster_toml, write_cluster_toml
from bridge.config import from_tables
from bridge.config.fields import attributes

NAMES = st.text("abcxyz-_", min_size=1, max_size=6)
AMOUNTS = st.dictionaries(
    st.sampled_from(["nodes", "cores", "memory", "gpus"]), st.integers(0, 10**9), max_size=2
)
CLUSTERS = st.builds(
    Cluster,
    name=NAMES,
    nodes=st.tuples(
        st.builds(
            NodeGroup,
            name=NAMES,
            count=st.integers(1, 5),
            cores=st.integers(1, 128),
            memory=st.none() | st.integers(1, 10**7),
            gpus=st.dictionaries(st.sampled_from(["a100", "v100"]), st.integers(1, 8)),
            features=st.lists(NAMES, max_size=2).map(tuple),
            state=st.sampled_from(["up", "down", "drain"]),
        )
    ),
    partitions=st.lists(
        st.builds(Partition, name=NAMES, exclusive=st.booleans(), max_time=st.none() | st.integers(1, 10**6)),
        max_size=2,
    ).map(tuple),
    qos=st.lists(
        st.builds(
            Qos, name=NAMES, priority=st.integers(0, 9), grp_tres=AMOUNTS, usage_factor=st.floats(0, 4)
        ),
        max_size=2,
    ).map(tuple),
    accounts=st.lists(st.builds(Account, name=NAMES, max_jobs=st.none() | st.integers(0, 9)), max_size=2).map(
        tuple
    ),
    users=st.lists(st.builds(User, name=NAMES, shares=st.integers(-1, 9)), max_size=2).map(tuple),
    priority=st.builds(PriorityConfig, age=st.integers(0, 10**6), fair_tree=st.booleans()),
)


@given(CLUSTERS)
def test_a_cluster_is_read_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, cluster: Cluster
) -> None:
    path = tmp_path_factory.mktemp("c") / "cluster.toml"
    write_cluster_toml(cluster, path, "made by a test\n\nof files")
    again = read_cluster_toml(path)
    assert again == cluster
    assert cluster_digest(again) == cluster_digest(cluster)


@given(CLUSTERS)
def test_tables_hold_nothing_that_is_as_by_default(cluster: Cluster) -> None:
    def check(value: Any, table: Any) -> None:
        if isinstance(value, tuple):
            for one, part in zip(value, table, strict=True):
                check(one, part)
        elif is_dataclass(value):
            for field in fields(value):
                assert (field.name in table) == (getattr(value, field.name) != _default(field)), field.name
                if field.name in table:
                    check(getattr(value, field.name), table[field.name])

    check(cluster, cluster_tables(cluster))
    assert from_tables(Cluster, cluster_tables(cluster), "tables") == cluster


def _default(field: Any) -> Any:
    try:
        return field.default_factory()
    except TypeError:
        return field.default


def test_a_digest_is_of_what_is_said_not_of_how(tmp_path: Path) -> None:
    short, long = tmp_path / "short.toml", tmp_path / "long.toml"
    short.write_text('[[nodes]]\ncount = 4\n[[partitions]]\nname = "p"\n')
    long.write_text(
        '# the same\nname = "cluster"\npartitions = [{ name = "p", nodes = ["ALL"], tier = 1 }]\n'
        '[[nodes]]\nname = "n"\ncount = 4\ncores = 1\ngpus = {}\n[priority]\n'
    )
    digests = {cluster_digest(read_cluster_toml(path)) for path in (short, long)}
    # keys of cells and checkpoints hold it: it may not change
    assert digests == {"e1c7ea3fdeed9fabebfc8af79ef1272d1aa2984abad4f30be81b2c99002e2909"}


def test_another_cluster_has_another_digest() -> None:
    cluster = Cluster(nodes=(NodeGroup(count=4),))
    others = [
        replace(cluster, name="other"),
        replace(cluster, nodes=(NodeGroup(count=5),)),
        replace(cluster, partitions=(Partition(name="p"),)),
        replace(cluster, qos=(Qos(name="q", grp_tres={"cores": 1}),)),
    ]
    assert len({cluster_digest(one) for one in [cluster, *others]}) == 5


def test_no_toml_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[[nodes]]\ncount = \n")
    with pytest.raises(BridgeError, match=r"c\.toml:2: not valid TOML"):
        read_cluster_toml(path)


def test_every_field_says_what_it_is() -> None:
    kinds = [Cluster, NodeGroup, Partition, Qos, Account, User, PriorityConfig]
    from bridge.cluster import AdvanceReservation, CalendarEvent, License, SchedulerParameters

    for kind in [*kinds, AdvanceReservation, CalendarEvent, License, SchedulerParameters]:
        about = attributes(kind)
        assert {field.name for field in fields(kind)} <= set(about), kind


@pytest.mark.parametrize("name", ["teaching-site", "cirrus-like", "thetagpu-like", "thetagpu-2023"])
def test_shipped_sites_have_nothing_wrong(name: str) -> None:
    from bridge.cluster.check import check_cluster

    cluster = read_cluster_toml(bundled_files("clusters", ".toml")[name])
    assert cluster.name == name
    assert check_cluster(cluster) == []
