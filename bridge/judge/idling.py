"""Node time that is idle while a waiting job would fit: the price of a schedule that holds jobs back."""

import numpy as np

from bridge.arrays import Ints


def idle_while_fitting(submit: Ints, start: Ints, end: Ints, demand: Ints, capacity: Ints) -> float:
    """Return the nodes' time that is idle while some waiting job fits, as a share of all their time.

    A job fits where all of its resources are free, whether or not it would delay another one: EASY, too,
    holds such jobs back. The share is of the time from the first submission to the last end.

    Args:
        submit, start, end: [n] of the jobs, in one unit of time.
        demand: [n, R] what they hold; nodes come first.
        capacity: [R] of the machine.
    """
    times = np.unique(np.concatenate((submit, start, end)))
    arrives, begins, ends = (np.searchsorted(times, when) for when in (submit, start, end))
    change = np.zeros((len(times), demand.shape[1]), np.int64)
    np.add.at(change, begins, demand)
    np.add.at(change, ends, -demand)
    free = capacity - np.cumsum(change, axis=0)[:-1]
    arriving, beginning = (np.argsort(when, kind="stable") for when in (arrives, begins))
    a, b, idle, waiting = 0, 0, 0, dict[int, None]()
    for k, length in enumerate(np.diff(times).tolist()):
        while a < len(arriving) and arrives[arriving[a]] == k:
            waiting[int(arriving[a])] = None
            a += 1
        while b < len(beginning) and begins[beginning[b]] == k:
            del waiting[int(beginning[b])]
            b += 1
        if waiting and (demand[list(waiting)] <= free[k]).all(axis=1).any():
            idle += length * int(free[k, 0])
    whole = int(capacity[0]) * int(times[-1] - times[0])
    return idle / whole if whole else 0.0
