"""Errors of predictions, computed by hand."""

import numpy as np
import pytest

from bridge.errors import BridgeError
from bridge.predict.accuracy import Accuracy, accuracy


def test_errors_of_lengths() -> None:
    found = accuracy([10, 20, 40, 8], [5, 20, 50, 10])
    assert found == Accuracy(4, (0.5 + 0 + 0.25 + 0.25) / 4, 0.25, (0.5 + 1 + 0.8 + 0.8) / 4, 0.25)


@pytest.mark.parametrize(("true", "predicted"), [([], []), ([0.0], [1.0]), ([1.0], [0.0]), ([np.nan], [1.0])])
def test_only_positive_lengths_are_compared(true: list[float], predicted: list[float]) -> None:
    with pytest.raises(BridgeError):
        accuracy(true, predicted)
