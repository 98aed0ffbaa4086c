"""Forks: a state played forward is what a replay of the same jobs does, start for start."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_jobs import make_jobs, prepared

from bridge.forecasting.fork import Fork
from bridge.forecasting.timeline import Timeline
from bridge.scheduler.protocol import Policy
from bridge.scheduler.state import NEVER, SECOND
from bridge.worlds.fast.replay import replay

# Four nodes. 1 runs on three until 100, believed until 200; 2 waits for all; 3 may be backfilled, 4 not.
ROWS = [(0, 100, 200, 3), (10, 50, 60, 4), (20, 30, 40, 1), (20, 400, 500, 1)]


def test_a_state_at_a_time_is_what_runs_and_what_waits() -> None:
    work = prepared(make_jobs(ROWS, [4]), Policy("fcfs", "easy"))
    state = Timeline(work, replay(work)).state(30 * SECOND)[0]
    assert (state.id, state.n_running) == (("1", "3", "2", "4"), 2)
    assert [*state.free] == [0]
    assert [*state.elapsed] == [30 * SECOND, 10 * SECOND, 0, 0]
    assert [*state.waiting] == [2, 3]


def test_futures_by_hand() -> None:
    work = prepared(make_jobs(ROWS, [4]), Policy("fcfs", "easy"))
    state = Timeline(work, replay(work)).state(30 * SECOND)[0]
    runs = np.array([[100, 30, 50, 400], [100, 30, 10, 400], [35, 90, 10, 400]]) * SECOND
    starts = Fork(state).simulate_futures(runs) / SECOND
    # 3 ends at 50 and 4 would delay 2, which has all nodes when 1 ends; in the last future 3 ends last.
    assert starts[:, 2].tolist() == [100, 100, 110]
    assert starts[:, 3].tolist() == [150, 110, 120]
    assert starts[0, :2].tolist() == [NEVER / SECOND] * 2


def test_other_orders_decide_at_once() -> None:
    work = prepared(make_jobs(ROWS, [4]), Policy("fcfs", "none"))
    state = Timeline(work, replay(work)).state(30 * SECOND)[0]
    runs = np.array([[100, 50, 30, 400]]) * SECOND
    assert (Fork(state).simulate_futures(runs) / SECOND)[0, 1:].tolist() == [100, 150, 150]
    assert (Fork(state, "fcfs+easy").simulate_futures(runs) / SECOND)[0, 1:].tolist() == [100, 30, 150]
    assert (Fork(state, "sjf+easy").simulate_futures(runs) / SECOND)[0, 1:].tolist() == [100, 30, 150]


def test_a_future_ends_when_the_wanted_jobs_have_started() -> None:
    work = prepared(make_jobs(ROWS, [4]), Policy("fcfs", "easy"))
    state = Timeline(work, replay(work)).state(30 * SECOND)[0]
    runs = np.array([[100, 30, 50, 400]]) * SECOND
    starts = Fork(state).simulate_futures(runs, np.array([2]))
    assert starts[0, 2] == 100 * SECOND
    assert starts[0, 3] == NEVER


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[tuple[int, ...]], int]:
    """Draw rows, and a time at which some of their jobs may run or wait."""
    row = st.tuples(st.integers(0, 60), st.integers(1, 40), st.integers(1, 60), st.integers(1, 4))
    rows = draw(st.lists(row, min_size=1, max_size=30))
    rows = sorted((s, min(run, asked), asked, n) for s, run, asked, n in rows)
    return rows, draw(st.integers(0, 120))


@pytest.mark.parametrize("policy", ["fcfs+easy", "sjf+easy", "wfp3+easy", "saf+none", "fcfs+conservative"])
@given(drawn=tables())
def test_a_future_of_the_true_run_times_is_the_replay(policy: str, drawn: tuple[list, int]) -> None:
    rows, second = drawn
    rows = [row for row in rows if row[0] <= second]
    if not rows:
        return
    order, _, backfill = policy.partition("+")
    work = prepared(make_jobs(rows, [4]), Policy(order, backfill))
    schedule = replay(work)
    state, which = Timeline(work, schedule).state(second * SECOND)
    starts = Fork(state).simulate_futures(work.jobs.run[which][None].repeat(3, 0))
    for one in starts:
        assert one[state.waiting].tolist() == schedule.start[which][state.waiting].tolist()
