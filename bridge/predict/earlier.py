"""What had happened in a group of jobs before each job was submitted: how often, and to which jobs last."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bridge.predict.submissions import NEVER

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Earlier:
    """What each of n jobs could look back on in its own group.

    Attributes:
        count: [n] events so far; 0 without a group.
        last, previous: [n] jobs of the last event and of the one before it, -1 = there was none.
        total: [n] sum of the events' amounts. Whole numbers, so that it is exact: a rounding error of a
            running sum would carry traces of what came later.
    """

    count: Ints
    last: Ints
    previous: Ints
    total: Ints


def earlier(group: Ints, asked: Ints, happened: Ints, amount: Ints, *, strictly: bool = False) -> Earlier:
    """Look back from every job at the events of its group.

    Args:
        group: [n] which jobs belong together; negative = none.
        asked: [n] when each job looks back.
        happened: [n] when each job's event was, NEVER = not at all.
        amount: [n] to be summed.
        strictly: events of the same instant do not count.
    """
    n = len(group)
    counted = np.flatnonzero((group >= 0) & (happened < NEVER))
    asking = np.flatnonzero(group >= 0)
    job = np.concatenate((counted, asking))
    time = np.concatenate((happened[counted], asked[asking]))
    asks = np.repeat([False, True], [len(counted), len(asking)])
    order = np.lexsort((asks != strictly, time, group[job]))
    job, asks = job[order], asks[order]
    events = job[~asks]
    until = np.cumsum(~asks)  # events up to here, of this and all groups before
    opens = np.ones(len(job), np.bool_)
    opens[1:] = group[job][1:] != group[job][:-1]
    before = (until - ~asks)[opens][np.cumsum(opens) - 1]  # events of all groups before
    sums = np.concatenate(([0], np.cumsum(amount[events])))

    found = {name: np.zeros(n, np.int64) for name in ("count", "total")}
    found |= {name: np.full(n, -1, np.int64) for name in ("last", "previous")}
    at, until, before = job[asks], until[asks], before[asks]
    found["count"][at] = until - before
    found["total"][at] = sums[until] - sums[before]
    for name, back in (("last", 1), ("previous", 2)):
        there = until - before >= back
        found[name][at[there]] = events[until[there] - back]
    return Earlier(**found)
