"""Predictors by name: jobs of a log → believed lengths, each from jobs that had ended at its submission.

| name | predicts |
|---|---|
| history | the mean of the user's last two ended runs (Tsafrir, Etsion & Feitelson 2007) |
| trees | boosted trees on `bridge.prediction.features`, learnt again every so many jobs |
| forest | the median of `bridge.prediction.quantiles`, whose whole distributions one can have, too |

Neither believes more than a job's request, nor less than a second. Where nothing is known of a user the
request is believed; where there is none, the mean of all runs that had ended; where none had, an hour.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from bridge.base.arrays import Ints
from bridge.base.errors import BridgeError
from bridge.base.progress import ProgressCallback, ignore_progress
from bridge.config import Count, verify
from bridge.prediction.features import features, look_back
from bridge.prediction.forest import ForestSettings
from bridge.prediction.quantiles import Quantiles
from bridge.prediction.submissions import MICRO, Submissions, of_jobs
from bridge.prediction.trees import Boosting, fit
from bridge.scheduler.estimators import last_two_runs
from bridge.workload.select import Jobs

NAMES = ("forest", "trees", "history")
#: Believed of a job without a request before anything has ended, microseconds.
_HOUR = 3600 * MICRO
#: In place of a request that is not known, and of a wait that does not end; microseconds.
_UNKNOWN = 1 << 60
#: Quantile that trees believe of a log's jobs: the median has the smallest errors.
QUANTILE = 0.5


class Predictor(Protocol):
    """Jobs → believed lengths [n], microseconds, each from jobs that had ended at the submission."""

    def __call__(self, s: Submissions, progress: ProgressCallback = ignore_progress, /) -> Ints:
        """Predict; `progress` is called with the number of jobs done."""


@dataclass(frozen=True)
class History:
    """The mean of the user's last two ended runs."""

    def __call__(self, s: Submissions, progress: ProgressCallback = ignore_progress, /) -> Ints:
        """Predict; see `bridge.scheduler.estimators.last_two_runs`."""
        request = np.where(s.request > 0, s.request, _UNKNOWN)
        wait = np.where(s.run > 0, s.wait, _UNKNOWN)
        estimates = last_two_runs(s.user, s.submit, s.run, request, wait)
        nothing = estimates == _UNKNOWN
        if nothing.any():
            everyone = np.zeros(len(s), np.int64)
            ended = look_back(everyone, s.submit, s.end, np.maximum(s.run, 0))
            mean = np.where(ended.count > 0, ended.total // np.maximum(ended.count, 1), _HOUR)
            estimates = np.where(nothing, np.maximum(mean, MICRO), estimates)
        progress(len(s))
        return estimates


@dataclass(frozen=True)
class Trees:
    """Boosted trees, learnt again before every N-th job from what had ended by then.

    Attributes:
        every: N, in order of submission.
        memory: learn from at most so many jobs, those that ended last.
        least: as long as fewer have ended, the user's history predicts.
        boosting: settings of the trees. Half of the jobs outlive their median: let running jobs be believed
            to take what they asked for (estimator ``predicted(COLUMN, requested)``), or raise the quantile.
    """

    every: Count = 1000
    memory: Count = 20_000
    least: Count = 200
    boosting: Boosting = field(default_factory=lambda: Boosting(quantile=QUANTILE))

    def __post_init__(self) -> None:
        verify(self, "predictor trees")

    def __call__(self, s: Submissions, progress: ProgressCallback = ignore_progress, /) -> Ints:
        """Predict whole seconds."""
        predicted = History()(s)
        feature_rows = features(s)
        for block, learnt, done in s.training_blocks(lambda _: self.every, self.memory, self.least):
            if len(learnt):
                seconds = fit(feature_rows[learnt], s.run[learnt] / MICRO, self.boosting)(feature_rows[block])
                longest = np.where(s.request > 0, s.request, _UNKNOWN)[block]
                whole = np.rint(seconds).astype(np.int64) * MICRO
                predicted[block] = np.maximum(np.minimum(whole, longest), MICRO)
            progress(done)
        return predicted


def predictor(
    name: str,
    *,
    every: int | None = None,
    memory: int = Trees.memory,
    quantile: float = QUANTILE,
    seed: int = 0,
) -> Predictor:
    """Return a predictor by its name; BridgeError: there is none, or a number is out of its range."""
    if name == "history":
        return History()
    if name == "forest":
        return Quantiles(every or Quantiles.every, memory, growth=ForestSettings(seed=seed))
    if name == "trees":
        return Trees(every or Trees.every, memory, boosting=Boosting(quantile=quantile, seed=seed))
    raise BridgeError(f"unknown predictor {name!r}", remedy=f"Choose {' or '.join(NAMES)}.")


def for_jobs(predict: Predictor) -> Callable[[Jobs], Ints]:
    """Return a predictor as `bridge.worlds.fast.episode.prepare` takes it for the estimator ``predicted``."""
    return lambda jobs: predict(of_jobs(jobs))
