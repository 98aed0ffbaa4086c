"""Holes and bookings of the availability profile, by brute force over every instant."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.base.arrays import Array
from bridge.base.jit import kernel
from bridge.scheduler import state as scheduler_state
from bridge.scheduler.profile import GIVE, TAKE, book, change_at, first_hole
from bridge.scheduler.state import NEVER, State

HORIZON = 400


@kernel
def _book_first_hole(state: State, steps: int, demand: Array, length: int) -> tuple[int, int]:
    hole = first_hole(state.p_time, state.p_free, steps, demand, length, 0, NEVER)
    if hole < 0:
        return -1, steps
    time = state.p_time[hole]
    return time, book(state.p_time, state.p_free, steps, demand, hole, length)


def empty_profile(now: int, free: list[int], jobs: int = 100) -> State:
    state = scheduler_state.allocate(1, jobs, len(free))
    state.p_time[0] = now
    state.p_free[:, 0] = free
    return state


@pytest.mark.parametrize("resources", [1, 3])
@pytest.mark.parametrize("seed", range(5))
def test_every_booking_takes_the_first_hole(seed: int, resources: int) -> None:
    rng = np.random.default_rng(seed)
    capacity = rng.integers(3, 9, resources)
    state = empty_profile(0, list(capacity))
    free = np.tile(capacity, (HORIZON, 1))  # at each instant
    steps = 1
    for _ in range(60):
        demand = np.array(
            [rng.integers(r > 0, c + 1) for r, c in zip(range(resources), capacity, strict=True)]
        )
        demand[0] = max(demand[0], 1)
        length = int(rng.integers(1, 9))
        time, steps = _book_first_hole(state, steps, demand, length)
        expected = next(t for t in range(HORIZON) if np.all(free[t : t + length] >= demand))
        assert time == expected
        free[time : time + length] -= demand
        assert np.all(np.diff(state.p_time[:steps]) > 0)
        for k in range(steps):
            assert np.all(state.p_free[:, k] == free[state.p_time[k]])


def test_a_demand_beyond_what_will_ever_be_free_has_no_hole() -> None:
    state = empty_profile(5, [3])
    assert _book_first_hole(state, 1, np.array([4]), 10) == (-1, 1)


def test_a_booking_that_ends_where_a_step_is_adds_no_step() -> None:
    state = empty_profile(0, [4])
    assert _book_first_hole(state, 1, np.array([3]), 10) == (0, 2)
    assert _book_first_hole(state, 2, np.array([1]), 10) == (0, 2)
    assert _book_first_hole(state, 2, np.array([1]), 5) == (10, 3)
    assert list(state.p_time[:3]) == [0, 10, 15]
    assert list(state.p_free[0, :3]) == [0, 3, 4]


@kernel
def _change(state: State, steps: int, time: int, until: int, amounts: Array, sign: np.int64) -> int:
    return change_at(state.p_time, state.p_free, steps, time, until, amounts, sign)


amounts = st.tuples(st.integers(1, 3), st.integers(0, 2))
spans = st.tuples(st.integers(0, 30), st.integers(1, 15), amounts)


@given(st.lists(st.tuples(spans, st.integers(0, 20)), min_size=1, max_size=40))
def test_a_profile_is_what_is_free_at_every_instant(
    drawn: list[tuple[tuple[int, int, tuple[int, int]], int]],
) -> None:
    """Amounts are taken and, in any order, given back: in steps that differ from one to the next."""
    state, steps = empty_profile(0, [9, 9]), 1
    free = np.full((HORIZON, 2), 9)
    taken: list[tuple[int, int, tuple[int, int]]] = []
    for span, which in drawn:
        gives = which < len(taken)
        begin, length, amount = taken.pop(which) if gives else span
        if not gives:
            taken.append(span)
        sign = GIVE if gives else TAKE
        free[begin : begin + length] += sign * np.array(amount)
        steps = _change(state, steps, begin, begin + length, np.array(amount), sign)
        assert list(state.p_time[:steps]) == [0, *(np.flatnonzero(np.any(np.diff(free, axis=0), axis=1)) + 1)]
        for k in range(steps):
            assert list(state.p_free[:, k]) == list(free[state.p_time[k]])


def test_amounts_given_back_for_ever_reach_every_later_step() -> None:
    state = empty_profile(0, [4])
    steps = _change(state, 1, 5, 9, np.array([3]), TAKE)
    steps = _change(state, steps, 7, NEVER, np.array([2]), GIVE)
    assert list(state.p_time[:steps]) == [0, 5, 7, 9]
    assert list(state.p_free[0, :steps]) == [4, 1, 3, 6]
