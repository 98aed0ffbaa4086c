"""Workloads made of another: arrivals moved, the first N, jobs drawn at random, what a loading rule keeps.

Also sets of jobs that resemble a log's, for learners. ``sampled`` ones are jobs drawn at random from it,
arriving as a Poisson process at its mean rate: the easiest to learn from. ``synthetic`` ones arrive by the
hour of the day and the day of the week as the log's jobs do, and combine the demand of one drawn job with the
length of another of similar size: what the log never showed. Source: B. Li et al., "MRSch", CLUSTER 2022,
§III-D and §V-A.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from bridge.base.arrays import Flags, Floats, Ints
from bridge.base.errors import BridgeError
from bridge.workload.select import MICRO, Jobs
from bridge.workload.statistics import offered_load
from bridge.workload.table import UNKNOWN, Workload, submitted, whole_seconds

_HOUR, _WEEK = 3600 * MICRO, 168
#: Classes of size within which lengths are exchanged.
_CLASSES = 8


def at_least_one(count: int, what: str, option: str = "") -> None:
    if count < 1:
        where = option or f"--{what}"
        raise BridgeError(f"{count} {what} were asked for", where=where, remedy="Ask for at least one.")


def require_positive(number: float, what: str, where: str, remedy: str) -> None:
    if not (np.isfinite(number) and number > 0):
        raise BridgeError(what, where=where, remedy=remedy)


def scale_arrivals(workload: Workload, factor: float) -> Workload:
    """Multiply the time between arrivals by a factor: below 1 compresses (more load), above stretches.

    The first submission stays where it is; whole seconds stay whole (rounded). Raises BridgeError: the factor
    is not a positive number, or times become too long.
    """
    require_positive(factor, f"the factor {factor} is not positive", "--scale", "Give a number > 0.")
    jobs = workload.jobs.copy()
    has_time = submitted(jobs)
    start = jobs["submit"][has_time].min()
    moved = (start + (jobs["submit"] - start) * factor).where(has_time, UNKNOWN).to_numpy(np.float64)
    jobs["submit"] = whole_seconds(moved) if jobs["submit"].dtype.kind == "i" else moved
    note = f"time between arrivals multiplied by {factor:g}"
    return replace(workload, jobs=jobs, header=add_note(workload.header, note))


def scale_to_load(workload: Workload, load: float) -> Workload:
    """Scale arrivals to an offered load (but for rounding to whole seconds); BridgeError: it has none."""
    now = offered_load(workload) or 0.0
    remedy = "It takes a positive load, a known machine size, and jobs that run and arrive over time."
    require_positive(load if now > 0 else now, "the load cannot be scaled", f"--load {load:g}", remedy)
    return scale_arrivals(workload, now / load)


def head(workload: Workload, count: int) -> Workload:
    """Keep the first records of the file. Raises BridgeError: fewer than one was asked for."""
    at_least_one(count, "records", "--first")
    jobs = workload.jobs.iloc[:count].reset_index(drop=True)
    header = add_note(workload.header, f"the first {len(jobs)} of {len(workload.jobs)} records")
    return replace(workload, jobs=jobs, header=with_records(header, len(jobs)))


def add_note(header: Mapping[str, str], text: str) -> dict[str, str]:
    return {**header, "Note": "\n".join(line for line in (header.get("Note", ""), text) if line)}


def with_records(header: Mapping[str, str], count: int) -> dict[str, str]:
    return {**header, "MaxRecords": str(count)} if "MaxRecords" in header else dict(header)


def resample(workload: Workload, jobs: int, seed: int, gap: float | None = None) -> Workload:
    """Draw a workload from a log's records; the same arguments give the same bits.

    Whole records are drawn, so sizes, run times, requests and users keep their joint distribution; bursts,
    daily cycle and users' sessions are gone. Ids count from 1; waits, preceding jobs and think times, which
    would refer to the log, are -1. `gap`: mean time between arrivals (s); the log's own if None.
    """
    at_least_one(jobs, "jobs")
    table = workload.jobs
    if gap is None:
        times = table["submit"][submitted(table)]
        gap = float(times.max() - times.min()) / max(len(times) - 1, 1)
    what = f"a mean time between arrivals of {gap:g} s is not positive"
    require_positive(gap, what, "--gap", "Give a number of seconds > 0.")
    rng = np.random.default_rng(seed)
    samples = table.iloc[rng.integers(0, len(table), jobs)].reset_index(drop=True)
    samples["job_id"] = np.arange(1, jobs + 1, dtype=np.int64)
    samples["submit"] = whole_seconds(np.floor(np.cumsum(rng.exponential(gap, jobs))))
    for name in ("wait", "preceding_job", "think_time"):
        samples[name] = np.int64(-1)
    note = f"Poisson resampling of {workload.name}: {jobs} jobs, mean gap {gap:.6g} s, seed {seed}"
    clock = {"UnixStartTime", "StartTime", "EndTime", "MaxJobs"}
    header = {label: text for label, text in workload.header.items() if label not in clock}
    return replace(
        workload,
        name=f"{workload.name}-poisson",
        jobs=samples,
        header=with_records(add_note(header, note), jobs),
        source=f"{workload.name}, resampled with seed {seed}",
        tally={},
    )


def restrict_to(workload: Workload, jobs: Jobs) -> Workload:
    """Return the workload with only the selected jobs, in their order, repaired as they were selected.

    Submission, run and requested time, processors and further demands are the selection's; all other columns
    are the log's. Nothing is left to drop or repair, so the tally is empty. Raises BridgeError: two records
    have one id, so that it is unclear which of them was selected.
    """
    rows = workload.jobs.set_index("job_id", drop=False)
    again = pd.Index(jobs.id).duplicated()
    _refuse(again, "two jobs have the same id", workload, jobs)
    table = rows[~rows.index.duplicated()].loc[jobs.id].reset_index(drop=True)
    if rows.index.has_duplicates:  # a dropped record may share its id with a kept one and stand before it
        times = np.rint(table["submit"].to_numpy(dtype=np.float64) * MICRO).astype(np.int64)
        _refuse(times != jobs.submit + jobs.origin, "two records have the same id", workload, jobs)
    for name, micro in (("submit", jobs.submit), ("run", jobs.run), ("req_time", jobs.request)):
        table[name] = micro / MICRO if (micro % MICRO).any() else micro // MICRO  # whole if all are
    for name in {"begin", "hold_until"} & {*table.columns}:  # on the log's clock
        table[name] = table[name].where(table[name] < 0, table[name] - jobs.origin / MICRO)
    table["procs"] = table["req_procs"] = jobs.demand[:, 0]
    for place, name in enumerate(jobs.resources[1:], start=1):
        table[name] = jobs.demand[:, place]
    capacity = dict(zip(jobs.resources, jobs.capacity.tolist(), strict=True))
    header = add_note(
        _later(workload.header, jobs.origin), f"{len(table)} of {len(workload.jobs)} records kept"
    )
    return replace(workload, jobs=table, capacity=capacity, header=with_records(header, len(table)), tally={})


def _later(header: Mapping[str, str], origin: int) -> dict[str, str]:
    """Return a header whose clock begins `origin` (us) later; without its time 0, if it is no number."""
    clock = header.get("UnixStartTime", "").strip()
    later = {label: text for label, text in header.items() if label != "UnixStartTime" or not origin}
    if origin and re.fullmatch(r"[0-9]{1,18}", clock):
        whole, part = divmod(int(clock) * MICRO + origin, MICRO)
        later["UnixStartTime"] = f"{whole}.{part:06}" if part else str(whole)
    return later


def _refuse(wrong: Flags, what: str, workload: Workload, jobs: Jobs) -> None:
    if wrong.any():
        where = f"{workload.where}, job {jobs.id[wrong][0]}"
        raise BridgeError(what, where=where, remedy="Renumber the jobs.")


def sample_similar(jobs: Jobs, kind: str, sets: int, length: int, rng: np.random.Generator) -> Jobs:
    """Return sets of jobs one after the other, each of which begins at its own time 0.

    `kind`: ``sampled`` or ``synthetic``, see this module's first lines. `sets`, `length`: how many, and jobs
    in each. `rng`: the only source of randomness. On a cluster, jobs keep what they ask for, but no begin
    times, holds and dependencies.
    """
    which = rng.integers(0, len(jobs), sets * length)
    sampled = jobs.take(which)
    gap = max((jobs.submit[-1] - jobs.submit[0]) / max(len(jobs) - 1, 1), 1.0)
    if kind == "synthetic":
        other = jobs.take(_alike(jobs, which, rng))
        lengths = ("run", "request", "logged_run", "logged_wait", "extra")  # extra: what is believed of them
        sampled = replace(sampled, **{name: getattr(other, name) for name in lengths})
        rates = _weekly(jobs)
        times = np.stack([_arrivals(rates, gap, length, rng) for _ in range(sets)])
    else:
        times = np.cumsum(rng.exponential(gap, (sets, length)), 1)
    submit = (times - times[:, :1]).round().astype(np.int64).reshape(-1)
    requests = None if sampled.requests is None else sampled.requests.timeless()
    return replace(sampled, id=np.arange(sets * length), submit=submit, origin=0, requests=requests)


def _alike(jobs: Jobs, which: Ints, rng: np.random.Generator) -> Ints:
    """Return for each drawn job another of its class of size, whose length it gets."""
    nodes = jobs.demand[:, 0]
    edges = np.unique(np.quantile(nodes, np.linspace(0, 1, _CLASSES + 1)[1:-1]))
    classes = np.searchsorted(edges, nodes, side="left")
    order = np.argsort(classes, kind="stable")
    begins = np.searchsorted(classes[order], np.arange(len(edges) + 2))
    of = classes[which]
    size = begins[of + 1] - begins[of]
    return np.asarray(order[begins[of] + (rng.random(len(which)) * size).astype(np.int64)], np.int64)


def _weekly(jobs: Jobs) -> Floats:
    """Return the log's rate of arrivals in each hour of its week, with mean 1; no hour is without any.

    Half a job at the mean rate is added to every hour: one that the log does not reach has the mean rate.
    """
    hours = (jobs.submit + jobs.origin) // _HOUR
    counts = np.bincount(hours % _WEEK, minlength=_WEEK)
    lasted = np.bincount(np.arange(hours[0], hours[-1] + 1) % _WEEK, minlength=_WEEK)
    rates = (counts + 0.5) / (lasted + 0.5 * lasted.sum() / len(jobs))
    return np.asarray(rates / rates.mean(), np.float64)


def _arrivals(rates: Floats, gap: float, n: int, rng: np.random.Generator) -> Floats:
    """Return `n` arrival times whose rate follows the week from a random hour on; mean distance `gap`.

    A Poisson process of rate 1 runs in a time of its own, which passes as fast as jobs arrive.
    """
    own = np.cumsum(rng.exponential(1.0, n))
    week = np.roll(rates, -int(rng.integers(_WEEK))) * _HOUR / gap
    passed = np.concatenate(([0.0], np.cumsum(np.tile(week, int(own[-1] // week.sum()) + 1))))
    return np.asarray(np.interp(own, passed, np.arange(len(passed)) * float(_HOUR)), np.float64)
