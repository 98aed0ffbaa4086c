"""Running and waiting nodes over time, with the machine's capacity and the utilisation."""

from typing import TYPE_CHECKING

import numpy as np

from bridge.errors import BridgeError
from bridge.judge.jobs import attempts, started
from bridge.judge.metrics import Floats, level
from bridge.report.style import LIMIT, RUNNING, WAITING, new_figure, plain, time_unit
from bridge.report.tables import duration

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bridge.judge.run import Run

#: With more steps than this the picture shows means over equal spans, and says so.
STEPS = 1500
BINS = 600


def binned(instants: Floats, values: Floats, edges: Floats) -> tuple[Floats, Floats]:
    """Return the time-weighted mean and the maximum of a step function in each span between ``edges``.

    Args:
        instants, values: as from ``bridge.judge.metrics.level``; before the first instant the value is 0.
        edges: ascending, shape (spans + 1,).
    """
    area = np.concatenate(([0.0], np.cumsum(values[:-1] * np.diff(instants))))
    integral = np.interp(edges, instants, area)  # exact: the area grows linearly between instants
    mean = np.diff(integral) / np.diff(edges)
    at = np.searchsorted(instants, edges, side="right") - 1
    entering = np.where(at[:-1] >= 0, values[np.maximum(at[:-1], 0)], 0.0)
    most = entering.copy()
    span = np.searchsorted(edges, instants, side="right") - 1
    inside = (span >= 0) & (span < len(most))
    np.maximum.at(most, span[inside], values[inside])
    return mean, most


def timeline(run: "Run", title: str = "") -> "Figure":
    """Draw nodes in use (with capacity line and utilisation axis) above nodes that waiting jobs request.

    Raises:
        BridgeError: no job started, so that there is nothing to draw.
    """
    done = started(run.jobs)
    if len(done) == 0:
        raise BridgeError("no job started, so there is no timeline to draw", where=run.name)
    submit, start, end, nodes = done.submit, done.start, done.end, done.nodes
    running = level(np.concatenate((start, end)), np.concatenate((nodes, -nodes)))
    whole = ~attempts(done.jobs)  # a job that was killed waits from its submission to its last start
    waits = np.where(whole, nodes, 0.0)
    waiting = level(np.concatenate((submit, start)), np.concatenate((waits, -waits)))
    first, final = float(submit.min()), float(end.max())
    unit, unit_name = time_unit(final - first)

    figure = new_figure(10, 6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    means = len(running[0]) + len(waiting[0]) > STEPS and final > first
    note = ""
    if means:
        edges = np.linspace(first, final, BINS + 1)
        note = f", mean over {duration((final - first) / BINS)}"
        mean, most = binned(*running, edges)
        above.stairs(mean, edges / unit, fill=True, color=RUNNING, alpha=0.85, label="in use" + note)
        mean, most = binned(*waiting, edges)
        label = "requested by waiting jobs" + note
        below.stairs(mean, edges / unit, fill=True, color=WAITING, alpha=0.85, label=label)
        below.stairs(most, edges / unit, color=WAITING, linewidth=0.7, alpha=0.8, label="peak in that span")
    else:
        for axes, (instants, values), colour, label in (
            (above, running, RUNNING, "in use"),
            (below, waiting, WAITING, "requested by waiting jobs"),
        ):
            edges = np.append(instants, final) / unit
            axes.stairs(values, edges, fill=True, color=colour, alpha=0.85, label=label)

    capacity = run.capacity.get("nodes", 0)
    if capacity:
        above.axhline(
            capacity, color=LIMIT, linewidth=1.2, linestyle="--", label=f"capacity, {capacity:,} nodes"
        )
        above.set_ylim(0, max(capacity, float(running[1].max())) * 1.04)
        percent = above.secondary_yaxis(
            "right", functions=(lambda y: 100 * y / capacity, lambda y: y * capacity / 100)
        )
        percent.set_ylabel("utilisation (%)")
        percent.spines["right"].set_visible(False)
    below.set_ylim(bottom=0)
    above.set_ylabel("nodes in use")
    below.set_ylabel("nodes waited for")
    below.set_xlabel(f"time ({unit_name})")
    above.set_xlim(first / unit, max(final, first + 1e-9) / unit)
    for axes in (above, below):
        plain(axes)
        axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.0f}")
    figure.align_ylabels([above, below])
    handles = [*above.get_legend_handles_labels()[0], *below.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="outside lower center", ncols=2 if means else 3, frameon=False)
    used = run.metrics.get("utilisation.nodes")
    heading = title or run.name or "Schedule"
    if used is not None:
        heading += f": {len(done):,} jobs, utilisation {100 * used:.1f} %"
    above.set_title(heading + (" (oracle)" if run.oracle else ""), loc="left", fontweight="bold")
    return figure
