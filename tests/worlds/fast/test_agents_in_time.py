"""Agents and lookahead on clusters that change in time: calendar, advance reservations, preemption."""

import random
from typing import Any

import numpy as np
import pytest
from cluster_micro_cases import TWO_NODES, job
from cluster_on_bridge import Case, Outcome, build_scenario, replay_case, replay_case_by_agent
from cluster_reference.generate import PARTS, TIMED_PARTS, draw_case
from cluster_reference.looking import Looking
from cluster_reference.scheduler import simulate

from bridge.base.arrays import Ints
from bridge.base.errors import BridgeError
from bridge.env.batch import Batch, PackedObservations
from bridge.env.encoder import DecisionKind, Encoder
from bridge.env.environment import SchedulingEnv
from bridge.env.reward import Reward, base_costs, episode_of
from bridge.scheduler.state import SECOND

#: Compiled; as plain Python in test_cluster_in_time.py.
pytestmark = pytest.mark.slow

EVERYTHING = (*PARTS, *TIMED_PARTS)
DECISIONS: tuple[DecisionKind, ...] = ("pick", "backfill", "inspect", "pick+backfill")


def draw(seed: int, **options: Any) -> Case:
    return {**draw_case(seed, parts=EVERYTHING, **options), "backfill": "easy"}


@pytest.mark.parametrize("decision", DECISIONS)
def test_random_cases_by_the_first_of_each_row(decision: DecisionKind) -> None:
    for seed in range(10):
        case = draw(700_000 + seed)
        assert replay_case_by_agent(case, decision) == replay_case(case), seed


def test_random_cases_without_a_guard() -> None:
    for seed in range(15):
        case = {**draw(720_000 + seed), "guard": False}
        outcomes = replay_case_by_agent(case, "backfill", policy={"guard": False})
        expected = [(one["start"], one["nodes"]) for one in simulate(case)["jobs"]]
        assert [(start, nodes) for _, start, _, nodes in outcomes] == expected, seed


def test_so_many_tasks_on_so_many_nodes_may_fit_when_another_has_started() -> None:
    """Two tasks on one node are dealt to node 0 while it has a core, and to node 1 when it has none."""
    case = draw(701_173)
    assert replay_case_by_agent(case, "backfill") == replay_case(case)


def test_lookahead_is_what_a_second_implementation_plays_out() -> None:
    moves = 0
    for seed in range(20, 36):
        rng = random.Random(seed)
        case = {**draw(711_000 + seed, jobs=(5, 14)), "order": rng.choice(["fcfs", "sjf", "ljf"])}
        case.pop("candidate_order", None)
        seconds, margin = rng.choice([5, 20]), rng.choice([0, 0.05])
        reference = Looking(case, seconds, margin, 3)
        expected = [
            (one["eligible"], one["start"], None if one["start"] is None else one["end"], one["nodes"])
            for one in reference.play()["jobs"]
        ]
        order = f"lookahead({case['order']}, T={seconds}, margin={margin}, deviations=3)"
        assert replay_case({**case, "order": order}) == expected, seed
        moves += reference.moves > 0
    assert moves > 4


def times(outcomes: list[Outcome]) -> list[int | None]:
    return [start for _, start, _, _ in outcomes]


#: Partitions of both nodes: jobs of `high` preempt those of `low`, which wait again.
TIERS: Case = {
    **TWO_NODES,
    "partitions": {
        "low": {"nodes": [0, 1], "exclusive": True, "preempt": "requeue", "tier": 1},
        "high": {"nodes": [0, 1], "exclusive": True, "tier": 2},
    },
}


def test_a_job_that_was_accepted_preempts_and_is_not_asked_about_again() -> None:
    jobs = [job(0, run=100, nodes=2, partitions=["low"]), job(10, run=30, nodes=2, partitions=["high"])]
    asked: list[tuple[float, float]] = []

    def accept(view: PackedObservations) -> Ints:
        asked.extend((row[0], row[1]) for row in view.rows.tolist())
        return np.zeros(len(view.offsets) - 1, np.int64)

    features = {"s": "s", "w": "w"}
    outcomes = replay_case_by_agent({**TIERS, "jobs": jobs}, "inspect", accept, features=features)
    assert outcomes == [(0, 40, 140, [0, 1]), (10, 10, 40, [0, 1])]
    assert asked == [(0, 0), (10, 0), (0, 0), (0, 30)]  # of job 0 behind job 1, which runs; and at its end


def test_a_rejected_job_preempts_nobody() -> None:
    jobs = [job(0, run=100, nodes=2, partitions=["low"]), job(10, run=30, nodes=2, partitions=["high"])]

    def reject_the_short(view: PackedObservations) -> Ints:
        return (view.rows[:, 0] == 30).astype(np.int64)

    outcomes = replay_case_by_agent(
        {**TIERS, "jobs": jobs},
        "inspect",
        reject_the_short,
        policy={"max_rejects": 1, "retry_after": 20.0},
        features={"t": "t"},
    )
    assert times(outcomes) == [60, 30]  # job 1 is accepted at 30 without a question


def by_length(view: PackedObservations) -> Ints:
    bounds = zip(view.offsets[:-1], view.offsets[1:], strict=True)
    return np.array([int(view.rows[first:last, 0].argmax()) for first, last in bounds], np.int64)


def test_heads_stay_heads_when_another_job_preempts() -> None:
    """Job 1, picked at 1, is the head of `other`; job 3 preempts job 0 at 5, and job 1 stays it."""
    case = {
        "nodes": [{"cores": 1}] * 4,
        "partitions": {
            "high": {"nodes": [0], "exclusive": True, "tier": 2},
            "low": {"nodes": [0], "exclusive": True, "preempt": "requeue", "tier": 1},
            "other": {"nodes": [1, 2, 3], "exclusive": True},
        },
        "jobs": [
            job(0, run=50, partitions=["low"]),
            job(0, run=20, nodes=2, partitions=["other"]),
            job(1, run=30, nodes=3, partitions=["other"]),
            job(5, run=10, partitions=["high"]),
            job(5, run=40, partitions=["other"]),
        ],
    }
    policy, features = {"blocked": "held"}, {"t": "t"}
    outcomes = replay_case_by_agent(case, "pick", by_length, policy=policy, features=features)
    assert times(outcomes) == [15, 0, 20, 5, 50]  # job 4 would delay job 2


def test_a_head_that_is_cancelled_is_no_head_any_more() -> None:
    jobs = [job(0, run=50), job(1, nodes=2, run=90), job(2, run=10)]
    case = {**TWO_NODES, "jobs": [{**one, "partitions": ["p"]} for one in jobs]}
    case["partitions"] = {"p": {"nodes": [0, 1], "exclusive": True}}
    policy, features = {"blocked": "held"}, {"t": "t"}
    held = replay_case_by_agent(case, "pick", by_length, policy=policy, features=features)
    assert times(held) == [0, 50, 2]
    cancelled = {**case, "calendar": [{"time": 5, "cancel": 1}, {"time": 5, "nodes": [1], "state": "drain"}]}
    after = replay_case_by_agent(cancelled, "pick", by_length, policy=policy, features=features)
    assert times(after) == [0, None, 2]


#: At 10 node 3 is drained, and node 2 is kept for others from 15 on. Job 0 has nodes 0 and 1 until 20; job 1
#: wants three nodes; of the next two only the first ends before the reservation.
RESERVED: Case = {
    "nodes": [{"cores": 2}] * 4,
    "partitions": {"p": {"nodes": [0, 1, 2, 3], "exclusive": True, "default": True}},
    "calendar": [
        {"reservation": "r", "nodes": [2], "begin": 15, "end": 60, "announced": 5},
        {"time": 8, "nodes": [3], "state": "drain"},
    ],
    "jobs": [
        job(0, run=20, nodes=2),
        job(10, run=30, nodes=3),
        job(10, run=5),
        job(10, run=10),
    ],
}


def test_what_is_seen_beside_a_reservation_and_a_drained_node() -> None:
    names = ("t", "admissible", "fits", "safe", "partition_free", "free_node[0]", "gap", "free")
    encoder = Encoder("backfill", {name: name for name in names}, window=8, stop=True).compile({})
    scenario = build_scenario(RESERVED, agent=frozenset({"backfill"}), guard=False)
    batch = Batch(scenario, encoder, 1, 4)
    view = batch.reset(np.zeros(1, np.int64))
    assert batch.now[0] == 10 * SECOND
    # job 3 would run into the reservation: it is no candidate; job 1 can start at 60
    assert view.rows[:-1].tolist() == [[5, 1, 1, 1, pytest.approx(1 / 3), 1, 50, 1]]
    encoder = Encoder("pick", {name: name for name in names}, window=8, stop=False).compile({})
    scenario = build_scenario(RESERVED, agent=frozenset({"pick"}))
    batch = Batch(scenario, encoder, 1, 4)
    view = batch.reset(np.zeros(1, np.int64))
    while batch.now[0] < 10 * SECOND:
        view = batch.step(np.zeros(1, np.int64))
    seen = [[round(value, 4) for value in row[:6]] for row in view.rows.tolist()]
    two_thirds, third = round(2 / 3, 4), round(1 / 3, 4)
    assert seen == [
        [30, two_thirds, 0, 0, third, 0],
        [5, 1, 1, 0, third, 1],
        [10, two_thirds, 0, 0, third, 0],
    ]


@pytest.mark.parametrize("metric", ["wait", "bsld"])
def test_rewards_in_time_add_up_to_what_was_waited(metric: Any) -> None:
    """Jobs that ran in vain wait on; of those that were killed for good the last run counts."""
    tried = 0
    for seed in range(6, 14):
        scenario = build_scenario(draw(730_000 + seed))
        jobs = scenario.jobs
        reward, more = Reward(metric, "native", "time"), {"backfill": "easy", "seed": 1}
        env = SchedulingEnv("pick", workload=jobs, length=len(jobs), reward=reward, **more)
        try:
            env.reset()
        except BridgeError:  # no decision in this case
            continue
        episodes: Any = env._episodes
        first, total, over = float(episodes._accrued[0]), 0.0, False
        while not over:
            mask = env.action_masks()
            _, step, over, _, _ = env.step(int(np.flatnonzero(mask)[0]))
            total += step
        outcome = episode_of(episodes.batch, 0).started()
        waits = outcome.start - outcome.submit
        weight = 1.0 if metric == "wait" else 1 / np.maximum(outcome.run, 10.0)
        if not episodes.batch.state.scalars.n_waiting[0] and len(waits):
            tried += 1
            assert -total == pytest.approx(float((waits * weight).sum()) / len(jobs) - first, abs=1e-9)
    assert tried > 1


def test_the_base_of_rewards_is_the_metric_of_its_schedule() -> None:
    compared = 0
    for seed in range(20):
        case = draw(740_000 + seed)
        scenario, reference = build_scenario(case), simulate(case)["jobs"]
        value = base_costs(scenario, np.zeros(1, np.int64), len(scenario.jobs), Reward("bsld", "native"))[0]
        expected = [one["bounded_slowdown"] for one in reference if "bounded_slowdown" in one]
        if expected:
            compared += 1
            assert value == pytest.approx(np.mean(expected)), seed
    assert compared > 10


def test_what_comes_before_the_first_job_and_behind_the_last_costs_no_pass() -> None:
    before = [{"time": 100 + k, "nodes": [0], "state": ("drain", "up")[k % 2]} for k in range(9)]
    before.append({"time": 203, "nodes": [0], "state": "up"})
    later = [{"time": 900 + k, "nodes": [1], "state": ("drain", "up")[k % 2]} for k in range(9)]
    jobs = [job(200, run=10), job(200, nodes=2, run=10), job(205, run=10)]
    case = {
        **TWO_NODES,
        "jobs": jobs,
        "calendar": [*before, *later],
    }
    case["partitions"] = {"p": {"nodes": [0, 1], "exclusive": True}}
    scenario = build_scenario(case, agent=frozenset({"pick"}))
    batch = Batch(scenario, Encoder("pick", {"t": "t"}, window=8, stop=False).compile({}), 1, 3)
    view = batch.reset(np.zeros(1, np.int64))
    while len(view.rows):
        view = batch.step(np.zeros(1, np.int64))
    assert (batch.starts_of(0) // SECOND).tolist() == [200, 210, 220]
    assert batch.now[0] == 230 * SECOND
    assert [one["start"] for one in simulate(case)["jobs"]] == [200, 210, 220]
