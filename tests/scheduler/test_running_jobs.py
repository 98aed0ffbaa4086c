"""The running jobs against a sorted list: starts, ends, splits, merges, links; and those who walk them."""

from bisect import insort
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_jobs import make_jobs, prepared, reference_schedule, same

from bridge.base.arrays import Array
from bridge.base.jit import kernel
from bridge.forecasting.fork import Fork
from bridge.forecasting.timeline import Timeline
from bridge.scheduler import state as scheduler_state
from bridge.scheduler.protocol import Policy, protocol
from bridge.scheduler.running_jobs import add_running, copy_running, remove_running, renumber_running, running
from bridge.scheduler.session import JobEstimates, Session
from bridge.scheduler.state import LAST_BLOCK, MOST_IN_BLOCK, NEVER, RUN_BLOCK, SECOND, State
from bridge.worlds.fast import replay as fast_replay
from bridge.worlds.fast.replay import replay

N = 2_000


@kernel
def _apply(state: State, b: int, events: Array) -> None:
    """Start job `j` for an event j, end it for -1 - j."""
    env = state.scalars[b]
    for e in range(events.shape[0]):
        if events[e] >= 0:
            state.jobs[b, events[e]].serial = env.serial
            env.serial += 1
            add_running(state, b, events[e])
        else:
            remove_running(state, b, -1 - events[e])


@kernel
def _copy(state: State, b: int, to: int) -> None:
    state.scalars[to] = state.scalars[b]
    copy_running(state, b, to)


def check_blocks(state: State, b: int = 0) -> int:
    """Check the blocks of the running jobs and their links; return how many there are."""
    env, order = state.scalars[b], state.run_blocks[b]
    assert sorted(order) == list(range(len(order)))
    blocks = order[: env.n_run_blocks]
    sizes = state.run_size[b, blocks] if len(blocks) > 1 else [env.n_running]
    assert env.first_running == blocks[0] * RUN_BLOCK
    assert sum(sizes) == env.n_running
    assert all(0 < size <= MOST_IN_BLOCK for size in sizes) or [*sizes] == [0]
    assert all(m + n > MOST_IN_BLOCK // 2 for m, n in pairwise(sizes))
    links = [-1 - block * RUN_BLOCK for block in blocks[1:]] + [LAST_BLOCK]
    for block, size, link in zip(blocks, sizes, links, strict=True):
        assert state.run_end[b, block * RUN_BLOCK + size] == NEVER
        assert state.run_job[b, block * RUN_BLOCK + size] == link
    return len(blocks)


@settings(max_examples=20)
@given(
    seed=st.integers(0, 1 << 30),
    ends=st.sampled_from([1, 3, 50, 1 << 40]),
    most=st.sampled_from([0, 1, 40, MOST_IN_BLOCK, RUN_BLOCK, 700, N]),
    pick=st.sampled_from(["first", "last", "any"]),
)
def test_running_jobs_are_a_sorted_list(seed: int, ends: int, most: int, pick: str) -> None:
    rng = np.random.default_rng(seed)
    state = scheduler_state.allocate(2, N, 1)
    state.jobs.est_end[0] = rng.integers(0, ends, N)
    model: list[tuple[int, int, int]] = []  # end, start, job
    idle = [*rng.permutation(N)]
    for chunk in range(8):
        events = []
        for _ in range(400):
            chance = 0.95 if chunk < 4 else 0.1  # it fills, then it empties
            if len(model) < most and rng.random() < chance:
                j = idle.pop()
                insort(model, (int(state.jobs.est_end[0, j]), int(state.scalars.serial[0]) + len(events), j))
                events.append(j)
            elif model:
                k = {"first": 0, "last": len(model) - 1, "any": int(rng.integers(len(model)))}[pick]
                j = model.pop(k)[2]
                idle.insert(0, j)
                events.append(-1 - j)
        state.scalars.serial[0] += len(events)  # the model's serials leave gaps, the core's follow behind
        _apply(state, 0, np.array(events, np.int64))
        assert [*running(state)] == [j for _, _, j in model]
        check_blocks(state)
        _copy(state, 0, 1)
        assert [*running(state, 1)] == [j for _, _, j in model]
    new = rng.permutation(N).astype(np.int32)
    renumber_running(state, 0, new)
    assert [*running(state)] == [new[j] for _, _, j in model]


def test_blocks_split_and_merge() -> None:
    state = scheduler_state.allocate(1, N, 1)
    rng = np.random.default_rng(1)
    state.jobs.est_end[0] = rng.integers(0, 100, N)
    jobs = rng.permutation(N)
    _apply(state, 0, jobs)
    assert N // MOST_IN_BLOCK < check_blocks(state) <= 2 * N // MOST_IN_BLOCK + 1
    assert state.scalars.n_running[0] == N
    _apply(state, 0, -1 - jobs[40:])
    assert check_blocks(state) == 1
    assert [*running(state)] == sorted(jobs[:40], key=lambda j: (state.jobs.est_end[0, j], [*jobs].index(j)))
    _apply(state, 0, -1 - jobs[:40])
    assert [*running(state)] == []
    assert check_blocks(state) == 1


def test_few_jobs_have_one_block_that_is_no_larger_than_they_need() -> None:
    assert scheduler_state.allocate(3, 64, 1).run_end.shape == (3, 65)
    assert scheduler_state.allocate(1, MOST_IN_BLOCK, 1).run_end.shape == (1, RUN_BLOCK)
    state = scheduler_state.allocate(1, MOST_IN_BLOCK, 1)
    _apply(state, 0, np.arange(MOST_IN_BLOCK))
    assert [*running(state)] == [*range(MOST_IN_BLOCK)]
    assert check_blocks(state) == 1


def crowd(n: int, seed: int = 2) -> list:
    """Return rows of jobs of which hundreds run at a time; many believed ends are equal, or past."""
    rng = np.random.default_rng(seed)
    run = rng.integers(1, 300, n)
    submit = np.sort(rng.integers(0, 60, n))
    request = np.maximum((run // 60 + rng.integers(-1, 3, n)) * 60, 60)
    rows: list = np.column_stack((submit, run, request, rng.choice([1] * 18 + [2, 40], n))).tolist()
    return rows


@pytest.mark.parametrize(
    ("backfill", "rules", "jobs", "nodes"),
    [
        ("easy", "standard", 420, 900),
        ("easy", "cqsim", 420, 900),
        ("easy", "schedgym", 420, 900),
        ("conservative", "standard", 400, 760),
    ],
)
def test_a_crowded_machine_does_what_the_reference_does(
    backfill: str, rules: str, jobs: int, nodes: int
) -> None:
    p = prepared(make_jobs(crowd(jobs), [nodes]), Policy("fcfs", backfill), rules)
    schedule = replay(p)
    assert same(schedule, reference_schedule(p))
    assert most_running(schedule.start, schedule.end) > RUN_BLOCK


def busiest_time(start: Array, end: Array) -> int:
    """Return when most jobs run."""
    return max(map(int, start), key=lambda t: int(((start <= t) & (end > t)).sum()))


def most_running(start: Array, end: Array) -> int:
    """Return how many jobs run at a time at most."""
    time = busiest_time(start, end)
    return int(((start <= time) & (end > time)).sum())


def test_a_window_that_moves_keeps_the_running_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    p = prepared(make_jobs(crowd(1_500), [900]), Policy("sjf", "easy"))
    whole = replay(p)
    monkeypatch.setattr(fast_replay, "LENGTH", 300)
    assert most_running(whole.start, whole.end) > RUN_BLOCK
    np.testing.assert_array_equal(replay(p).start, whole.start)


def test_a_fork_plays_what_the_replay_did() -> None:
    p = prepared(make_jobs(crowd(900), [900]), Policy("fcfs", "easy"))
    schedule = replay(p)
    state, which = Timeline(p, schedule).state(busiest_time(schedule.start, schedule.end))
    assert state.n_running > RUN_BLOCK
    runs = np.tile(p.jobs.run[which], (2, 1))
    for starts in Fork(state).simulate_futures(runs):
        np.testing.assert_array_equal(starts[state.waiting], schedule.start[which][state.waiting])


def test_a_session_that_forgets_keeps_the_running_jobs() -> None:
    n = 900
    session = Session([n], Policy("fcfs", "easy"), protocol("standard"))
    rng = np.random.default_rng(3)
    ends = rng.integers(1, 20, n) * SECOND
    for j in range(n):
        session.submit(j, [1], JobEstimates.same(int(ends[j])))
    session.begin()
    session.advance()
    assert session.running() == sorted(range(n), key=lambda j: ends[j])
    gone = {int(j) for j in rng.choice(n, 400, replace=False)}
    for j in gone:
        session.finish(j)
    keep = [j for j in range(n) if j not in gone]
    left = [keep.index(j) for j in sorted(keep, key=lambda j: ends[j])]
    session.compact(keep)
    assert session.running() == left
    assert len(left) > RUN_BLOCK
    session.set_out_of_service([7])
    assert session.state.free[0, 0] == n - len(left) - 7
