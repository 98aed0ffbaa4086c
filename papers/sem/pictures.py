"""Pictures of SEM's page: its Figures 5, 6, 7 and 11."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from benchmarks.sem import compared
from bridge.report.style import COLOURS, new_figure, plain, save
from papers import store
from papers.sem.data import LOGGED, LOGS, NAME, SCHEDULES, pick

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_OF_LOG = dict(zip(LOGS, COLOURS, strict=False))
_OF_AGENT = {"DRAS": COLOURS[5], "SEM": COLOURS[0]}


def _panels(titles: Iterable[str]) -> "tuple[Figure, list[Axes]]":
    """Return a figure with a panel per title."""
    titles = list(titles)
    figure = new_figure(4.5 * max(len(titles), 1.5), 3.8)
    axes = list(figure.subplots(1, len(titles), squeeze=False)[0])
    for one, title in zip(axes, titles, strict=True):
        one.set_title(title, fontsize="medium")
        plain(one)
    return figure, axes


def _saved(figure: "Figure", number: int) -> Path:
    path = store.RESULTS / f"{NAME}-figure-{number}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path)
    return path


def running_jobs(data: pd.DataFrame) -> Path:
    """Draw Figure 5: the share of time against the number of running jobs."""
    figure, (axes,) = _panels([""])
    for log, colour in _OF_LOG.items():
        for schedule in SCHEDULES:
            shares = 100 * pick(data, "cdf", log, schedule)
            line = "-" if schedule == LOGGED else "--"
            label = f"{log}, {schedule}"
            axes.step(shares.index, shares, line, where="post", color=colour, label=label)
    axes.set_xlabel("running jobs, at most")
    axes.set_ylabel("share of the period, %")
    axes.set_ylim(0, 101)
    axes.legend(frameon=False, fontsize="small", loc="lower right")
    return _saved(figure, 5)


def coverage(data: pd.DataFrame) -> Path:
    """Draw Figure 7: how much of the period K rows show 90 % and 95 % of the nodes in use."""
    figure, axes = _panels(SCHEDULES)
    for one, schedule in zip(axes, SCHEDULES, strict=True):
        for log, colour in _OF_LOG.items():
            for percent, line in ((90, "o-"), (95, "o--")):
                shares = 100 * pick(data, f"covered {percent}", log, schedule)
                label = f"{log}, {percent} % of the nodes"
                one.plot(shares.index, shares, line, markersize=3, color=colour, label=label)
        one.set_xlabel("K")
        one.set_ylim(50, 101)
    axes[0].set_ylabel("share of the period, %")
    axes[1].legend(frameon=False, fontsize="small", loc="lower right")
    return _saved(figure, 7)


def windows(costs: pd.DataFrame) -> Path:
    """Draw Figure 6: training against the window."""
    found = compared(costs, "window")
    figure, (axes,) = _panels([""])
    for who, colour in _OF_AGENT.items():
        axes.plot(found["window"], found["training", who], "o-", color=colour, label=who)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("W, waiting jobs that are shown")
    axes.set_ylabel("training, s for 1,000 jobs")
    axes.legend(frameon=False, fontsize="small", loc="center right")
    return _saved(figure, 6)


def scaling(costs: pd.DataFrame) -> Path:
    """Draw Figure 11: training and inference against the size of the machine."""
    found = compared(costs, "scaling")
    nodes = [int(n) for n in found["nodes"]]
    figure, axes = _panels(("training", "inference"))
    for one, quantity in zip(axes, ("training", "inference"), strict=True):
        for who, colour in _OF_AGENT.items():
            one.plot(nodes, found[quantity, who], "o-", color=colour, label=who)
        one.set_xscale("log", base=2)
        one.set_yscale("log")
        one.yaxis.set_major_formatter("{x:g}")
        one.set_xticks(nodes, [f"{n:,}" for n in nodes])
        one.set_xlabel("nodes")
    axes[0].set_ylabel("s for 1,000 jobs")
    axes[1].legend(frameon=False, fontsize="small", loc="center right")
    return _saved(figure, 11)
