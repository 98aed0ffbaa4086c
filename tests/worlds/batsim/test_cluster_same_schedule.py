"""On a cluster, a decision process gives the fast world's schedule: start for start and node for node."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cluster_micro_cases import MICRO_CASES, shared, takes, whole
from cluster_micro_cases import job as small_job
from cluster_on_bridge import CONTEXT, FEATURES, build_scenario, replay_case, replay_case_by_agent
from cluster_reference.generate import draw_case
from cluster_wire import decision_process, wire_case
from untrained_agents import untrained

from bridge.base.errors import BridgeError
from bridge.env.encoder import DecisionKind, Encoder
from bridge.experiment.site_jobs import build_site
from bridge.learn.agent import AgentDecider, action_function_of
from bridge.learn.recipe import NetworkConfig, Recipe
from bridge.wire import events as ev
from bridge.worlds.batsim.site import SiteHosts, SiteRules
from bridge.worlds.fast.scheduler_config import SchedulerConfig


@pytest.mark.parametrize("name", MICRO_CASES)
def test_answers_by_hand(name: str) -> None:
    MICRO_CASES[name].assert_answered(wire_case, replay_case)


@pytest.mark.parametrize("part", range(2))
def test_random_cases(part: int) -> None:
    for seed in range(part, 60, 2):
        case = draw_case(seed)
        assert wire_case(case) == replay_case(case), seed


DECISIONS: tuple[DecisionKind, ...] = ("pick", "backfill", "inspect", "pick+backfill")


@pytest.mark.parametrize("decision", DECISIONS)
def test_an_agent_decides_alike_in_both_worlds(decision: DecisionKind) -> None:
    encoder = Encoder(decision, FEATURES, stop=decision == "backfill", **CONTEXT)
    recipe = Recipe(
        "small",
        "",
        "",
        "",
        setup=SchedulerConfig(blocked="held" if decision == "pick+backfill" else ""),
        encoder=encoder,
        actor=NetworkConfig("kernel", (4,)),
    )
    policy = {"agent": frozenset(decision.split("+")), "blocked": recipe.setup.blocked, "guard": False}
    differ = 0
    for seed in range(5):
        case = {**draw_case(seed), "backfill": "easy"}
        agent = replace(untrained(recipe, build_scenario(case).jobs, seed), mode="sample")
        agent.origin.constants.clear()  # type: ignore[attr-defined]
        fast = replay_case_by_agent(case, decision, action_function_of(agent), policy=_without_agent(policy))
        assert wire_case(case, AgentDecider(agent), **policy) == fast, seed
        differ += fast != replay_case(case)
    assert differ > 0


def _without_agent(policy: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in policy.items() if name != "agent"}


def test_hosts_are_found_by_name() -> None:
    """Nodes n0 to n11, which a platform numbers n0, n1, n10, n11, n2, …"""
    case = whole(12, [small_job(nodes=2)] * 6)
    outcomes = wire_case(case)
    assert [nodes for _, _, _, nodes in outcomes] == [[k, k + 1] for k in range(0, 12, 2)]


def begin_with(case: Any, names: list[str], *, sharing: bool) -> None:
    scenario = build_scenario(case)
    compute = tuple(ev.HostInfo(k, name) for k, name in enumerate(names))
    begin = ev.SimulationBegins(0, compute, compute_sharing=sharing)
    decision_process(scenario).reply_to_message(ev.Message(0, (begin,)))


def test_a_platform_of_other_hosts_is_refused() -> None:
    with pytest.raises(BridgeError, match="no host of 1 of the cluster's 2 nodes"):
        begin_with(whole(2, [small_job()]), ["n0", "other"], sharing=False)


def test_hosts_of_one_job_each_are_refused_where_jobs_share_nodes() -> None:
    with pytest.raises(BridgeError, match="enable-compute-sharing"):
        begin_with(shared([{"cores": 2}], [takes(cores=1)]), ["n0"], sharing=False)


def test_the_referee_refuses_what_a_node_has_not_left() -> None:
    case = shared([{"cores": 4, "memory": 8}], [takes(cores=3, memory=1), takes(cores=1, memory=7)])
    site = build_site(build_scenario(case), 1)
    begin = ev.SimulationBegins(0, (ev.HostInfo(0, "n0"),), compute_sharing=True)
    demands = {f"w0!{k + 1}": site.demands[site.shape[k]] for k in range(2)}
    rules = SiteRules(site, SiteHosts(site, begin), demands.__getitem__, lambda _: {0: 1})
    assert rules.take("w0!1", ((0, 0),)) == ""
    assert "1 of cores left" in rules.take("w0!1", ((0, 0),))
    assert rules.take("w0!2", ((0, 0),)) == ""
    rules.release("w0!1")
    assert "of memory left" in rules.take("w0!2", ((0, 0),))
    assert "no node that the job may have" in rules.take("w0!1", ((5, 5),))
    assert rules.take("w0!1", ((0, 0),)) == ""
    assert np.array_equal(rules._free, [[0, 0, 0]])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_random_cases(part: int) -> None:
    for seed in range(part, 2_000, 10):
        case = draw_case(300_000 + seed)
        assert wire_case(case) == replay_case(case), seed
