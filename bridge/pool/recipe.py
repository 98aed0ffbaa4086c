"""Recipes of the time-stepped pool: all that makes an agent, as plain data (`bridge.learn.recipe`)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from bridge.config import Constraint, Count, Natural, Positive, Share, Unsigned
from bridge.learn.recipe import AGENT_TEACHER, Deploy, Layers, RecipeBase, Rule, TrainingBase, too_deep
from bridge.pool.observation import shape
from bridge.pool.settings import PoolConfig
from bridge.scheduler.names import NAMES, Kill


@dataclass(frozen=True)
class PoolNetworkConfig:
    """A network with two heads over a picture: scores of actions, and a value.

    Attributes:
        kind: ``mlp``, or ``cnn``: convolutions before the hidden layers.
        hidden: widths of the hidden layers, ReLU behind each.
        channels, kernels, strides: of the convolutions (``cnn``), ReLU behind each.
    """

    kind: Literal["mlp", "cnn"] = "mlp"
    hidden: Layers = (64, 64)
    channels: Layers = ()
    kernels: Layers = ()
    strides: Layers = ()


@dataclass(frozen=True)
class PoolTrainingConfig(TrainingBase):
    """How it is trained: imitation of a teacher, then parallel PPO.

    Attributes:
        sequences: of an epoch, played side by side.
        rate, steps: of the sequences, see `bridge.pool.world.draw_sequences`.
        draw_seed: of the training set.
        fresh: every epoch draws new sequences; else the training set is played again and again.
        valid_seed, valid_sequences: of validation.
        algorithm: ``ppo``, or ``pg``, the plain policy gradient with a baseline.
        discount: ``decision``: gamma is applied from each decision to the next, as in the paper; ``step``:
            only where time moves.
        critic: ``head``: the value comes from the network's second head, as in the paper; ``outlook``: from a
            small network of its own, which knows the whole pool and the arrivals to come
            (`bridge.pool.world.critic_features`), and is not needed any more once the agent has learnt.
        value: weight of the value's error.
        value_loss: ``squared``, or ``smooth``: half the square of errors up to 1, linear behind (smooth L1).
        normalised: advantages have mean 0 and deviation 1 in every epoch.
        scaled: rewards count in the size of a typical return under SAF; else as they are.
        episodes: of each sequence an epoch.
        decay: factor of the learning rates from one epoch to the next, beside `anneal`.
        teacher: a heuristic, ``agent`` (another agent, given to the training) or empty. Where the agent
            kills, the teacher does by the paper's rule first.
        inherit: the network begins with those weights of the agent that teaches; if that one does not kill,
            kills begin as probable as waiting.
        lessons: epochs at the beginning in which the teacher acts and the network learns its answers.
        imitation: weight of the teacher's answer in the loss behind the lessons; it falls linearly to 0.
        imitated: the part of the epochs behind the lessons in which it does.
    """

    epochs: Count = 300
    validate_every: Count = 5
    learning_rate: Positive = 1e-4
    critic_rate: Positive = 1.0
    gamma: Share = 0.99
    lam: Share = 0.95
    entropy: Unsigned = 0.02
    iterations: Count = 5
    minibatch: Count = 128
    sequences: Count = 16
    rate: Positive = 0.7
    steps: Count = 200
    draw_seed: int = 42
    fresh: bool = False
    valid_seed: int = 42
    valid_sequences: Count = 16
    algorithm: Literal["ppo", "pg"] = "ppo"
    discount: Literal["decision", "step"] = "decision"
    critic: Literal["head", "outlook"] = "head"
    value: Unsigned = 0.25
    value_loss: Literal["squared", "smooth"] = "squared"
    normalised: bool = True
    scaled: bool = True
    episodes: Count = 1
    decay: Annotated[float, Constraint(gt=0, le=1)] = 1.0
    teacher: str = ""
    inherit: bool = False
    lessons: Natural = 0
    imitation: Unsigned = 0.0
    imitated: Share = 0.5

    def rate_fraction(self, epoch: int) -> float:
        return super().rate_fraction(epoch) * self.decay**epoch


@dataclass(frozen=True)
class PoolRecipe(RecipeBase):
    """An agent of the time-stepped pool before it has learnt anything.

    Attributes:
        pool: what it decides on, and the objective.
        kill: ``none``, ``rule`` (the paper's rule, before every decision), ``learned`` (the agent kills).
        estimator: beliefs, see `bridge.pool.jobset.with_estimates`; ``submit`` is DeepRM's view.
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
        deploy: see `Deploy`.
    """

    pool: PoolConfig = field(default_factory=PoolConfig)
    kill: Kill = "none"
    estimator: str = "running"
    mask: bool = True
    idle: bool = False
    most_kills: Natural = 1
    suspicion: Unsigned = 0.0
    network: PoolNetworkConfig = field(default_factory=PoolNetworkConfig)
    training: PoolTrainingConfig = field(default_factory=PoolTrainingConfig)
    deploy: Deploy = "greedy"

    #: Whose decisions it takes, the field with its settings, and who teaches it (`bridge.learn.algorithms`).
    scheduler: ClassVar[str] = "pool"
    part: ClassVar[str] = "pool"
    algorithm: ClassVar[str] = "pool"
    #: The exact rules under which it learns: the pool has one set of them.
    protocol: ClassVar[str] = "pool"
    #: What the agent decides.
    decision: ClassVar[str] = "tick"

    @property
    def metric(self) -> str:
        """Metric of progress and validation: the objective."""
        return self.pool.objective

    def constraints(self) -> Iterator[Rule]:
        training, network = self.training, self.network
        shape(self.pool)  # refuses a pool that cannot be shown
        untaught = not training.teacher and bool(training.lessons or training.imitation)
        teachers = (*NAMES[:-1], AGENT_TEACHER)
        unknown = untaught or training.teacher not in ("", *teachers)
        yield unknown, "training.teacher", repr(training.teacher), f"One of {', '.join(teachers)}."
        alone = training.inherit and training.teacher != AGENT_TEACHER
        yield alone, "training.inherit", "true", "Weights can be had from another agent only."
        yield not network.hidden, "network.hidden", "empty", "At least one layer."
        yield too_deep("network", network.hidden, network.channels)
        layers = {len(network.channels), len(network.kernels), len(network.strides)}
        odd = len(layers) > 1 or (network.kind == "cnn") != bool(network.channels)
        channels = network.channels
        yield odd, "network.channels", channels, "A cnn has channels, kernels and strides, as many each."
