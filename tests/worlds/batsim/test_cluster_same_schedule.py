"""On a cluster, a decision process gives the fast world's schedule: start for start and node for node."""

import pytest
from cluster_micro_cases import MICRO_CASES
from cluster_on_bridge import replay_case
from cluster_reference.generate import draw_case
from cluster_wire import wire_case


@pytest.mark.parametrize("name", MICRO_CASES)
def test_answers_by_hand(name: str) -> None:
    micro = MICRO_CASES[name]
    for case, answers in ((micro.case, micro.answers), micro.without_backfilling()):
        outcomes = wire_case(case)
        assert [(start, nodes) for _, start, _, nodes in outcomes] == answers
        assert outcomes == replay_case(case)


@pytest.mark.parametrize("part", range(2))
def test_random_cases(part: int) -> None:
    for seed in range(part, 60, 2):
        case = draw_case(seed)
        assert wire_case(case) == replay_case(case), seed


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_random_cases(part: int) -> None:
    for seed in range(part, 2_000, 10):
        case = draw_case(300_000 + seed)
        assert wire_case(case) == replay_case(case), seed
