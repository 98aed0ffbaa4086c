"""Intervals that include the training's own variance: a bootstrap over seeds and over windows together."""

from dataclasses import dataclass

import numpy as np

from bridge.arrays import Floats, Ints
from bridge.judge.stats import Estimate, block_length, verdict
from bridge.study.windows import apart

#: Resamples, and the seed of their generator.
RESAMPLES, SEED = 9_999, 0


@dataclass(frozen=True)
class Values:
    """What a row has in a test: [seeds, windows] values, [windows] first jobs, and jobs a window."""

    of: Floats
    starts: Ints
    length: int

    @property
    def seeds(self) -> int:
        """Trainings; 1 where nothing is learnt."""
        return len(self.of)

    @property
    def apart(self) -> int:
        """Windows that do not overlap."""
        return apart(self.starts, self.length)

    def alike(self, other: "Values") -> bool:
        """Tell whether these are the same windows."""
        return self.length == other.length and np.array_equal(self.starts, other.starts)


def interval(mine: Values, base: Values | None = None, confidence: float = 0.95) -> Estimate:
    """Return a row's mean, or its mean difference to another row on the same windows, with an interval.

    Each resample draws seeds with replacement, of both rows, and windows, the same for both, in blocks of
    neighbours as long as windows reach (`bridge.judge.stats.block_bootstrap`). Deviations of the seeds from
    their mean count √(S / (S − 1)) times: without that few seeds would seem to vary less than they do. The
    interval is that of the percentiles; there is none where all windows overlap, or where there is but one.
    """
    order = np.argsort(mine.starts, kind="stable")
    rows = [(mine.of[:, order], 1.0)] + ([(base.of[:, order], -1.0)] if base else [])
    windows = len(order)
    mean = float(sum(sign * float(of.mean()) for of, sign in rows))
    block = block_length(mine.starts, mine.length)
    if windows == 1 or block >= windows:
        return Estimate(mean, float("nan"), float("nan"), windows)
    generator = np.random.default_rng(SEED)
    whole, rest = divmod(windows, block)
    drawn = generator.integers(0, windows - block + 1, size=(RESAMPLES, whole + bool(rest)))
    lengths = np.full(whole + bool(rest), block)
    lengths[-1] = rest or block
    deviation = np.zeros(RESAMPLES)
    for of, sign in rows:
        seeds = len(of)
        own = of.mean(axis=0)
        spread = own + (of - own) * (np.sqrt(seeds / (seeds - 1)) if seeds > 1 else 1.0) - own.mean()
        sums = np.concatenate([np.zeros((seeds, 1)), np.cumsum(spread, axis=1)], axis=1)
        weights = generator.multinomial(seeds, np.full(seeds, 1 / seeds), size=RESAMPLES) / seeds
        for seed in range(seeds):
            totals = (sums[seed][drawn + lengths] - sums[seed][drawn]).sum(axis=1)
            deviation += sign * weights[:, seed] * totals / windows
    low, high = np.quantile(deviation, [0.5 - confidence / 2, 0.5 + confidence / 2])
    return Estimate(mean, mean + float(low), mean + float(high), windows)


def judged(difference: Estimate, metric: str) -> str:
    """Return what a difference says: better, worse, not distinguishable, or that nothing can be told."""
    if np.isnan(difference.low):
        return "too few separate windows to tell"
    if metric.startswith("utilisation"):
        difference = Estimate(-difference.mean, -difference.high, -difference.low, difference.n)
    return verdict(difference)
