"""What an algorithm of learning is to the trainer: an actor, epochs, and tensors from which it goes on.

A new one is a subclass, named on the command line as ``module:ATTR`` or provided by a package through the
entry points `bridge.algorithms`; see `bridge.learn.algorithms`.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn, optim

from bridge.base import renamed
from bridge.base.interrupts import raise_if_interrupted
from bridge.learn.checkpoint_files import Provenance

R = TypeVar("R")
#: How a trained actor answers: its best answer, or drawn from its probabilities.
Mode = Literal["greedy", "sample"]
NAN = float("nan")


@dataclass(frozen=True)
class Losses:
    """How an epoch's updates went; NaN where the algorithm has no such thing.

    Attributes:
        policy_loss, value_loss: of the last update; of the mean over updates where there are thousands.
        kl, entropy, clip_fraction: of the policy, against the one that played.
    """

    policy_loss: float
    value_loss: float = NAN
    kl: float = NAN
    entropy: float = NAN
    clip_fraction: float = NAN
    iterations: int = 0


@dataclass(frozen=True)
class EpochResult:
    """Result of an epoch: means over its episodes of the metric, the base's metric and the summed rewards.

    Attributes:
        more: numbers that only this algorithm has; further columns of the progress.
        averages: whether the running mean of the weights takes this epoch in; else it begins anew.
    """

    train_mean: float
    base_mean: float
    reward_mean: float
    decisions: int
    losses: Losses
    more: Mapping[str, float] = field(default_factory=dict)
    averages: bool = True


@dataclass(frozen=True)
class TrainingContext(Generic[R]):
    """Inputs of a learner.

    Attributes:
        jobs: what episodes are made of: the workload as the recipe's rules select it, or a pool's jobs.
        origin: where they come from, and the seed.
        folder: of the checkpoint; it may hold what an earlier part of the training left there.
        teacher: the folder of an agent that teaches, if the recipe wants one.
    """

    recipe: R
    jobs: Any
    origin: Provenance
    folder: Path
    device: str = "cpu"
    teacher: Path | None = None


def _warn_of_adams() -> None:
    text = "Learner.adams is now Learner.optimizers; the old name goes with the next release"
    warnings.warn(text, DeprecationWarning, stacklevel=3)


class Learner(ABC):
    """Learns epoch by epoch; same seed, same bits, also when it goes on from `tensors`.

    It is made with a `TrainingContext` as its only argument, behind ``torch.manual_seed``.

    Attributes:
        optimizers: by the name that their memory has in a file.
        base: the base policy's mean on the validation sequences; NaN if there are none.
    """

    actor: nn.Module
    optimizers: Mapping[str, optim.Optimizer]
    base: float = NAN

    @property
    def adams(self) -> Mapping[str, optim.Optimizer]:
        """Return `optimizers` under their former name, which goes with the next release."""
        _warn_of_adams()
        return self.optimizers

    @adams.setter
    def adams(self, optimizers: Mapping[str, optim.Optimizer]) -> None:
        _warn_of_adams()
        self.optimizers = optimizers

    def begin(self) -> None:  # noqa: B027  (random weights are a start)
        """Give the actor a start, before the first epoch."""

    @abstractmethod
    def learn(self, epoch: int, rng: np.random.Generator) -> EpochResult:
        """Collect an epoch's episodes and learn from them."""

    @abstractmethod
    def validate(self, actor: nn.Module, mode: Mode) -> float:
        """Return the mean of the metric on the validation sequences under a network like `actor`."""

    def extra(self) -> dict[str, Tensor]:
        """Return further tensors of a checkpoint, beside the actor's."""
        return {}

    def tensors(self) -> dict[str, Tensor]:
        """Return what is needed to go on, beside the actor and `extra`: the optimisers' memories."""
        return {
            f"adam.{which}.{place}.{k}": torch.as_tensor(v)
            for which, adam in self.optimizers.items()
            for place, state in adam.state_dict()["state"].items()
            for k, v in state.items()
        }

    def restore(self, tensors: Mapping[str, Tensor], path: Path) -> None:  # noqa: ARG002
        """Take over `tensors` (and `extra` under ``now.``); BridgeError: of another network."""
        for which, adam in self.optimizers.items():
            state: dict[int, dict[str, Tensor]] = {}
            for name, tensor in tensors.items():
                if name.startswith(f"adam.{which}."):
                    place, key = name.removeprefix(f"adam.{which}.").split(".")
                    state.setdefault(int(place), {})[key] = tensor
            adam.load_state_dict({**adam.state_dict(), "state": state})


def tensors(like: nn.Module, *arrays: npt.NDArray[Any]) -> tuple[Tensor, ...]:
    """Return arrays as tensors where a network is."""
    device = next(like.parameters()).device
    return tuple(torch.from_numpy(array).to(device) for array in arrays)


def optimizer_step(loss: Tensor, adam: optim.Optimizer, bounded: nn.Module | None = None) -> float:
    """Take a step down a loss, and return it; the gradient of `bounded` is cut to a length of 1."""
    raise_if_interrupted()
    adam.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    if bounded is not None:
        nn.utils.clip_grad_norm_(bounded.parameters(), 1.0)
    adam.step()
    return float(loss.detach())


#: A subclass of `Learner`, or whatever else makes one.
Algorithm = Callable[[TrainingContext[Any]], Learner]


if not TYPE_CHECKING:
    __getattr__ = renamed.getter(__name__)
