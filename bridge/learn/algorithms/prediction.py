"""Direct future prediction as the trainer's algorithm: what will each answer do to the measurements?

Source: A. Dosovitskiy, V. Koltun, "Learning to Act by Predicting the Future", ICLR 2017; MRSch (B. Li et al.,
CLUSTER 2022), §III and §IV-A.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from bridge.base.arrays import Flags, Floats, Floats32, Ints
from bridge.base.errors import BridgeError
from bridge.env.batch import PackedObservations
from bridge.learn.algorithms.log_learner import EpisodeBatch, LogLearner
from bridge.learn.checkpoint import add_prefix, strip_prefix
from bridge.learn.learner import EpochResult, Losses, TrainingContext, optimizer_step, tensors
from bridge.learn.network import Future
from bridge.learn.recipe import Recipe
from bridge.learn.rollout import Rollout, argmax_actions, collect_by, pick_rows, scores_of


def targets(
    measured: Floats32, episode: Ints, offsets: tuple[int, ...], *, values: bool = False
) -> tuple[Floats32, Flags]:
    """Return by how much measurements change over each offset, and where the episode lasts that long.

    With `values` they are the measurements there, not their changes.

    `measured`: [D, R] at each decision, in the order of (episode, time). `episode`: [D] whose it is,
    ascending. `offsets`: decisions ahead; the results are [D, R, offsets], 0 behind an end, and [D, offsets].
    """
    n = len(measured)
    changes = np.zeros((*measured.shape, len(offsets)), np.float32)
    is_valid = np.zeros((n, len(offsets)), np.bool_)
    for k, ahead in enumerate(offsets):
        there = np.flatnonzero(episode[ahead:] == episode[: max(n - ahead, 0)])
        changes[there, :, k] = measured[there + ahead] - (0 if values else measured[there])
        is_valid[there, k] = True
    return changes, is_valid


#: What a replay has of each decision: stored name -> attribute.
_REMEMBERED = {name: name for name in ("rows", "counts", "context", "actions", "changes")} | {
    "known": "is_valid"
}


class ReplayBuffer:
    """The last decisions with their targets, at most `size` of them; the oldest are overwritten."""

    def __init__(self, size: int, window: int, features: int, context: int, shape: tuple[int, int]) -> None:
        self.rows = np.zeros((size, window, features), np.float32)
        self.counts = np.zeros(size, np.int64)
        self.context = np.zeros((size, context), np.float32)
        self.actions = np.zeros(size, np.int64)
        self.changes = np.zeros((size, *shape), np.float32)
        self.is_valid = np.zeros((size, shape[1]), np.bool_)
        self.filled, self._next = 0, 0

    def add(self, rollout: Rollout, changes: Floats32, is_valid: Flags) -> None:
        counts = np.diff(rollout.offsets)
        size = len(self.counts)
        keep = np.arange(max(len(rollout) - size, 0), len(rollout))
        where = (self._next + np.arange(len(keep))) % size
        rows, offsets = pick_rows(rollout.offsets, keep)
        owner = np.repeat(where, np.diff(offsets))
        place = np.arange(len(rows)) - np.repeat(offsets[:-1], np.diff(offsets))
        self.rows[owner, place] = rollout.rows[rows]
        self.counts[where], self.context[where] = counts[keep], rollout.context[keep]
        self.actions[where] = rollout.actions[keep]
        self.changes[where], self.is_valid[where] = changes[keep], is_valid[keep]
        self._next = int((self._next + len(keep)) % size)
        self.filled = min(self.filled + len(keep), size)

    def draw(self, rng: np.random.Generator, batch: int, *, consecutive: bool = False) -> Ints:
        """Return places of a batch: of any decisions, or of some that were remembered one after the other."""
        if not consecutive:
            return rng.integers(0, self.filled, batch)
        size = min(batch, self.filled)
        oldest = self._next if self.filled == len(self.counts) else 0
        first = oldest + int(rng.integers(0, self.filled - size + 1))
        return (first + np.arange(size)) % len(self.counts)

    def packed(self, which: Ints) -> tuple[Floats32, Ints, Floats32]:
        counts = self.counts[which]
        there = np.arange(self.rows.shape[1]) < counts[:, None]
        return self.rows[which][there], np.concatenate(([0], np.cumsum(counts))), self.context[which]

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        return {key: getattr(self, name)[: self.filled] for key, name in _REMEMBERED.items()} | {
            "next": np.array([self._next], np.int64)
        }

    def restore(self, arrays: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Remember what `arrays` returned; raises KeyError or ValueError if it is anything else."""
        self._next, self.filled = int(arrays["next"][0]), len(arrays["counts"])
        for key, name in _REMEMBERED.items():
            getattr(self, name)[: self.filled] = arrays[key]


class FuturePrediction(LogLearner):
    """ε-greedy episodes, and regression on the measured outcomes of actions."""

    def __init__(self, context: TrainingContext[Recipe]) -> None:
        super().__init__(context)
        assert isinstance(self.actor, Future)  # the recipe has been checked
        self.network = self.actor
        encoder, prediction = self.recipe.encoder, self.recipe.prediction
        rate = self.recipe.training.learning_rate
        self.adam = torch.optim.Adam(self.actor.parameters(), rate, betas=(0.95, 0.999), eps=1e-4, fused=True)
        self.optimizers = {"actor": self.adam}
        shape = (encoder.resources, len(prediction.offsets))
        self.replay = ReplayBuffer(prediction.replay, encoder.rows, encoder.width, encoder.context, shape)
        self.updates = self.decisions = 0

    @property
    def epsilon(self) -> float:
        prediction = self.recipe.prediction
        left = prediction.decay**self.updates
        if prediction.linear:
            left = 1.0 - self.decisions / prediction.linear
        return max(left, prediction.least)

    def learn(self, epoch: int, rng: np.random.Generator) -> EpochResult:
        prediction = self.recipe.prediction
        batch = self.source.draw(epoch, rng)
        rollout = self._collect(batch, rng)
        if len(rollout) == 0:
            raise self.nothing_to_decide()
        around, resources = self.network.context_size, self.recipe.encoder.resources
        measured = rollout.context[:, around : around + resources]
        values = prediction.targets == "values"
        self.replay.add(rollout, *targets(measured, rollout.episode, prediction.offsets, values=values))
        losses = [self._update(rng) for _ in range(max(1, len(rollout) // prediction.every))]
        return EpochResult(
            train_mean=self.mean(rollout.episodes),
            base_mean=float(batch.base.mean()),
            reward_mean=float(measured.mean()),
            decisions=len(rollout),
            losses=Losses(float(np.mean(losses)), iterations=len(losses)),
        )

    def _collect(self, batch: EpisodeBatch, rng: np.random.Generator) -> Rollout:
        def choose(view: PackedObservations) -> tuple[Ints, Floats]:
            sizes = np.diff(view.offsets)
            answers = argmax_actions(*scores_of(self.actor, view))
            random = rng.random(len(sizes)) < self.epsilon
            answers = np.where(random, (rng.random(len(sizes)) * sizes).astype(np.int64), answers)
            self.decisions += len(sizes)
            return answers, np.zeros(len(sizes))

        return collect_by(batch.batch, choose, batch.starts)

    def _update(self, rng: np.random.Generator) -> float:
        """Learn from a random batch, and return the mean squared error."""
        prediction = self.recipe.prediction
        which = self.replay.draw(rng, prediction.batch, consecutive=prediction.consecutive)
        came = (self.replay.actions[which], self.replay.is_valid[which], self.replay.changes[which])
        predicted = self.network.predict(*tensors(self.actor, *self.replay.packed(which)))
        actions, is_valid, changes = tensors(self.actor, *came)
        is_valid = is_valid[:, None, :]
        error = (predicted[torch.arange(len(which)), actions] - changes) * is_valid
        self.updates += 1
        return optimizer_step(
            (error**2).sum() / torch.clamp(is_valid.sum() * error.shape[1], min=1), self.adam
        )

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return the optimiser's memory, the replay, and how many updates there were."""
        remembered = {name: torch.from_numpy(array) for name, array in self.replay.arrays().items()}
        return {
            **super().tensors(),
            **add_prefix("replay.", remembered),
            "updates": torch.tensor(self.updates),
            "decisions": torch.tensor(self.decisions),
        }

    def restore(self, tensors: Mapping[str, torch.Tensor], path: Path) -> None:
        super().restore(tensors, path)
        remembered = {name: tensor.numpy() for name, tensor in strip_prefix("replay.", tensors).items()}
        try:
            self.updates = int(tensors["updates"])
            if self.recipe.prediction.linear or "decisions" in tensors:  # older files do not have it
                self.decisions = int(tensors["decisions"])
            self.replay.restore(remembered)
        except (KeyError, ValueError) as error:
            what = f"does not hold what this training remembers: {error}"
            remedy = "Do not mix files of several checkpoints."
            raise BridgeError(what, where=str(path), remedy=remedy) from None
