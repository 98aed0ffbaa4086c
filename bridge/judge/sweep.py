"""What waits and what runs, from instant to instant, read in pieces so that memory stays small."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: A piece holds the submissions, starts and ends of about so many jobs; fewer jobs are one piece.
PIECE = 1 << 19


def sweep(
    submit: Floats,
    start: Floats,
    end: Floats,
    waiting: Sequence[NDArray[Any]],
    running: Sequence[NDArray[Any]],
) -> Iterator[tuple[Floats, list[Floats]]]:
    """Yield the steps from one submission, start or end to the next, in pieces of m steps.

    Changes of one instant are steps of length 0, in that order.

    Args:
        submit, start, end: s, [n].
        waiting, running: amounts, [n] each: what a job adds to a sum while it waits, or runs.

    Yields:
        (lengths, s [m]; each sum during them [m], those of what waits first)
    """
    events = (submit, start, end)
    orders = [np.argsort(times, kind="stable").astype(np.int32) for times in events]
    # Pieces begin where an instant does, so that no instant is split.
    begins = np.unique(np.concatenate([t[o[PIECE::PIECE]] for t, o in zip(events, orders, strict=True)]))
    cuts = [[0, *np.searchsorted(t[o], begins), len(o)] for t, o in zip(events, orders, strict=True)]
    last = np.zeros(0)
    levels = [0.0] * (len(waiting) + len(running))
    for k in range(len(begins) + 1):
        rows = [o[cut[k] : cut[k + 1]] for o, cut in zip(orders, cuts, strict=True)]
        times = np.concatenate([t[which] for t, which in zip(events, rows, strict=True)])
        order = np.argsort(times, kind="stable")
        times = times[order]
        sums = []
        for j, amount in enumerate((*waiting, *running)):
            changes = [np.zeros(len(which)) for which in rows]
            up = 0 if j < len(waiting) else 1
            changes[up] += amount[rows[up]]
            changes[up + 1] -= amount[rows[up + 1]]
            steps = np.cumsum(np.append(levels[j], np.concatenate(changes)[order]))
            levels[j] = float(steps[-1])
            sums.append(steps[1 - len(last) : -1])
        lengths = np.diff(times, prepend=last)
        last = times[-1:]
        yield lengths, sums
