"""Jobs that follow others: starts by hand, and against an independent simulator on random small logs."""

import bisect
from dataclasses import replace

import numpy as np
import pytest
import reference
from small_jobs import Row, make_jobs, prepared, reference_jobs

from bridge.scheduler.protocol import Policy
from bridge.scheduler.state import SECOND
from bridge.workload.select import Jobs
from bridge.worlds.fast.jobs_table import JobsTableBuilder
from bridge.worlds.fast.replay import Schedule, replay, replay_sequences


def following(rows: list[Row], nodes: int, follows: list[int], think: list[float]) -> Jobs:
    """Return jobs of which some follow others, by their places; think times in seconds, -1 = unknown."""
    times = np.array([-1 if t < 0 else round(t * SECOND) for t in think], np.int64)
    return replace(make_jobs(rows, [nodes]), follows=np.array(follows, np.int64), think=times)


def seconds(schedule: Schedule) -> tuple[list[float], list[float]]:
    return (schedule.submit / SECOND).tolist(), (schedule.start / SECOND).tolist()


# submit, run, request, nodes; whom it follows; think time; when it arrives; when it starts
CASES = {
    "a chain, each a think time after the other's end": (
        [(0, 10, 10, 4), (1, 5, 5, 4), (2, 3, 3, 4)], [-1, 0, 1], [-1, 2, 7], [0, 12, 24], [0, 12, 24],
    ),
    "no think time is none: in the pass that the end makes, before whoever comes later": (
        [(0, 10, 10, 4), (10, 5, 5, 4), (3, 3, 3, 4)], [-1, -1, 0], [-1, -1, 0], [0, 10, 10], [0, 10, 15],
    ),
    "an unknown one: as logged, but not before the end": (
        [(0, 10, 10, 4), (3, 5, 5, 4), (40, 3, 3, 4)], [-1, 0, 0], [-1, -1, -1], [0, 10, 40], [0, 10, 40],
    ),
    "earlier than logged, if the leader ended earlier": (
        [(0, 10, 10, 4), (500, 5, 5, 4)], [-1, 0], [-1, 1], [0, 11], [0, 11],
    ),
    "the leader is later in the log": (
        [(0, 5, 5, 4), (4, 10, 10, 4)], [1, -1], [3, -1], [17, 4], [17, 4],
    ),
    "two follow one, in the order of the log": (
        [(0, 10, 10, 4), (1, 5, 5, 4), (2, 3, 3, 4)], [-1, 0, 0], [-1, 1, 1], [0, 11, 11], [0, 11, 16],
    ),
    "the leader waits, and so does who follows": (
        [(0, 20, 20, 4), (1, 10, 10, 4), (2, 5, 5, 1)], [-1, -1, 1], [-1, -1, 5], [0, 1, 35], [0, 20, 35],
    ),
    "one that takes no time": (
        [(0, 0, 5, 4), (1, 5, 5, 4), (2, 2, 2, 4)], [-1, 0, 1], [-1, 0, 0], [0, 0, 5], [0, 0, 5],
    ),
    "others are backfilled meanwhile": (
        [(0, 10, 10, 3), (1, 10, 10, 4), (2, 8, 8, 1), (3, 4, 4, 1)],
        [-1, -1, -1, 2], [-1, -1, -1, 0], [0, 1, 2, 10], [0, 10, 2, 20],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_starts_by_hand(case: str) -> None:
    rows, follows, think, arrive, start = CASES[case]
    jobs = following([*rows], 4, follows, [*think])
    assert seconds(replay(prepared(jobs, Policy()))) == (arrive, start)


def test_waits_count_from_the_arrival() -> None:
    rows, follows, think, *_ = CASES["two follow one, in the order of the log"]
    p = prepared(following([*rows], 4, follows, [*think]), Policy())
    table = JobsTableBuilder(p, replay(p)).rows()
    assert table["submission_time"].tolist() == [0, 11, 11]
    assert table["waiting_time"].tolist() == [0, 0, 5]
    assert table["turnaround_time"].tolist() == [10, 5, 8]


def test_in_a_sequence_who_is_outside_has_ended() -> None:
    rows: list[Row] = [(0, 10, 10, 4), (1, 5, 5, 4), (2, 3, 3, 4), (30, 3, 3, 4)]
    p = prepared(following(rows, 4, [-1, 0, 1, 0], [-1, 2, 7, 1]), Policy())
    whole, tail = replay_sequences(p, np.array([0, 1]), 3)
    assert seconds(whole) == ([0, 12, 24], [0, 12, 24])
    assert seconds(tail) == ([1, 13, 30], [1, 13, 30])


def test_a_part_of_the_jobs_follows_who_is_left() -> None:
    jobs = following([(0, 1, 1, 1)] * 4, 4, [-1, 0, 1, 1], [-1, 2, 7, 1])
    left = jobs.take(np.array([1, 3]))
    assert left.follows is not None
    assert left.think is not None
    assert left.follows.tolist() == [-1, 0]
    assert left.think.tolist() == [2 * SECOND, SECOND]


class FollowingCluster(reference.Cluster):
    """The plain-Python machine, whose followers arrive after the ends of their leaders."""

    followers: dict[int, list[tuple[int, reference.Job]]]
    submitted = 0

    def start(self, job: reference.Job) -> None:
        super().start(job)
        for think, other in self.followers.get(id(job), []):
            other.submit = job.end + think if think >= 0 else max(job.end, other.submit)
            bisect.insort(self.arrivals, other, key=lambda j: (-j.submit, -j.index))

    def submit_next(self) -> None:
        super().submit_next()
        self.waiting[-1].index = 1000 + self.submitted  # equal scores go in the order of arrivals
        self.submitted += 1


@pytest.mark.parametrize("order", ["fcfs", "sjf", "saf", "wfp3", "slurm"])
@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
def test_random_small_logs(order: str, backfill: str) -> None:
    for seed in range(40):
        rng = np.random.default_rng([seed, 35])
        n = int(rng.integers(2, 30))
        run = rng.integers(0, 8, n)
        columns = np.sort(rng.integers(0, 40, n)), run, run + rng.integers(1, 6, n), rng.integers(1, 5, n)
        rank, follows = rng.permutation(n), np.full(n, -1)  # leaders have a lower rank: no circles
        for job in range(n):
            lower = np.flatnonzero(rank < rank[job])
            if len(lower) and rng.random() < 0.6:
                follows[job] = rng.choice(lower)
        think = rng.integers(-1, 5, n)
        rows: list[Row] = np.column_stack(columns).tolist()
        p = prepared(following(rows, 4, follows.tolist(), think.tolist()), Policy(order, backfill))
        found = replay(p)
        jobs = reference_jobs(p)
        free = [job for job in jobs if follows[job.index] < 0]
        cluster = FollowingCluster([4], free, [float(s) for s in p.share])
        cluster.longest = max(job.length for job in jobs) / SECOND
        cluster.followers = {}
        for job in range(n):
            if follows[job] >= 0:
                late = int(think[job]) * SECOND if think[job] >= 0 else -1
                cluster.followers.setdefault(id(jobs[follows[job]]), []).append((late, jobs[job]))
        reference.standard(cluster, reference.ORDERS[order], backfill)
        names = ("submit", "start", "end", *(["reserved"] if backfill == "easy" else []))
        expected = [[getattr(job, name) for job in jobs] for name in names]
        assert [getattr(found, name).tolist() for name in names] == expected, (seed, rows, follows, think)
