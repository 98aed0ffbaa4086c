"""Statistics for honest judging: intervals over blocks of dependent values, paired differences, verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike

from bridge.base.arrays import Floats, Ints
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.judge.distributions import kendall, t_quantile

#: Of every interval.
CONFIDENCE = 0.95
#: Fewer independent blocks than this give no interval; fewer than `MANY` Student's t, else the bootstrap.
FEWEST, MANY = 5, 20
#: Resamples, and the seed of their generator.
RESAMPLES, SEED = 9_999, 0
#: Behind an interval by Student's t, and what is said below tables.
MARK = " t"
INTERVALS = (
    "The 95 % intervals come from b independent blocks of neighbouring windows: from the circular block "
    f"bootstrap if b is {MANY} or more, else from Student's t (marked t). If b is below {FEWEST}, there is "
    "no interval and no verdict."
)
#: The verdict where there is no interval.
TOO_FEW: Final = "too few separate windows to tell"
Kind = Literal["t", "bootstrap"]
Judgement = Literal["better", "not distinguishable", "worse", "too few separate windows to tell"]


@dataclass(frozen=True)
class ConfidenceInterval:
    """A mean with its confidence interval; the bounds are NaN where too few values give none.

    Attributes:
        n: values.
        b: independent blocks of them.
        kind: of the interval, Student's t or the block bootstrap; None where there is none.
    """

    mean: float
    low: float
    high: float
    n: int
    b: int = 0
    kind: Kind | None = None

    def __str__(self) -> str:
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"

    def __neg__(self) -> "ConfidenceInterval":
        return ConfidenceInterval(-self.mean, -self.high, -self.low, self.n, self.b, self.kind)

    @property
    def mark(self) -> str:
        return mark_of(self.kind)

    def percent_of(self, base: float) -> "ConfidenceInterval":
        low, mean, high = (100 * one / base for one in (self.low, self.mean, self.high))
        return ConfidenceInterval(mean, low, high, self.n, self.b, self.kind)

    def as_dict(self) -> dict[str, float | str | None]:
        """Return JSON values; bounds that there are not are None."""
        low, high = (None if np.isnan(bound) else bound for bound in (self.low, self.high))
        return {"mean": self.mean, "low": low, "high": high, "b": self.b, "kind": self.kind}


def mark_of(kind: str | None) -> str:
    return MARK if kind == "t" else ""


def mean_ci(values: ArrayLike) -> ConfidenceInterval:
    """Return the mean of independent values (n,) with Student's t interval, mean ± t · s / √n."""
    x = _sample(values)
    mean, n = float(x.mean()), len(x)
    if n == 1:
        return ConfidenceInterval(mean, float("nan"), float("nan"), 1, 1)
    half = _quantile(n - 1) * float(x.std(ddof=1)) / n**0.5
    return ConfidenceInterval(mean, mean - half, mean + half, n, n, "t")


def paired_difference(values: ArrayLike, base: ArrayLike) -> ConfidenceInterval:
    """Return the mean of ``values − base``, pair by pair, with Student's t interval."""
    return mean_ci(_differences(values, base))


def block_length(starts: ArrayLike, length: float) -> int:
    """Return how many neighbours a block must hold so that windows of different blocks share little.

    That is the largest number of windows that begin within one window's length of each other, so that two
    blocks begin at least a window's length apart, wherever starts cluster. Starts, in any order, shape (n,),
    and length are in one unit (jobs or seconds).
    """
    ordered = np.sort(np.asarray(starts, np.float64))
    if len(ordered) == 0:
        raise BridgeError("no windows to take blocks from")
    reach = np.searchsorted(ordered, ordered + length, side="left")
    return int(np.max(reach - np.arange(len(ordered))))


@dataclass(frozen=True)
class Part:
    """One source of a mean's variance: the blocks of a series, or the seeds of a training.

    Attributes:
        variance: of the mean, by this source.
        freedom: degrees of freedom of that variance.
        deviations: of resamples from the mean, with that variance, shape (resamples,).
    """

    variance: float
    freedom: int
    deviations: Floats

    def scaled(self, factor: float) -> "Part":
        return Part(factor**2 * self.variance, self.freedom, factor * self.deviations)


def parts(rows: Sequence[Floats], block: int, resamples: int = RESAMPLES, seed: int = SEED) -> list[Part]:
    """Return the variance parts of the mean of a sum of rows: blocks of values, then each row's seeds.

    `rows`: [seeds, n] values each, on the same n neighbours; of a difference the base's are negative. Blocks
    are drawn with replacement from the series closed to a circle (D. Politis, J. Romano, "A circular
    block-resampling procedure for stationary data", 1992), so that each value is as likely as any other and
    the mean is the centre; their variance is that of b = ⌊n / block⌋ disjoint blocks. Seeds of a row are
    drawn with replacement; what their means vary by chance of the blocks (the interaction) is no variance of
    the seeds.
    """
    own = np.sum([row.mean(axis=0) for row in rows], axis=0)
    deviation, n = own - own.mean(), len(own)
    b = n // block
    generator = np.random.default_rng(seed)
    disjoint = np.arange(b) * n // b
    sums = np.add.reduceat(deviation, disjoint)
    small = b / (b - 1)
    samples = _circular(deviation, block, resamples, generator) * small**0.5
    parts_of_variance = [Part(small * float(sums @ sums) / n**2, b - 1, samples)]
    for row in (row for row in rows if len(row) > 1):
        seeds, means = len(row), row.mean(axis=1)
        means -= means.mean()
        rest = row - row.mean(axis=0) - means[:, None]
        sums = np.add.reduceat(rest, disjoint, axis=1)
        interaction = small * float((sums**2).sum()) / (seeds * (seeds - 1) * n**2)
        alone = float(means @ means) / (seeds * (seeds - 1))
        variance = max(alone - interaction, 0.0)
        samples = means[generator.integers(0, seeds, size=(resamples, seeds))].mean(axis=1)
        samples *= (seeds / (seeds - 1) * variance / alone) ** 0.5 if variance else 0.0
        parts_of_variance.append(Part(variance, seeds - 1, samples))
    return parts_of_variance


def interval_of(mean: float, parts: Sequence[Part], n: int, b: int) -> ConfidenceInterval:
    """Return a mean with the interval that its independent parts give, over b blocks of n values.

    From `MANY` blocks on it is that of the percentiles of the resamples, which with few blocks or seeds is
    too narrow; so it is as much wider as Student's t is than the normal distribution. With fewer blocks it is
    Student's t over the means of the disjoint blocks (and of the seeds). Degrees of freedom are those of B.
    Welch, "The generalization of Student's problem", Biometrika 34 (1947).
    """
    variance = sum(part.variance for part in parts)
    shares = [(part.variance / variance, part.freedom) for part in parts] if variance else [(1.0, b - 1)]
    t = _quantile(1 / sum(share**2 / freedom for share, freedom in shares))
    if b < MANY:
        half = t * float(variance**0.5)
        return ConfidenceInterval(mean, mean - half, mean + half, n, b, "t")
    deviations = np.sum([part.deviations for part in parts], axis=0) * (t / _quantile(np.inf))
    low, high = np.quantile(deviations, [0.5 - CONFIDENCE / 2, 0.5 + CONFIDENCE / 2])
    return ConfidenceInterval(mean, mean + float(low), mean + float(high), n, b, "bootstrap")


def series_interval(
    rows: Sequence[Floats], block: int, *, resamples: int = RESAMPLES, seed: int = SEED
) -> ConfidenceInterval:
    """Return the mean of a sum of rows, [seeds, n] each, with its interval; see `parts`, `interval_of`.

    Raises BridgeError: no values, one that is not finite, or a block that does not fit.
    """
    n = len(_sample(np.concatenate([row.ravel() for row in rows]))) and rows[0].shape[1]
    if not 1 <= block <= n:
        raise BridgeError(f"a block of {block} values does not fit in a series of {n}")
    mean, b = float(np.sum([row.mean() for row in rows])), n // block
    if b < FEWEST:
        return ConfidenceInterval(mean, float("nan"), float("nan"), n, b)
    return interval_of(mean, parts(rows, block, resamples if b >= MANY else 0, seed), n, b)


def block_bootstrap(
    values: ArrayLike, block: int, *, seed: int = SEED, resamples: int = RESAMPLES
) -> ConfidenceInterval:
    """Return the mean of a dependent series (n,) with its interval over blocks of neighbours, 1 … n long."""
    return series_interval([_sample(values)[None]], block, resamples=resamples, seed=seed)


def window_bootstrap(
    values: ArrayLike, starts: ArrayLike, length: float, *, base: ArrayLike | None = None
) -> ConfidenceInterval:
    """Return the mean over windows of one log (or of the paired differences to ``base``), which may overlap.

    Windows are put in the order of their starts; blocks are as long as ``block_length`` says. Raises
    BridgeError: lengths differ, no values, or a value is not finite.
    """
    x = _sample(values) if base is None else _differences(values, base)
    where = np.asarray(starts, np.float64)
    if where.shape != x.shape:
        raise BridgeError(f"{counted(len(x), 'value')} but {counted(where.size, 'window')}")
    return block_bootstrap(x[np.argsort(where, kind="stable")], block_length(where, length))


def verdict(difference: ConfidenceInterval) -> Judgement:
    """Judge a policy by its paired difference, policy − base, in a metric where lower is better."""
    if np.isnan(difference.low):
        return TOO_FEW
    if difference.high < 0:
        return "better"
    return "worse" if difference.low > 0 else "not distinguishable"


def rank_agreement(values: ArrayLike, others: ArrayLike) -> tuple[float, float]:
    """Return Kendall's τ-b between two rankings of the same policies, −1 … 1, and its p-value.

    Source: M. Kendall, "The treatment of ties in ranking problems", Biometrika 33 (1945). Where one ranking
    is all ties τ-b is not defined: then both are NaN. Raises BridgeError: lengths differ, or fewer than two
    policies.
    """
    a, b = np.asarray(values, np.float64), np.asarray(others, np.float64)
    if a.shape != b.shape or a.ndim != 1 or len(a) < 2:
        message = "rank agreement needs two rankings of the same policies"
        raise BridgeError(f"{message}, got {a.size} and {b.size}")
    return kendall(a, b)


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


def _quantile(freedom: float) -> float:
    """Return the quantile of Student's t that the interval reaches to; of the normal one for infinity."""
    return t_quantile(freedom, 0.5 + CONFIDENCE / 2)


def _circular(deviation: Floats, block: int, resamples: int, generator: np.random.Generator) -> Floats:
    """Return means of resamples in blocks of neighbours, the last of which is cut; end and begin join."""
    n = len(deviation)
    sums = np.concatenate(([0.0], np.cumsum(np.concatenate((deviation, deviation[:block])))))
    count = -(-n // block)
    lengths: Ints = np.full(count, block)
    lengths[-1] = n - block * (count - 1)
    totals = np.empty(resamples)
    rows = max(1, 2_000_000 // count)  # resamples at a time, so that memory stays small
    for k in range(0, resamples, rows):
        first = generator.integers(0, n, size=(min(rows, resamples - k), count))
        totals[k : k + rows] = (sums[first + lengths] - sums[first]).sum(axis=1)
    return np.asarray(totals / n)
