"""The shadow of Slurm's own schedulers: readings as text, and what it says of the starts between them."""

from typing import cast

import pytest
from own_slurm import Slurm, job

from bridge.base.errors import BridgeError
from bridge.worlds.slurm.client import Client
from bridge.worlds.slurm.own_jobs import read_jobs
from bridge.worlds.slurm.own_shadow import OwnShadow
from bridge.worlds.slurm.own_site import read_own_site


def by_backfill(line: str) -> str:
    return line.replace(" Partition=", " Scheduler=Backfill Partition=")


def watched(*readings: tuple[int, list[str]]) -> OwnShadow:
    shadow = OwnShadow(cast("Client", Slurm()))
    for now, lines in readings:
        shadow.read("".join(lines), now, now)
    return shadow


RUNS = job(1, "RUNNING", 3, "n[0-2]", 1002, 1602)
ENDS = job(1, "COMPLETED", 3, "n[0-2]", 1002, 1100)


def test_a_start_after_an_end_is_predicted_with_its_nodes() -> None:
    waits = [job(2, "PENDING", 2), job(3, "PENDING", 3)]
    shadow = watched(
        (1050, [RUNS, *waits]),
        (1101, [ENDS, job(2, "RUNNING", 2, "n[0-1]", 1101, 1701), waits[1]]),
    )
    (hit,) = shadow.report.hits
    assert (hit.job, hit.by, hit.is_right) == ("2", "main", True)
    assert hit.nodes == {"n0", "n1"}
    assert shadow.report.document()["hit rate"] == 1.0


def test_a_start_on_other_nodes_or_out_of_turn_is_a_miss() -> None:
    waits = [job(2, "PENDING", 2), job(3, "PENDING", 3)]
    elsewhere = watched(
        (1050, [RUNS, *waits]),
        (1101, [ENDS, job(2, "RUNNING", 2, "n[2-3]", 1101, 1701), waits[1]]),
    )
    assert [(one.predicted, one.is_right) for one in elsewhere.report.hits] == [({"n0", "n1"}, False)]
    # the third job has to wait: both do not fit
    out_of_turn = watched(
        (1050, [RUNS, *waits]),
        (1101, [ENDS, waits[0], job(3, "RUNNING", 3, "n[0-2]", 1101, 1701)]),
    )
    assert [(one.in_part, one.why) for one in out_of_turn.report.hits] == [(None, "not predicted")]
    assert out_of_turn.report.document()["hit rate"] == 0.0


def test_backfill_s_starts_are_predicted_too() -> None:
    waits = [job(2, "PENDING", 4), job(3, "PENDING", 1).replace("00:10:00", "00:05:00")]
    shadow = watched(
        (1050, [RUNS, *waits]),
        (1061, [RUNS, waits[0], by_backfill(job(3, "RUNNING", 1, "n3", 1061, 1361))]),
    )
    (hit,) = shadow.report.hits
    assert (hit.by, hit.is_right) == ("backfill", True)


def test_nodes_that_complete_are_not_given_away() -> None:
    slow = job(1, "COMPLETING", 3, "n[0-2]", 1002, 1100)
    waits = job(2, "PENDING", 1)
    shadow = watched(
        (1050, [RUNS, waits.replace("PENDING", "HELD")]),
        (1100, [slow, waits]),
        (1101, [slow, job(2, "RUNNING", 1, "n3", 1101, 1701)]),
    )
    assert [one.is_right for one in shadow.report.hits] == [True]


def test_limits_that_nobody_reads_are_refused() -> None:
    with pytest.raises(BridgeError, match="limits are enforced"):
        read_own_site(cast("Client", Slurm("associations,limits")))


def array(tasks: str, throttle: int = 0) -> str:
    """Return the waiting record of array 7."""
    words = f"JobId=7 ArrayJobId=7 ArrayTaskId={tasks} ArrayTaskThrottle={throttle} "
    return job(7, "PENDING", 1).replace("JobId=7 ", words)


def test_of_an_array_whose_list_is_cut_short_the_tasks_that_are_there_wait() -> None:
    cut = array("1,3,5-7,20,22,24,26,28,30,32,34,36,38,40,42,44,46,48,50,52,1...", 2)
    tasks = [1, 3, 5, 6, 7, *range(20, 53, 2)]
    jobs = read_jobs(cut)
    assert list(jobs) == [f"7_{task}" for task in tasks]
    assert read_jobs(array("4-6")).keys() == {"7_4", "7_5", "7_6"}
    runs = job(7, "RUNNING", 1, "n3", 1061, 1661)
    first = runs.replace("JobId=7 ", "JobId=8 ArrayJobId=7 ArrayTaskId=1 ArrayTaskThrottle=2 ")
    shadow = watched((1050, [RUNS, cut]), (1061, [RUNS, cut.replace("=1,3", "=3"), first]))
    assert [(hit.job, hit.is_right) for hit in shadow.report.hits] == [("7_1", True)]


def test_whose_pass_it_was_is_read() -> None:
    waits = [job(2, "PENDING", 4), job(3, "PENDING", 1).replace("00:10:00", "00:05:00")]
    shadow = watched(
        (1050, [RUNS, *waits]),
        (1061, [RUNS, waits[0], job(3, "RUNNING", 1, "n3", 1061, 1361)]),
    )
    assert [(one.by, one.is_right, one.is_right_in_part) for one in shadow.report.hits] == [
        ("main", False, False)  # a main pass starts no job behind one that has to wait
    ]


def test_the_order_of_what_happens_between_two_readings_is_not_read() -> None:
    """Job 2 started on the nodes of the one that ended first; after both ends it would have got others."""
    first, second = job(1, "RUNNING", 2, "n[0-1]", 1002, 1602), job(9, "RUNNING", 2, "n[2-3]", 1002, 1602)
    ends = (
        job(1, "COMPLETED", 2, "n[0-1]", 1002, 1100),
        job(9, "COMPLETED", 2, "n[2-3]", 1002, 1100),
    )
    shadow = watched(
        (1099, [first, second, job(2, "PENDING", 2)]),
        (1100, [*ends, job(2, "RUNNING", 2, "n[2-3]", 1100, 1700)]),
    )
    (hit,) = shadow.report.hits
    assert (hit.predicted, hit.in_part) == ({"n0", "n1"}, {"n2", "n3"})
    document = shadow.report.document()
    assert (document["hit rate"], document["hit rate if the order is free"]) == (0.0, 1.0)


def test_a_job_of_which_backfill_has_planned_a_start_and_an_end_is_compared() -> None:
    planned = job(2, "PENDING", 2, start=1602, end=2202).replace("NodeList=(null)", "NodeList=")
    shadow = watched((1050, [RUNS, planned]), (1101, [ENDS, job(2, "RUNNING", 2, "n[0-1]", 1101, 1701)]))
    assert [one.is_right for one in shadow.report.hits] == [True]


def test_some_nodes_of_a_job_that_completes_are_free() -> None:
    slow = job(1, "COMPLETING", 1, "n2", 1002, 1100).replace("Nodes=n2 ", "Nodes=n[0-2] ")
    waits = job(2, "PENDING", 3)
    shadow = watched(
        (1099, [RUNS, waits]),
        (1101, [slow, job(2, "RUNNING", 3, "n[0-1,3]", 1101, 1701)]),
    )
    assert [one.is_right_in_part for one in shadow.report.hits] == [True]
