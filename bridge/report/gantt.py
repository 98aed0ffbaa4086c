"""Gantt chart of a small run: hosts up, time to the right, one bar per contiguous allocation interval."""

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from bridge.errors import BridgeError
from bridge.judge.jobs import started
from bridge.report.style import COLOURS, DARK_ON, new_figure, plain, time_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bridge.judge.run import Run

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Above this a Gantt chart is a blur.
MOST_JOBS = 2_000
#: Job ids are written into the bars up to this many jobs.
LABELLED = 80


def gantt(run: "Run", title: str = "", colour_by: Literal["auto", "user", "job"] = "auto") -> "Figure":
    """Draw the schedule; jobs without concrete hosts are placed first-fit for the picture.

    Args:
        run: with at most ``MOST_JOBS`` started jobs.
        title: heading; the run's name if not given.
        colour_by: ``user`` has a legend; ``auto`` takes it if the run has users, and no more than colours.

    Raises:
        BridgeError: too many jobs, none, unreadable host ids, or no users to colour by.
    """
    done = started(run.jobs)
    jobs, where = done.jobs, run.name
    if len(jobs) == 0:
        raise BridgeError("no job started, so there is no Gantt chart to draw", where=where)
    if len(jobs) > MOST_JOBS:
        raise BridgeError(
            f"a Gantt chart shows at most {MOST_JOBS:,} jobs, the run has {len(jobs):,}",
            where=where,
            remedy="Replay fewer jobs (--first), or draw the timeline.",
        )
    from matplotlib.collections import PolyCollection
    from matplotlib.ticker import MaxNLocator

    from bridge.judge.hosts import hosts_of

    nodes = run.capacity["nodes"]
    allocation, placed = hosts_of(jobs, nodes, where)
    first, final = float(done.submit.min()), float(done.end.max())
    unit, unit_name = time_unit(final - first)
    owner = np.repeat(np.arange(len(jobs)), np.diff(allocation.offsets))
    left, right = done.start[owner] / unit, done.end[owner] / unit
    low, high = allocation.first, allocation.last + 1
    corners = np.stack([np.stack([left, right, right, left], 1), np.stack([low, low, high, high], 1)], 2)

    names, group = _groups(run, jobs.get("user"), len(jobs), colour_by)
    figure = new_figure(10, float(np.clip(2.5 + nodes / 24, 4.0, 8.0)))
    axes = figure.subplots()
    edge = 0.6 if len(jobs) <= 300 else 0.2
    colours = np.array(COLOURS)[group % len(COLOURS)][owner]
    axes.add_collection(
        PolyCollection(list(corners), facecolors=colours.tolist(), edgecolors="white", linewidths=edge)
    )
    axes.set_xlim(first / unit, final / unit)
    axes.set_ylim(0, max(nodes, int(high.max())))
    if len(jobs) <= LABELLED:
        _label(axes, jobs["job_id"].astype(str).to_numpy(object), owner, left, right, low, high, colours)
    if names:
        from matplotlib.patches import Patch

        handles = [
            Patch(color=COLOURS[k % len(COLOURS)], label=f"user {name}") for k, name in enumerate(names)
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 8), frameon=False)
    axes.set_xlabel(f"time ({unit_name})")
    axes.set_ylabel("host")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    plain(axes, grid="x")
    heading = f"{title or where or 'Schedule'}: {len(jobs):,} jobs on {nodes:,} hosts"
    if not placed:
        heading += " (placed first-fit)"
    axes.set_title(heading + (" (oracle)" if run.oracle else ""), loc="left", fontweight="bold")
    return figure


def _groups(run: "Run", users: "object", count: int, colour_by: str) -> tuple[list[str], Ints]:
    """Return the legend's names (empty if coloured per job) and each job's colour group."""
    if users is not None and colour_by != "job":
        distinct, group = np.unique(np.asarray(users), return_inverse=True)
        if colour_by == "user" or len(distinct) <= len(COLOURS):
            return [str(name) for name in distinct], group.astype(np.int64)
    if colour_by == "user":
        raise BridgeError("the run has no users to colour by", where=run.name, remedy="Colour by job.")
    return [], np.arange(count)


def _label(
    axes: "Axes",
    ids: "np.ndarray[tuple[int], np.dtype[np.object_]]",
    owner: Ints,
    left: Floats,
    right: Floats,
    low: Ints,
    high: Ints,
    shown: "np.ndarray[tuple[int], np.dtype[np.str_]]",
) -> None:
    """Write each job's id into its largest bar, where it fits."""
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    width, height = (right - left) / (x1 - x0), (high - low) / (y1 - y0)
    area = width * height
    for job in range(len(ids)):
        bars = np.flatnonzero(owner == job)
        bar = bars[np.argmax(area[bars])]
        text = str(ids[job])
        if width[bar] > 0.009 * (len(text) + 1) and height[bar] > 0.025:
            middle = (left[bar] + right[bar]) / 2, (low[bar] + high[bar]) / 2
            axes.text(*middle, text, ha="center", va="center", fontsize=7, color=DARK_ON[str(shown[bar])])
