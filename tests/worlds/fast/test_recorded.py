"""The policy ``recorded``: the log's own starts and ends, exactly; what it cannot be joined with."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.base.errors import BridgeError
from bridge.judge.check import check_schedule
from bridge.policy_name import parse_policy
from bridge.scheduler.order import order
from bridge.workload.table import SWF_COLUMNS, Workload
from bridge.worlds.fast.jobs_table import JobsTableBuilder
from bridge.worlds.fast.replay import replay, replay_sequences
from bridge.worlds.fast.scheduler_config import SchedulerConfig

RECORDED = SchedulerConfig(order="recorded", backfill="none")


def log(rows: list[tuple[int, ...]], nodes: int = 4, **more: list[float]) -> Workload:
    """Return the log of (submit, wait, run, nodes, request) a job, numbered from 1."""
    table = pd.DataFrame({name: np.full(len(rows), -1) for name in SWF_COLUMNS}).assign(**more)
    for name, column in zip(
        ("submit", "wait", "run", "req_procs", "req_time"), zip(*rows, strict=True), strict=True
    ):
        table[name] = column
    table["job_id"] = np.arange(1, len(rows) + 1)
    return Workload("log", table, {"nodes": nodes})


def jobs_table(workload: Workload, *, dependencies: bool = False) -> pd.DataFrame:
    scenario = RECORDED.build_scenario(RECORDED.select(workload, dependencies=dependencies))
    return JobsTableBuilder(scenario, replay(scenario)).rows().set_index("job_id", drop=False)


ROWS = [(0, 5, 100, 2, 200), (10, 0, 300, 4, 250), (20, 40, 50, 1, 60)]


def test_starts_and_ends_are_the_log_s() -> None:
    """Also of a job that outlived its request (no rule kills it), and where too many nodes are in use."""
    table = jobs_table(log(ROWS))
    assert table["starting_time"].to_dict() == {"1": 5, "2": 10, "3": 60}
    assert table["finish_time"].to_dict() == {"1": 105, "2": 310, "3": 110}
    assert set(table["start_kind"]) == {""}


def test_check_tells_where_the_log_contradicts_itself() -> None:
    report = check_schedule(jobs_table(log(ROWS)), {"nodes": 4})
    assert report.kinds == {"walltime": 1, "capacity:nodes": 2}
    assert report.peak == {"nodes": 7}
    assert report.first_of_kind["capacity:nodes"].text == (
        "6 of 4 nodes in use when job 2 (4) starts; running: 1 (2)"
    )


def test_check_tells_starts_before_a_job_could_start() -> None:
    follows = log(ROWS, nodes=9, preceding_job=[-1, 1, 1])
    report = check_schedule(jobs_table(follows, dependencies=True), {"nodes": 9}, ignore=["walltime"])
    assert report.kinds == {"start-before-eligible": 2}
    stated = log(ROWS, nodes=9, eligible=[0.0, -1.0, 61.0])
    report = check_schedule(jobs_table(stated), {"nodes": 9}, ignore=["walltime"])
    assert report.first is not None
    assert report.first.text == "job 3 starts at 60.000000, but it could not before 61.000000"


def test_sequences_are_pieces_of_it() -> None:
    scenario = RECORDED.build_scenario(RECORDED.select(log(ROWS)))
    whole = replay(scenario)
    (one,) = replay_sequences(scenario, np.array([1]), 2)
    assert one.start.tolist() == whole.start[1:].tolist()


def test_jobs_without_a_recorded_start_are_dropped_and_counted() -> None:
    scenario = RECORDED.build_scenario(RECORDED.select(log([*ROWS, (30, -1, 9, 1, 9)])))
    assert len(scenario.jobs) == 3
    assert scenario.jobs.tally["start not recorded"].examples == (4,)
    assert "ran past its request: killed there" not in scenario.jobs.tally


def test_a_log_without_recorded_starts_is_refused() -> None:
    jobs = RECORDED.select(log([(0, -1, 10, 1, 10)]))
    with pytest.raises(BridgeError, match="does not say when its jobs started"):
        RECORDED.build_scenario(jobs)


@pytest.mark.parametrize(
    "setup",
    [
        SchedulerConfig(order="recorded"),
        SchedulerConfig(order="recorded", backfill="none", estimator="actual"),
        SchedulerConfig(order="recorded", backfill="none", candidate_order="sjf"),
    ],
)
def test_nothing_stands_beside_the_record(setup: SchedulerConfig) -> None:
    with pytest.raises(BridgeError, match="nobody decides"):
        setup.build_scenario(setup.select(log(ROWS)))


def test_the_record_decides_nothing() -> None:
    with pytest.raises(BridgeError, match="no rule beside"):
        parse_policy("recorded+easy")
    for needs_a_rule in (parse_policy("recorded").policy, lambda: order("recorded")):
        with pytest.raises(BridgeError, match="decides nothing here"):
            needs_a_rule()
    assert not parse_policy("recorded").is_rule


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 50), st.integers(0, 50), st.integers(1, 50), st.integers(1, 4), st.integers(1, 50)
        ),
        min_size=1,
        max_size=20,
    )
)
def test_every_start_and_end_is_exact(rows: list[tuple[int, ...]]) -> None:
    """Submissions count from the first, as in every replay."""
    table = jobs_table(log(rows)).sort_index(key=lambda ids: ids.astype(int))
    first = min(row[0] for row in rows)
    assert table["starting_time"].tolist() == [row[0] + row[1] - first for row in rows]
    assert table["finish_time"].tolist() == [row[0] + row[1] + row[2] - first for row in rows]
