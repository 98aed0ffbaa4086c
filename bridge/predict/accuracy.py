"""How good predictions are: errors of what was believed at submission."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bridge.errors import BridgeError


@dataclass(frozen=True)
class Accuracy:
    """How well lengths were predicted.

    Attributes:
        jobs: how many.
        mape: mean of \\|predicted - true\\| / true.
        median: its median; a few very short jobs do not rule it.
        overlap: mean of the shorter of both over the longer, in (0, 1], 1 = exact (Tsafrir et al. 2007).
        under: share of the jobs that were predicted shorter than they are.
    """

    jobs: int
    mape: float
    median: float
    overlap: float
    under: float


def accuracy(true: npt.ArrayLike, predicted: npt.ArrayLike) -> Accuracy:
    """Compare predictions with the truth.

    Args:
        true, predicted: [n], positive, of one unit.

    Raises:
        BridgeError: no job, or a length that is not positive.
    """
    true, predicted = np.asarray(true, np.float64), np.asarray(predicted, np.float64)
    if len(true) == 0 or not (np.all(true > 0) and np.all(predicted > 0)):
        raise BridgeError("predictions are compared for one or more jobs, of positive lengths")
    errors = np.abs(predicted - true) / true
    overlap = np.minimum(true, predicted) / np.maximum(true, predicted)
    return Accuracy(
        len(true), float(errors.mean()), float(np.median(errors)), float(overlap.mean()),
        float((predicted < true).mean()),
    )  # fmt: skip
