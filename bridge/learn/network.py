"""Networks over packed rows: decisions of different sizes stand one after the other, nothing is padded.

``rows`` is float [N, F], ``offsets`` int64 [D + 1]: decision d's rows are ``offsets[d]:offsets[d + 1]``.
"""

import itertools
import math
from importlib.metadata import entry_points

import torch
from torch import Tensor, nn

from bridge.encode.encoder import Encoder
from bridge.errors import BridgeError
from bridge.learn.recipe import Network, Recipe


def perceptron(widths: tuple[int, ...]) -> nn.Sequential:
    """Return linear layers of these widths with ReLU between them."""
    layers: list[nn.Module] = []
    for wide, narrow in itertools.pairwise(widths):
        layers += [nn.Linear(wide, narrow), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def owners(offsets: Tensor) -> Tensor:
    """Return the decision of each row, int64 [N]."""
    return torch.repeat_interleave(torch.arange(len(offsets) - 1, device=offsets.device), offsets.diff())


def places(offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the decision of each row and its place in it, int64 [N] each."""
    owner = owners(offsets)
    return owner, torch.arange(len(owner), device=offsets.device) - offsets[owner]


class Kernel(nn.Module):
    """One small network applied to every row (RLScheduler §3.2): scores [N, outputs]."""

    def __init__(self, encoder: Encoder, shape: Network, outputs: int) -> None:
        super().__init__()
        self.layers = perceptron((len(encoder.features), *shape.hidden, outputs))

    def forward(self, rows: Tensor, offsets: Tensor) -> Tensor:  # noqa: ARG002
        """Return scores [N, outputs]."""
        scores: Tensor = self.layers(rows)
        return scores


class Flat(nn.Module):
    """All rows of a decision side by side, absent ones padded: values [D, outputs].

    The first layer is applied to the rows that are there, by their place, and once to the padding.
    """

    padding: Tensor

    def __init__(self, encoder: Encoder, shape: Network, outputs: int) -> None:
        super().__init__()
        self.places, self.features = encoder.rows, len(encoder.features)
        self.layers = perceptron((self.places * self.features, *shape.hidden, outputs))
        padding = torch.tensor(encoder.padding or (0.0,) * self.features)
        self.register_buffer("padding", padding, persistent=False)

    def forward(self, rows: Tensor, offsets: Tensor) -> Tensor:
        """Return values [D, outputs]."""
        owner, place = places(offsets)
        dense = self.padding.to(rows.dtype).expand(len(offsets) - 1, self.places, -1).clone()
        dense[owner, place] = rows
        values: Tensor = self.layers(dense.flatten(1))
        return values


class Places(Flat):
    """All rows of a decision side by side, outputs for each (RLScheduler's MLPs): scores [N, outputs]."""

    def __init__(self, encoder: Encoder, shape: Network, outputs: int) -> None:
        super().__init__(encoder, shape, encoder.rows * outputs)
        self.outputs = outputs

    def forward(self, rows: Tensor, offsets: Tensor) -> Tensor:
        """Return scores [N, outputs]."""
        scores = super().forward(rows, offsets).reshape(-1, self.places, self.outputs)
        owner, place = places(offsets)
        return scores[owner, place]


class Scalars(nn.Module):
    """A number per row, absent rows padded, then a network over them (RLScheduler's critic): [D, outputs]."""

    padding: Tensor

    def __init__(self, encoder: Encoder, shape: Network, outputs: int) -> None:
        super().__init__()
        self.places = encoder.rows
        self.rows = perceptron((len(encoder.features), *shape.hidden, 1))
        self.head = perceptron((encoder.rows, *shape.head, outputs))
        padding = torch.tensor(encoder.padding or (0.0,) * len(encoder.features))
        self.register_buffer("padding", padding, persistent=False)

    def forward(self, rows: Tensor, offsets: Tensor) -> Tensor:
        """Return values [D, outputs]."""
        absent = self.rows(self.padding.to(rows.dtype))
        dense = absent.expand(len(offsets) - 1, self.places).clone()
        dense[places(offsets)] = self.rows(rows)[:, 0]
        values: Tensor = self.head(dense)
        return values


class Pooled(nn.Module):
    """A network per row, then mean and maximum over a decision's rows, then another: values [D, outputs]."""

    def __init__(self, encoder: Encoder, shape: Network, outputs: int) -> None:
        super().__init__()
        self.rows = nn.Sequential(perceptron((len(encoder.features), *shape.hidden)), nn.ReLU())
        self.head = perceptron((2 * shape.hidden[-1], *shape.head, outputs))

    def forward(self, rows: Tensor, offsets: Tensor) -> Tensor:
        """Return values [D, outputs]."""
        inner = self.rows(rows)
        sizes = offsets.diff()
        mean = torch.segment_reduce(inner, "mean", lengths=sizes, axis=0)
        largest = torch.segment_reduce(inner, "max", lengths=sizes, axis=0)
        values: Tensor = self.head(torch.cat((mean, largest), 1))
        return values


NETWORKS: dict[str, type[nn.Module]] = {
    "kernel": Kernel,
    "flat": Flat,
    "places": Places,
    "scalars": Scalars,
    "pooled": Pooled,
}


def build(shape: Network, encoder: Encoder, outputs: int) -> nn.Module:
    """Return a fresh network; a kind that is not ours is looked for in the entry points ``bridge.networks``.

    Raises:
        BridgeError: nobody provides this kind.
    """
    kind = NETWORKS.get(shape.kind)
    if kind is None:
        for point in entry_points(group="bridge.networks", name=shape.kind):
            kind = point.load()
    if kind is None:
        raise BridgeError(
            "unknown network",
            where=repr(shape.kind),
            remedy=f"Choose {', '.join(NETWORKS)}, or install the package that provides it.",
        )
    return kind(encoder, shape, outputs)


def actor_of(recipe: Recipe) -> nn.Module:
    """Return the actor: a score per row [N, 1], or for INSPECT scores of accepting and rejecting [D, 2]."""
    return build(recipe.actor, recipe.encoder, 2 if recipe.decision == "inspect" else 1)


def critic_of(recipe: Recipe) -> nn.Module:
    """Return the critic: the expected sum of rewards from each decision on, [D, 1]."""
    return build(recipe.critic, recipe.encoder, 1)


def lean(actor: nn.Module, rejecting: float) -> None:
    """Let an inspector's actor begin with about this probability of rejecting, by its last bias."""
    last = [layer for layer in actor.modules() if isinstance(layer, nn.Linear)][-1]
    with torch.no_grad():
        last.bias.copy_(torch.tensor([0.0, math.log(rejecting / (1.0 - rejecting))]))


def parameters(network: nn.Module) -> int:
    """Return how many numbers the network learns."""
    return sum(p.numel() for p in network.parameters())


def choices(scores: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
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
