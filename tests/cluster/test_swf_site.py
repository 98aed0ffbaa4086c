"""The site beside an SWF log of 21 fields, as a cluster."""

from pathlib import Path

import pytest

from bridge.base.errors import BridgeError
from bridge.cluster.swf_site import import_swf_site
from tests.workload.swf_sites import FILES, write_site


def test_a_site(tmp_path: Path) -> None:
    imported = import_swf_site(write_site(tmp_path))
    cluster = imported.cluster
    assert [(g.name, g.count, g.cores, g.memory, g.gpus, g.features) for g in cluster.nodes] == [
        ("ded", 2, 8, 262144, {"gpu": 4}, ("dedicated",)),
        ("norm", 4, 8, 131072, {}, ("normal",)),
    ]
    assert [(p.name, p.tier, p.qos, p.exclusive) for p in cluster.partitions] == [
        ("urgent", 2, "urgent", False),
        ("usual", 1, "usual", False),
    ]
    assert [(q.name, q.grp_tres) for q in cluster.qos] == [
        ("urgent", {"cores": 48}),
        ("usual", {"cores": 32}),
    ]
    assert [(a.name, a.shares, a.grp_tres) for a in cluster.accounts] == [
        ("phys", 2, {"cores": 48}),
        ("bio", 1, {"cores": 32}),
    ]
    assert [(u.name, u.account, u.shares, u.grp_tres) for u in cluster.users] == [
        ("eve", "phys", 2, {"cores": 48}),
        ("bob", "bio", 1, {"cores": 16}),
    ]
    assert imported.unhonoured == {}


def test_columns_are_found_by_their_names_and_strange_ones_are_said(tmp_path: Path) -> None:
    machines = "# id name CPUs nodes RAM(MB) colour speed\n0 a 4 3 512 red 2\n"
    imported = import_swf_site(write_site(tmp_path, machines=machines, queues="", users="", groups=""))
    (group,) = imported.cluster.nodes
    assert (group.count, group.cores, group.memory, group.features) == (3, 4, 512, ())
    assert [p.name for p in imported.cluster.partitions] == ["all"]
    assert imported.unhonoured == {
        "column of machines: colour": 1,
        "machines with a speed of their own: runs are as logged": 1,
    }


def test_whole_nodes_where_each_has_one_processor(tmp_path: Path) -> None:
    machines = FILES["machines"].replace("\t8\t1", "\t1\t1")
    partitions = import_swf_site(write_site(tmp_path, machines=machines)).cluster.partitions
    assert [p.exclusive for p in partitions] == [True, True]


@pytest.mark.parametrize(
    ("kind", "old", "new", "line", "says"),
    [
        ("machines", "\t2\t8", "\tmany\t8", 3, "its nodes is 'many'"),
        ("machines", "\t2\t8", "\t0\t8", 3, "nodes is 0"),
        ("machines", "256", "much", 3, "'much' is no number"),
        ("queues", "\t48\t50", "", 2, "has 2 cells"),
        ("users", "\t16", "\t1.5", 3, "its cpu_quota is '1.5'"),
    ],
)
def test_bad_lines_are_refused(tmp_path: Path, kind: str, old: str, new: str, line: int, says: str) -> None:
    path = write_site(tmp_path, **{kind: FILES[kind].replace(old, new, 1)})
    with pytest.raises(BridgeError, match=says) as error:
        import_swf_site(path)
    assert error.value.where == f"{path}.{kind}:{line}"


def test_a_log_alone_is_no_site(tmp_path: Path) -> None:
    path = write_site(tmp_path, machines="")
    with pytest.raises(BridgeError, match="no file beside it tells of machines"):
        import_swf_site(path)
