"""Agents, and orders that look ahead, decide on a live site as they do in a replay."""

from typing import Any

import pytest
from cluster_on_bridge import CONTEXT, FEATURES, build_scenario, replay_case, replay_case_by_agent
from cluster_reference.generate import draw_case
from test_site_scheduler import plain, play_live, play_reference
from untrained_agents import untrained

from bridge.env.encoder import DecisionKind, Encoder
from bridge.learn.agent import AgentDecider, action_function_of
from bridge.learn.recipe import NetworkConfig, Recipe
from bridge.worlds.fast.scheduler_config import SchedulerConfig

DECISIONS: tuple[DecisionKind, ...] = ("pick", "backfill", "inspect", "pick+backfill")


@pytest.mark.parametrize("decision", DECISIONS)
def test_an_agent_decides_on_a_live_site_as_in_a_replay(decision: DecisionKind) -> None:
    """Whole nodes, of which a running job is one row of what an agent sees."""
    encoder = Encoder(decision, FEATURES, stop=decision == "backfill", **CONTEXT)
    blocked = "held" if decision == "pick+backfill" else ""
    setup = SchedulerConfig(blocked=blocked)
    recipe = Recipe("small", "", "", "", setup=setup, encoder=encoder, actor=NetworkConfig("kernel", (4,)))
    policy: dict[str, Any] = {"blocked": blocked, "guard": False}
    differ = started = 0
    for seed in range(3, 6):
        case = plain(draw_case(seed, parts=("weights", "features"), jobs=(9, 16), overruns=False))
        partitions = {name: {**row, "exclusive": True} for name, row in case["partitions"].items()}
        case = {**case, "backfill": "easy", "calendar": [], "partitions": partitions}
        agent = untrained(recipe, build_scenario(case).jobs, seed)
        agent.origin.constants.clear()  # type: ignore[attr-defined]
        fast = replay_case_by_agent(case, decision, action_function_of(agent), policy=policy)
        replayed = [None if start is None else (start, nodes) for _, start, _, nodes in fast]
        live = play_live(case, AgentDecider(agent), agent=frozenset(decision.split("+")), **policy)
        assert live == replayed, seed
        differ += live != play_reference(case)
        started += len(live)
    assert differ > 0 and started > 20


def test_an_order_that_looks_ahead_decides_on_a_live_site_as_in_a_replay() -> None:
    differ = 0
    for seed in range(3):
        case = plain(draw_case(seed, parts=("weights", "features", "gpus"), jobs=(6, 10), overruns=False))
        case = {**case, "order": "lookahead(sjf)", "backfill": "easy", "candidate_order": "", "calendar": []}
        replayed = [None if start is None else (start, nodes) for _, start, _, nodes in replay_case(case)]
        assert play_live(case) == replayed, seed
        differ += replayed != play_reference({**case, "order": "sjf"})
    assert differ > 0
