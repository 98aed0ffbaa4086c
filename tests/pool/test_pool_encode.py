"""What an agent sees: cells by hand, the paper's example, and everything against the plain reference."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pool_policies import any_jobs
from pool_reference import Pool, picture
from small_pools import NONE, SMALL, job_set, machine, sequences_of

from bridge.base.errors import BridgeError
from bridge.pool import state as pool_state
from bridge.pool.batch import PoolBatch
from bridge.pool.machine import TICK, apply_action
from bridge.pool.observation import (
    encode_corners,
    highest,
    integrate,
    integrate_back,
    most_corners,
    multiply,
    paint,
    scratch,
    shape,
)
from bridge.pool.settings import PoolConfig
from bridge.pool.state import PoolState
from bridge.pool.world import Sequences, advance, allocate, load

C0, C1, C2 = (np.float32(k / 500) for k in (499, 498, 497))


def full_picture(state: PoolState, settings: PoolConfig) -> npt.NDArray[np.float32]:
    """Return the picture of pool 0 in full, and check its list."""
    cells = np.full(most_corners(settings), -1, np.int32)
    values = np.zeros(len(cells), np.float32)
    n = encode_corners(state, 0, scratch(state), cells, values)
    assert len(set(cells[:n].tolist())) == n
    whole = np.full((1, *shape(settings)), np.nan, np.float32)
    paint(cells, values, np.array([0, n]), np.zeros(1, np.int64), settings.units, whole)
    return whole[0]


def test_the_paper_s_picture_is_120_x_72() -> None:
    assert shape(PoolConfig()) == (120, 72)
    assert [shape(PoolConfig(units=r))[1] for r in (12, 24)] == [64, 76]


def test_the_paper_s_example() -> None:
    state = pool_state.allocate(1, 4, 100, PoolConfig())
    env, jobs = state.env[0], state.jobs[0]
    jobs.believed[1], jobs.units[1] = 8, 3
    state.waiting[0, 0], env.n_waiting = 1, 1
    env.now = 30
    jobs.believed[0], jobs.units[0], jobs.submit[0], jobs.start[0] = 8, 3, 20, 26
    state.beliefs[0, 0, 4] = 12
    state.running[0, 2] = 0
    expected = np.zeros((120, 72), np.float32)
    expected[0:8, 20:23] = 1
    expected[30:36, 70] = [0.08, 0.04, 0.5, 0.12, 0.10, 0.3]
    assert np.array_equal(full_picture(state, PoolConfig()), expected)


def small_table() -> PoolState:
    """Return a pool at step 3, whose colours are 499, 498, … in turn."""
    rows = [(3, 4, 4, [4]), (2, 2, 2, [2]), (1, 3, 3, [3])]
    drawn = sequences_of(rows, [-1, 0, 1, 2])
    state, world = allocate(drawn, 1, SMALL)
    state.palette[:] = np.arange(1, pool_state.COLOURS)
    load(state, world, 0, drawn, 0)
    for action in (NONE, 0, NONE, 0, NONE):
        assert advance(state, world, 0) == TICK
        apply_action(state, 0, action)
    advance(state, world, 0)
    return state


def test_a_small_pool_by_hand() -> None:
    # job 0 runs in steps 1-4, job 1 is booked for 5 and 6, job 2 has just come; it is step 3
    state = small_table()
    expected = np.zeros((16, 26), np.float32)
    expected[0:2, 0:4] = [0, C0, C0, C0]
    expected[2:4, 0:4] = [0, 0, C1, C1]
    expected[0:3, 4] = 1  # slot 0: 1 unit for 3 steps
    expected[0:6, 24] = [0.04, 0.02, 0, 0.04, 0.005, 0.3]  # kill slot 0: ran 2 of 4 steps
    assert np.array_equal(full_picture(state, SMALL), expected)
    # job 2 is booked at once, beside job 0 in steps 3 and 4, beside job 1 in step 5
    assert apply_action(state, 0, 0) == 1
    expected[0:3, 4] = 0
    expected[0:2, 0:4] = [C2, C0, C0, C0]
    expected[2, 0:4] = [0, C2, C1, C1]
    assert np.array_equal(full_picture(state, SMALL), expected)


def test_the_oracle_s_picture_shows_true_lengths_of_those_who_wait_and_nothing_else() -> None:
    # believed to take 2 steps, takes 5; the other one is believed to take 6, takes 3
    drawn = sequences_of([(3, 5, 2, [2]), (2, 3, 6, [6])], [-1, 0, 1])
    settings = replace(SMALL, oracle_picture=True)
    found = []
    for which in (SMALL, settings):
        state, world = machine(drawn, which)
        for _ in range(2):
            assert advance(state, world, 0) == TICK
            apply_action(state, 0, NONE)
        assert advance(state, world, 0) == TICK
        found.append((full_picture(state, which), state, world))
    expected = found[0][0].copy()
    assert expected[:, 4:7].sum(0).tolist() == [2, 2, 2]
    assert expected[:, 14:16].sum(0).tolist() == [6, 6]
    expected[:5, 4:7] = 1
    expected[3:6, 14:16] = 0
    assert np.array_equal(found[1][0], expected)
    for which, (_, state, world) in zip((SMALL, settings), found, strict=True):  # bookings are believed ones
        assert apply_action(state, 0, 0) == 1
        assert int(state.jobs[0].until[0] - state.jobs[0].start[0]) == 2
        assert full_picture(state, which)[0, 0:4].tolist() == [0, *[expected_colour(state)] * 3]
        assert advance(state, world, 0) == TICK


def expected_colour(state: PoolState) -> float:
    return float(np.float32(int(state.jobs[0].colour[0]) / 500))


def test_steps_without_an_arrival_fill_the_last_column() -> None:
    state, world = machine(sequences_of([(1, 1, 1, [1])], [-1] * 30), SMALL)
    for k in range(13):
        advance(state, world, 0)
        expected = np.zeros((16, 26), np.float32)
        expected[:, 25] = np.float32(min(k, 10) / 10)
        assert np.array_equal(full_picture(state, SMALL), expected)
        apply_action(state, 0, NONE)


@given(
    any_jobs(4, 15, 8),
    st.lists(st.integers(-1, 7), min_size=2, max_size=25),
    st.lists(st.integers(0, 4), min_size=1, max_size=60),
)
def test_every_picture_is_that_of_the_reference(
    jobs: list[tuple[int, int, int, list[int]]], arrivals: list[int], actions: list[int]
) -> None:
    arrivals = [a if a < len(jobs) else -1 for a in arrivals]
    drawn = sequences_of(jobs, arrivals)
    state, world = machine(drawn, SMALL)
    pool = Pool(drawn.jobs, arrivals, SMALL)
    limits = highest(SMALL)
    for n in range(200):
        if advance(state, world, 0) != TICK:
            break
        colours = {int(j): int(state.jobs.colour[0, j]) for j in state.booked[0, : state.env.n_booked[0]]}
        found = full_picture(state, SMALL)
        assert np.array_equal(found, picture(pool, colours))
        assert (found <= limits).all()
        action = actions[n % len(actions)]
        apply_action(state, 0, action)
        pool.answer(action)


def test_products_are_those_of_whole_pictures() -> None:
    rng = np.random.default_rng(1)
    rows = [(int(u), int(n), int(n), [int(n)]) for u, n in rng.integers(1, 5, (12, 2))]
    drawn = Sequences(job_set(rows), rng.integers(0, 12, (4, 30)))
    pools = PoolBatch(drawn, 4, SMALL, "learned")
    view = pools.play(drawn)
    for _ in range(12):
        view = pools.step(np.where(pools.masks[:, 0], 0, NONE))
    which = np.array([2, 0, 2])
    exact = view.pictures(which).astype(np.float64)
    exact[:, :, :4] = np.round(exact[:, :, :4] * 500) / 500
    exact[:, :, -1] = np.round(exact[:, :, -1] * 10) / 10
    whole = exact.reshape(3, -1)
    matrix = rng.normal(size=(16 * 26, 5))
    sums, out = np.empty_like(matrix), np.ones((3, 5))
    integrate(matrix, 4, 26, sums)
    multiply(view.cells, view.values, view.offsets, which, sums, out, False)
    np.testing.assert_allclose(out, 1 + whole @ matrix, rtol=1e-12)
    gradient, back = rng.normal(size=(3, 5)), np.zeros((16 * 26, 5))
    multiply(view.cells, view.values, view.offsets, which, back, gradient, True)
    integrate_back(back, 4, 26)
    np.testing.assert_allclose(back, whole.T @ gradient, rtol=1e-12, atol=1e-12)


def test_every_colour_comes_out_exactly() -> None:
    colours = np.arange(1, pool_state.COLOURS)
    whole = np.zeros((1, len(colours), 24), np.float32)
    cells = (np.arange(len(colours)) * 24 + 1).astype(np.int32)
    differences = (colours - np.append(colours[1:], 0)).astype(np.float32)  # a row has what is below it, too
    paint(cells, differences, np.array([0, len(cells)]), np.zeros(1, np.int64), 2, whole)
    assert whole[0, :, 0].tolist() == whole[0, :, 1].tolist() == [np.float32(k / 500) for k in colours]


def test_too_many_kill_slots_do_not_fit() -> None:
    assert shape(PoolConfig(kill_slots=20)) == (120, 72)
    with pytest.raises(BridgeError, match="21 kill slots do not fit"):
        shape(PoolConfig(kill_slots=21))
    assert shape(PoolConfig(kill_slots=0)) == (120, 72)
