"""RLSchert's agents in both worlds: the fast pool, and the same pool on a platform that is simulated."""

import json
from typing import Any

import pandas as pd

from papers import store
from papers.rlschert.agents import Data
from papers.rlschert.found import COMMAND
from papers.rlschert.play import Player, Wanted
from papers.rlschert.study import HONEST, Method, method

FILE = "rlschert-worlds"
#: Sequences of the test set that are simulated; agents are those of the first seed.
SEQUENCES = 4
#: What is kept of each world.
KEPT = ("slowdown", "completion_time", "kills")
#: What is simulated -> platform and profile.
WORLDS = {"delay": ("exact-128", "delay"), "io 5 %": ("sp2-128", "io:0.05")}
_AGENTS = ("DeepRM", "RLSchert", "RLSchert, rule kill", "RLSchert, learned kill")
WHO = tuple(method(row) for row in ("SJF", "SAF", "SAF, rule kill", *_AGENTS))


def run(wanted: Wanted, data: Data) -> None:
    """Simulate what has not been simulated, honestly: heuristics, and the agents of the first seed."""
    for player in wanted.players(data, WHO, "slowdown"):
        if player.label == HONEST and player.seed <= 1:
            for world, (platform, profile) in WORLDS.items():
                _simulate(player, world, ["--platform", platform, "--profile", profile], data, wanted)


def _simulate(player: Player, world: str, words: list[str], data: Data, wanted: Wanted) -> None:
    """Let `bridge validate` play someone in both worlds, as a user would, and keep what it says."""
    recipe = store.unusual(player.pupil.recipe) if player.pupil else _rule(player.method)
    made_of = store.digest(recipe, words, SEQUENCES, data.sha256)
    if store.has(FILE, player.row, world, player.label, player.seed, made_of):
        return
    wanted.say(f"{player.row}: {world}")
    who = str(player.folder(data) or _rule(player.method))
    words = [who, "--scheduler", "pool", "--data", str(data.path), "--sequences", str(SEQUENCES), *words]
    told: dict[str, Any] = json.loads(store.bridge("validate", *words, "--json"))["policies"][0]
    kept = {f"{where}_{key}": told[where][key] for where in ("fast", "detailed") for key in KEPT}
    head = {"row": player.row, "test": world, "label": player.label, "seed": player.seed}
    tail = {"jobs": told["jobs"], "differing_starts": told["differing_starts"]}
    store.add(FILE, head | {"digest": made_of} | kept | tail)


def _rule(method: Method) -> str:
    return method.rule + ("+rule" if method.kill == "rule" else "")


def text(data: pd.DataFrame) -> dict[str, Any]:
    """Return the section."""
    rows, said = [], []
    for world in WORLDS:
        done = data[data["test"] == world] if len(data) else data
        base: float | None = None
        for one in WHO:
            mine = done[done["row"].isin([one.row, f"{one.row} (slowdown)"])] if len(done) else done
            if not len(mine):
                rows.append([world, one.row, *["not run"] * 5])
                continue
            found = mine.iloc[0]
            base = float(found["detailed_slowdown"]) if one.row == "SAF" else base
            gain = "" if base is None else f"{100 * (found['detailed_slowdown'] / base - 1):+.1f} %"
            slowdowns = [f"{found[f'{where}_slowdown']:.2f}" for where in ("fast", "detailed")]
            starts = f"{found['differing_starts']:,.0f} of {found['jobs']:,.0f}"
            rows.append([world, one.row, *slowdowns, gain, f"{found['detailed_kills']:.0f}", starts])
        if len(done):
            total = f"{done['differing_starts'].sum():,.0f} of {done['jobs'].sum():,.0f}"
            said.append(f"{world}: {total} jobs start in another step than in the fast pool.")
    return {
        "sequences": SEQUENCES,
        "worlds": "; ".join(f"*{name}*: `--platform {p} --profile {k}`" for name, (p, k) in WORLDS.items()),
        "rows": rows,
        "said": said or [f"Not run; `{COMMAND} --part worlds`."],
    }
