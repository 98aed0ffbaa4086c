"""PPO as the trainer's algorithm: rewards that compare with the base policy, an actor and a critic."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from bridge.env.reward import rewards
from bridge.errors import BridgeError
from bridge.learn import checkpoint
from bridge.learn.checkpoint import Origin
from bridge.learn.curriculum import Source
from bridge.learn.imitate import imitate, with_teacher
from bridge.learn.learner import Learnt, adam_tensors, restore_adam
from bridge.learn.network import actor_of, critic_of, lean
from bridge.learn.ppo import Update
from bridge.learn.recipe import Recipe
from bridge.learn.rollout import Trajectories, collect

Floats = npt.NDArray[np.float64]

#: Second word of the seed of imitation, which no epoch has.
_LESSON = 2**31
#: Episodes whose base values tell how large a typical one is.
_TYPICAL = 100


class Ppo:
    """Whole episodes, then a few passes of proximal policy optimisation over them.

    Args:
        recipe: what to train.
        origin: for the seed, and the constants of a teacher.
        source: episodes.
        device: ``cpu`` or ``cuda``.
    """

    def __init__(self, recipe: Recipe, origin: Origin, source: Source, device: str) -> None:
        training = recipe.training
        self.recipe, self.origin, self.source = recipe, origin, source
        if training.teacher:
            with_teacher(recipe.encoder, training.teacher).compile(origin.constants)  # refuses it now
        self.actor, self.critic = actor_of(recipe).to(device), critic_of(recipe).to(device)
        self.adams = (
            torch.optim.Adam(self.actor.parameters(), training.learning_rate),
            torch.optim.Adam(self.critic.parameters(), training.critic_rate),
        )
        self._unit = 1.0  # a critic learns differences of thousands badly: count them in typical episodes
        if recipe.reward.form in ("native", "plain"):
            low, high = source.part
            typical = np.linspace(low, high - training.length, _TYPICAL).astype(np.int64)
            self._unit = max(float(source.values(typical).mean()), 1e-9)

    def begin(self) -> None:
        """Give the actor a start: a leaning, good habits, or neither."""
        training = self.recipe.training
        rng = np.random.default_rng([self.origin.seed, _LESSON])
        if training.rejecting:
            lean(self.actor, training.rejecting)
        if training.teacher:
            starts = self.source.draw(0, rng).starts
            imitate(self.recipe, self.origin, self.source.prepared, self.actor, starts, rng)

    def learn(self, epoch: int, rng: np.random.Generator) -> Learnt:
        """See `bridge.learn.learner.Learner`."""
        training, metric = self.recipe.training, self.recipe.reward.metric
        self._anneal(epoch)
        drawn = self.source.draw(epoch, rng)
        seen = collect(drawn.batch, self.actor, drawn.starts, rng)
        if len(seen) == 0:
            raise nothing_to_decide(self.source)
        given = self._rewards(seen, drawn.base)
        learns = replace(training, iterations=0) if epoch < training.warmup else training
        losses = Update(seen, given, self.actor, self.critic, learns).run(*self.adams, rng)
        return Learnt(
            train_mean=float(np.mean([e.value(metric) for e in seen.episodes])),
            base_mean=float(drawn.base.mean()),
            reward_mean=float(given.sum() / len(drawn.starts)),
            decisions=len(seen),
            losses=losses,
        )

    def _anneal(self, epoch: int) -> None:
        training = self.recipe.training
        left = 1.0 - 0.9 * epoch / max(training.epochs - 1, 1) if training.anneal else 1.0
        for adam, rate in zip(self.adams, (training.learning_rate, training.critic_rate), strict=True):
            adam.param_groups[0]["lr"] = rate * left

    def _rewards(self, seen: Trajectories, base: Floats) -> Floats:
        ends = np.searchsorted(seen.episode, np.arange(len(seen.episodes) + 1))
        parts = [
            rewards(self.recipe.reward, episode, float(base[e]), seen.times[a:b], seen.late[a:b])
            for e, (episode, a, b) in enumerate(zip(seen.episodes, ends, ends[1:], strict=False))
        ]
        return np.concatenate(parts) / self._unit

    def extra(self) -> dict[str, torch.Tensor]:
        """Return the critic's weights."""
        return {f"critic.{k}": v for k, v in self.critic.state_dict().items()}

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return the optimisers' memories."""
        return adam_tensors("actor", self.adams[0]) | adam_tensors("critic", self.adams[1])

    def restore(self, tensors: Mapping[str, torch.Tensor], path: Path) -> None:
        """See `bridge.learn.learner.Learner`."""
        checkpoint.fill(self.critic, tensors, "now.critic.", path)
        for which, adam in zip(("actor", "critic"), self.adams, strict=True):
            restore_adam(which, adam, tensors)


def nothing_to_decide(source: Source) -> BridgeError:
    """Return the error of an epoch without a decision."""
    return BridgeError(
        "no decision had to be taken in a whole epoch",
        where=source.prepared.jobs.name,
        remedy="The machine is never busy: use another log, or raise its load.",
    )
