"""Pictures of the results: training curves, Kiviat charts, what agents choose; how all pictures are made."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.report.plots import COLOURS, new_figure, plain, save
from bridge.study.findings import Findings
from bridge.study.report import HEADS
from bridge.study.spec import Study
from papers import curves as training
from papers import store

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def panels(
    width: float, height: float, titles: Sequence[str] = ("",), **more: Any
) -> "tuple[Figure, list[Axes]]":
    """Return a figure with a panel per title, side by side; its size in inches."""
    figure = new_figure(width, height)
    axes = list(figure.subplots(1, len(titles), squeeze=False, **more)[0])
    for one, title in zip(axes, titles, strict=True):
        if title:
            one.set_title(title, fontsize="medium")
        plain(one)
    return figure, axes


def legend(axes: "Axes", **more: Any) -> None:
    """Put a legend into a panel, if there is anything to tell apart."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize="small", **more)


def saved(figure: "Figure", name: str) -> Path:
    """Save a picture beside the pages; returns its file."""
    path = store.RESULTS / f"{name}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path)
    return path


def curves(table: str) -> Path | None:
    """Draw how each row's agents did while they learnt: validated metric over the base's, mean of seeds.

    Returns:
        The picture, or None where no agent of the table has been trained.
    """
    lines = list(training.read(table).items())
    if not lines:
        return None
    figure, (axes,) = panels(8.0, 4.5)
    for k, (name, found) in enumerate(lines):
        mean, seeds = training.together(found, "validated")["mean"], training.seeds_of(found)
        style = "-" if k < len(COLOURS) else "--"
        label = f"{name} ({seeds} seed{'s' * (seeds > 1)})"
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
    figure.legend(loc="outside right upper", frameon=False, fontsize="small")
    return saved(figure, f"{table}-curves")


def convergence(table: str) -> Path | None:
    """Draw the metric over the base's while agents learn: moving means, mean of seeds and their range."""
    lines = list(training.read(table).items())
    if not lines:
        return None
    figure, (axes,) = panels(7.0, 3.6)
    for (name, found), colour in zip(lines, COLOURS, strict=False):
        seeds, smooth = training.seeds_of(found), training.together(found, "learning")
        smooth = smooth[smooth["agents"] == seeds]
        axes.plot(smooth.index, smooth["mean"], color=colour, label=f"{name} ({seeds} seeds)")
        axes.fill_between(smooth.index, smooth["low"], smooth["high"], color=colour, alpha=0.2, linewidth=0)
    axes.axhline(1.0, color="#333333", linewidth=0.8)
    axes.set_xlabel("episode")
    axes.set_ylabel(f"wait / base's, {training.WINDOW} episodes")
    legend(axes)
    return saved(figure, f"{table}-convergence")


def kiviat(study: Study, found: Findings) -> Path | None:
    """Draw one Kiviat chart per workload: every metric over the best one's (MRSch, Figure 5).

    Returns:
        The picture, or None where nobody has played.
    """
    test, metrics = study.tests[0].name, [m for m in study.metrics if m != "bsld"]
    logs = list(dict.fromkeys(log for _, log in found.cells))[:5]
    if not logs:
        return None
    figure = new_figure(3.0 * len(logs), 3.9)
    angles = np.linspace(0, 2 * np.pi, len(metrics), endpoint=False)
    names = [HEADS[m][0].split(",")[0].replace("mean ", "") for m in metrics]
    drawn: dict[str, Any] = {}
    for k, log in enumerate(logs):
        axes: Any = figure.add_subplot(1, len(logs), k + 1, projection="polar")
        for c, (name, share) in enumerate(_shares(study, found, log, test, metrics).items()):
            closed = np.append(angles, angles[0]), np.append(share, share[0])
            (one,) = axes.plot(*closed, color=COLOURS[c % len(COLOURS)], linewidth=1.3)
            drawn.setdefault(name, one)
        axes.set_xticks(angles, names, fontsize=7)
        axes.set_ylim(0, 1.02)
        axes.set_yticks([0.25, 0.5, 0.75, 1.0], ["", "0.5", "", "1"], fontsize=6)
        axes.set_title(log, fontsize=9, pad=12)
    shown, names = list(drawn.values()), list(drawn)
    figure.legend(shown, names, loc="outside lower center", ncols=len(names), frameon=False, fontsize=8)
    return saved(figure, f"{study.name}-kiviat")


def _shares(study: Study, found: Findings, log: str, test: str, metrics: list[str]) -> dict[str, Any]:
    """Return for everybody on one workload how near each metric comes to the best one's: 1 is the best."""
    goods = {}
    for row in (row for row in study.rows if (row.name, log) in found.cells):
        told = found.row(row.name, log, test)
        means = [told["mean"]["mean"] if m == study.metric else told["more"][m] for m in metrics]
        if None not in means:
            pairs = zip(metrics, means, strict=True)
            goods[row.name] = np.array([v if m.startswith("utilisation") else 1 / v for m, v in pairs])
    best = np.max(np.stack(list(goods.values())), axis=0) if goods else 1.0
    return {name: good / best for name, good in goods.items()}


def explained(agent: Path) -> Path:
    """Draw what an agent of the zoo chooses, by the command that users type.

    Raises:
        BridgeError: it cannot be explained: an agent that rejects nothing.
    """
    path = store.RESULTS / f"{agent.name}-explained.svg"
    store.bridge("explain", str(agent), "--no-save", "--out", str(path))
    return path
