"""Orders whose scores only grow: which are known for it, and the head that bounds find against a sort."""

import numpy as np
import pytest
from small_jobs import make_jobs, prepared

from bridge.base.jit import kernel
from bridge.scheduler import core, growing_scores
from bridge.scheduler import state as scheduler_state
from bridge.scheduler.compiled import compile_policy
from bridge.scheduler.names import ORDERS
from bridge.scheduler.order import compile_expression
from bridge.scheduler.protocol import Policy, protocol
from bridge.scheduler.queue import waiting
from bridge.scheduler.state import SECOND, State
from bridge.worlds.fast import episode, world
from bridge.worlds.fast.replay import replay

GROW = (
    *("w", "w**2", "(w/t)**3*n", "w/(log2(max(n, 2))*t)", "w - 3*t - s", "w*n + 7", "-s + w/t_max"),
    *("min(w, 600)*n", "max(w/n, t)", "w + log(t)", "(w + 1)*w*partition", "n_max*w + s*-2", "abs(s)*-1 + w"),
)
MAY_FALL = (
    *("-w", "3 - w", "t/w", "w*s", "w*-1", "w/s", "n**w", "w**-1", "(w - 5)**2", "(w - 5)*n", "w % 7"),
    *("w // 7", "sqrt(w)", "log(w + 1)", "exp(w)", "abs(w)", "w/log2(n)", "w*(t - 9)", "(w + s)**2"),
)


@pytest.mark.parametrize("text", GROW)
def test_sums_products_and_powers_of_what_is_not_negative_only_grow(text: str) -> None:
    assert growing_scores.is_non_decreasing(compile_expression(text).program)


@pytest.mark.parametrize("text", MAY_FALL)
def test_what_may_fall_or_is_not_plainly_growing_is_not_said_to_grow(text: str) -> None:
    assert not growing_scores.is_non_decreasing(compile_expression(text).program)


def test_no_order_is_taken_for_growing_where_another_needs_the_whole_queue_in_order() -> None:
    growing = {
        name for name in ORDERS if compile_policy(Policy(name), protocol("standard")).rules[0].growing_order
    }
    assert growing == {"wfp3", "unicep"}
    for policy, rules in (
        (Policy("wfp3", agent=frozenset({"pick"})), "standard"),
        (Policy("wfp3", agent=frozenset({"backfill"})), "standard"),
        (Policy("wfp3", blocked="first"), "standard"),
        (Policy("wfp3", "conservative"), "standard"),
        (Policy("wfp3"), "cqsim"),
        (Policy("w + z"), "standard"),
        (Policy("w + l"), "standard"),
        (Policy("w + fairshare"), "standard"),
    ):
        assert compile_policy(policy, protocol(rules)).rules[0].growing_order == 0, (policy, rules)


@kernel
def _leader(state: State, b: int) -> int:
    return growing_scores.find_highest_score(state, b)


def exact(text: str, state: State, j: int) -> float:
    """Return the score of a waiting job, by Python's arithmetic."""
    job = state.jobs[0, j]
    w = (state.scalars.now[0] - job.submit) / SECOND
    return float(eval(text, {"__builtins__": {}}, {"w": w, "t": job.t, "n": job.n, "s": job.s, "min": min}))


@pytest.mark.parametrize("text", ["(w/t)**3*n", "w*n - 30*t", "min(w, 40)*n", "w - s"])
@pytest.mark.parametrize("seed", range(3))
def test_the_leader_is_the_first_of_a_sort_and_bounds_hold(text: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 300
    rows = np.column_stack(
        (np.arange(n) // 3, rng.integers(1, 9, n), rng.integers(1, 60, n), rng.choice([1, 2, 3, 8], n))
    )
    p = prepared(make_jobs(rows.tolist(), [8]), Policy(text, "easy"))
    assert p.compiled.rules.growing_order[0]
    state = episode.configure(scheduler_state.allocate(1, n, 1, users=len(p.share)), p)
    episode.load_episode(state, world.allocate(1, n), 0, p, 0, n)
    queue: list[int] = []
    leaders = set()
    for j in range(n):
        state.scalars.now[0] = rows[j, 0] * SECOND
        core.submit(state, 0, j)
        queue.append(j)
        if j % 3 == 2:
            for _ in range(int(rng.integers(0, 4))):
                scores = {j: exact(text, state, j) for j in queue}
                first = _leader(state, 0)
                assert first == min(queue, key=lambda j: (-scores[j], j))
                assert all(state.jobs.score[0, j] >= scores[j] for j in queue)
                for block in state.blocks[0, : state.scalars.n_blocks[0]]:
                    members = state.items[0, block, : state.size[0, block]]
                    assert state.score_bound[0, block] >= state.jobs.score[0, members].max()
                leaders.add(first)
                gone = first if rng.random() < 0.5 else int(rng.choice(queue))
                core.withdraw(state, 0, gone)
                queue.remove(gone)
                assert list(waiting(state)) == queue
                if not queue:
                    break
    assert len(leaders) > 20


@pytest.mark.parametrize("backfill", ["none", "easy"])
@pytest.mark.parametrize("text", ["(w/t)**3*n", "w*n - 30*t", "min(w, 40)*n"])
@pytest.mark.parametrize("seed", range(3))
def test_schedules_are_those_of_a_queue_that_is_sorted_at_every_pass(
    seed: int, text: str, backfill: str
) -> None:
    rng = np.random.default_rng(seed)
    n = 900
    run = rng.integers(1, 90, n)
    rows = np.column_stack(
        (
            np.sort(rng.integers(0, 3000, n)),
            run,
            run + rng.integers(0, 60, n),
            rng.choice([1, 2, 4, 9, 16], n),
        )
    )
    p = prepared(make_jobs(rows.tolist(), [16]), Policy(text, backfill))
    grown = replay(p)
    assert p.compiled.rules.growing_order[0]
    p.compiled.rules.growing_order[0] = 0
    for ours, theirs in zip(vars(grown).values(), vars(replay(p)).values(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_score_that_overflows_only_in_the_while_ahead_is_no_error_yet() -> None:
    p = prepared(make_jobs([(0, 10, 10, 1), (0, 10, 10, 1), (5, 10, 10, 1)], [1]), Policy("w*n*1e307"))
    assert p.compiled.rules.growing_order[0]
    assert list(replay(p).start // SECOND) == [0, 10, 20]
