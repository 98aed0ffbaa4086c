"""How agents of one algorithm converge: their waits over the base's while they learn, episode by episode."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from bridge.learn.folder import PROGRESS
from bridge.report.style import COLOURS, new_figure, plain, save
from papers import store
from papers.rows import Row, Table

Floats = npt.NDArray[np.float64]
#: Episodes of the moving mean: they differ from each other by more than what is learnt.
WINDOW = 20


def curves(table: Table, row: Row) -> list[pd.DataFrame]:
    """Return the training curve of each of a row's seeds."""
    found = store.read(table.name)
    if not len(found):
        return []
    mine = found[(found["row"] == row.name) & (found["kind"] == "agent") & (found["smoke"] == 0)]
    files = [store.WORK / "agents" / name / PROGRESS for name in sorted(set(mine["agent"]))]
    return [pd.read_parquet(file) for file in files if file.exists()]


def moving(curve: pd.DataFrame) -> Floats:
    """Return the agent's mean over the base's, on `WINDOW` episodes in a row."""
    ones = np.ones(WINDOW)
    agent, base = (np.convolve(curve[name].to_numpy(np.float64), ones, "valid") for name in _MEANS)
    return np.asarray(agent / base, np.float64)


_MEANS = ("train_mean", "base_mean")


def said(table: Table) -> list[str]:
    """Return a sentence for each agent."""
    text = []
    for row in table.rows:
        found = curves(table, row)
        if not found:
            continue
        smooth = np.stack([moving(curve) for curve in found])
        last = smooth.shape[1] - 1
        there = ", ".join(
            f"{smooth[:, k].mean():.2f} in episodes {k + 1}–{k + WINDOW}" for k in (0, last // 2, last)
        )
        entropy = ", ".join(
            f"{np.mean([c['entropy'].iloc[k] for c in found]):.2f}" for k in (0, last // 2, -1)
        )
        text.append(
            f"- {row.name}: wait over the base's on the same episodes, with exploration: {there} (mean of "
            f"{len(found)} seeds); entropy of the policy at first, in the middle and at the end {entropy}."
        )
    return text


def draw(table: Table) -> Path | None:
    """Draw the moving means, mean of seeds and their range; None where nobody was trained here."""
    lines = [(row.name, found) for row in table.rows if (found := curves(table, row))]
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
    axes.axhline(1.0, color="#333333", linewidth=0.8)
    axes.set_xlabel("episode")
    axes.set_ylabel(f"wait / base's, {WINDOW} episodes")
    axes.legend(frameon=False, fontsize="small")
    plain(axes)
    path = store.RESULTS / f"{table.name}-convergence.svg"
    save(figure, path)
    return path
