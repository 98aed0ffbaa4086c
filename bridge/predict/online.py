"""A predictor that learns while a machine works: told of jobs that have ended, asked about submitted ones."""

from dataclasses import fields, replace

import numpy as np

from bridge.arrays import Floats
from bridge.errors import BridgeError
from bridge.predict.features import features
from bridge.predict.forest import Forest
from bridge.predict.quantiles import LEVELS, Quantiles, bounded, logarithm, unlearnt
from bridge.predict.submissions import Submissions


class Online:
    """Distributions of run times, learnt on the way.

    The forest is grown again at the first question after every `Quantiles.every` ended jobs, at first
    whenever they have doubled, from the last `Quantiles.memory`: the cost of a job is set, however long the
    machine has worked.

    Args:
        settings: as for a log.
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
        known = ended if self._ended is None else joined(self._ended, ended)
        self._ended = known.take(slice(-self._settings.memory, None))
        self._new += len(ended)

    def believe(self, submitted: Submissions) -> Floats:
        """Return quantiles at `LEVELS` of the run times of submitted jobs: [n, Q] seconds."""
        settings, ended = self._settings, self._ended
        if ended is None or len(ended) < settings.least:
            return unlearnt(submitted)
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
    for field in fields(Submissions):
        one, other = getattr(first, field.name), getattr(second, field.name)
        if field.name not in ("known", "outcome"):
            parts[field.name] = np.concatenate((one, other))
            continue
        if one.keys() != other.keys():
            what = f"the columns {sorted(other)} are not those of earlier jobs, {sorted(one)}"
            raise BridgeError(what, where="online predictor")
        parts[field.name] = {name: np.concatenate((one[name], other[name])) for name in one}
    return Submissions(**parts)  # type: ignore[arg-type]
