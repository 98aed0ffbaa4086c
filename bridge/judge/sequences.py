"""Judging by sequences: which ones a protocol draws, a value of each, intervals, paired differences."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from bridge.base.arrays import Flags, Floats, Ints
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.base.progress import ProgressCallback, ignore_progress
from bridge.judge.idle import idle_share
from bridge.judge.metrics import bounded_slowdown, slowdown
from bridge.judge.stats import ConfidenceInterval, verdict, window_bootstrap
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import Schedule, replay_sequences

#: Plays sequences: (prepared, starts, length, progress) → schedules.
Play = Callable[["Scenario", Ints, int, ProgressCallback], "list[Schedule]"]


@dataclass(frozen=True)
class PairedResult:
    """A policy's mean, and its difference to the base (policy − base) with the verdict on it."""

    mean: ConfidenceInterval
    difference: ConfidenceInterval | None
    verdict: str


def compute_sequence_metric(prepared: Scenario, schedule: Schedule, first: int, metric: str) -> float:
    """Return the metric of a sequence, by its outcome and its first job in the workload.

    ``bsld``, ``slowdown``, ``wait``, ``turnaround`` (means, s), ``bsld.max``, ``wait.max``, ``wait.small``,
    ``wait.large`` (see `_by_size`), ``idle.fitting`` (node-time idle while a waiting job fits, see
    `idle_share`), or ``utilisation`` (node-time used, first submit to last end), ``utilisation.NAME`` of a
    resource. Raises BridgeError: unknown metric, or it is not defined because no job of the sequence takes
    any time.
    """
    part = slice(first, first + len(schedule.start))
    submit, run = schedule.submit, prepared.jobs.run[part] / 1e6
    wait = _waits(schedule, submit, run)
    turnaround = wait + run
    if schedule.eligible is not None:  # on a cluster: those that started; they wait since they are eligible
        has_started = schedule.start >= 0
        if not has_started.all():
            return _of_some(prepared, schedule, first, metric, has_started)
        wait = _waits(schedule, schedule.eligible, run)
    what, _, resource = metric.partition(".") if metric.startswith("utilisation.") else (metric, "", "nodes")
    match what:
        case "bsld" | "bsld.max":
            values = bounded_slowdown(wait, run)
            return float(values.max() if what == "bsld.max" else values.mean())
        case "slowdown" if run.any():
            return float(np.nanmean(slowdown(wait, run)))
        case "wait" | "wait.max":
            return float(wait.max() if what == "wait.max" else wait.mean())
        case "wait.small" | "wait.large":
            return float(wait[_by_size(prepared.jobs.demand[part, 0], what)].mean())
        case "turnaround":
            return float(turnaround.mean())
        case "idle.fitting" if prepared.cluster is not None:
            raise BridgeError(
                f"{metric} is defined for one pool of nodes only",
                where=f"cluster {prepared.cluster.cluster.name!r}",
                remedy="Compare by bsld, wait or utilisation, or leave out --cluster.",
            )
        case "idle.fitting" if schedule.lives is not None:
            raise BridgeError(
                f"{metric} is defined for jobs with one life only",
                where=f"action {prepared.compiled.policy.action!r}",
                remedy="Compare by bsld, wait or utilisation, or leave out the action.",
            )
        case "idle.fitting":
            jobs = prepared.jobs
            return idle_share(submit, schedule.start, schedule.end, jobs.demand[part], jobs.capacity)
        case "utilisation" if run.any():
            if resource not in prepared.jobs.resources:
                resources_text = f"Resources: {', '.join(prepared.jobs.resources)}."
                raise BridgeError(
                    f"there is no {resource!r}", where=prepared.jobs.name, remedy=resources_text
                )
            r = prepared.jobs.resources.index(resource)
            span = (schedule.end.max() - submit.min()) / 1e6
            return float((prepared.jobs.demand[part, r] * run).sum() / (prepared.jobs.capacity[r] * span))
        case "slowdown" | "utilisation":
            raise BridgeError(
                f"{metric} is not defined: all jobs ran for 0 s",
                where=(
                    f"the sequence of {counted(len(run), 'job')} that begins with job "
                    f"{prepared.jobs.id[first]}"
                ),
                remedy="Compare by bsld, or use longer sequences.",
            )
    raise BridgeError("unknown metric", where=repr(metric))


def _by_size(nodes: Ints, metric: str) -> Flags:
    """Return which jobs are the large ones, or the small ones, of those that request so many nodes.

    Large: at least as many as the upper quartile; small: at most as many as the lower one. Both may be the
    same jobs where sizes hardly differ.
    """
    low, high = np.quantile(nodes, (0.25, 0.75))
    which: Flags = nodes >= high if metric == "wait.large" else nodes <= low
    return which


def _waits(schedule: Schedule, since: Ints, run: Floats) -> Floats:
    """Return for how long jobs wait [n], s; of several lives: all the time until the end but the run."""
    if schedule.lives is not None:
        return (schedule.end - since) / 1e6 - run
    return (schedule.start - since) / 1e6


def _of_some(prepared: Scenario, schedule: Schedule, first: int, metric: str, which: Flags) -> float:
    """Return the metric of the jobs of a sequence that started; BridgeError: none has."""
    last = first + len(which)
    if not which.any():
        raise BridgeError(
            f"{metric} is not defined: no job started",
            where=(
                f"the sequence of {counted(len(which), 'job')} that begins with job {prepared.jobs.id[first]}"
            ),
            remedy="See why in `bridge replay`: the column reason of its jobs.",
        )
    columns = ("start", "end", "how", "past", "reserved", "serial", "submit", "eligible")
    some = replace(schedule, **{name: getattr(schedule, name)[which] for name in columns})
    jobs = prepared.jobs.take(np.arange(first, last)[which])
    return compute_sequence_metric(replace(prepared, jobs=jobs), some, 0, metric)


def values_of(
    prepared: Scenario,
    starts: Ints,
    length: int,
    metric: str,
    progress: ProgressCallback = ignore_progress,
    play: Play | None = None,
    note: Callable[[Scenario, "Schedule", int], None] | None = None,
) -> Floats:
    """Replay every sequence and return its metric, [sequences]; see `compute_sequence_metric`.

    `starts`, `length`: [sequences] first jobs; jobs a sequence. `progress` is called with the number of
    finished ones. `play` replays them where an agent decides; else the built-in rules do. `note` is called
    with each schedule and its first job.
    """
    schedules = (play or replay_sequences)(prepared, starts, length, progress)
    if note is not None:
        for first, schedule in zip(starts, schedules, strict=True):
            note(prepared, schedule, int(first))
    return np.array(
        [compute_sequence_metric(prepared, s, int(f), metric) for f, s in zip(starts, schedules, strict=True)]
    )


def compare_to_base(
    values: Floats, base: Floats | None, starts: Ints, length: int, *, higher: bool = False
) -> PairedResult:
    """Return a policy's mean and its paired difference to a base, each with a 95 % interval.

    Sequences that overlap are not independent: intervals are over blocks of them in the order of the log, and
    there is none where there are too few (`bridge.judge.stats.window_bootstrap`). `values`, `base` and first
    jobs `starts`: [sequences]. `higher`: a higher value is the better one.
    """
    mean = window_bootstrap(values, starts, length)
    if base is None:
        return PairedResult(mean, None, "")
    difference = window_bootstrap(values, starts, length, base=base)
    return PairedResult(mean, difference, verdict(-difference if higher else difference))


# Which sequences are drawn.


def gym_random_state(seed: int) -> np.random.RandomState:
    """Return the generator of gym ≤ 0.21's ``np_random(seed)``.

    The seed is hashed (SHA-512 of its decimal text, first 8 bytes, little endian) and handed to the legacy
    generator as 32-bit words, low word first.
    """
    words = np.frombuffer(hashlib.sha512(str(seed).encode()).digest()[:8], "<u4")
    return np.random.RandomState(np.trim_zeros(words, "b"))


@dataclass(frozen=True)
class Sampler:
    """How starts are drawn: generator, and the bounds of `randint(low, high)`.

    Attributes:
        generator: ``default`` (NumPy's default generator), ``legacy`` (RandomState(seed)) or ``gym``.
        skip_first: the first L jobs are never drawn, and one more job is left at the end.
        last: the last start can be drawn (only without `skip_first`).
        sequences, length, seed: the paper's own protocol.
    """

    generator: Literal["default", "legacy", "gym"]
    skip_first: bool
    sequences: int
    length: int
    seed: int
    last: bool = False


SAMPLERS: Mapping[str, Sampler] = {
    "standard": Sampler("default", False, 200, 256, 1, last=True),
    "rlbackfilling": Sampler("legacy", True, 10, 1024, 1),
    "rlscheduler": Sampler("gym", True, 10, 1024, 1),
    "schedinspector": Sampler("gym", False, 50, 256, 1),
}


def sample(sampler: Sampler, size: int, sequences: int, length: int, seed: int) -> Ints:
    """Draw the first job of each test sequence of `length` jobs among `size`: [sequences], with replacement.

    BridgeError: the workload is too short.
    """
    low = length if sampler.skip_first else 0
    high = size - length - 1 if sampler.skip_first else size - length + int(sampler.last)
    if high <= low:
        remedy = f"Let the length be {size // 4} or less, or use a longer log."
        remedy = remedy if size >= 4 else "Use a longer log, or more of it."
        raise BridgeError(
            f"{counted(size, 'job is', 'jobs are')} too few for sequences of {length}", remedy=remedy
        )
    if sampler.generator == "default":
        return np.random.default_rng(seed).integers(low, high, sequences)
    rng = np.random.RandomState(seed) if sampler.generator == "legacy" else gym_random_state(seed)
    return np.array([rng.randint(low, high) for _ in range(sequences)], np.int64)
