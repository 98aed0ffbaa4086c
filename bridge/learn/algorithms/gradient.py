"""Policy gradient as the trainer's algorithm: an update every few scheduling instances (DRAS, SEM).

Source: Y. Fan et al., "DRAS: Deep Reinforcement Learning for Cluster Scheduling in HPC", IPDPS 2021, §III;
B. Li et al., "Encoding for Reinforcement Learning Driven Scheduling", 2022, §IV.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bridge.base.arrays import Floats
from bridge.base.interrupts import raise_if_interrupted
from bridge.env.batch import PackedObservations
from bridge.env.encoder import Encoder
from bridge.learn.advantages import compute_gae
from bridge.learn.algorithms.log_learner import LogLearner
from bridge.learn.learner import EpochResult, Losses, TrainingContext, optimizer_step, tensors
from bridge.learn.network import log_softmax
from bridge.learn.recipe import Recipe
from bridge.learn.rollout import sample_actions, scores_of, select_waiting

#: The reward's column, named as in the recipe, where the error of a bad one leads.
REWARD = "gradient.reward"


def add_reward_feature(recipe: Recipe) -> Encoder:
    encoder = recipe.encoder
    return replace(encoder, features={**encoder.features, REWARD: recipe.gradient.reward}, padding=())


def standardised(values: Floats) -> Floats:
    """Return the values with mean 0 and deviation 1; zeros if all are the same."""
    spread = values.std()
    return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)


class _Steps:
    """Decisions since the last update: rows, sizes, context, actions, rewards and owners, step by step."""

    def __init__(self) -> None:
        self.steps: list[tuple[npt.NDArray[Any], ...]] = []
        self.instances = 0


class PolicyGradient(LogLearner):
    """REINFORCE with standardised returns, while the episode goes on."""

    def __init__(self, context: TrainingContext[Recipe]) -> None:
        super().__init__(context, add_reward_feature(context.recipe))
        rate = self.recipe.training.learning_rate
        self.adam = torch.optim.Adam(self.actor.parameters(), rate, fused=True)
        self.optimizers = {"actor": self.adam}

    def learn(self, epoch: int, rng: np.random.Generator) -> EpochResult:
        episodes = self.source.draw(epoch, rng)
        batch, places = episodes.batch, len(episodes.starts)
        view = batch.reset(episodes.starts)
        actions = np.zeros(len(batch.decision_kinds), np.int64)
        before = np.full(len(batch.decision_kinds), -1, np.int64)
        steps, losses, decisions, total = _Steps(), [], 0, 0.0
        while len(view.rows):
            raise_if_interrupted()
            live, waiting_view = select_waiting(view)
            rewards = waiting_view.rows[:, -1].astype(np.float64)
            waiting_view = PackedObservations(
                np.ascontiguousarray(waiting_view.rows[:, :-1]),
                waiting_view.offsets,
                waiting_view.keys,
                waiting_view.context,
            )
            fresh = int((batch.now[live] != before[live]).sum())
            if steps.instances + fresh > self.recipe.gradient.instances * places:
                losses.append(self._update(steps))
                steps = _Steps()
            before[live] = batch.now[live]
            answers, _ = sample_actions(*scores_of(self.actor, waiting_view), rng)
            step_rewards = rewards[waiting_view.offsets[:-1] + answers]
            steps.steps.append(
                (
                    waiting_view.rows,
                    np.diff(waiting_view.offsets),
                    waiting_view.context,
                    answers,
                    step_rewards,
                    live,
                )
            )
            steps.instances += fresh
            decisions, total = decisions + len(live), total + float(step_rewards.sum())
            actions[live] = answers
            view = batch.step(actions)
        if not decisions:
            raise self.nothing_to_decide()
        losses.append(self._update(steps))
        loss, entropy = np.mean(losses, 0)
        return EpochResult(
            train_mean=self.mean_cost(batch, places),
            base_mean=float(episodes.base.mean()),
            reward_mean=total / places,
            decisions=decisions,
            losses=Losses(float(loss), entropy=float(entropy), iterations=len(losses)),
        )

    def _update(self, steps: _Steps) -> tuple[float, float]:
        """Take one step up the gradient of what was seen; return the loss and the policy's mean entropy."""
        rows, sizes, context, actions, rewards, owner = map(np.concatenate, zip(*steps.steps, strict=True))
        returns = compute_gae(rewards, np.zeros(len(rewards)), owner, self.recipe.training.gamma, 1.0)[1]
        ends, gain = np.concatenate(([0], np.cumsum(sizes))), standardised(returns).astype(np.float32)
        offsets, seen_rows, around, chosen, gains = tensors(self.actor, ends, rows, context, actions, gain)
        every = log_softmax(self.actor(seen_rows, offsets, around)[:, 0], offsets)
        logp = every[offsets[:-1] + chosen]
        entropy = float(-(every.exp() * every).sum().detach()) / len(logp)
        return optimizer_step(-(logp * gains).mean(), self.adam), entropy
