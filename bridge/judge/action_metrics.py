"""What an action wins and what it costs: metrics of a schedule that rules which stop jobs cannot game.

Waits and slowdowns run to the end of the last life: wait = end − submit − run. Seconds, node-seconds.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from bridge.base.arrays import Floats, Ints
from bridge.judge.metrics import bounded_slowdown, size_class
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import Schedule

#: Threshold of the bounded slowdown under which short jobs weigh little, and the length of long jobs. s.
LONG_THRESHOLD, LONG_JOB = 600.0, 3600.0
#: Users with fewer jobs of a sequence do not count as the worst one.
FEWEST_JOBS = 5
#: Metrics, and what tables call them.
ACTION_METRICS: Mapping[str, str] = {
    "bsld": "bsld",
    "bsld.600": "bsld, τ = 600 s",
    "slowdown.long": "slowdown, jobs above 1 h",
    "wait": "wait, s",
    "wait.area": "area-weighted wait, s",
    "wait.max": "largest wait, s",
    "bsld.user.max": "worst user, bsld",
    "bsld.size.max": "worst size class, bsld",
    "utilisation.useful": "useful utilisation",
    "waste": "waste, %",
    "lost": "lost node-h",
    "preemptions": "preemptions a job",
}
#: Of these, what `bridge.judge.sequences.compute_sequence_metric` does not know.
ACTION_ONLY = tuple(name for name in ACTION_METRICS if name not in ("bsld", "wait", "wait.max"))


def compute_action_metrics(prepared: Scenario, schedule: Schedule, first: int) -> dict[str, float]:
    """Return `ACTION_METRICS` of a schedule, by its outcome and its first job in the workload.

    ``waste``: node-time that was occupied beyond the useful one, in % of the useful one; ``lost``: node-hours
    of lives cut short without progress that was kept, and of costs; ``preemptions``: stops and suspensions.
    NaN where there is no such job.
    """
    part = slice(first, first + len(schedule.start))
    jobs = prepared.jobs
    run, nodes = jobs.run[part] / 1e6, jobs.demand[part, 0].astype(np.float64)
    wait = (schedule.end - schedule.submit) / 1e6 - run
    bsld, area = bounded_slowdown(wait, run), nodes * run
    is_long = run > LONG_JOB
    useful, span = float(area.sum()), float(schedule.end.max() - schedule.submit.min()) / 1e6
    occupied, lost, stops = run, np.zeros(1), np.zeros(1)
    if (lives := schedule.lives) is not None:
        occupied, lost = lives.occupied / 1e6, nodes * lives.lost / 1e6
        stops = (lives.stops + lives.suspensions).astype(np.float64)
    return {
        "bsld": float(bsld.mean()),
        "bsld.600": float(bounded_slowdown(wait, run, LONG_THRESHOLD).mean()),
        "slowdown.long": float((1 + wait[is_long] / run[is_long]).mean()) if is_long.any() else np.nan,
        "wait": float(wait.mean()),
        "wait.area": float(wait @ area) / useful if useful else np.nan,
        "wait.max": float(wait.max()),
        "bsld.user.max": _worst(jobs.user[part], bsld, FEWEST_JOBS),
        "bsld.size.max": _worst(size_class(nodes), bsld, 1),
        "utilisation.useful": useful / (float(jobs.capacity[0]) * span) if span else np.nan,
        "waste": 100 * (float(nodes @ occupied) / useful - 1) if useful else np.nan,
        "lost": float(lost.sum()) / 3600,
        "preemptions": float(stops.sum()) / len(run),
    }


def _worst(group: Ints, values: Floats, fewest: int) -> float:
    """Return the largest mean of a group with so many members; NaN if there is none. Below 0: unknown."""
    group, values = group[group >= 0], values[group >= 0]
    if len(group) == 0:
        return float(np.nan)
    _, dense = np.unique(group, return_inverse=True)
    counts = np.bincount(dense)
    means = np.bincount(dense, values) / counts
    return float(means[counts >= fewest].max(initial=-np.inf)) if (counts >= fewest).any() else float(np.nan)


def mean_of(rows: Sequence[Mapping[str, float]]) -> dict[str, float | None]:
    """Return each metric's mean over the sequences where it is defined; None: there is none."""
    table = np.array([[row[name] for name in ACTION_METRICS] for row in rows], np.float64)
    defined = np.isfinite(table)
    sums = np.where(defined, table, 0.0).sum(axis=0)
    means = np.divide(
        sums, defined.sum(axis=0), out=np.full(table.shape[1], np.nan), where=defined.any(axis=0)
    )
    return {
        name: value if np.isfinite(value) else None
        for name, value in zip(ACTION_METRICS, means.tolist(), strict=True)
    }


def run_action_metrics(prepared: Scenario, schedule: Schedule) -> dict[str, float | None]:
    """Return what replaces and joins the metrics of a run whose jobs had several lives.

    ``action.NAME``: see `compute_action_metrics`. Utilisation counts all that was occupied; of what depends
    on all lives' times, the queue and the loss of capacity, nothing is said.
    """
    assert schedule.lives is not None
    jobs = prepared.jobs
    span = float(schedule.end.max() - schedule.submit.min())
    values: dict[str, float | None] = dict.fromkeys(
        [
            *("loss_of_capacity", "loss_of_capacity.demand"),
            *(f"queue.{kind}.{of}" for kind in ("jobs", "nodes") for of in ("mean", "max")),
        ]
    )
    for r, resource in enumerate(jobs.resources):
        occupied = float(jobs.demand[:, r] @ schedule.lives.occupied.astype(np.float64))
        amount = float(jobs.capacity[r]) * span
        values[f"utilisation.{resource}"] = occupied / amount if amount > 0 else None
        values[f"utilisation.{resource}.trimmed"] = None
    means = mean_of([compute_action_metrics(prepared, schedule, 0)])
    return values | {f"action.{name}": value for name, value in means.items()}
