"""Jobs with several lives on a platform: each is one job of the table, and one of the metrics, again."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bridge.judge.action_metrics import run_action_metrics
from bridge.wire.times import MICRO
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.job_lives import JobLives
from bridge.worlds.fast.replay import Schedule

if TYPE_CHECKING:
    from bridge.worlds.batsim.estimates import Numbering
    from bridge.worlds.batsim.killing_dispatcher import RepeatableJob


def merge_lives(table: pd.DataFrame, repeatable_jobs: Sequence["RepeatableJob"]) -> pd.DataFrame:
    """Return a platform's jobs table with one row a job, that of its last life, under the job's own id.

    As a replay has it: its run time is the job's, and it waits for all the time until its end but that.
    Further columns: see `bridge.worlds.fast.jobs_table.JobsTableBuilder`.
    """
    own = table["workload_name"].astype(str) + "!" + table["job_id"].astype(str)
    jobs = {life.job_id: (job, life) for job in repeatable_jobs for life in job.lives}
    is_last = (job_id not in jobs or jobs[job_id][1] is jobs[job_id][0].current for job_id in own)
    last = np.fromiter(is_last, bool, len(own))
    table, own = table[last].reset_index(drop=True), own[last]
    rows = [jobs.get(job_id) for job_id in own]
    names = [row[0].event.job_id.partition("!")[2] if row else None for row in rows]
    table["job_id"] = [name or old for name, old in zip(names, table["job_id"], strict=True)]
    ran = [row is not None and row[1].finish >= 0 and row[1].start >= 0 for row in rows]
    submit = np.array([row[1].submit / MICRO if row else np.nan for row in rows], np.float64)
    longer = np.array([row[1].longer / MICRO if row else 0.0 for row in rows], np.float64)
    table["submission_time"] = np.where(ran, submit, table["submission_time"])
    table["execution_time"] = np.where(ran, table["execution_time"] - longer, table["execution_time"])
    lasted = table["finish_time"] - table["submission_time"]
    table["waiting_time"] = np.where(ran, lasted - table["execution_time"], table["waiting_time"])
    table["turnaround_time"] = np.where(ran, lasted, table["turnaround_time"])
    runs = table["execution_time"].where(table["execution_time"] > 0)
    table["stretch"] = np.where(ran, lasted / runs, table["stretch"])
    costs = [_costs(row[0]) if row else (-1, 0, 0, 0) for row in rows]
    for k, name in enumerate(("first_start_time", "stops", "occupied_time", "lost_time")):
        values = np.array([cost[k] for cost in costs], np.int64)
        table[name] = values if name == "stops" else values / MICRO
    return table


def _costs(job: "RepeatableJob") -> tuple[int, int, int, int]:
    """Return a job's first start, its stops, how long it had nodes, and how long without lasting progress."""
    started = [life for life in job.lives if life.start >= 0]
    ended = [life for life in started if life.finish >= 0]
    occupied = sum(life.finish - life.start for life in ended)
    last = ended[-1] if ended else None
    useful = last.finish - last.start - last.longer if last is not None else 0
    first = started[0].start if started else -1
    return first, len(job.lives) - 1, occupied, occupied - useful


def lives_metrics(
    prepared: Scenario, repeatable_jobs: Sequence["RepeatableJob"], numbering: "Numbering"
) -> dict[str, float | None]:
    """Return `run_action_metrics` of what became of a simulation's jobs; nothing if some have not ended."""
    place = {number: k for k, number in enumerate(prepared.jobs.number.tolist())}
    by_place = {place[numbering(job.event.job_id)]: job for job in repeatable_jobs}
    n = len(prepared.jobs)
    if len(by_place) < n or any(job.current.finish < 0 for job in repeatable_jobs):
        return {}
    lives = [by_place[k].current for k in range(n)]
    start, end, submit = (
        np.array([getattr(life, name) for life in lives], np.int64) for name in ("start", "finish", "submit")
    )
    first, stops, occupied, lost = np.array([_costs(by_place[k]) for k in range(n)], np.int64).T
    none = np.full(n, -1, np.int64)
    outcome = JobLives(first, occupied, lost, stops, *np.zeros((3, n), np.int64))
    schedule = Schedule(start, end, none, none, none, np.argsort(start), submit, lives=outcome)
    return run_action_metrics(prepared, schedule)
