"""Judging by sequences: one value per sequence, its mean with an interval, paired differences."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bridge.errors import BridgeError
from bridge.judge.metrics import bounded_slowdown, slowdown
from bridge.judge.stats import Estimate, Judgement, mean_ci, paired_difference, verdict, window_bootstrap

if TYPE_CHECKING:
    from bridge.fast.episode import Prepared
    from bridge.fast.replay import Schedule

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
#: Plays sequences: (prepared, starts, length, progress) → schedules.
Play = Callable[["Prepared", Ints, int, Callable[[int], None] | None], "list[Schedule]"]


@dataclass(frozen=True)
class Judged:
    """A policy's mean, and its difference to the base (policy − base; None for the base itself).

    Attributes:
        dependent: sequences share jobs, so that the intervals are block bootstraps.
        verdict: for metrics where lower is better.
        verdict_higher: for metrics where higher is better.
    """

    mean: Estimate
    difference: Estimate | None
    dependent: bool
    verdict: str
    verdict_higher: str


def value_of(prepared: "Prepared", schedule: "Schedule", first: int, metric: str) -> float:
    """Return a sequence's metric.

    Args:
        prepared: the workload the sequence is taken from.
        schedule: the sequence's outcome.
        first: its first job.
        metric: ``bsld``, ``slowdown``, ``wait``, ``turnaround`` (means, s), ``bsld.max``, ``wait.max``, or
            ``utilisation`` (node-time used, first submit to last end), ``utilisation.NAME`` of a resource.

    Raises:
        BridgeError: unknown metric, or it is not defined because no job of the sequence takes any time.
    """
    part = slice(first, first + len(schedule.start))
    submit, run = prepared.jobs.submit[part], prepared.jobs.run[part] / 1e6
    wait = (schedule.start - submit) / 1e6
    what, _, resource = metric.partition(".") if metric.startswith("utilisation.") else (metric, "", "nodes")
    match what:
        case "bsld":
            return float(bounded_slowdown(wait, run).mean())
        case "bsld.max":
            return float(bounded_slowdown(wait, run).max())
        case "slowdown" if run.any():
            return float(np.nanmean(slowdown(wait, run)))
        case "wait":
            return float(wait.mean())
        case "wait.max":
            return float(wait.max())
        case "turnaround":
            return float((wait + run).mean())
        case "utilisation" if run.any():
            if resource not in prepared.jobs.resources:
                raise BridgeError(
                    f"there is no {resource!r}",
                    where=prepared.jobs.name,
                    remedy=f"Resources: {', '.join(prepared.jobs.resources)}.",
                )
            r = prepared.jobs.resources.index(resource)
            span = (schedule.end.max() - submit.min()) / 1e6
            return float((prepared.jobs.demand[part, r] * run).sum() / (prepared.jobs.capacity[r] * span))
        case "slowdown" | "utilisation":
            raise BridgeError(
                f"{metric} is not defined: all jobs ran for 0 s",
                where=f"the sequence of {len(run)} jobs that begins with job {prepared.jobs.id[first]}",
                remedy="Use --metric bsld, or longer sequences.",
            )
    raise BridgeError("unknown metric", where=repr(metric))


def values_of(
    prepared: "Prepared",
    starts: Ints,
    length: int,
    metric: str,
    progress: Callable[[int], None] | None = None,
    play: "Play | None" = None,
) -> Floats:
    """Replay every sequence and return its metric, [sequences].

    Args:
        prepared: jobs, beliefs and policy.
        starts: [sequences] first jobs.
        length: jobs a sequence.
        metric: see `value_of`.
        progress: called with the number of finished sequences.
        play: replays them where an agent decides; else the built-in rules do.
    """
    from bridge.fast.replay import replay_sequences

    schedules = (play or replay_sequences)(prepared, starts, length, progress)
    return np.array([value_of(prepared, s, int(f), metric) for f, s in zip(starts, schedules, strict=True)])


def judge(values: Floats, base: Floats | None, starts: Ints, length: int) -> Judged:
    """Return a policy's mean and its paired difference to a base, each with a 95 % interval.

    Sequences that overlap are not independent: then the interval is a moving-block bootstrap over them in
    the order of the log; else Student's t. Where all overlap each other no interval is given.

    Args:
        values, base: [sequences], the same sequences.
        starts: [sequences] first jobs.
        length: jobs a sequence.
    """
    ordered = np.sort(starts)
    dependent = bool(len(starts) > 1 and np.any(np.diff(ordered) < length))

    def interval(x: Floats, other: Floats | None) -> Estimate:
        if not dependent:
            return mean_ci(x) if other is None else paired_difference(x, other)
        try:
            return window_bootstrap(x, starts, length, base=other)
        except BridgeError:
            mean = float((x if other is None else x - other).mean())
            return Estimate(mean, float("nan"), float("nan"), len(x))

    difference = None if base is None else interval(values, base)
    return Judged(
        mean=interval(values, None),
        difference=difference,
        dependent=dependent,
        verdict=_said(difference, 1.0),
        verdict_higher=_said(difference, -1.0),
    )


def _said(difference: Estimate | None, sign: float) -> str:
    if difference is None:
        return ""
    if np.isnan(difference.low):
        return "too few separate sequences to tell"
    low, high = sorted((sign * difference.low, sign * difference.high))
    said: Judgement = verdict(Estimate(sign * difference.mean, low, high, difference.n))
    return said
