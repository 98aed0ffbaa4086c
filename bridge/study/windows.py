"""The sequences of consecutive jobs that rows are judged on, and what they say of a training.

Which ones a test draws from a log, and intervals that include the training's own variance: over seeds and
over windows together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np

from bridge.base.arrays import Floats, Ints
from bridge.base.errors import BridgeError
from bridge.config import Constraint, Count, Natural, Positive, Share
from bridge.config.fields import record_of
from bridge.judge.sequences import SAMPLERS, sample
from bridge.judge.stats import ConfidenceInterval, block_length, series_interval, verdict

#: A part of a log that leaves something behind it.
LogFraction = Annotated[float, Constraint(ge=0, lt=1)]
#: The sampler that takes all jobs as one sequence.
WHOLE = "whole"


@dataclass(frozen=True)
class PoolDraw:
    """How a test's sequences are drawn on the pool.

    Attributes:
        rate: arrivals a step.
        steps: with arrivals.
        predictable: share of the jobs that are predicted while they run.
    """

    rate: Positive = 0.7
    steps: Count = 200
    predictable: Share = 1.0


@dataclass(frozen=True)
class TestSet:
    """Sequences on which policies are compared.

    Attributes:
        name: what tables call it.
        sampler: how they are drawn, see `bridge.judge.sequences`; `whole` takes all jobs as one sequence.
        sequences: how many are drawn.
        length: jobs a sequence.
        seed: of the draw.
        held_out: only behind the part of the log that agents learn from.
        behind: fraction of the log from which on jobs are held out, if not what the study says.
        seeds: of the draw by log, where they differ.
        pool_draw: how they are drawn on the time-stepped pool, where beside it only number and seed count.
    """

    name: str = "held-out"
    sampler: Annotated[str, Constraint(choices=lambda: (*SAMPLERS, WHOLE))] = "standard"
    sequences: Count = 200
    length: Count = 256
    seed: Natural = 1
    held_out: bool = True
    behind: LogFraction | None = None
    seeds: Mapping[str, int] = field(default_factory=dict)
    pool_draw: Annotated[PoolDraw, Constraint(key="drawn")] = field(default_factory=PoolDraw)

    def on(self, log: str) -> "TestSet":
        """Return the test as it is on one log."""
        return replace(self, seed=self.seeds.get(log, self.seed), seeds={})

    def as_key(self) -> dict[str, Any]:
        """Return the fields that determine the sequences, without the name."""
        fields = {**record_of(self), "name": ""}
        if self.pool_draw == PoolDraw():
            del fields["drawn"]
        return {name: value for name, value in fields.items() if value not in (None, {})}


def starts_of(test: TestSet, jobs: int, behind: float) -> tuple[Ints, int]:
    """Return the first jobs of a test's sequences, and their length; raises BridgeError if there are too few.

    `jobs`, `behind`: jobs of the log, and the fraction of it from which on they are held out.
    """
    behind = behind if test.behind is None else test.behind
    first = round(jobs * behind) if test.held_out else 0
    if first == jobs:
        remedy = "Judge on a longer log, or hold more of it out (held_out_from)."
        raise BridgeError(f"none of {jobs} jobs is held out", remedy=remedy)
    if test.sampler == WHOLE:
        return np.array([first], np.int64), jobs - first
    starts = sample(SAMPLERS[test.sampler], jobs - first, test.sequences, test.length, test.seed)
    return first + starts, test.length


def n_disjoint(starts: Ints, length: int) -> int:
    """Return how many sequences can be taken of which no two share a job."""
    taken, end = 0, -1
    for start in sorted(int(s) for s in starts):
        if start >= end:
            taken, end = taken + 1, start + length
    return taken


@dataclass(frozen=True)
class RowValues:
    """A row's values in a test: [seeds, windows] values, [windows] first jobs, and jobs a window."""

    of: Floats
    starts: Ints
    length: int

    @property
    def seeds(self) -> int:
        return len(self.of)

    @property
    def n_disjoint(self) -> int:
        return n_disjoint(self.starts, self.length)

    def has_same_sequences(self, other: "RowValues") -> bool:
        return self.length == other.length and np.array_equal(self.starts, other.starts)


def interval(mine: RowValues, base: RowValues | None = None) -> ConfidenceInterval:
    """Return a row's mean, or its mean difference to another row on the same windows, with an interval.

    It is over seeds, of both rows, and windows, the same for both, in blocks of neighbours as long as windows
    reach (`bridge.judge.stats.parts`); there is none where too few windows lie apart.
    """
    order = np.argsort(mine.starts, kind="stable")
    rows = [mine.of[:, order], *([-base.of[:, order]] if base else [])]
    return series_interval(rows, block_length(mine.starts, mine.length))


def spread(mine: RowValues, base: RowValues | None = None) -> tuple[float, float]:
    """Return the least and the largest mean of a row's seeds, or their differences to another row's mean."""
    means = mine.of.mean(axis=1) - (base.of.mean() if base else 0.0)
    return float(means.min()), float(means.max())


def judged(difference: ConfidenceInterval, metric: str) -> str:
    """Return the verdict on a difference: better, worse, not distinguishable, or unknown."""
    return verdict(-difference if metric.startswith("utilisation") else difference)
