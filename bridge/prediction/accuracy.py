"""How good predictions are: errors of what was believed at submission."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bridge.base.errors import BridgeError


@dataclass(frozen=True)
class Accuracy:
    """How well lengths were predicted.

    Attributes:
        mape: mean of \\|predicted - true\\| / true.
        median: its median; a few very short jobs do not rule it.
        overlap: mean of the shorter of both over the longer, in (0, 1], 1 = exact (Tsafrir et al. 2007).
        under: share of the jobs that were predicted shorter than they are.
        log_error: mean of \\|log(predicted / true)\\|: 0.69 is twice as long, or half as long.
        over4: share of the jobs that were predicted more than four times too long.
    """

    jobs: int
    mape: float
    median: float
    overlap: float
    under: float
    log_error: float = 0.0
    over4: float = 0.0


def accuracy(true: npt.ArrayLike, predicted: npt.ArrayLike) -> Accuracy:
    """Compare predictions with the truth, [n] of one unit, all positive (else BridgeError)."""
    true, predicted = np.asarray(true, np.float64), np.asarray(predicted, np.float64)
    if len(true) == 0 or not (np.all(true > 0) and np.all(predicted > 0)):
        raise BridgeError("predictions are compared for one or more jobs, of positive lengths")
    errors = np.abs(predicted - true) / true
    overlap = np.minimum(true, predicted) / np.maximum(true, predicted)
    return Accuracy(
        len(true), float(errors.mean()), float(np.median(errors)), float(overlap.mean()),
        float((predicted < true).mean()), float(np.abs(np.log(predicted / true)).mean()),
        float((predicted > 4 * true).mean()),
    )  # fmt: skip


@dataclass(frozen=True)
class Sharpness:
    """How good distributions are.

    Attributes:
        pinball: mean pinball loss of the logarithms over all levels, half the continuous ranked probability
            score as the levels grow dense; lower is better.
        coverage90, coverage50: share of the jobs within the central intervals.
    """

    jobs: int
    pinball: float
    coverage90: float
    coverage50: float


def sharpness(true: npt.ArrayLike, quantiles: npt.NDArray[np.float64], levels: npt.ArrayLike) -> Sharpness:
    """Compare distributions with the truth: [n] positive, [n, Q] positive and ascending, in one unit.

    `levels`: [Q] ascending, of which 0.05, 0.25, 0.75 and 0.95 lie between the first and the last.
    """
    true, levels = np.asarray(true, np.float64), np.asarray(levels, np.float64)
    if len(true) == 0 or not (np.all(true > 0) and np.all(quantiles > 0)):
        raise BridgeError("predictions are compared for one or more jobs, of positive lengths")
    logs = np.log(quantiles)
    error = np.log(true)[:, None] - logs
    loss = np.maximum(levels * error, (levels - 1) * error).mean()

    def within(low: float, high: float) -> float:
        ends = []
        for level in (low, high):
            k = min(max(int(np.searchsorted(levels, level, side="right")) - 1, 0), len(levels) - 2)
            part = (level - levels[k]) / (levels[k + 1] - levels[k])
            ends.append(np.exp(logs[:, k] + part * (logs[:, k + 1] - logs[:, k])))
        slack = 1e-9 * true  # of the logarithms and back
        return float(((ends[0] <= true + slack) & (true <= ends[1] + slack)).mean())

    return Sharpness(len(true), float(loss), within(0.05, 0.95), within(0.25, 0.75))
