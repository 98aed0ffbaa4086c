"""Node time that is idle although a waiting job fits: what it costs to hold jobs back."""

from itertools import accumulate

import numpy as np

from bridge.base.arrays import Ints


def idle_fitting(
    submit: Ints, start: Ints, end: Ints, demand: Ints, capacity: Ints
) -> tuple[Ints, list[int]]:
    """Return moments [K], ascending, and the node time up to each that was idle while a waiting job fitted.

    A job fits where all of its resources are free, whether or not it would delay another one: EASY, too,
    holds such jobs back. Times are [n] in one unit, demands [n, R], nodes first, and capacities [R]; the
    moments are those at which anything changes.
    """
    times = np.unique(np.concatenate((submit, start, end)))
    arrives, begins, ends = (np.searchsorted(times, when) for when in (submit, start, end))
    change = np.zeros((len(times), demand.shape[1]), np.int64)
    np.add.at(change, begins, demand)
    np.add.at(change, ends, -demand)
    free = capacity - np.cumsum(change, axis=0)
    arriving, beginning = (np.argsort(when, kind="stable") for when in (arrives, begins))
    a, b, waiting = 0, 0, dict[int, None]()
    idle = [0]
    for k, length in enumerate(np.diff(times).tolist()):
        while a < len(arriving) and arrives[arriving[a]] == k:
            waiting[int(arriving[a])] = None
            a += 1
        while b < len(beginning) and begins[beginning[b]] == k:
            del waiting[int(beginning[b])]
            b += 1
        fits = bool(waiting) and (demand[list(waiting)] <= free[k]).all(axis=1).any()
        idle.append(length * int(free[k, 0]) if fits else 0)
    return times, list(accumulate(idle))


def idle_share(submit: Ints, start: Ints, end: Ints, demand: Ints, capacity: Ints) -> float:
    """Return the nodes' time that is idle while some waiting job fits, as a share of all their time.

    The share is of the time from the first submission to the last end; see `idle_fitting`.
    """
    times, idle = idle_fitting(submit, start, end, demand, capacity)
    whole = int(capacity[0]) * int(times[-1] - times[0])
    return idle[-1] / whole if whole else 0.0
