"""Advantages and returns, worked out by hand."""

from typing import Any

import numpy as np
import pytest

from bridge.learn.advantages import compute_gae


def test_advantages_by_hand() -> None:
    # gamma 0.9, lam 0.5. Episode 0: deltas 1 + 0.9·1 − 0.5 = 1.4 and 2 − 1 = 1; episode 1: 3 − 2 = 1
    rewards, values = np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0, 2.0])
    advantage, returns = compute_gae(rewards, values, np.array([0, 0, 1]), 0.9, np.full(3, 0.5))
    assert advantage == pytest.approx([1.4 + 0.45 * 1.0, 1.0, 1.0])
    assert returns == pytest.approx([2.8, 2.0, 3.0])


def test_lam_one_is_the_return_less_the_value_and_lam_zero_one_step() -> None:
    rng = np.random.default_rng(0)
    rewards, values = rng.normal(size=7), rng.normal(size=7)
    episode = np.array([0, 0, 0, 2, 2, 5, 5])
    whole, returns = compute_gae(rewards, values, episode, 1.0, np.ones(7))
    assert whole == pytest.approx(returns - values)
    assert returns[[0, 3, 5]] == pytest.approx([rewards[:3].sum(), rewards[3:5].sum(), rewards[5:].sum()])
    step, _ = compute_gae(rewards, values, episode, 1.0, np.zeros(7))
    following = np.array([values[1], values[2], 0, values[4], 0, values[6], 0])
    assert step == pytest.approx(rewards + following - values)


def test_without_decisions_there_are_no_advantages() -> None:
    none = np.zeros(0)
    assert [a.tolist() for a in compute_gae(none, none, none.astype(np.int64), 1.0, none)] == [[], []]


def test_returns_are_of_the_own_episode_and_end_with_the_update() -> None:
    rewards, owner = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([0, 1, 0, 1, 1])

    def returns_of(rewards: Any, owner: Any, gamma: float) -> Any:
        return compute_gae(rewards, np.zeros(len(rewards)), owner, gamma, 1.0)[1]

    # 5; 4 + 2.5; 3; 2 + 3.25; 1 + 1.5
    assert returns_of(rewards, owner, 0.5).tolist() == [2.5, 5.25, 3.0, 6.5, 5.0]
    assert returns_of(rewards, owner, 0.0).tolist() == rewards.tolist()
    assert returns_of(rewards, owner, 1.0).tolist() == [4, 11, 3, 9, 5]
    assert returns_of(np.zeros(0), np.zeros(0, np.int64), 0.9).tolist() == []
