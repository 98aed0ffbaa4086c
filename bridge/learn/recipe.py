"""Recipes: everything that makes an agent, as one typed object of plain data; policies are named recipes.

A recipe is written to every checkpoint, so a checkpoint is text and tensors and never code.
"""

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bridge.encode.encoder import EACH, Decision, Encoder
from bridge.env.reward import Reward as Reward
from bridge.env.task import Guard
from bridge.errors import BridgeError
from bridge.fast.setup import Setup
from bridge.scheduler.protocol import Policy


@dataclass(frozen=True)
class Network:
    """A network's shape.

    Attributes:
        kind: ``kernel`` (one small network applied to every row), ``flat`` (all W rows and the context),
            ``places`` (the same, with a score for each place), ``scalars`` (a number per row, then a network
            over all W), ``pooled`` (per row, then the mean and the largest over the rows), ``pairs`` (rows
            and context side by side, two numbers at a time: DRAS, SEM), ``future`` and ``future-cnn`` (rows
            and context, measurements and goal: direct future prediction), ``none``, or a name of the entry
            points ``bridge.networks``.
        hidden: widths of the hidden layers, ReLU between them.
        head: widths of the layers behind those: ``pooled`` and ``scalars`` per decision, ``future`` in each
            of the two streams.
        aside: ``future`` only: widths of the modules for measurements and for the goal.
    """

    kind: str
    hidden: tuple[int, ...] = (32, 16, 8)
    head: tuple[int, ...] = ()
    aside: tuple[int, ...] = ()


@dataclass(frozen=True)
class Training:
    """How it is trained, over batches of whole episodes; by PPO (Schulman et al. 2017) unless told otherwise.

    Attributes:
        epochs: rounds of collecting and updating.
        trajectories: episodes an epoch, each on an idle machine.
        length: jobs an episode.
        busy: episodes are drawn among those in which the base's metric is at least this, as far as four times
            as many draws give them: an idle machine teaches nothing (RLScheduler §3.4's trajectory filter).
        part: fractions of the workload, in submission order, from which training episodes are drawn.
        validation: fractions from which the validation sequences are taken, evenly spaced; none if both are
            equal. They may be the training part's own: what is validated is the policy as it is deployed.
        validate_every: epochs between validations; the best validated weights are kept.
        learning_rate, critic_rate: Adam's.
        anneal: both rates fall linearly to a tenth at the last epoch.
        clip: of the probability ratio.
        gamma, lam: of generalised advantage estimation.
        horizon: seconds; if above 0, lam falls with the time between two decisions in place of their number,
            exp(−Δt / horizon): decisions of one instant share the credit, one before a long wait has it
            alone.
        entropy: weight of the entropy bonus.
        iterations, critic_iterations: passes over an epoch's data.
        minibatch: decisions an update; 0 = all at once.
        average: the deployed actor is a running mean of the trained one's weights, of which an epoch keeps so
            much; 0 = the trained one itself (Polyak averaging, Izmailov et al. 2018).
        teacher: a rule that the actor imitates first, see `bridge.learn.imitate`; empty = none.
        rejecting: INSPECT: the probability of rejecting, roughly, with which a random actor begins; 0 = its
            own. Rejecting pays off only where it is done again and again: timid actors never find out.
        warmup: epochs at the beginning in which only the critic learns.
        curriculum: what the episodes of so many epochs are made of (``sampled:10``), see
            `bridge.learn.curriculum`; empty = the log as it is.
        target_kl: the policy's updates stop beyond 1.5 times this.
    """

    epochs: int = 60
    trajectories: int = 100
    length: int = 256
    busy: float = 0.0
    part: tuple[float, float] = (0.0, 0.6)
    validation: tuple[float, float] = (0.0, 0.6)
    validate_every: int = 2
    learning_rate: float = 1e-3
    critic_rate: float = 1e-3
    anneal: bool = False
    clip: float = 0.2
    gamma: float = 1.0
    lam: float = 0.97
    horizon: float = 0.0
    entropy: float = 0.0
    iterations: int = 80
    critic_iterations: int = 80
    minibatch: int = 0
    target_kl: float = 0.01
    average: float = 0.0
    teacher: tuple[str, ...] = ()
    rejecting: float = 0.0
    warmup: int = 0
    curriculum: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gradient:
    """Policy gradient as DRAS has it: a few scheduling instances, one step of Adam, on with the same episode.

    Source: Y. Fan et al., "DRAS: Deep Reinforcement Learning for Cluster Scheduling in HPC", IPDPS 2021.

    Attributes:
        reward: an expression of the chosen job at the decision; its value is the reward.
        instances: instants with decisions between two updates.
    """

    reward: str = ""
    instances: int = 10


@dataclass(frozen=True)
class Prediction:
    """Direct future prediction: learns by how much each answer will change the measurements.

    Source: A. Dosovitskiy, V. Koltun, "Learning to Act by Predicting the Future", ICLR 2017, with the
    values of MRSch (B. Li et al., CLUSTER 2022, §IV-A).

    Attributes:
        offsets: decisions ahead at which measurements are predicted.
        weights: of these, where an answer is chosen.
        replay: decisions that are remembered.
        batch: decisions of an update.
        every: decisions collected per update.
        decay: factor of ε per update, from 1 on.
        least: ε does not fall below.
    """

    offsets: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    weights: tuple[float, ...] = (0.0, 0.0, 0.0, 0.5, 0.5, 1.0)
    replay: int = 20_000
    batch: int = 64
    every: int = 8
    decay: float = 0.995
    least: float = 0.0


@dataclass(frozen=True)
class Recipe:
    """An agent before it has learnt anything.

    Attributes:
        name, setting: which policy, in which of its settings.
        source: paper and section.
        summary: one line for lists.
        setup: order, backfilling and rules under which it decides; without the agent this is its base.
        encoder, actor, critic: what it sees, and its networks (a critic for PPO only).
        algorithm: ``ppo``, ``gradient`` (see `Gradient`) or ``prediction`` (see `Prediction`).
        guard: BACKFILL: ``mask`` (only what EASY allows is offered), ``penalty`` (see `Reward`) or ``none``.
        max_rejects, retry_after: INSPECT, see `bridge.scheduler.protocol.Policy`.
        deploy: how it decides once it has learnt: ``greedy`` takes the best answer; ``sample`` draws from its
            probabilities as SchedInspector's public code does, but reproducibly (`bridge.learn.rollout`);
            ``validated`` takes whichever of the two does better on the validation sequences.
        test_from: fraction of the workload from which on held-out sequences are drawn.
    """

    name: str
    setting: str
    source: str
    summary: str
    setup: Setup
    encoder: Encoder
    actor: Network
    critic: Network = field(default_factory=lambda: Network("none", ()))
    reward: Reward = field(default_factory=Reward)
    training: Training = field(default_factory=Training)
    guard: Guard = "none"
    max_rejects: int = 72
    retry_after: float = 600.0
    deploy: Literal["greedy", "sample", "validated"] = "greedy"
    test_from: float = 0.6
    algorithm: Literal["ppo", "gradient", "prediction"] = "ppo"
    gradient: Gradient = field(default_factory=Gradient)
    prediction: Prediction = field(default_factory=Prediction)

    @property
    def decision(self) -> Decision:
        """What the agent decides."""
        return self.encoder.decision

    def policy(self) -> Policy:
        """Return the scheduler's policy with this agent in it."""
        return self.setup.policy(
            self.decision,
            guard=self.guard == "mask",
            max_rejects=self.max_rejects,
            retry_after=self.retry_after,
        )

    def check(self) -> None:
        """Refuse what cannot be trained.

        Raises:
            BridgeError: a value is out of its range, or two contradict each other.
        """
        training = self.training
        if "backfill" in self.decision and self.setup.backfill != "easy":
            raise _wrong("setup.backfill", self.setup.backfill, "A backfilling agent decides behind `easy`.")
        self._check_algorithm()
        if self.guard == "penalty" and self.reward.penalty <= 0:
            raise _wrong("reward.penalty", self.reward.penalty, "A guard by penalty needs one above 0.")
        self.reward.check()
        for name in ("trajectories", "length", "epochs", "iterations", "validate_every"):
            if getattr(training, name) < 1:
                raise _wrong(f"training.{name}", getattr(training, name), "It is at least 1.")
        for name in ("part", "validation"):
            low, high = getattr(training, name)
            if not 0 <= low <= high <= 1 or (name == "part" and low == high):
                raise _wrong(f"training.{name}", (low, high), "Two fractions of the workload, ascending.")
            if high > self.test_from and low < high:
                raise _wrong(f"training.{name}", (low, high), f"It ends at test_from, {self.test_from:g}.")
        if not 0 <= self.test_from < 1:
            raise _wrong("test_from", self.test_from, "A fraction of the workload below 1.")
        for name in ("learning_rate", "critic_rate", "target_kl", "clip"):
            value = getattr(training, name)
            if not (math.isfinite(value) and value > 0):
                raise _wrong(f"training.{name}", value, "It is above 0.")
        if not 0 <= training.rejecting < 1 or (training.rejecting and self.decision != "inspect"):
            raise _wrong("training.rejecting", training.rejecting, "Below 1, and for INSPECT only.")
        if len(training.teacher) > 1 and self.decision != "inspect":
            raise _wrong("training.teacher", training.teacher, "One expression, whose largest row wins.")
        for name in ("entropy", "critic_iterations", "minibatch", "busy", "horizon", "warmup"):
            if getattr(training, name) < 0:
                raise _wrong(f"training.{name}", getattr(training, name), "It is not negative.")
        for name in ("gamma", "lam"):
            if not 0 <= getattr(training, name) <= 1:
                raise _wrong(f"training.{name}", getattr(training, name), "It is between 0 and 1.")
        if not 0 <= training.average < 1:
            raise _wrong("training.average", training.average, "It is at least 0 and below 1.")
        for name, network in (("actor", self.actor), ("critic", self.critic)):
            if min((*network.hidden, *network.head, *network.aside), default=1) < 1:
                raise _wrong(f"{name}.hidden", network.hidden, "A layer is at least 1 wide.")
            if network.kind == "pooled" and not network.hidden:
                raise _wrong(f"{name}.hidden", "empty", "What is pooled is a layer's output.")
        if self.max_rejects < 0 or not self.retry_after > 0:
            raise _wrong(
                "retry_after, max_rejects", (self.retry_after, self.max_rejects), "Above 0; at least 0."
            )

    def _check_algorithm(self) -> None:
        training, prediction = self.training, self.prediction
        if self.algorithm == "ppo" and self.critic.kind == "none":
            raise _wrong("critic.kind", "none", "PPO needs a critic.")
        if self.algorithm != "ppo":
            if self.decision == "inspect":
                raise _wrong("algorithm", self.algorithm, "An inspector learns by `ppo`.")
            for name in ("anneal", "teacher", "rejecting", "warmup", "busy"):
                if getattr(training, name):
                    raise _wrong(f"training.{name}", getattr(training, name), "It belongs to `ppo`.")
        if self.algorithm == "gradient":
            if not self.gradient.reward:
                raise _wrong("gradient.reward", "empty", "An expression of the chosen job.")
            if EACH in self.gradient.reward:
                raise _wrong("gradient.reward", self.gradient.reward, "One number: name each resource.")
            if self.gradient.instances < 1:
                raise _wrong("gradient.instances", self.gradient.instances, "It is at least 1.")
        if training.curriculum and self.algorithm == "ppo":
            raise _wrong("training.curriculum", training.curriculum, "It belongs to the other algorithms.")
        for phase in training.curriculum:
            kind, _, epochs = phase.partition(":")
            if kind not in ("sampled", "real", "synthetic") or not epochs.isdecimal():
                raise _wrong("training.curriculum", phase, "sampled, real or synthetic, and epochs: real:10.")
        if self.algorithm == "prediction":
            if self.actor.kind not in ("future", "future-cnn"):
                raise _wrong("actor.kind", self.actor.kind, "`prediction` trains `future` or `future-cnn`.")
            if len(prediction.weights) != len(prediction.offsets) or not any(prediction.weights):
                raise _wrong("prediction.weights", prediction.weights, "One for each offset, not all 0.")
            if min((*prediction.offsets, prediction.replay, prediction.batch, prediction.every)) < 1:
                raise _wrong("prediction", prediction, "Offsets, replay, batch, every: at least 1.")
            if list(prediction.offsets) != sorted(set(prediction.offsets)):
                raise _wrong("prediction.offsets", prediction.offsets, "They ascend.")
            if not (0 < prediction.decay <= 1 and 0 <= prediction.least <= 1):
                raise _wrong("prediction.decay", prediction.decay, "Above 0, at most 1.")

    def for_resources(self, resources: int) -> "Recipe":
        """Return the recipe for a workload of so many resources, if it was made for any number of them."""
        return dataclasses.replace(self, encoder=self.encoder.for_resources(resources))

    def as_dict(self) -> dict[str, Any]:
        """Return the recipe as JSON or TOML has it; unset values are left out."""
        document: dict[str, Any] = without_none(dataclasses.asdict(self))
        return document


def _wrong(name: str, value: object, remedy: str) -> BridgeError:
    return BridgeError(f"{name} cannot be {value}", where="recipe", remedy=remedy)


def without_none(value: Any) -> Any:
    """Return nested tables without unset values, tuples as lists, as JSON and TOML have them."""
    if isinstance(value, dict):
        return {k: without_none(v) for k, v in value.items() if v is not None}
    return list(value) if isinstance(value, tuple) else value


def from_dict(document: Mapping[str, Any], where: str, base: Recipe | None = None) -> Recipe:
    """Return a recipe from plain data, as a whole or on top of another one.

    Args:
        document: nested tables; `encoder.features` replaces all features, any other field itself only.
        where: the file, for errors.
        base: what is not in the document.

    Raises:
        BridgeError: an unknown or missing field, or a value of another type.
    """
    recipe = build(Recipe, document, where, base)
    assert isinstance(recipe, Recipe)
    recipe.check()
    return recipe


def build(kind: type[Any], document: Mapping[str, Any], where: str, base: Any) -> Any:
    """Return a dataclass of plain data from nested tables; see `from_dict`.

    Args:
        kind: the dataclass.
        document: nested tables.
        where: the file, for errors.
        base: an instance that has what is not in the document, or None.

    Raises:
        BridgeError: an unknown or missing field, or a value of another type.
    """
    hints = typing.get_type_hints(kind)
    fields = {f.name: f for f in dataclasses.fields(kind)}
    unknown = sorted(set(document) - set(fields))
    if unknown:
        raise BridgeError(f"unknown field {unknown[0]!r}", where=where, remedy=f"Known: {', '.join(fields)}.")
    values: dict[str, Any] = {}
    for name, declared in fields.items():
        place = f"{where}: {name}"
        before = getattr(base, name) if base is not None else None
        if name in document:
            values[name] = _convert(hints[name], document[name], place, before)
        elif base is not None:
            values[name] = before
        elif declared.default is dataclasses.MISSING and declared.default_factory is dataclasses.MISSING:
            raise BridgeError("is missing", where=place)
    return kind(**values)


def _convert(hint: Any, value: Any, where: str, base: Any) -> Any:
    """Return the value as a field of this type holds it."""
    origin = typing.get_origin(hint)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if isinstance(value, Mapping):
            return build(hint, value, where, base)
    elif origin is Literal:
        if value in typing.get_args(hint):
            return value
        raise BridgeError(
            f"cannot be {value!r}",
            where=where,
            remedy=f"Choose {', '.join(map(repr, typing.get_args(hint)))}.",
        )
    elif origin is tuple and isinstance(value, (list, tuple)):
        inner, *more = typing.get_args(hint)
        if more == [...] or len(value) == 1 + len(more):
            return tuple(_convert(inner, item, where, None) for item in value)
    elif origin is not None and isinstance(value, Mapping) and hint == Mapping[str, str]:
        if all(isinstance(k, str) and isinstance(v, str) for k, v in value.items()):
            return dict(value)
    elif origin in (types.UnionType, typing.Union):
        for choice in typing.get_args(hint):
            if choice is not type(None) and _fits(choice, value):
                return value
    elif _fits(hint, value):
        return float(value) if hint is float else value
    raise BridgeError(
        f"cannot be {value!r}", where=where, remedy=f"It is a {getattr(hint, '__name__', hint)}."
    )


def _fits(kind: Any, value: Any) -> bool:
    if isinstance(value, bool):
        return kind is bool
    if kind is float:
        return isinstance(value, (int, float)) and math.isfinite(value)
    return isinstance(kind, type) and isinstance(value, kind)
