"""Jobs that follow another one: submitted when that one has ended, and some time has passed.

SWF's fields 17 and 18, preceding job and think time: seconds from the end of the one to the submission of the
other. Where no think time is stated, the job is submitted as logged, but not before the other has ended.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bridge.base.arrays import Ints
from bridge.base.errors import BridgeError

#: No job; of a think time: not stated.
NONE = -1


def leaders(ids: npt.NDArray[Any], preceding: "pd.Series[Any]", order: Ints) -> tuple[Ints, Ints]:
    """Return whom the jobs of these rows follow, and the rows of those that follow a job that is not there.

    `ids`, `preceding`: [n] of all records. Whom: [len(order)] places in `order`, NONE = nobody.
    """
    named = preceding.to_numpy()[order]
    if ids.dtype.kind == "i" and named.dtype.kind in "iuf":
        names, stated = named, named > 0
    else:
        names = pd.Series(named).astype(str).str.removesuffix(".0").to_numpy(object)
        stated = ~np.isin(names, ("", "-1", "0", "nan", "None"))
        ids = ids.astype(str).astype(object)
    places = np.asarray(pd.Index(ids[order]).get_indexer(pd.Index(names)), np.int64)
    places[~stated] = NONE
    return places, order[stated & (places == NONE)]


def refuse_circles(follows: Ints, ids: npt.NDArray[Any], where: str) -> None:
    """Raise BridgeError where jobs wait for each other; `follows`: [n] places, NONE = nobody."""
    ahead = follows.copy()
    for _ in range(max(len(follows), 1).bit_length() + 1):  # twice as far each time
        ahead = np.where(ahead >= 0, ahead[ahead], NONE)
    inside = np.flatnonzero(ahead >= 0)
    if not len(inside):
        return
    at = int(ahead[inside[0]])  # so far ahead is in the circle
    circle = [at]
    while int(follows[circle[-1]]) != at:
        circle.append(int(follows[circle[-1]]))
    names = ", ".join(str(ids[job]) for job in circle[:5]) + (", …" if len(circle) > 5 else "")
    what = f"follows itself, by way of its preceding jobs ({names})"
    remedy = "Mend the preceding jobs of one of them, or leave out --dependencies."
    raise BridgeError(what, where=f"{where}, job {ids[at]}", remedy=remedy)
