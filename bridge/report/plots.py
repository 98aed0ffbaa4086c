"""The pictures of runs and of agents: nodes over time, Gantt chart, distributions; their looks."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from bridge.base.arrays import Floats, Ints
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.base.files import atomic_write
from bridge.judge.jobs import Started, is_killed_attempt, started
from bridge.judge.metrics import BSLD_THRESHOLD, bounded_slowdown, step_function
from bridge.judge.run import Run
from bridge.report.picture_files import kind_of_picture
from bridge.report.svg import shrink
from bridge.report.tables import duration

#: (values, shares of the sample at or below each), ascending.
Curve = tuple[Floats, Floats]
#: With more steps than this a timeline shows means over equal spans, so many, and says so.
STEPS, BINS = 1500, 600
#: Above this a Gantt chart is a blur; job ids are written into the bars up to so many jobs.
MOST_JOBS, LABELLED = 2_000, 80
#: Points of a distribution's curve, and what tells curves of one colour apart.
POINTS, LINES = 800, ("-", "--", "-.", ":")
#: Pictures in a row of an explanation.
COLUMNS = 4
#: Tick positions of a wait axis, in s.
WAITS: tuple[tuple[float, str], ...] = (
    *((1, "1 s"), (10, "10 s"), (60, "1 min"), (600, "10 min"), (3600, "1 h"), (6 * 3600, "6 h")),
    *((86_400, "1 d"), (7 * 86_400, "1 week"), (30 * 86_400, "30 d")),
)
#: Okabe and Ito, "Color Universal Design" (2008), without black and with the yellow last.
COLOURS: tuple[str, ...] = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C8C8C", "#F0E442"),
)
#: Text colour that reads well on each of them.
DARK_ON: dict[str, str] = dict.fromkeys(COLOURS, "black") | dict.fromkeys(("#0072B2", "#009E73"), "white")
RUNNING, WAITING, LIMIT = COLOURS[0], COLOURS[1], "#333333"


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of ``width`` × ``height`` inches that knows nothing of pyplot."""
    return Figure(figsize=(width, height), layout="constrained")


def plain(axes: Axes, *, grid: str = "y") -> None:
    """Take the frame off and put a faint grid behind the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.grid(visible=True, axis=grid, color="#dddddd", linewidth=0.6)  # type: ignore[arg-type]


def time_unit(span: float) -> tuple[float, str]:
    """Return the unit that suits a time axis of ``span`` seconds: its length in s, and its name."""
    for limit, unit, name in ((600, 1.0, "s"), (10_800, 60.0, "min"), (259_200, 3600.0, "h")):
        if span <= limit:
            return unit, name
    return 86_400.0, "days"


def save(figure: Figure, path: Path | str) -> None:
    """Save a figure as PNG or SVG, by the suffix; an existing file is replaced only if all went well."""
    path = Path(path)
    kind = kind_of_picture(path)
    metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {}
    with atomic_write(path) as out, mpl.rc_context({"svg.hashsalt": "bridge", "svg.fonttype": "none"}):
        data = io.BytesIO()
        figure.savefig(data, format=kind, dpi=150, metadata=metadata)
        out.write(shrink(data.getvalue().decode()).encode() if kind == "svg" else data.getvalue())


def _started(run: Run, name: str, what: str, *, killed: bool = True) -> Started:
    """Return the rows that started; without any there is nothing to draw."""
    done = started(run.jobs, killed=killed)
    if len(done) == 0:
        raise BridgeError(f"no job started, so there is no {what} to draw", where=name)
    return done


def _headline(axes: Axes, text: str, run: Run) -> None:
    axes.set_title(text + (" (oracle)" if run.oracle else ""), loc="left", fontweight="bold")


def _legend(figure: Figure, handles: Sequence[Artist], columns: int) -> None:
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)


def bin_step_function(instants: Floats, values: Floats, edges: Floats) -> tuple[Floats, Floats]:
    """Return the time-weighted mean and the maximum of a step function in each span between ``edges``.

    `instants`, `values`: as from ``bridge.judge.metrics.step_function``; before the first instant the value
    is 0.
    """
    area = np.concatenate(([0.0], np.cumsum(values[:-1] * np.diff(instants))))
    integral = np.interp(edges, instants, area)  # exact: the area grows linearly between instants
    mean = np.diff(integral) / np.diff(edges)
    at = np.searchsorted(instants, edges, side="right") - 1
    most = np.where(at[:-1] >= 0, values[np.maximum(at[:-1], 0)], 0.0)  # what it enters the span with
    span = np.searchsorted(edges, instants, side="right") - 1
    inside = (span >= 0) & (span < len(most))
    np.maximum.at(most, span[inside], values[inside])
    return mean, most


def timeline(run: Run) -> Figure:
    """Draw nodes in use (with capacity line and utilisation axis) above nodes that waiting jobs request."""
    done = _started(run, run.name, "timeline")
    running = step_function(np.append(done.start, done.end), np.append(done.nodes, -done.nodes))
    # A job that was killed waits from its submission to its last start.
    waits = np.where(is_killed_attempt(done.jobs), 0.0, done.nodes)
    waiting = step_function(np.append(done.submit, done.start), np.append(waits, -waits))
    first, final = float(done.submit.min()), float(done.end.max())
    unit, unit_name = time_unit(final - first)

    figure = new_figure(10, 6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    means = len(running[0]) + len(waiting[0]) > STEPS and final > first
    note = f", mean over {duration((final - first) / BINS)}" if means else ""
    panels = ((above, running, RUNNING, "in use"), (below, waiting, WAITING, "requested by waiting jobs"))
    for axes, steps, colour, label in panels:
        edges = np.linspace(first, final, BINS + 1) if means else np.append(steps[0], final)
        heights, most = bin_step_function(*steps, edges) if means else (steps[1], steps[1])
        axes.stairs(heights, edges / unit, fill=True, color=colour, alpha=0.85, label=label + note)
    if means:
        below.stairs(most, edges / unit, color=WAITING, linewidth=0.7, alpha=0.8, label="peak in that span")

    capacity = run.capacity.get("nodes", 0)
    if capacity:
        label = f"capacity, {counted(capacity, 'node')}"
        above.axhline(capacity, color=LIMIT, linewidth=1.2, linestyle="--", label=label)
        above.set_ylim(0, max(capacity, float(running[1].max())) * 1.04)
        both_ways = (lambda y: 100 * y / capacity, lambda y: y * capacity / 100)
        percent = above.secondary_yaxis("right", functions=both_ways)
        percent.set_ylabel("utilisation (%)")
        percent.spines["right"].set_visible(False)
    above.set(ylabel="nodes in use", xlim=(first / unit, max(final, first + 1e-9) / unit))
    below.set(ylabel="nodes waited for", xlabel=f"time ({unit_name})", ylim=(0, None))
    for axes in (above, below):
        plain(axes)
        axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.0f}")
    figure.align_ylabels([above, below])
    handles = [handle for axes in (above, below) for handle in axes.get_legend_handles_labels()[0]]
    _legend(figure, handles, 2 if means else 3)
    used = run.metrics.get("utilisation.nodes")
    text = "" if used is None else f": {counted(len(done), 'job')}, utilisation {100 * used:.1f} %"
    _headline(above, (run.name or "Schedule") + text, run)
    return figure


def gantt(run: Run, colour_by: Literal["auto", "partition", "user", "job"] = "auto") -> Figure:
    """Draw the schedule of `MOST_JOBS` at most; jobs without hosts are placed first-fit for the picture.

    `colour_by` ``partition`` and ``user`` have a legend; ``auto`` takes the first that the run has, unless
    it has more values than there are colours. Jobs that share nodes are drawn half transparent. Where hosts
    of some jobs alone are known, as in records, the others are left out.
    """
    done = _started(run, run.name, "Gantt chart")
    everything = len(done)
    has_hosts = done.jobs["allocated_resources"].fillna("") != ""
    if has_hosts.any() and not has_hosts.all():
        done = started(done.jobs[has_hosts])
    if len(done) > MOST_JOBS:
        what = f"a Gantt chart shows at most {MOST_JOBS:,} jobs, the run has {len(done):,}"
        raise BridgeError(what, where=run.name, remedy="Replay fewer jobs (--first), or draw the timeline.")
    from bridge.judge.hosts import hosts_of

    nodes = run.capacity["nodes"]
    allocation, placed = hosts_of(done.jobs, nodes, run.name)
    first, final = float(done.submit.min()), float(done.end.max())
    unit, unit_name = time_unit(final - first)
    owner = np.repeat(np.arange(len(done)), np.diff(allocation.offsets))
    left, right = done.start[owner] / unit, done.end[owner] / unit
    low, high = allocation.first, allocation.last + 1
    bars = np.stack([np.stack([left, right, right, left], 1), np.stack([low, low, high, high], 1)], 2)

    names, group = _groups(run, done.jobs, colour_by)
    figure = new_figure(10, float(np.clip(2.5 + nodes / 24, 4.0, 8.0)))
    axes = figure.subplots()
    shades = np.array(COLOURS)[group % len(COLOURS)][owner].tolist()
    looks: dict[str, Any] = {"edgecolors": "white", "linewidths": 0.6 if len(done) <= 300 else 0.2}
    if "shares_nodes" in done.jobs:
        looks["alpha"] = np.where(done.jobs["shares_nodes"].to_numpy(bool)[owner], 0.5, 1.0)
    axes.add_collection(PolyCollection(list(bars), facecolors=shades, **looks))
    axes.set(xlabel=f"time ({unit_name})", xlim=(first / unit, final / unit))
    axes.set(ylabel="host", ylim=(0, max(nodes, int(high.max()))))
    if len(done) <= LABELLED:
        _label(axes, done.jobs["job_id"].astype(str).tolist(), owner, bars, shades)
    if names:
        keys = [Patch(color=COLOURS[k % len(COLOURS)], label=name) for k, name in enumerate(names)]
        _legend(figure, keys, min(len(keys), 8))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    plain(axes, grid="x")
    heading = f"{run.name or 'Schedule'}: {counted(len(done), 'job')} on {counted(nodes, 'host')}"
    heading += f" ({everything - len(done):,} without hosts left out)" if everything > len(done) else ""
    _headline(axes, heading + ("" if placed else " (placed first-fit)"), run)
    return figure


def _groups(run: Run, jobs: pd.DataFrame, colour_by: str) -> tuple[list[str], Ints]:
    """Return the legend's names (empty if coloured per job) and each job's colour group."""
    for column in ("partition", "user"):
        if colour_by not in ("auto", column) or column not in jobs:
            continue
        distinct, group = np.unique(jobs[column].to_numpy(), return_inverse=True)
        if colour_by == column or len(distinct) <= len(COLOURS):
            return [f"{column} {name}" for name in distinct], group.astype(np.int64)
    if colour_by in ("partition", "user"):
        raise BridgeError(
            f"the run has no {colour_by}s to colour by", where=run.name, remedy="Colour by job."
        )
    return [], np.arange(len(jobs))


def _label(axes: Axes, ids: Sequence[str], owner: Ints, bars: Floats, shades: Sequence[str]) -> None:
    """Write each job's id into its largest bar, where it fits."""
    ends = np.array([axes.get_xlim(), axes.get_ylim()])
    sizes = (bars[:, 2] - bars[:, 0]) / (ends[:, 1] - ends[:, 0])  # shares of the picture's width and height
    for job, text in enumerate(ids):
        own = np.flatnonzero(owner == job)
        bar = own[np.argmax(sizes[own].prod(axis=1))]
        if sizes[bar, 0] > 0.009 * (len(text) + 1) and sizes[bar, 1] > 0.025:
            x, y = bars[bar].mean(axis=0)
            axes.text(x, y, text, ha="center", va="center", fontsize=7, color=DARK_ON[shades[bar]])


def shares(values: Floats, at: Floats) -> Floats:
    """Return which share of ``values`` is ≤ each of ``at``, 0 … 1."""
    return np.searchsorted(np.sort(values), at, side="right") / len(values)


def distributions(runs: Sequence[Run], names: Sequence[str]) -> Figure:
    most = len(COLOURS) * len(LINES)
    if not 1 <= len(runs) <= most:
        raise BridgeError(f"1 to {most} runs can be told apart in one picture, got {len(runs)}")
    done = [_started(run, name, "distribution", killed=False) for run, name in zip(runs, names, strict=True)]
    limits = [run.metrics.get("bsld.threshold") or BSLD_THRESHOLD for run in runs]
    slowdowns = [bounded_slowdown(d.wait, d.run, limit) for d, limit in zip(done, limits, strict=True)]

    figure = new_figure(10, 4.6)
    left, right = figure.subplots(1, 2, sharey=True)
    longest = max(60.0, *(float(d.wait.max()) for d in done))
    widest = max(10.0, *(float(s.max()) for s in slowdowns))
    for axes, series, end in ((left, [d.wait for d in done], longest), (right, slowdowns, widest)):
        at = np.geomspace(1.0, end, POINTS)
        for k, (values, run, name) in enumerate(zip(series, runs, names, strict=True)):
            colour, line = COLOURS[k % len(COLOURS)], LINES[k // len(COLOURS)]
            looks: dict[str, Any] = {"color": colour, "linestyle": line, "linewidth": 1.8}
            axes.plot(at, 100 * shares(values, at), label=f"{name} *" if run.oracle else name, **looks)
        axes.set(xscale="log", xlim=(1.0, end), ylim=(min(99.0, axes.get_ylim()[0]), 100.5))
        plain(axes, grid="both")
    left.set_xticks(*zip(*((t, text) for t, text in WAITS if t <= longest), strict=True))
    left.minorticks_off()
    right.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    left.set(xlabel="wait", ylabel="jobs at or below (%)")
    right.set(xlabel="bounded slowdown")
    _legend(figure, left.get_legend_handles_labels()[0], min(4, len(runs)))
    if any(run.oracle for run in runs):
        right.set_title("* oracle: true run times were read", loc="right", fontsize="small")
    return figure


def explanation(features: Sequence[tuple[str, float, Curve, Curve]], chosen: str, everything: str) -> Figure:
    """Draw a small picture per feature: name, Kolmogorov–Smirnov distance, curves of chosen and all."""
    columns = min(COLUMNS, len(features))
    lines = -(-len(features) // columns)
    figure = new_figure(2.7 * columns, 2.1 * lines + 0.5)
    grid = figure.subplots(lines, columns, sharey=True, squeeze=False)
    for axes in grid.flat[len(features) :]:
        axes.set_visible(False)
    for axes, (name, distance, own, rest) in zip(grid.flat, features, strict=False):
        for (values, shares), colour, label in ((rest, COLOURS[6], everything), (own, COLOURS[0], chosen)):
            at, share = np.append(values[:1], values), np.append(0.0, 100 * shares)
            axes.step(at, share, where="post", color=colour, linewidth=1.6, label=label)
        axes.set_title(f"{name}  {distance:.2f}", fontsize="small", loc="left")
        axes.tick_params(labelsize="small")
        axes.set_ylim(0, 102)
        plain(axes, grid="both")
    for line in grid[:, 0]:
        line.set_ylabel("rows ≤ value (%)", fontsize="small")
    _legend(figure, grid[0, 0].get_legend_handles_labels()[0][::-1], 2)
    return figure
