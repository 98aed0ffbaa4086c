"""How waits and bounded slowdowns of several runs are distributed: cumulative curves side by side."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bridge.errors import BridgeError
from bridge.judge.jobs import started
from bridge.judge.metrics import BSLD_THRESHOLD, Floats, bounded_slowdown
from bridge.report.style import COLOURS, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bridge.judge.run import Run

POINTS = 800
LINES = ("-", "--", "-.", ":")
#: Tick positions of a wait axis, in s.
WAITS: tuple[tuple[float, str], ...] = (
    (1, "1 s"),
    (10, "10 s"),
    (60, "1 min"),
    (600, "10 min"),
    (3600, "1 h"),
    (6 * 3600, "6 h"),
    (86_400, "1 d"),
    (7 * 86_400, "1 week"),
    (30 * 86_400, "30 d"),
)


def shares(values: Floats, at: Floats) -> Floats:
    """Return which share of ``values`` is ≤ each of ``at``, 0 … 1."""
    return np.searchsorted(np.sort(values), at, side="right") / len(values)


def distributions(runs: Sequence["Run"], names: Sequence[str]) -> "Figure":
    """Draw the cumulative distribution of wait and of bounded slowdown, one curve per run, log axes.

    Raises:
        BridgeError: no run, more than can be told apart, or a run in which no job started.
    """
    most = len(COLOURS) * len(LINES)
    if not 1 <= len(runs) <= most:
        raise BridgeError(f"1 to {most} runs can be told apart in one picture, got {len(runs)}")
    waits, slowdowns = [], []
    for run, name in zip(runs, names, strict=True):
        done = started(run.jobs, killed=False)
        if len(done) == 0:
            raise BridgeError("no job started, so there is no distribution to draw", where=name)
        waits.append(done.wait)
        threshold = run.metrics.get("bsld.threshold") or BSLD_THRESHOLD
        slowdowns.append(bounded_slowdown(done.wait, done.run, threshold))

    figure = new_figure(10, 4.6)
    left, right = figure.subplots(1, 2, sharey=True)
    longest = max(60.0, *(float(w.max()) for w in waits))
    widest = max(10.0, *(float(s.max()) for s in slowdowns))
    for axes, series, end in ((left, waits, longest), (right, slowdowns, widest)):
        at = np.geomspace(1.0, end, POINTS)
        for k, (values, run, name) in enumerate(zip(series, runs, names, strict=True)):
            axes.plot(
                at,
                100 * shares(values, at),
                color=COLOURS[k % len(COLOURS)],
                linestyle=LINES[k // len(COLOURS)],
                linewidth=1.8,
                label=f"{name} *" if run.oracle else name,
            )
        axes.set_xscale("log")
        axes.set_xlim(1.0, end)
        axes.set_ylim(min(99.0, axes.get_ylim()[0]), 100.5)
        plain(axes, grid="both")
    left.set_xticks([t for t, _ in WAITS if t <= longest], [text for t, text in WAITS if t <= longest])
    left.minorticks_off()
    right.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    left.set_xlabel("wait")
    right.set_xlabel("bounded slowdown")
    left.set_ylabel("jobs at or below (%)")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(runs)), frameon=False)
    if any(run.oracle for run in runs):
        right.set_title("* oracle: true run times were read", loc="right", fontsize="small")
    return figure
