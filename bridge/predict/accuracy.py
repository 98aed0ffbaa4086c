"""How good predictions are: errors of what was believed at submission, and while jobs ran."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bridge.errors import BridgeError

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DECILES = 10


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


@dataclass(frozen=True)
class RunningAccuracy:
    """How well total lengths were predicted while jobs ran.

    Attributes:
        deciles: [10] mean absolute percentage error when 0, 10, … 90 % of a job has run, as a fraction.
        overall: the same over all steps: the mean over jobs of each job's mean.
    """

    deciles: Floats
    overall: float


def running_accuracy(
    length: npt.ArrayLike, totals: npt.ArrayLike, steps: Ints | None = None
) -> RunningAccuracy:
    """Compare predictions made while jobs ran with the truth (RLSchert, Section 4.2, Figure 6).

    At a decile counts what was believed after the last whole step that lies within that part of the run, so
    that jobs of fewer than ten steps count everywhere.

    Args:
        length: [n] true lengths, steps.
        totals: [n, W] total lengths believed after 0, 1, … steps.
        steps: [n] how many of these were made while the job ran; without it, one before each step of it.

    Raises:
        BridgeError: no job, a job longer than its series, or a length below one step.
    """
    length, totals = np.asarray(length, np.float64), np.asarray(totals, np.float64)
    whole = np.trunc(length).astype(np.int64)
    steps = whole if steps is None else steps
    if (
        len(length) == 0
        or length.min() < 1
        or steps.min() < 1
        or max(whole.max(), steps.max()) > totals.shape[1]
    ):
        raise BridgeError("running jobs must have 1 … as many steps as their series of predictions")
    errors = np.abs(totals - length[:, None]) / length[:, None]
    after = np.arange(DECILES) * whole[:, None] // DECILES
    seen = np.arange(totals.shape[1]) < steps[:, None]
    return RunningAccuracy(
        np.take_along_axis(errors, after, axis=1).mean(axis=0),
        float((np.where(seen, errors, 0.0).sum(axis=1) / steps).mean()),
    )
