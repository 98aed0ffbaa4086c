"""Poisson resampling: jobs drawn from a log with replacement, arriving at random at a given rate."""

from dataclasses import replace

import numpy as np

from bridge.errors import BridgeError
from bridge.workload.scale import noted, with_records
from bridge.workload.table import Workload, whole_seconds


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
    if jobs < 1:
        raise BridgeError(f"{jobs} jobs were asked for", where="--jobs", remedy="Ask for at least one.")
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
