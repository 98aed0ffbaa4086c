"""The scheduler of a live machine: events in, starts out."""

import pytest
from small_policies import rule

from bridge.base.errors import BridgeError
from bridge.worlds.slurm.live_scheduler import LiveEvent, LiveScheduler


def wait(job: str, time: float, nodes: int, length: float, submit: float | None = None) -> LiveEvent:
    since = time if submit is None else submit
    return LiveEvent(
        "wait", time, job, {"id": int(job), "nodes": nodes, "length": length, "submit": since, "user": ""}
    )


def test_easy_backfills_behind_a_reservation() -> None:
    book = LiveScheduler(4, rule("fcfs"), 0.0)
    for event in (wait("1", 1, 3, 100), wait("2", 2, 4, 50), wait("3", 3, 1, 90), wait("4", 3, 1, 200)):
        book.apply_event(event)
    assert book.decide(3) == ["1", "3"]  # 4 would delay 2, which starts at 103 at the latest
    book.apply_event(LiveEvent("end", 50, "1"))
    assert book.decide(50) == []
    book.apply_event(LiveEvent("end", 60, "3"))
    assert book.decide(60) == ["2"]
    book.apply_event(LiveEvent("end", 70, "2"))
    assert book.decide(70) == ["4"]
    assert book.decided == 4


def test_a_job_that_waited_before_the_agent_came_keeps_its_place() -> None:
    book = LiveScheduler(2, rule("fcfs"), 0.0)
    book.apply_event(wait("1", 10, 2, 50, submit=8))
    book.apply_event(wait("2", 10, 2, 50, submit=5))
    assert book.decide(10) == ["2"]


def test_running_jobs_are_taken_over_with_their_start() -> None:
    book = LiveScheduler(4, rule("fcfs"), 0.0)
    book.apply_event(wait("1", 100, 3, 100, submit=0))
    book.apply_event(LiveEvent("run", 100, "1", {"start": 50}))
    book.apply_event(wait("2", 100, 4, 10))
    book.apply_event(wait("3", 100, 1, 50))
    book.apply_event(wait("4", 100, 1, 51))
    assert book.decide(100) == ["3"]  # until 150, when the running job is believed to end


def test_a_start_that_did_not_come_true_is_decided_again() -> None:
    book = LiveScheduler(4, rule("sjf"), 0.0)
    book.apply_event(wait("1", 1, 4, 10))
    assert book.decide(1) == ["1"]
    book.apply_event(LiveEvent("back", 3, "1"))
    assert book.decide(3) == ["1"]
    book.apply_event(LiveEvent("back", 5, "1"))
    book.apply_event(LiveEvent("gone", 5, "1"))
    assert "1" not in book
    book.apply_event(wait("1", 9, 4, 10, submit=1))
    assert book.decide(9) == ["1"]


def test_nodes_out_of_service_are_not_used() -> None:
    book = LiveScheduler(4, rule("fcfs"), 0.0)
    book.apply_event(LiveEvent("out", 1, details={"nodes": 2}))
    book.apply_event(wait("1", 1, 3, 10))
    book.apply_event(wait("2", 1, 2, 10))
    assert book.decide(1) == ["2"]
    book.apply_event(LiveEvent("out", 2, details={"nodes": 0}))
    assert book.decide(2) == []
    book.apply_event(LiveEvent("end", 3, "2"))
    assert book.decide(3) == ["1"]


@pytest.mark.parametrize(
    ("event", "what"),
    [
        (LiveEvent("end", 2, "1"), "has not been started"),
        (LiveEvent("gone", 2, "9"), "is not known"),
        (wait("1", 2, 1, 1), "is known already"),
        (LiveEvent("dance", 2, "1"), "is no event"),
    ],
)
def test_events_that_contradict_what_is_known(event: LiveEvent, what: str) -> None:
    book = LiveScheduler(4, rule("fcfs"), 0.0)
    book.apply_event(wait("1", 1, 1, 1))
    with pytest.raises(BridgeError, match=what):
        book.apply_event(event)


def test_it_warms_up() -> None:
    LiveScheduler.warm_up(rule("saf", "conservative"))
