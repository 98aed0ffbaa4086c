"""Errors of predictions, computed by hand."""

import numpy as np
import pytest

from bridge.errors import BridgeError
from bridge.predict.accuracy import Accuracy, accuracy, running_accuracy


def test_errors_of_lengths() -> None:
    found = accuracy([10, 20, 40, 8], [5, 20, 50, 10])
    assert found == Accuracy(4, (0.5 + 0 + 0.25 + 0.25) / 4, 0.25, (0.5 + 1 + 0.8 + 0.8) / 4, 0.25)


def test_errors_by_progress() -> None:
    # After k steps the first job, of 10, is believed to be 10 + k; the second, of 2, to be 4 and then 3.
    totals = [[10 + k for k in range(12)], [4, 3] + [99] * 10]
    found = running_accuracy([10, 2], totals)
    first = [k / 10 for k in range(10)]
    second = [1.0] * 5 + [0.5] * 5
    assert found.deciles.tolist() == [(a + b) / 2 for a, b in zip(first, second, strict=True)]
    assert found.overall == pytest.approx((0.45 + 0.75) / 2)


def test_series_may_be_longer_than_whole_steps() -> None:
    found = running_accuracy([2.5], [[5.0, 2.5, 3.0]], np.array([3]))
    assert found.deciles.tolist() == [1.0] * 5 + [0.0] * 5
    assert found.overall == pytest.approx((1.0 + 0.0 + 0.2) / 3)


@pytest.mark.parametrize(("true", "predicted"), [([], []), ([0.0], [1.0]), ([1.0], [0.0]), ([np.nan], [1.0])])
def test_only_positive_lengths_are_compared(true: list[float], predicted: list[float]) -> None:
    with pytest.raises(BridgeError):
        accuracy(true, predicted)


@pytest.mark.parametrize("length", [[0.5], [3.0]])
def test_series_must_be_as_long_as_the_jobs(length: list[float]) -> None:
    with pytest.raises(BridgeError):
        running_accuracy(length, [[1.0, 1.0]])
