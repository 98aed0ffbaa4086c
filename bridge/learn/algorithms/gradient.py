"""Policy gradient as the trainer's algorithm: an update every few scheduling instances (DRAS, SEM).

Source: Y. Fan et al., "DRAS: Deep Reinforcement Learning for Cluster Scheduling in HPC", IPDPS 2021, §III;
B. Li et al., "Encoding for Reinforcement Learning Driven Scheduling", 2022, §IV.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bridge.arrays import Floats
from bridge.encode.encoder import Encoder
from bridge.env.batch import View
from bridge.learn.advantages import advantages
from bridge.learn.algorithms.event import EventLearner
from bridge.learn.learner import Assignment, Learnt, Losses, descend, tensors
from bridge.learn.network import log_softmax
from bridge.learn.recipe import Recipe
from bridge.learn.rollout import draw, live_of, scores_of

#: The reward's column, named as in the recipe, where the error of a bad one leads.
REWARD = "gradient.reward"


def with_reward(recipe: Recipe) -> Encoder:
    """Return the recipe's encoder with the reward as its last column."""
    encoder = recipe.encoder
    return replace(encoder, features={**encoder.features, REWARD: recipe.gradient.reward}, padding=())


def standardised(values: Floats) -> Floats:
    """Return the values with mean 0 and deviation 1; zeros if all are the same."""
    spread = values.std()
    return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)


class _Seen:
    """Decisions since the last update: rows, sizes, context, actions, rewards and owners, step by step."""

    def __init__(self) -> None:
        self.steps: list[tuple[npt.NDArray[Any], ...]] = []
        self.instances = 0


class PolicyGradient(EventLearner):
    """REINFORCE with standardised returns, while the episode goes on."""

    def __init__(self, given: Assignment[Recipe]) -> None:
        super().__init__(given, with_reward(given.recipe))
        rate = self.recipe.training.learning_rate
        self.adam = torch.optim.Adam(self.actor.parameters(), rate, fused=True)
        self.adams = {"actor": self.adam}

    def learn(self, epoch: int, rng: np.random.Generator) -> Learnt:
        drawn = self.source.draw(epoch, rng)
        batch, places = drawn.batch, len(drawn.starts)
        view = batch.reset(drawn.starts)
        actions = np.zeros(len(batch.kinds), np.int64)
        before = np.full(len(batch.kinds), -1, np.int64)
        seen, losses, decisions, total = _Seen(), [], 0, 0.0
        while len(view.rows):
            live, asked = live_of(view)
            rewards = asked.rows[:, -1].astype(np.float64)
            asked = View(np.ascontiguousarray(asked.rows[:, :-1]), asked.offsets, asked.keys, asked.context)
            fresh = int((batch.now[live] != before[live]).sum())
            if seen.instances + fresh > self.recipe.gradient.instances * places:
                losses.append(self._update(seen))
                seen = _Seen()
            before[live] = batch.now[live]
            answers, _ = draw(*scores_of(self.actor, asked), rng)
            given = rewards[asked.offsets[:-1] + answers]
            seen.steps.append((asked.rows, np.diff(asked.offsets), asked.context, answers, given, live))
            seen.instances += fresh
            decisions, total = decisions + len(live), total + float(given.sum())
            actions[live] = answers
            view = batch.step(actions)
        if not decisions:
            raise self.nothing_to_decide()
        losses.append(self._update(seen))
        loss, entropy = np.mean(losses, 0)
        return Learnt(
            train_mean=self.played(batch, places),
            base_mean=float(drawn.base.mean()),
            reward_mean=total / places,
            decisions=decisions,
            losses=Losses(float(loss), entropy=float(entropy), iterations=len(losses)),
        )

    def _update(self, seen: _Seen) -> tuple[float, float]:
        """Take one step up the gradient of what was seen; return the loss and the policy's mean entropy."""
        rows, sizes, context, actions, rewards, owner = map(np.concatenate, zip(*seen.steps, strict=True))
        returns = advantages(rewards, np.zeros(len(rewards)), owner, self.recipe.training.gamma, 1.0)[1]
        ends, gain = np.concatenate(([0], np.cumsum(sizes))), standardised(returns).astype(np.float32)
        offsets, seen_rows, around, chosen, gains = tensors(self.actor, ends, rows, context, actions, gain)
        every = log_softmax(self.actor(seen_rows, offsets, around)[:, 0], offsets)
        logp = every[offsets[:-1] + chosen]
        entropy = float(-(every.exp() * every).sum().detach()) / len(logp)
        return descend(-(logp * gains).mean(), self.adam), entropy
