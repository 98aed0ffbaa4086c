"""PREEMPT and TRIAL: an agent in a rule of action's place decides who gives way, or whom to try."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from small_jobs import make_jobs

from bridge.base.arrays import Floats
from bridge.base.errors import BridgeError
from bridge.env.env_config import build_env_config
from bridge.env.episodes import LogEpisodes
from bridge.env.reward import Reward

#: Compiling takes longer; see `worlds/fast/test_actions_without_compiler.py`.
pytestmark = [] if os.environ.get("NUMBA_DISABLE_JIT") == "1" else [pytest.mark.slow]
#: A long job, and short ones that wait behind it.
ROWS = [(0, 5000, 5000, 4), (10, 3000, 4000, 2), (2000, 50, 900, 3), (2100, 60, 900, 2), (2200, 70, 900, 2)]


def play(
    decision: Any, choose: Callable[[Any], int], **options: Any
) -> tuple[list[int], Floats, float, dict[str, Floats]]:
    """Play an episode; return the legal actions of each decision, all starts, the reward, the last info."""
    config = build_env_config(decision, workload=make_jobs(ROWS, [4]), length=len(ROWS), **options)
    episodes = LogEpisodes(config, 1)
    episodes.reset([np.random.default_rng(0)], {"start": 0}, rewind=True)
    choices, total = [], 0.0
    while True:
        legal = np.flatnonzero(episodes.masks[0])
        choices.append(len(legal))
        result = episodes.step(np.array([choose(legal)]))
        total += float(result.rewards[0])
        if result.terminated[0]:
            return choices, episodes.job_outcomes(0).start, total, episodes.final_info(result)


def test_an_agent_that_declines_every_trial_leaves_the_plain_rule() -> None:
    choices, start, _, info = play("trial", lambda legal: int(legal[-1]))
    assert min(choices) >= 2  # a candidate, and to decline
    assert start.tolist() == [0, 5070, 5000, 5000, 5050] or (start[1:] >= 5000).all()
    assert info["metric"][0] > info["base"][0]


def test_an_agent_that_tries_whom_it_can_is_the_rule() -> None:
    _, _, total, info = play("trial", lambda legal: int(legal[0]))
    assert info["metric"][0] == info["base"][0]
    assert total == 0.0


def test_whoever_preempts_the_long_job_serves_the_short_ones() -> None:
    _, start, _, _ = play("preempt", lambda legal: int(legal[0]))
    assert start[2] < 5000
    _, start, _, _ = play("preempt", lambda legal: int(legal[-1]))
    assert (start[1:] >= 5000).all()


@pytest.mark.parametrize("decision", ["preempt", "trial"])
def test_random_answers_end_every_job(decision: Any) -> None:
    rng = np.random.default_rng(1)
    for _ in range(3):
        _, start, _, _ = play(decision, lambda legal: int(rng.choice(legal)))
        assert (start >= [row[0] for row in ROWS]).all()


def test_a_rule_of_action_is_needed() -> None:
    with pytest.raises(BridgeError, match="an agent that decides trial needs an action"):
        play("trial", lambda legal: int(legal[0]), action="hybrid(300)")
    with pytest.raises(BridgeError, match="no rewards spread over time"):
        build_env_config("preempt", reward=Reward(spread="time"))
