"""Recipes: everything that makes an agent, as one typed object of plain data; policies are named recipes.

A recipe is written to every checkpoint, so a checkpoint is text and tensors and never code. Here is the kind
for the event-driven scheduler (`Recipe`); other schedulers bring one of their own (`bridge.learn.kinds`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar, overload

from bridge.base import renamed
from bridge.base.errors import BridgeError
from bridge.config import (
    Constraint,
    Count,
    Natural,
    Positive,
    Share,
    Unsigned,
    from_tables,
    to_tables,
    verify,
)
from bridge.config.fields import fields_of
from bridge.env.encoder import EACH, DecisionKind, Encoder
from bridge.env.env_config import DecisionConfig, Guard
from bridge.env.reward import OwnReward
from bridge.env.reward import Reward as Reward
from bridge.learn.checkpoint_files import digest_of_agent
from bridge.scheduler.names import SLURM_BACKFILL
from bridge.scheduler.protocol import Policy
from bridge.worlds.fast.scheduler_config import SchedulerConfig

#: How an agent decides once it has learnt: ``greedy`` takes the best answer; ``sample`` draws from its
#: probabilities as SchedInspector's public code does, but reproducibly (`rollout.make_action_function`);
#: ``validated`` takes whichever of the two does better on the validation sequences.
Deploy = Literal["greedy", "sample", "validated"]
#: Widths of layers; wider ones than these are a mistake.
Layers = tuple[Annotated[int, Constraint(ge=1, le=1_000_000)], ...]
#: A network of more layers is one, too.
_DEEPEST = 64
Below1 = Annotated[float, Constraint(ge=0, lt=1)]
#: A training whose best epoch lies behind this share of its epochs may not have ended.
LATE = 0.8
#: A training's teacher that is another agent, not a heuristic.
AGENT_TEACHER = "agent"
#: What a recipe may not be: whether it is, the field, its value, the remedy.
Rule = tuple[bool, str, object, str]


def too_deep(name: str, *layers: Layers) -> Rule:
    """Return that no part of a network has too many layers."""
    deep = max(map(len, layers))
    return deep > _DEEPEST, name, f"of {deep:,} layers", f"At most {_DEEPEST}."


@dataclass(frozen=True)
class TrainingBase:
    """What every training of ours knows.

    Attributes:
        epochs: rounds of collecting episodes and updating.
        max_epochs: epochs at most, where the best one lies in the last fifth of those so far: then it trains
            on until it does not. 0 = `epochs`, wherever the best one lies.
        validate_every: epochs between validations; the best validated weights are kept.
        learning_rate: Adam's.
        critic_rate: the same of the critic; of the pool's own critic (``outlook``) as a multiple.
        anneal: both rates fall linearly to a tenth at the last epoch.
        clip: of the probability ratio (PPO, Schulman et al. 2017).
        gamma: the discount of rewards, in generalised advantage estimation.
        lam: the λ of generalised advantage estimation.
        entropy: weight of the entropy bonus.
        iterations: passes over an epoch's data.
        minibatch: decisions an update.
        target_kl: the policy's updates stop once it has moved 1.5 times this.
        average: the deployed network is a running mean of the trained one's weights, of which an epoch keeps
            so much; 0 = the trained one itself (Polyak averaging, Izmailov et al. 2018).
    """

    epochs: Count = 60
    max_epochs: Annotated[Natural, Constraint(key="longest")] = 0
    validate_every: Count = 2
    learning_rate: Positive = 1e-3
    critic_rate: Positive = 1e-3
    anneal: bool = False
    clip: Positive = 0.2
    gamma: Share = 1.0
    lam: Share = 0.97
    entropy: Unsigned = 0.0
    iterations: Count = 80
    minibatch: Natural = 0
    target_kl: Positive = 0.01
    average: Below1 = 0.0

    def rate_fraction(self, epoch: int) -> float:
        """Return the part of the learning rates that is left in an epoch."""
        last = self.epochs - 1
        return 1.0 - 0.9 * min(epoch, last) / max(last, 1) if self.anneal else 1.0

    @property
    def validates(self) -> bool:
        return True

    @property
    def epoch_limit(self) -> int:
        return max(self.epochs, self.max_epochs if self.validates else 0)

    def ended(self, epoch: int, best: int) -> bool:
        """Tell whether so many epochs are enough, the best one being `best`."""
        return epoch >= (self.epoch_limit if may_still_improve(best, epoch) else self.epochs)


def may_still_improve(best: int, epochs: int) -> bool:
    """Tell whether a training of so many epochs may not have ended, by its best one."""
    return best > LATE * epochs


@dataclass(frozen=True)
class RecipeBase:
    """Base class of recipes.

    Attributes:
        name, setting: which policy, in which of its settings.
        source: paper and section.
        summary: one line for lists.
    """

    name: str
    setting: str
    source: str
    summary: str

    #: Whose decisions it takes, and the field that holds this scheduler's settings.
    scheduler: ClassVar[str] = ""
    part: ClassVar[str] = ""

    if TYPE_CHECKING:  # fields here, constants there

        @property
        def training(self) -> TrainingBase:
            """How it is trained."""

        @property
        def deploy(self) -> Deploy:
            """How it decides once it has learnt."""

        @property
        def algorithm(self) -> str:
            """Name of its algorithm (`bridge.learn.algorithms`)."""

        @property
        def protocol(self) -> str:
            """The exact rules under which it learns."""

        @property
        def decision(self) -> str:
            """Kind of decision that the agent makes."""

        @property
        def metric(self) -> str:
            """Metric of progress and validation."""

    def variant(self, setting: str, summary: str, **changes: Any) -> Self:
        """Return another setting; a dictionary replaces single values of a field, such as ``training``.

        They may have their stored names.
        """
        for name, values in changes.items():
            if isinstance(values, dict) and is_dataclass(type(own := getattr(self, name))):
                names = {key: field.name for key, field in fields_of(type(own)).items()}
                own_changes = {names.get(str(key), str(key)): value for key, value in values.items()}
                changes[name] = replace(own, **own_changes)
        return replace(self, setting=setting, summary=summary, **changes)

    def constraints(self) -> Iterator[Rule]:
        """Yield what it may not be, one after the other, where each field is in its range."""
        yield from ()

    def check(self) -> None:
        """Raise BridgeError for values out of range or in contradiction."""
        verify(self, "recipe")
        for broken, name, value, remedy in self.constraints():
            if broken:
                raise BridgeError(f"{name} cannot be {value}", where="recipe", remedy=remedy)

    def as_dict(self) -> dict[str, Any]:
        """Return the recipe as JSON or TOML has it; unset values are left out."""
        document: dict[str, Any] = to_tables(self)
        return document


@dataclass(frozen=True)
class NetworkConfig:
    """The shape of a network.

    Attributes:
        kind: ``kernel`` (one small network applied to every row), ``prior`` (the same beside a rule's key,
            the first feature), ``flat`` (all W rows and the context), ``places`` (the same, with a score for
            each place), ``scalars`` (a number per row, then a network over all W), ``pooled`` (per row, then
            the mean and the largest over the rows), ``pairs`` (rows and context side by side, two numbers at
            a time: DRAS, SEM), ``future`` and ``future-cnn`` (rows and context, measurements and goal: direct
            future prediction), ``none``, or a name of the entry points ``bridge.networks``.
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
class TrainingConfig(TrainingBase):
    """How an agent is trained: over batches of whole episodes, by PPO unless the recipe says otherwise.

    Attributes:
        trajectories: episodes an epoch, each on an idle machine.
        length: jobs an episode.
        min_base_metric: episodes are drawn among those in which the base's metric is at least this, as far
            as four times as many draws give them: an idle machine teaches nothing (RLScheduler §3.4's
            trajectory filter).
        part: fractions of the workload, in submission order, from which training episodes are drawn.
        first_jobs: if above 0, episodes come only from so many first jobs of the workload.
        order: the order of the queue during training, if not the setup's own.
        max_decisions: an episode with more decisions is discarded, and another one drawn in its place; 0 = as
            many as there are.
        validation: fractions from which the validation sequences are taken, evenly spaced; none if both are
            equal. They may be the training part's own: what is validated is the policy as it is deployed.
        validation_jobs: if above 0, validation is one sequence, the last so many jobs of that part, and no
            training episode has one of these or of those behind them: they are unseen.
        horizon: seconds; if above 0, lam falls with the time between two decisions in place of their number,
            exp(−Δt / horizon): decisions of one instant share the credit, one before a long wait has it
            alone.
        critic_iterations: the critic's passes over an epoch's data.
        teacher: a rule that the actor imitates first, see `bridge.learn.algorithms.ppo`; empty = none.
        initial_reject_rate: INSPECT: the probability of rejecting, roughly, with which a random actor
            begins; 0 = its own. Rejecting helps only if it is done again and again. Actors that seldom reject
            never learn this.
        warmup: epochs at the beginning in which only the critic learns.
        curriculum: what the episodes of so many epochs are made of (``sampled:10``), see
            `bridge.learn.algorithms.log_learner`; empty = the log as it is.
        logs: further logs, which share the trajectories in turn; for ``ppo`` and ``evolution``.
    """

    trajectories: Count = 100
    length: Count = 256
    min_base_metric: Annotated[Unsigned, Constraint(key="busy")] = 0.0
    part: tuple[Share, Share] = (0.0, 0.6)
    first_jobs: Natural = 0
    order: str = ""
    max_decisions: Natural = 0
    validation: tuple[Share, Share] = (0.0, 0.6)
    validation_jobs: Natural = 0
    horizon: Unsigned = 0.0
    critic_iterations: Natural = 80
    teacher: tuple[str, ...] = ()
    initial_reject_rate: Annotated[Below1, Constraint(key="rejecting")] = 0.0
    warmup: Natural = 0
    curriculum: tuple[Annotated[str, Constraint(parse=_phase, remedy=_PHASES)], ...] = ()
    logs: tuple[str, ...] = ()

    @property
    def validates(self) -> bool:
        low, high = self.validation
        return low < high


@dataclass(frozen=True)
class PolicyGradientConfig:
    """Policy gradient as DRAS has it: a few scheduling instances, one step of Adam, on with the same episode.

    Source: Y. Fan et al., "DRAS: Deep Reinforcement Learning for Cluster Scheduling in HPC", IPDPS 2021.

    Attributes:
        reward: an expression of the chosen job at the decision; its value is the reward.
        instances: instants with decisions between two updates.
    """

    reward: str = ""
    instances: Count = 10


@dataclass(frozen=True)
class FuturePredictionConfig:
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
        linear: if above 0, ε falls linearly over so many decisions instead.
        least: ε does not fall below.
        targets: what is predicted of measurements: their ``changes``, or the ``values`` themselves, as in
            MRSch's public code; those may be of the decision itself, offset 0.
        consecutive: a batch is of decisions that followed one another, else of any.
        dueling: the mean over the answers is taken from the action stream (Wang et al. 2016).
    """

    offsets: tuple[Natural, ...] = (1, 2, 4, 8, 16, 32)
    weights: tuple[float, ...] = (0.0, 0.0, 0.0, 0.5, 0.5, 1.0)
    replay: Count = 20_000
    batch: Count = 64
    every: Count = 8
    decay: Annotated[float, Constraint(gt=0, le=1)] = 0.995
    linear: Natural = 0
    least: Share = 0.0
    targets: Literal["changes", "values"] = "changes"
    consecutive: bool = False
    dueling: bool = True


@dataclass(frozen=True)
class EvolutionConfig:
    """Evolution strategies (Salimans et al. 2017).

    Attributes:
        pairs: of neighbours, one on either side of the weights, that play an epoch's episodes.
        sigma: how far away they are: the deviation of each weight.
    """

    pairs: Count = 8
    sigma: Positive = 1.0


#: Values of a training that algorithms do not read.
_NOT_OF = dict.fromkeys(
    ("gradient", "prediction"),
    ("anneal", "teacher", "rejecting", "warmup", "busy", "logs", "order", "max_decisions"),
) | {"evolution": ("teacher", "rejecting", "warmup", "max_decisions")}


@dataclass(frozen=True)
class Recipe(RecipeBase, DecisionConfig):
    """An agent of the event-driven scheduler before it has learnt anything.

    Attributes:
        setup: order, backfilling and rules under which it decides; without the agent this is its base.
        encoder: what it sees.
        actor: the network that decides.
        critic: the network that estimates rewards, for PPO only.
        algorithm: ``ppo``, ``gradient`` (see `PolicyGradientConfig`), ``prediction`` (see
            `FuturePredictionConfig`), ``evolution`` (see `EvolutionConfig`), or one that a package or the
            user brings (`bridge.learn.algorithms`).
        options: the parameters of such an algorithm.
        guard: see `bridge.env.env_config.EnvConfig`.
        max_rejects: see `bridge.scheduler.protocol.Policy`.
        retry_after: see `bridge.scheduler.protocol.Policy`.
        picks: INSPECT: the folder of an agent whose picks are inspected, in place of the order's first job.
        deploy: see `Deploy`.
        test_from: the fraction of the workload after which test sequences begin; 1 = there are none.
    """

    setup: SchedulerConfig
    encoder: Encoder
    actor: NetworkConfig
    critic: NetworkConfig = field(default_factory=lambda: NetworkConfig("none", ()))
    reward: Reward = field(default_factory=Reward)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    guard: Guard = "none"
    max_rejects: Natural = 72
    retry_after: Positive = 600.0
    picks: Annotated[str, Constraint(digest=digest_of_agent)] = ""
    deploy: Deploy = "greedy"
    test_from: Share = 0.6
    algorithm: str = "ppo"
    gradient: PolicyGradientConfig = field(default_factory=PolicyGradientConfig)
    prediction: FuturePredictionConfig = field(default_factory=FuturePredictionConfig)
    evolution: EvolutionConfig = field(default_factory=EvolutionConfig)
    options: Mapping[str, bool | int | float | str] = field(default_factory=dict)

    scheduler: ClassVar[str] = "event"
    part: ClassVar[str] = "setup"

    @property
    def decision(self) -> DecisionKind:
        return self.encoder.decision

    def policy(self, setup: SchedulerConfig | None = None) -> Policy:
        """Return the scheduler's policy with the agent in it, and with the one that picks."""
        own = super().policy(setup)
        return replace(own, agent=own.agent | {"pick"}) if self.picks else own

    @property
    def metric(self) -> str:
        """Metric of progress and validation."""
        return self.reward.metric

    @property
    def protocol(self) -> str:
        """The exact rules under which it learns."""
        return self.setup.protocol

    def check(self) -> None:
        """Refuse what cannot be trained, see `RecipeBase.check`; a function is no plain data."""
        if callable(self.reward) or isinstance(self.reward, OwnReward):
            remedy = "Write a Reward; an environment (`bridge.make_env`) takes a function as its reward."
            raise BridgeError("reward cannot be a function", where="recipe", remedy=remedy)
        super().check()

    def constraints(self) -> Iterator[Rule]:
        decision, training = self.decision, self.training
        behind = "backfill" not in decision or self.setup.backfill in ("easy", SLURM_BACKFILL)
        yield not behind, "setup.backfill", self.setup.backfill, "A backfilling agent decides behind `easy`."
        yield from self._rules_of_algorithm()
        free = self.guard == "penalty" and self.reward.penalty <= 0
        yield free, "reward.penalty", self.reward.penalty, "A guard by penalty needs one above 0."
        self.reward.check()
        for name, (low, high) in (("part", training.part), ("validation", training.validation)):
            descends = low > high or (name == "part" and low == high)
            yield descends, f"training.{name}", (low, high), "Two fractions of the workload, ascending."
            beyond = high > self.test_from and low < high
            yield beyond, f"training.{name}", (low, high), f"It ends at test_from, {self.test_from:g}."
        alone = bool(training.validation_jobs) and not training.validates
        yield alone, "training.validation_jobs", training.validation_jobs, "There is no validation."
        inspects, teacher = decision == "inspect", training.teacher
        yield bool(self.picks) and not inspects, "picks", self.picks, "It is for INSPECT only."
        taught = bool(self.picks and teacher)
        yield taught, "training.teacher", teacher, "Leave it out: an inspector of picks learns from none."
        undue = bool(training.initial_reject_rate) and not inspects
        yield undue, "training.rejecting", training.initial_reject_rate, "It is for INSPECT only."
        several = len(teacher) > 1 and not inspects
        yield several, "training.teacher", teacher, "One expression, whose largest row wins."
        for name, network in (("actor", self.actor), ("critic", self.critic)):
            bare = network.kind == "pooled" and not network.hidden
            yield bare, f"{name}.hidden", "empty", "What is pooled is a layer's output."
            yield too_deep(name, network.hidden, network.head, network.aside)

    def _rules_of_algorithm(self) -> Iterator[Rule]:
        training, prediction, reward = self.training, self.prediction, self.gradient.reward
        if self.algorithm == "ppo":
            kind = self.critic.kind
            yield kind == "none", "critic.kind", "none", "PPO needs a critic."
            scores = kind in ("pairs", "places", "prior", "future", "future-cnn")
            yield scores, "critic.kind", kind, "It scores candidates; a critic has one value: use `pooled`."
        if self.algorithm in ("ppo", "evolution"):
            curriculum = training.curriculum
            yield bool(curriculum), "training.curriculum", curriculum, "It belongs to the other algorithms."
        if self.algorithm in ("gradient", "prediction"):
            inspects = self.decision == "inspect"
            yield inspects, "algorithm", self.algorithm, "An inspector learns by `ppo`."
        for name in _NOT_OF.get(self.algorithm, ()):
            value = getattr(training, fields_of(type(training))[name].name)
            yield bool(value), f"training.{name}", value, "It belongs to `ppo`."
        if self.algorithm == "gradient":
            yield not reward, "gradient.reward", "empty", "An expression of the chosen job."
            yield EACH in reward, "gradient.reward", reward, "One number: name each resource."
        if self.algorithm == "prediction":
            other, kind = self.actor.kind not in ("future", "future-cnn"), self.actor.kind
            yield other, "actor.kind", kind, "`prediction` trains `future` or `future-cnn`."
            weights, offsets = prediction.weights, prediction.offsets
            unlike = len(weights) != len(offsets) or not any(weights)
            yield unlike, "prediction.weights", weights, "One for each offset, not all 0."
            yield [*offsets] != sorted({*offsets}), "prediction.offsets", offsets, "They ascend."
            still = 0 in offsets and prediction.targets == "changes"
            yield still, "prediction.offsets", offsets, "Nothing changes at once: 1 or more, or `values`."

    def for_resources(self, resources: int) -> "Recipe":
        """Return the recipe for a workload of so many resources, if it was made for any number of them."""
        return replace(self, encoder=self.encoder.for_resources(resources))


#: A recipe of whatever scheduler.
AnyRecipe = RecipeBase
R = TypeVar("R", bound=AnyRecipe)


@overload
def from_dict(document: object, where: str) -> Recipe: ...
@overload
def from_dict(document: object, where: str, like: R | type[R]) -> R: ...
def from_dict(document: object, where: str, like: Any = Recipe) -> Any:
    """Return a recipe from plain data, as a whole or on top of `like`, a recipe or only its kind.

    `encoder.features` replaces all features, any other field itself only; BridgeError names `where`.
    """
    kind, base = (like, None) if isinstance(like, type) else (type(like), like)
    recipe = from_tables(kind, document, where, base)
    recipe.check()
    return recipe


def settings(*recipes: R) -> dict[str, R]:
    """Return a policy's recipes by their settings, the default first, as the entry point wants them."""
    return {recipe.setting: recipe for recipe in recipes}


def with_training(recipe: R, changes: Mapping[str, Any]) -> R:
    """Return the recipe with other training values, by their stored names."""
    names = {key: field.name for key, field in fields_of(type(recipe.training)).items()}
    own: dict[str, Any] = {"training": replace(recipe.training, **{names[k]: v for k, v in changes.items()})}
    return replace(recipe, **own)


if not TYPE_CHECKING:
    __getattr__ = renamed.getter(__name__)
