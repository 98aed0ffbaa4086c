"""Going on from a recorded state: by hand, and where no later job can matter, exactly as the whole replay."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_jobs import make_jobs, prepared

from bridge.scheduler.protocol import Policy
from bridge.scheduler.state import HOW_BACKFILLED, SECOND, STARTED_AS_HEAD
from bridge.worlds.fast.continued import continue_from_record
from bridge.worlds.fast.replay import replay

rows = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 30), st.integers(0, 20), st.integers(1, 4)),
    min_size=2,
    max_size=24,
)


def test_running_jobs_run_on_and_waiting_ones_stand_before_the_window() -> None:
    """At 10 job 0 runs until 25, since 5, and job 1 waits for it; the window is jobs 2 and 3."""
    jobs = make_jobs([(0, 20, 20, 3), (1, 10, 10, 4), (10, 5, 5, 1), (11, 20, 20, 1)], [4])
    scenario = prepared(jobs, Policy("fcfs", "easy"))
    start = np.array([5, 90, 90, 90], np.int64) * SECOND
    begun = continue_from_record(scenario, np.ones(4, np.bool_), start, np.array([2]), 2)
    assert (begun.start / SECOND).tolist() == [[10, 35]]  # 2 is backfilled, 3 would delay 1
    assert (begun.how.tolist(), begun.past.tolist()) == ([[HOW_BACKFILLED, STARTED_AS_HEAD]], [[1, -1]])
    assert begun.reserved.tolist() == [[-1, 35 * SECOND]]  # 1 runs from 25 to 35, on all of the machine


def test_more_may_run_than_there_is() -> None:
    jobs = make_jobs([(0, 20, 20, 3), (0, 10, 10, 3), (5, 5, 5, 1)], [4])
    scenario = prepared(jobs, Policy("fcfs", "easy"))
    begun = continue_from_record(scenario, np.ones(3, np.bool_), np.zeros(3, np.int64), np.array([2]), 1)
    assert (begun.start / SECOND).tolist() == [[10]]


@settings(deadline=None, max_examples=60)
@given(rows, st.integers(1, 5), st.sampled_from(["none", "conservative"]))
def test_it_goes_on_as_the_whole_replay_does(
    drawn: list[tuple[int, int, int, int]], length: int, backfill: str
) -> None:
    """First come, first served: later jobs never delay earlier ones, if requests are the run times."""
    slack = [row[2] if backfill == "none" else 0 for row in drawn]
    table = sorted((s, r, r + more, n) for (s, r, _, n), more in zip(drawn, slack, strict=True))
    jobs = make_jobs(table, [4])
    scenario = prepared(jobs, Policy("fcfs", backfill))
    start = replay(scenario).start
    firsts = np.arange(0, len(jobs) - length + 1, length)
    begun = continue_from_record(
        scenario, np.ones(len(jobs), np.bool_), start, firsts, min(length, len(jobs))
    )
    assert begun.start.ravel().tolist() == start[: begun.start.size].tolist()


@pytest.mark.parametrize("known", [True, False])
def test_jobs_of_unknown_start_are_not_there_before(known: bool) -> None:
    jobs = make_jobs([(0, 20, 20, 4), (1, 5, 5, 4)], [4])
    scenario = prepared(jobs, Policy("fcfs", "easy"))
    begun = continue_from_record(scenario, np.array([known, True]), np.array([0, 0]), np.array([1]), 1)
    assert (begun.start / SECOND).tolist() == [[20 if known else 1]]
