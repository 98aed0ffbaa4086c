"""Killed attempts use the machine and are no jobs: counted once, averaged once, whatever else they are."""

import pandas as pd
import pytest
from schedules import schedule

from bridge.judge.check import check_schedule
from bridge.judge.jobs import drop_killed_attempts, is_killed_attempt, jobs_of
from bridge.judge.metrics import breakdown, compute_metrics
from bridge.judge.run import Run
from bridge.judge.why import explain
from bridge.workload.columns import complete_columns
from bridge.workload.table import Workload

#: Four nodes. Job 1 runs in vain from 2 to 10, when job 2 takes all of them, and again from 20 on.
ROWS = (("1#1", 0, 2, 8, 2), ("1", 0, 20, 5, 2), ("2", 0, 10, 10, 4))


def table(rows: tuple[tuple[object, ...], ...] = ROWS, killed: tuple[str, ...] = ("1#1",)) -> pd.DataFrame:
    made = schedule(rows, consumed_energy=[5.0 + k for k in range(len(rows))])
    made.loc[made["job_id"].isin(killed), "final_state"] = "COMPLETED_KILLED"
    return made


def test_an_attempt_is_no_job_but_uses_the_machine() -> None:
    values = compute_metrics(table(), {"nodes": 4})
    wanted = {
        "jobs.total": 2,
        "jobs.started": 2,
        "jobs.state.COMPLETED_KILLED": 0,
        "wait.mean": 15.0,  # (20 + 10) / 2
        "slowdown.mean": 3.5,  # (25 / 5 + 20 / 10) / 2
        "makespan": 25.0,
        "utilisation.nodes": 0.66,  # (2 * 8 + 2 * 5 + 4 * 10) / (4 * 25)
        "queue.jobs.mean": 1.2,  # two jobs until 10, one until 20
        "queue.jobs.max": 2,
        "queue.nodes.mean": 3.2,  # 6 nodes until 10, 2 until 20
        "loss_of_capacity": 0.24,  # four nodes idle until 2, two until 10
        "loss_of_capacity.demand": 0.24,
        "size.2.jobs": 1,
        "energy.joules": 18.0,
    }
    assert {key: values[key] for key in wanted} == pytest.approx(wanted)
    later = compute_metrics(
        table((("1#1", 0, 0, 5, 2), ("1", 0, 20, 5, 2), ("2", 10, 10, 10, 4))), {"nodes": 4}
    )
    # between 0.5 and 9.5, nearly all submissions, two nodes are in use until 5
    assert later["utilisation.nodes.trimmed"] == pytest.approx(2 * 4.5 / (4 * 9))
    groups = breakdown(table(), "size")
    assert groups["jobs"].tolist() == [1, 1]
    assert groups["wait.mean"].tolist() == [20.0, 10.0]


def test_what_an_attempt_is() -> None:
    rows = [(name, 0, 0, 1, 1) for name in ("7", "7#1", "7#2", "7#12", "8#1", "7#0", "7#x", "#1", "9", "9#1")]
    made = table(tuple(rows), ("7#1", "7#12", "8#1", "7#0", "7#x", "#1", "9"))
    assert made["job_id"][is_killed_attempt(made)].tolist() == ["7#1", "7#12"]  # 7#2 and 9#1 have ended well
    assert drop_killed_attempts(made)["job_id"].tolist() == [
        "7",
        "7#2",
        "8#1",
        "7#0",
        "7#x",
        "#1",
        "9",
        "9#1",
    ]
    assert jobs_of(made).tolist() == ["7", "7", "7#2", "7", "8#1", "7#0", "7#x", "#1", "9", "9#1"]
    whole = table(ROWS[1:])
    assert drop_killed_attempts(whole) is whole
    assert is_killed_attempt(whole[:0]).tolist() == []


def test_a_check_counts_jobs_once_and_finds_attempts_in_the_log() -> None:
    log, _ = complete_columns(
        pd.DataFrame({"job_id": [1, 2], "submit": [0, 0], "run": [5, 10], "procs": [2, 4]}), str, "log"
    )
    found = check_schedule(table(), {"nodes": 4}, workload=Workload("log", log, {"nodes": 4}))
    assert found.ok, found.first
    assert (found.jobs, found.started, found.attempts, found.notes) == (2, 2, 1, ())


def test_an_attempt_neither_waits_nor_overtakes_besides_its_job() -> None:
    rows = (*ROWS, ("3#1", 1, 5, 1, 2), ("3#2", 1, 8, 1, 2), ("3", 1, 30, 1, 2))
    run = Run({}, {"nodes": 4}, table(rows, ("1#1", "3#1", "3#2")), {}, False, "run")
    second = explain(run, "2")
    assert second.ahead == 1  # job 1
    assert second.overtaken_by == ("3",)
    for job in ("1", "1#1"):
        assert explain(run, job).ahead == 1  # job 2
    assert [i for i, _, _ in explain(run, "1").blocked_by] == ["2", "1#1", "3#1", "3#2"]
