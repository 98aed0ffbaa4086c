"""The brute force on clusters: conservative, calendars, reservations, preemption; answers by hand."""

from collections.abc import Mapping
from typing import Any

import pytest
from cluster_micro_cases import job, shared, takes, whole
from cluster_reference.scheduler import simulate

#: Job, start, end, nodes, how it ended.
Life = tuple[int, int, int, list[int], str]
LOW = {"nodes": [0], "tier": 0}
DOWN = {"time": 4, "nodes": [0], "state": "down"}
UP = {"time": 6, "nodes": [0], "state": "up"}


def tiers(*, exclusive: bool = True, **preempt: Any) -> dict[str, Any]:
    """Return two partitions of one node, of which `high` preempts."""
    kind = {"exclusive": True} if exclusive else {}
    return {"low": {**LOW, **kind, **preempt}, "high": {**LOW, **kind, "tier": 1}}


def two(run: int = 10, **preempt: Any) -> dict[str, Any]:
    """Return a job of the low partition, and from 3 on one of the high one for five seconds."""
    jobs = [job(partitions=["low"], run=run), job(3, partitions=["high"], run=5)]
    return whole(1, jobs) | {"partitions": tiers(**preempt)}


def two_that_share(memory: int) -> dict[str, Any]:
    """Return a job that is suspended at 3 for one of the high partition, which runs for five seconds."""
    low = takes(cores=4, memory=4) | {"partitions": ["low"]}
    high = takes(submit=3, cores=4, memory=memory, run=5) | {"partitions": ["high"]}
    return shared([{"cores": 4, "memory": 8}], [low, high]) | {
        "partitions": tiers(exclusive=False, preempt="suspend")
    }


CASES: dict[str, tuple[Mapping[str, Any], list[Life]]] = {
    # job 1 is booked for [10, 20) on all nodes: jobs 3 and 4 would run into it
    "conservative": (
        whole(
            4,
            [job(nodes=3), job(1, nodes=4), job(2, run=5), job(3, run=20), job(4)],
            backfill="conservative",
        ),
        [
            *[(0, 0, 10, [0, 1, 2], "COMPLETED"), (2, 2, 7, [3], "COMPLETED")],
            *[(1, 10, 20, [0, 1, 2, 3], "COMPLETED"), (3, 20, 40, [0], "COMPLETED")],
            (4, 20, 30, [1], "COMPLETED"),
        ],
    ),
    "a node drains and returns": (
        whole(
            1,
            [job(), job(1)],
            calendar=[{"time": 5, "nodes": [0], "state": "drain"}, {"time": 20, "nodes": [0], "state": "up"}],
        ),
        [(0, 0, 10, [0], "COMPLETED"), (1, 20, 30, [0], "COMPLETED")],
    ),
    "a node goes down: its job runs again from the beginning": (
        whole(1, [job()], calendar=[DOWN, UP]),
        [(0, 0, 4, [0], "REQUEUED"), (0, 6, 16, [0], "COMPLETED")],
    ),
    "a requeue delay": (
        whole(1, [job()], calendar=[DOWN, UP], requeue_delay=10),
        [(0, 0, 4, [0], "REQUEUED"), (0, 14, 24, [0], "COMPLETED")],
    ),
    "a job that may not be requeued": (
        whole(1, [job(requeue=False), job(1)], calendar=[DOWN, UP]),
        [(0, 0, 4, [0], "NODE_FAIL"), (1, 6, 16, [0], "COMPLETED")],
    ),
    # job 0 would run into the reservation; job 1 has node 0 meanwhile; job 2 is the reservation's
    "a reservation": (
        whole(
            2,
            [job(0, reservation="r"), job(12, nodes=2), job(13, run=8)],
            calendar=[{"reservation": "r", "nodes": [1], "begin": 20, "end": 30}],
        ),
        [
            *[(2, 13, 21, [0], "COMPLETED"), (0, 20, 30, [1], "COMPLETED")],
            (1, 30, 40, [0, 1], "COMPLETED"),
        ],
    ),
    "a reservation that is announced too late": (
        whole(
            1,
            [job(12), job(13)],
            calendar=[{"reservation": "r", "nodes": [0], "begin": 20, "end": 40, "announced": 15}],
        ),
        [(0, 12, 22, [0], "COMPLETED"), (1, 40, 50, [0], "COMPLETED")],
    ),
    "preempted and requeued": (
        two(preempt="requeue"),
        [(0, 0, 3, [0], "PREEMPTED_REQUEUED"), (1, 3, 8, [0], "COMPLETED"), (0, 8, 18, [0], "COMPLETED")],
    ),
    "preempted and cancelled": (
        two(preempt="cancel"),
        [(0, 0, 3, [0], "PREEMPTED"), (1, 3, 8, [0], "COMPLETED")],
    ),
    "not preempted": (two(), [(0, 0, 10, [0], "COMPLETED"), (1, 10, 15, [0], "COMPLETED")]),
    "preempted after a grace": (
        two(preempt="requeue", grace=2),
        [(0, 0, 5, [0], "PREEMPTED_REQUEUED"), (1, 5, 10, [0], "COMPLETED"), (0, 10, 20, [0], "COMPLETED")],
    ),
    "it ends within its grace": (
        two(4, preempt="requeue", grace=2),
        [(0, 0, 4, [0], "COMPLETED"), (1, 4, 9, [0], "COMPLETED")],
    ),
    "suspended, and its clocks stand": (
        two_that_share(memory=4),
        [(0, 0, 15, [0], "COMPLETED"), (1, 3, 8, [0], "COMPLETED")],
    ),
    # memory stays with the suspended job, and the other needs more than is left
    "suspension does not free memory": (
        two_that_share(memory=5),
        [(0, 0, 10, [0], "COMPLETED"), (1, 10, 15, [0], "COMPLETED")],
    ),
    # of three victims the latest starts go first, and one is enough
    "only as many victims as needed": (
        whole(
            3,
            [
                *[job(start, partitions=["low"], run=20) for start in (0, 1, 2)],
                job(3, partitions=["high"], run=5),
            ],
        )
        | {
            "partitions": {
                "low": {"nodes": [0, 1, 2], "exclusive": True, "preempt": "cancel"},
                "high": {"nodes": [0, 1, 2], "exclusive": True, "tier": 1},
            }
        },
        [
            *[(0, 0, 20, [0], "COMPLETED"), (1, 1, 21, [1], "COMPLETED")],
            *[(2, 2, 3, [2], "PREEMPTED"), (3, 3, 8, [2], "COMPLETED")],
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_lives_by_hand(name: str) -> None:
    case, expected = CASES[name]
    lives = simulate(case)["lives"]
    assert [tuple(life[k] for k in ("job", "start", "end", "nodes", "outcome")) for life in lives] == expected


def test_accounting_of_two_lives() -> None:
    """A victim that runs 10 s after 3 s in vain and 5 s of waiting."""
    victim, winner = simulate(two(preempt="requeue"))["jobs"]
    names = ("wait", "hold", "turnaround", "bounded_slowdown")
    assert [victim[name] for name in names] == [8, 0, 18, 1.8]
    assert [winner[name] for name in names] == [0, 0, 5, 1.0]


def test_a_begin_time_is_hold_and_not_wait() -> None:
    late = simulate(whole(1, [job(begin=30)]))["jobs"][0]
    assert [late[name] for name in ("eligible", "wait", "hold", "turnaround")] == [30, 0, 30, 40]
