"""A schedule of three jobs by hand, one of which was killed once."""

import numpy as np

from bridge.pool.schedule import PoolSchedule
from bridge.pool.state import KILL


def pool_schedule() -> PoolSchedule:
    """Return three jobs on 4 units; the last ran in step 2 in vain."""
    attempts = np.array([(2, 2, 3, 1, 4)], KILL).view(np.recarray)
    return PoolSchedule(
        id=np.array([7, 8, 9]),
        submit=np.array([1, 1, 2]),
        units=np.array([3, 2, 1]),
        length=np.array([3, 2, 4]),
        start=np.array([1, 4, 5]),
        end=np.array([4, 6, 9]),
        kills=np.array([0, 0, 1]),
        lost=np.array([0, 0, 1]),
        attempts=attempts,
        n_rejected=0,
    )
