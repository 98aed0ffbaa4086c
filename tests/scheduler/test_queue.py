"""The waiting queue against a sorted list: inserts, removals, splits, merges, and bounds that bound."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from small_jobs import make_jobs, prepared

from bridge.base.arrays import Array
from bridge.base.jit import kernel
from bridge.scheduler import core
from bridge.scheduler import state as scheduler_state
from bridge.scheduler.protocol import Policy
from bridge.scheduler.queue import BY_ALT, BY_ORDER, BY_SCORE, sort_jobs, waiting
from bridge.scheduler.state import BLOCK, CLASSES, JOB, SECOND, State
from bridge.worlds.fast import episode, world


def check_blocks(state: State, b: int = 0) -> int:
    """Check the blocks of a queue and their bounds; return how many there are."""
    n_blocks = int(state.scalars.n_blocks[b])
    blocks = state.blocks[b]
    assert sorted(blocks) == list(range(len(blocks)))
    total = 0
    for block in blocks[:n_blocks]:
        count = int(state.size[b, block])
        assert 0 < count <= BLOCK
        jobs = state.items[b, block, :count]
        total += count
        if state.switches.growing_order[0] or not state.switches.dynamic_order[0]:
            nodes, lengths = state.demand[b, jobs, 0], state.jobs.est_wait[b, jobs]
            classes = np.array([int(n).bit_length() for n in nodes])
            assert state.min_nodes[b, block] <= nodes.min()
            for c in range(CLASSES):
                small = lengths[classes <= c] if c < CLASSES - 1 else lengths
                assert len(small) == 0 or state.min_estimate[b, block, c] <= small.min()
    assert total == state.scalars.n_waiting[b]
    return n_blocks


@pytest.mark.parametrize("order", ["-t", "-s", "s", "n"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_queue_under_random_arrivals_and_departures_is_a_sorted_list(order: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 600
    rows = np.column_stack(
        (np.arange(n) // 7, rng.integers(1, 9, n), rng.integers(1, 9, n), rng.choice([1, 2, 3, 64, 1000], n))
    )
    p = prepared(make_jobs(rows.tolist(), [1000]), Policy(order, "easy"))
    state = episode.configure(scheduler_state.allocate(1, n, 1, window=1, users=len(p.share)), p)
    episode.load_episode(state, world.allocate(1, n), 0, p, 0, n)
    state.jobs.tie[0] = rng.integers(0, 2, n)
    score = {
        "-t": -rows[:, 2],
        "-s": -rows[:, 0],
        "s": rows[:, 0],
        "n": rows[:, 3],
    }[order]
    model: list[int] = []
    arrived, most = 0, 0
    for step in range(3 * n):
        growing = step // 300 % 2 == 0
        if arrived < n and (not model or rng.random() < (0.8 if growing else 0.2)):
            core.submit(state, 0, arrived)
            model.append(arrived)
            model.sort(key=lambda j: (-score[j], state.jobs.tie[0, j], j))
            arrived += 1
        elif model:
            near_the_head = rng.random() < 0.7
            gone = model.pop(int(rng.integers(0, min(len(model), 40) if near_the_head else len(model))))
            core.withdraw(state, 0, gone)
        if step % 10 == 0 or not model:
            assert list(waiting(state)) == model
            most = max(most, check_blocks(state))
    assert arrived == n
    assert most >= 3


@pytest.mark.parametrize("rules", ["standard", "cqsim", "schedgym"])
@pytest.mark.parametrize("order", ["fcfs", "sjf", "wfp3"])
def test_bounds_hold_at_every_pass_of_a_replay(order: str, rules: str) -> None:
    rng = np.random.default_rng(3)
    n = 400
    rows = np.column_stack(
        (np.arange(n) // 40, rng.integers(1, 9, n), rng.integers(9, 30, n), rng.integers(1, 33, n))
    )
    p = prepared(make_jobs(rows.tolist(), [40]), Policy(order, "easy"), rules)
    state = episode.configure(scheduler_state.allocate(1, n, 1, window=1, users=len(p.share)), p)
    memory = world.allocate(1, n)
    episode.load_episode(state, memory, 0, p, 0, n)
    most = passes = 0
    while world.run_until_decision(state, memory, 0, 1) == world.PAUSE:
        passes += 1
        if passes % 5 == 0:
            most = max(most, check_blocks(state))
    assert most >= 4
    assert state.scalars.n_waiting[0] == state.scalars.n_blocks[0] == 0


def test_size_classes_are_bit_lengths() -> None:
    assert [int(n).bit_length() for n in (0, 1, 2, 3, 4, 1023, 1024)] == [0, 1, 2, 2, 3, 10, 11]
    n = 3
    rows = [(0, 1, 1, 1), (0, 1, 1, 1024), (0, 1, 1, 1 << 40)]
    p = prepared(make_jobs(rows, [1 << 41]), Policy())
    state = episode.configure(scheduler_state.allocate(1, n, 1), p)
    episode.load_episode(state, world.allocate(1, n), 0, p, 0, n)
    for j in range(n):
        core.submit(state, 0, j)
    assert list(state.jobs.size_class[0]) == [1, 11, CLASSES - 1]


@kernel
def _sort_jobs(jobs: Array, a: Array, spare: Array, n: int, by: int) -> None:
    sort_jobs(jobs, a, spare, n, by)


@pytest.mark.parametrize("distinct", [1, 3, 1000])
@pytest.mark.parametrize("n", [0, 1, 2, 23, 24, 25, 64, 301])
def test_sorting_is_stable_and_by_the_given_key(n: int, distinct: int) -> None:
    rng = np.random.default_rng(n)
    jobs = np.zeros(512, JOB).view(np.recarray)
    jobs.score = rng.integers(0, distinct, 512)
    jobs.alt = rng.integers(0, distinct, 512)
    jobs.tie = rng.integers(0, 2, 512)
    keys: dict[int, Callable[[Any], Any]] = {
        BY_SCORE: lambda j: -jobs.score[j],
        BY_ALT: lambda j: (-jobs.alt[j], j),
        BY_ORDER: lambda j: (-jobs.score[j], jobs.tie[j], j),
    }
    for by, key in keys.items():
        mixed = rng.permutation(512)[:n].astype(np.int32)
        nearly = np.array(sorted(mixed, key=key), np.int32)
        if n > 2:
            nearly[[0, n // 2]] = nearly[[n // 2, 0]]
        for before in (mixed, nearly, nearly[::-1].copy()):
            after = before.copy()
            _sort_jobs(jobs, after, np.zeros(512, np.int32), n, by)
            assert list(after) == sorted(before, key=key)


def test_seconds_and_microseconds_meet_in_the_score() -> None:
    p = prepared(make_jobs([(1.5, 2.25, 2.25, 1)], [1]), Policy("s + t"))
    state = episode.configure(scheduler_state.allocate(1, 1, 1), p)
    episode.load_episode(state, world.allocate(1, 1), 0, p, 0, 1)
    core.submit(state, 0, 0)
    assert (state.jobs.score[0, 0], state.jobs.submit[0, 0]) == (3.75, 1.5 * SECOND)
