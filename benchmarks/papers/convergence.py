"""How agents of one algorithm converge: reward a decision while they learn, episode by episode."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.papers import store
from benchmarks.papers.rows import Row, Table
from bridge.learn.folder import PROGRESS
from bridge.report.style import COLOURS, new_figure, plain, save

Floats = npt.NDArray[np.float64]
#: Episodes of the moving mean: they differ from each other by more than what is learnt.
WINDOW = 20
#: From here on it has converged: so much of the way from the first to the last moving mean.
SHARE = 0.95


def rewards(table: Table, row: Row) -> list[Floats]:
    """Return each trained seed's reward a decision, [episodes]."""
    found = store.read(table.name)
    if not len(found):
        return []
    mine = found[(found["row"] == row.name) & (found["kind"] == "agent") & (found["smoke"] == 0)]
    files = [store.WORK / "agents" / name / PROGRESS for name in sorted(set(mine["agent"]))]
    curves = [pd.read_parquet(file) for file in files if file.exists()]
    return [(c["reward_mean"] / c["decisions"]).to_numpy(np.float64) for c in curves]


def moving(values: Floats) -> Floats:
    """Return the means of `WINDOW` episodes in a row."""
    return np.asarray(np.convolve(values, np.ones(WINDOW) / WINDOW, "valid"), np.float64)


def converged(values: Floats) -> int:
    """Return the episode from which on moving means stay beyond `SHARE` of the way to the last one."""
    smooth = moving(values)
    way = (smooth - smooth[0]) / (smooth[-1] - smooth[0])
    below = np.flatnonzero(way < SHARE)
    return int(below[-1]) + WINDOW + 1 if len(below) else WINDOW


def said(table: Table) -> list[str]:
    """Return a sentence for each agent."""
    text = []
    for row in table.rows:
        curves = rewards(table, row)
        if curves:
            when = ", ".join(str(converged(c)) for c in curves)
            first, last = (np.mean([moving(c)[k] for c in curves]) for k in (0, -1))
            text.append(
                f"- {row.name}: reward a decision {first:.4g} → {last:.4g} (moving means of {WINDOW} "
                f"episodes); {SHARE:.0%} of the way after {when} episodes (by seed)."
            )
    return text


def draw(table: Table) -> Path | None:
    """Draw the moving means, mean of seeds and their range; None where nobody was trained here."""
    lines = [(row.name, found) for row in table.rows if (found := rewards(table, row))]
    if not lines:
        return None
    figure = new_figure(7.0, 3.6)
    axes = figure.subplots()
    for c, (name, found) in enumerate(lines):
        shortest = min(len(f) for f in found)
        smooth = np.stack([moving(f[:shortest]) for f in found])
        episodes = np.arange(WINDOW, shortest + 1)
        axes.plot(episodes, smooth.mean(0), color=COLOURS[c], label=f"{name} ({len(found)} seeds)")
        axes.fill_between(episodes, smooth.min(0), smooth.max(0), color=COLOURS[c], alpha=0.2, linewidth=0)
    axes.set_xlabel("episode")
    axes.set_ylabel(f"reward a decision, mean of {WINDOW}")
    axes.legend(frameon=False, fontsize="small")
    plain(axes)
    path = store.RESULTS / f"{table.name}-convergence.svg"
    save(figure, path)
    return path
