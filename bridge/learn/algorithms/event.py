"""What the event-driven scheduler's algorithms share: episodes of a log, and how they are validated."""

import numpy as np
from torch import nn

from bridge.encode.encoder import Encoder
from bridge.env.batch import Batch
from bridge.env.reward import episode_of
from bridge.errors import BridgeError
from bridge.learn.curriculum import Source
from bridge.learn.learner import NAN, Assignment, Learner, Mode
from bridge.learn.network import actor_of
from bridge.learn.recipe import Recipe
from bridge.learn.rollout import decided, deciding, play

#: Sequences of a validation.
VALIDATION = 100


class EventLearner(Learner):
    """Learns on episodes of a log.

    Args:
        given: recipe, jobs and origin.
        collecting: what is seen while episodes are collected, if it is more than the recipe's encoder shows.

    Attributes:
        recipe, origin: as given.
        source: the episodes.
        batch: plays the validation sequences.
        valid_starts: their first jobs.
    """

    def __init__(self, given: Assignment[Recipe], collecting: Encoder | None = None) -> None:
        self.recipe, self.origin = given.recipe, given.origin
        training, constants = given.recipe.training, given.origin.constants
        together = training.trajectories if collecting else max(training.trajectories, VALIDATION)
        self.source = Source(given.recipe, given.jobs, constants, together, collecting)
        self.batch = self.source.batch
        if collecting:  # validation does not see the rest
            seen = given.recipe.encoder.compile(constants)
            self.batch = Batch(self.source.prepared, seen, VALIDATION, training.length)
        low, high = self.source.valid
        starts = np.linspace(low, high - training.length, VALIDATION) if high > low else np.zeros(0)
        self.valid_starts = np.unique(starts.astype(np.int64))
        self._base = NAN
        if len(self.valid_starts):
            self._base = float(self.source.values(self.valid_starts).mean())
        self.actor = actor_of(given.recipe).to(given.device)

    @property
    def base(self) -> float:
        """See `Learner`."""
        return self._base

    def validate(self, actor: nn.Module, mode: Mode) -> float:
        """See `Learner`."""
        play(self.batch, deciding(decided(actor), mode, self.origin.seed), self.valid_starts)
        return self.played(self.batch, len(self.valid_starts))

    def played(self, batch: Batch, n: int) -> float:
        """Return the metric's mean over the first n episodes of a batch."""
        metric = self.recipe.reward.metric
        return float(np.mean([episode_of(batch, b).value(metric) for b in range(n)]))

    def nothing_to_decide(self) -> BridgeError:
        """Return the error of an epoch without a decision."""
        return BridgeError(
            "no decision had to be taken in a whole epoch",
            where=self.source.prepared.jobs.name,
            remedy="The machine is never busy: use another log, or raise its load.",
        )
