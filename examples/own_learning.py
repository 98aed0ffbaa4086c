"""A policy and an algorithm of one's own: an agent that learns by random changes to its weights.

    cd examples
    bridge train own_learning:FRUGAL --algorithm own_learning:HillClimbing --epochs 20 --out agents/frugal
    bridge train --resume --algorithm own_learning:HillClimbing --epochs 40 --out agents/frugal
    bridge evaluate agents/frugal

A package makes them known by name with entry points of the groups `bridge.policies` and `bridge.algorithms`.
"""

import copy
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from bridge.env.encoder import Encoder
from bridge.learn.algorithms.log_learner import LogLearner
from bridge.learn.learner import EpochResult, Losses, TrainingContext
from bridge.learn.recipe import NetworkConfig, Recipe, Reward, TrainingConfig
from bridge.learn.rollout import copy_for_inference, make_action_function, play
from bridge.worlds.fast.scheduler_config import SchedulerConfig

FRUGAL = Recipe(
    name="frugal",
    setting="default",
    source="an example",
    summary="Chooses among the jobs that EASY allows.",
    setup=SchedulerConfig(order="fcfs", backfill="easy"),
    encoder=Encoder("backfill", {"length": "log10(1 + t)/5", "nodes": "n/n_max"}, window=32, stop=True),
    actor=NetworkConfig("kernel", (8,)),
    critic=NetworkConfig("pooled", (8,), (8,)),
    reward=Reward("bsld"),
    training=TrainingConfig(epochs=20, trajectories=20),
    guard="mask",
    options={"step": 0.3},
)


class HillClimbing(LogLearner):
    """Each epoch tries one random change of all weights, and keeps it if the same episodes go no worse.

    Its option ``step`` is the standard deviation of a change.
    """

    def __init__(self, given: TrainingContext[Recipe]) -> None:
        super().__init__(given)
        self.optimizers = {}
        self.step = float(self.recipe.options.get("step", 0.1))
        self.kept = 0

    def learn(self, epoch: int, rng: np.random.Generator) -> EpochResult:
        """See `bridge.learn.learner.Learner`."""
        drawn = self.source.draw(epoch, rng)
        other = copy.deepcopy(self.actor)
        with torch.no_grad():
            for weights in other.parameters():
                change = rng.normal(0.0, self.step, tuple(weights.shape)).astype(np.float32)
                weights.add_(torch.from_numpy(change).to(weights.device))
        values = []
        for actor in (self.actor, other):
            play(drawn.batch, make_action_function(copy_for_inference(actor), "greedy", 0), drawn.starts)
            values.append(self.mean_cost(drawn.batch, len(drawn.starts)))
        if values[1] <= values[0]:
            self.actor.load_state_dict(other.state_dict())
            self.kept += 1
        base = float(drawn.base.mean())
        return EpochResult(min(values), base, base - min(values), 0, Losses(min(values)), {"kept": self.kept})

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return what is needed to go on, beside the actor."""
        return {"kept": torch.tensor(self.kept)}

    def restore(self, tensors: Mapping[str, torch.Tensor], path: Path) -> None:
        """Take over what `tensors` returned."""
        super().restore(tensors, path)
        self.kept = int(tensors["kept"])
