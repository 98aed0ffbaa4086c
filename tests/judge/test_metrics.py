"""Every metric against values computed by hand on a schedule of four jobs."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from schedules import example, schedule
from small_jobs import spread

from bridge.base.errors import BridgeError
from bridge.judge.metrics import (
    bounded_slowdown,
    breakdown,
    compute_metrics,
    jain,
    job_energy,
    size_class,
    size_label,
    slowdown,
    step_function,
)

EXPECTED = {
    "jobs.total": 5,
    "jobs.started": 4,
    "jobs.rejected": 1,
    "jobs.state.COMPLETED_SUCCESSFULLY": 4,
    "jobs.state.COMPLETED_WALLTIME_REACHED": 0,
    "jobs.state.COMPLETED_FAILED": 0,
    "jobs.state.COMPLETED_KILLED": 0,
    "jobs.state.REJECTED": 1,
    "bsld.threshold": 10.0,
    # waits 0, 10, 0, 10
    **spread("wait", 5.0, 5.0, 10.0, 10.0, 10.0),
    # 10, 15, 4, 110: the 95th percentile lies 0.85 of the way from 15 to 110, the 99th 0.97
    **spread("turnaround", 34.75, 12.5, 15 + 0.85 * 95, 15 + 0.97 * 95, 110.0),
    # 1, 3, 1, 1.1
    **spread("slowdown", 1.525, 1.05, 1.1 + 0.85 * 1.9, 1.1 + 0.97 * 1.9, 3.0),
    # 1, 1.5, 1, 1.1
    **spread("bsld", 1.15, 1.05, 1.1 + 0.85 * 0.4, 1.1 + 0.97 * 0.4, 1.5),
    "makespan": 115.0,
    # B waits over [0, 10), D over [5, 15)
    "queue.jobs.mean": 20 / 115,
    "queue.jobs.max": 2,
    "queue.nodes.mean": 50 / 115,
    "queue.nodes.max": 5,
    # idle while someone waits: 2 over [0, 2), 1 over [2, 6), 2 over [6, 10), 0 over [10, 15)
    "loss_of_capacity": 16 / 460,
    "loss_of_capacity.demand": 16 / 460,
    "utilisation.nodes": 144 / 460,
    # submit quantiles 0 and 4.55: A gives 2 × 4.55, C gives 2.55
    "utilisation.nodes.trimmed": 11.65 / 18.2,
    "size.1.jobs": 2,
    "size.1.wait.mean": 5.0,
    "size.1.bsld.mean": 1.05,
    "size.2.jobs": 1,
    "size.2.wait.mean": 0.0,
    "size.2.bsld.mean": 1.0,
    "size.3-4.jobs": 1,
    "size.3-4.wait.mean": 10.0,
    "size.3-4.bsld.mean": 1.5,
    # user 1: 1, user 2: 1.3; user 3's only job was rejected
    "users.count": 2,
    "users.bsld.max": 1.3,
    "fairness.jain": 2.3**2 / (2 * (1 + 1.69)),
    "energy.joules": None,
}


def test_every_metric_of_the_example() -> None:
    metrics = compute_metrics(example(), {"nodes": 4})
    assert list(metrics) == list(EXPECTED)
    assert metrics.pop("energy.joules") is None
    assert metrics == pytest.approx({k: v for k, v in EXPECTED.items() if v is not None}, rel=1e-12)
    json.dumps(metrics, allow_nan=False)


def test_threshold_of_bounded_slowdown() -> None:
    metrics = compute_metrics(example(), {"nodes": 4}, bsld_threshold=1.0)
    assert metrics["bsld.max"] == 3.0
    assert metrics["bsld.threshold"] == 1.0
    assert bounded_slowdown([90, 0, 5], [10, 2, 0], 20).tolist() == [5.0, 1.0, 1.0]
    with pytest.raises(BridgeError, match="above 0 s"):
        bounded_slowdown([1], [1], 0)


def test_a_job_without_length_has_no_slowdown() -> None:
    assert math.isnan(slowdown([5], [0])[0])
    metrics = compute_metrics(schedule([("a", 0, 5, 0, 1), ("b", 0, 0, 10, 1)]), {"nodes": 1})
    assert metrics["slowdown.mean"] == 1.0
    assert metrics["bsld.mean"] == 1.0
    assert metrics["wait.mean"] == 2.5


def test_losses_differ_when_the_queue_asks_for_less_than_is_idle() -> None:
    # One 2-node job waits for 10 s although 6 nodes idle.
    metrics = compute_metrics(schedule([("a", 0, 0, 20, 2), ("b", 0, 10, 10, 2)]), {"nodes": 8})
    assert metrics["loss_of_capacity"] == 60 / 160
    assert metrics["loss_of_capacity.demand"] == 20 / 160


def test_what_comes_and_goes_in_one_instant_never_queued() -> None:
    metrics = compute_metrics(schedule([("a", 0, 0, 10, 4), ("b", 5, 5, 5, 3)]), {"nodes": 7})
    assert (metrics["queue.jobs.max"], metrics["queue.nodes.max"]) == (0, 0)
    assert metrics["loss_of_capacity"] == 0.0


def test_further_resources_by_name() -> None:
    table = schedule([("a", 0, 0, 10, 1), ("b", 0, 0, 5, 1)], burst_buffer=[10**18, 4 * 10**18])
    metrics = compute_metrics(table, {"nodes": 2, "burst_buffer": 6 * 10**18, "power": 100})
    assert metrics["utilisation.burst_buffer"] == pytest.approx(0.5, rel=1e-12)
    assert metrics["utilisation.nodes"] == 0.75
    assert metrics["utilisation.power"] is None


@pytest.mark.parametrize("rows", [[], [("r", 0, None, 1, 9)]])
def test_nothing_started(rows: list[tuple[object, ...]]) -> None:
    metrics = compute_metrics(schedule(rows), {"nodes": 4})
    assert metrics["jobs.rejected"] == len(rows)
    unknown = ("wait.mean", "bsld.p99", "makespan", "utilisation.nodes", "queue.jobs.max", "loss_of_capacity")
    assert [metrics[key] for key in unknown] == [None] * 6


def test_energy_is_summed_only_if_all_of_it_is_known() -> None:
    rows = [("a", 0, 0, 10, 1), ("b", 0, 0, 5, 1)]
    known = schedule(rows).assign(consumed_energy=[3.0, 4.5])
    assert compute_metrics(known, {"nodes": 2})["energy.joules"] == 7.5
    partly = schedule(rows).assign(consumed_energy=[3.0, -1.0])
    assert compute_metrics(partly, {"nodes": 2})["energy.joules"] is None


def test_power_of_the_machine_is_its_idle_nodes_and_what_jobs_draw_above() -> None:
    # 0-10: a alone, 10-20: a and b, 20-30: b alone; c takes no time
    rows = [("a", 0, 0, 20, 2), ("b", 0, 10, 20, 1), ("c", 0, 10, 0, 1)]
    table = schedule(rows, power=[300, 50, 1000])
    metrics = compute_metrics(table, {"nodes": 4, "power": 400}, idle_power=60)
    assert [metrics[f"power.{key}"] for key in ("idle", "budget", "max")] == [240, 640, 590]
    assert metrics["power.mean"] == pytest.approx(240 + 7000 / 30, rel=1e-12)
    assert metrics["energy.machine.joules"] == 240 * 30 + 300 * 20 + 50 * 20
    assert metrics["utilisation.power"] == pytest.approx(7000 / 30 / 400, rel=1e-12)
    # with its idle power, job a's two nodes draw 420 W
    assert job_energy(table, 60).tolist() == [420 * 20, 110 * 20, 0]
    full = compute_metrics(table, {"nodes": 4, "power": 400})
    assert [full[f"power.{key}"] for key in ("idle", "budget", "max")] == [0, 400, 350]


def test_power_needs_a_capacity_and_demands() -> None:
    table = schedule([("a", 0, 0, 20, 2)])
    assert not [
        key for key in compute_metrics(table, {"nodes": 4}, idle_power=60) if key.startswith("power.")
    ]
    unknown = compute_metrics(table, {"nodes": 4, "power": 400}, idle_power=60)
    assert [unknown[key] for key in ("power.mean", "power.max", "energy.machine.joules")] == [None] * 3
    assert unknown["power.budget"] == 640


def test_users_that_the_log_does_not_know_are_no_user() -> None:
    rows = [("a", 0, 0, 10, 1), ("b", 0, 0, 5, 1)]
    keys = ("users.count", "users.bsld.max", "fairness.jain")
    assert [compute_metrics(schedule(rows, user=[-1, -1]), {"nodes": 2})[key] for key in keys] == [None] * 3
    assert [compute_metrics(schedule(rows, user=[-1, 7]), {"nodes": 2})[key] for key in keys] == [2, 1.0, 1.0]


def test_jain() -> None:
    assert jain([3, 3, 3]) == 1.0
    assert jain([1, 0, 0, 0]) == 0.25
    assert jain([0, 0]) == 1.0
    assert jain([]) is None


def test_size_classes() -> None:
    labels = {1: "1", 2: "2", 3: "3-4", 4: "3-4", 5: "5-8", 8: "5-8", 9: "9-16", 64: "33-64", 65: "65-128"}
    labels |= {2**20: "524289-1048576", 2**20 + 1: "1048577-2097152"}
    assert [size_label(int(k)) for k in size_class([*labels])] == [*labels.values()]


def test_breakdown_by_size_and_user() -> None:
    sizes = breakdown(example(), "size")
    assert sizes.index.tolist() == ["1", "2", "3-4"]
    assert sizes["node_seconds"].tolist() == [104.0, 20.0, 20.0]
    users = breakdown(example(), "user")
    assert users.index.tolist() == [2, 1]
    assert users["jobs"].tolist() == [2, 2]
    assert users["node_seconds"].tolist() == [120.0, 24.0]
    assert users["wait.max"].tolist() == [10.0, 0.0]
    with pytest.raises(BridgeError, match="no column 'queue'"):
        breakdown(example(), "queue")


def test_level_nets_the_changes_of_one_instant() -> None:
    instants, values = step_function([5, 0, 5, 9], [3, 2, -2, -3])
    assert instants.tolist() == [0, 5, 9]
    assert values.tolist() == [2, 3, 0]


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 20), st.integers(1, 6)),
        min_size=1,
        max_size=12,
    )
)
def test_time_functions_against_counting_second_by_second(raw: list[tuple[int, int, int, int]]) -> None:
    rows = [(k, submit, submit + wait, run, nodes) for k, (submit, wait, run, nodes) in enumerate(raw)]
    first, last = min(r[1] for r in rows), max(r[2] + r[3] for r in rows)
    metrics = compute_metrics(schedule(rows), {"nodes": 72})
    seconds = range(first, last)
    if not seconds:
        assert metrics["queue.jobs.mean"] is None
        return
    waiting = [[r for r in rows if r[1] <= t < r[2]] for t in seconds]
    used = [sum(r[4] for r in rows if r[2] <= t < r[2] + r[3]) for t in seconds]
    demand = [sum(r[4] for r in w) for w in waiting]
    assert metrics["queue.jobs.max"] == max(map(len, waiting))
    assert metrics["queue.nodes.max"] == max(demand)
    assert metrics["queue.nodes.mean"] == pytest.approx(np.mean(demand))
    assert metrics["utilisation.nodes"] == pytest.approx(sum(used) / 72 / len(seconds))
    lost = sum(72 - u for u, w in zip(used, waiting, strict=True) if w)
    assert metrics["loss_of_capacity"] == pytest.approx(lost / 72 / len(seconds))
    least = sum(min(72 - u, d) for u, d in zip(used, demand, strict=True))
    assert metrics["loss_of_capacity.demand"] == pytest.approx(least / 72 / len(seconds))
