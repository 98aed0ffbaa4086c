"""Pictures of SEM's page: its Figures 5, 6, 7 and 11."""

from pathlib import Path

import pandas as pd

from bridge.report.plots import COLOURS
from papers.pictures import legend, panels, saved
from papers.sem.running import LOGGED, LOGS, NAME, SCHEDULES, pick
from papers.sem.speed import compared

_OF_LOG = dict(zip(LOGS, COLOURS, strict=False))
_OF_AGENT = {"DRAS": COLOURS[5], "SEM": COLOURS[0]}


def draw(data: pd.DataFrame, costs: pd.DataFrame) -> list[Path]:
    return [running_jobs(data), windows(costs), coverage(data), scaling(costs)]


def running_jobs(data: pd.DataFrame) -> Path:
    """Draw Figure 5: the share of time against the number of running jobs."""
    figure, (axes,) = panels(6.75, 3.8)
    for log, colour in _OF_LOG.items():
        for schedule in SCHEDULES:
            shares = 100 * pick(data, "cdf", log, schedule)
            line = "-" if schedule == LOGGED else "--"
            label = f"{log}, {schedule}"
            axes.step(shares.index, shares, line, where="post", color=colour, label=label)
    axes.set_xlabel("running jobs, at most")
    axes.set_ylabel("share of the period, %")
    axes.set_ylim(0, 101)
    legend(axes, loc="lower right")
    return saved(figure, f"{NAME}-figure-5")


def coverage(data: pd.DataFrame) -> Path:
    """Draw Figure 7: how much of the period K rows show 90 % and 95 % of the nodes in use."""
    figure, axes = panels(9.0, 3.8, SCHEDULES)
    for one, schedule in zip(axes, SCHEDULES, strict=True):
        for log, colour in _OF_LOG.items():
            for percent, line in ((90, "o-"), (95, "o--")):
                shares = 100 * pick(data, f"covered {percent}", log, schedule)
                label = f"{log}, {percent} % of the nodes"
                one.plot(shares.index, shares, line, markersize=3, color=colour, label=label)
        one.set_xlabel("K")
        one.set_ylim(50, 101)
    axes[0].set_ylabel("share of the period, %")
    legend(axes[1], loc="lower right")
    return saved(figure, f"{NAME}-figure-7")


def windows(costs: pd.DataFrame) -> Path:
    """Draw Figure 6: training against the window."""
    ratios = compared(costs, "window")
    figure, (axes,) = panels(6.75, 3.8)
    for who, colour in _OF_AGENT.items():
        axes.plot(ratios["window"], ratios["training", who], "o-", color=colour, label=who)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("W, waiting jobs that are shown")
    axes.set_ylabel("training, s for 1,000 jobs")
    legend(axes, loc="center right")
    return saved(figure, f"{NAME}-figure-6")


def scaling(costs: pd.DataFrame) -> Path:
    """Draw Figure 11: training and inference against the size of the machine."""
    ratios = compared(costs, "scaling")
    nodes = [int(n) for n in ratios["nodes"]]
    figure, axes = panels(9.0, 3.8, ("training", "inference"))
    for one in axes:
        for who, colour in _OF_AGENT.items():
            one.plot(nodes, ratios[one.get_title(), who], "o-", color=colour, label=who)
        one.set_xscale("log", base=2)
        one.set_yscale("log")
        one.yaxis.set_major_formatter("{x:g}")
        one.set_xticks(nodes, [f"{n:,}" for n in nodes])
        one.set_xlabel("nodes")
    axes[0].set_ylabel("s for 1,000 jobs")
    legend(axes[1], loc="center right")
    return saved(figure, f"{NAME}-figure-11")
