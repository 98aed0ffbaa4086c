"""PPO: surrogates and horizons worked out by hand, and a toy problem that is solved."""

from typing import Any

import numpy as np
import pytest
import torch
from tiny_training import tiny

from bridge.env.batch import PackedObservations
from bridge.env.encoder import Encoder
from bridge.learn.algorithms.ppo import PpoUpdate, lambdas
from bridge.learn.network import build
from bridge.learn.recipe import NetworkConfig, TrainingConfig
from bridge.learn.rollout import Rollout, sample_actions, scores_of


def test_a_horizon_counts_seconds_in_place_of_decisions() -> None:
    times = np.array([0, 0, 10_000_000, 40_000_000])
    training = tiny(horizon=10.0).training
    assert lambdas(times, training)[:3] == pytest.approx([1.0, np.exp(-1), np.exp(-3)])
    assert lambdas(times, tiny(lam=0.9).training).tolist() == [0.9] * 4


#: Rows (1, 0), (0, 1), …: the agent can tell which is which.
CHOICES = np.eye(3, dtype=np.float32)


def bandits(actor: torch.nn.Module, sizes: list[int], rng: np.random.Generator) -> Rollout:
    rows = np.concatenate([CHOICES[-n:] for n in sizes])
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    n = len(sizes)
    none = np.zeros((n, 0), np.float32)
    actions, logp = sample_actions(
        *scores_of(actor, PackedObservations(rows, offsets, np.zeros(len(rows), np.int64), none)), rng
    )
    return Rollout(
        rows, offsets, none, actions, logp, np.arange(n), np.zeros(n, np.int64), np.zeros(n, np.bool_), []
    )


def learners(rate: float) -> tuple[Any, Any, list[torch.optim.Adam]]:
    """Return an actor and a critic of three features, and what moves their weights at this rate."""
    torch.manual_seed(0)
    encoder = Encoder("pick", {"a": "t", "b": "n", "c": "w"}, window=3)
    both = build(NetworkConfig("kernel", (8,)), encoder, 1), build(NetworkConfig("pooled", (8,)), encoder, 1)
    return *both, [torch.optim.Adam(one.parameters(), rate) for one in both]


@pytest.mark.parametrize("minibatch", [0, 64])
def test_a_toy_problem_is_learnt(minibatch: int) -> None:
    actor, critic, adams = learners(0.02)
    training = TrainingConfig(
        learning_rate=0.02,
        critic_rate=0.02,
        iterations=8,
        critic_iterations=8,
        minibatch=minibatch,
        target_kl=0.05,
    )
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 4, 120).tolist()
    shares = []
    for _ in range(12):
        seen = bandits(actor, sizes, rng)
        taken = seen.rows[seen.offsets[:-1] + seen.actions]
        worth = taken @ np.array([0.2, 1.0, 0.0])  # the second is best wherever it is offered
        losses = PpoUpdate(seen, worth.astype(np.float64), actor, critic, training).run(*adams, rng)
        shares.append(taken[np.array(sizes) > 1, 1].mean())
        assert losses.kl < 0.5
    assert shares[0] < 0.7
    assert shares[-1] > 0.95
    assert losses.entropy < 0.3


def test_updates_stop_once_the_policy_has_moved_far_enough() -> None:
    actor, critic, adams = learners(0.1)
    rng = np.random.default_rng(0)
    seen = bandits(actor, [3] * 100, rng)
    worth = seen.rows[seen.offsets[:-1] + seen.actions, 1].astype(np.float64)
    losses = PpoUpdate(seen, worth, actor, critic, TrainingConfig(iterations=80, target_kl=0.01)).run(
        *adams, rng
    )
    assert losses.iterations < 20
    assert losses.kl > 0.015
