"""Recipes of agents on the slotted pool: everything that makes one, as one typed object of plain data."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bridge.errors import BridgeError
from bridge.learn.recipe import build, without_none
from bridge.pool.encode import shape
from bridge.pool.rules import NAMES
from bridge.pool.settings import Kill, Settings

#: `Training.teacher` that is another agent, not a heuristic.
AGENT_TEACHER = "agent"


@dataclass(frozen=True)
class PictureNetwork:
    """A network with two heads over a picture: scores of actions, and a value.

    Attributes:
        kind: ``mlp``, or ``cnn``: convolutions before the hidden layers.
        hidden: widths of the hidden layers, ReLU behind each.
        channels, kernels, strides: of the convolutions (``cnn``), ReLU behind each.
    """

    kind: Literal["mlp", "cnn"] = "mlp"
    hidden: tuple[int, ...] = (64, 64)
    channels: tuple[int, ...] = ()
    kernels: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


@dataclass(frozen=True)
class SlottedTraining:
    """How it is trained: imitation of a teacher, then parallel PPO (Schulman et al. 2017).

    Attributes:
        epochs: rounds of playing all sequences and updating.
        sequences: E, episodes an epoch, side by side.
        rate, steps: of the sequences, see `bridge.pool.sequences.draw`.
        draw_seed: of the training set.
        fresh: every epoch draws new sequences; else the training set is played again and again.
        valid_seed, valid_sequences: of validation.
        validate_every: epochs between validations; the best validated weights are kept.
        algorithm: ``ppo``, or ``pg``, the plain policy gradient with a baseline.
        learning_rate: Adam's.
        critic_rate: the same of a critic of its own (``outlook``), as a multiple.
        anneal: it falls linearly to a tenth at the last epoch.
        clip: of the probability ratio.
        gamma, lam: of generalised advantage estimation.
        discount: ``decision``: gamma is applied from each decision to the next, as in the paper; ``step``:
            only where time moves.
        critic: ``head``: the value comes from the network's second head, as in the paper; ``outlook``: from a
            small network of its own, which knows the whole pool and the arrivals to come
            (`bridge.pool.outlook`), and is not needed any more once the agent has learnt.
        value, entropy: weights of the value's squared error and of the entropy bonus.
        iterations: passes over an epoch's data.
        minibatch: decisions an update.
        target_kl: the epoch's updates stop behind a pass in which the policy moved 1.5 times this.
        average: the deployed network is a running mean of the trained one's weights, of which an epoch keeps
            so much; 0 = the trained one itself.
        teacher: a heuristic, ``agent`` (another agent, given to the training) or empty. Where the agent
            kills, the teacher does by the paper's rule first.
        inherit: the network begins with those weights of the agent that teaches; if that one does not kill,
            kills begin as probable as waiting.
        lessons: epochs at the beginning in which the teacher acts and the network learns its answers.
        imitation: weight of the teacher's answer in the loss behind the lessons; it falls linearly to 0.
        imitated: the part of the epochs behind the lessons in which it does.
    """

    epochs: int = 300
    sequences: int = 16
    rate: float = 0.7
    steps: int = 200
    draw_seed: int = 42
    fresh: bool = False
    valid_seed: int = 42
    valid_sequences: int = 16
    validate_every: int = 5
    algorithm: Literal["ppo", "pg"] = "ppo"
    learning_rate: float = 1e-4
    critic_rate: float = 1.0
    anneal: bool = False
    clip: float = 0.2
    gamma: float = 0.99
    lam: float = 0.95
    discount: Literal["decision", "step"] = "decision"
    critic: Literal["head", "outlook"] = "head"
    value: float = 0.25
    entropy: float = 0.02
    iterations: int = 5
    minibatch: int = 128
    target_kl: float = 0.01
    average: float = 0.0
    teacher: str = ""
    inherit: bool = False
    lessons: int = 0
    imitation: float = 0.0
    imitated: float = 0.5


@dataclass(frozen=True)
class SlottedRecipe:
    """An agent of the slotted pool before it has learnt anything.

    Attributes:
        name, setting: which policy, in which of its settings.
        source: paper and section.
        summary: one line for lists.
        pool: what it decides on, and the objective.
        kill: ``none``, ``rule`` (the paper's rule, before every decision), ``learned`` (the agent kills).
        estimator: beliefs, see `bridge.pool.jobset.believing`; ``submit`` is DeepRM's view.
        mask: empty slots cannot be chosen. Without it choosing one is a way of waiting, as in the paper.
            Kills are masked anyhow where the agent does not kill.
        idle: it may let time pass although the pool is empty and a job waits. An agent that always takes its
            best answer and may do so can wait for ever.
        most_kills: how often it may kill the same job; 0 = as often as it likes. An agent that may kill again
            and again can do so for ever.
        suspicion: it may kill only jobs that have not run longer than was believed and are by now believed to
            be longer by more than this share of it, as those of the paper's rule (1); 0 = any running job.
        network: of the agent.
        training: how it learns.
        deploy: how it decides once it has learnt: ``greedy`` takes the best answer, ``sample`` draws from its
            probabilities, reproducibly, ``validated`` does what did better in validation.
    """

    name: str
    setting: str
    source: str
    summary: str
    pool: Settings = field(default_factory=Settings)
    kill: Kill = "none"
    estimator: str = "running"
    mask: bool = True
    idle: bool = False
    most_kills: int = 1
    suspicion: float = 0.0
    network: PictureNetwork = field(default_factory=PictureNetwork)
    training: SlottedTraining = field(default_factory=SlottedTraining)
    deploy: Literal["greedy", "sample", "validated"] = "greedy"

    @property
    def decision(self) -> str:
        """What the agent decides."""
        return "tick"

    @property
    def metric(self) -> str:
        """What progress and validation measure: the objective."""
        return self.pool.objective

    def check(self) -> None:
        """Refuse what cannot be trained.

        Raises:
            BridgeError: a value is out of its range, or two contradict each other.
        """
        training, network = self.training, self.network
        shape(self.pool)
        counts = (
            "epochs",
            "sequences",
            "valid_sequences",
            "steps",
            "iterations",
            "minibatch",
            "validate_every",
        )
        for name in counts:
            if getattr(training, name) < 1:
                raise _wrong(f"training.{name}", getattr(training, name), "It is at least 1.")
        for name in ("learning_rate", "critic_rate", "target_kl", "clip", "rate"):
            value = getattr(training, name)
            if not (math.isfinite(value) and value > 0):
                raise _wrong(f"training.{name}", value, "It is above 0.")
        for name in ("value", "entropy", "imitation", "lessons"):
            if getattr(training, name) < 0:
                raise _wrong(f"training.{name}", getattr(training, name), "It is not negative.")
        for name in ("gamma", "lam", "imitated"):
            if not 0 <= getattr(training, name) <= 1:
                raise _wrong(f"training.{name}", getattr(training, name), "It is between 0 and 1.")
        if not 0 <= training.average < 1:
            raise _wrong("training.average", training.average, "It is at least 0 and below 1.")
        taught = training.lessons or training.imitation
        teachers = (*NAMES[:-1], AGENT_TEACHER)
        if training.teacher not in ("", *teachers) or (taught and not training.teacher):
            raise _wrong("training.teacher", repr(training.teacher), f"One of {', '.join(teachers)}.")
        if training.inherit and training.teacher != AGENT_TEACHER:
            raise _wrong("training.inherit", "true", "Weights can be had from another agent only.")
        if not (math.isfinite(self.suspicion) and self.suspicion >= 0):
            raise _wrong("suspicion", self.suspicion, "It is not negative.")
        if self.most_kills < 0:
            raise _wrong("most_kills", self.most_kills, "It is not negative.")
        if min(network.hidden, default=0) < 1:
            raise _wrong("network.hidden", network.hidden, "At least one layer, at least 1 wide.")
        layers = {len(network.channels), len(network.kernels), len(network.strides)}
        if len(layers) > 1 or (network.kind == "cnn") != bool(network.channels):
            raise _wrong(
                "network.channels", network.channels, "A cnn has channels, kernels and strides, as many each."
            )
        if min((*network.channels, *network.kernels, *network.strides), default=1) < 1:
            raise _wrong(
                "network.channels", network.channels, "Channels, kernels and strides are at least 1."
            )

    def as_dict(self) -> dict[str, Any]:
        """Return the recipe as JSON or TOML has it."""
        document: dict[str, Any] = without_none(dataclasses.asdict(self))
        return document


def _wrong(name: str, value: object, remedy: str) -> BridgeError:
    return BridgeError(f"{name} cannot be {value}", where="recipe", remedy=remedy)


def from_dict(document: Mapping[str, Any], where: str, base: SlottedRecipe | None = None) -> SlottedRecipe:
    """Return a recipe from plain data, as a whole or on top of another one.

    Args:
        document: nested tables.
        where: the file, for errors.
        base: what is not in the document.

    Raises:
        BridgeError: an unknown or missing field, or a value of another type or out of its range.
    """
    recipe = build(SlottedRecipe, document, where, base)
    assert isinstance(recipe, SlottedRecipe)
    recipe.check()
    return recipe
