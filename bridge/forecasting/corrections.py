"""Calibration: quantiles that keep their promise, corrected online by how earlier ones have turned out.

Each level has its own correction, in units of a forecast's own scale: the same rule for all logs. It is the
conformal quantile of the last scores (Romano, Patterson & Candès 2019), and an integral of the errors made
(Angelopoulos, Candès & Tibshirani, "Conformal PID control for time series prediction", 2023), which bounds
the error of the coverage whatever the series does: the sum of the errors is the integral over its gain.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from bridge.base.arrays import Floats, Ints
from bridge.config import Count, Positive, verify
from bridge.scheduler.state import SECOND

#: Levels of a forecast: 90 % and 50 % intervals, and the median.
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class CorrectionSettings:
    """Of the corrections.

    Attributes:
        window: scores remembered.
        gain: of the integral, in scales an error, at levels 0 and 1; it falls to nothing at the median, which
            promises no coverage and would only be shaken.
        weight: scores that what is assumed at first weighs as much as.
    """

    window: Count = 4000
    gain: Positive = 0.02
    weight: Count = 50

    def __post_init__(self) -> None:
        verify(self, "calibration")


class LevelCorrection:
    """The correction of one level, of which a share shall lie below; `first` before anything turned out."""

    def __init__(self, level: float, first: float, settings: CorrectionSettings) -> None:
        self.level, self._settings = level, settings
        self._gain = settings.gain * abs(2.0 * level - 1.0)
        self._first, self._integral = first, 0.0
        self._sorted: list[float] = []
        self._scores: deque[float] = deque()

    def correction(self) -> float:
        """Return what is added to a quantile, in scales."""
        n = len(self._sorted)
        if n == 0:
            return self._first + self._integral
        place = min(max(int(np.ceil(self.level * (n + 1))), 1), n) - 1
        weight = self._settings.weight
        return (n * self._sorted[place] + weight * self._first) / (n + weight) + self._integral

    def record_miss(self, below: bool) -> None:
        self._integral += self._gain * (self.level - below)

    def learn(self, score: float) -> None:
        """Take a score: (outcome - uncorrected quantile) / scale."""
        insort(self._sorted, score)
        self._scores.append(score)
        if len(self._scores) > self._settings.window:
            del self._sorted[bisect_left(self._sorted, self._scores.popleft())]


def corrected(raw: Floats, scale: float | Floats, corrections: Sequence[float]) -> Floats:
    """Return quantiles [..., Q], with corrections [Q] times scale [..., 1] added, ascending, not negative."""
    quantiles: Floats = np.sort(np.maximum(raw + scale * np.asarray(corrections), 0.0), axis=-1)
    return quantiles


class QuantileCorrector:
    """The corrections of all levels, for forecasts of one kind; the `first` ones are in scales.

    Forecasts are made by `quantiles` in the order of time. An outcome becomes known when it is reported, or
    in part before: what has not happened by the time of a quantile lies above it.
    """

    def __init__(
        self, first: Sequence[float] = (0.0,) * len(LEVELS), settings: CorrectionSettings | None = None
    ) -> None:
        settings = settings or CorrectionSettings()
        self._levels = [
            LevelCorrection(level, one, settings) for level, one in zip(LEVELS, first, strict=True)
        ]

    def quantiles(self, raw: Floats, scale: float) -> Floats:
        """Return each level's own quantile [Q] for one `raw` [Q] at `LEVELS` and its scale > 0; s from now.

        A forecast has them in order, and none below 0. Each level answers for its own quantile: were they
        sorted first, levels that have crossed would answer for each other's errors and drift apart.
        """
        return np.asarray(raw + scale * np.asarray(self.corrections), np.float64)

    @property
    def corrections(self) -> tuple[float, ...]:
        return tuple(level.correction() for level in self._levels)

    def record_exceeded(self, k: int) -> None:
        """Take notice that an outcome lies above the k-th quantile of its forecast."""
        self._levels[k].record_miss(below=False)

    def record_outcome(self, raw: Floats, scale: float, forecast: Floats, outcome: float) -> None:
        """Learn from an outcome: how far it was off, and below which of the levels' own quantiles it lies."""
        for level, one, quantile in zip(self._levels, raw, forecast, strict=True):
            if outcome < quantile:
                level.record_miss(below=True)
            level.learn((outcome - one) / scale)


def calibrated(
    forecast_at: Ints, outcome: Ints, raw: Floats, scale: Floats, calibrator: QuantileCorrector
) -> Floats:
    """Correct forecasts in the order in which they were made, each by what was known then.

    Made at [n] µs, ascending; the outcome came at [n] µs, later; raw quantiles [n, Q] and the result are s
    from `forecast_at`, scales [n] s. The calibrator goes on from here, and knows all outcomes in the end.
    """
    corrected_values = np.empty_like(raw)
    events: list[tuple[float, int, int]] = []  # time, forecast, quantile that is passed or -1: it happens

    def catch_up(now: float) -> None:
        while events and events[0][0] < now:
            _, j, k = heappop(events)
            if k >= 0:
                calibrator.record_exceeded(k)
            else:
                after = (outcome[j] - forecast_at[j]) / SECOND
                calibrator.record_outcome(raw[j], float(scale[j]), corrected_values[j], float(after))

    for i, (now, end) in enumerate(zip(forecast_at.tolist(), outcome.tolist(), strict=True)):
        catch_up(now)
        corrected_values[i] = calibrator.quantiles(raw[i], float(scale[i]))
        heappush(events, (end, i, -1))
        for k, quantile in enumerate(corrected_values[i].tolist()):
            if (at := now + max(quantile, 0.0) * SECOND) <= end:
                heappush(events, (at, i, k))
    catch_up(np.inf)
    return np.sort(np.maximum(corrected_values, 0.0), axis=1)
