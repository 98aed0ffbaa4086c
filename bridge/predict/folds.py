"""Folds: jobs without an order in time, split so that each can be predicted from the others."""

import numpy as np
import numpy.typing as npt

from bridge.errors import BridgeError

Ints = npt.NDArray[np.int64]


def folds(jobs: int, count: int = 5, seed: int = 0) -> list[Ints]:
    """Return `count` sorted lists of job numbers; each of ``0 … jobs - 1`` is in one, drawn from the seed.

    Raises:
        BridgeError: fewer than two folds, or more folds than jobs.
    """
    if not 2 <= count <= jobs:
        raise BridgeError(
            f"{jobs} jobs cannot be split into {count} folds", remedy="Use 2 … as many as jobs."
        )
    drawn = np.random.default_rng(seed).permutation(jobs)
    return [np.sort(part) for part in np.array_split(drawn, count)]
