"""Runs that were cut short, so that the job could run again, as jobs beside the others: killed attempts.

Job J's are ``J#1``, ``J#2``, …; the job itself has its last run. So tables, charts and checks see who had
which nodes at any time, and count every job once.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.base.arrays import Ints, Records
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.job_lives import OF_JOB, JobLives
from bridge.worlds.fast.lives import Lives

if TYPE_CHECKING:
    from bridge.worlds.fast.replay import Schedule


def with_attempts(prepared: Scenario, schedule: "Schedule") -> tuple[Scenario, "Schedule"]:
    """Return jobs and their schedule with killed attempts behind them, if there are any."""
    runs, cluster = schedule.node_lives, prepared.cluster
    if runs is None or cluster is None or not len(runs.attempts()):
        return prepared, schedule
    n, extra = len(schedule.start), runs.attempts()
    cut = runs.records[extra]
    which = np.concatenate((np.arange(n), cut.job))
    names = [str(name) for name in prepared.jobs.id.tolist()]
    names += [f"{names[row.job]}#{row.episode + 1}" for row in cut]
    jobs = replace(
        prepared.jobs,
        id=np.array(names),
        extra={name: column[which] for name, column in prepared.jobs.extra.items()},
        **{name: getattr(prepared.jobs, name)[which] for name in _OF_JOBS},
        requests=None if prepared.jobs.requests is None else prepared.jobs.requests.take(which),
        ran_on=None,
    )
    demands = replace(
        cluster.demands,
        **{
            name: getattr(cluster.demands, name)[which]
            for name in ("partition", "shape", "elsewhere", "redirected")
        },
    )
    nodes = replace(
        cluster,
        requests=cluster.requests.take(which),
        demands=demands,
        jobs=cluster.jobs[which],
        quantity=cluster.quantity[which],
        calendar=cluster.calendar
        and replace(cluster.calendar, jobs=cluster.calendar.jobs[which], places=which),
    )
    believed = replace(
        prepared.estimate,
        **{name: getattr(prepared.estimate, name)[which] for name in ("order", "waiting", "running")},
    )
    records = runs.records.copy()
    records.job[extra] = np.arange(n, n + len(extra))
    own = Lives(records, runs.nodes, runs.units, _stands_of_rows(runs, cut, n))
    expanded = _with_times(schedule, which, n, cut, own)
    expanded = replace(expanded, allocation=own.allocations(len(which), cluster.classes))
    return replace(prepared, jobs=jobs, estimate=believed, cluster=nodes), expanded


def _stands_of_rows(runs: Lives, cut: Any, n: int) -> Records:
    """Return when runs were suspended, by rows: those that were cut short are rows from `n` on."""
    rows = {(int(row.job), int(row.episode)): n + k for k, row in enumerate(cut)}
    stands: Records = runs.stands.copy()
    stands.job[:] = [rows.get((int(row.job), int(row.episode)), row.job) for row in runs.stands]
    return stands


_OF_JOBS = ("submit", "run", "request", "logged_run", "logged_wait", "demand", "user", "queue")
_OF_SCHEDULE = ("start", "end", "how", "past", "reserved", "serial", "submit", "eligible", "refused")


def _with_times(schedule: "Schedule", which: Ints, n: int, cut: Any, runs: Lives) -> "Schedule":
    """Return a schedule with runs that were cut short behind its jobs."""
    names = (*_OF_SCHEDULE, "never_at", "head_at", "ran", "since")
    columns: dict[str, Any] = {name: getattr(schedule, name)[which] for name in names}
    columns["start"][n:], columns["end"][n:], columns["serial"][n:] = cut.start, cut.end, cut.serial
    columns["since"][n:] = cut.eligible
    columns["ran"][n:] = cut.end - cut.start - cut.stood
    for name in ("past", "reserved", "head_at", "never_at"):
        columns[name][n:] = -1
    return replace(schedule, **columns, node_lives=runs, lives=_lives_of_rows(schedule.lives, n, len(cut)))


def _lives_of_rows(lives: JobLives | None, n: int, extra: int) -> JobLives | None:
    """Return what became of `n` jobs, and nothing of the runs behind them."""
    if lives is None:
        return None
    nothing = np.zeros(extra, np.int64)
    columns = {name: np.append(getattr(lives, name)[:n], nothing) for name in OF_JOB}
    columns["first_start"][n:] = -1
    return JobLives(**columns)


def cut_short(prepared: Scenario, schedule: "Schedule") -> dict[str, float]:
    """Return how many runs were cut short how, and what was lost by them, as metrics."""
    runs, cluster = schedule.node_lives, prepared.cluster
    if runs is None or cluster is None:
        return {}
    counts: dict[str, float] = {f"runs.{name}": count for name, count in runs.counts().items()}
    lost = runs.lost(cluster.classes, cluster.demands)
    return counts | {f"lost.{name[:-1]}_seconds": amount for name, amount in lost.items()}
