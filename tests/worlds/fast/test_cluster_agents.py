"""Agents on clusters: who answers as a rule gives its schedule; what they see; who stays the head."""


import pytest
from cluster_micro_cases import MICRO_CASES
from cluster_on_bridge import replay_case, replay_case_by_agent
from cluster_reference.generate import draw_case

from bridge.env.encoder import DecisionKind

DECISIONS: tuple[DecisionKind, ...] = ("pick", "backfill", "inspect", "pick+backfill")


@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("name", MICRO_CASES)
def test_the_first_of_each_row_is_what_the_rule_takes(name: str, decision: DecisionKind) -> None:
    micro = MICRO_CASES[name]
    outcomes = replay_case_by_agent(micro.case, decision)
    assert [(start, nodes) for _, start, _, nodes in outcomes] == micro.answers
    if "backfill" not in decision:
        case, answers = micro.without_backfilling()
        outcomes = replay_case_by_agent(case, decision)
        assert [(start, nodes) for _, start, _, nodes in outcomes] == answers


@pytest.mark.parametrize("decision", DECISIONS)
def test_random_cases_by_the_first_of_each_row(decision: DecisionKind) -> None:
    for seed in range(40):
        case = draw_case(seed)
        if "backfill" in decision:
            case = {**case, "backfill": "easy"}
        assert replay_case_by_agent(case, decision) == replay_case(case), seed
