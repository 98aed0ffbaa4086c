"""Policies of the slotted pool that decide in several worlds, and sequences of synthetic jobs for them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from hypothesis import strategies as st

from bridge.learn.checkpoint import Provenance, write_agent, write_tensors
from bridge.learn.checkpoint_files import WEIGHTS
from bridge.pool.batch import PoolBatch
from bridge.pool.heuristics import PoolActionFunction, heuristic_actions
from bridge.pool.network import ActorCritic, network_of
from bridge.pool.recipe import PoolNetworkConfig, PoolRecipe, PoolTrainingConfig
from bridge.pool.rollout import deciding, play
from bridge.pool.schedule import PoolSchedule
from bridge.pool.settings import PoolConfig
from bridge.pool.synthetic import synthetic
from bridge.pool.world import Sequences, draw_sequences
from bridge.scheduler.names import Kill

#: A pool in which jobs wait, book ahead and get killed.
POOL = PoolConfig(units=12, slots=3, kill_slots=3, horizon=120, last_step=2000)
RECIPE = PoolRecipe(
    name="eager",
    setting="test",
    source="a test",
    summary="Answers anything.",
    pool=POOL,
    most_kills=2,
    network=PoolNetworkConfig(hidden=(8, 8)),
    training=PoolTrainingConfig(sequences=2, steps=40, rate=0.5),
)


def sequences(seed: int = 1, number: int = 2, steps: int = 40, rate: float = 0.5) -> Sequences:
    return draw_sequences(synthetic(300, seed=5).jobs, seed, rate=rate, steps=steps, sequences=number)


def random_network(recipe: PoolRecipe, seed: int) -> ActorCritic:
    """Return a network of random weights that is sure of itself."""
    torch.manual_seed(seed)
    network = network_of(recipe)
    with torch.no_grad():
        network.policy.weight.mul_(60)
    return network


def write_checkpoint(folder: Path, recipe: PoolRecipe, seed: int) -> Path:
    """Write an agent of random weights that has learnt nothing; those of odd seeds draw their answers."""
    folder.mkdir(parents=True)
    write_agent(folder, recipe, Provenance("synthetic", "synthetic", 300, "", seed, {}))
    weights = {f"actor.{k}": v for k, v in random_network(recipe, seed).state_dict().items()}
    write_tensors(folder / WEIGHTS, weights, {"epoch": "1", "mode": "sample" if seed % 2 else "greedy"})
    return folder


def eager(recipe: PoolRecipe, seed: int) -> Callable[[], PoolActionFunction]:
    """Return what makes an agent of random weights; those of odd seeds draw their answers."""
    network = random_network(recipe, seed)
    return lambda: deciding(recipe, network, "sample" if seed % 2 else "greedy", seed)


@dataclass(frozen=True)
class NamedPolicy:
    name: str
    kill: Kill
    make: Callable[[], PoolActionFunction]

    def fast(self, drawn: Sequences, pool: PoolConfig = POOL) -> list[PoolSchedule]:
        pools = PoolBatch(drawn, len(drawn), pool, self.kill)
        play(pools, self.make(), drawn)
        schedules = [pools.schedule(s) for s in range(len(drawn))]
        assert all(schedule.ended.all() for schedule in schedules)
        return schedules


def _agent(kill: Kill, seed: int) -> NamedPolicy:
    return NamedPolicy(f"agent {kill} {seed}", kill, eager(replace(RECIPE, kill=kill), seed))


def _heuristic(name: str, kill: Kill = "none") -> NamedPolicy:
    return NamedPolicy(f"{name} {kill}", kill, lambda: heuristic_actions(name))


#: All kinds of policies.
EVERYBODY = [
    *(_heuristic(name) for name in ("saf", "sjf", "tetris")),
    *(_heuristic(name, "rule") for name in ("saf", "tetris*")),
    *(_agent("learned", seed) for seed in (1, 3, 4, 6)),
    _agent("rule", 5),
    _agent("none", 6),
]


def any_jobs(
    units: int, longest: int, most: int = 6
) -> st.SearchStrategy[list[tuple[int, int, int, list[int]]]]:
    """Draw a few jobs: units, true length, length believed, and lengths believed while they run."""
    series = st.lists(st.integers(1, longest), min_size=1, max_size=12)
    job = st.tuples(st.integers(1, units), st.integers(1, 12), st.integers(1, 15), series)
    return st.lists(job, min_size=1, max_size=most)


def any_arrivals(most: int) -> st.SearchStrategy[list[int]]:
    """Draw which of six jobs arrives in each step, -1 none."""
    return st.lists(st.integers(-1, 5), min_size=2, max_size=most)
