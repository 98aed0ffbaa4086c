"""Gymnasium environments on a cluster: rewards add up to the metric, waits count from eligibility."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cluster_micro_cases import job, whole
from cluster_on_bridge import build_scenario
from cluster_reference.generate import draw_case

from bridge.base.errors import BridgeError
from bridge.env.batch import Batch
from bridge.env.encoder import DecisionKind, Encoder
from bridge.env.environment import SchedulingEnv, SchedulingVectorEnv
from bridge.env.reward import Reward, accrued_cost
from bridge.workload.select import Jobs


def jobs_of(case: Any) -> Jobs:
    """Return a case's jobs with its cluster; believed lengths are the requests."""
    return build_scenario(case).jobs


@pytest.mark.parametrize("decision", ["pick", "backfill", "inspect"])
@pytest.mark.parametrize("metric", ["wait", "bsld"])
def test_rewards_in_time_add_up(decision: DecisionKind, metric: Any) -> None:
    tried = 0
    for seed in range(12):
        jobs = jobs_of(draw_case(seed))
        options: dict[str, Any] = {"workload": jobs, "length": len(jobs), "backfill": "easy", "seed": 1}
        env = SchedulingEnv(decision, reward=Reward(metric, "native", "time"), **options)
        try:
            env.reset()
        except BridgeError:  # no decision in this case
            continue
        tried += 1
        episodes: Any = env._episodes
        first, total, over = float(episodes._accrued[0]), 0.0, False
        while not over:
            mask = env.action_masks()
            _, reward, over, _, info = env.step(int(np.flatnonzero(mask)[0]))
            total += reward
        outcome = env.job_outcomes()
        started = ~np.isnan(outcome.start)
        submit = np.where(started, outcome.submit, 0.0)
        waits = np.where(started, outcome.start - submit, 0.0)
        weight = 1.0 if metric == "wait" else 1 / np.maximum(outcome.run, 10.0)
        never = episodes.batch.state.scalars.n_waiting[0]
        if not never:  # who waits for ever in the queue, waits until the end
            assert -total == pytest.approx(float((waits * weight).sum()) / len(jobs) - first, abs=1e-9)
        assert info["metric"] >= 0
    assert tried > 0


def test_the_metric_counts_from_eligibility_and_the_started() -> None:
    case = whole(1, [job(0), job(0, begin=100), job(0, hold=True), job(0)])
    env = SchedulingEnv("pick", workload=jobs_of(case), length=4, reward=Reward("wait", "native"), seed=1)
    env.reset()
    _, reward, over, _, info = env.step(0)
    assert (over, reward) == (True, 0.0)
    assert info["metric"] == info["base"] == pytest.approx(10 / 3)


def test_a_cost_of_idle_nodes_is_refused() -> None:
    jobs = jobs_of(whole(1, [job(0), job(0)]))
    with pytest.raises(BridgeError, match="idle nodes have no cost on a cluster"):
        SchedulingEnv("pick", workload=jobs, length=2, reward=Reward("wait", "native", idle=1.0))


def test_many_places_begin_again() -> None:
    jobs = jobs_of({**draw_case(3), "backfill": "easy"})
    env = SchedulingVectorEnv(3, "pick", workload=jobs, length=max(len(jobs) // 2, 2), seed=4)
    env.reset()
    ended = 0
    for _ in range(60):
        _, _, terminated, _, _ = env.step(env.action_masks().argmax(axis=1))
        ended += int(terminated.sum())
    assert ended > 1


def play(scenario: Any, encoder: Encoder, threads: int) -> list[Any]:
    """Play eight episodes at once with answers that depend on what is seen; return all of it."""
    n = len(scenario.jobs)
    batch = Batch(scenario, encoder.compile({}), 8, n, threads=threads)
    view = batch.reset(np.zeros(8, np.int64), n)
    seen: list[Any] = []
    while len(view.rows):
        seen.append((view.rows.tolist(), view.offsets.tolist(), view.keys.tolist(), batch.now.tolist()))
        sizes = np.maximum(np.diff(view.offsets), 1)
        view = batch.step((len(seen) * (1 + np.arange(8)) + int(view.rows.sum())) % sizes)
    return [*seen, [batch.starts_of(b).tolist() for b in range(8)]]


@pytest.mark.parametrize("decision", ["pick", "backfill"])
def test_threads_change_nothing(decision: DecisionKind) -> None:
    features = {"n": "n", "t": "t", "free": "free", "admissible": "admissible"}
    encoder = Encoder(decision, features, window=8, stop=decision == "backfill")
    lengths = []
    for seed in range(3):
        case = {**draw_case(seed), "backfill": "easy"}
        played = []
        for threads in (1, 3):
            scenario = build_scenario(case, agent=frozenset({decision}), guard=False)
            played.append(play(scenario, encoder, threads))
        assert played[1] == played[0]
        lengths.append(len(played[0]))
    assert max(lengths) > 3


def test_what_accrues_leaves_out_who_never_starts() -> None:
    jobs = jobs_of(whole(1, [job(0), job(0, hold=True)]))
    env = SchedulingEnv("inspect", workload=jobs, length=2, reward=Reward("wait", "native"), seed=1)
    env.reset()
    env.step(0)
    outcome = env.job_outcomes()
    outcome = replace(outcome, start=np.where(np.isnan(outcome.start), -1.0, outcome.start))
    assert accrued_cost(outcome, "wait", np.array([0.0, 5.0, 100.0])).tolist() == [0.0, 0.0, 0.0]
