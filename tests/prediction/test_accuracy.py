"""Errors of predictions, computed by hand."""

import numpy as np
import pytest

from bridge.base.errors import BridgeError
from bridge.prediction.accuracy import Accuracy, Sharpness, accuracy, sharpness


def test_errors_of_lengths() -> None:
    found = accuracy([10, 20, 40, 8], [5, 20, 50, 10])
    log_error = (np.log(2) + 0 + 2 * np.log(1.25)) / 4
    assert found == Accuracy(
        4, (0.5 + 0 + 0.25 + 0.25) / 4, 0.25, (0.5 + 1 + 0.8 + 0.8) / 4, 0.25, pytest.approx(log_error), 0.0
    )
    assert accuracy([1, 1], [4, 5]).over4 == 0.5


def test_sharpness_by_hand() -> None:
    levels = [0.05, 0.5, 0.95]
    quantiles = np.exp([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    found = sharpness(np.exp([0.5, 3.0]), quantiles, levels)
    inside = (0.05 * 0.5 + 0.5 * 0.5 + 0.05 * 1.5) / 3
    outside = (0.05 * 3 + 0.5 * 2 + 0.95 * 1) / 3
    assert found == Sharpness(2, pytest.approx((inside + outside) / 2), 0.5, 0.5)


@pytest.mark.parametrize(("true", "predicted"), [([], []), ([0.0], [1.0]), ([1.0], [0.0]), ([np.nan], [1.0])])
def test_only_positive_lengths_are_compared(true: list[float], predicted: list[float]) -> None:
    with pytest.raises(BridgeError):
        accuracy(true, predicted)
