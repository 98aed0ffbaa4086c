"""Clusters that change in time: attempts as rows, what is lost, failures that are drawn, what is refused."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cluster_micro_cases import TWO_NODES as CASE
from cluster_on_bridge import build_cluster, build_scenario, build_workload, replay_case

from bridge.base.errors import BridgeError
from bridge.cluster import CalendarEvent, Failures, License, Qos
from bridge.scheduler.protocol import Policy, protocol
from bridge.scheduler.state import SECOND
from bridge.scheduler.timed_state import NODES_DOWN, NODES_UP
from bridge.workload.rules import DEFAULT_RULE, LOAD_RULES
from bridge.workload.select import select
from bridge.worlds.fast.attempts import cut_short, with_attempts
from bridge.worlds.fast.episode import Scenario, prepare
from bridge.worlds.fast.jobs_table import JobsTableBuilder
from bridge.worlds.fast.replay import replay, replay_sequences

#: Compiled; as plain Python in test_cluster_in_time.py. The kernels of such clusters compile for a minute.
pytestmark = pytest.mark.slow


def with_cluster(case: dict[str, Any], **changes: Any) -> Scenario:
    """Return a case on its cluster with changed fields."""
    rule = LOAD_RULES[DEFAULT_RULE["standard"]]
    cluster = replace(build_cluster(case), **changes)
    jobs = select(build_workload(case), rule, rebase=False, cluster=cluster)
    return prepare(jobs, protocol("standard"), Policy("fcfs", "easy"), "requested", rule)


def test_a_failure_restarts_the_job_and_drain_lets_it_end() -> None:
    down = {**CASE, "calendar": [{"time": 40, "nodes": [1], "state": "down"}], "requeue_delay": 5}
    up = [*down["calendar"], {"time": 60, "nodes": [1], "state": "up"}]
    # killed at 40; job 2 starts on the node that is left, job 1 again when both are free
    assert replay_case({**down, "calendar": up}) == [(0, 70, 170, [0, 1]), (10, 40, 70, [0])]
    assert replay_case(down) == [(0, None, None, []), (10, 40, 70, [0])]
    drain = {**CASE, "calendar": [{"time": 40, "nodes": [0], "state": "drain"}]}
    assert replay_case(drain) == [(0, 0, 100, [0, 1]), (10, 100, 130, [1])]


def test_a_reservation_is_kept_free_from_when_it_is_announced() -> None:
    upgrade = {"reservation": "r", "nodes": [0, 1], "begin": 50, "end": 80}
    assert replay_case({**CASE, "calendar": [upgrade]}) == [(0, 80, 180, [0, 1]), (10, 10, 40, [0])]
    late = {**upgrade, "announced": 20}
    assert replay_case({**CASE, "calendar": [late]}) == [(0, 0, 100, [0, 1]), (10, 100, 130, [0])]
    jobs = [CASE["jobs"][0], {**CASE["jobs"][1], "reservation": "r"}]
    own = replay_case({**CASE, "jobs": jobs, "calendar": [upgrade]})
    assert own[1] == (10, 50, 80, [0])


def test_cut_runs_are_rows_and_lost() -> None:
    scenario = build_scenario(
        {
            **CASE,
            "calendar": [
                {"time": 40, "nodes": [1], "state": "down"},
                {"time": 50, "nodes": [1], "state": "up"},
            ],
        }
    )
    schedule = replay(scenario)
    assert cut_short(scenario, schedule) == {
        "runs.cancelled": 0,
        "runs.failed": 0,
        "runs.requeued": 0,
        "runs.restarted": 1,
        "lost.node_seconds": 80.0,
        "lost.core_seconds": 320.0,
        "lost.gpu_seconds": 0.0,
    }
    table = JobsTableBuilder(*with_attempts(scenario, schedule)).rows()
    columns = ["job_id", "starting_time", "finish_time", "execution_time", "waiting_time", "episode"]
    assert table[columns].to_numpy().tolist() == [
        ["1#1", 0.0, 40.0, 40.0, 0.0, 0],
        ["2", 40.0, 70.0, 30.0, 30.0, 0],
        ["1", 70.0, 170.0, 100.0, 70.0, 1],
    ]
    assert table["final_state"].tolist() == ["COMPLETED_KILLED", *["COMPLETED_WALLTIME_REACHED"] * 2]


def test_a_preempted_job_that_is_not_requeued_is_killed() -> None:
    case = {
        **CASE,
        "partitions": {
            "low": {"nodes": [0, 1], "exclusive": True, "preempt": "cancel", "tier": 1},
            "high": {"nodes": [0, 1], "exclusive": True, "tier": 2},
        },
        "jobs": [{**CASE["jobs"][0], "partitions": ["low"]}, {**CASE["jobs"][1], "partitions": ["high"]}],
    }
    scenario = build_scenario(case)
    schedule = replay(scenario)
    assert (schedule.start // SECOND).tolist() == [0, 10]
    assert (schedule.end // SECOND).tolist() == [10, 40]
    table = JobsTableBuilder(*with_attempts(scenario, schedule)).rows()
    assert table["final_state"].tolist() == ["COMPLETED_KILLED", "COMPLETED_WALLTIME_REACHED"]
    assert cut_short(scenario, schedule)["runs.cancelled"] == 1


def test_failures_are_drawn_for_each_node_by_the_seed() -> None:
    failing = Failures(mean_time_between=30, repair_time=7, seed=3)
    one, two = (with_cluster(CASE, failures=failing) for _ in range(2))
    other = with_cluster(CASE, failures=replace(failing, seed=4))
    events, again, others = (
        s.cluster.calendar.events for s in (one, two, other) if s.cluster and s.cluster.calendar
    )
    assert events.tolist() == again.tolist() != others.tolist()
    assert (np.diff(events.time) >= 0).all()
    for node in range(2):
        mine = events[[one.cluster.calendar.static["event_nodes"][k] == node for k in events["first"]]]  # type: ignore[union-attr]
        assert mine.kind.tolist() == [NODES_DOWN, NODES_UP] * (len(mine) // 2)
        assert (mine.time[1::2] - mine.time[::2]).tolist() == [7 * SECOND] * (len(mine) // 2)
        assert mine.time[::2].max() <= 110 * SECOND  # the last submission, and the longest request


def test_sequences_have_the_calendar_of_the_log() -> None:
    jobs = [*CASE["jobs"], {**CASE["jobs"][1], "submit": 500}]
    scenario = build_scenario(
        {**CASE, "jobs": jobs, "calendar": [{"time": 300, "nodes": [0], "state": "down"}]}
    )
    alone = replay_sequences(scenario, np.array([2]), 1)[0]
    assert (alone.start // SECOND).tolist() == [500]
    assert replay(scenario).allocation.node_indices(None, np.zeros(3), None, None)[2].tolist() == [1]  # type: ignore


def test_licences_change_in_time() -> None:
    jobs = [{**job, "nodes": 1, "licences": {"matlab": 1}} for job in CASE["jobs"]]
    scenario = with_cluster(
        {**CASE, "jobs": jobs},
        licenses=(License(name="matlab", count=1),),
        calendar=(CalendarEvent(time=25, event="licenses", license="matlab", value=2),),
    )
    assert (replay(scenario).start // SECOND).tolist() == [0, 25]


@pytest.mark.parametrize(
    ("limits", "name", "values"),
    [
        ({"grp_jobs": 1}, "grp_jobs", (1, 2)),
        ({"max_jobs_per_user": 1}, "max_jobs_per_user", (1, -1)),
        ({"grp_tres": {"cores": 4}}, "grp_tres.cores", (4, 8)),
    ],
)
def test_limits_change_in_time(limits: dict[str, Any], name: str, values: tuple[int, int]) -> None:
    jobs = [{**job, "nodes": 1, "qos": "q"} for job in CASE["jobs"]]
    events = [
        CalendarEvent(time=time, event="limit", qos="q", limit=name, value=value)
        for time, value in zip((15, 25), values, strict=True)
    ]
    scenario = with_cluster({**CASE, "jobs": jobs}, qos=(Qos(name="q", **limits),), calendar=tuple(events))
    assert (replay(scenario).start // SECOND).tolist() == [0, 25]


def test_what_is_not_honoured_is_refused() -> None:
    limit = CalendarEvent(time=1, event="limit", partition="p", limit="max_time", value=1)
    with pytest.raises(BridgeError, match=r"max_time of .* cannot change: it is not stated"):
        with_cluster(CASE, calendar=(limit,))
    wall = CalendarEvent(time=1, event="limit", qos="q", limit="max_wall", value=1)
    with pytest.raises(BridgeError, match="max_wall of qos q cannot change"):
        with_cluster(CASE, calendar=(wall,), qos=(Qos(name="q", max_wall=9),))
    gone = CalendarEvent(time=1, event="partition_state", partition="q", state="down")
    with pytest.raises(BridgeError, match="no partition 'q'"):
        with_cluster(CASE, calendar=(gone,))
    jobs = [{**CASE["jobs"][0], "reservation": "r"}]
    with pytest.raises(BridgeError, match="reservation 'r'"):
        with_cluster({**CASE, "jobs": jobs})


def test_whom_a_grace_was_for_may_be_gone() -> None:
    case = {
        **CASE,
        "partitions": {
            "low": {"nodes": [0, 1], "exclusive": True, "preempt": "requeue", "tier": 1, "grace": 20},
            "high": {"nodes": [0, 1], "exclusive": True, "tier": 2},
        },
        "jobs": [{**CASE["jobs"][0], "partitions": ["low"]}, {**CASE["jobs"][1], "partitions": ["high"]}],
        "calendar": [{"time": 20, "cancel": 1}],
    }
    # job 1 is in grace from 10 to 30, job 2 is cancelled at 20: job 1 starts again
    assert replay_case(case) == [(0, 30, 130, [0, 1]), (10, None, None, [])]
