"""The policy ``recorded`` on a cluster: nodes that the log names, amounts, and contradictions; by hand."""

import numpy as np
import pandas as pd
import pytest

from bridge.base.errors import BridgeError
from bridge.cluster.clusterfile import write_cluster_toml
from bridge.cluster.description import CalendarEvent, Cluster, NodeGroup, Partition
from bridge.judge.check import CheckReport, check_schedule
from bridge.judge.sequences import values_of
from bridge.workload.table import SWF_COLUMNS, Workload
from bridge.worlds.fast.jobs_table import JobsTableBuilder
from bridge.worlds.fast.recorded_nodes import RecordedNodes
from bridge.worlds.fast.replay import replay, replay_sequences
from bridge.worlds.fast.scheduler_config import SchedulerConfig

NODES = (
    NodeGroup(name="a", nodes="a[1-3]", cores=4),
    NodeGroup(name="g", nodes="g1", cores=8, gpus={"v": 2}),
)
WHOLE = Cluster(
    name="whole",
    nodes=NODES,
    partitions=(
        Partition(name="cpu", nodes=("a",), default=True),
        Partition(name="gpu", nodes=("g",), exclusive=False),
    ),
)


class Recorded:
    """A log (submit, wait, run, nodes, partition, ran_on a job) played on a cluster as recorded."""

    def __init__(self, path, rows, cluster=WHOLE, **more):  # type: ignore[no-untyped-def]
        table = pd.DataFrame({name: np.full(len(rows), -1) for name in SWF_COLUMNS}).assign(**more)
        names = ("submit", "wait", "run", "req_procs", "partition_name", "ran_on")
        for name, column in zip(names, zip(*rows, strict=True), strict=True):
            table[name] = list(column)
        table["job_id"], table["req_time"] = np.arange(1, len(rows) + 1), 1000
        write_cluster_toml(cluster, path / "c.toml")
        setup = SchedulerConfig("recorded", "none", cluster=str(path / "c.toml"))
        self.scenario = setup.build_scenario(setup.select(Workload("log", table, {})))
        self.table = (
            JobsTableBuilder(self.scenario, replay(self.scenario)).rows().set_index("job_id", drop=False)
        )
        assert self.scenario.recorded_nodes is not None
        self.record: RecordedNodes = self.scenario.recorded_nodes

    def nodes(self) -> list[list[int]]:
        return [of.tolist() for of in self.record.node_indices(np.arange(len(self.scenario.jobs)))]

    def check(self) -> CheckReport:
        sizes = self.record.partition_sizes()
        return check_schedule(self.table, {"nodes": 4, "cores": 20}, partitions=sizes)


ROWS = [
    (0, 0, 100, 2, "cpu", "a[1,3]"),
    (0, 10, 50, 1, "gpu", "g1"),
    (5, 95, 10, 1, "cpu", "a3"),
    (9, 1, 20, 1, "gpu", ""),
]


def test_jobs_have_the_nodes_that_the_log_names(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """Whole nodes count with all of their cores; shared ones with what the log says of the whole job."""
    one = Recorded(tmp_path, ROWS, cores=[-1.0, 3.0, -1.0, 2.0], gpus=[-1.0, 1.0, -1.0, -1.0])
    assert one.nodes() == [[0, 2], [3], [2], []]
    table = one.table.sort_index()
    assert table["starting_time"].tolist() == [0, 10, 100, 10]
    assert table["partition"].tolist() == ["cpu", "gpu", "cpu", "gpu"]
    assert table["requested_number_of_resources"].tolist() == [2, 1, 1, 1]
    assert table["cores"].tolist() == [8, 3, 4, 2]
    assert table["gpus"].tolist() == [0, 1, 0, 0]
    assert table["shares_nodes"].tolist() == [0, 1, 0, 1]
    assert table["per_node"].tolist() == ["", "3/0/1000/0", "", ""]
    assert one.scenario.warnings == [
        "the log does not say on which nodes 1 of 4 jobs ran: they are only counted"
    ]
    assert one.check().ok


def test_without_lists_nodes_are_counted_by_partition(tmp_path) -> None:  # type: ignore[no-untyped-def]
    rows = [(0, 0, 10, 2, "cpu", ""), (0, 5, 10, 2, "cpu", ""), (0, 1, 1, 1, "elsewhere", "")]
    one = Recorded(tmp_path, rows)
    assert one.table.sort_index()["cores"].tolist() == [8, 8, 4]
    assert one.scenario.warnings == [
        "the log does not say on which nodes 3 of 3 jobs ran: they are only counted",
        "1 job names no partition of the cluster: the default partition taken",
        "partition 'cpu': 4 nodes in use at one time, it has 3",
    ]
    report = one.check()
    assert report.kinds == {"partition-nodes": 1}
    assert report.first is not None
    assert report.first.text == (
        "4 of 3 nodes of partition 'cpu' in use when job 2 (2) starts; running: 1 (2)"
    )


def test_where_the_record_contradicts_the_cluster_it_is_played_and_named(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """Job 2 is on a node of job 1; 3 on one that is not there; 4 outside its partition; 5 is too large."""
    rows = [
        (0, 0, 100, 1, "cpu", "a1"),
        (1, 0, 10, 2, "cpu", "a[1-2]"),
        (200, 0, 10, 2, "cpu", "a1,z9"),
        (300, 0, 10, 1, "cpu", "g1"),
        (400, 0, 10, 9, "cpu", ""),
    ]
    one = Recorded(tmp_path, rows)
    assert one.nodes() == [[0], [0, 1], [0], [3], []]
    assert one.table.sort_index()["waiting_time"].tolist() == [0.0] * 5
    assert one.scenario.warnings == [
        "the log does not say on which nodes 1 of 5 jobs ran: they are only counted",
        "1 job ran on nodes that the cluster does not have: z9",
        "1 job ran on nodes outside their partition: g1",
        "1 node had more in use at one time than they have: a1 (8 of 4 cores)",
        "partition 'cpu': 9 nodes in use at one time, it has 3",
        "36 cores in use at one time, the cluster has 20",
    ]
    table = one.table.assign(
        allocated_resources=[" ".join(map(str, one.nodes()[int(job) - 1])) for job in one.table["job_id"]]
    )
    report = check_schedule(table, {"nodes": 4, "cores": 20}, partitions=one.record.partition_sizes())
    assert report.kinds == {
        "larger-than-machine:nodes": 1, "larger-than-machine:cores": 1, "capacity:nodes": 1,
        "capacity:cores": 1, "host-overlap": 1, "node-unknown": 1, "node-partition": 1, "partition-nodes": 1,
    }  # fmt: skip
    texts = {kind: found.text for kind, found in report.first_of_kind.items()}
    assert texts["host-overlap"] == "job 2 starts on host 0, which job 1 holds until 100.000000"
    assert texts["node-unknown"] == "job 3 ran on z9, which the cluster does not have"
    assert texts["node-partition"] == "job 4 ran on g1, which its partition does not have"


def test_shared_nodes_beyond_their_cores_are_named(tmp_path) -> None:  # type: ignore[no-untyped-def]
    rows = [(0, 0, 10, 1, "gpu", "g1"), (5, 0, 10, 1, "gpu", "g1"), (10, 0, 5, 1, "gpu", "g1")]
    one = Recorded(tmp_path, rows, cores=[5.0, 4.0, 4.0])
    assert one.scenario.warnings == ["1 node had more in use at one time than they have: g1 (9 of 8 cores)"]


def test_waits_count_from_eligibility(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """By begin times, dependencies and the column ``eligible``; a job that started before it did not wait."""
    rows = [(0, 0, 100, 1, "cpu", "a1"), *[(10, 120, 5, 1, "cpu", f"a{k}") for k in (1, 2, 3)]]
    stated = {
        "begin": [-1, 30, -1, -1],
        "dependency": ["", "", "afterok:1", ""],
        "eligible": [-1.0] * 3 + [150.0],
    }
    one = Recorded(tmp_path, rows, **stated)
    table = one.table.sort_index()
    assert table["eligible_time"].tolist() == [0, 30, 100, 150]
    assert table["waiting_time"].tolist() == [0, 100, 30, 0]
    assert one.check().kinds == {"start-before-eligible": 1}


def test_sequences_are_pieces_of_it_and_the_calendar_is_not_played(tmp_path) -> None:  # type: ignore[no-untyped-def]
    down = CalendarEvent(time=0, event="down", nodes=("a",))
    one = Recorded(tmp_path, ROWS, Cluster(**{**vars(WHOLE), "calendar": (down,)}), begin=[-1, -1, 60, -1])
    assert one.scenario.warnings[-1] == (
        "the record is played as it is: calendar, reservations and failures change nothing"
    )
    starts = np.array([0, 1])
    played = [(s.start // 1_000_000).tolist() for s in replay_sequences(one.scenario, starts, 2)]
    assert played == [[0, 10], [10, 100]]
    assert values_of(one.scenario, starts, 2, "wait.max").tolist() == [10.0, 40.0]


def test_followers_and_unreadable_lists_are_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BridgeError, match="job 1: its 'ran_on'"):
        Recorded(tmp_path, [(0, 0, 100, 1, "cpu", "a]")])
