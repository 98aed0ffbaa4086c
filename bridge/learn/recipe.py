"""Recipes: everything that makes an agent, as one typed object of plain data; policies are named recipes.

A recipe is written to every checkpoint, so a checkpoint is text and tensors and never code. Here is that of
the event-driven scheduler; `bridge.learn.pool.recipe` has that of the time-stepped pool, which is read and
written in the same way.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, TypeVar, overload

from bridge.config import Count, Natural, Of, Positive, Share, Unsigned, build, plain, verify
from bridge.encode.encoder import EACH, Decision, Encoder
from bridge.env.reward import Reward as Reward
from bridge.env.task import Guard
from bridge.fast.setup import Setup
from bridge.learn.pool.recipe import Below1, Deploy, Layers, PoolRecipe, wrong
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
    hidden: Layers = (32, 16, 8)
    head: Layers = ()
    aside: Layers = ()


_PHASES = "sampled, real or synthetic, and epochs: real:10."


def _phase(text: str) -> None:
    kind, _, epochs = text.partition(":")
    if kind not in ("sampled", "real", "synthetic") or not epochs.isdecimal():
        raise ValueError("it is no phase")


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
            `bridge.learn.algorithms.event`; empty = the log as it is.
        target_kl: the policy's updates stop beyond 1.5 times this.
    """

    epochs: Count = 60
    trajectories: Count = 100
    length: Count = 256
    busy: Unsigned = 0.0
    part: tuple[Share, Share] = (0.0, 0.6)
    validation: tuple[Share, Share] = (0.0, 0.6)
    validate_every: Count = 2
    learning_rate: Positive = 1e-3
    critic_rate: Positive = 1e-3
    anneal: bool = False
    clip: Positive = 0.2
    gamma: Share = 1.0
    lam: Share = 0.97
    horizon: Unsigned = 0.0
    entropy: Unsigned = 0.0
    iterations: Count = 80
    critic_iterations: Natural = 80
    minibatch: Natural = 0
    target_kl: Positive = 0.01
    average: Below1 = 0.0
    teacher: tuple[str, ...] = ()
    rejecting: Below1 = 0.0
    warmup: Natural = 0
    curriculum: tuple[Annotated[str, Of(parse=_phase, remedy=_PHASES)], ...] = ()


@dataclass(frozen=True)
class Gradient:
    """Policy gradient as DRAS has it: a few scheduling instances, one step of Adam, on with the same episode.

    Source: Y. Fan et al., "DRAS: Deep Reinforcement Learning for Cluster Scheduling in HPC", IPDPS 2021.

    Attributes:
        reward: an expression of the chosen job at the decision; its value is the reward.
        instances: instants with decisions between two updates.
    """

    reward: str = ""
    instances: Count = 10


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

    offsets: tuple[Count, ...] = (1, 2, 4, 8, 16, 32)
    weights: tuple[float, ...] = (0.0, 0.0, 0.0, 0.5, 0.5, 1.0)
    replay: Count = 20_000
    batch: Count = 64
    every: Count = 8
    decay: Annotated[float, Of(above=0, most=1)] = 0.995
    least: Share = 0.0


@dataclass(frozen=True)
class Recipe:
    """An agent before it has learnt anything.

    Attributes:
        name, setting: which policy, in which of its settings.
        source: paper and section.
        summary: one line for lists.
        setup: order, backfilling and rules under which it decides; without the agent this is its base.
        encoder, actor, critic: what it sees, and its networks (a critic for PPO only).
        algorithm: ``ppo``, ``gradient`` (see `Gradient`), ``prediction`` (see `Prediction`), or one that a
            package or the user brings (`bridge.learn.algorithms`).
        options: what such an algorithm wants to know.
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
    max_rejects: Natural = 72
    retry_after: Positive = 600.0
    deploy: Deploy = "greedy"
    test_from: Below1 = 0.6
    algorithm: str = "ppo"
    gradient: Gradient = field(default_factory=Gradient)
    prediction: Prediction = field(default_factory=Prediction)
    options: Mapping[str, bool | int | float | str] = field(default_factory=dict)

    #: Whose decisions it takes.
    scheduler: ClassVar[str] = "event"

    @property
    def decision(self) -> Decision:
        """What the agent decides."""
        return self.encoder.decision

    @property
    def metric(self) -> str:
        """What progress and validation measure."""
        return self.reward.metric

    @property
    def protocol(self) -> str:
        """The exact rules under which it learns."""
        return self.setup.protocol

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
        verify(self, "recipe")
        training = self.training
        if "backfill" in self.decision and self.setup.backfill != "easy":
            raise wrong("setup.backfill", self.setup.backfill, "A backfilling agent decides behind `easy`.")
        self._check_algorithm()
        if self.guard == "penalty" and self.reward.penalty <= 0:
            raise wrong("reward.penalty", self.reward.penalty, "A guard by penalty needs one above 0.")
        self.reward.check()
        for name in ("part", "validation"):
            low, high = getattr(training, name)
            if not low <= high or (name == "part" and low == high):
                raise wrong(f"training.{name}", (low, high), "Two fractions of the workload, ascending.")
            if high > self.test_from and low < high:
                raise wrong(f"training.{name}", (low, high), f"It ends at test_from, {self.test_from:g}.")
        if training.rejecting and self.decision != "inspect":
            raise wrong("training.rejecting", training.rejecting, "It is for INSPECT only.")
        if len(training.teacher) > 1 and self.decision != "inspect":
            raise wrong("training.teacher", training.teacher, "One expression, whose largest row wins.")
        for name, network in (("actor", self.actor), ("critic", self.critic)):
            if network.kind == "pooled" and not network.hidden:
                raise wrong(f"{name}.hidden", "empty", "What is pooled is a layer's output.")

    def _check_algorithm(self) -> None:
        training, prediction = self.training, self.prediction
        if self.algorithm == "ppo" and self.critic.kind == "none":
            raise wrong("critic.kind", "none", "PPO needs a critic.")
        if training.curriculum and self.algorithm == "ppo":
            raise wrong("training.curriculum", training.curriculum, "It belongs to the other algorithms.")
        if self.algorithm in ("gradient", "prediction"):
            if self.decision == "inspect":
                raise wrong("algorithm", self.algorithm, "An inspector learns by `ppo`.")
            for name in ("anneal", "teacher", "rejecting", "warmup", "busy"):
                if getattr(training, name):
                    raise wrong(f"training.{name}", getattr(training, name), "It belongs to `ppo`.")
        if self.algorithm == "gradient":
            if not self.gradient.reward:
                raise wrong("gradient.reward", "empty", "An expression of the chosen job.")
            if EACH in self.gradient.reward:
                raise wrong("gradient.reward", self.gradient.reward, "One number: name each resource.")
        if self.algorithm == "prediction":
            if self.actor.kind not in ("future", "future-cnn"):
                raise wrong("actor.kind", self.actor.kind, "`prediction` trains `future` or `future-cnn`.")
            if len(prediction.weights) != len(prediction.offsets) or not any(prediction.weights):
                raise wrong("prediction.weights", prediction.weights, "One for each offset, not all 0.")
            if list(prediction.offsets) != sorted(set(prediction.offsets)):
                raise wrong("prediction.offsets", prediction.offsets, "They ascend.")

    def for_resources(self, resources: int) -> "Recipe":
        """Return the recipe for a workload of so many resources, if it was made for any number of them."""
        return replace(self, encoder=self.encoder.for_resources(resources))

    def as_dict(self) -> dict[str, Any]:
        """Return the recipe as JSON or TOML has it; unset values are left out."""
        document: dict[str, Any] = plain(self)
        return document


#: Recipes of both schedulers: the event-driven one and the time-stepped pool.
AnyRecipe = Recipe | PoolRecipe
R = TypeVar("R", Recipe, PoolRecipe)


@overload
def from_dict(document: object, where: str) -> Recipe: ...
@overload
def from_dict(document: object, where: str, like: R | type[R]) -> R: ...
def from_dict(document: object, where: str, like: Any = Recipe) -> Any:
    """Return a recipe from plain data, as a whole or on top of another one.

    Args:
        document: nested tables; `encoder.features` replaces all features, any other field itself only.
        where: the file, for errors.
        like: a recipe that has what is not in the document, or only the kind of recipe.

    Raises:
        BridgeError: an unknown or missing field, or a value of another type or out of its range.
    """
    kind, base = (like, None) if isinstance(like, type) else (type(like), like)
    recipe = build(kind, document, where, base)
    recipe.check()
    return recipe


def with_training(recipe: R, changes: Mapping[str, Any]) -> R:
    """Return the recipe with other training values."""
    return replace(recipe, training=replace(recipe.training, **changes))
