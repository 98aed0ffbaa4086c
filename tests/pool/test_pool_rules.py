"""The heuristics choose by hand-computed scores among visible jobs that fit now; the kill rule."""

import numpy as np
import pytest
from small_pools import Rows, machine, sequences_of

from bridge.pool.heuristics import PAUSE, choose_all, choose_kill, choose_slot, play
from bridge.pool.machine import STEP, TICK, apply_action
from bridge.pool.settings import PoolConfig
from bridge.pool.state import PoolState
from bridge.pool.world import DONE, PoolWorldState, advance, allocate, load
from bridge.scheduler.names import RANDOM, SAF, SJF, TETRIS, TETRIS_STAR

POOL = PoolConfig(units=10, slots=3, kill_slots=2, horizon=40)


def waiting(rows: Rows) -> tuple[PoolState, PoolWorldState]:
    """Return a pool in which all jobs have arrived and wait."""
    state, world = machine(sequences_of(rows, [-1, *range(len(rows))], width=30), POOL)
    for _ in rows:
        advance(state, world, 0)
        apply_action(state, 0, POOL.slots)
    advance(state, world, 0)
    return state, world


def test_each_heuristic_has_its_own_favourite() -> None:
    # units, believed: area 24, 20, 27; shortest is the second; largest the third, of units
    state, _ = waiting([(8, 3, 3, [3]), (10, 2, 2, [2]), (3, 9, 9, [9])])
    assert [choose_slot(state, 0, rule, 1e-6) for rule in (SJF, SAF, TETRIS)] == [1, 1, 1]
    state, _ = waiting([(4, 3, 3, [3]), (1, 9, 9, [9]), (9, 4, 4, [4])])
    assert [choose_slot(state, 0, rule, 1e-6) for rule in (SJF, SAF, TETRIS)] == [0, 1, 2]
    assert choose_slot(state, 0, TETRIS_STAR, 1e-6) == 0
    # 1/3 against 0.01 * 90 + 0.99 / 4
    assert choose_slot(state, 0, TETRIS_STAR, 0.01) == 2


def test_ties_go_to_the_first_slot() -> None:
    state, _ = waiting([(2, 6, 6, [6]), (3, 4, 4, [4]), (3, 4, 4, [4])])
    assert [choose_slot(state, 0, rule, 1e-6) for rule in (SJF, SAF, TETRIS)] == [1, 0, 1]


def test_only_visible_jobs_that_fit_now_are_eligible() -> None:
    state, _ = waiting([(6, 9, 9, [9]), (6, 2, 2, [2]), (5, 1, 1, [1]), (1, 1, 1, [1])])
    apply_action(state, 0, 0)  # 4 units are left; the fourth job moved up
    assert [state.waiting[0, k] for k in range(3)] == [1, 2, 3]
    assert choose_slot(state, 0, SJF, 1e-6) == 2
    apply_action(state, 0, 2)
    assert choose_slot(state, 0, SJF, 1e-6) == 3  # none


def test_a_job_fits_now_only_if_it_does_to_its_end() -> None:
    # 6 units now, but all are booked from step 2 of the second job on
    state, _ = waiting([(4, 2, 2, [2]), (10, 3, 3, [3]), (1, 3, 3, [3])])
    apply_action(state, 0, 0)
    apply_action(state, 0, 0)
    assert state.waiting[0, 0] == 2
    assert choose_slot(state, 0, SJF, 1e-6) == 3


def mispredicted(believed: int, series: list[int], steps: int) -> int:
    """Return what the kill rule says of a job of 20 steps that has run for some."""
    state, world = waiting([(1, 20, believed, series)])
    apply_action(state, 0, 0)
    for _ in range(steps):
        apply_action(state, 0, POOL.slots)
        advance(state, world, 0)
    return choose_kill(state, 0)


@pytest.mark.parametrize(
    ("believed", "series", "steps", "killed"),
    [
        (5, [5, 11], 1, True),  # 1 ≤ 5 < 10 < 11, and 6/5 > 1
        (5, [5, 10], 1, False),  # not believed to be long
        (5, [5, 11], 5, True),
        (5, [5, 11], 6, False),  # it has run longer than it was believed to
        (9, [9, 18], 1, False),  # 9/9 is not above 1
        (9, [9, 19], 1, True),
        (10, [10, 30], 1, False),  # was not believed to be short
    ],
)
def test_the_kill_rule(believed: int, series: list[int], steps: int, killed: bool) -> None:
    assert mispredicted(believed, series, steps) == (POOL.slots + 1 if killed else -1)


def test_the_first_mispredicted_kill_slot_is_taken() -> None:
    state, world = waiting([(1, 20, 12, [12]), (1, 20, 5, [5, 11]), (1, 20, 5, [5, 11])])
    for _ in range(2):
        apply_action(state, 0, 0)
    apply_action(state, 0, POOL.slots)
    advance(state, world, 0)
    assert state.running[0].tolist() == [0, 1]
    assert choose_kill(state, 0) == POOL.slots + 2


def test_random_pauses_for_new_draws_and_uses_them_in_order() -> None:
    def fresh() -> tuple[PoolState, PoolWorldState]:
        return machine(sequences_of([(3, 2, 2, [2])], [0, 0, -1, 0, 0]), POOL)

    draws = np.random.default_rng(0).integers(4, size=200)
    state, world = fresh()
    assert play(state, world, 0, RANDOM, 0.0, False, draws) == DONE
    ends = state.jobs.end[0].tolist()
    state, world = fresh()
    assert play(state, world, 0, RANDOM, 0.0, False, draws[:2]) == PAUSE
    assert state.env.now[0] + state.env.n_booked[0] <= 2
    assert play(state, world, 0, RANDOM, 0.0, False, draws[2:]) == DONE
    assert state.jobs.end[0].tolist() == ends
    by_hand, world = fresh()
    n = 0
    while advance(by_hand, world, 0) == TICK:
        apply_action(by_hand, 0, int(draws[n]))
        n += 1
    assert by_hand.jobs.end[0].tolist() == ends


def test_choices_for_a_batch_skip_pools_that_do_not_ask() -> None:
    drawn = sequences_of([(3, 2, 2, [2])], *[[0] * 4] * 2)
    state, world = allocate(drawn, 2, POOL)
    for b in range(2):
        load(state, world, b, drawn, b)
        apply_action(state, b, POOL.slots)
    assert advance(state, world, 0) == TICK
    assert state.env.phase[1] == STEP
    actions = np.zeros(2, np.int64)
    choose_all(state, SAF, 0.0, False, np.zeros(2, np.int64), actions)
    assert actions.tolist() == [0, -1]
    choose_all(state, RANDOM, 0.0, True, np.array([2, 2]), actions)
    assert actions.tolist() == [2, -1]
