"""What is kept of evaluations for RLSchert's figures: sums, counts, histograms."""

from typing import Any

import numpy as np

from bridge.base.arrays import Ints
from bridge.base.errors import BridgeError
from bridge.pool.evaluate import PoolEvaluation, prepare
from bridge.pool.jobset import JobSet
from bridge.pool.schedule import PoolSchedule
from papers.rlschert.usage import usage

#: Fewest waiting jobs of each class of queues.
QUEUES = (1, 6, 21)
#: Longest of the short jobs, steps: the median of the logged ones.
SHORT = 8
#: True length over believed length: a kill was right, if it is large, and wrong, if it is near 1.
WRONG, HALF_AS_LONG_AGAIN, TWICE = 1.2, 1.5, 2.0
#: Edges of the histogram of true / believed lengths, which are halves and doubles of each other.
EDGES = np.concatenate(([0.0], 2.0 ** np.arange(-2.0, 4.01, 0.5), [np.inf]))


def sums(evaluation: PoolEvaluation, _: JobSet) -> dict[str, Any]:
    """Keep sums and counts of each sequence's jobs, from which every mean can be had."""
    return {
        "jobs": np.array([len(s.id) for s in evaluation.schedules]),
        "slowdown": np.array([s.slowdown.sum() for s in evaluation.schedules]),
        "completion": np.array([s.completion.sum() for s in evaluation.schedules]),
        "kills": int(sum(s.kills.sum() for s in evaluation.schedules)),
        "lost_steps": int(sum(s.lost.sum() for s in evaluation.schedules)),
    }


def holes(evaluation: PoolEvaluation, _: JobSet) -> dict[str, Any]:
    """Keep units that idled while jobs waited, and how long jobs waited; no single job (Figure 12).

    Returns:
        ``holes``, ``steps``: [S] unit-steps that idled while a job waited, and steps in which one did;
        ``queue_holes``, ``queue_steps``: [3] the same by the number of waiting jobs (`QUEUES`);
        ``early_holes``, ``early_steps``: [S] the same as long as jobs arrive;
        ``by_step``: [T] holes of each step, summed over the sequences;
        ``waits``: [W] jobs that waited 0, 1, … steps from arrival to last start;
        ``jobs``, ``wait``, ``short_jobs``, ``short_wait``: [S] jobs and their waits, all and short ones.
    """
    used = [usage(s, evaluation.options.settings.units) for s in evaluation.schedules]
    longest = max(len(u.holes) for u in used)
    edges = [*QUEUES, np.inf]
    holes, waiting = (np.concatenate([getattr(u, name) for u in used]) for name in ("holes", "waiting"))
    short = [s.length <= SHORT for s in evaluation.schedules]
    return {
        "holes": np.array([u.holes.sum() for u in used]),
        "steps": np.array([np.count_nonzero(u.waiting) for u in used]),
        "early_holes": np.array([u.holes[: evaluation.options.steps].sum() for u in used]),
        "early_steps": np.array([np.count_nonzero(u.waiting[: evaluation.options.steps]) for u in used]),
        "queue_holes": np.histogram(waiting, edges, weights=holes)[0],
        "queue_steps": np.histogram(waiting, edges)[0],
        "by_step": np.sum([np.pad(u.holes, (0, longest - len(u.holes))) for u in used], axis=0),
        "waits": np.bincount(np.concatenate([s.wait for s in evaluation.schedules])),
        "jobs": np.array([len(s.id) for s in evaluation.schedules]),
        "wait": np.array([s.wait.sum() for s in evaluation.schedules]),
        "short_jobs": np.array([np.count_nonzero(k) for k in short]),
        "short_wait": np.array([s.wait[k].sum() for s, k in zip(evaluation.schedules, short, strict=True)]),
    }


def killed(evaluation: PoolEvaluation, jobs: JobSet) -> dict[str, Any]:
    """Keep counts and sums of killed attempts, of killed jobs, and of all jobs (Figure 13)."""
    sequences = prepare(jobs, evaluation.options)
    believed = [sequences.jobs.believed[sequences.arrivals_of(s)[1]] for s in range(len(sequences))]
    return summary(evaluation.schedules, believed)


def summary(schedules: tuple[PoolSchedule, ...], believed: list[Ints]) -> dict[str, Any]:
    """Return counts and sums over all sequences; `believed`: at submission, of each one's jobs.

    ``kills``, ``lost``: killed attempts and the steps that they had run; ``over_2``, ``over_1_5``,
    ``within_1_2``: of these, how many were of jobs longer than 2 and 1.5, and at most 1.2 times what was
    believed before they ran; ``killed_*`` and ``all_*``: of jobs that were ever killed, and of all, how
    many, and sums of true length, of what was believed at submission, units and wait (to the last start);
    ``killed_ratios``, ``all_ratios``: histograms of true
    believed length, of attempts and of jobs.
    BridgeError: more attempts were killed than are remembered.
    """
    if any(s.kills.sum() > len(s.attempts) for s in schedules):
        raise BridgeError("more attempts were killed than are remembered", where="killed jobs")
    ratio = np.concatenate([s.length[s.attempts["job"]] / s.attempts["believed"] for s in schedules])
    of_all = np.concatenate([s.length / b for s, b in zip(schedules, believed, strict=True)])
    kept: dict[str, Any] = {
        "kills": len(ratio),
        "lost": int(sum(s.lost.sum() for s in schedules)),
        "over_2": int((ratio > TWICE).sum()),
        "over_1_5": int((ratio > HALF_AS_LONG_AGAIN).sum()),
        "within_1_2": int((ratio <= WRONG).sum()),
        "killed_ratios": np.histogram(ratio, EDGES)[0],
        "all_ratios": np.histogram(of_all, EDGES)[0],
    }
    ever = np.concatenate([s.kills > 0 for s in schedules])
    columns = {
        name: np.concatenate([getattr(s, name) for s in schedules]) for name in ("length", "units", "wait")
    }
    columns["believed"] = np.concatenate(believed)
    for who, chosen in (("killed", ever), ("all", np.ones(len(ever), np.bool_))):
        kept[f"{who}_jobs"] = int(chosen.sum())
        kept |= {f"{who}_{name}": int(values[chosen].sum()) for name, values in columns.items()}
    return kept
