"""Networks over pictures of the time-stepped pool: scores of all actions, and a value; MLP or CNN."""

from typing import Any

import torch
from torch import Tensor, nn

from bridge.base.arrays import Flags, Floats32, Ints
from bridge.base.errors import BridgeError
from bridge.learn.checkpoint import Agent
from bridge.learn.network import Stack, bounded, perceptron
from bridge.pool.observation import PictureBatch, integrate, integrate_back, multiply, shape
from bridge.pool.recipe import PoolNetworkConfig, PoolRecipe
from bridge.pool.settings import PoolConfig
from bridge.pool.world import N_CRITIC_FEATURES

#: Agents of the time-stepped pool.
PoolCheckpoint = Agent[PoolRecipe]


def _integrated(matrix: Tensor, settings: PoolConfig) -> Tensor:
    sums = torch.empty_like(matrix)
    integrate(matrix.detach().numpy(), settings.units, shape(settings)[1], sums.numpy())
    return sums


def _times(sums: Tensor, view: PictureBatch, which: Ints) -> Tensor:
    out = torch.zeros(len(which), sums.shape[1], dtype=sums.dtype)
    multiply(view.cells, view.values, view.offsets, which, sums.numpy(), out.numpy(), False)
    return out


class _Product(torch.autograd.Function):
    """Pictures times a matrix, by the kernels of `bridge.pool.observation`."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, view: PictureBatch, which: Ints) -> Tensor:
        ctx.view, ctx.which, ctx.shape = view, which, matrix.shape
        return _times(_integrated(matrix, view.settings), view, which)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        view, gradient = ctx.view, gradients[0].contiguous()
        units, width = view.settings.units, shape(view.settings)[1]
        out = torch.zeros(ctx.shape, dtype=gradient.dtype)
        multiply(view.cells, view.values, view.offsets, ctx.which, out.numpy(), gradient.numpy(), True)
        integrate_back(out.numpy(), units, width)
        return out, None, None


class Corners(nn.Module):
    """A linear layer over pictures, by their corners; its weights stand as [cells, outputs]."""

    def __init__(self, cells: int, outputs: int) -> None:
        super().__init__()
        bound = cells**-0.5  # as PyTorch's own linear layers begin
        self.weight = nn.Parameter(torch.empty(cells, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))
        self._fixed = False
        self._sums: Tensor | None = None

    def fix(self, fixed: bool) -> None:
        """Promise that the weights stay as they are, so that they are integrated once; or take it back."""
        self._fixed, self._sums = fixed, None

    def forward(self, view: PictureBatch, which: Ints) -> Tensor:
        """Return [N, outputs]; without a gradient while the weights are fixed."""
        if self._fixed:
            if self._sums is None:
                self._sums = _integrated(self.weight.detach(), view.settings)
            return _times(self._sums, view, which) + self.bias
        product: Tensor = _Product.apply(self.weight, view, which)  # type: ignore[no-untyped-call]
        return product + self.bias


class Convolutions(nn.Module):
    """Convolutions over pictures: features [N, …] in one row each."""

    def __init__(self, height: int, width: int, network: PoolNetworkConfig) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 1
        for outputs, kernel, stride in zip(network.channels, network.kernels, network.strides, strict=True):
            layers += [nn.Conv2d(channels, outputs, kernel, stride), nn.ReLU()]
            channels = outputs
            height, width = ((side - kernel) // stride + 1 for side in (height, width))
        if min(height, width) < 1:
            raise BridgeError(
                "nothing is left of the picture", where="network.kernels", remedy="Smaller ones."
            )
        self.layers = nn.Sequential(*layers)
        self.outputs = channels * height * width

    def forward(self, view: PictureBatch, which: Ints) -> Tensor:
        pictures = torch.from_numpy(view.pictures(which)).to(next(self.parameters()).dtype)
        features: Tensor = self.layers(pictures[:, None]).flatten(1)
        return features


class ActorCritic(nn.Module):
    """Scores of A actions and a value over shared hidden layers (RLSchert, Section 4.1.3).

    `shape`: of the picture. `critic`: it has one of its own, too: a value of what
    `bridge.pool.world.critic_features` knows, [N]; it only helps to learn.
    """

    def __init__(
        self, shape: tuple[int, int], actions: int, network: PoolNetworkConfig, *, critic: bool = False
    ) -> None:
        super().__init__()
        height, width = shape
        first, *rest = network.hidden
        before: list[nn.Module] = [nn.ReLU()]
        self.eye: nn.Module
        if network.kind == "mlp":
            self.eye = Corners(height * width, first)
        else:
            self.eye = Convolutions(height, width, network)
            before = [nn.Linear(self.eye.outputs, first), nn.ReLU()]
        self.hidden = Stack(*before, *perceptron((first, *rest), behind=True))
        self.policy = nn.Linear(network.hidden[-1], actions)
        self.value = nn.Linear(network.hidden[-1], 1)
        self.critic = (
            Stack(*perceptron((N_CRITIC_FEATURES, 64, 64, 1), nn.Tanh), nn.Flatten(0)) if critic else None
        )
        with torch.no_grad():  # nearly all actions are alike at the beginning
            self.policy.weight.mul_(0.1)
            self.policy.bias.zero_()

    def fix(self, fixed: bool = True) -> None:
        """Promise that the weights stay as they are (`Corners.fix`), or take it back."""
        if isinstance(self.eye, Corners):
            self.eye.fix(fixed)

    def forward(
        self, view: PictureBatch, which: Ints, outlooks: Floats32 | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the scores [N, A] and values [N] of some pictures.

        With their `bridge.pool.world.critic_features` [N, N_CRITIC_FEATURES] the critic says the values, if
        there is one.
        """
        inner = self.hidden(self.eye(view, which))
        if self.critic is None or outlooks is None:
            return self.policy(inner), self.value(inner)[:, 0]
        return self.policy(inner), self.critic(torch.from_numpy(outlooks))


def network_of(recipe: PoolRecipe) -> ActorCritic:
    critic = recipe.training.critic == "outlook"

    def build_network() -> ActorCritic:
        return ActorCritic(shape(recipe.pool), recipe.pool.actions, recipe.network, critic=critic)

    return bounded(build_network, f"{recipe.network.kind} of {recipe.network.hidden}")


def weights(network: ActorCritic) -> int:
    """Return the number of weights, without biases and the value head, as the paper counts."""
    return sum(
        parameter.numel()
        for name, parameter in network.named_parameters()
        if name.endswith("weight") and not name.startswith(("value.", "critic."))
    )


def log_probabilities(scores: Tensor, masks: Flags) -> Tensor:
    """Return the log probability of each action, [N, A]; minus infinity where it is not legal."""
    return scores.masked_fill(torch.from_numpy(~masks), -torch.inf).log_softmax(1)
