"""What policies see and are given at states that were worked out by hand, and agents of random weights."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from small_jobs import Row, make_jobs, prepared

from bridge.env.batch import Batch, PackedObservations
from bridge.env.encoder import Encoder
from bridge.learn.checkpoint import LogAgent, Provenance, load, write_agent, write_tensors
from bridge.learn.checkpoint_files import WEIGHTS
from bridge.learn.network import actor_of
from bridge.learn.recipe import Recipe
from bridge.scheduler.protocol import Policy

#: (submit, run, request, nodes) on 4 nodes. At 20 job 1 holds three nodes until 100; the head, job 2, needs
#: four and has waited for 10 s; one node is free; jobs 3 and 4 have just come.
ROWS = [(0, 100, 100, 3), (10, 50, 60, 4), (20, 70, 80, 1), (20, 200, 200, 1)]
MAX_RUN = 400.0


def first_rows(recipe: Recipe) -> npt.NDArray[np.float32]:
    """Return the rows of the first decision, under the standard protocol."""
    policy = Policy(
        recipe.setup.order, recipe.setup.backfill, agent=frozenset({recipe.decision}), guard=False
    )
    batch = Batch(
        prepared(make_jobs(ROWS, [4]), policy), recipe.encoder.compile({"max_run": MAX_RUN}), 1, len(ROWS)
    )
    return batch.reset(np.zeros(1, np.int64)).rows


#: (submit, run, request, nodes, burst buffer, power) on (4, 100, 1000). Job 1 holds all nodes until 100; job
#: 2 comes alone, is picked and starts then; at that time there is a choice between job 3, which does not fit,
#: and job 4, which does.
HELD = [
    (0, 100, 100, 4, 0, 100),
    (10, 50, 60, 2, 30, 400),
    (20, 150, 200, 3, 50, 100),
    (30, 80, 80, 1, 20, 500),
]
CAPACITY = (4, 100, 1000)


def at_100(recipe: Recipe, encoder: Encoder | None = None, rows: Sequence[Row] = HELD) -> PackedObservations:
    """Return the first decision of a recipe's agent, at 100 s, as it or another encoder sees it."""
    seen = encoder or recipe.encoder
    resources = max(seen.resources, 1)
    jobs = make_jobs([row[: 3 + resources] for row in rows], CAPACITY[:resources])
    batch = Batch(prepared(jobs, recipe.policy()), seen.compile({}), 1, len(rows))
    view = batch.reset(np.zeros(1, np.int64))
    assert batch.now.tolist() == [100_000_000]
    return view


def rewards_at_100(recipe: Recipe) -> list[float]:
    """Return what picking job 3 and job 4 is worth, by the recipe's reward."""
    encoder = replace(recipe.encoder, features={"reward": recipe.gradient.reward}, padding=())
    rewards: list[float] = at_100(recipe, encoder).rows[:, 0].tolist()
    return rewards


def kept_and_read(folder: Path, recipe: Recipe) -> tuple[dict[str, torch.Tensor], LogAgent]:
    """Write an agent with random weights as a training would; return them, and the agent that is read."""
    torch.manual_seed(5)
    actor = actor_of(recipe)
    write_agent(folder, recipe, Provenance("x", "x", 4, "0" * 64, 5, {"max_run": 1.0}))
    weights = {f"actor.{k}": v for k, v in actor.state_dict().items()}
    write_tensors(folder / WEIGHTS, weights, {"epoch": "3", "mode": "greedy"})
    return actor.state_dict(), load(folder)
