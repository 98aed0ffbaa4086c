"""Forecasts: when waiting jobs will start, as quantiles over futures that differ in the run times drawn."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bridge.base.arrays import Floats, Ints
from bridge.base.errors import BridgeError
from bridge.forecasting.corrections import LEVELS, corrected
from bridge.forecasting.fork import Fork
from bridge.forecasting.site_fork import SiteFork, open_fork
from bridge.forecasting.slurm_fork import SlurmFork
from bridge.forecasting.state import MachineState
from bridge.scheduler.state import NEVER, SECOND

#: A job that outlives its request, where nobody kills it, ends within as much again as it has run.
_AGAIN = 2.0
#: How much the jobs of one user run long or short together: the correlation of their normal scores.
TOGETHER = 0.5
#: Users that are not known: their jobs have nothing in common.
_NOBODY = ("", "-1")


def quantile_knots(state: MachineState) -> tuple[Floats, Floats]:
    """Return where the distributions of run times bend: (levels [Q + 2], logarithms of seconds [n, Q + 2]).

    Between the quantiles the distribution is linear in the logarithm of the run time, down to a second and up
    to the request; who would run for longer is killed there, see `run_times`.
    """
    request = np.log(state.request / SECOND)[:, None]
    levels = np.concatenate(([0.0], state.levels, [1.0]))
    if not len(state.levels):
        return levels, np.repeat(request, 2, axis=1)
    times = np.log(state.quantiles)
    least, most = np.minimum(0.0, times[:, :1]), np.maximum(request, times[:, -1:])
    return levels, np.concatenate((least, times, most), axis=1)


def share_ended(levels: Floats, times: Floats, elapsed: Floats) -> Floats:
    """Return the probability [n] that a job ends within `elapsed` [n] s; the others: `quantile_knots`."""
    with np.errstate(divide="ignore"):
        log = np.log(elapsed)[:, None]
    last = (times <= log).sum(axis=1) - 1  # the last knot that is not later
    k = np.clip(last, 0, len(levels) - 2)
    rows = np.arange(len(times))
    low, high = times[rows, k], times[rows, k + 1]
    part = np.where(high > low, (log[:, 0] - low) / np.where(high > low, high - low, 1.0), 1.0)
    ended = levels[k] + np.clip(part, 0.0, 1.0) * (levels[k + 1] - levels[k])
    return np.where(last < 0, 0.0, np.where(last == len(levels) - 1, 1.0, ended))


def quantile(levels: Floats, times: Floats, u: Floats) -> Floats:
    """Return run times at probabilities u [F, n], seconds."""
    k = np.clip(np.searchsorted(levels, u, side="right") - 1, 0, len(levels) - 2)
    rows = np.arange(len(times))
    part = (u - levels[k]) / (levels[k + 1] - levels[k])
    low = times[rows, k]
    return np.exp(low + part * (times[rows, k + 1] - low))


def run_times(state: MachineState, v: Floats) -> Ints:
    """Return run times [F, n], µs, longer than what has run, at probabilities v [F, n] among the futures.

    A job that has run for e is at u = F(e) + (1 - F(e)) v of its distribution. One that has outlived all that
    was believed ends within `_AGAIN` times e.
    """
    levels, times = quantile_knots(state)
    elapsed = state.elapsed / SECOND
    ended = share_ended(levels, times, elapsed)
    request = state.request / SECOND
    seconds = np.minimum(quantile(levels, times, ended + (1.0 - ended) * v), request)
    late = ((ended >= 1.0) & (elapsed > 0)) | (elapsed >= request)
    seconds = np.where(late, elapsed * _AGAIN**v, seconds)
    return np.maximum(np.asarray(np.rint(seconds * SECOND), np.int64), state.elapsed + 1)


def draw(
    state: MachineState, futures: int, seed: int | np.random.Generator = 0, first: int | None = None
) -> Ints:
    """Draw the run times of so many futures: [F, n] microseconds.

    Each job's probabilities are spread evenly over the futures (one in each of F equal parts), so that few
    futures already show the whole of a distribution (McKay, Beckman & Conover 1979, Latin hypercube). Jobs of
    one user tend to run long, or short, together: their probabilities depend by a Gaussian copula, of whose
    ranks these parts are made (Iman & Conover 1982); those of different users do not. `first`: what is drawn
    for so many jobs does not depend on the ones behind them.
    """
    rng, n = np.random.default_rng(seed), len(state.user)
    first = n if first is None else first
    of_user: dict[str, Floats] = {}
    shares = []
    for generator, low, high in ((rng, 0, first), *(((rng.spawn(1)[0], first, n),) if first < n else ())):
        users = state.user[low:high]
        names = [f"job {low + j}" if user in _NOBODY else user for j, user in enumerate(users)]
        fresh = [name for name in dict.fromkeys(names) if name not in of_user]
        of_user |= zip(fresh, generator.standard_normal((futures, len(fresh))).T, strict=True)
        common = np.array([of_user[name] for name in names]).reshape(len(names), futures).T
        alone = generator.standard_normal((futures, len(names)))
        parts = (TOGETHER**0.5 * common + (1.0 - TOGETHER) ** 0.5 * alone).argsort(axis=0).argsort(axis=0)
        shares.append((parts + generator.random(parts.shape)) / futures)
    return run_times(state, np.concatenate(shares, axis=1))


#: Futures of a forecast.
FUTURES = 100
#: Corrections before anything has turned out, in scales, at `LEVELS`: futures know of no later arrivals, so
#: that they differ less than what comes.
FIRST = (-0.05, 0.05, 0.15, 0.3, 0.7)
#: Smallest scale of a forecast, s.
_LEAST = 60.0


@dataclass(frozen=True)
class RawForecast:
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
    state: MachineState,
    job_indices: Ints,
    fork: Fork | SiteFork | SlurmFork,
    futures: int = FUTURES,
    seed: int | list[int] = 0,
) -> RawForecast:
    """Forecast the starts of waiting jobs `job_indices` [m], by index, ascending.

    `fork`: memory for the futures, of any state; its policy decides in them. `seed`: of run times drawn.
    """
    fork.load(state)
    run_times = draw(state, futures, np.random.default_rng(seed))
    longest = np.maximum(state.request, state.elapsed + SECOND)
    starts = fork.simulate_futures(np.concatenate((run_times, longest[None])), job_indices)[:, job_indices]
    after = np.where(starts == NEVER, np.inf, (starts - state.now) / SECOND)
    return summarize_futures(after[:-1], after[-1])


def summarize_futures(after: Floats, reserved: Floats) -> RawForecast:
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
    return RawForecast(
        quantiles, reserved, width + 0.1 * np.where(np.isinf(reserved), 0.0, reserved) + _LEAST
    )


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
        rows: list[dict[str, float | str | None]] = []
        for k, name in enumerate(self.id):
            times = dict(zip(names, self.quantiles[k].tolist(), strict=True))
            times["reserved"] = float(self.reserved[k])
            row: dict[str, float | str | None] = {"job": name, "submitted": float(self.submit[k])}
            rows.append(row | {key: one if np.isfinite(one) else None for key, one in times.items()})
        return rows


def forecast(
    state: MachineState, *, policy: str = "", futures: int = FUTURES, seed: int = 0, jobs: Sequence[str] = ()
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
    raw = raw_forecast(state, wanted, open_fork(state, policy), futures, seed)
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
