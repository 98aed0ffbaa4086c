"""Compares runs with the first: differences of every metric, and which jobs start at another time."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from bridge.base.errors import BridgeError
from bridge.judge.jobs import drop_killed_attempts, plain_ids
from bridge.judge.metrics import note_without_waits
from bridge.judge.run import Run

#: Quantiles of the wait differences.
QUANTILES: tuple[float, ...] = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
#: Starts closer than this are the same, in s: what a file's rounding to 1 µs can do.
SAME = 1.5e-6


@dataclass(frozen=True)
class FirstDifference:
    job: str
    base_start: float | None
    start: float | None


@dataclass(frozen=True)
class JobDifference:
    """How the jobs of one run differ from those of the first.

    Attributes:
        common: jobs that both runs hold.
        only_base, only_here: jobs that one alone holds.
        differing_starts: common jobs that start at another time, or in one run only.
        first: the earliest of them, None if there is none.
        wait_mean, wait_quantiles: of (wait here − wait in the first run) over the common jobs that
            started in both, in s; None if there are none.
    """

    common: int
    only_base: int
    only_here: int
    examples: tuple[str, ...]
    differing_starts: int
    first: FirstDifference | None
    wait_mean: float | None
    wait_quantiles: dict[str, float] | None


@dataclass(frozen=True)
class RunComparison:
    """Several runs against the first.

    Attributes:
        names: one per run.
        oracle: per run, whether an estimator read true run times.
        metrics: key → one value per run; None where a run lacks it.
        differences: key → value − first run's value; None where one is unknown.
        jobs: one entry per run after the first.
        warnings: why the runs may not be comparable.
    """

    names: tuple[str, ...]
    oracle: tuple[bool, ...]
    metrics: dict[str, tuple[float | int | None, ...]]
    differences: dict[str, tuple[float | int | None, ...]]
    jobs: tuple[JobDifference, ...]
    warnings: tuple[str, ...]


def compare_runs(runs: Sequence[Run], names: Sequence[str] | None = None) -> RunComparison:
    """Compare every run with the first, under these names or their own.

    Jobs are matched by ``job_id``, zero-padded numbers by their value; where one id stands in several
    workloads of a run, by workload and id. Raises BridgeError: fewer than two runs, or a run that holds a job
    twice.
    """
    if len(runs) < 2:
        raise BridgeError("a comparison needs two runs or more", where=f"{len(runs)} given")
    called = tuple(names or [run.name or f"run {k + 1}" for k, run in enumerate(runs)])
    keys = list(dict.fromkeys(key for run in runs for key in run.metrics))
    metrics = {key: tuple(run.metrics.get(key) for run in runs) for key in keys}
    differences = {
        key: tuple(None if v is None or row[0] is None else v - row[0] for v in row)
        for key, row in metrics.items()
    }
    base, *others = index_by_job(runs, called)
    jobs = tuple(_jobs(base, table) for table in others)
    oracle, warnings = tuple(run.oracle for run in runs), tuple(_warnings(runs, called, jobs))
    return RunComparison(called, oracle, metrics, differences, jobs, warnings)


def trained_on_them(agent: str, jobs: int, of: int, unit: str = "jobs") -> str:
    """Return the warning of an agent that is judged on jobs that it may have learnt on."""
    learnt = f"{agent} has learnt on {jobs:,} of these {of:,} {unit}"
    return f"{learnt}: what it reaches there says little about jobs that it has not seen"


def _warnings(runs: Sequence[Run], names: Sequence[str], jobs: Sequence[JobDifference]) -> list[str]:
    base, warnings = names[0], []
    for name, run in zip(names, runs, strict=True):
        if learnt := run.config.get("trained_on"):
            warnings.append(trained_on_them(name, learnt, len(run.jobs)))
    for name, difference in zip(names[1:], jobs, strict=True):
        if difference.only_base or difference.only_here:
            warnings.append(
                f"{base} and {name} do not hold the same jobs, so their metrics are over different jobs: "
                f"{difference.common} in both, {difference.only_base} only in {base}, "
                f"{difference.only_here} only in "
                f"{name} (such as {', '.join(difference.examples)})"
            )
    for name, run in zip(names[1:], runs[1:], strict=True):
        here, there = runs[0].capacity, run.capacity
        if here != there:
            warnings.append(f"{base} and {name} ran on different machines: {here} and {there}")
        one, other = runs[0].metrics.get("bsld.threshold"), run.metrics.get("bsld.threshold")
        if one is not None and other is not None and one != other:
            warnings.append(f"{base} and {name} bound the slowdown differently: {one:g} s and {other:g} s")
    if note := note_without_waits(run.metrics.get("wait.max") for run in runs):
        warnings.append(note)
    return warnings


def names_of(paths: Sequence[Path]) -> list[str]:
    """Return the shortest tails of the paths that tell them apart; numbered where a path stands twice."""
    parts = [path.resolve().parts for path in paths]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{path} ({k})" for k, path in enumerate(paths, 1)]


def index_by_job(runs: Sequence[Run], names: Sequence[str]) -> list[pd.DataFrame]:
    """Return starts and waits by the key that jobs are matched by; BridgeError: a run holds a job twice."""
    tables = [drop_killed_attempts(run.jobs) for run in runs]
    keys = plain_ids(*map(_keys, tables))
    for ids, name in zip(keys, names, strict=True):
        if ids.has_duplicates:
            raise BridgeError(f"job {ids[ids.duplicated()][0]} stands in the run more than once", where=name)
    columns = ["starting_time", "waiting_time"]
    return [jobs[columns].set_axis(ids, axis=0) for jobs, ids in zip(tables, keys, strict=True)]


def _keys(jobs: pd.DataFrame) -> "pd.Series[str]":
    ids = jobs["job_id"].astype("str")
    return jobs["workload_name"].astype("str") + "!" + ids if ids.duplicated().any() else ids


def _jobs(base: pd.DataFrame, other: pd.DataFrame) -> JobDifference:
    common = base.index.intersection(other.index, sort=False)
    only_base, only_here = base.index.difference(common), other.index.difference(common)
    a, b = base.loc[common], other.loc[common]
    starts = np.stack([side["starting_time"].to_numpy(np.float64) for side in (a, b)])
    differ = (np.isnan(starts[0]) != np.isnan(starts[1])) | (np.abs(starts[0] - starts[1]) > SAME)
    first = None
    if differ.any():
        rows = np.flatnonzero(differ)
        row = int(rows[np.argmin(np.fmin(*starts)[rows])])
        first = FirstDifference(
            str(common[row]), *(None if np.isnan(time) else time for time in starts[:, row].tolist())
        )
    wait = (b["waiting_time"] - a["waiting_time"]).dropna().to_numpy(np.float64)
    quantiles = (
        dict(zip((f"{q:g}" for q in QUANTILES), np.quantile(wait, QUANTILES).tolist(), strict=True))
        if len(wait)
        else None
    )
    return JobDifference(
        common=len(common),
        only_base=len(only_base),
        only_here=len(only_here),
        examples=tuple(str(key) for key in (*only_base[:3], *only_here[:3])),
        differing_starts=int(differ.sum()),
        first=first,
        wait_mean=float(wait.mean()) if len(wait) else None,
        wait_quantiles=quantiles,
    )
