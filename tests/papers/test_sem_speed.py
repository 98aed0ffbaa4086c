"""What the benchmark of SEM against DRAS counts and divides; no time is tested."""

from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="agents need PyTorch")

from bridge.base.errors import BridgeError
from bridge.learn.network import parameter_counts
from bridge.learn.recipe import NetworkConfig
from bridge.workload.catalogue import bundled
from bridge.workload.formats import read
from bridge.workload.select import Jobs
from bridge.worlds.fast.scheduler_config import SchedulerConfig
from papers.sem.speed import Case, Cost, agents, compared, inference_of, larger, measure, timed, training_of


def _cost(agent: str, of_round: int, update_s: float) -> Cost:
    """Return a cost with 10 updates, 100 decisions of 1 s and 50 of 2 s in the episode."""
    return Cost(
        "pair", "Theta", agent, of_round, 4360, 50, 600, 268, 7, 2, 9, update_s, 1.0, 4, 2.0, 10, 100, 50
    )


@pytest.fixture(scope="module")
def jobs() -> Jobs:
    return SchedulerConfig().select(read(next(iter(bundled().values()))))


def test_the_clock_starts_behind_the_first_update() -> None:
    marks = [(0.0, 5.0, 20), (8.0, 9.0, 3), (11.0, 13.0, 2)]
    assert timed(marks) == (2, 5, 1.5, 1.0)  # decisions take 3 s + 2 s
    with pytest.raises(BridgeError, match="fewer than two updates"):
        timed(marks[:1])


def test_an_episode_costs_its_updates_and_decisions() -> None:
    cost = _cost("SEM", 1, 0.5)
    assert training_of(cost) == 10 * 0.5 + 100 * 1.0
    assert inference_of(cost) == 100.0


def test_ratios_are_medians_of_the_rounds() -> None:
    seconds = {"SEM": (10.0, 20.0, 10.0), "DRAS": (40.0, 50.0, 1000.0)}
    costs = [asdict(_cost(who, k, s)) for who, each in seconds.items() for k, s in enumerate(each)]
    found = compared(pd.DataFrame(costs), "pair").loc["Theta"]
    assert (found["update", "SEM"], found["update", "DRAS"]) == (10, 50)
    assert found["update", "ratio"] == 4  # of 4, 2.5 and 100
    assert found["training", "ratio"] == 2.5  # of 500 / 200, 600 / 300, 10,100 / 200
    assert found["nodes", ""] == 4360


def test_a_larger_machine_has_the_same_load(jobs: Jobs) -> None:
    found = larger(jobs, 4)
    assert found.capacity.tolist() == (4 * jobs.capacity).tolist()
    assert np.array_equal(found.submit, jobs.submit // 4)
    assert np.array_equal(found.demand, jobs.demand)


def test_only_inputs_grow_with_the_machine() -> None:
    """SEM, Table 4 and Figure 11: 8,920 inputs of Theta, and 4000-1000 behind those of 34,880 nodes."""
    theta, large = agents("theta", 4360, 34, 50), agents("theta", 34_880, 272, 50)
    assert [r.encoder.size for r in theta.values()] == [268, 8920]
    assert [r.encoder.size for r in large.values()] == [744, 69_960]
    pairs = 69_960 // 2
    assert parameter_counts(large["DRAS"])["actor"] == 3 + pairs * 4000 + 4000 * 1000 + 1000 * 50 + 50


def test_hidden_layers_of_dras_alone_grow_where_that_is_asked_for() -> None:
    same, wide = agents("theta", 8720, 68, 50), agents("theta", 8720, 68, 50, 2)
    assert wide["SEM"] == same["SEM"]
    assert wide["DRAS"].actor.hidden == (8000, 2000)
    pairs = (4 * 50 + 2 * 8720) // 2
    assert parameter_counts(wide["DRAS"])["actor"] == 3 + pairs * 8000 + 8000 * 2000 + 2000 * 50 + 50


def test_dras_stops_early_and_is_counted_by_the_episode_of_sem(jobs: Jobs) -> None:
    both = {
        label: replace(recipe, actor=NetworkConfig("pairs", (8, 4)))
        for label, recipe in agents("theta", int(jobs.capacity[0]), 8, 10).items()
    }
    dense = replace(jobs, submit=jobs.submit // 20)
    sem, dras = measure(Case("pair", "bundled", both, dense, 200, updates=2, decisions=5), 1)
    assert (dras.updates, dras.inferences) == (2, 5)
    assert sem.updates > dras.updates
    assert (sem.of_updates, sem.of_inferences) == (sem.updates + 1, sem.inferences + 1)
    for name in ("of_updates", "of_decisions", "of_inferences", "nodes", "window", "length", "round"):
        assert getattr(dras, name) == getattr(sem, name)
    assert (sem.inputs, dras.inputs) == (4 * 10 + 2 * 8, 4 * 10 + 2 * int(jobs.capacity[0]))
    assert min(sem.update_s, sem.decide_s, sem.infer_s, dras.update_s, dras.decide_s, dras.infer_s) > 0
