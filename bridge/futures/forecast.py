"""Forecasts: when waiting jobs will start, as quantiles over futures."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bridge.arrays import Floats, Ints
from bridge.errors import BridgeError
from bridge.futures.calibrate import LEVELS, corrected
from bridge.futures.fork import Fork
from bridge.futures.sample import draw
from bridge.futures.state import State
from bridge.scheduler.state import NEVER, SECOND

#: Futures of a forecast.
FUTURES = 100
#: Corrections before anything has turned out, in scales, at `LEVELS`: futures know of no later arrivals, so
#: that they differ less than what comes.
FIRST = (-0.05, 0.05, 0.15, 0.3, 0.7)
#: Smallest scale of a forecast, s.
_LEAST = 60.0


@dataclass(frozen=True)
class Raw:
    """Uncorrected forecasts of m jobs; seconds from the present, infinite where a job cannot start.

    Attributes:
        quantiles: [m, Q] at `LEVELS`, over the futures.
        reserved: [m] the start if every job ran as long as it requests, as reservations have it.
        scale: [m] the unit of corrections: how far the futures are apart, and a tenth of the wait until the
            reservation.
    """

    quantiles: Floats
    reserved: Floats
    scale: Floats


def raw_forecast(
    state: State, wanted: Ints, fork: Fork, futures: int = FUTURES, seed: int | list[int] = 0
) -> Raw:
    """Forecast the starts of waiting jobs `wanted` [m], by index, ascending.

    `fork`: memory for the futures, of any state; its policy decides in them. `seed`: of run times drawn.
    """
    fork.load(state)
    drawn = draw(state, futures, np.random.default_rng(seed))
    longest = np.maximum(state.request, state.elapsed + SECOND)
    starts = fork.play(np.concatenate((drawn, longest[None])), wanted)[:, wanted]
    after = np.where(starts == NEVER, np.inf, (starts - state.now) / SECOND)
    return raw_of(after[:-1], after[-1])


def raw_of(after: Floats, reserved: Floats) -> Raw:
    """Return the forecasts of starts [F, m] over futures, and by reservation [m]; seconds from now."""
    ordered = np.sort(after, axis=0)
    place = np.clip(np.array(LEVELS) * len(ordered) - 0.5, 0, len(ordered) - 1)
    low = np.floor(place).astype(np.int64)
    part = (place - low)[:, None]
    under, over = ordered[low], ordered[np.minimum(low + 1, len(ordered) - 1)]
    with np.errstate(invalid="ignore"):  # between infinity and itself
        between = under + part * (over - under)
    quantiles = np.where(np.isinf(under) | (np.isinf(over) & (part > 0)), np.inf, between).T
    with np.errstate(invalid="ignore"):
        width = np.nan_to_num(quantiles[:, -1] - quantiles[:, 0], nan=0.0, posinf=0.0)
    return Raw(quantiles, reserved, width + 0.1 * np.where(np.isinf(reserved), 0.0, reserved) + _LEAST)


@dataclass(frozen=True)
class Forecast:
    """When waiting jobs will start; times in seconds on the state's clock, infinite where a job cannot start.

    Attributes:
        id: [m] names of the jobs, in order of submission.
        submit: [m].
        quantiles: [m, Q] of the start, at `LEVELS`: ends of the 90 and the 50 % interval, and the median.
        reserved: [m] the start if every job ran as long as it requests, as reservations have it.
    """

    id: tuple[str, ...]
    submit: Floats
    quantiles: Floats
    reserved: Floats

    def rows(self) -> list[dict[str, float | str | None]]:
        """Return one row per job as plain values; None stands for never."""
        names = ("low90", "low50", "median", "high50", "high90")
        found: list[dict[str, float | str | None]] = []
        for k, name in enumerate(self.id):
            times = dict(zip(names, self.quantiles[k].tolist(), strict=True))
            times["reserved"] = float(self.reserved[k])
            row: dict[str, float | str | None] = {"job": name, "submitted": float(self.submit[k])}
            found.append(row | {key: one if np.isfinite(one) else None for key, one in times.items()})
        return found


def forecast(
    state: State, *, policy: str = "", futures: int = FUTURES, seed: int = 0, jobs: Sequence[str] = ()
) -> Forecast:
    """Forecast when waiting jobs will start, all or some (`jobs`, by id), over so many `futures`.

    Quantiles over futures are corrected by what the state has learnt about earlier forecasts of jobs that had
    waited as long, or by what is assumed at first, see `FIRST`. A job that starts at once in all of them
    does. The policy is the state's own if empty; the same seed gives the same forecast.

    Raises BridgeError: the policy is not known, or a job does not wait.
    """
    wanted = state.waiting
    if jobs:
        wanted = np.unique([state.index(job) for job in jobs])
        if wanted[0] < state.n_running:
            raise BridgeError("runs already", where=f"job {state.id[wanted[0]]!r}")
    raw = raw_forecast(state, wanted, Fork(state, policy), futures, seed)
    quantiles = np.empty_like(raw.quantiles)
    ages = sorted(state.corrections)
    for k, waited in enumerate((state.now - state.submit[wanted]) / SECOND):
        age = max((one for one in ages if one <= waited), default=None)
        by = FIRST if age is None else state.corrections[age]
        if not (raw.quantiles[k].any() or raw.reserved[k]):  # it starts at once, whatever comes
            by = (0.0,) * len(LEVELS)
        quantiles[k] = corrected(raw.quantiles[k], float(raw.scale[k]), by)
    now = state.now / SECOND
    return Forecast(
        tuple(state.id[j] for j in wanted), state.submit[wanted] / SECOND, now + quantiles, now + raw.reserved
    )
