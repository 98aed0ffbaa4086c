"""Agents with random weights."""

from pathlib import Path

import torch

from bridge.env.episode_starts import constants_of
from bridge.learn.checkpoint import LogAgent, Provenance
from bridge.learn.network import actor_of
from bridge.learn.recipe import Recipe
from bridge.workload.select import Jobs


def untrained(recipe: Recipe, jobs: Jobs, seed: int) -> LogAgent:
    """Return an agent with random weights: its decisions are as hard to repeat as any."""
    torch.manual_seed(seed)
    origin = Provenance("bundled-128", jobs.name, len(jobs), "", seed, constants_of(jobs))
    mode = "sample" if recipe.deploy == "sample" else "greedy"
    return LogAgent(Path("untrained"), recipe, origin, 0, actor_of(recipe), mode)
