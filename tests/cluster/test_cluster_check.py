"""What is wrong with a cluster, each with its field."""

from pathlib import Path

import pytest

from bridge.base.errors import BridgeError
from bridge.cluster.check import check_cluster, require_consistent
from bridge.cluster.clusterfile import read_with_lines

BASE = """\
[[nodes]]
count = 4
gpus = { a100 = 2 }
"""


def findings(tmp_path: Path, text: str) -> list[tuple[str, int, str]]:
    """Return severity, line (that of a text behind `BASE`) and text of what is wrong with both."""
    path = tmp_path / "c.toml"
    path.write_text(BASE + text)
    cluster, lines = read_with_lines(path)
    found = check_cluster(cluster)
    return [
        (one.severity, int(lines.place(one.path).rpartition(":")[2]) - BASE.count("\n"), one.what)
        for one in found
    ]


@pytest.mark.parametrize(
    ("text", "severity", "line", "what"),
    [
        ('[[partitions]]\nname="p"\nnodes="n[0-9]"', "error", 3, "there is no node 'n4' and 5 more"),
        ('[[partitions]]\nname="p"\nnodes=[]', "error", 3, "names no node"),
        ('[[partitions]]\nname="p"\nnodes="n[3-0]"', "error", 3, "'3-0' is no range of nodes"),
        ('[[partitions]]\nname="p"\n[[partitions]]\nname="p"', "error", 4, "'p' is there twice"),
        (
            '[[partitions]]\nname="p"\ndefault=true\n[[partitions]]\nname="q"\ndefault=true',
            "error",
            6,
            "'p' is the default partition already",
        ),
        (
            '[[partitions]]\nname="p"\nmax_time=60\ndefault_time=90',
            "error",
            4,
            "default_time is longer than max_time (90 s, 60 s)",
        ),
        (
            '[[partitions]]\nname="p"\nmin_nodes=3\nmax_nodes=2',
            "error",
            3,
            "min_nodes is more than max_nodes (3, 2)",
        ),
        ('[[partitions]]\nname="p"\nqos="x"', "unknown", 3, "there is no QOS 'x'"),
        ('[[partitions]]\nname="p"\nqos="x"\n[[qos]]\nname="y"', "error", 3, "there is no QOS 'x'"),
        ('[[partitions]]\nname="p"\nallow_accounts="x"', "unknown", 3, "there is no account 'x'"),
        (
            '[[partitions]]\nname="p"\nallow_qos="y"\ndeny_qos="y"\n[[qos]]\nname="y"',
            "unused",
            4,
            "deny_qos says nothing beside allow_qos",
        ),
        ('[[partitions]]\nname="p"\nnodes="n[0-2]"', "unused", -2, "node n3 is in no partition"),
        (
            '[[partitions]]\nname="p"\ndefault_memory_per_core=5',
            "unused",
            3,
            "says nothing where jobs have whole nodes (exclusive)",
        ),
        (
            '[[qos]]\nname="y"\ngrp_tres={cpu=4}',
            "error",
            3,
            "there is no resource 'cpu' (nodes, cores, memory, gpus, gpus_TYPE, license_NAME)",
        ),
        ('[[qos]]\nname="y"\ngrp_tres={gpus_v100=4}', "unknown", 3, "no node has GPUs of type 'v100'"),
        ('[[qos]]\nname="y"\ngrp_tres={license_m=4}', "unknown", 3, "there is no licence 'm'"),
        (
            '[[qos]]\nname="y"\nmin_tres_per_job={nodes=3}\nmax_tres_per_job={nodes=2}',
            "error",
            3,
            "no job can have 3 nodes at least and 2 at most",
        ),
        ('[[qos]]\nname="y"\npreempt="y"\n[scheduler]\npreempt="qos"', "error", 3, "QOS 'y' preempts itself"),
        ('[[accounts]]\nname="a"\nparent="b"', "error", 3, "there is no account 'b'"),
        (
            '[[accounts]]\nname="a"\nparent="b"\n[[accounts]]\nname="b"\nparent="a"',
            "error",
            3,
            "account 'a' is below itself",
        ),
        ('[[users]]\nname="u"\naccount="a"', "error", 3, "there is no account 'a'"),
        ('[[users]]\nname="u"\npartition="x"', "error", 3, "there is no partition 'x'"),
        (
            '[[qos]]\nname="y"\n[[qos]]\nname="z"\n[[users]]\nname="u"\nqos="y"\ndefault_qos="z"',
            "error",
            8,
            "default_qos 'z' is not among its qos",
        ),
        (
            '[[partitions]]\nname="p"\npreempt_mode="cancel"',
            "unused",
            3,
            "says nothing: scheduler.preempt is none",
        ),
        (
            '[scheduler]\npreempt="partition"\npreempt_mode="requeue"',
            "unused",
            2,
            "all partitions have one tier: no job is ever preempted",
        ),
        ("[priority]\nfairshare=5", "unused", 2, "there are no accounts or users with shares"),
        ("[priority]\nqos=5", "unused", 2, "no two QOS have different priorities"),
        (
            '[[reservations]]\nname="r"\nstart=9\nend=9',
            "error",
            4,
            "ends at 9 s, not after its start at 9 s",
        ),
        (
            '[[reservations]]\nname="r"\nstart=9\nend=10\nannounced=10',
            "error",
            5,
            "is announced at 10 s, after its start at 9 s",
        ),
        ('[[calendar]]\ntime=1\nevent="down"', "error", 1, "the event down needs nodes"),
        (
            '[[calendar]]\ntime=1\nevent="up"\nnodes="n0"\nlicense="m"',
            "error",
            5,
            "the event up has no license",
        ),
        ('[[calendar]]\ntime=1\nevent="drain"\nnodes="n9"', "error", 4, "there is no node 'n9'"),
        (
            '[[licenses]]\nname="m"\ncount=1\n[[calendar]]\ntime=1\nevent="licenses"\nlicense="m"',
            "error",
            4,
            "the event licenses needs value, the new number",
        ),
        (
            '[[calendar]]\ntime=1\nevent="limit"\nlimit="max_wall"',
            "error",
            1,
            "a limit needs one of partition, qos, account, user (a user with its account)",
        ),
    ],
)
def test_findings(tmp_path: Path, text: str, severity: str, line: int, what: str) -> None:
    assert (severity, line, what) in findings(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        '[[calendar]]\ntime=1\nevent="limit"\nqos="y"\nlimit="grp_tres.cores"\nvalue=4\n[[qos]]\nname="y"',
        '[[calendar]]\ntime=1\nevent="limit"\npartition="all"\nlimit="max_nodes"\nvalue=4',
        '[[accounts]]\nname="root"\n[[accounts]]\nname="a"\n[[users]]\nname="u"\naccount="a"',
        '[[partitions]]\nname="p"\nnodes="n"\nallow_accounts="root"\n[[accounts]]\nname="a"',
    ],
)
def test_nothing_is_wrong(tmp_path: Path, text: str) -> None:
    assert findings(tmp_path, text) == []


@pytest.mark.parametrize(
    ("limit", "fits"),
    [
        ("grp_jobs", True),
        ("grp_tres.cores", True),
        ("grp_tres", False),
        ("grp_jobs.cores", False),
        ("priority", False),
        ("max_jobs_per_user", True),
    ],
)
def test_a_calendar_changes_limits_that_there_are(tmp_path: Path, limit: str, fits: bool) -> None:
    text = f'[[calendar]]\ntime=1\nevent="limit"\nqos="y"\nlimit="{limit}"\nvalue=4\n[[qos]]\nname="y"'
    assert (findings(tmp_path, text) == []) == fits


def test_errors_come_first_and_the_first_one_is_raised(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(BASE + '[priority]\nqos=5\n[[partitions]]\nname="p"\nnodes="z"\n')
    cluster, lines = read_with_lines(path)
    assert [one.severity for one in check_cluster(cluster)] == ["error", "unused", "unused"]
    with pytest.raises(BridgeError, match=r"c\.toml:8: there is no node 'z'"):
        require_consistent(cluster, lines.place)


def test_without_nodes_nothing_else_is_said(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text('[[nodes]]\nnodes="n[0-1]"\ncount=3\n[[partitions]]\nname="p"\nnodes="z"\n')
    (one,) = check_cluster(read_with_lines(path)[0])
    assert (one.severity, one.path) == ("error", "nodes[0]")
    assert one.what == "this group of nodes states count = 3, and its list names 2 nodes"
