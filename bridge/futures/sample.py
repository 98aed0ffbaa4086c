"""Run times of futures: drawn from what is believed, given what has run already."""

import numpy as np

from bridge.arrays import Floats, Ints
from bridge.futures.state import State
from bridge.scheduler.state import SECOND

#: A job that outlives its request, where nobody kills it, ends within as much again as it has run.
_AGAIN = 2.0
#: How much the jobs of one user run long or short together: the correlation of their normal scores.
TOGETHER = 0.5
#: Users that are not known: their jobs have nothing in common.
_NOBODY = ("", "-1")


def knots(state: State) -> tuple[Floats, Floats]:
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
    """Return the probability [n] that a job ends within `elapsed` [n] s; `levels`, `times`: see `knots`."""
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


def run_times(state: State, v: Floats) -> Ints:
    """Return run times [F, n], µs, longer than what has run, at probabilities v [F, n] among the futures.

    A job that has run for e is at u = F(e) + (1 - F(e)) v of its distribution. One that has outlived all that
    was believed ends within `_AGAIN` times e.
    """
    levels, times = knots(state)
    elapsed = state.elapsed / SECOND
    ended = share_ended(levels, times, elapsed)
    request = state.request / SECOND
    seconds = np.minimum(quantile(levels, times, ended + (1.0 - ended) * v), request)
    late = ((ended >= 1.0) & (elapsed > 0)) | (elapsed >= request)
    seconds = np.where(late, elapsed * _AGAIN**v, seconds)
    return np.maximum(np.asarray(np.rint(seconds * SECOND), np.int64), state.elapsed + 1)


def draw(state: State, futures: int, seed: int | np.random.Generator = 0) -> Ints:
    """Draw the run times of so many futures: [F, n] microseconds.

    Each job's probabilities are spread evenly over the futures (one in each of F equal parts), so that few
    futures already show the whole of a distribution (McKay, Beckman & Conover 1979, Latin hypercube). Jobs of
    one user tend to run long, or short, together: their probabilities depend by a Gaussian copula, of whose
    ranks these parts are made (Iman & Conover 1982); those of different users do not.
    """
    rng = np.random.default_rng(seed)
    of_user: dict[str, int] = {}
    names = (f"job {j}" if user in _NOBODY else user for j, user in enumerate(state.user))
    own = [of_user.setdefault(name, len(of_user)) for name in names]
    common = rng.standard_normal((futures, len(of_user)))[:, own]
    alone = rng.standard_normal((futures, len(own)))
    parts = (TOGETHER**0.5 * common + (1.0 - TOGETHER) ** 0.5 * alone).argsort(axis=0).argsort(axis=0)
    return run_times(state, (parts + rng.random(parts.shape)) / futures)
