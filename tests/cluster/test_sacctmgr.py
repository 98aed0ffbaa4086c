"""QOS and associations from sacctmgr's text."""

from pathlib import Path

import pytest

from bridge.base.errors import BridgeError
from bridge.cluster import Account, Cluster, NodeGroup, Qos, User
from bridge.cluster.imported import ImportNotes
from bridge.cluster.sacctmgr import read_sacctmgr

SITE = Cluster(nodes=(NodeGroup(count=1),))
QOS = [
    "Name",
    "Priority",
    "GraceTime",
    "Preempt",
    "PreemptMode",
    "Flags",
    "UsageThres",
    "UsageFactor",
    "GrpTRES",
    "GrpJobs",
    "GrpSubmit",
    "GrpWall",
    "MaxTRES",
    "MaxWall",
    "MaxTRESPU",
    "MaxJobsPU",
    "MaxSubmitPU",
    "MaxTRESPA",
    "MaxJobsPA",
    "MaxSubmitPA",
    "MinTRES",
]
ASSOC = [
    "Cluster",
    "Account",
    "User",
    "Partition",
    "Share",
    "Priority",
    "GrpJobs",
    "GrpTRES",
    "MaxJobs",
    "MaxSubmit",
    "MaxWall",
    "QOS",
    "Def_QOS",
]


def table(path: Path, heads: list[str], *rows: dict[str, str], end: str = "") -> Path:
    """Write a table as `sacctmgr -P` does; `-p` ends each row, too."""
    lines = ["|".join(heads).replace("_", " ")] + ["|".join(row.get(h, "") for h in heads) for row in rows]
    path.write_text("".join(f"{line}{end}\n" for line in lines))
    return path


@pytest.mark.parametrize("end", ["", "|"])
def test_qos(tmp_path: Path, end: str) -> None:
    notes = ImportNotes()
    file = table(
        tmp_path / "qos",
        QOS,
        {"Name": "normal", "Priority": "0", "PreemptMode": "cluster", "UsageFactor": "1.000000"},
        {
            "Name": "high",
            "Priority": "100",
            "GraceTime": "00:05:00",
            "Preempt": "normal",
            "PreemptMode": "requeue",
            "Flags": "DenyOnLimit,NoReserve,Relative",
            "UsageFactor": "2.0",
            "GrpTRES": "cpu=100,gres/gpu:a100=4,mem=100G,billing=5",
            "GrpJobs": "5",
            "MaxJobsPU": "3",
            "MaxWall": "1-00:00:00",
            "MaxTRESPU": "node=2",
            "MinTRES": "cpu=2",
            "MaxSubmitPA": "7",
            "GrpWall": "3-00:00:00",
            "UsageThres": "0.5",
        },
        end=end,
    )
    cluster = read_sacctmgr(file, SITE, notes)
    assert cluster.qos == (
        Qos(name="normal"),
        Qos(
            name="high",
            priority=100,
            grace_time=300,
            preempt=("normal",),
            preempt_mode="requeue",
            deny_on_limit=True,
            no_reserve=True,
            usage_factor=2.0,
            grp_tres={"cores": 100, "gpus_a100": 4, "memory": 102_400},
            grp_jobs=5,
            max_jobs_per_user=3,
            max_wall=86_400,
            max_tres_per_user={"nodes": 2},
            min_tres_per_job={"cores": 2},
            max_submit_jobs_per_account=7,
        ),
    )
    assert notes.unhonoured == {
        "limits of billing": 1,
        "limits of accounting: grpwall": 1,
        "limits of accounting: usagethres": 1,
        "QOS with Flags=Relative": 1,
    }


def test_associations_of_a_tree(tmp_path: Path) -> None:
    file = table(
        tmp_path / "assoc",
        ASSOC,
        {"Cluster": "mini", "Account": "root", "Share": "1", "QOS": "high,normal"},
        {"Cluster": "mini", "Account": " root", "User": "root", "Share": "1"},
        {"Cluster": "mini", "Account": " physics", "Share": "60", "GrpJobs": "5", "GrpTRES": "cpu=64"},
        {"Cluster": "mini", "Account": "  theory", "Share": "10"},
        {
            "Cluster": "mini",
            "Account": "  theory",
            "User": "alice",
            "Share": "parent",
            "MaxJobs": "2",
            "QOS": "high,normal",
            "Def_QOS": "high",
        },
        {"Cluster": "mini", "Account": " biology", "Share": "40", "MaxWall": "01:00:00"},
        {"Cluster": "mini", "Account": " biology", "User": "bob", "Partition": "gpu", "MaxSubmit": "9"},
    )
    cluster = read_sacctmgr(file, SITE, ImportNotes())
    assert cluster.accounts == (
        Account(name="root", qos=("high", "normal")),
        Account(name="physics", shares=60, grp_jobs=5, grp_tres={"cores": 64}),
        Account(name="theory", parent="physics", shares=10),
        Account(name="biology", shares=40, max_wall=3600),
    )
    assert cluster.users == (
        User(name="root"),
        User(
            name="alice", account="theory", shares=-1, max_jobs=2, qos=("high", "normal"), default_qos="high"
        ),
        User(name="bob", account="biology", partition="gpu", max_submit_jobs=9),
    )


def test_parents_by_name_and_a_flat_list_is_said(tmp_path: Path) -> None:
    notes = ImportNotes()
    rows = [{"Account": "root"}, {"Account": "a", "ParentName": "root"}, {"Account": "b", "ParentName": "a"}]
    file = table(tmp_path / "named", [*ASSOC, "ParentName"], *rows)
    assert [one.parent for one in read_sacctmgr(file, SITE, notes).accounts] == ["root", "root", "a"]
    assert notes.notes == []
    flat = table(tmp_path / "flat", ASSOC, {"Account": "a"}, {"Account": "b"}, {"Account": "c"})
    assert {one.parent for one in read_sacctmgr(flat, SITE, notes).accounts} == {"root"}
    assert len(notes.notes) == 1
    assert "ParentName" in notes.notes[0]


def test_an_account_that_only_users_name(tmp_path: Path) -> None:
    file = table(tmp_path / "assoc", ASSOC, {"Account": "a", "User": "u"})
    assert read_sacctmgr(file, SITE, ImportNotes()).accounts == (Account(name="a"),)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Name Priority\nnormal 0\n", "has no line of column names"),
        ("A|B\n1|2\n", "is neither a list of QOS nor one of associations"),
        ("Name|Priority\nnormal|0|3\n", "has 3 cells, and there are 2 names of columns"),
        ("Name|Priority\nnormal|x\n", "'x' is no whole number"),
        ("Name|Priority|MaxWall\nnormal|1|x\n", "'x' is no duration"),
        ("Name|Priority|GrpTRES\nnormal|1|cpu\n", "'cpu' is no resource with its amount"),
        ("Cluster|Account|User\na|x|\nb|x|\n", "lists associations of several clusters: a, b"),
    ],
)
def test_no_list(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "f").write_text(text)
    with pytest.raises(BridgeError, match=what):
        read_sacctmgr(tmp_path / "f", SITE, ImportNotes())
