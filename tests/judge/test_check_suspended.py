"""Schedules in which jobs are suspended: cores are free meanwhile, memory is not; answers by hand."""

from typing import Any

import pandas as pd
import pytest
from cluster_micro_cases import job, takes, whole
from cluster_on_bridge import build_scenario
from cluster_reference.generate import PARTS, TIMED_PARTS, draw_case

from bridge.cluster.amounts_text import format_spans, parse_spans
from bridge.experiment.site_jobs import nodes_record
from bridge.judge.check import CheckReport, check_schedule
from bridge.wire.hosts import from_ids, text_of
from bridge.worlds.fast.attempts import with_attempts
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.jobs_table import JobsTableBuilder
from bridge.worlds.fast.replay import Schedule, replay

#: Compiled for a minute; as plain Python in test_cluster_in_time.py.
pytestmark = pytest.mark.slow


def check(case: dict[str, Any]) -> tuple[pd.DataFrame, CheckReport]:
    """Return the jobs table of a replay with each job's nodes, and what a check says of it."""
    scenario, schedule = with_attempts(*played(case))
    assert scenario.cluster is not None
    assert schedule.allocation is not None
    classes, builder = scenario.cluster.classes, JobsTableBuilder(scenario, schedule)
    nodes = schedule.allocation.node_indices(classes, schedule.start, schedule.end, schedule.serial)
    texts = [text_of(from_ids(nodes[j].tolist())) for j in builder.order.tolist()]
    rows = builder.rows().assign(allocated_resources=texts)
    capacity = {"nodes": len(case["nodes"]), **scenario.cluster.capacity()}
    return rows, check_schedule(rows, capacity, nodes=nodes_record(classes))


def played(case: dict[str, Any]) -> tuple[Scenario, Schedule]:
    scenario = build_scenario(case)
    return scenario, replay(scenario)


def tiers(case: dict[str, Any], *, exclusive: bool) -> dict[str, Any]:
    kind = {"nodes": [0], "exclusive": exclusive}
    return {
        **case,
        "partitions": {"low": {**kind, "preempt": "suspend", "tier": 0}, "high": {**kind, "tier": 1}},
    }


def test_a_job_is_suspended_twice() -> None:
    high = [job(start, partitions=["high"], run=5) for start in (3, 12)]
    rows, report = check(tiers(whole(1, [job(partitions=["low"]), *high]), exclusive=True))
    row = rows.set_index("job_id").loc["1"]
    assert row["suspended"] == "3-8 12-17"
    assert [row[name] for name in ("finish_time", "execution_time", "waiting_time")] == [20, 10, 10]
    assert report.ok, report.first


def test_memory_stays_with_a_suspended_job() -> None:
    low = {**takes(cores=4, memory=4), "partitions": ["low"]}
    high = {**takes(submit=3, cores=4, memory=4, run=5), "partitions": ["high"]}
    case = tiers({"nodes": [{"cores": 4, "memory": 8}], "jobs": [low, high]}, exclusive=False)
    rows, report = check(case)
    assert report.ok, report.first
    more = rows.assign(per_node=rows["per_node"].str.replace("4/4/0", "4/5/0"))
    scenario = build_scenario(case)
    assert scenario.cluster is not None
    found = check_schedule(more, {"nodes": 1, "cores": 4}, nodes=nodes_record(scenario.cluster.classes))
    assert found.kinds.keys() == {"node-amount"}
    assert found.first is not None
    assert "10 of 8 memory of node 0 in use" in found.first.text


def test_random_cases_have_no_violation() -> None:
    suspended = 0
    for seed in range(16):
        case = draw_case(700_000 + seed, parts=(*PARTS, *TIMED_PARTS))
        for k, partition in enumerate(case["partitions"].values()):
            partition.update(tier=k, preempt="suspend")
        rows, report = check(case)
        assert report.ok, (seed, report.first)
        suspended += "suspended" in rows
    assert suspended > 3


def test_times_are_text_and_back() -> None:
    assert format_spans([(3.0, 8.0), (20.0, 25.5)]) == "3-8 20-25.5"
    assert parse_spans("3-8 20-25.5", "job 1") == [(3.0, 8.0), (20.0, 25.5)]
