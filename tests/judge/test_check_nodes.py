"""Nodes that jobs share, checked one by one: cores, memory, GPUs."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from cluster_micro_cases import MICRO_CASES, shared, takes
from cluster_on_bridge import Case, build_scenario
from cluster_reference.generate import draw_case

from bridge.base.errors import BridgeError
from bridge.cluster.amounts_text import NODE_AMOUNTS, NODE_RESOURCES, amounts_text, read_amounts
from bridge.experiment.site_jobs import nodes_record
from bridge.judge.check import CheckReport, check_schedule
from bridge.judge.hosts import HostAllocation
from bridge.worlds.fast.allocations import as_intervals
from bridge.worlds.fast.jobs_table import JobsTableBuilder
from bridge.worlds.fast.replay import replay


def table_of(case: Case) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the jobs table of a case, and what its run's record says of the nodes."""
    scenario = build_scenario(case)
    schedule, cluster = replay(scenario), scenario.cluster
    assert cluster is not None
    assert schedule.allocation is not None
    builder = JobsTableBuilder(scenario, schedule)
    nodes = schedule.allocation.node_indices(cluster.classes, schedule.start, schedule.end, schedule.serial)
    hosts = HostAllocation(*as_intervals([nodes[j] for j in builder.order.tolist()]))
    table = builder.rows()
    return table.assign(allocated_resources=hosts.texts(0, len(table))), nodes_record(cluster.classes)


def checked(table: pd.DataFrame, record: dict[str, str]) -> CheckReport:
    capacity = {"nodes": len(read_amounts(record[NODE_AMOUNTS], ""))}
    return check_schedule(table, capacity, nodes=record)


def test_texts_of_amounts() -> None:
    rows = np.array([[4, 1 << 50, 1000], [4, 1 << 50, 1000], [2, 8, 0]])
    text = amounts_text(rows, 1 << 50)
    assert text == "4/-/1000x2 2/8/0"
    assert read_amounts(text, "").tolist() == [[4, 1 << 60, 1000]] * 2 + [[2, 8, 0]]
    with pytest.raises(BridgeError, match="does not say what nodes have"):
        read_amounts("4/8 2", "job 1")


def test_what_tables_and_records_say() -> None:
    case = shared(
        [{"cores": 4, "memory": 8, "gpus": {"a": 2}}, {"cores": 2, "memory": 8}],
        [
            takes(cores=1, memory=2, gpus={"any": 1}),
            takes(tasks=5, cores=1, memory=1),
            takes(cores=1, exclusive=True),
        ],
    )
    table, record = table_of(case)
    assert record == {
        NODE_RESOURCES: "cores memory gpus gpus_a",
        NODE_AMOUNTS: "4/8/2000/2000 2/8/0/0",
    }
    texts = table.set_index("job_id")["per_node"]
    assert texts["1"] == "1/2/1000/0"
    assert texts["2"] == "3/3/0/0 2/2/0/0"
    assert texts["3"] == ""


@pytest.mark.parametrize("name", MICRO_CASES)
def test_schedules_by_hand_are_valid(name: str) -> None:
    table, record = table_of(MICRO_CASES[name].case)
    assert checked(table, record).kinds == {}


def test_random_schedules_are_valid() -> None:
    for seed in range(25):
        table, record = table_of(draw_case(seed))
        assert checked(table, record).kinds == {}, seed


@pytest.mark.parametrize(
    ("vector", "text"),
    [
        ({"cores": 2, "memory": 1}, "5 of 4 cores of node 0 in use when job 2 starts"),
        ({"cores": 1, "memory": 6}, "9 of 8 memory of node 0 in use when job 2 starts"),
    ],
)
def test_what_a_node_has_not_is_a_violation(vector: dict[str, Any], text: str) -> None:
    """Job 2 would have to wait for job 1, whose end at 10 it is moved before."""
    case = shared([{"cores": 4, "memory": 8}], [takes(cores=3, memory=3), takes(submit=5, **vector)])
    table, record = table_of(case)
    assert checked(table, record).kinds == {}
    moved = (table["job_id"] == "2") & (table["starting_time"] == 10)
    assert moved.sum() == 1
    for name in ("starting_time", "finish_time", "waiting_time", "turnaround_time"):
        table.loc[moved, name] -= 5
    report = checked(table, record)
    assert report.kinds == {"node-amount": 1}
    assert report.first is not None
    assert (report.first.text, report.first.jobs, report.first.time) == (text, ("2",), 5.0)


def test_without_the_columns_a_note_says_what_is_not_checked() -> None:
    table, record = table_of(shared([{"cores": 4}], [takes(cores=1)]))
    assert checked(table, record).notes == ()
    for jobs, nodes in ((table.drop(columns="per_node"), record), (table, None)):
        (note,) = check_schedule(jobs, {"nodes": 1}, nodes=nodes).notes
        assert "not node by node" in note
