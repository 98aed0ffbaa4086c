"""Statistics for honest judging: intervals, paired differences, bootstrap over overlapping windows."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from bridge.arrays import Floats
from bridge.errors import BridgeError

#: Of every interval.
CONFIDENCE = 0.95
Judgement = Literal["better", "not distinguishable", "worse"]


@dataclass(frozen=True)
class Estimate:
    """A mean with its confidence interval; the bounds are NaN where one value alone gives none."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"

    def __neg__(self) -> "Estimate":
        return Estimate(-self.mean, -self.high, -self.low, self.n)

    def as_dict(self) -> dict[str, float | None]:
        """Return JSON values; bounds that there are not are None."""
        low, high = (None if np.isnan(bound) else bound for bound in (self.low, self.high))
        return {"mean": self.mean, "low": low, "high": high}


def mean_ci(values: ArrayLike) -> Estimate:
    """Return the mean of independent values (n,) with Student's t interval, mean ± t · s / √n."""
    x = _sample(values)
    mean, n = float(x.mean()), len(x)
    if n == 1:
        return Estimate(mean, float("nan"), float("nan"), 1)
    from scipy import stats

    half = float(stats.t.ppf(0.5 + CONFIDENCE / 2, n - 1)) * float(x.std(ddof=1)) / n**0.5
    return Estimate(mean, mean - half, mean + half, n)


def paired_difference(values: ArrayLike, base: ArrayLike) -> Estimate:
    """Return the mean of ``values − base``, pair by pair, with Student's t interval."""
    return mean_ci(_differences(values, base))


def block_bootstrap(values: ArrayLike, block: int, *, seed: int = 0, resamples: int = 9_999) -> Estimate:
    """Return the mean of a dependent series with the percentile interval of the moving-block bootstrap.

    Neighbours in the series (n,) may depend on each other, as overlapping windows do: whole blocks of
    neighbours, 1 … n long (``block_length`` gives one for windows), are drawn with replacement until the
    series' length is reached (the last one cut), `resamples` times. Source: H. Künsch, "The jackknife and the
    bootstrap for general stationary observations", Annals of Statistics 17 (1989). Raises BridgeError: no
    values, or one that is not finite.
    """
    x = _sample(values)
    n = len(x)
    if not 1 <= block <= n:
        raise BridgeError(f"a block of {block} values does not fit in a series of {n}")
    sums = np.concatenate(([0.0], np.cumsum(x - x.mean())))  # of the centred series: no cancellation
    whole, rest = divmod(n, block)
    generator = np.random.default_rng(seed)
    totals = np.empty(resamples)
    rows = max(1, 2_000_000 // whole)  # resamples at a time, so that memory stays small
    for k in range(0, resamples, rows):
        drawn = generator.integers(0, n - block + 1, size=(min(rows, resamples - k), whole))
        totals[k : k + rows] = (sums[drawn + block] - sums[drawn]).sum(axis=1)
    if rest:
        cut = generator.integers(0, n - block + 1, size=resamples)
        totals += sums[cut + rest] - sums[cut]
    low, high = np.quantile(totals / n, [0.5 - CONFIDENCE / 2, 0.5 + CONFIDENCE / 2])
    mean = float(x.mean())
    return Estimate(mean, mean + float(low), mean + float(high), n)


def block_length(starts: ArrayLike, length: float) -> int:
    """Return how many neighbours a block must hold so that windows of different blocks share little.

    That is the largest number of windows that begin within one window's length of each other. Starts, in any
    order, shape (n,), and length are in one unit (jobs or seconds).
    """
    ordered = np.sort(np.asarray(starts, np.float64))
    if len(ordered) == 0:
        raise BridgeError("no windows to take blocks from")
    reach = np.searchsorted(ordered, ordered + length, side="left")
    return int(np.max(reach - np.arange(len(ordered))))


def window_bootstrap(
    values: ArrayLike, starts: ArrayLike, length: float, *, base: ArrayLike | None = None
) -> Estimate:
    """Return the mean over windows that overlap on one log (or of the paired differences to ``base``).

    Windows are put in the order of their starts; blocks are as long as ``block_length`` says. Raises
    BridgeError: lengths differ, no values, a value is not finite, or all windows overlap each other, so that
    no interval can be given.
    """
    x = _sample(values) if base is None else _differences(values, base)
    where = np.asarray(starts, np.float64)
    if where.shape != x.shape:
        raise BridgeError(f"{len(x)} values but {where.size} windows")
    block = block_length(where, length)
    if block == len(x) and len(x) > 1:
        what = "all windows overlap each other, so they say nothing about other parts of the log"
        raise BridgeError(what, remedy="Use shorter windows, or more of the log.")
    return block_bootstrap(x[np.argsort(where, kind="stable")], block)


def verdict(difference: Estimate) -> Judgement:
    """Judge a policy by its paired difference, policy − base, in a metric where lower is better."""
    if difference.high < 0:
        return "better"
    return "worse" if difference.low > 0 else "not distinguishable"


def rank_agreement(values: ArrayLike, others: ArrayLike) -> tuple[float, float]:
    """Return Kendall's τ-b between two rankings of the same policies, −1 … 1, and its p-value.

    Source: M. Kendall, "The treatment of ties in ranking problems", Biometrika 33 (1945). Where one ranking
    is all ties τ-b is not defined: then both are NaN. Raises BridgeError: lengths differ, or fewer than two
    policies.
    """
    from scipy import stats

    a, b = np.asarray(values, np.float64), np.asarray(others, np.float64)
    if a.shape != b.shape or a.ndim != 1 or len(a) < 2:
        said = "rank agreement needs two rankings of the same policies"
        raise BridgeError(f"{said}, got {a.size} and {b.size}")
    result = stats.kendalltau(a, b)
    return float(result.statistic), float(result.pvalue)


def _sample(values: ArrayLike) -> Floats:
    x = np.asarray(values, np.float64)
    if x.ndim != 1 or len(x) == 0:
        raise BridgeError("no values to take a mean of")
    if not np.isfinite(x).all():
        raise BridgeError("a value is not finite", where=f"value {int(np.flatnonzero(~np.isfinite(x))[0])}")
    return x


def _differences(values: ArrayLike, base: ArrayLike) -> Floats:
    a, b = np.asarray(values, np.float64), np.asarray(base, np.float64)
    if a.shape != b.shape:
        remedy = "Judge both policies on the same windows."
        raise BridgeError(f"paired values differ in number: {a.size} and {b.size}", remedy=remedy)
    return _sample(a - b)
