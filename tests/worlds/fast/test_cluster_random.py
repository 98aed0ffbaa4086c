"""Replays on clusters: answers by hand, and those of the brute-force scheduler on random small cases."""

from collections.abc import Callable
from typing import Any

import pytest
from cluster_micro_cases import MICRO_CASES, REFUSED
from cluster_on_bridge import Case, Outcome, build_scenario, replay_case
from cluster_reference.case_text import format_case
from cluster_reference.generate import PARTS, TIMED_PARTS, draw_any_case, draw_case, refused_jobs
from cluster_reference.scheduler import simulate
from cluster_reference.shrink import shrink

from bridge.base.errors import BridgeError
from bridge.worlds.fast import cluster_shapes

EVERYTHING = (*PARTS, *TIMED_PARTS)
BACKFILLS = ("none", "easy", "easy", "conservative", "filler")


def expected_outcomes(case: Case) -> list[Outcome]:
    jobs = simulate(case)["jobs"]
    return [
        (job["eligible"], job["start"], None if job["start"] is None else job["end"], job["nodes"])
        for job in jobs
    ]


def assert_equal(case: dict[str, Any], play: Callable[[Case], list[Outcome]] = replay_case) -> None:
    """Compare a case; a difference is shown on the smallest case that has one, ready to be pasted."""

    def differs(smaller: dict[str, Any]) -> bool:
        try:
            return play(smaller) != expected_outcomes(smaller)
        except BridgeError:
            return False

    if play(case) != expected_outcomes(case):
        small = shrink(case, differs)
        print(format_case(small))
        assert play(small) == expected_outcomes(small)


@pytest.mark.parametrize("name", MICRO_CASES)
def test_answers_by_hand(name: str) -> None:
    MICRO_CASES[name].assert_answered(replay_case, expected_outcomes)


@pytest.mark.parametrize("order", ["sjf", "lcfs", "w/t"])
def test_other_orders_of_the_cases_by_hand(order: str) -> None:
    for micro in MICRO_CASES.values():
        assert_equal({**micro.case, "order": order})


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_node_can_hold_is_refused_by_name(name: str) -> None:
    case, resource = REFUSED[name]
    with pytest.raises(BridgeError) as error:
        build_scenario(case)
    assert "job 1" in str(error.value)
    assert resource in str(error.value)


def test_what_is_refused_of_random_cases() -> None:
    refused = 0
    for seed in range(150):
        case = draw_any_case(seed)
        for number in sorted(refused_jobs(case)):
            alone = {**case, "jobs": [{k: v for k, v in case["jobs"][number].items() if k != "depends"}]}
            if refused_jobs(alone):  # node lists of other jobs may change what a walk over classes holds
                refused += 1
                with pytest.raises(BridgeError, match="job 1"):
                    build_scenario(alone)
    assert refused > 20


@pytest.fixture
def small_clusters_keep_fits(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small clusters, too, keep which classes hold a demand: some for each, some for one at a time."""
    if part % 2:
        monkeypatch.setattr(cluster_shapes, "LEAST_CLASSES", 1)
    if part % 4 == 3:
        monkeypatch.setattr(cluster_shapes, "FIT_WORDS", 1)


@pytest.mark.parametrize("part", range(4))
@pytest.mark.usefixtures("small_clusters_keep_fits")
def test_random_cases(part: int) -> None:
    for seed in range(part, 1000, 4):
        assert_equal(draw_case(seed))


@pytest.mark.slow  # compiled; as plain Python in test_cluster_in_time.py
def test_random_cases_in_time() -> None:
    for seed in range(80):
        assert_equal(draw_case(40_000 + seed, parts=EVERYTHING, backfills=BACKFILLS))


@pytest.mark.parametrize("backfill", ["conservative", "filler"])
def test_random_cases_of_other_backfilling(backfill: str) -> None:
    for seed in range(80):
        assert_equal(draw_case(60_000 + seed, backfills=(backfill,)))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
@pytest.mark.usefixtures("small_clusters_keep_fits")
def test_many_random_cases(part: int) -> None:
    for seed in range(part, 20_000, 20):
        assert_equal(draw_case(100_000 + seed))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
@pytest.mark.usefixtures("small_clusters_keep_fits")
def test_many_random_cases_in_time(part: int) -> None:
    for seed in range(part, 20_000, 20):
        assert_equal(draw_case(200_000 + seed, parts=EVERYTHING, backfills=BACKFILLS))
