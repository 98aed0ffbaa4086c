"""RLSchert's agents in both worlds: the fast pool, and the same pool on a platform that is simulated."""

import json
import subprocess
import sys
from typing import Any

import pandas as pd

from bridge.errors import BridgeError
from papers import store
from papers.rlschert.numbers import COMMAND, markdown
from papers.rlschert.play import Player, Wanted
from papers.rlschert.rows import HONEST, METHODS, Method
from papers.rlschert.train import Data

FILE = "rlschert-worlds"
#: Sequences of the test set that are simulated; agents are those of the first seed.
SEQUENCES = 4
#: What is kept of each world.
KEPT = ("slowdown", "completion_time", "kills")
#: What is simulated -> platform and profile.
WORLDS = {
    "delay": ("exact-128", "delay"),
    "io 5 %": ("sp2-128", "io:0.05"),
}
WHO = tuple(
    next(m for m in METHODS if m.row == row)
    for row in (
        *("SJF", "SAF", "SAF, rule kill"),
        *("DeepRM", "RLSchert", "RLSchert, rule kill", "RLSchert, learned kill"),
    )
)


def run(wanted: Wanted, data: Data) -> None:
    """Simulate what has not been simulated, honestly: heuristics, and the agents of the first seed."""
    for player in wanted.players(data, WHO):
        trained_for = player.pupil.objective if player.pupil else "slowdown"
        if player.label == HONEST and player.seed <= 1 and trained_for == "slowdown":
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
    words = [who, "--scheduler", "slotted", "--data", str(data.path), "--sequences", str(SEQUENCES), *words]
    command = [sys.executable, "-m", "bridge.cli.main", "validate", *words, "--json"]
    done = subprocess.run(command, cwd=store.ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BridgeError("cannot be validated", where=" ".join(words), remedy=done.stderr.strip())
    told: dict[str, Any] = json.loads(done.stdout)["policies"][0]
    kept = {f"{where}_{key}": told[where][key] for where in ("fast", "detailed") for key in KEPT}
    head = {"row": player.row, "test": world, "label": player.label, "seed": player.seed}
    tail = {"jobs": told["jobs"], "differing_starts": told["differing_starts"]}
    store.add(FILE, head | {"digest": made_of} | kept | tail)


def _rule(method: Method) -> str:
    return method.rule + ("+rule" if method.kill == "rule" else "")


def text(data: pd.DataFrame) -> list[str]:
    """Return the section."""
    rows, said = [], []
    for world in WORLDS:
        base: float | None = None
        for method in WHO:
            of_row = [method.row, f"{method.row} (slowdown)"]
            mine = data[data["row"].isin(of_row) & (data["test"] == world)] if len(data) else data
            if not len(mine):
                rows.append([world, method.row, *["not run"] * 5])
                continue
            one = mine.iloc[0]
            base = float(one["detailed_slowdown"]) if method.row == "SAF" else base
            gain = "" if base is None else f"{100 * (one['detailed_slowdown'] / base - 1):+.1f} %"
            slowdowns = [f"{one[f'{where}_slowdown']:.2f}" for where in ("fast", "detailed")]
            starts = f"{one['differing_starts']:,.0f} of {one['jobs']:,.0f}"
            rows.append([world, method.row, *slowdowns, gain, f"{one['detailed_kills']:.0f}", starts])
        done = data[data["test"] == world] if len(data) else data
        if len(done):
            total = f"{done['differing_starts'].sum():,.0f} of {done['jobs'].sum():,.0f}"
            said.append(f"- {world}: {total} jobs start in another step than in the fast pool.")
    heads = ("world", "method", "fast", "detailed", "detailed, to SAF", "kills", "other starts")
    worlds = "; ".join(f"*{name}*: `--platform {p} --profile {k}`" for name, (p, k) in WORLDS.items())
    return [
        "## In both worlds",
        "",
        f"The first {SEQUENCES} sequences of the test set, honest, agents of seed 1, mean slowdown in the "
        "fast pool and on a platform that SimGrid simulates, where the same agents decide over ZeroMQ, "
        f"step by step ({worlds}). So few sequences do not tell methods from each other; they tell what "
        "is left of a gain. A job whose transfers make it late by a second takes a whole step more.",
        "",
        *markdown(heads, rows),
        *(said or [f"- Not run; `{COMMAND} --part worlds`."]),
        "",
    ]
