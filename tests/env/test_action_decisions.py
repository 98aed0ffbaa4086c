"""PREEMPT and TRIAL: an agent in a rule of action's place decides who gives way, or whom to try."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from small_jobs import make_jobs

from bridge.base.arrays import Floats
from bridge.base.errors import BridgeError
from bridge.env.batch import Batch
from bridge.env.encoder import Encoder
from bridge.env.env_config import build_env_config
from bridge.env.episodes import LogEpisodes
from bridge.env.reward import Reward
from bridge.learn.agent import schedules_by
from bridge.learn.rollout import argmax_actions
from bridge.worlds.fast.replay import replay_sequences
from bridge.worlds.fast.scheduler_config import SchedulerConfig

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


#: Who gives way by the rule itself, and what of a running job was served and is left.
_BY_RULE = {"rule": "rule", "served": "served", "rest": "rest", "head served": "head_served"}


def _agent_by_rule(rows: list[Any], nodes: int, decision: Any, action: str) -> tuple[Any, Any]:
    """Return schedules under a rule and under an agent that does what it sees of the rule."""
    setup = SchedulerConfig("saf", "easy", action=action)
    jobs = make_jobs(rows, [nodes])
    encoder = Encoder(decision, _BY_RULE, window=64, stop=True)
    policy = setup.policy(decision)
    starts = np.zeros(1, np.int64)

    def answer(view: Any) -> Any:
        return argmax_actions(np.where(view.rows[:, 0] < 0, 0.5, view.rows[:, 0]), np.diff(view.offsets))

    played = schedules_by(encoder.compile({}), answer, setup.build_scenario(jobs, policy), starts, len(rows))
    return replay_sequences(setup.build_scenario(jobs), starts, len(rows))[0], played[0]


def test_an_agent_that_tries_what_it_sees_of_the_rule_is_the_rule() -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n, nodes = 24, 8
        submit = np.cumsum(rng.exponential(400, n)).astype(int)
        run = np.exp(rng.uniform(np.log(20), np.log(20_000), n)).astype(int)
        request = (run * np.exp(rng.uniform(0, 3, n))).astype(int) + 1
        size = rng.integers(1, nodes + 1, n)
        rows = [*zip(submit.tolist(), run.tolist(), request.tolist(), size.tolist(), strict=True)]
        rule, agent = _agent_by_rule(rows, nodes, "trial", "guest(300)")
        assert rule.lives is not None and rule.lives.suspensions.sum() > 0
        assert agent.end.tolist() == rule.end.tolist()


def test_threads_change_nothing() -> None:
    setup = SchedulerConfig("saf", "easy", action="hybrid(300)")
    jobs, encoder = make_jobs(ROWS * 4, [4]), Encoder("preempt", _BY_RULE, window=8, stop=True)
    played = []
    for threads in (1, 2):
        scenario = setup.build_scenario(jobs, setup.policy("preempt"))
        batch = Batch(scenario, encoder.compile({}), 4, len(ROWS), threads=threads)
        view, seen = batch.reset(len(ROWS) * np.arange(4)), list[Any]()
        while len(view.rows):
            seen.append((view.rows.tolist(), view.offsets.tolist()))
            view = batch.step(np.arange(4) % 2)
        played.append((seen, [batch.starts_of(b).tolist() for b in range(4)]))
    assert played[0] == played[1]
    assert len(played[0][0]) > 1


def test_what_is_seen_of_service_and_of_the_rule() -> None:
    setup = SchedulerConfig("saf", "easy", action="hybrid(300)")
    jobs, encoder = make_jobs(ROWS, [4]), Encoder("preempt", _BY_RULE, window=8, stop=True)
    batch = Batch(setup.build_scenario(jobs, setup.policy("preempt")), encoder.compile({}), 1, len(ROWS))
    view, rows = batch.reset(np.zeros(1, np.int64)), list[Any]()
    while len(view.rows):
        rows.append((batch.now[0] / 1e6, *view.rows[0].tolist(), *view.rows[1].tolist()))
        view = batch.step(np.ones(1, np.int64))  # the head waits: nobody gives way
    for now, rule, served, rest, head_served, declines, head_seen, head_rest, _ in rows:
        if now < 4000:  # the long job runs, and may give way once it has had 300 s
            assert (served, rest, head_served) == (now, 5000 - now, 0)
            assert rule == (now >= 300)
        assert (declines, head_seen) == (-1, 0)
        assert head_rest in (4000, 900)
    assert {row[1] for row in rows} == {0, 1}
