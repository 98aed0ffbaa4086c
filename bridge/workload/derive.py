"""Workloads made of another: arrivals moved, the first N, jobs drawn at random, what a loading rule keeps."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from bridge.errors import BridgeError
from bridge.workload.select import MICRO, Jobs
from bridge.workload.statistics import offered_load
from bridge.workload.table import Workload, whole_seconds


def at_least_one(count: int, what: str) -> None:
    """Refuse to make nothing.

    Raises:
        BridgeError: fewer than one; it names the option ``--what``.
    """
    if count < 1:
        raise BridgeError(f"{count} {what} were asked for", where=f"--{what}", remedy="Ask for at least one.")


def scale_arrivals(workload: Workload, factor: float) -> Workload:
    """Multiply the time between arrivals by a factor: below 1 compresses (more load), above stretches.

    The first submission stays where it is; whole seconds stay whole (rounded).

    Raises:
        BridgeError: the factor is not a positive number, or times become too long.
    """
    if not (np.isfinite(factor) and factor > 0):
        raise BridgeError(
            f"the factor {factor} is not positive", where="--scale", remedy="Give a number > 0."
        )
    jobs = workload.jobs.copy()
    start = jobs["submit"].min()
    moved = (start + (jobs["submit"] - start) * factor).to_numpy(np.float64)
    jobs["submit"] = whole_seconds(moved) if jobs["submit"].dtype.kind == "i" else moved
    return replace(
        workload,
        jobs=jobs,
        header=noted(workload.header, f"time between arrivals multiplied by {factor:g}"),
    )


def scale_to_load(workload: Workload, load: float) -> Workload:
    """Scale arrivals so that the offered load is as given (but for rounding to whole seconds).

    Raises:
        BridgeError: the load is not positive, or the workload has none to scale.
    """
    now = offered_load(workload)
    if not now or not (np.isfinite(load) and load > 0):
        raise BridgeError(
            "the load cannot be scaled",
            where=f"--load {load:g}",
            remedy="It takes a positive load, a known machine size, and jobs that run and arrive over time.",
        )
    return scale_arrivals(workload, now / load)


def first(workload: Workload, count: int) -> Workload:
    """Keep the first records of the file.

    Raises:
        BridgeError: fewer than one was asked for.
    """
    if count < 1:
        raise BridgeError(f"{count} records were asked for", where="--first", remedy="Ask for at least one.")
    jobs = workload.jobs.iloc[:count].reset_index(drop=True)
    header = noted(workload.header, f"the first {len(jobs)} of {len(workload.jobs)} records")
    return replace(workload, jobs=jobs, header=with_records(header, len(jobs)))


def noted(header: Mapping[str, str], text: str) -> dict[str, str]:
    """Return the header with one more note."""
    return {**header, "Note": "\n".join(line for line in (header.get("Note", ""), text) if line)}


def with_records(header: Mapping[str, str], count: int) -> dict[str, str]:
    """Return the header with its count of records set, if it has one."""
    return {**header, "MaxRecords": str(count)} if "MaxRecords" in header else dict(header)


def resample(workload: Workload, jobs: int, seed: int, gap: float | None = None) -> Workload:
    """Draw a workload from a log's records; the same arguments give the same bits.

    Whole records are drawn, so sizes, run times, requests and users keep their joint distribution;
    bursts, daily cycle and users' sessions are gone. Ids count from 1; waits, preceding jobs and think
    times, which would refer to the log, are -1.

    Args:
        workload: the log.
        jobs: how many to draw.
        seed: of the one random generator.
        gap: mean time between arrivals (s); the log's own if None.

    Raises:
        BridgeError: fewer than one job, a gap that is not positive, or a log without a time span.
    """
    at_least_one(jobs, "jobs")
    table = workload.jobs
    if gap is None:
        span = float(table["submit"].max() - table["submit"].min())
        gap = span / (len(table) - 1) if len(table) > 1 else 0.0
    if not (np.isfinite(gap) and gap > 0):
        raise BridgeError(
            f"a mean time between arrivals of {gap:g} s is not positive",
            where="--gap",
            remedy="Give a number of seconds > 0.",
        )
    rng = np.random.default_rng(seed)
    drawn = table.iloc[rng.integers(0, len(table), jobs)].reset_index(drop=True)
    drawn["job_id"] = np.arange(1, jobs + 1, dtype=np.int64)
    drawn["submit"] = whole_seconds(np.floor(np.cumsum(rng.exponential(gap, jobs))))
    for name in ("wait", "preceding_job", "think_time"):
        drawn[name] = np.int64(-1)
    note = f"Poisson resampling of {workload.name}: {jobs} jobs, mean gap {gap:.6g} s, seed {seed}"
    clock = {"UnixStartTime", "StartTime", "EndTime", "MaxJobs"}
    header = {label: text for label, text in workload.header.items() if label not in clock}
    return replace(
        workload,
        name=f"{workload.name}-poisson",
        jobs=drawn,
        header=with_records(noted(header, note), jobs),
        source=f"{workload.name}, resampled with seed {seed}",
        tally={},
    )


def keep(workload: Workload, jobs: Jobs) -> Workload:
    """Return the workload with only the selected jobs, in their order, repaired as they were selected.

    Submission, run and requested time, processors and further demands are the selection's; all other
    columns are the log's. Nothing is left to drop or repair, so the tally is empty.

    Args:
        workload: the records.
        jobs: `select`'s choice among them.

    Raises:
        BridgeError: two selected records have one id, so that it is unclear which is which.
    """
    rows = workload.jobs.set_index("job_id", drop=False)
    again = pd.Index(jobs.id)
    if not again.is_unique:
        raise BridgeError(
            "two jobs have the same id",
            where=f"{workload.where}, job {again[again.duplicated()][0]}",
            remedy="Renumber the jobs.",
        )
    table = rows[~rows.index.duplicated()].loc[jobs.id].reset_index(drop=True)
    if rows.index.has_duplicates:
        _check_same(table, jobs, workload)
    table["submit"] = _seconds(jobs.submit)
    table["run"] = _seconds(jobs.run)
    table["req_time"] = _seconds(jobs.request)
    table["procs"] = table["req_procs"] = jobs.demand[:, 0]
    for place, name in enumerate(jobs.resources[1:], start=1):
        table[name] = jobs.demand[:, place]
    capacity = dict(zip(jobs.resources, jobs.capacity.tolist(), strict=True))
    header = with_records(
        noted(workload.header, f"{len(table)} of {len(workload.jobs)} records kept"), len(table)
    )
    return replace(workload, jobs=table, capacity=capacity, header=header, tally={})


def _check_same(table: pd.DataFrame, jobs: Jobs, workload: Workload) -> None:
    """Refuse if a dropped record shares its id with a kept one and stands before it."""
    submitted = np.rint(table["submit"].to_numpy(dtype=np.float64) * MICRO).astype(np.int64)
    wrong = submitted != jobs.submit + jobs.origin
    if wrong.any():
        raise BridgeError(
            "two records have the same id",
            where=f"{workload.where}, job {jobs.id[wrong][0]}",
            remedy="Renumber the jobs.",
        )


def _seconds(micro: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
    """Return seconds, whole numbers if all are whole."""
    return micro // MICRO if not (micro % MICRO).any() else micro / MICRO
