"""Preceding jobs and think times of a log: whom jobs follow, what is said, and what is refused."""

import numpy as np
import pandas as pd
import pytest

import bridge
from bridge.base.errors import BridgeError
from bridge.workload.following import leaders, refuse_circles
from bridge.workload.select import Jobs
from bridge.workload.table import Workload
from bridge.worlds.fast.scheduler_config import SchedulerConfig

FOLLOW, ALONE = (
    "follow another job: they arrive after its end",
    "follow a job that is not there: they arrive as logged",
)


def log(preceding: list[object], ids: list[object] | None = None, **columns: object) -> Workload:
    n = len(preceding)
    table = {
        "job_id": ids or list(range(1, n + 1)), "submit": np.arange(n) * 10, "wait": -1, "run": 100,
        "procs": 2, "req_procs": 2, "req_time": 200, "status": 1, "user": 1, "queue": 1,
        "preceding_job": preceding, "think_time": -1.0,
    }  # fmt: skip
    return Workload("log", pd.DataFrame(table | columns), {"nodes": 4})


def selected(workload: Workload, **options: object) -> tuple[list[int] | None, dict[str, int]]:
    jobs: Jobs = SchedulerConfig(**options).select(workload, dependencies=True)  # type: ignore[arg-type]
    counts = {why: reason.count for why, reason in jobs.tally.items()}
    return None if jobs.follows is None else jobs.follows.tolist(), counts


def test_whom_jobs_follow() -> None:
    assert selected(log([-1, 1, 0, 2])) == ([-1, 0, -1, 1], {FOLLOW: 2})
    assert selected(log([3, -1, -1])) == ([2, -1, -1], {FOLLOW: 1})
    assert selected(log([-1, -1])) == (None, {})


def test_ids_may_be_texts() -> None:
    assert selected(log(["", "a", "01"], ["a", "01", "1"])) == ([-1, 0, 1], {FOLLOW: 2})
    assert selected(log([-1, 1.0, -1], ["1", "b", "c"])) == ([-1, 0, -1], {FOLLOW: 1})


def test_who_is_not_there_is_counted_and_nobody_waits_for_it() -> None:
    assert selected(log([-1, 1, 99], run=[-1, 100, 100])) == (
        None,
        {"no run time": 1, ALONE: 2},
    )
    assert selected(log([3, 1, -1]), first=2) == ([-1, 0], {FOLLOW: 1, ALONE: 1})


@pytest.mark.parametrize(
    ("preceding", "job"), [([1], "job 1"), ([2, 1], "job"), ([-1, 3, 4, 2, 2], "job"), ([2, 3, 3], "job 3")]
)
def test_circles_are_refused(preceding: list[object], job: str) -> None:
    with pytest.raises(BridgeError, match="follows itself") as caught:
        selected(log(preceding))
    assert job in str(caught.value)


@pytest.mark.parametrize("think", [9e12, 1e30])
def test_a_think_time_beyond_64_bits_is_refused(think: float) -> None:
    with pytest.raises(BridgeError, match="job 2: with its think time of 9"):
        selected(log([-1, 1], think_time=[-1, think]))


def test_long_chains_are_no_circles() -> None:
    n = 1000
    refuse_circles(np.arange(-1, n - 1), np.arange(n), "x")
    with pytest.raises(BridgeError, match="follows itself"):
        refuse_circles(np.append(n - 1, np.arange(n - 1)), np.arange(n), "x")


def test_other_protocols_have_none() -> None:
    with pytest.raises(BridgeError, match="has no jobs that follow others"):
        selected(log([-1, 1]), protocol="cqsim")


def test_leaders_of_kept_records_only() -> None:
    found, alone = leaders(np.array([5, 6, 7]), pd.Series([-1, 5, 6]), np.array([1, 2]))
    assert (found.tolist(), alone.tolist()) == ([-1, 0], [1])


def test_a_replay_of_a_file(tmp_path: object) -> None:
    from pathlib import Path

    path = Path(str(tmp_path)) / "a.swf"
    path.write_text(
        "; MaxProcs: 8\n"
        "1 0 0 100 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1\n"
        "2 0 100 50 4 -1 -1 4 100 -1 1 1 1 1 1 1 1 10\n"
    )
    assert bridge.replay(path).jobs["starting_time"].tolist() == [0, 0]
    table = bridge.replay(path, dependencies=True).jobs
    assert table["submission_time"].tolist() == [0, 110]
    assert table["starting_time"].tolist() == [0, 110]
    judged = bridge.evaluate(path, "fcfs", dependencies=True, sequences=1, length=2, metric="wait")
    assert judged["mean"].tolist() == [0]
