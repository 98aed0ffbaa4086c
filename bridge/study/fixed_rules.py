"""Fixed rules, which learning must beat: they answer decisions without having learnt."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bridge.base.arrays import Ints
from bridge.env.batch import PackedObservations
from bridge.env.encoder import Encoder
from bridge.learn.rollout import argmax_actions


class FixedRule(Protocol):
    """Protocol of fixed rules: an encoder, and actions."""

    def encoder(self) -> Encoder:
        """Return the encoder of the decision that the rule answers."""

    def __call__(self, view: PackedObservations) -> Ints:
        """Return an answer for each decision."""


@dataclass(frozen=True)
class RejectRule:
    """A rule for INSPECT: a pick is rejected where any of the expressions (of features) is above 0."""

    expressions: tuple[str, ...]

    def encoder(self) -> Encoder:
        return Encoder("inspect", {str(k): text for k, text in enumerate(self.expressions)})

    def __call__(self, view: PackedObservations) -> Ints:
        return np.asarray((view.rows > 0).any(1), np.int64)


@dataclass(frozen=True)
class BackfillRule:
    """A rule for BACKFILL: of all that fit, the candidate with the largest value of an expression, the first.

    Attributes:
        expression: of features.
        guard: whether only what EASY allows is a candidate.
    """

    expression: str
    guard: bool = False

    def encoder(self) -> Encoder:
        return Encoder("backfill", {"value": self.expression})

    def __call__(self, view: PackedObservations) -> Ints:
        return argmax_actions(view.rows[:, 0].astype(np.float64), np.diff(view.offsets))
