"""Networks over packed rows: decisions of different sizes stand one after the other, nothing is padded.

``rows`` is float [N, F], ``offsets`` int64 [D + 1]: decision d's rows are ``offsets[d]:offsets[d + 1]``;
``context`` is float [D, C].
"""

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor, nn

from bridge.base.errors import BridgeError
from bridge.base.plugins import load_named
from bridge.env.encoder import Encoder
from bridge.learn.recipe import FuturePredictionConfig, NetworkConfig, Recipe
from bridge.learn.segments import pool

M = TypeVar("M", bound=nn.Module)
#: The factor of a rule's key to begin with: how much likelier a key larger by 1 is, as a logarithm.
SHARPNESS = 10.0
#: Between linear layers, whose outputs nobody else reads.
RELU = partial(nn.ReLU, inplace=True)
#: Numbers of a network, at most (4 GB).
MOST_PARAMETERS = 10**9


class Stack(nn.Sequential):
    def __call__(self, inputs: Tensor) -> Tensor:
        output: Tensor = super().__call__(inputs)
        return output


def perceptron(
    widths: tuple[int, ...], between: Callable[[], nn.Module] = RELU, *, behind: bool = False
) -> Stack:
    """Return linear layers of these widths with something between them, or also behind the last one."""
    layers: list[nn.Module] = []
    for wide, narrow in itertools.pairwise(widths):
        layers += [nn.Linear(wide, narrow), between()]
    return Stack(*(layers if behind else layers[:-1]))


def owners(offsets: Tensor) -> Tensor:
    """Return the decision of each row, int64 [N]."""
    return torch.repeat_interleave(torch.arange(len(offsets) - 1, device=offsets.device), offsets.diff())


def places(offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the decision of each row and its place in it, int64 [N] each."""
    owner = owners(offsets)
    return owner, torch.arange(len(owner), device=offsets.device) - offsets[owner]


class RowNetwork(nn.Module):
    """One small network applied to every row (RLScheduler §3.2): scores [N, outputs]."""

    def __init__(self, encoder: Encoder, shape: NetworkConfig, outputs: int) -> None:
        super().__init__()
        self.layers = perceptron((encoder.width, *shape.hidden, outputs))

    def forward(self, rows: Tensor, offsets: Tensor, context: Tensor) -> Tensor:  # noqa: ARG002
        return self.layers(rows)


class Prior(RowNetwork):
    """A rule's key, the first feature, times a learnt factor, and a kernel network's correction: [N, 1].

    It begins as the rule: the network's last layer is 0. Residual policy learning (Silver et al. 2018).
    """

    def __init__(self, encoder: Encoder, shape: NetworkConfig, outputs: int) -> None:
        super().__init__(encoder, shape, outputs)
        self.factor = nn.Parameter(torch.tensor(SHARPNESS))
        for parameter in self.layers[-1].parameters():
            nn.init.zeros_(parameter)

    def forward(self, rows: Tensor, offsets: Tensor, context: Tensor) -> Tensor:
        return self.factor * rows[:, :1] + super().forward(rows, offsets, context)


class Padded(nn.Module):
    """What wants all W rows of a decision: absent ones are the encoder's padding."""

    padding: Tensor

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.places, self.features = encoder.rows, encoder.width
        padding = torch.tensor(encoder.padding or (0.0,) * self.features)
        self.register_buffer("padding", padding, persistent=False)

    def dense(self, rows: Tensor, offsets: Tensor) -> Tensor:
        dense = self.padding.to(rows.dtype).expand(len(offsets) - 1, self.places, -1).clone()
        dense[places(offsets)] = rows
        return dense


class Flat(Padded):
    """All rows of a decision and its context side by side, absent ones padded: values [D, outputs]."""

    def __init__(self, encoder: Encoder, shape: NetworkConfig, outputs: int) -> None:
        super().__init__(encoder)
        size = self.places * self.features + encoder.context
        self.layers = perceptron((size, *shape.hidden, outputs))

    def inputs(self, rows: Tensor, offsets: Tensor, context: Tensor) -> Tensor:
        dense = self.dense(rows, offsets).flatten(1)
        return torch.cat((dense, context), 1) if context.shape[1] else dense

    def forward(self, rows: Tensor, offsets: Tensor, context: Tensor) -> Tensor:
        return self.layers(self.inputs(rows, offsets, context))


class Places(Flat):
    """Rows and context side by side, outputs for each row (RLScheduler's MLPs): scores [N, outputs]."""

    def __init__(self, encoder: Encoder, shape: NetworkConfig, outputs: int) -> None:
        super().__init__(encoder, shape, encoder.rows * outputs)
        self.outputs = outputs

    def forward(self, rows: Tensor, offsets: Tensor, context: Tensor) -> Tensor:
        scores = super().forward(rows, offsets, context)
        return scores.reshape(-1, self.places, self.outputs)[places(offsets)]


class Scalars(Padded):
    """A number per row, absent rows padded, then a network over them (RLScheduler's critic): [D, outputs]."""

    def __init__(self, encoder: Encoder, shape: NetworkConfig, outputs: int) -> None:
        super().__init__(encoder)
        self.rows = perceptron((encoder.width, *shape.hidden, 1))
        self.head = perceptron((encoder.rows, *shape.head, outputs))

    def forward(self, rows: Tensor, offsets: Tensor, context: Tensor) -> Tensor:  # noqa: ARG002
        absent = self.rows(self.padding.to(rows.dtype))
        dense = absent.expand(len(offsets) - 1, self.places).clone()
        dense[places(offsets)] = self.rows(rows)[:, 0]
        return self.head(dense)


class Pooled(nn.Module):
    """A network per row, then mean and maximum over a decision's rows, then another: values [D, outputs]."""

    def __init__(self, encoder: Encoder, shape: NetworkConfig, outputs: int) -> None:
        super().__init__()
        self.rows = Stack(perceptron((encoder.width, *shape.hidden)), RELU())
        self.head = perceptron((2 * shape.hidden[-1], *shape.head, outputs))

    def forward(self, rows: Tensor, offsets: Tensor, context: Tensor) -> Tensor:  # noqa: ARG002
        return self.head(pool(self.rows(rows), offsets))


class Pairs(Padded):
    """Rows and context, two numbers at a time through one filter, then dense layers: scores [N, 1].

    Source: Y. Fan et al., "DRAS", IPDPS 2021, §III-B; B. Li et al., "Encoding for Reinforcement Learning
    Driven Scheduling", 2022. The dense layers but the last have no bias.
    """

    def __init__(self, encoder: Encoder, shape: NetworkConfig, outputs: int) -> None:
        super().__init__(encoder)
        size = self.places * self.features + encoder.context
        if outputs != 1 or size % 2:
            what = "a network of pairs scores rows of one answer each, and an even number of inputs"
            raise BridgeError(what, where=f"{size} inputs")
        self.pair = nn.Linear(2, 1)
        widths = (size // 2, *shape.hidden)
        self.hidden = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in itertools.pairwise(widths))
        self.last = nn.Linear(widths[-1], self.places)

    def forward(self, rows: Tensor, offsets: Tensor, context: Tensor) -> Tensor:
        inputs = torch.cat((self.dense(rows, offsets).flatten(1), context), 1)
        inner = self.pair(inputs.reshape(len(inputs), -1, 2))[..., 0]
        for layer in self.hidden:
            inner = torch.relu(layer(inner))
        scores: Tensor = self.last(inner)
        return scores[places(offsets)][:, None]


def leaky(widths: tuple[int, ...]) -> Stack:
    """Return linear layers of these widths, each with a leaky ReLU behind it."""
    return perceptron(widths, nn.LeakyReLU, behind=True)


class Future(Padded):
    """Predicts by how much each answer will change the measurements: scores [N, 1].

    Modules for state, measurements and goal; their outputs side by side go through an expectation stream,
    and an action stream whose mean over the actions is taken away unless `FuturePredictionConfig.dueling` is
    off (Dosovitskiy & Koltun, ICLR 2017; MRSch §III-A). The last 2 R numbers of the context are the R
    measurements and the goal. A score is the prediction weighted by the goal and, over the offsets, by
    `FuturePredictionConfig.weights`.
    """

    weights: Tensor

    def __init__(self, encoder: Encoder, shape: NetworkConfig, outputs: int) -> None:
        super().__init__(encoder)
        self.measured, numbers = encoder.resources, len(encoder.machine_columns)
        if outputs != 1 or numbers != 2 * self.measured or not shape.aside or not shape.hidden:
            what = "future prediction needs a measurement and a goal per resource, `hidden` and `aside`"
            raise BridgeError(what, where=f"{numbers} numbers of the machine for {self.measured} resources")
        self.context_size = encoder.context - numbers
        self.state = self._state(encoder, shape)
        self.measurement = leaky((self.measured, *shape.aside))
        self.goal = leaky((self.measured, *shape.aside))
        # how many offsets there are, `prepare` knows
        self._joint = (shape.hidden[-1] + 2 * shape.aside[-1], *shape.head)

    def _state(self, encoder: Encoder, shape: NetworkConfig) -> Stack:
        return leaky((self.places * self.features + encoder.context - 2 * self.measured, *shape.hidden))

    def prepare(self, prediction: FuturePredictionConfig) -> "Future":
        """Add the streams for these offsets; returns the network."""
        self.offsets, self.dueling = len(prediction.offsets), prediction.dueling
        each = self.measured * self.offsets
        self.expectation = perceptron((*self._joint, each), nn.LeakyReLU)
        self.action = perceptron((*self._joint, self.places * each), nn.LeakyReLU)
        self.register_buffer("weights", torch.tensor(prediction.weights), persistent=False)
        return self

    def predict(self, rows: Tensor, offsets: Tensor, context: Tensor) -> Tensor:
        """Return predicted changes of the measurements, [D, W, R, offsets]."""
        measured = context[:, self.context_size : self.context_size + self.measured]
        goal = context[:, self.context_size + self.measured :]
        state = self._state_inputs(self.dense(rows, offsets), context[:, : self.context_size])
        joint = torch.cat((state, self.measurement(measured), self.goal(goal)), 1)
        action = self.action(joint).reshape(-1, self.places, self.measured, self.offsets)
        expected = self.expectation(joint).reshape(-1, 1, self.measured, self.offsets)
        return expected + (action - action.mean(1, keepdim=True) if self.dueling else action)

    def _state_inputs(self, dense: Tensor, running: Tensor) -> Tensor:
        return self.state(torch.cat((dense.flatten(1), running), 1))

    def forward(self, rows: Tensor, offsets: Tensor, context: Tensor) -> Tensor:
        goal = context[:, self.context_size + self.measured :]
        predicted = self.predict(rows, offsets, context)
        scores = torch.einsum("dwrt,dr,t->dw", predicted, goal, self.weights.to(goal.dtype))
        return scores[places(offsets)][:, None]


class FutureCnn(Future):
    """The same with convolutions over the candidates' and the running jobs' rows (MRSch, Figure 3)."""

    #: Channels, and rows that a filter sees.
    CHANNELS, KERNEL_SIZE = (16, 32), 3

    def _state(self, encoder: Encoder, shape: NetworkConfig) -> Stack:
        width = len(encoder.running_columns)
        self.shape = (sum(encoder.running_rows), width)
        self.waiting = self._convolution(self.features)
        self.running = self._convolution(width) if width else nn.Identity()
        size = self.CHANNELS[-1] * (self.places + (self.shape[0] if width else 0))
        return leaky((size, *shape.hidden))

    def _convolution(self, features: int) -> Stack:
        layers: list[nn.Module] = []
        for wide, narrow in itertools.pairwise((features, *self.CHANNELS)):
            layers += [nn.Conv1d(wide, narrow, self.KERNEL_SIZE, padding="same"), nn.LeakyReLU()]
        return Stack(*layers, nn.Flatten())

    def _state_inputs(self, dense: Tensor, running: Tensor) -> Tensor:
        parts = [self.waiting(dense.transpose(1, 2))]
        if self.shape[1]:
            parts.append(self.running(running.reshape(-1, *self.shape).transpose(1, 2)))
        return self.state(torch.cat(parts, 1))


NETWORKS: dict[str, type[nn.Module]] = {
    "kernel": RowNetwork,
    "prior": Prior,
    "flat": Flat,
    "places": Places,
    "scalars": Scalars,
    "pooled": Pooled,
    "pairs": Pairs,
    "future": Future,
    "future-cnn": FutureCnn,
}


def bounded(make: Callable[[], M], where: str) -> M:
    """Return a network, unless it is so large that a mistake must have been made (BridgeError)."""
    with torch.device("meta"):  # takes no memory
        size = parameters(make())
    if size > MOST_PARAMETERS:
        remedy = f"Use narrower layers: at most {MOST_PARAMETERS:,} numbers."
        raise BridgeError(f"a network of {size:,} numbers is too large", where=where, remedy=remedy)
    return make()


def build(shape: NetworkConfig, encoder: Encoder, outputs: int) -> nn.Module:
    """Return a fresh network; kinds that are not ours are the entry points ``bridge.networks``."""
    kind = NETWORKS.get(shape.kind) or load_named("bridge.networks", shape.kind, "network", NETWORKS)
    network: nn.Module = bounded(lambda: kind(encoder, shape, outputs), f"{shape.kind} of {shape.hidden}")
    return network


def actor_of(recipe: Recipe) -> nn.Module:
    """Return the actor: a score per row [N, 1], or for INSPECT scores of accepting and rejecting [D, 2]."""
    actor = build(recipe.actor, recipe.encoder, 2 if recipe.decision == "inspect" else 1)
    return actor.prepare(recipe.prediction) if isinstance(actor, Future) else actor


def critic_of(recipe: Recipe) -> nn.Module:
    """Return the critic: the expected sum of rewards from each decision on, [D, 1]."""
    return build(recipe.critic, recipe.encoder, 1)


def cached_forward(
    network: nn.Module, rows: Tensor, offsets: Tensor, context: Tensor
) -> Callable[[], Tensor]:
    """Return a function that evaluates the network on fixed inputs; what no weight changes is reused."""
    if type(network) is not Flat:
        return lambda: network(rows, offsets, context)
    inputs = network.inputs(rows, offsets, context)
    return lambda: network.layers(inputs)


def set_initial_reject_rate(actor: nn.Module, rejecting: float) -> None:
    """Let an inspector's actor begin with about this probability of rejecting, by its last bias."""
    last = [layer for layer in actor.modules() if isinstance(layer, nn.Linear)][-1]
    with torch.no_grad():
        last.bias.copy_(torch.tensor([0.0, math.log(rejecting / (1.0 - rejecting))]))


def parameters(network: nn.Module) -> int:
    return sum(p.numel() for p in network.parameters())


def parameter_counts(recipe: Recipe) -> dict[str, int]:
    """Return how many numbers each of a recipe's networks learns; none of them is filled with any."""
    with torch.device("meta"):
        networks = {"actor": actor_of(recipe)}
        if recipe.critic.kind != "none":
            networks["critic"] = critic_of(recipe)
    return {name: parameters(network) for name, network in networks.items()}


def action_scores(scores: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the scores of all answers one after the other [M], and where each decision's begin [D + 1].

    A row is an answer, but for INSPECT, whose one row has two.
    """
    if scores.shape[1] == 1:
        return scores[:, 0], offsets
    return scores.reshape(-1), offsets * scores.shape[1]


def log_softmax(scores: Tensor, offsets: Tensor) -> Tensor:
    """Return the log probability of each answer within its decision, [M]."""
    owner = owners(offsets)
    highest = torch.segment_reduce(scores.detach(), "max", lengths=offsets.diff())
    shifted = scores - highest[owner]
    total = torch.zeros_like(highest).index_add(0, owner, shifted.exp())
    return shifted - total.log()[owner]
