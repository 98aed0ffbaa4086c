"""How much jobs of a record had at one time."""

from typing import Any

import numpy as np
import numpy.typing as npt


def most_at_once(start: npt.NDArray[Any], end: npt.NDArray[Any], amount: npt.NDArray[Any]) -> int:
    """Return the most of an amount [n] in use at one time; ends come before starts, and no sum wraps around.

    A job that ends when it starts has nothing.
    """
    ran = end > start
    times = np.concatenate((end[ran], start[ran]))
    changes = np.concatenate((-amount[ran], amount[ran]))
    order = np.lexsort((changes, times))
    return int(np.cumsum(changes[order].astype(np.float64)).max(initial=0))
