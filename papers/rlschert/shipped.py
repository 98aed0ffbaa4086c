"""RLSchert's agents in the zoo: how they are judged there, their line of its index and their card."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from bridge.judge.stats import Estimate, verdict
from bridge.learn.checkpoint import load
from bridge.learn.folder import PROGRESS
from bridge.learn.recipe import PoolRecipe
from bridge.study.report import interval
from papers.rlschert.players import test

_BASE = "saf"


def words() -> tuple[str, ...]:
    """Return what has an agent judged beside SAF on the tables' held-out sequences."""
    held_out = test("200 held-out sequences")
    return "--policy", _BASE, "--sequences", str(held_out.sequences), "--seed", str(held_out.seed)


def means(found: Mapping[str, Any], name: str) -> tuple[float, float]:
    """Return the mean slowdowns of SAF and of the agent."""
    of = {policy["policy"]: float(policy["slowdown"]) for policy in found["policies"]}
    return of[_BASE], of[name]


def card(folder: Path, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the card of an agent says: how it learnt, how good it is, what it looks at."""
    agent, progress = load(folder, PoolRecipe), pd.read_parquet(folder / PROGRESS)
    recipe, origin = agent.recipe, agent.origin
    base, own = means(found, folder.name)
    (gap,) = (
        policy["sequences"]["difference_ci95"]
        for policy in found["policies"]
        if policy["policy"] == folder.name
    )
    kills = {"none": "Nobody kills", "rule": "The paper's rule kills", "learned": "It kills, too"}
    return {
        "name": folder.name,
        "recipe": recipe,
        "words": " ".join(words()),
        "log": origin.workload_name,
        "jobs": f"{origin.jobs:,}",
        "digest": origin.sha256[:12],
        "seed": origin.seed,
        "epochs": len(progress),
        "seconds": f"{progress['seconds'].sum():.0f}",
        "kills": kills[recipe.kill],
        "sequences": found["sequences"],
        "steps": found["steps"],
        "base": f"{base:.2f}",
        "own": f"{own:.2f}",
        "difference": interval("slowdown", gap, "+"),
        "verdict": verdict(Estimate(gap["mean"], gap["low"], gap["high"], found["sequences"])),
    }
