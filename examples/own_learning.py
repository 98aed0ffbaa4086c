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

from bridge.encode.encoder import Encoder
from bridge.fast.setup import Setup
from bridge.learn.algorithms.event import EventLearner
from bridge.learn.learner import Assignment, Learnt, Losses
from bridge.learn.recipe import Network, Recipe, Reward, Training
from bridge.learn.rollout import decided, deciding, play

FRUGAL = Recipe(
    name="frugal",
    setting="default",
    source="an example",
    summary="Chooses among the jobs that EASY allows.",
    setup=Setup(order="fcfs", backfill="easy"),
    encoder=Encoder("backfill", {"length": "log10(1 + t)/5", "nodes": "n/n_max"}, window=32, stop=True),
    actor=Network("kernel", (8,)),
    critic=Network("pooled", (8,), (8,)),
    reward=Reward("bsld"),
    training=Training(epochs=20, trajectories=20),
    guard="mask",
    options={"step": 0.3},
)


class HillClimbing(EventLearner):
    """Each epoch tries one random change of all weights, and keeps it if the same episodes go no worse.

    Its option ``step`` is the standard deviation of a change.
    """

    def __init__(self, given: Assignment[Recipe]) -> None:
        super().__init__(given)
        self.adams = {}
        self.step = float(self.recipe.options.get("step", 0.1))
        self.kept = 0

    def learn(self, epoch: int, rng: np.random.Generator) -> Learnt:
        """See `bridge.learn.learner.Learner`."""
        drawn = self.source.draw(epoch, rng)
        other = copy.deepcopy(self.actor)
        with torch.no_grad():
            for weights in other.parameters():
                change = rng.normal(0.0, self.step, tuple(weights.shape)).astype(np.float32)
                weights.add_(torch.from_numpy(change).to(weights.device))
        values = []
        for actor in (self.actor, other):
            play(drawn.batch, deciding(decided(actor), "greedy", 0), drawn.starts)
            values.append(self.played(drawn.batch, len(drawn.starts)))
        if values[1] <= values[0]:
            self.actor.load_state_dict(other.state_dict())
            self.kept += 1
        base = float(drawn.base.mean())
        return Learnt(min(values), base, base - min(values), 0, Losses(min(values)), {"kept": self.kept})

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return what is needed to go on, beside the actor."""
        return {"kept": torch.tensor(self.kept)}

    def restore(self, tensors: Mapping[str, torch.Tensor], path: Path) -> None:
        """Take over what `tensors` returned."""
        super().restore(tensors, path)
        self.kept = int(tensors["kept"])
