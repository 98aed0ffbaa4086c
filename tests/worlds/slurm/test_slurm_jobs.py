"""Which nodes a job gets, and which jobs are left to Slurm."""

import math
from dataclasses import replace

import pytest

from bridge.worlds.slurm.client import Node, QueueEntry, _row
from bridge.worlds.slurm.jobs import PartitionNodes

ROW = QueueEntry(
    label="7",
    raw=7,
    state="PENDING",
    priority=0,
    submit=100,
    start=-1,
    limit=600.0,
    nodes=2,
    cores=2,
    memory="100M",
    user="alice",
    reason="JobHeldUser",
    dependency="",
    features="",
    gres="",
    reservation="",
    licenses="",
    required="",
    excluded="",
    hosts="",
    partition="agent",
)
NODES = {
    name: Node(name, state, 8, 1000, frozenset(features))
    for name, state, features in (
        ("n0", "idle", ()),
        ("n1", "completing", ("fast",)),
        ("n2", "idle", ("fast", "big")),
        ("n3", "drained", ()),
        ("n4", "idle*", ()),
        ("n5", "mixed", ()),
    )
}
MACHINE = PartitionNodes(NODES, ((1000.0, 2000.0, frozenset({"n0"})),))
ALL = frozenset(NODES)


def test_idle_nodes() -> None:
    assert MACHINE.idle == {"n0", "n1", "n2"}


@pytest.mark.parametrize(
    ("changes", "chosen"),
    [
        ({}, ["n0", "n1"]),
        ({"limit": 900.0}, ["n1", "n2"]),
        ({"required": "n2"}, ["n0", "n2"]),
        ({"excluded": "n[0-1]", "nodes": 1}, ["n2"]),
        ({"features": "fast"}, ["n1", "n2"]),
        ({"features": "fast&big", "nodes": 1}, ["n2"]),
        ({"features": "big"}, None),
        ({"nodes": 4}, None),
        ({"required": "n3"}, None),
        ({"memory": "2000M"}, None),
    ],
)
def test_nodes_for_a_job(changes: dict[str, object], chosen: list[str] | None) -> None:
    row = replace(ROW, **changes)  # type: ignore[arg-type]
    assert MACHINE.select_nodes(row, MACHINE.idle, now=150.0, length=row.limit) == chosen


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"label": "30+1"}, "heterogeneous"),
        ({"gres": "gres/gpu:2"}, "asks for gres/gpu:2"),
        ({"licenses": "matlab"}, "licenses"),
        ({"reservation": "maint"}, "reservation maint"),
        ({"features": "a|b"}, "features"),
        ({"features": "fast", "nodes": 3}, "asks for 3 nodes, and 2 have"),
        ({"cores": 40}, "asks for 2 nodes, and 0 have"),
        ({"partition": "agent,other"}, "one of the partitions"),
    ],
)
def test_jobs_that_are_left_to_slurm(changes: dict[str, object], why: str) -> None:
    found = MACHINE.reason_left_to_slurm(replace(ROW, **changes))  # type: ignore[arg-type]
    assert (why in found) if why else not found


def test_when_a_job_may_begin() -> None:
    waiting = replace(ROW, state="PENDING", priority=0, start=200)
    assert waiting.earliest_start(150.0) == 200
    assert waiting.earliest_start(200.0) == 0
    assert replace(waiting, priority=5).earliest_start(150.0) == 0  # when Slurm expects it to start
    assert replace(waiting, priority=5, reason="BeginTime").earliest_start(150.0) == 200
    assert replace(waiting, start=-1).earliest_start(150.0) == 0


def test_a_line_of_squeue() -> None:
    cells = (
        *("7", "12_3", "PENDING", "0", "1795346424", "N/A", "1-00:00:00", "2-2", "4", "100M", "alice"),
        *("JobHeldUser", "(null)", "(null)", "N/A", "(null)", "(null)", "", "", "", "agent", "night"),
    )
    row = _row("\x1f".join(cells))
    assert (row.label, row.raw, row.key) == ("12_3", 7, "12_3@1795346424")
    assert (row.start, row.limit, row.nodes, row.cores) == (-1, 86400, 2, 4)
    assert (row.dependency, row.gres, row.hosts, row.names) == ("", "", "", frozenset())
    assert (row.partition, row.qos) == ("agent", "night")
    assert _row("\x1f".join(cells).replace("1-00:00:00", "UNLIMITED")).limit == math.inf
