"""A pool whose world is elsewhere decides as the fast world does, and knows only what it is told."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pool_policies import any_arrivals, any_jobs, eager
from small_pools import Rows, sequences_of
from tiny_pool import POOL, TINY, jobs

from bridge.base.arrays import Ints
from bridge.base.errors import BridgeError
from bridge.pool.batch import Arrival, LivePool, PoolBatch
from bridge.pool.evaluate import evaluate
from bridge.pool.heuristics import PoolActionFunction, PoolBatchBase, heuristic_actions
from bridge.pool.observation import PictureBatch
from bridge.pool.recipe import PoolRecipe
from bridge.pool.rollout import play
from bridge.pool.schedule import PoolSchedule
from bridge.pool.settings import EvaluationOptions, PoolConfig
from bridge.pool.synthetic import synthetic
from bridge.pool.world import Sequences, draw_sequences
from bridge.scheduler.names import HEURISTICS, Kill


class World:
    """A world in plain Python around a live pool: true lengths, arrivals, and nothing in common with ours."""

    def __init__(self, drawn: Sequences, s: int, pool: PoolConfig, kill: Kill) -> None:
        steps, index = drawn.arrivals_of(s)
        self.set, self.index = drawn.jobs, index
        self.arrivals = {int(step): k for k, step in enumerate(steps)}
        self.live = LivePool(pool, kill)
        self.start: dict[int, int] = {}
        self.end: dict[int, int] = {}
        self.kills: list[tuple[int, int, int]] = []
        self.span = drawn.arrivals.shape[1]

    def believed(self, j: int, run: int) -> int:
        return int(self.set.beliefs[self.index[j], run])

    def play(self, answer: PoolActionFunction) -> "World":
        while True:
            now = self.live.now
            for j in self.live.decide(answer):
                self.kills.append((j, self.start.pop(j), now))
            for j in self.live.due():
                assert j not in self.start
                self.start[j] = now
            now += 1
            ended = [j for j, start in self.start.items() if start + self.set.length[self.index[j]] <= now]
            new = [j for j in ended if j not in self.end]
            self.end |= dict.fromkeys(new, now)
            if now > self.live.settings.last_step or (now >= self.span and len(self.end) == len(self.index)):
                return self
            arrived = []
            if now in self.arrivals:
                k = self.index[self.arrivals[now]]
                arrived.append(
                    Arrival(int(self.set.id[k]), int(self.set.units[k]), int(self.set.believed[k]))
                )
            assert not self.live.step(new, arrived, self.believed)

    def same_as(self, schedule: PoolSchedule) -> None:
        n = len(self.index)
        assert [self.start[j] for j in range(n)] == schedule.start.tolist()
        assert [self.end[j] for j in range(n)] == schedule.end.tolist()
        attempts = [(int(k.job), int(k.start), int(k.end)) for k in schedule.attempts]
        assert self.kills == attempts


SMALL = synthetic(400, seed=5).jobs


@pytest.mark.parametrize("name", HEURISTICS)
@pytest.mark.parametrize("kill", ["none", "rule"])
def test_a_live_pool_decides_as_the_fast_world(name: str, kill: Kill) -> None:
    options = EvaluationOptions(seed=3, sequences=2, steps=120, rate=0.5)
    found = evaluate(SMALL, name, kill, options)
    drawn = draw_sequences(SMALL, 3, rate=0.5, steps=120, sequences=2)
    for s, schedule in enumerate(found.schedules):
        World(drawn, s, options.settings, kill).play(heuristic_actions(name)).same_as(schedule)
    if kill == "rule":
        assert sum(len(schedule.attempts) for schedule in found.schedules) > 0


def both(recipe: PoolRecipe, drawn: Sequences, make: Callable[[], PoolActionFunction]) -> int:
    """Play sequences side by side, and each alone in a live pool; return how many jobs were killed."""
    pools = PoolBatch(drawn, len(drawn), recipe.pool, recipe.kill)
    play(pools, make(), drawn)
    killed = 0
    for s in range(len(drawn)):
        schedule = pools.schedule(s)
        assert schedule.ended.all()
        World(drawn, s, recipe.pool, recipe.kill).play(make()).same_as(schedule)
        killed += len(schedule.attempts)
    return killed


@pytest.mark.parametrize("kill", ["none", "rule", "learned"])
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_an_agent_decides_alike_alone_and_among_others(kill: Kill, seed: int) -> None:
    recipe = replace(TINY, kill=kill, most_kills=2)
    killed = both(recipe, draw_sequences(jobs(), seed, rate=0.6, steps=60, sequences=3), eager(recipe, seed))
    assert (killed > 0) == (kill != "none")


@settings(max_examples=30)
@given(any_jobs(4, 15), any_arrivals(30), st.sampled_from(["none", "rule", "learned"]), st.integers(0, 99))
def test_any_jobs(rows: Rows, arrivals: list[int], kill: Kill, seed: int) -> None:
    drawn = sequences_of(rows, [a if a < len(rows) else -1 for a in arrivals])
    recipe = replace(TINY, kill=kill)
    both(recipe, drawn, eager(recipe, seed))


def first_legal(*wanted: int) -> PoolActionFunction:
    """Return a policy that gives the first of these answers that is legal."""

    def answer(pools: PoolBatchBase, view: PictureBatch, live: Ints) -> Ints:  # noqa: ARG001
        return np.array([next(action for action in wanted if pools.masks[0, action])])

    return answer


def nothing(j: int, run: int) -> int:
    raise AssertionError(f"asks for job {j} after {run} steps")


def test_memory_grows_with_the_jobs_and_true_lengths_are_not_there() -> None:
    live = LivePool(PoolConfig(backlog=500), "none")
    rejected = []
    live.decide(first_legal(5))
    for k in range(130):
        rejected += live.step([], [Arrival(1000 + 5 * k + i, 20, 50) for i in range(5)], nothing)
        live.decide(first_legal(5))
    state = live.state
    assert state.env.n_submitted[0] == 650
    assert state.jobs.id[0, :650].tolist() == list(range(1000, 1650))
    assert (state.jobs.length[0] == -1).all()
    assert rejected == list(range(505, 650))
    assert live.now == 130


def test_what_is_believed_comes_from_the_world_and_stays_within_the_horizon() -> None:
    live = LivePool(POOL, "none")
    live.decide(first_legal(2))
    live.step([], [Arrival(1, 4, 2), Arrival(2, 4, 3)], nothing)
    asked: list[tuple[int, int]] = []

    def believed(j: int, run: int) -> int:
        asked.append((j, run))
        return [0, 2, 6, 99][run]

    assert live.decide(first_legal(0, 1, 2)) == []
    assert live.due() == [0]
    assert live.state.jobs.start[0, :2].tolist() == [1, 3]
    starts = []
    for _ in range(3):
        live.step([], [], believed)
        live.decide(first_legal(2))
        starts.append(int(live.state.jobs.start[0, 1]))
    assert asked == [(0, 1), (0, 2), (0, 3)]
    assert starts == [3, 7, 16]  # behind what the first one is believed to run: 2, 6, 15 steps
    live.step([0], [], nothing)
    live.decide(first_legal(2))
    assert live.due() == [1]


def test_a_job_killed_after_the_horizon_can_be_booked_again() -> None:
    live = LivePool(POOL, "learned")
    live.decide(first_legal(2))
    live.step([], [Arrival(1, 4, 2)], nothing)
    live.decide(first_legal(0, 2))
    for _ in range(20):
        live.step([], [], lambda _, run: run)
        live.decide(first_legal(2))
    live.step([], [], lambda _, run: run)
    assert live.decide(first_legal(3, 0, 2)) == [0]
    assert live.due() == [0]
    assert live.state.jobs.believed[0, 0] == POOL.horizon - 1


def test_what_a_live_pool_refuses() -> None:
    with pytest.raises(BridgeError, match="reads true lengths"):
        LivePool(PoolConfig(oracle_clamp=True), "none")
    with pytest.raises(BridgeError, match="oracle_picture: reads true lengths"):
        LivePool(PoolConfig(oracle_picture=True), "none")
    with pytest.raises(BridgeError, match="there is no action 14"):
        LivePool(PoolConfig(), "none").decide(lambda *_: np.array([14]))
    with pytest.raises(BridgeError, match="unknown policy 'random'"):
        heuristic_actions("random")
