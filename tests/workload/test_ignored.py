"""What a log says and no scheduler looks at is named once, with the number of records."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bridge.workload import formats
from bridge.workload.ignored import note_ignored
from bridge.workload.rules import LOAD_RULES
from bridge.workload.select import select
from bridge.workload.table import SWF_COLUMNS, Workload


def log(capacity: dict[str, int] | None = None, **columns: object) -> Workload:
    """Return a log of four jobs with some columns filled."""
    plain = {
        "job_id": [1, 2, 3, 4],
        "submit": [0, 1, 2, 3],
        "run": 5,
        "procs": 1,
        "req_procs": 1,
        "req_time": 9,
    }
    jobs = pd.DataFrame({name: np.int64(-1) for name in SWF_COLUMNS} | plain | columns)
    return Workload("log", jobs[[*SWF_COLUMNS, *(columns.keys() - {*SWF_COLUMNS})]], capacity or {"nodes": 4})


def counts(workload: Workload) -> dict[str, int]:
    """Return how many records say what."""
    found = note_ignored(workload)
    assert {reason.kind for reason in found.values()} <= {"ignored"}
    return {why: reason.count for why, reason in found.items()}


def test_a_log_that_says_nothing_more() -> None:
    assert counts(log()) == {}
    assert counts(log(partition=1, queue=[1, 1, 1, 1], preceding_job=-1)) == {}


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"partition": [1, 2, 2, -1]}, {"jobs of 2 partitions: all nodes are one pool": 3}),
        (
            {"partition_name": ["cpu", "gpu", "cpu,gpu", ""]},
            {"jobs of 3 partitions: all nodes are one pool": 3},
        ),
        ({"queue": [0, 1, 2, 3]}, {"jobs of 4 queues: no queue has limits or a priority": 4}),
        (
            {"queue": [1, 2, 1, 1], "qos_name": ["a", "b", "a", ""]},
            {"jobs of 2 QOS: none has limits or a priority": 3},
        ),
        ({"preceding_job": [-1, 1, 0, 2]}, {"jobs follow another job: they arrive as logged": 2}),
        ({"req_memory": [-1, 100, 100, 0]}, {"jobs ask for memory of each processor": 2}),
        ({"constraints": ["knl", "", "(null)", "a|b"]}, {"jobs ask for features of nodes": 2}),
        ({"reservation": ["", "", "week", None]}, {"jobs ran in a reservation": 1}),
        ({"licenses": ["matlab:1", "", "", ""]}, {"jobs ask for licences": 1}),
        ({"license_matlab": [2, 0, 0, 0]}, {"jobs ask for license_matlab: no capacity of it is stated": 1}),
        ({"gpus": [0, 4, 0, -1]}, {"jobs ask for gpus: no capacity of it is stated": 1}),
        (
            {"state": ["PREEMPTED", "COMPLETED", "NODE_FAIL", "FAILED"]},
            {"jobs were preempted, requeued, or lost a node: they run as long as logged": 2},
        ),
    ],
)
def test_each_column(columns: dict[str, object], expected: dict[str, int]) -> None:
    assert counts(log(**columns)) == expected


def test_memory_and_gpus_of_the_machine_are_one_pool() -> None:
    workload = log(
        {"nodes": 4, "cores": 8, "gpus": 8, "main_memory": 100}, cores=2, gpus=[1, 0, 0, 0], main_memory=7
    )
    assert counts(workload) == {"jobs ask for gpus, main_memory: one pool, whichever nodes have it": 4}


def test_names_without_codes_are_numbered_and_named(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "job_id,submit,run,procs,partition_name,user_name\n1,0,9,1,gpu,b\n2,1,9,1,cpu,\n3,2,9,1,gpu,a\n"
    )
    workload = formats.read(path)
    assert workload.jobs["partition"].tolist() == [1, 2, 1]
    assert workload.jobs["user"].tolist() == [1, -1, 2]
    assert counts(workload) == {"jobs of 2 partitions: all nodes are one pool": 3}


def test_selection_counts_it_also_where_the_columns_were_not_kept(tmp_path: Path) -> None:
    workload = log(partition=[1, 2, 2, 3], preceding_job=[-1, 1, -1, -1], queue=[1, 1, 2, 2])
    expected = {
        "jobs of 3 partitions: all nodes are one pool": (4, (1, 2, 3)),
        "jobs of 2 queues: no queue has limits or a priority": (4, (1, 2, 3)),
        "jobs follow another job: they arrive as logged": (1, (2,)),
    }
    path = tmp_path / "log.parquet"
    formats.write(workload, path)
    for records in (workload, formats.read(path), formats.read(path, leave={"partition", "preceding_job"})):
        tally = select(records, LOAD_RULES["standard"]).tally
        assert {why: (reason.count, reason.examples) for why, reason in tally.items()} == expected
