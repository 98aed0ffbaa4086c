"""Predictors by name: jobs of a log → believed lengths, each from jobs that had ended at its submission.

| name | predicts |
|---|---|
| history | the mean of the user's last two ended runs (Tsafrir, Etsion & Feitelson 2007) |
| trees | boosted trees on `bridge.predict.features`, learnt again every so many jobs |
| forest | the median of `bridge.predict.quantiles`, whose whole distributions one can have, too |

Neither believes more than a job's request, nor less than a second. Where nothing is known of a user the
request is believed; where there is none, the mean of all runs that had ended; where none had, an hour.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from bridge.arrays import Ints
from bridge.config import Count, verify
from bridge.errors import BridgeError
from bridge.predict.features import earlier, features
from bridge.predict.forest import Growth
from bridge.predict.quantiles import Quantiles
from bridge.predict.submissions import MICRO, Submissions, of_jobs
from bridge.predict.trees import Boosting, fit
from bridge.scheduler.estimators import last_two_runs
from bridge.watch import Told, unseen
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

    def __call__(self, s: Submissions, progress: Told = unseen, /) -> Ints:
        """Predict; `progress` is called with the number of jobs done."""


@dataclass(frozen=True)
class History:
    """The mean of the user's last two ended runs."""

    def __call__(self, s: Submissions, progress: Told = unseen, /) -> Ints:
        """Predict; see `bridge.scheduler.estimators.last_two_runs`."""
        request = np.where(s.request > 0, s.request, _UNKNOWN)
        wait = np.where(s.run > 0, s.wait, _UNKNOWN)
        found = last_two_runs(s.user, s.submit, s.run, request, wait)
        nothing = found == _UNKNOWN
        if nothing.any():
            everyone = np.zeros(len(s), np.int64)
            ended = earlier(everyone, s.submit, s.end, np.maximum(s.run, 0))
            mean = np.where(ended.count > 0, ended.total // np.maximum(ended.count, 1), _HOUR)
            found = np.where(nothing, np.maximum(mean, MICRO), found)
        progress(len(s))
        return found


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

    def __call__(self, s: Submissions, progress: Told = unseen, /) -> Ints:
        """Predict whole seconds."""
        predicted = History()(s)
        known = features(s)
        for block, learnt, done in s.in_turn(lambda _: self.every, self.memory, self.least):
            if len(learnt):
                seconds = fit(known[learnt], s.run[learnt] / MICRO, self.boosting)(known[block])
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
        return Quantiles(every or Quantiles.every, memory, growth=Growth(seed=seed))
    if name == "trees":
        return Trees(every or Trees.every, memory, boosting=Boosting(quantile=quantile, seed=seed))
    raise BridgeError(f"unknown predictor {name!r}", remedy=f"Choose {' or '.join(NAMES)}.")


def for_jobs(predict: Predictor) -> Callable[[Jobs], Ints]:
    """Return a predictor as `bridge.fast.episode.prepare` takes it for the estimator ``predicted``."""
    return lambda jobs: predict(of_jobs(jobs))
