"""Calibration: corrections by hand, and coverage on series that move."""

import numpy as np
import pytest

from bridge.forecasting.corrections import (
    LEVELS,
    CorrectionSettings,
    LevelCorrection,
    QuantileCorrector,
    calibrated,
)
from bridge.scheduler.state import SECOND

PLAIN = CorrectionSettings(window=3, gain=0.1, weight=1)


def test_a_correction_is_the_quantile_of_the_last_scores_and_the_integral_of_errors() -> None:
    level = LevelCorrection(0.75, 0.4, PLAIN)
    assert level.correction() == 0.4
    level.learn(2.0)
    assert level.correction() == pytest.approx((2.0 + 0.4) / 2)
    level.learn(4.0)
    level.learn(6.0)
    level.learn(8.0)  # 2 is forgotten: the third of three
    assert level.correction() == pytest.approx((3 * 8.0 + 0.4) / 4)
    level.record_miss(below=True)
    level.record_miss(below=False)
    level.record_miss(below=False)
    assert level.correction() == pytest.approx((3 * 8.0 + 0.4) / 4 + 0.05 * (-0.25 + 2 * 0.75))


def test_no_outcome_is_read_before_it_has_happened() -> None:
    made = np.arange(4) * 10 * SECOND
    raw = np.zeros((4, len(LEVELS)))
    scale = np.ones(4)
    late = made + np.array([100, 100, 5, 100]) * SECOND
    later = made + np.array([500, 100, 5, 100]) * SECOND
    one, other = (
        calibrated(made, end, raw, scale, QuantileCorrector(settings=PLAIN)) for end in (late, later)
    )
    assert one.tolist() == other.tolist()
    sooner = made + np.array([5, 100, 5, 100]) * SECOND
    assert (
        calibrated(made, sooner, raw, scale, QuantileCorrector(settings=PLAIN))[1].tolist() != one[1].tolist()
    )


@pytest.mark.parametrize(("shift", "least"), [(0.0, 0.88), (3.0, 0.86)])
def test_coverage_is_kept_though_the_series_shifts(shift: float, least: float) -> None:
    """Forecasts know nothing: all outcomes are around 100 s, or four times as long from the middle on."""
    rng = np.random.default_rng(1)
    n = 4000
    made = np.arange(n) * 50 * SECOND
    after = rng.exponential(100.0, n) * np.where(np.arange(n) < n // 2, 1.0, 1.0 + shift)
    raw = np.full((n, len(LEVELS)), 100.0)
    end = made + (after * SECOND).astype(np.int64)
    found = calibrated(made, end, raw, np.full(n, 100.0), QuantileCorrector(settings=CorrectionSettings(500)))
    assert (np.diff(found, axis=1) >= 0).all()
    assert (found >= 0).all()
    inside = (found[:, 0] <= after) & (after <= found[:, -1])
    assert least <= inside.mean() <= 0.92
    assert 0.45 <= ((found[:, 1] <= after) & (after <= found[:, 3])).mean() <= 0.55
