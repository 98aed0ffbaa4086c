"""Pictures of the results: training curves, and what inspectors reject."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from bridge.errors import BridgeError
from bridge.learn.folder import PROGRESS
from bridge.report.style import COLOURS, new_figure, plain, save
from papers import store
from papers.rows import Table


def curves(table: Table) -> Path | None:
    """Draw how each row's agents did while they learnt: validated metric over the base's, mean of seeds.

    Returns:
        The picture, or None where no agent of the table has been trained here.
    """
    found = store.read(table.name)
    if not len(found):
        return None
    agents = found[(found["kind"] == "agent") & (found["smoke"] == 0)]
    lines = []
    for row in table.rows:
        names = sorted(set(agents[agents["row"] == row.name]["agent"]))
        folders = [store.WORK / "agents" / name for name in names]
        seeds = [pd.read_parquet(f / PROGRESS) for f in folders if (f / PROGRESS).exists()]
        if seeds:
            lines.append((row.name, seeds))
    if not lines:
        return None
    figure = new_figure(8.0, 4.5)
    axes = figure.subplots()
    for k, (name, seeds) in enumerate(lines):
        ratios = [
            p.dropna(subset=["valid_mean"]).set_index("epoch").eval("valid_mean / valid_base") for p in seeds
        ]
        mean = pd.concat(ratios, axis=1).mean(axis=1)
        style = "-" if k < len(COLOURS) else "--"
        label = f"{name} ({len(seeds)} seed{'s' * (len(seeds) > 1)})"
        axes.plot(mean.index, mean, style, color=COLOURS[k % len(COLOURS)], label=label)
    axes.axhline(1.0, color="#333333", linewidth=0.8)
    axes.set_xlabel("epoch")
    axes.set_ylabel("agent / base, validation sequences")
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    ticks = np.array([0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0])
    axes.set_yticks(ticks[(ticks >= low) & (ticks <= high)])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    plain(axes)
    figure.legend(loc="outside right upper", frameon=False, fontsize="small")
    path = store.RESULTS / f"{table.name}-curves.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path)
    return path


def explained(agent: Path) -> Path:
    """Draw what an agent of the zoo chooses, by the command that users type."""
    path = store.RESULTS / f"{agent.name}-explained.svg"
    command = [
        sys.executable,
        "-m",
        "bridge.cli.main",
        "explain",
        str(agent),
        "--no-save",
        "--out",
        str(path),
    ]
    done = subprocess.run(command, cwd=store.ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BridgeError("cannot be explained", where=str(agent), remedy=done.stderr.strip())
    return path
