"""Beliefs of running jobs that change: starts by hand, and against an independent simulator of EASY."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_jobs import Row, make_jobs

from bridge.base.errors import BridgeError
from bridge.scheduler.state import SECOND
from bridge.workload.running_beliefs import RunningBeliefs, read_beliefs, write_beliefs
from bridge.workload.select import Jobs
from bridge.worlds.fast.replay import replay, replay_sequences
from bridge.worlds.fast.scheduler_config import SchedulerConfig

#: Of each job: seconds after its start, and how long it is believed to take from then on.
Lines = list[list[tuple[int, int]]]


def beliefs_of(lines: Lines) -> RunningBeliefs:
    first = np.append(0, np.cumsum([len(line) for line in lines]))
    flat = [pair for line in lines for pair in line]
    after, total = (np.array([pair[k] for pair in flat], np.int64) * SECOND for k in (0, 1))
    return RunningBeliefs(first, after, total)


def starts(jobs: Jobs, lines: Lines, folder: Path, **setup: str) -> list[float]:
    path = folder / "beliefs.parquet"
    write_beliefs(path, jobs.id.tolist(), beliefs_of(lines))
    prepared = SchedulerConfig(estimator=f"progress({path})", **setup).build_scenario(jobs)
    return (replay(prepared).start / SECOND).tolist()


class Easy:
    """FCFS + EASY, a pass an instant, in which beliefs change before the events of it."""

    def __init__(self, rows: list[Row], nodes: int, lines: Lines) -> None:
        self.rows, self.nodes, self.lines = rows, nodes, lines
        self.start, self.end, self.now = [-1.0] * len(rows), [-1.0] * len(rows), 0.0

    def believed(self, j: int) -> float:
        """Return what job j is believed to take by now; one that does not run: at its start."""
        age = self.now - self.start[j] if self.start[j] >= 0 else 0.0
        known = [total for after, total in self.lines[j] if after <= age]
        return float(known[-1] if known else self.rows[j][2])

    def running(self) -> list[int]:
        return [j for j in range(len(self.rows)) if self.start[j] >= 0 and self.end[j] > self.now]

    def free(self) -> float:
        return self.nodes - sum(self.rows[j][3] for j in self.running())

    def begin(self, j: int) -> None:
        self.start[j], self.end[j] = self.now, self.now + self.rows[j][1]

    def make_pass(self) -> None:
        rows = self.rows
        waiting = [j for j in range(len(rows)) if self.start[j] < 0 and rows[j][0] <= self.now]
        while waiting and rows[waiting[0]][3] <= self.free():
            self.begin(waiting.pop(0))
        if not waiting:
            return
        head, *others = waiting
        ends = [(max(self.start[j] + self.believed(j), self.now + 1), j) for j in self.running()]
        in_time = [
            (at, left)
            for at in sorted({at for at, _ in ends})
            if (left := self.free() + sum(rows[j][3] for end, j in ends if end <= at)) >= rows[head][3]
        ]
        shadow, left = in_time[0]
        extra = left - rows[head][3]
        for j in others:
            if rows[j][3] > self.free():
                continue
            if self.now + self.believed(j) <= shadow:
                self.begin(j)
            elif rows[j][3] <= extra:
                extra -= rows[j][3]
                self.begin(j)

    def starts(self) -> list[float]:
        while True:
            self.make_pass()
            coming = [float(row[0]) for row in self.rows if row[0] > self.now]
            coming += [end for end in self.end if end > self.now]
            if not coming:
                return self.start
            self.now = min(coming)


def easy(rows: list[Row], nodes: int, lines: Lines) -> list[float]:
    return Easy(rows, nodes, lines).starts()


def test_the_head_s_reservation_follows_what_running_jobs_are_believed_to_take(tmp_path: Path) -> None:
    """Believed to end at 10, the first job leaves the candidate no time; from 4 s on it is to take 100."""
    rows: list[Row] = [(0, 100, 100, 3), (1, 50, 50, 4), (5, 20, 30, 1)]  # submit, run, request, nodes
    jobs = make_jobs(rows, [4])
    assert starts(jobs, [[(0, 10)], [], []], tmp_path) == [0.0, 100.0, 150.0]
    assert starts(jobs, [[(0, 10), (4, 100)], [], []], tmp_path) == [0.0, 100.0, 5.0]
    assert starts(jobs, [[(0, 10), (6, 100)], [], []], tmp_path) == [0.0, 100.0, 150.0], "no pass of its own"


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_as_an_independent_simulator(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    nodes = data.draw(st.integers(2, 6))
    n = data.draw(st.integers(2, 9))
    rows: list[Row] = []
    lines: Lines = []
    submit = 0
    for _ in range(n):
        submit += data.draw(st.integers(0, 8))
        run = data.draw(st.integers(1, 30))
        rows.append((submit, run, run + data.draw(st.integers(0, 20)), data.draw(st.integers(1, nodes))))
        ages = sorted(data.draw(st.sets(st.integers(0, 30), max_size=3)))
        lines.append([(age, age + data.draw(st.integers(1, 40))) for age in ages])
    folder = tmp_path_factory.mktemp("beliefs")
    if not any(lines):
        lines[0] = [(0, rows[0][2])]
    assert starts(make_jobs(rows, [nodes]), lines, folder) == easy(rows, nodes, lines)


def test_many_running_jobs_of_one_end_are_listed_anew(tmp_path: Path) -> None:
    """More of them than a block holds; every belief changes at one instant, and then again."""
    rows: list[Row] = [(0, 40 + k % 7, 60, 1) for k in range(150)]
    rows += [(1, 10, 10, 150), (2, 5, 5, 1), (30, 5, 20, 1)]
    lines: Lines = [[(0, 60), (10, 50 + k % 3), (20, 45 + k % 5)] for k in range(150)] + [[], [], []]
    assert starts(make_jobs(rows, [151]), lines, tmp_path) == easy(rows, 151, lines)


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    jobs = make_jobs([(0, 10, 10, 1), (1, 10, 10, 1)], [1])
    lines: Lines = [[(0, 10)], []]
    with pytest.raises(BridgeError, match="keeps its bookings"):
        starts(jobs, lines, tmp_path, backfill="conservative")
    with pytest.raises(BridgeError, match="protocol 'cqsim' has one belief"):
        starts(jobs, lines, tmp_path, protocol="cqsim")
    prepared = SchedulerConfig(estimator=f"progress({tmp_path / 'beliefs.parquet'})").build_scenario(jobs)
    with pytest.raises(BridgeError, match="sampled sequences have one belief"):
        replay_sequences(prepared, np.zeros(1, np.int64), 1)


def test_a_file_of_beliefs(tmp_path: Path) -> None:
    path = tmp_path / "b.parquet"
    beliefs = beliefs_of([[(0, 5), (3, 9)], [], [(2, 4)]])
    write_beliefs(path, ["a", "b", "c"], replace(beliefs, synthetic=True))
    again = read_beliefs(path, ["c", "x", "a"])
    assert again.synthetic
    assert again.first.tolist() == [0, 1, 1, 3]
    assert (again.after // SECOND).tolist() == [2, 0, 3]
    assert (again.total // SECOND).tolist() == [4, 5, 9]
    assert (again.before_start(np.full(3, 7 * SECOND)) // SECOND).tolist() == [7, 7, 5]
    with pytest.raises(BridgeError, match="names none of the jobs"):
        read_beliefs(path, ["x"])
    with pytest.raises(BridgeError, match="cannot be read as Parquet"):
        read_beliefs(tmp_path / "none.parquet", ["a"])
    write_beliefs(path, ["a"], beliefs_of([[(3, 3)]]))
    with pytest.raises(BridgeError, match="job a: a total must lie behind"):
        read_beliefs(path, ["a"])
