"""What an algorithm of learning is to the trainer: an actor, epochs, and tensors from which it goes on."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn, optim

NAN = float("nan")


@dataclass(frozen=True)
class Losses:
    """How an epoch's updates went; NaN where the algorithm has no such thing.

    Attributes:
        policy_loss, value_loss: of the last update; of the mean over updates where there are thousands.
        kl, entropy, clip_fraction: of the policy, against the one that played.
        iterations: updates.
    """

    policy_loss: float
    value_loss: float = NAN
    kl: float = NAN
    entropy: float = NAN
    clip_fraction: float = NAN
    iterations: int = 0


@dataclass(frozen=True)
class Learnt:
    """What an epoch brought: means over its episodes of the metric (agent, base) and the sum of rewards."""

    train_mean: float
    base_mean: float
    reward_mean: float
    decisions: int
    losses: Losses


class Learner(Protocol):
    """Learns epoch by epoch; same seed, same bits, also when it goes on from `tensors`."""

    #: What is trained.
    actor: nn.Module

    def begin(self) -> None:
        """Give the actor a start, before the first epoch."""
        ...

    def learn(self, epoch: int, rng: np.random.Generator) -> Learnt:
        """Collect an epoch's episodes and learn from them."""
        ...

    def extra(self) -> dict[str, Tensor]:
        """Return what belongs in a checkpoint beside the actor."""
        ...

    def tensors(self) -> dict[str, Tensor]:
        """Return what is needed to go on, beside the actor and `extra`."""
        ...

    def restore(self, tensors: Mapping[str, Tensor], path: Path) -> None:
        """Take over what a file says: `tensors`, and `extra` under ``now.``.

        Raises:
            BridgeError: it is of another network.
        """
        ...


def adam_tensors(which: str, adam: optim.Optimizer) -> dict[str, Tensor]:
    """Return an optimiser's memory by names that begin with ``adam.``."""
    return {
        f"adam.{which}.{place}.{k}": torch.as_tensor(v)
        for place, state in adam.state_dict()["state"].items()
        for k, v in state.items()
    }


def restore_adam(which: str, adam: optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Give an optimiser the memory that `adam_tensors` returned."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith(f"adam.{which}."):
            place, key = name.removeprefix(f"adam.{which}.").split(".")
            state.setdefault(int(place), {})[key] = tensor
    adam.load_state_dict({**adam.state_dict(), "state": state})
