"""How many jobs run at once, and how much of the machine the K largest of them leave out (SEM, §III)."""

import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bridge.base.arrays import Floats, Ints
from bridge.scheduler.state import SECOND
from bridge.workload.select import Jobs
from bridge.worlds.fast.replay import replay
from bridge.worlds.fast.scheduler_config import SchedulerConfig
from papers.logs import log


@dataclass(frozen=True)
class Spans:
    """The time from the first start to the last end, cut wherever a job starts or ends: S spans.

    Attributes:
        ks: the numbers K of running jobs that a state may show.
        seconds: [S] their lengths.
        jobs: [S] running jobs.
        nodes: [S] nodes that they hold.
        left_out: [S, len(ks)] nodes of the jobs that are not among the K largest.
    """

    ks: tuple[int, ...]
    seconds: Floats
    jobs: Ints
    nodes: Ints
    left_out: Ints


def spans(start: Ints, end: Ints, nodes: Ints, ks: Sequence[int]) -> Spans:
    """Return what runs when, of [n] starts, ends in s; who ends as another begins does not run beside it."""
    times = np.concatenate((start, end))
    changes = np.concatenate((nodes, -nodes))
    order = np.lexsort((changes, times))
    instants = times[order].tolist()
    running: list[int] = []  # sizes, ascending
    rows: list[tuple[int, ...]] = []
    for k, change in enumerate(changes[order].tolist()):
        if change > 0:
            bisect.insort(running, change)
        else:
            del running[bisect.bisect_left(running, -change)]
        if k + 1 < len(instants) and instants[k + 1] > instants[k]:
            left_out = (sum(running[:-most]) for most in ks)
            rows.append((instants[k + 1] - instants[k], len(running), sum(running), *left_out))
    table = np.array(rows, np.int64).reshape(-1, 3 + len(ks))
    return Spans(tuple(ks), table[:, 0].astype(np.float64), table[:, 1], table[:, 2], table[:, 3:])


def cdf(spans: Spans) -> tuple[Ints, Floats]:
    """Return 0 … the most running jobs, and the share of the period in which at most so many run."""
    of_count = np.bincount(spans.jobs, weights=spans.seconds)
    return np.arange(len(of_count)), np.cumsum(of_count) / spans.seconds.sum()


def lost(spans: Spans) -> Floats:
    """Return for each K the share of the node-hours that belongs to jobs that are not shown (Table 3)."""
    left_out: Floats = spans.seconds @ spans.left_out / float(spans.seconds @ spans.nodes)
    return left_out


def covered(spans: Spans, share: float) -> Floats:
    """Return for each K how much of the period shows at least this share of the nodes in use (Figure 7)."""
    nodes_visible = spans.nodes[:, None] - spans.left_out
    whole = spans.seconds.sum()
    return np.asarray(spans.seconds @ (nodes_visible >= share * spans.nodes[:, None]) / whole, np.float64)


# Of the logs.

#: Page, and the beginning of its data's names.
NAME = "sem-encoding"
LOGS = ("Theta", "Atlas", "DataStar")
#: Schedules: when jobs ran, and when they would run.
LOGGED, REPLAYED = "as logged", "FCFS + EASY"
SCHEDULES = (LOGGED, REPLAYED)
#: Running jobs that a state may show.
KS = (10, 20, 30, 40, 50, 60, 70, 80)


def as_logged(jobs: Jobs, ks: Sequence[int]) -> Spans:
    """Return what ran when by the log; a job whose wait is not known started when it was submitted."""
    start = (jobs.submit + jobs.logged_wait.clip(min=0)) // SECOND
    return spans(start, start + jobs.logged_run // SECOND, jobs.demand[:, 0], ks)


def as_replayed(jobs: Jobs, ks: Sequence[int]) -> Spans:
    """Return what runs when under FCFS with EASY backfilling."""
    schedule = replay(SchedulerConfig().build_scenario(jobs))
    return spans(schedule.start // SECOND, schedule.end // SECOND, jobs.demand[:, 0], ks)


def shares(spans: Spans) -> pd.DataFrame:
    """Return shares by number of running jobs (``cdf``) and by K (``lost``, ``covered 90``, ``covered 95``).

    Columns: what, at (the number), share.
    """
    counts, at_most = cdf(spans)
    parts = [pd.DataFrame({"what": "cdf", "at": counts, "share": at_most})]
    by_k = {"lost": lost(spans), "covered 90": covered(spans, 0.9), "covered 95": covered(spans, 0.95)}
    parts += [pd.DataFrame({"what": what, "at": spans.ks, "share": of_k}) for what, of_k in by_k.items()]
    return pd.concat(parts, ignore_index=True)


def running(say: Callable[[str], None]) -> pd.DataFrame:
    """Return the `shares` of every log and schedule."""
    parts = []
    for name in LOGS:
        say(f"{name}: running jobs")
        jobs = SchedulerConfig().select(log(name))
        for schedule, spans in zip(SCHEDULES, (as_logged(jobs, KS), as_replayed(jobs, KS)), strict=True):
            parts.append(shares(spans).assign(log=name, schedule=schedule, jobs=len(jobs)))
    return pd.concat(parts, ignore_index=True)


def pick(data: pd.DataFrame, what: str, log: str, schedule: str) -> "pd.Series[float]":
    """Return one of the `shares` of a log under a schedule, by its number."""
    mine = data[(data["what"] == what) & (data["log"] == log) & (data["schedule"] == schedule)]
    return mine.set_index("at")["share"]
