"""Run times as distributions: quantiles from what is known at submission, by one forest that is grown anew.

The forest learns logarithms from jobs that have ended; it is grown again every so many submissions.
"""

from dataclasses import dataclass, field, fields, replace

import numpy as np

from bridge.base.arrays import Floats, Ints
from bridge.base.errors import BridgeError
from bridge.base.progress import ProgressCallback, ignore_progress
from bridge.config import Count, verify
from bridge.prediction.features import features
from bridge.prediction.forest import Forest, ForestSettings
from bridge.prediction.submissions import MICRO, Submissions

#: Levels of the quantiles that are predicted.
LEVELS = np.array([0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98])
#: Believed of a job without a request before anything has ended, s.
_DAY = 86_400.0
#: A job runs for a second at least.
_SHORTEST = 1.0


@dataclass(frozen=True)
class Quantiles:
    """Quantiles of run times from a forest on `bridge.prediction.features`.

    Attributes:
        every: grow the forest again before every N-th job, in order of submission; more often at first,
            whenever the jobs have doubled.
        memory: learn from at most so many jobs, those that ended last.
        least: as long as fewer have ended, a job is believed to run for any part of its request alike.
    """

    every: Count = 2500
    memory: Count = 20_000
    least: Count = 200
    growth: ForestSettings = field(default_factory=ForestSettings)

    def __post_init__(self) -> None:
        verify(self, "predictor forest")

    def distributions(
        self, s: Submissions, progress: ProgressCallback = ignore_progress, first: int = 0
    ) -> Floats:
        """Return quantiles [n, Q] at `LEVELS`, s, each job's from jobs that had ended at its submission.

        They are from a second up to the job's request, and ascend with the level. `first`: spare the work for
        so many that were submitted first: their beliefs are not learnt.
        """
        believed = prior_quantiles(s)
        feature_rows = features(s)

        def size(begin: int) -> int:
            return min(self.every, max(self.least, begin))

        for block, learnt, done in s.training_blocks(size, self.memory, self.least, first):
            if len(learnt):
                forest = Forest(feature_rows[learnt], logarithm(s.run[learnt]), self.growth)
                believed[block] = bounded(forest.quantiles(feature_rows[block], LEVELS), s.request[block])
            progress(done)
        return believed

    def __call__(self, s: Submissions, progress: ProgressCallback = ignore_progress, /) -> Ints:
        """Predict medians, whole seconds."""
        return median(self.distributions(s, progress))


def median(quantiles: Floats) -> Ints:
    """Return medians of distributions at `LEVELS` as whole seconds in microseconds: [n]."""
    middle = int(np.flatnonzero(LEVELS == 0.5)[0])
    return np.maximum(np.rint(quantiles[:, middle]).astype(np.int64), 1) * MICRO


def logarithm(run: Ints) -> Floats:
    """Return logarithms of run times (microseconds) in seconds, of a second at least."""
    return np.log(np.maximum(run / MICRO, _SHORTEST))


def bounded(logarithms: Floats, request: Ints) -> Floats:
    """Return quantiles in seconds, none beyond the request (microseconds; not positive = unknown)."""
    most = np.where(request > 0, request / MICRO, np.inf)
    bounded_values: Floats = np.clip(np.exp(logarithms), _SHORTEST, np.maximum(most, _SHORTEST)[:, None])
    return bounded_values


def prior_quantiles(s: Submissions) -> Floats:
    """Return what is believed before anything is learnt: any part of the request is as likely as another."""
    request = np.where(s.request > 0, s.request / MICRO, _DAY)
    return np.asarray(np.maximum(request[:, None] * LEVELS, _SHORTEST), np.float64)


class OnlineQuantiles:
    """Distributions of run times, learnt on the way.

    The forest is grown again at the first question after every `Quantiles.every` ended jobs, at first
    whenever they have doubled, from the last `Quantiles.memory`: the cost of a job is set, however long the
    machine has worked.
    """

    def __init__(self, settings: Quantiles | None = None) -> None:
        self._settings = settings or Quantiles()
        self._ended: Submissions | None = None
        self._forest: Forest | None = None
        self._new = 0

    def update(self, ended: Submissions) -> None:
        """Learn of jobs that have ended, in the order of their ends; BridgeError: one has no run time."""
        if (ended.run <= 0).any():
            raise BridgeError("a job that has ended has a run time", where="online predictor")
        all_ended = ended if self._ended is None else joined(self._ended, ended)
        self._ended = all_ended.take(slice(-self._settings.memory, None))
        self._new += len(ended)

    def predict(self, submitted: Submissions) -> Floats:
        """Return quantiles at `LEVELS` of the run times of submitted jobs: [n, Q] seconds."""
        settings, ended = self._settings, self._ended
        if ended is None or len(ended) < settings.least:
            return prior_quantiles(submitted)
        before = len(ended) - self._new  # of the jobs remembered
        if self._forest is None or self._new >= min(settings.every, max(settings.least, before)):
            self._forest = Forest(features(ended), logarithm(ended.run), settings.growth)
            self._new = 0
        unknown = np.full(len(submitted), -1, np.int64)
        together = joined(ended, replace(submitted, run=unknown))
        return bounded(self._forest.quantiles(features(together)[len(ended) :], LEVELS), submitted.request)


def joined(first: Submissions, second: Submissions) -> Submissions:
    """Return the jobs of both, one behind the other; BridgeError: they have not the same columns."""
    parts: dict[str, object] = {}
    for name in (column.name for column in fields(Submissions)):
        one, other = getattr(first, name), getattr(second, name)
        if name not in ("extra_columns", "outcome"):
            parts[name] = np.concatenate((one, other))
            continue
        if one.keys() != other.keys():
            what = f"the columns {sorted(other)} are not those of earlier jobs, {sorted(one)}"
            raise BridgeError(what, where="online predictor")
        parts[name] = {key: np.concatenate((one[key], other[key])) for key in one}
    return Submissions(**parts)  # type: ignore[arg-type]
