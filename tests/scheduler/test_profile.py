"""Holes and bookings of the availability profile, by brute force over every instant."""

import numpy as np
import pytest

from bridge.jit import kernel
from bridge.scheduler import state as scheduler_state
from bridge.scheduler.profile import book, first_hole
from bridge.scheduler.state import NEVER, Array, State

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
    state.p_free[0] = free
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
            assert np.all(state.p_free[k] == free[state.p_time[k]])


def test_a_demand_beyond_what_will_ever_be_free_has_no_hole() -> None:
    state = empty_profile(5, [3])
    assert _book_first_hole(state, 1, np.array([4]), 10) == (-1, 1)


def test_a_booking_that_ends_where_a_step_is_adds_no_step() -> None:
    state = empty_profile(0, [4])
    assert _book_first_hole(state, 1, np.array([3]), 10) == (0, 2)
    assert _book_first_hole(state, 2, np.array([1]), 10) == (0, 2)
    assert _book_first_hole(state, 2, np.array([1]), 5) == (10, 3)
    assert list(state.p_time[:3]) == [0, 10, 15]
    assert list(state.p_free[:3, 0]) == [0, 3, 4]
