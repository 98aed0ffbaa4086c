"""Agents at work: a log is one long sequence, and sequences do not disturb each other."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from tiny_training import TINY, some_jobs

from bridge.base.errors import BridgeError
from bridge.env.batch import PackedObservations
from bridge.env.encoder import Encoder
from bridge.env.episode_starts import constants_of
from bridge.learn import agent as module
from bridge.learn.agent import (
    AgentDecider,
    action_function_of,
    play_sequences,
    replay,
    require_protocol,
    require_resources,
    schedules_by,
)
from bridge.learn.checkpoint import LogAgent, Provenance
from bridge.learn.network import actor_of
from bridge.learn.recipe import Recipe
from bridge.learn.rollout import Mode
from bridge.scheduler.core import DECLINE
from bridge.scheduler.protocol import Policy, protocol
from bridge.scheduler.session import JobEstimates, Session
from bridge.worlds.fast.replay import replay as replay_rules


def untrained(recipe: Recipe = TINY, mode: Mode = "greedy", seed: int = 1) -> LogAgent:
    jobs = some_jobs()
    torch.manual_seed(seed)
    origin = Provenance("bundled-128", jobs.name, len(jobs), "", seed, constants_of(jobs))
    return LogAgent(Path("agents/odd"), recipe, origin, 0, actor_of(recipe), mode)


@pytest.mark.parametrize("mode", ["greedy", "sample"])
def test_a_log_is_one_sequence_of_all_its_jobs(mode: Mode) -> None:
    agent, jobs = untrained(mode=mode), some_jobs()
    prepared = TINY.setup.build_scenario(jobs, TINY.policy())
    whole = replay(agent, prepared)
    (same,) = play_sequences(agent, prepared, np.zeros(1, np.int64), len(jobs))
    assert whole.start.tolist() == same.start.tolist()
    assert whole.end.tolist() == same.end.tolist()
    assert (whole.start >= jobs.submit).all()
    built_in = replay_rules(TINY.setup.build_scenario(jobs))
    assert whole.start.tolist() != built_in.start.tolist()  # the agent has decided something


def test_progress_of_a_replay_ends_with_all_jobs_never_falling() -> None:
    seen: list[int] = []
    replay(untrained(), TINY.setup.build_scenario(some_jobs(), TINY.policy()), seen.append)
    assert len(seen) > 100
    assert seen == sorted(seen)
    assert 0 < seen[-1] <= 600


def test_sequences_are_played_as_each_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TOGETHER", 3)
    agent, prepared = untrained(), TINY.setup.build_scenario(some_jobs(), TINY.policy())
    starts, told = np.array([0, 200, 100, 536, 3, 200, 77]), []
    found = play_sequences(agent, prepared, starts, 64, told.append)
    assert told == [3, 6, 7]
    alone = [play_sequences(agent, prepared, np.array([first]), 64)[0] for first in starts]
    assert [s.start.tolist() for s in found] == [s.start.tolist() for s in alone]
    assert found[1].start.tolist() == found[5].start.tolist()
    assert [len(s.start) for s in found] == [64] * 7


def test_no_sequences() -> None:
    prepared = TINY.setup.build_scenario(some_jobs(), TINY.policy())
    assert play_sequences(untrained(), prepared, np.zeros(0, np.int64), 64) == []


def test_a_sequence_past_the_end_is_refused() -> None:
    prepared = TINY.setup.build_scenario(some_jobs(), TINY.policy())
    with pytest.raises(BridgeError, match="an episode of 64 jobs does not fit"):
        play_sequences(untrained(), prepared, np.array([537]), 64)


def test_a_fixed_rule_plays_as_an_agent_does() -> None:
    setup = replace(TINY.setup, order="sjf", backfill="none", protocol="schedgym", preset="schedinspector")
    jobs, start = some_jobs(), np.zeros(1, np.int64)
    encoder = Encoder("inspect", {"blocked": "1 - fits"}).compile({})

    def rule(view: PackedObservations) -> npt.NDArray[np.int64]:
        return np.asarray((view.rows > 0).any(1), np.int64)  # rejects what is blocked

    built_in = replay_rules(setup.build_scenario(jobs)).start.tolist()
    for max_rejects in (0, 72):  # without rejections left, nothing is asked
        policy = Policy("sjf", "none", agent=frozenset({"inspect"}), max_rejects=max_rejects)
        (one,) = schedules_by(encoder, rule, setup.build_scenario(jobs, policy), start, len(jobs))
        assert (one.start.tolist() == built_in) == (max_rejects == 0)


def blocked_session(agent: LogAgent) -> tuple[Session, int]:
    """Return a scheduler of 4 nodes that may backfill 3 or 4: 1 runs, 2 is blocked."""
    session = Session([4], agent.recipe.policy(), protocol("standard"), window=agent.recipe.encoder.window)
    for ident, nodes, seconds in ((1, 2, 100), (2, 4, 50), (3, 1, 500), (4, 1, 20)):
        session.submit(ident, [nodes], JobEstimates.same(seconds * 1_000_000))
    session.begin()
    return session, session.advance()


@pytest.mark.parametrize(
    ("feature", "answer"),
    [("-t*(1 - blocked) - 1000*blocked", 1), ("t*(1 - blocked)", 0), ("blocked", DECLINE)],
)
def test_a_decider_answers_with_a_place_or_declines(feature: str, answer: int) -> None:
    recipe = replace(TINY, encoder=Encoder("backfill", {"x": feature}, window=16, stop=True))
    recipe = replace(recipe, actor=replace(TINY.actor, hidden=()))
    agent = untrained(recipe)
    with torch.no_grad():
        agent.actor.layers[0].weight[:] = 1  # type: ignore[union-attr,operator,index]
        agent.actor.layers[0].bias[:] = 0  # type: ignore[union-attr,operator,index]
    session, kind = blocked_session(agent)
    assert AgentDecider(agent)(session, kind) == answer


def test_a_decider_refuses_a_feature_that_is_no_number() -> None:
    agent = untrained(replace(TINY, encoder=Encoder("backfill", {"x": "1/w"}, window=16, stop=True)))
    session, kind = blocked_session(agent)
    with pytest.raises(BridgeError, match=r"a feature of job [234] is not a finite number"):
        AgentDecider(agent)(session, kind)


@pytest.mark.parametrize(
    "seen",
    [{"machine": {"odd": "1/(free - 2)"}}, {"running": {"odd": "1/(left - 100)"}, "running_rows": (3,)}],
    ids=["machine", "running"],
)
def test_a_decider_refuses_a_context_that_is_no_number(seen: dict[str, Any]) -> None:
    agent = untrained(replace(TINY, encoder=Encoder("backfill", {"x": "t"}, window=16, stop=True, **seen)))
    session, kind = blocked_session(agent)
    with pytest.raises(BridgeError, match="is not a finite number") as error:
        AgentDecider(agent)(session, kind)
    assert error.value.where == "features x, odd"


def test_a_decider_refuses_a_machine_without_a_resource_that_it_sees() -> None:
    encoder = Encoder("backfill", {"share": "share[r]"}, window=16, stop=True, resources=2)
    agent = untrained(replace(TINY, encoder=encoder))
    session, kind = blocked_session(agent)
    with pytest.raises(BridgeError, match="sees 2 resources, the machine has 1") as error:
        AgentDecider(agent)(session, kind)
    assert error.value.where == "agents/odd"


def test_answers_are_reproducible_and_leave_the_actor_alone() -> None:
    agent = untrained()
    before = [p.clone() for p in agent.actor.parameters()]
    prepared = TINY.setup.build_scenario(some_jobs(), TINY.policy())
    encoder, starts = agent.encoder(), np.array([5, 90])
    one, two = (schedules_by(encoder, action_function_of(agent), prepared, starts, 64) for _ in range(2))
    assert [s.start.tolist() for s in one] == [s.start.tolist() for s in two]
    assert all(torch.equal(a, b) for a, b in zip(before, agent.actor.parameters(), strict=True))


def test_another_protocol_is_refused_unless_it_is_wanted() -> None:
    agent = untrained()
    require_protocol(agent, "standard", cross=False)
    require_protocol(agent, "cqsim", cross=True)
    with pytest.raises(BridgeError, match="has learnt under the protocol standard, not cqsim") as error:
        require_protocol(agent, "cqsim", cross=False)
    assert error.value.where == "agents/odd"
    assert "--cross-protocol" in error.value.remedy


def test_resources_of_other_names_are_refused(tmp_path: Path) -> None:
    recipe = replace(TINY, encoder=replace(TINY.encoder, resources=2))
    origin = Provenance("log", "log", 1, "", 1, {}, resources=("nodes", "burst_buffer"))
    agent = LogAgent(tmp_path / "agent", recipe, origin, 0, actor_of(recipe))
    require_resources(agent, ("nodes", "burst_buffer", "power"))
    with pytest.raises(BridgeError, match="learnt with nodes, burst_buffer, and here are nodes, power"):
        require_resources(agent, ("nodes", "power"))
