"""Agents on clusters: who answers as a rule gives its schedule; what they see; who stays the head."""

from typing import Any

import numpy as np
import pytest
from cluster_micro_cases import MICRO_CASES, job, whole
from cluster_on_bridge import Outcome, replay_case, replay_case_by_agent
from cluster_reference.generate import draw_case
from cluster_reference.scheduler import simulate

from bridge.base.arrays import Ints
from bridge.env.batch import PackedObservations
from bridge.env.encoder import DecisionKind
from bridge.learn.rollout import ActionFunction

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


def test_random_cases_without_a_guard() -> None:
    """Passes in which nobody can start are left out: that must change nothing."""
    for seed in range(60):
        case = {**draw_case(seed), "backfill": "easy", "guard": False}
        outcomes = replay_case_by_agent(case, "backfill", policy={"guard": False})
        jobs = simulate(case)["jobs"]
        assert [start for _, start, _, _ in outcomes] == [one["start"] for one in jobs], seed
        assert [nodes for *_, nodes in outcomes] == [one["nodes"] for one in jobs], seed


def test_a_head_that_a_limit_holds_makes_room_for_another_head() -> None:
    """Job 4 takes the share of job 2 in the account: job 3, which only its reservation held, may start."""
    case = {
        "nodes": [{"cores": 1}] * 4,
        "partitions": {
            "left": {"nodes": [0, 1, 2, 3], "exclusive": True},
            "right": {"nodes": [3], "exclusive": True},
        },
        "accounts": {"a": {"grp_tres": {"node": 4}}, "b": {}},
        "jobs": [
            job(0, partitions=["left"], nodes=2, account="b"),
            job(1, partitions=["left"], nodes=4, account="a"),
            job(2, partitions=["right"], run=30, account="b"),
            job(3, partitions=["left"], run=30, account="a"),
            job(5, partitions=["left"], nodes=2, account="b"),
        ],
        "guard": False,
    }
    outcomes = replay_case_by_agent(case, "backfill", policy={"guard": False})
    assert times(outcomes) == [0, 35, 5, 3, 10] == [one["start"] for one in simulate(case)["jobs"]]


#: Two nodes of `left`, one of `right`. Until 10 node 0 is taken, so that two nodes of `left` are there then.
LEFT_AND_RIGHT: dict[str, Any] = {
    "nodes": [{"cores": 1}] * 3,
    "partitions": {"left": {"nodes": [0, 1], "exclusive": True}, "right": {"nodes": [2], "exclusive": True}},
    "jobs": [
        job(0, partitions=["left"]),
        job(1, partitions=["left"], nodes=2),
        job(2, partitions=["left"], run=30),
        job(2, partitions=["right"]),
    ],
}


def times(outcomes: list[Outcome]) -> list[int | None]:
    return [start for _, start, _, _ in outcomes]


def by_length(longest_first: bool) -> ActionFunction:
    """Return who takes the longest or the shortest of the rows."""

    def answer(view: PackedObservations) -> Ints:
        lengths = view.rows[:, 0] if longest_first else -view.rows[:, 0]
        bounds = zip(view.offsets[:-1], view.offsets[1:], strict=True)
        return np.array([int(lengths[first:last].argmax()) for first, last in bounds], np.int64)

    return answer


@pytest.mark.parametrize(
    ("blocked", "starts"),
    [
        # at 2 job 2 is picked; it starts on node 1, and holds job 1 up until 32
        ("again", [0, 32, 2, 2]),
        # job 1, picked at 1, stays the head of `left`; job 2 is no candidate
        ("held", [0, 10, 20, 2]),
    ],
)
def test_who_is_blocked_stays_the_head_or_not(blocked: str, starts: list[int]) -> None:
    policy, features = {"blocked": blocked}, {"t": "t"}
    outcomes = replay_case_by_agent(LEFT_AND_RIGHT, "pick", by_length(True), policy=policy, features=features)
    assert times(outcomes) == starts


@pytest.mark.parametrize(
    ("blocked", "starts"),
    [
        ("first", [0, 1, 31]),  # job 2 is picked and does not fit: job 1, the first, starts in its place
        ("again", [0, 70, 20]),  # job 2 is reserved at 20, which job 1 would delay
    ],
)
def test_a_blocked_pick_gives_way_to_the_first(blocked: str, starts: list[int]) -> None:
    case = whole(2, [job(0, run=20), job(1, run=30), job(1, nodes=2, run=50)])
    policy, features = {"blocked": blocked}, {"t": "t"}
    outcomes = replay_case_by_agent(case, "pick", by_length(True), policy=policy, features=features)
    assert times(outcomes) == starts


def test_a_rejection_puts_its_partition_aside_and_no_other() -> None:
    """Job 0 is rejected at 0, and at 3, where the third job ends; then not before 103."""
    partitions = {"left": {"nodes": [0], "exclusive": True}, "right": {"nodes": [1], "exclusive": True}}
    jobs = [
        job(0, partitions=["left"]),
        job(0, run=5, partitions=["left"]),
        job(0, run=3, partitions=["right"]),
    ]
    case = {"nodes": [{"cores": 1}] * 2, "partitions": partitions, "jobs": jobs}

    def reject_tens(view: PackedObservations) -> Ints:
        return (view.rows[:, 0] == 10).astype(np.int64)

    outcomes = replay_case_by_agent(
        case,
        "inspect",
        reject_tens,
        policy={"max_rejects": 2, "retry_after": 100.0},
        features={"t": "t"},
    )
    assert times(outcomes) == [103, 113, 0]


def test_a_short_window_shows_all_candidates_in_the_end() -> None:
    case = whole(4, [job(0, run=50, nodes=3), job(1, nodes=4), *[job(2, run=5)] * 3])
    outcomes = replay_case_by_agent(case, "backfill", window=1)
    assert outcomes == replay_case(case)


def test_jobs_that_can_never_start_end_an_episode() -> None:
    case = whole(1, [job(0), job(0, hold=True), job(0, depends="afternotok:0")])
    assert times(replay_case_by_agent(case, "pick")) == [0, None, None]
