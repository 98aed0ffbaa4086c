"""RLSchert's agents in the zoo: how they are judged there, their line of its index and their card."""

from collections.abc import Mapping
from typing import Any

from bridge.judge.stats import Estimate, verdict
from bridge.pool.recipe import PoolRecipe
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


def card(recipe: PoolRecipe, found: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return what the card of an agent of the pool says beyond others': what it kills, how good it is."""
    base, own = means(found, name)
    (gap,) = (one["sequences"]["difference_ci95"] for one in found["policies"] if one["policy"] == name)
    kills = {"none": "Nobody kills", "rule": "The paper's rule kills", "learned": "It kills, too"}
    return {
        "words": " ".join(words()),
        "kills": kills[recipe.kill],
        "sequences": found["sequences"],
        "b": gap["b"],
        "steps": found["steps"],
        "base": f"{base:.2f}",
        "own": f"{own:.2f}",
        "difference": interval("slowdown", gap, "+"),
        "verdict": verdict(Estimate(gap["mean"], gap["low"], gap["high"], found["sequences"])),
    }
