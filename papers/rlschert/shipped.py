"""RLSchert's agents in the zoo: how they are judged there, their line of its index and their card."""

from collections.abc import Mapping
from typing import Any

from bridge.judge.stats import ConfidenceInterval, verdict
from bridge.pool.recipe import PoolRecipe
from bridge.study.report import interval
from papers.rlschert.contestants import test

_BASE = "saf"


def words() -> tuple[str, ...]:
    """Return what has an agent judged beside SAF on the tables' held-out sequences."""
    held_out = test("200 held-out sequences")
    return "--policy", _BASE, "--sequences", str(held_out.sequences), "--seed", str(held_out.seed)


def means(document: Mapping[str, Any], name: str) -> tuple[float, float]:
    """Return the mean slowdowns of SAF and of the agent."""
    of = {policy["policy"]: float(policy["slowdown"]) for policy in document["policies"]}
    return of[_BASE], of[name]


def card(recipe: PoolRecipe, document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return what the card of an agent of the pool says beyond others': what it kills, how good it is."""
    base, own = means(document, name)
    (gap,) = (one["sequences"]["difference_ci95"] for one in document["policies"] if one["policy"] == name)
    kills = {"none": "Nobody kills", "rule": "The paper's rule kills", "learned": "It kills, too"}
    return {
        "words": " ".join(words()),
        "kills": kills[recipe.kill],
        "sequences": document["sequences"],
        "b": gap["b"],
        "steps": document["steps"],
        "base": f"{base:.2f}",
        "own": f"{own:.2f}",
        "difference": interval("slowdown", gap, "+"),
        "verdict": verdict(ConfidenceInterval(gap["mean"], gap["low"], gap["high"], document["sequences"])),
    }
