"""The core driven from outside gives the schedules of the fast world."""

import heapq

import numpy as np
import pytest
from small_jobs import make_jobs, prepared, random_rows

from bridge.base.errors import BridgeError
from bridge.scheduler.core import DECLINE, NOTHING, PICK
from bridge.scheduler.protocol import Policy, protocol
from bridge.scheduler.session import JobEstimates, Session
from bridge.scheduler.state import NEVER, SECOND
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import replay


def drive(p: Scenario) -> list[int]:
    """Be a world, one message an instant: submit, finish, pass, collect the starts."""
    jobs, believed = p.jobs, p.estimate
    session = Session(
        [int(c) for c in jobs.capacity],
        p.compiled.policy,
        p.compiled.protocol,
        longest=believed.order.max() / SECOND,
        shares=[float(x) for x in p.share],
    )
    start = [-1] * len(jobs)
    completions: list[tuple[int, int]] = []
    arrived = 0
    while arrived < len(jobs) or completions:
        times = [c[0] for c in completions[:1]] + [int(t) for t in jobs.submit[arrived : arrived + 1]]
        session.now = min(times)
        while completions and completions[0][0] == session.now:
            session.finish(heapq.heappop(completions)[1])
        while arrived < len(jobs) and jobs.submit[arrived] == session.now:
            lengths = JobEstimates(
                int(believed.order[arrived]), int(believed.waiting[arrived]), int(believed.running[arrived])
            )
            user, partition = int(p.users[arrived]), float(p.partition[arrived])
            index = session.submit(
                int(jobs.id[arrived]),
                [int(d) for d in jobs.demand[arrived]],
                lengths,
                user=user,
                partition=partition,
            )
            assert index == arrived
            arrived += 1
        session.begin()
        assert session.advance() == NOTHING
        for j in session.starts():
            start[j] = session.now
            heapq.heappush(completions, (session.now + int(jobs.run[j]), j))
    return start


@pytest.mark.parametrize("backfill", ["easy", "conservative"])
@pytest.mark.parametrize("order", ["fcfs", "wfp3", "slurm"])
def test_an_outside_world_gets_the_fast_worlds_schedule(order: str, backfill: str) -> None:
    rng = np.random.default_rng(4)
    rows = random_rows(rng, 200, span=700, run=30, slack=9, nodes=9, more=5)
    users, queues = rng.integers(0, 4, 200).tolist(), rng.integers(0, 2, 200).tolist()
    jobs = make_jobs(rows, [10, 6], users=users, queues=queues)
    p = prepared(jobs, Policy(order, backfill))
    assert drive(p) == list(replay(p).start)


def test_memory_grows_with_the_jobs_in_the_middle_of_a_full_queue() -> None:
    n = 2500  # twice beyond the first 1024
    rows = [(i // 3, 2, 2, 1 + i % 5) for i in range(n)]
    p = prepared(make_jobs(rows, [5]), Policy("sjf"))
    assert drive(p) == list(replay(p).start)


def ready(**options: object) -> Session:
    return Session([4], Policy("fcfs", "easy", **options), protocol("standard"))  # type: ignore[arg-type]


def test_a_job_that_can_never_run_is_refused_by_name() -> None:
    with pytest.raises(
        BridgeError, match="job 77: can never run: it asks for 5 of resource 0, the machine has 4"
    ):
        ready().submit(77, [5], JobEstimates.same(SECOND))


def test_time_does_not_run_backwards() -> None:
    session = ready()
    session.now = 5 * SECOND
    with pytest.raises(BridgeError, match="time runs backwards: 4"):
        session.now = 4 * SECOND


def test_an_answer_must_be_among_the_candidates() -> None:
    session = ready(agent=frozenset({"pick"}))
    session.submit(1, [1], JobEstimates.same(SECOND))
    session.begin()
    assert session.advance() == PICK
    for wrong in (1, -2):
        with pytest.raises(BridgeError, match=f"answer {wrong} is not among 1 candidates"):
            session.answer(wrong)
    session.answer(0)
    assert session.advance() == NOTHING
    assert session.starts() == [0]
    assert session.starts() == []


def test_a_withdrawn_job_never_starts_and_its_lock_is_released() -> None:
    session = Session([4], Policy("fcfs", "easy"), protocol("schedgym"))
    for nodes in (4, 4, 1):
        session.submit(nodes, [nodes], JobEstimates.same(10 * SECOND))
    session.begin()
    session.advance()
    assert session.starts() == [0]
    session.now = 5 * SECOND
    session.withdraw(1)  # the locked head
    session.finish(0)
    session.begin()
    session.advance()
    assert session.starts() == [2]
    assert session.running() == [2]


def test_nodes_out_of_service_are_not_used() -> None:
    session = ready()
    session.set_out_of_service([3])
    session.submit(1, [2], JobEstimates.same(SECOND))
    session.submit(2, [1], JobEstimates.same(SECOND))
    session.begin()
    session.advance()
    assert session.starts() == [1]  # the head can never be promised a start, so nobody delays it
    session.set_out_of_service([0])
    session.begin()
    session.advance()
    assert session.starts() == [0]


def test_a_rejection_asks_to_be_woken() -> None:
    session = ready(agent=frozenset({"inspect"}), retry_after=600.0)
    session.now = 10 * SECOND
    session.submit(1, [2], JobEstimates.same(SECOND))
    session.begin()
    assert session.wake_at == NEVER
    session.advance()
    session.answer(DECLINE)
    session.advance()
    assert session.wake_at == 610 * SECOND
    session.begin()
    assert session.wake_at == NEVER
