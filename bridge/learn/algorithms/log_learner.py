"""What the event-driven scheduler's algorithms share: where episodes come from, and how they are validated.

A curriculum has episodes of several kinds one after the other: ``real``, slices of the training part, and
those of `bridge.workload.derive`.
"""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from torch import nn

from bridge.base.arrays import Floats, Ints
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.env.batch import Batch
from bridge.env.encoder import Encoder
from bridge.env.episode_starts import jobs_of, part_bounds
from bridge.env.reward import EpisodeOutcome, base_costs, episode_of
from bridge.learn.agent import schedules_by
from bridge.learn.learner import NAN, Learner, Mode, TrainingContext
from bridge.learn.network import actor_of
from bridge.learn.picks import batch_of, picking_agent, picks_of
from bridge.learn.recipe import Recipe
from bridge.learn.rollout import copy_for_inference, make_action_function, play
from bridge.workload.derive import sample_similar
from bridge.workload.select import Jobs
from bridge.worlds.fast.replay import replay_sequences

#: How many draws an episode that must be busy has.
_DRAWS = 4


class EpisodeBatch(NamedTuple):
    """Episodes to learn from: what plays them, their first jobs, the base policy's metric on each."""

    batch: Batch
    starts: Ints
    base: Floats


class EpisodeSource:
    """The workload of a training, its parts, and the episodes of each epoch.

    `jobs`: the workload, as the recipe's rules select it. `constants`: of the encoder's features. `together`:
    episodes that its batch can play at once. `collecting`: see `LogLearner`. `share`: episodes an epoch, if
    not the recipe's: other logs have the rest. BridgeError: a part holds no episode.
    """

    def __init__(
        self,
        recipe: Recipe,
        jobs: Jobs,
        constants: Mapping[str, float],
        together: int,
        collecting: Encoder | None = None,
        share: int = 0,
    ) -> None:
        self.recipe = recipe
        training = recipe.training
        self.share = share or training.trajectories
        self.prepared = recipe.setup.build_scenario(jobs, recipe.policy())
        self.picks = picks_of(picking_agent(recipe))
        self.base, self.play_base = recipe.base().build_scenario(jobs), replay_sequences
        if self.picks and not recipe.reward.base_order:  # the base is who picks, without the inspector
            self.base = recipe.setup.build_scenario(jobs, recipe.setup.policy("pick"))
            self.play_base = functools.partial(schedules_by, *self.picks)
        self.part, self.valid = (
            part_bounds(len(jobs), training.part),
            part_bounds(len(jobs), training.validation),
        )
        if training.first_jobs:
            self.part = self.part[0], min(self.part[1], training.first_jobs)
        unseen = self.valid[1] - training.validation_jobs
        if training.validation_jobs and unseen >= self.valid[0]:  # else it is refused
            self.part = self.part[0], max(self.part[0], min(self.part[1], unseen))
        #: Jobs of a validation sequence.
        self.valid_length = training.validation_jobs or training.length
        lengths = (training.length, self.valid_length)
        for name, (low, high), length in zip(
            ("part", "validation"), (self.part, self.valid), lengths, strict=True
        ):
            if high - low < length and not (name == "validation" and low == high):
                what = f"the {name} of {counted(high - low, 'job')} holds no episode of {length}"
                remedy = "Use a longer log or a smaller training.length."
                raise BridgeError(what, where=jobs.name, remedy=remedy)
        self.encoder = (collecting or recipe.encoder).compile(constants)
        played = self.prepared
        if training.order:
            policy = replace(recipe.policy(), order=training.order)
            played = recipe.setup.build_scenario(jobs, policy)
        self.batch = batch_of(played, self.encoder, together, training.length, self.picks)
        phases = (phase.split(":") for phase in training.curriculum)
        self._kinds = [kind for kind, epochs in phases for _ in range(int(epochs))]

    def values(self, starts: Ints, length: int = 0) -> Floats:
        """Return what the base policy's schedules cost of the episodes that begin there."""
        length = length or self.recipe.training.length
        return base_costs(self.base, starts, length, self.recipe.reward, self.play_base)

    def valid_starts(self, most: int) -> Ints:
        low, high = self.valid
        if low == high:
            return np.zeros(0, np.int64)
        first = high - self.valid_length if self.recipe.training.validation_jobs else low
        return np.unique(np.linspace(first, high - self.valid_length, most).astype(np.int64))

    def draw(self, epoch: int, rng: np.random.Generator) -> EpisodeBatch:
        training, (low, high) = self.recipe.training, self.part
        n, length = self.share, training.length
        kind = self._kinds[min(epoch, len(self._kinds) - 1)] if self._kinds else "real"
        if kind != "real":
            jobs = sample_similar(self.prepared.jobs.take(slice(low, high)), kind, n, length, rng)
            recipe, starts = self.recipe, np.arange(n) * length
            played = recipe.setup.build_scenario(jobs, recipe.policy())
            costs = base_costs(recipe.base().build_scenario(jobs), starts, length, recipe.reward)
            return EpisodeBatch(batch_of(played, self.encoder, n, length, None), starts, costs)
        if training.min_base_metric <= 0:
            starts = rng.integers(low, high - length + 1, n)
            return EpisodeBatch(self.batch, starts, self.values(starts))
        starts = rng.integers(low, high - length + 1, _DRAWS * n)
        base = self.values(starts)
        chosen = np.argsort(base < training.min_base_metric, kind="stable")[
            :n
        ]  # the busy ones first, as drawn
        return EpisodeBatch(self.batch, starts[chosen], base[chosen])


#: Sequences of a validation.
VALIDATION = 100


class ValidationSet(NamedTuple):
    batch: Batch
    starts: Ints
    base: float


def _over_logs(means: list[float]) -> float:
    """Return the geometric mean: logs count alike, whatever their load."""
    return means[0] if len(means) == 1 else float(np.exp(np.mean(np.log(means))))


class LogLearner(Learner):
    """Learns on episodes of a log, or of several.

    `collecting`: what is seen while episodes are collected, if it is more than the recipe's encoder shows.

    Attributes:
        recipe, origin: as given.
        sources, validations: of each log: the episodes, and the validation sequences.
        source, valid_starts: the workload's own episodes; first jobs of its validation sequences.
    """

    def __init__(self, context: TrainingContext[Recipe], collecting: Encoder | None = None) -> None:
        self.recipe, self.origin = context.recipe, context.origin
        training, constants = context.recipe.training, context.origin.constants
        logs = [context.jobs, *(jobs_of(name, context.recipe.setup) for name in training.logs)]
        shares = [len(part) for part in np.array_split(np.arange(training.trajectories), len(logs))]
        judged = -(-VALIDATION // len(logs))
        self.sources, self.validations = list[EpisodeSource](), list[ValidationSet]()
        for jobs, share in zip(logs, shares, strict=True):
            together = share if collecting else max(share, judged)
            source = EpisodeSource(context.recipe, jobs, constants, together, collecting, share)
            batch, starts, length = source.batch, source.valid_starts(judged), source.valid_length
            if collecting or training.order or length != training.length:
                # validation neither sees the rest nor has another order
                compiled_encoder = context.recipe.encoder.compile(constants)
                batch = batch_of(source.prepared, compiled_encoder, max(1, len(starts)), length, source.picks)
            base = float(source.values(starts, length).mean()) if len(starts) else NAN
            self.sources.append(source)
            self.validations.append(ValidationSet(batch, starts, base))
        self.source, self.valid_starts = self.sources[0], self.validations[0].starts
        self.base = _over_logs([one.base for one in self.validations])
        self.actor = actor_of(context.recipe).to(context.device)

    def validate(self, actor: nn.Module, mode: Mode) -> float:
        """See `Learner`; over several logs the geometric mean."""
        answer, means = make_action_function(copy_for_inference(actor), mode, self.origin.seed), []
        for one in self.validations:
            play(one.batch, answer, one.starts)
            means.append(self.mean_cost(one.batch, len(one.starts)))
        return _over_logs(means)

    def mean_cost(self, batch: Batch, n: int) -> float:
        return self.mean(episode_of(batch, b) for b in range(n))

    def mean(self, episodes: Iterable[EpisodeOutcome]) -> float:
        """Return what episodes cost, the mean; without a price on idle nodes that is the metric's."""
        return float(np.mean([self.recipe.reward.cost(episode) for episode in episodes]))

    def nothing_to_decide(self) -> BridgeError:
        """Return the error of an epoch without a decision."""
        return BridgeError(
            "no decision had to be taken in a whole epoch",
            where=self.source.prepared.jobs.name,
            remedy="Nothing ever waits that could go first: use another log, or raise its load.",
        )
