"""A small pool, its jobs and a training that takes seconds, for the tests of learning."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from pool_policies import RECIPE
from small_pools import job_set

from bridge.learn.checkpoint import Provenance, write_agent
from bridge.learn.learner import TrainingContext
from bridge.learn.trainer import Trainer
from bridge.pool.jobset import JobSet
from bridge.pool.recipe import PoolRecipe, PoolTrainingConfig
from bridge.pool.settings import PoolConfig

POOL = PoolConfig(units=4, slots=2, kill_slots=2, horizon=16, last_step=300)
_TRAINING = PoolTrainingConfig(
    epochs=4, sequences=4, steps=20, validate_every=2, minibatch=64, iterations=2, learning_rate=1e-3
)
TINY = replace(RECIPE, name="tiny", pool=POOL, most_kills=PoolRecipe.most_kills, training=_TRAINING)


def jobs() -> JobSet:
    """Return forty jobs, some of which become much longer than they were believed to be."""
    rng = np.random.default_rng(8)
    rows = []
    for units, length in rng.integers(1, [5, 13], (40, 2)).tolist():
        believed = max(1, length // 4) if rng.random() < 0.4 else length
        rows.append((units, length, believed, [believed, *[length] * 3]))
    return job_set(rows)


def tiny(**training: object) -> PoolRecipe:
    return replace(TINY, training=replace(TINY.training, **training))  # type: ignore[arg-type]


def trainer(
    folder: Path,
    recipe: PoolRecipe = TINY,
    seed: int = 1,
    teacher: Path | None = None,
    of: JobSet | None = None,
) -> Trainer:
    """Return a training in a folder that holds its agent.json, from `jobs` or others."""
    torch.set_num_threads(1)
    origin = Provenance("handmade", "handmade", 40, "0" * 64, seed, {})
    folder.mkdir(exist_ok=True)
    write_agent(folder, recipe, origin)
    return Trainer(TrainingContext(recipe, of or jobs(), origin, folder, teacher=teacher))
