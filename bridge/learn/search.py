"""Where to begin: of many random actors with strong opinions, the one that does best.

A policy that answers nearly at random learns nothing where only consistent behaviour pays off, such as
rejecting the same job again and again. Random weights with a loud last layer behave consistently, each in its
own way.
"""

import copy

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from bridge.env.batch import Batch
from bridge.env.outcome import episode_of
from bridge.learn.rollout import collect

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: How much louder the last layer is than usual, and the spread of its biases.
LOUD, BIAS = 5.0, 0.5


def loud(actor: nn.Module, generator: torch.Generator) -> nn.Module:
    """Return an actor of the same shape with fresh random weights (He et al. 2015) and a loud last layer."""
    fresh = copy.deepcopy(actor)
    linear = [layer for layer in fresh.modules() if isinstance(layer, nn.Linear)]
    with torch.no_grad():
        for layer in linear:
            drawn = torch.randn(layer.weight.shape, generator=generator) * (2.0 / layer.in_features) ** 0.5
            layer.weight.copy_(drawn)
            layer.bias.zero_()
        linear[-1].weight.mul_(LOUD / 2.0**0.5)
        linear[-1].bias.copy_(torch.randn(linear[-1].bias.shape, generator=generator) * BIAS)
    return fresh


def best_of(
    candidates: int, actor: nn.Module, batch: Batch, starts: Ints, base: Floats, metric: str, seed: int
) -> nn.Module:
    """Return the best of some random actors, by the mean of their metric over the base's.

    Args:
        candidates: how many to try.
        actor: whose shape they have.
        batch: at least as many places as starts.
        starts: first jobs of the episodes that they play, the same for all.
        base: the base policy's values there.
        metric: see `bridge.env.reward.Reward`.
        seed: of weights and answers.
    """
    generator = torch.Generator().manual_seed(seed)
    found: list[tuple[float, nn.Module]] = []
    for _ in range(candidates):
        one = loud(actor, generator)
        collect(batch, one, starts, np.random.default_rng(seed))
        values = np.array([episode_of(batch, b).value(metric) for b in range(len(starts))])
        found.append((float((values / np.maximum(base, 1e-9)).mean()), one))
    return min(found, key=lambda pair: pair[0])[1]
