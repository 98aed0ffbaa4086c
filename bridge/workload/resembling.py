"""Sets of jobs that resemble a log's, for learners.

``sampled`` ones are jobs drawn at random from it, arriving as a Poisson process at its mean rate: the easiest
to learn from. ``synthetic`` ones arrive by the hour of the day and the day of the week as the log's jobs do,
and combine the demand of one drawn job with the length of another of similar size: what the log never showed.

Source: B. Li et al., "MRSch", CLUSTER 2022, §III-D and §V-A.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bridge.scheduler.state import SECOND
from bridge.workload.select import Jobs

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_HOUR, _WEEK = 3600, 168
#: Classes of size within which lengths are exchanged.
_CLASSES = 8


def resembling(jobs: Jobs, kind: str, sets: int, length: int, rng: np.random.Generator) -> Jobs:
    """Return sets of jobs one after the other, each of which begins at its own time 0.

    Args:
        jobs: what they resemble.
        kind: ``sampled`` or ``synthetic``, see above.
        sets, length: how many, and jobs in each.
        rng: the only source of randomness.
    """
    which = rng.integers(0, len(jobs), sets * length)
    made = jobs.take(which)
    gap = max((jobs.submit[-1] - jobs.submit[0]) / max(len(jobs) - 1, 1), 1.0)
    if kind == "synthetic":
        other = _alike(jobs, which, rng)
        made = replace(
            made,
            run=jobs.run[other],
            request=jobs.request[other],
            logged_run=jobs.logged_run[other],
            logged_wait=jobs.logged_wait[other],
            extra={name: column[other] for name, column in jobs.extra.items()},  # what is believed of lengths
        )
        rates = _weekly(jobs)
        times = np.stack([_arrivals(rates, gap, length, rng) for _ in range(sets)])
    else:
        times = np.cumsum(rng.exponential(gap, (sets, length)), 1)
    submit = (times - times[:, :1]).round().astype(np.int64).reshape(-1)
    return replace(made, id=np.arange(sets * length), submit=submit, origin=0)


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
    hours = (jobs.submit + jobs.origin) // (_HOUR * SECOND)
    counts = np.bincount(hours % _WEEK, minlength=_WEEK)
    lasted = np.bincount(np.arange(hours[0], hours[-1] + 1) % _WEEK, minlength=_WEEK)
    rates = (counts + 0.5) / (lasted + 0.5 * lasted.sum() / len(jobs))
    return np.asarray(rates / rates.mean(), np.float64)


def _arrivals(rates: Floats, gap: float, n: int, rng: np.random.Generator) -> Floats:
    """Return `n` arrival times whose rate follows the week from a random hour on; mean distance `gap`.

    A Poisson process of rate 1 runs in a time of its own, which passes as fast as jobs arrive.
    """
    own = np.cumsum(rng.exponential(1.0, n))
    hour = _HOUR * SECOND
    week = np.roll(rates, -int(rng.integers(_WEEK))) * hour / gap
    weeks = int(own[-1] // week.sum()) + 1
    passed = np.concatenate(([0.0], np.cumsum(np.tile(week, weeks))))
    return np.asarray(np.interp(own, passed, np.arange(len(passed)) * float(hour)), np.float64)
