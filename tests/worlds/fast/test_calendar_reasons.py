"""Why jobs wait where a calendar changes things: answers by hand."""

from collections.abc import Mapping
from typing import Any

import pytest
from cluster_micro_cases import job, whole
from cluster_on_bridge import build_scenario

from bridge.worlds.fast.attempts import with_attempts
from bridge.worlds.fast.calendar_reasons import overlay, spans_of
from bridge.worlds.fast.jobs_table import JobsTableBuilder
from bridge.worlds.fast.replay import replay

#: Compiled for a minute; as plain Python in test_cluster_in_time.py.
ON_A_CLUSTER = pytest.mark.slow

OWN = [{"reservation": "r", "nodes": [0], "begin": 20, "end": 60, "users": ["ann"]}]
ACCOUNTS = {"root": {}, "a": {"parent": "root"}, "below": {"parent": "a"}, "b": {"parent": "root"}}
DOWN = {"time": 5, "set": {"partitions": {"work": {"state": "down"}}}}
UP = {"time": 25, "set": {"partitions": {"work": {"state": "up"}}}}
CASES: dict[str, tuple[Mapping[str, Any], dict[str, str]]] = {
    "a reservation that has not begun": (
        whole(1, [job(reservation="r", user="ann"), job(3, run=8)], calendar=OWN),
        {"1": "0 Reservation"},
    ),
    "a reservation of others": (
        whole(1, [job(reservation="r", user="bob")], calendar=OWN),
        {"1": "0 ReservationNotAllowed"},
    ),
    "a partition that is down for a time": (
        whole(1, [job(7), job(30)], calendar=[DOWN, UP]),
        {"1": "7 PartitionDown", "2": "30 Resources"},
    ),
    "a hold, a release, and a begin time": (
        whole(
            1,
            [job(begin=12), job(1, run=40)],
            calendar=[{"time": 3, "hold": 0}, {"time": 9, "release": 0}],
        ),
        {"1": "0 BeginTime; 3 JobHeldUser; 9 BeginTime; 12 Resources"},
    ),
    "held while it waits for nodes, and cancelled": (
        whole(
            1,
            [job(run=50), job(1), job(2)],
            calendar=[{"time": 4, "hold": 1}, {"time": 30, "cancel": 1}],
        ),
        {"2": "1 Resources; 4 JobHeldUser; 30 Cancelled"},
    ),
}


@ON_A_CLUSTER
@pytest.mark.parametrize("name", CASES)
def test_histories_by_hand(name: str) -> None:
    case, histories = CASES[name]
    scenario = build_scenario(case)
    table = JobsTableBuilder(*with_attempts(scenario, replay(scenario))).rows()
    reasons = dict(zip(table["job_id"], table["reasons"], strict=True))
    assert {job_id: reasons[job_id] for job_id in histories} == histories


@ON_A_CLUSTER
def test_a_reservation_is_for_its_users_and_accounts_alone() -> None:
    """A job must be of both where both are named; accounts below count; the notes tell of the refused."""
    people = (("ann", "a"), ("bob", "a"), ("ann", "b"), ("ann", "below"))
    jobs = [job(user=user, account=account, reservation="r") for user, account in people]
    case = whole(2, jobs, accounts=ACCOUNTS, calendar=[{**OWN[0], "accounts": ["a"]}])
    scenario = build_scenario(case)
    assert scenario.cluster is not None
    assert scenario.cluster.notes["name a reservation of other users or accounts: refused"] == 2
    assert (replay(scenario).start // 1_000_000).tolist() == [20, -1, -1, 30]


def test_spans() -> None:
    assert spans_of(False, [(3, True), (5, True), (7, False), (9, False)]) == [(3, 7)]
    assert spans_of(True, [(0, False), (4, True)])[0][0] == 4


def test_layers_over_a_history() -> None:
    assert [*overlay([(0, 1), (10, 2)], [((4, 6), 8), ((5, 12), 9)], 14)] == [
        *[(0, 1), (4, 8), (5, 8), (6, 9), (10, 9), (12, 2)]
    ]
