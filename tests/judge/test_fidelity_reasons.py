"""Why jobs waited in a record: small ones by hand, and what was measured on public logs."""

import os
from pathlib import Path

import numpy as np
import pytest

from bridge.judge.fidelity_reasons import RecordedRun, reason_of
from bridge.workload.catalogue import read_log
from bridge.worlds.fast.scheduler_config import SchedulerConfig

DAY = 86_400.0


def record(rows: list[tuple[float, ...]], capacity: int = 4) -> RecordedRun:
    """Return the record of (submit, start, end, request, nodes, user, partition) a job."""
    columns = np.array(rows, np.float64).T
    nodes, user, partition = (columns[k].astype(np.int64) for k in (4, 5, 6))
    return RecordedRun(*columns[:4], nodes, capacity, user, partition)


def why(run: RecordedRun, time: float) -> dict[int, int]:
    waiting = run.waiting(time)
    reasons, _ = run.reasons(time, run.running(time), waiting)
    return dict(zip(waiting.tolist(), reasons.tolist(), strict=True))


def test_no_room_a_reservation_and_nothing() -> None:
    """At 5 three of four nodes are in use until 10 (as requested): 1 is blocked and would start then.

    2 would run on until 25 on the node that 1 needs; 3 would be gone by 10.
    """
    rows = [
        (0, 0, 10, 10, 3, 1, -1),
        (1, 10, 20, 10, 4, 1, -1),
        (2, 20, 40, 20, 1, 2, -1),
        (3, 20, 24, 4, 1, 3, -1),
    ]
    assert why(record(rows), 5.0) == {1: 0, 2: 2, 3: 3}


def test_extra_nodes_delay_nobody() -> None:
    """Of five nodes (the last job used them) one is free at 5, and one is extra when 1 starts at 10."""
    rows = [
        (0, 0, 10, 10, 3, 1, -1),
        (1, 10, 20, 10, 3, 1, -1),
        (2, 20, 90, 70, 1, 2, -1),
        (0, 0, 99, 99, 1, 1, -1),
        (100, 100, 101, 1, 5, 1, -1),
    ]
    assert why(record(rows, 5), 5.0) == {1: 0, 2: 3}


def test_a_partition_is_as_large_as_the_most_that_was_used_of_it() -> None:
    """Partition 1 had two nodes in use at most, and has them at 5; the machine has two more."""
    rows = [
        (0, 0, 10, 10, 2, 1, 1),
        (0, 0, 9, 9, 1, 1, 2),
        (1, 10, 20, 5, 1, 2, 1),
        (50, 50, 60, 10, 4, 1, 2),
    ]
    assert why(record(rows), 5.0) == {2: 1}
    assert record(rows).partitions == {1: 2.0, 2: 4.0}


def test_the_machine_is_as_large_as_what_was_used_around_the_time() -> None:
    rows = [(0, 0, 10, 10, 3, 1, -1), (1, 12, 20, 5, 1, 2, -1), (20 * DAY, 20 * DAY, 21 * DAY, DAY, 4, 1, -1)]
    assert record(rows).room(5.0) == 3.0  # the fourth node was not used within 3.5 days
    assert why(record(rows), 5.0) == {1: 0}
    assert record(rows, capacity=2).room(5.0) == 2.0  # never more than it states


def test_shares_of_all_waiting() -> None:
    """Job 1 waits from 0 to 100 for nodes, job 2 from 100 to 200 for nothing; its user is idle."""
    rows = [
        (0, 0, 100, 100, 4, 1, -1), (0, 100, 101, 5, 4, 1, -1), (100, 200, 201, 5, 1, 2, -1),
        (200, 200, 300, 100, 1, 1, -1),
    ]  # fmt: skip
    shares = record(rows).shares(instants=4000)
    assert shares.no_room == pytest.approx(0.5, abs=0.03)
    assert shares.unexplained == pytest.approx(0.5, abs=0.03)
    assert shares.all_fit == pytest.approx(0.5, abs=0.03)
    assert (shares.idle_user, shares.top_user, shares.above, shares.peak) == (1.0, 1.0, 0.0, 4)


def test_over_use_is_told_and_never_clamped() -> None:
    shares = record([(0, 0, 100, 100, 4, 1, -1), (50, 50, 100, 50, 3, 2, -1)]).shares(instants=10)
    assert (shares.above, shares.peak) == (0.5, 7)
    assert shares.unexplained is None


def test_the_reason_of_one_job() -> None:
    rows = [(0, 0, 100, 100, 4, 1, -1), (0, 200, 201, 5, 2, 2, -1), (300, 300, 301, 1, 1, 1, -1)]
    reason = reason_of(record(rows), 1, instants=4)
    assert reason.shares == {"no_room": 0.5, "unexplained": 0.5}
    assert (reason.free, reason.idle_user) == (4, True)
    assert reason_of(record(rows), 0).shares == {}


#: Unexplained shares of all waiting, percent, as they were measured once by another program.
MEASURED = {
    "SDSC-SP2-1998-4.2-cln": 9,
    "CTC-SP2-1996-3.1-cln": 15,
    "HPC2N-2002-2.2-cln": 88,
    "SDSC-DS-2004-2.1-cln": 56,
    "CEA-Curie-2011-2.1-cln": 67,
    "theta_2022": 23,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURED)
def test_public_logs_explain_as_much_as_was_measured(name: str) -> None:
    from bridge.commands.fidelity import recorded_run

    traces = os.environ.get("BRIDGE_TRACES", "")
    path = Path(traces) / f"{name}.swf.gz"
    if not traces or not path.exists():
        pytest.skip("BRIDGE_TRACES has no such log")
    shares = recorded_run(read_log(str(path)), SchedulerConfig()).shares()
    assert shares.unexplained is not None
    assert 100 * shares.unexplained == pytest.approx(MEASURED[name], abs=3)
