"""Recipes of the time-stepped pool: everything that makes an agent, as one typed object of plain data."""

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from bridge.config import Count, Natural, Of, Positive, Share, Unsigned, plain, verify
from bridge.errors import BridgeError
from bridge.pool.picture import shape
from bridge.pool.settings import NAMES, Kill, Settings

#: How an agent decides once it has learnt, see `PoolRecipe`.
Deploy = Literal["greedy", "sample", "validated"]
#: Widths of layers; wider ones than these are a mistake.
Layers = tuple[Annotated[int, Of(least=1, most=1_000_000)], ...]
Below1 = Annotated[float, Of(least=0, below=1)]
#: `PoolTraining.teacher` that is another agent, not a heuristic.
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
    hidden: Layers = (64, 64)
    channels: Layers = ()
    kernels: Layers = ()
    strides: Layers = ()


@dataclass(frozen=True)
class PoolTraining:
    """How it is trained: imitation of a teacher, then parallel PPO (Schulman et al. 2017).

    Attributes:
        epochs: rounds of playing all sequences and updating.
        sequences: E, episodes an epoch, side by side.
        rate, steps: of the sequences, see `bridge.pool.world.draw`.
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
            (`bridge.pool.critic_view`), and is not needed any more once the agent has learnt.
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

    epochs: Count = 300
    sequences: Count = 16
    rate: Positive = 0.7
    steps: Count = 200
    draw_seed: int = 42
    fresh: bool = False
    valid_seed: int = 42
    valid_sequences: Count = 16
    validate_every: Count = 5
    algorithm: Literal["ppo", "pg"] = "ppo"
    learning_rate: Positive = 1e-4
    critic_rate: Positive = 1.0
    anneal: bool = False
    clip: Positive = 0.2
    gamma: Share = 0.99
    lam: Share = 0.95
    discount: Literal["decision", "step"] = "decision"
    critic: Literal["head", "outlook"] = "head"
    value: Unsigned = 0.25
    entropy: Unsigned = 0.02
    iterations: Count = 5
    minibatch: Count = 128
    target_kl: Positive = 0.01
    average: Below1 = 0.0
    teacher: str = ""
    inherit: bool = False
    lessons: Natural = 0
    imitation: Unsigned = 0.0
    imitated: Share = 0.5


@dataclass(frozen=True)
class PoolRecipe:
    """An agent of the time-stepped pool before it has learnt anything.

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
    most_kills: Natural = 1
    suspicion: Unsigned = 0.0
    network: PictureNetwork = field(default_factory=PictureNetwork)
    training: PoolTraining = field(default_factory=PoolTraining)
    deploy: Deploy = "greedy"

    #: Whose decisions it takes, and who teaches them (`bridge.learn.algorithms`).
    scheduler: ClassVar[str] = "pool"
    algorithm: ClassVar[str] = "pool"
    #: The exact rules under which it learns: the pool has one set of them.
    protocol: ClassVar[str] = "pool"

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
        verify(self, "recipe")
        training, network = self.training, self.network
        shape(self.pool)
        taught = training.lessons or training.imitation
        teachers = (*NAMES[:-1], AGENT_TEACHER)
        if training.teacher not in ("", *teachers) or (taught and not training.teacher):
            raise wrong("training.teacher", repr(training.teacher), f"One of {', '.join(teachers)}.")
        if training.inherit and training.teacher != AGENT_TEACHER:
            raise wrong("training.inherit", "true", "Weights can be had from another agent only.")
        if not network.hidden:
            raise wrong("network.hidden", "empty", "At least one layer.")
        layers = {len(network.channels), len(network.kernels), len(network.strides)}
        if len(layers) > 1 or (network.kind == "cnn") != bool(network.channels):
            raise wrong(
                "network.channels", network.channels, "A cnn has channels, kernels and strides, as many each."
            )

    def as_dict(self) -> dict[str, Any]:
        """Return the recipe as JSON or TOML has it."""
        document: dict[str, Any] = plain(self)
        return document


def wrong(name: str, value: object, remedy: str) -> BridgeError:
    """Return the error of a recipe's field."""
    return BridgeError(f"{name} cannot be {value}", where="recipe", remedy=remedy)
