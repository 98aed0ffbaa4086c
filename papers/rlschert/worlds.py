"""RLSchert's agents in both worlds: the fast pool, and the same pool on a platform that is simulated."""

import json
from typing import Any

import pandas as pd

from bridge.scheduler.names import PREFIX
from bridge.study.cells import Cell
from papers import store
from papers.output import Say
from papers.rlschert.contestants import BASE, folder_of, head_of, is_done, players
from papers.rlschert.results import COMMAND

FILE = "rlschert-worlds"
#: Sequences of the test set that are simulated; agents are those of the first seed.
SEQUENCES = 4
#: What is kept of each world.
KEPT = ("slowdown", "completion_time", "kills")
#: What is simulated -> platform and profile.
WORLDS = {"delay": ("exact-128", "delay"), "io 5 %": ("sp2-128", "io:0.05")}
WHO = ("SJF", BASE, "SAF, rule kill", "DeepRM", "RLSchert", "RLSchert, rule kill", "RLSchert, learned kill")


def run(say: Say) -> None:
    """Simulate what has not been simulated, honestly: rules, and the agents of the first seed."""
    for cell in players(WHO):
        if cell.seed <= 1:
            for world, (platform, profile) in WORLDS.items():
                _simulate(cell, world, ["--platform", platform, "--profile", profile], say)


def _simulate(cell: Cell, world: str, words: list[str], say: Say) -> None:
    """Let `bridge validate` play someone in both worlds, as a user would, and keep what it says."""
    head = head_of(cell, world, words, SEQUENCES)
    if is_done(FILE, head):
        return
    say(f"{cell.title}: {world}")
    who = str(folder_of(cell) or _rule(cell))
    data = cell.file.removeprefix(PREFIX)
    words = [who, "--scheduler", "pool", "--data", data, "--sequences", str(SEQUENCES), *words]
    policies: dict[str, Any] = json.loads(store.bridge("validate", *words, "--json"))["policies"][0]
    kept = {f"{where}_{key}": policies[where][key] for where in ("fast", "detailed") for key in KEPT}
    tail = {"jobs": policies["jobs"], "differing_starts": policies["differing_starts"]}
    store.add(FILE, head | kept | tail)


def _rule(cell: Cell) -> str:
    assert cell.heuristic is not None
    return cell.heuristic.rule + "+rule" * (cell.heuristic.kill == "rule")


def text(data: pd.DataFrame) -> dict[str, Any]:
    rows, sentences = [], []
    for world in WORLDS:
        done = data[data["test"] == world] if len(data) else data
        base: float | None = None
        for one in WHO:
            mine = done[done["row"] == one] if len(done) else done
            if not len(mine):
                rows.append([world, one, *["not run"] * 5])
                continue
            row = mine.iloc[0]
            base = float(row["detailed_slowdown"]) if one == BASE else base
            gain = "" if base is None else f"{100 * (row['detailed_slowdown'] / base - 1):+.1f} %"
            slowdowns = [f"{row[f'{where}_slowdown']:.2f}" for where in ("fast", "detailed")]
            starts = f"{row['differing_starts']:,.0f} of {row['jobs']:,.0f}"
            rows.append([world, one, *slowdowns, gain, f"{row['detailed_kills']:.0f}", starts])
        if len(done):
            total = f"{done['differing_starts'].sum():,.0f} of {done['jobs'].sum():,.0f}"
            sentences.append(f"{world}: {total} jobs start in another step than in the fast pool.")
    return {
        "sequences": SEQUENCES,
        "worlds": "; ".join(f"*{name}*: `--platform {p} --profile {k}`" for name, (p, k) in WORLDS.items()),
        "rows": rows,
        "said": sentences or [f"Not run; `{COMMAND} worlds`."],
    }
