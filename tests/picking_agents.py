"""A checkpoint whose agent picks the shortest waiting job, or the longest: what it decides is known."""

from dataclasses import replace
from pathlib import Path

import torch

from bridge.env.encoder import Encoder
from bridge.env.episode_starts import constants_of
from bridge.learn.checkpoint import Provenance, add_prefix, write_agent, write_weights
from bridge.learn.network import actor_of
from bridge.learn.recipe import NetworkConfig, Recipe
from bridge.workload.catalogue import resolve
from bridge.workload.formats import read
from bridge.worlds.fast.scheduler_config import SchedulerConfig

PICKER = Recipe(
    *("picker", "test", "a test", "Picks by length."),
    SchedulerConfig(backfill="none", first=600),
    Encoder("pick", {"length": "-t"}, window=600),
    actor=NetworkConfig("kernel", ()),
    critic=NetworkConfig("pooled", (4,)),
)


def picker(folder: Path, sign: float = 1.0, sha256: str = "0" * 64) -> None:
    """Write the agent; `sign`: −1 picks the longest job. `sha256`: of the log that it claims to know."""
    jobs = PICKER.setup.select(read(resolve("bundled-128")))
    actor = actor_of(replace(PICKER))
    with torch.no_grad():
        actor.layers[0].weight[:] = sign  # type: ignore[union-attr,operator,index]
        actor.layers[0].bias[:] = 0  # type: ignore[union-attr,operator,index]
    folder.mkdir(exist_ok=True)
    origin = Provenance("bundled-128", jobs.name, len(jobs), sha256, 1, constants_of(jobs))
    write_agent(folder, PICKER, origin)
    write_weights(folder, add_prefix("actor.", actor.state_dict()), 1, "greedy")
