"""What the tests of learning share: a small recipe, whatever our policies are, and its training."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bridge.env.encoder import Encoder
from bridge.env.episode_starts import constants_of
from bridge.learn.checkpoint import Provenance, read_tensors, write_agent
from bridge.learn.checkpoint_files import RESUME, WEIGHTS
from bridge.learn.learner import TrainingContext
from bridge.learn.recipe import NetworkConfig, Recipe, Reward, TrainingConfig
from bridge.learn.trainer import Trainer
from bridge.workload.catalogue import resolve
from bridge.workload.formats import read
from bridge.workload.select import Jobs
from bridge.worlds.fast.scheduler_config import SchedulerConfig

FEATURES = {"length": "log10(1 + t)/5", "nodes": "n/n_max", "safe": "safe", "stop": "blocked"}

TINY = Recipe(
    *("tiny", "test", "a test", "Chooses among few."),
    SchedulerConfig(first=600),
    Encoder("backfill", FEATURES, window=16, stop=True),
    training=TrainingConfig(
        validation=(0.0, 0.6),
        epochs=4,
        trajectories=4,
        length=64,
        validate_every=2,
        learning_rate=1e-2,
        iterations=3,
        critic_iterations=3,
        minibatch=200,
    ),
    actor=NetworkConfig("kernel", (8,)),
    critic=NetworkConfig("pooled", (8,), (4,)),
    reward=Reward("bsld", "percentage", "time"),
)


@cache
def some_jobs() -> Jobs:
    return TINY.setup.select(read(resolve("bundled-128")))


def tiny(**training: object) -> Recipe:
    changes: Mapping[str, Any] = training
    return replace(TINY, training=replace(TINY.training, **changes))


def bits(folder: Path) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Return everything that a training would go on from, but for how long its epochs took."""
    tensors, meta = read_tensors(folder / RESUME)
    history = [{**entry, "seconds": 0.0} for entry in json.loads(meta["history"])]
    texts = {**meta, "history": json.dumps(history)}
    return {k: v.numpy().tobytes() for k, v in tensors.items()}, texts


@cache
def crowded_jobs(n: int = 400) -> Jobs:
    """Return jobs that come sixteen at a time, more than sixteen nodes and a hundred bytes can serve."""
    from small_jobs import make_jobs  # not there for a process of its own

    rng = np.random.default_rng(1)
    submit = np.arange(n) // 16 * 300
    run = rng.integers(20, 200, n)
    slack = rng.integers(0, 100, n)
    nodes, memory = rng.integers(1, 7, n), rng.integers(0, 36, n)
    return make_jobs(np.column_stack((submit, run, run + slack, nodes, memory)).tolist(), [16, 100])


def trainer(folder: Path, recipe: Recipe = TINY, seed: int = 1, jobs: Jobs | None = None) -> Trainer:
    """Return a training in a folder that holds its agent.json."""
    torch.set_num_threads(1)  # also where this runs in a process of its own
    jobs = jobs or some_jobs()
    origin = Provenance("bundled-128", jobs.name, len(jobs), "0" * 64, seed, constants_of(jobs))
    folder.mkdir(exist_ok=True)
    write_agent(folder, recipe, origin)
    return Trainer(TrainingContext(recipe, jobs, origin, folder))


def assert_seeds_differ(folder: Path, recipe: Recipe, *changing: str, jobs: Jobs | None = None) -> None:
    """Check that the same seed gives the same bits, and another one other ones of these tensors at least."""
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        trainer(folder / name, recipe, seed, jobs).run()
    one, two, other = (bits(folder / name) for name in "abc")
    assert one == two
    assert (folder / "a" / WEIGHTS).read_bytes() == (folder / "b" / WEIGHTS).read_bytes()
    assert one[0].keys() == other[0].keys()
    for name in changing:
        assert one[0][name] != other[0][name]


def assert_resumes(folder: Path, recipe: Recipe, done: int, jobs: Jobs | None = None) -> None:
    """Check that a training which ended behind so many epochs and goes on has the bits of a whole one."""
    trainer(folder / "whole", recipe, jobs=jobs).run()
    first = trainer(folder / "parts", recipe, jobs=jobs)
    for _ in range(done):
        first.step()
    torch.manual_seed(99)  # another process would not be where this one is
    second = trainer(folder / "parts", recipe, jobs=jobs)
    second.resume()
    assert (second.epoch, len(second.history)) == (done, done)
    second.run()
    assert bits(folder / "parts") == bits(folder / "whole")
    assert (folder / "parts" / WEIGHTS).read_bytes() == (folder / "whole" / WEIGHTS).read_bytes()
