"""What the tests of learning share: a small recipe, whatever our policies are, and its training."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from bridge.encode.encoder import Encoder
from bridge.fast.setup import Setup
from bridge.learn.checkpoint import Origin, write_agent
from bridge.learn.recipe import Network, Recipe, Reward, Training
from bridge.learn.train import Trainer, constants_of
from bridge.workload.catalogue import resolve
from bridge.workload.formats import read
from bridge.workload.select import Jobs

FEATURES = {"length": "log10(1 + t)/5", "nodes": "n/n_max", "safe": "safe", "stop": "blocked"}

TINY = Recipe(
    name="tiny",
    setting="test",
    source="a test",
    summary="Chooses among few.",
    setup=Setup(first=600),
    encoder=Encoder("backfill", FEATURES, window=16, stop=True),
    actor=Network("kernel", (8,)),
    critic=Network("pooled", (8,), (4,)),
    reward=Reward("bsld", "percentage", "time"),
    training=Training(
        epochs=4,
        trajectories=4,
        length=64,
        part=(0.0, 0.6),
        validation=(0.0, 0.6),
        validate_every=2,
        learning_rate=1e-2,
        iterations=3,
        critic_iterations=3,
        minibatch=200,
    ),
)


@cache
def some_jobs() -> Jobs:
    """Return the first jobs of the bundled workload."""
    return TINY.setup.select(read(resolve("bundled-128")))


def tiny(**training: object) -> Recipe:
    """Return the recipe with other training values."""
    changes: Mapping[str, Any] = training
    return replace(TINY, training=replace(TINY.training, **changes))


def trainer(folder: Path, recipe: Recipe = TINY, seed: int = 1) -> Trainer:
    """Return a training in a folder that holds its agent.json."""
    torch.set_num_threads(1)  # also where this runs in a process of its own
    jobs = some_jobs()
    origin = Origin("bundled-128", jobs.name, len(jobs), "0" * 64, seed, constants_of(jobs))
    folder.mkdir(exist_ok=True)
    write_agent(folder, recipe, origin)
    return Trainer(recipe, jobs, origin, folder)
