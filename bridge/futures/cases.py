"""Cases: forecasts made all along a replay, of jobs that still waited at set times after submission."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bridge.arrays import Floats, Ints
from bridge.futures.calibrate import LEVELS
from bridge.futures.forecast import Raw, raw_forecast
from bridge.futures.fork import Fork
from bridge.futures.timeline import Timeline
from bridge.scheduler.state import SECOND

#: When forecasts are made, seconds after submission.
HORIZONS = (60, 3600, 21_600)
#: Futures of each forecast: fewer than for one forecast alone, whose quantiles need not be learnt about.
FUTURES = 24


@dataclass(frozen=True)
class Cases:
    """Forecasts to be made: m jobs at times at which they still wait, in the order of these times.

    Attributes:
        job: [m] place in the replay.
        horizon: [m] seconds after submission.
        time: [m] when; microseconds.
        start: [m] the outcome; microseconds.
    """

    job: Ints
    horizon: Ints
    time: Ints
    start: Ints

    def __len__(self) -> int:
        return len(self.job)

    def take(self, which: Ints) -> "Cases":
        """Return some of them."""
        return Cases(self.job[which], self.horizon[which], self.time[which], self.start[which])

    @property
    def after(self) -> Floats:
        """[m] seconds from forecast to start."""
        return (self.start - self.time) / SECOND


def cases(submit: Ints, start: Ints, horizons: tuple[int, ...] = HORIZONS) -> Cases:
    """Return what is to be forecast of a schedule: every job at every horizon that it outwaits."""
    found = []
    for horizon in horizons:
        job = np.flatnonzero(start - submit > horizon * SECOND)
        found.append(np.stack((submit[job] + horizon * SECOND, job, np.full(len(job), horizon))))
    time, job, horizon = np.concatenate(found, axis=1)
    order = np.lexsort((job, horizon, time))
    return Cases(job[order], horizon[order], time[order], start[job[order]])


def simulate(
    timeline: Timeline,
    what: Cases,
    futures: int = FUTURES,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Raw:
    """Make the uncorrected forecasts of all cases, each from the state at its time."""
    raw = Raw(np.empty((len(what), len(LEVELS))), np.empty(len(what)), np.empty(len(what)))
    timeline.rewind()
    fork: Fork | None = None
    first = 0
    while first < len(what):
        time = int(what.time[first])
        last = int(np.searchsorted(what.time, time, side="right"))
        state, which = timeline.state(time)
        place = np.empty(which.max() + 1, np.int64)
        place[which] = np.arange(len(which))
        wanted, back = np.unique(place[what.job[first:last]], return_inverse=True)
        fork = fork or Fork(state)
        one = raw_forecast(state, wanted, fork, futures, [seed, time & (2**63 - 1)])
        for name in ("quantiles", "reserved", "scale"):
            getattr(raw, name)[first:last] = getattr(one, name)[back]
        first = last
        if progress is not None:
            progress(first)
    return raw
