"""What jobs ask of a cluster, from columns of a log, and jobs selected with it."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bridge.base.errors import BridgeError
from bridge.cluster import Cluster, NodeGroup, Partition
from bridge.workload import requests
from bridge.workload.columns import read_csv, read_parquet, write_csv, write_parquet
from bridge.workload.requests import NEVER, heeded_columns, read_requests, with_default_times
from bridge.workload.rules import LOAD_RULES
from bridge.workload.select import select
from bridge.workload.table import SWF_COLUMNS, Workload
from bridge.worlds.fast.scheduler_config import SchedulerConfig

SITE = Cluster(
    nodes=(NodeGroup(count=4, cores=8),),
    partitions=(
        Partition(name="batch", max_time=7200),
        Partition(name="debug", max_time=600, default_time=60),
        Partition(name="open"),
    ),
)
PLAIN: dict[str, list[Any]] = {
    "job_id": [1, 2, 3],
    "submit": [100, 110, 120],
    "run": [10, 10, 10],
    "req_procs": [2, 1, 9],
    "req_time": [20, 20, 20],
    "status": [1, 0, -1],
}


def workload(**columns: list[Any]) -> Workload:
    """Return a log of three jobs with these columns, too."""
    table = pd.DataFrame(PLAIN | columns)
    for name in SWF_COLUMNS:
        if name not in table:
            table[name] = np.int64(-1)
    return Workload("log", table, {})


def test_processors_are_nodes_where_nothing_else_is_stated() -> None:
    requests = read_requests(workload())
    assert requests.nodes.tolist() == [2, 1, 9]
    assert requests.tasks.tolist() == [0, 0, 0]
    assert requests.cores.tolist() == [0, 0, 0]
    assert requests.memory.tolist() == [-1, -1, -1]
    assert requests.exclusive.tolist() == [-1, -1, -1]
    assert requests.begin.tolist() == requests.hold_until.tolist() == [-1, -1, -1]
    assert requests.succeeded.tolist() == [True, False, True]
    assert requests.partition.code.tolist() == [-1, -1, -1]


def test_columns_of_nodes_and_tasks() -> None:
    requests = read_requests(
        workload(
            nodes=[2, -1, -1],
            tasks=[-1, 6, -1],
            cores_per_node=[4, -1, 8],
            cores_per_task=[-1, 2, -1],
            memory_per_node=[1000, -1, 0],
            memory_per_task=[-1, 50, -1],
            gpus_per_node=[0.25, -1, 2],
            gpu_type=["a100", "", None],
            exclusive=[1, 0, -1],
            begin=[-1, 110.5, 0],
            hold_until=[np.inf, -1, 130],
            array_id=[-1, 7, 7],
            array_limit=[-1, 1, 1],
            partition_name=["batch", "debug,batch", ""],
        )
    )
    assert requests.nodes.tolist() == [2, 0, 9]
    assert requests.tasks.tolist() == [0, 6, 0]
    assert requests.cores.tolist() == [4, 2, 8]
    assert requests.memory.tolist() == [1000, 50, 0]
    assert requests.gpus.tolist() == [250, 0, 2000]
    assert [requests.gpu_type.of(n) for n in range(3)] == ["a100", "", ""]
    assert requests.exclusive.tolist() == [1, 0, -1]
    assert requests.begin.tolist() == [-1, 110_500_000, 0]
    assert requests.hold_until.tolist() == [NEVER, -1, 130_000_000]
    assert requests.array_id.tolist() == [-1, 7, 7]
    assert requests.array_limit.tolist() == [0, 1, 1]
    assert requests.partition.code.tolist() == [0, 1, -1]
    assert requests.partition.texts == ("batch", "debug,batch")


def test_codes_are_names_where_the_log_has_none() -> None:
    requests = read_requests(workload(partition=[3, -1, 1], user=[7, 7, 8], group=[2, 2, 2]))
    assert [requests.partition.of(n) for n in range(3)] == ["3", "", "1"]
    assert [requests.user.of(n) for n in range(3)] == ["7", "7", "8"]
    assert requests.account.texts == ("2",)


def test_a_part_and_another_clock() -> None:
    requests = read_requests(
        workload(begin=[-1, 110, 50], hold_until=[np.inf, 120, -1], user_name=["a", "b", "a"])
    )
    later = requests.take(np.array([2, 1])).later(100_000_000)
    assert later.begin.tolist() == [0, 10_000_000]
    assert later.hold_until.tolist() == [-1, 20_000_000]
    assert [later.user.of(n) for n in range(2)] == ["a", "b"]
    assert requests.later(100_000_000).hold_until[0] == NEVER


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        ({"nodes": [1.5, 1, 1]}, "its 'nodes' is '1.5', which is no whole number"),
        ({"gpus_per_node": [0.0001, 1, 1]}, "its 'gpus_per_node' is '0.0001'"),
        ({"begin": ["soon", "1", "1"]}, "its 'begin' is 'soon', which is no time"),
        ({"tasks": [4, -1, -1], "cores_per_node": [2, 1, 1]}, "states cores_per_node, and its tasks"),
        ({"cores_per_task": [2, -1, -1]}, "states cores_per_task, and no tasks"),
    ],
)
def test_a_wrong_cell_names_its_job(columns: dict[str, list[Any]], what: str) -> None:
    with pytest.raises(BridgeError) as error:
        read_requests(workload(**columns))
    assert error.value.what.startswith(what)
    assert error.value.where == "log, job 1"


def test_jobs_without_a_requested_time_have_their_partitions() -> None:
    log = workload(req_time=[-1, -1, 30], partition_name=["", "debug", "debug"])
    filled = with_default_times(log, SITE)
    assert filled.jobs["req_time"].tolist() == [7200, 60, 30]
    assert {why: entry.count for why, entry in filled.tally.items()} == {
        "no requested time: the partition's taken": 2
    }
    assert log.jobs["req_time"].tolist() == [-1, -1, 30]
    unlimited = workload(req_time=[-1, 20, 20], partition_name=["open", "", ""])
    assert with_default_times(unlimited, SITE) is unlimited


def test_jobs_are_selected_with_their_requests() -> None:
    log = workload(
        submit=[120, 100, 110], begin=[130, -1, 105], partition_name=["a", "b", "c"], req_procs=[2, 1, 3]
    )
    jobs = select(log, LOAD_RULES["standard"], cluster=SITE, rebase=True)
    assert jobs.id.tolist() == [2, 3, 1]
    assert jobs.cluster is SITE
    assert jobs.requests is not None
    assert [jobs.requests.partition.of(n) for n in range(3)] == ["b", "c", "a"]
    assert jobs.requests.begin.tolist() == [-1, 5_000_000, 30_000_000]
    assert (jobs.resources, jobs.capacity.tolist()) == (("nodes",), [4])
    assert jobs.demand.tolist() == [[1], [3], [2]]
    part = jobs.take(slice(1, 3))
    assert part.requests is not None
    assert part.requests.begin.tolist() == [5_000_000, 30_000_000]


def test_a_job_that_is_larger_than_the_cluster_is_refused_by_name() -> None:
    """By its rules: the record of such a job can be played."""
    jobs = select(workload(), LOAD_RULES["standard"], cluster=SITE)
    never = r"job 3: can never run: it asks for 9 nodes, and 4 nodes of partition 'batch' hold one of them"
    with pytest.raises(BridgeError, match=never):
        SchedulerConfig().build_scenario(jobs)


def test_what_a_cluster_heeds_is_not_said_to_be_ignored() -> None:
    log = workload(
        req_procs=[1, 1, 1],
        constraints=["a", "", ""],
        partition_name=["batch", "debug", ""],
        partition=[1, 2, 1],
        queue=[1, 2, 1],
        dependency=["", "afterok:1", ""],
        gpus_per_node=[1, 0, 0],
        gpus=[1, 0, 0],
        burst_buffer=[5, 0, 0],
        req_memory=[3, -1, -1],
    )
    said = [why for why, one in select(log, LOAD_RULES["standard"], cluster=SITE).tally.items()]
    assert said == [
        "jobs ask for memory of each processor",
        "jobs ask for burst_buffer: no capacity of it is stated",
    ]
    without = select(log, LOAD_RULES["standard"], nodes=4).tally
    assert "jobs ask for features of nodes" in without
    assert "jobs ask for gpus: no capacity of it is stated" in without
    assert "gpus" in heeded_columns(log)
    assert "gpus" not in heeded_columns(workload(gpus=[1, 0, 0]))


@pytest.mark.parametrize(
    ("suffix", "write", "read"), [(".csv", write_csv, read_csv), (".parquet", write_parquet, read_parquet)]
)
def test_columns_survive_in_files(tmp_path: Path, suffix: str, write: Any, read: Any) -> None:
    log = workload(
        nodes=[2, -1, 1],
        tasks=[-1, 4, -1],
        gpus_per_node=[0.5, -1, -1],
        hold_until=[np.inf, -1, 130],
        partition_name=["batch", "", "007"],
        dependency=["", "afterok:1", ""],
    )
    write(log, tmp_path / f"log{suffix}")
    again = read(tmp_path / f"log{suffix}")
    before, after = read_requests(log), read_requests(again)
    assert after.hold_until.tolist() == before.hold_until.tolist()
    assert after.gpus.tolist() == before.gpus.tolist()
    assert after.partition.texts == ("batch", "007")
    assert [after.dependency.of(n) for n in range(3)] == ["", "afterok:1", ""]
    assert again.digest() == log.digest()


def test_a_log_without_these_columns_has_the_digest_that_it_had() -> None:
    # kept by studies and checkpoints
    assert workload().digest() == "b5c5e72e9d3db72364213b6c2e50a7009a6e9d9cee65fd49248e611671f6d886"


@pytest.mark.parametrize(
    ("cells", "kind", "blank"),
    [
        ([1, -1], "int64", [False, False]),
        ([1.5, None], "float64", [False, True]),
        ([2, None], "Int64", [False, True]),
        (["", "4", None], "object", [True, False, True]),
        (["", "4", None], "str", [True, False, True]),
        (["", "4"], "category", [True, False]),
    ],
)
def test_cells_that_state_nothing(cells: list[object], kind: str, blank: list[bool]) -> None:
    assert requests._is_blank(pd.Series(cells, dtype=kind)).tolist() == blank
