"""What SEM's page is made of: measured once, kept as Parquet."""

from collections.abc import Callable, Iterable

import pandas as pd

from bridge.fast.replay import replay
from bridge.fast.setup import Setup
from bridge.files import replacing
from bridge.scheduler.state import SECOND
from bridge.workload.catalogue import resolve
from bridge.workload.formats import read
from bridge.workload.select import Jobs
from papers import store
from papers.sem.running import Spans, cdf, covered, lost, spans

NAME = "sem-encoding"
Say = Callable[[str], None]
LOGS = {
    "Theta": "theta_2022.swf.gz",
    "Atlas": "LLNL-Atlas-2006-2.1-cln.swf.gz",
    "DataStar": "SDSC-DS-2004-2.1-cln.swf.gz",
}
#: Schedules: when jobs ran, and when they would run.
LOGGED, REPLAYED = "as logged", "FCFS + EASY"
SCHEDULES = (LOGGED, REPLAYED)
#: Running jobs that a state may show.
KS = (10, 20, 30, 40, 50, 60, 70, 80)


def kept(part: str, measure: Callable[[], pd.DataFrame], *, again: bool) -> pd.DataFrame:
    """Return a part of the data: what is there, else what is measured now, which is kept.

    Args:
        part: ``running`` or ``speed``.
        measure: makes it.
        again: measure whatever is there.
    """
    path = store.path_of(f"{NAME}-{part}")
    if path.exists() and not again:
        return pd.read_parquet(path)
    found = measure()
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as out:
        found.to_parquet(out)
    return found


def as_logged(jobs: Jobs, ks: Iterable[int]) -> Spans:
    """Return what ran when by the log; a job whose wait is not known started when it was submitted."""
    start = (jobs.submit + jobs.logged_wait.clip(min=0)) // SECOND
    return spans(start, start + jobs.logged_run // SECOND, jobs.demand[:, 0], tuple(ks))


def as_replayed(jobs: Jobs, ks: Iterable[int]) -> Spans:
    """Return what runs when under FCFS with EASY backfilling."""
    schedule = replay(Setup().prepare(jobs))
    return spans(schedule.start // SECOND, schedule.end // SECOND, jobs.demand[:, 0], tuple(ks))


def shares(found: Spans) -> pd.DataFrame:
    """Return shares by number of running jobs (``cdf``) and by K (``lost``, ``covered 90``, ``covered 95``).

    Columns: what, at (the number), share.
    """
    counts, at_most = cdf(found)
    parts = [pd.DataFrame({"what": "cdf", "at": counts, "share": at_most})]
    for what, of_k in (
        ("lost", lost(found)),
        ("covered 90", covered(found, 0.9)),
        ("covered 95", covered(found, 0.95)),
    ):
        parts.append(pd.DataFrame({"what": what, "at": found.ks, "share": of_k}))
    return pd.concat(parts, ignore_index=True)


def running(say: Say) -> pd.DataFrame:
    """Return the `shares` of every log and schedule."""
    parts = []
    for log, file in LOGS.items():
        say(f"{log}: running jobs")
        jobs = Setup().select(read(resolve(file)))
        for schedule, found in zip(SCHEDULES, (as_logged(jobs, KS), as_replayed(jobs, KS)), strict=True):
            parts.append(shares(found).assign(log=log, schedule=schedule, jobs=len(jobs)))
    return pd.concat(parts, ignore_index=True)


def pick(data: pd.DataFrame, what: str, log: str, schedule: str) -> "pd.Series[float]":
    """Return one of the `shares` of a log under a schedule, by its number."""
    mine = data[(data["what"] == what) & (data["log"] == log) & (data["schedule"] == schedule)]
    return mine.set_index("at")["share"]


def speed(say: Say) -> pd.DataFrame:
    """Return what both agents cost, a row per case, agent and round (`benchmarks.sem.Cost`)."""
    import torch

    from benchmarks.sem import ROUNDS, cases, machine_line, run

    torch.set_num_threads(1)
    found = run(cases(), ROUNDS, say)
    return found.assign(machine=machine_line())
