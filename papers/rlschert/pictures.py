"""Pictures of RLSchert's page: its Figures 6–13; honest agents, without smoke rows."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bridge.report.plots import COLOURS, LIMIT
from papers.pictures import legend, panels, saved
from papers.rlschert.figures import PANELS, WINDOW, total
from papers.rlschert.found import Found, estimate, look, mean_of
from papers.rlschert.measures import EDGES, LEARNING
from papers.rlschert.play import WITH_HOLES, WITH_KILLS
from papers.rlschert.running import KINDS
from papers.rlschert.running import lines as errors_while_running
from papers.rlschert.study import HONEST, METHODS, TEST, Method, Sample

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OF_NAME = dict(zip(dict.fromkeys(method.name for method in METHODS), COLOURS, strict=False))
_TICKS = (1, 2, 3, 5, 10, 20, 30)
_STYLE = {"none": "-", "rule": ":", "learned": "--"}


def _seen(
    data: pd.DataFrame, methods: Sequence[Method], sample: Sample, objective: str = "slowdown"
) -> Iterator[tuple[Method, str, Found]]:
    """Yield who can be drawn, in a colour each."""
    for method, colour in zip(methods, COLOURS, strict=False):
        found = look(data, method, sample, HONEST, objective)
        if len(found) and not found.smoke:
            yield method, colour, found


def convergence(data: pd.DataFrame) -> Path | None:
    """Draw Figures 7–9, panel by panel; None where nobody was trained."""
    figure, axes = panels(11.0, 3.8, [panel.title for panel in PANELS], sharex=True, sharey=True)
    drawn = False
    for one, panel in zip(axes, PANELS, strict=True):
        for method, colour, found in _seen(data, panel.methods, LEARNING, panel.objective):
            drawn = True
            _line(one, found.rows, method.row, colour)
        one.axhline(1.0, color=LIMIT, linewidth=0.8)
        one.set_xlabel("epoch")
        one.set_ylim(0.7, 1.7)
        legend(one)
    axes[0].set_ylabel("mean / SAF's")
    return saved(figure, "rlschert-figure-7") if drawn else None


def running(measured: pd.DataFrame) -> Path | None:
    """Draw Figure 6: errors of predictors by how much of a job has run; None where none was measured."""
    found = list(errors_while_running(measured))
    figure, (axes,) = panels(7.0, 3.6)
    for k, (name, kind, errors) in enumerate(found):
        label = f"{name}: {KINDS[kind][0]}"
        axes.plot(range(0, 100, 10), errors, "o-", markersize=3, color=COLOURS[k % len(COLOURS)], label=label)
    axes.set_xlabel("run so far, %")
    axes.set_ylabel("mean absolute error, %")
    axes.set_ylim(bottom=0)
    legend(axes)
    return saved(figure, "rlschert-figure-6") if found else None


def _line(axes: "Axes", found: pd.DataFrame, label: str, colour: str) -> None:
    valid = np.stack([np.asarray(v, np.float64) for v in found["valid"]])
    epochs = np.asarray(found["epochs"].iloc[0])
    axes.plot(epochs, valid.mean(0), "o-", markersize=2, linewidth=1.2, color=colour, label=label)
    axes.fill_between(epochs, valid.min(0), valid.max(0), color=colour, alpha=0.2, linewidth=0)
    train = mean_of(found, "train")
    width = min(WINDOW, len(train))
    smooth = np.convolve(train, np.ones(width) / width, "valid")
    axes.plot(np.arange(width, len(train) + 1), smooth, linewidth=0.6, color=colour, alpha=0.8)


def sweep(
    data: pd.DataFrame, number: int, label: str, samples: Sequence[Sample], at: Sequence[float]
) -> Path:
    """Draw mean slowdowns against load or size (Figures 10, 11), left without kills and right with.

    Args:
        data: results of the sweeps.
        number: of the figure.
        label: of the axis.
        samples: what was played, and
        at: where on the axis.
    """
    figure, axes = panels(9.0, 3.8, ("without kills", "with kills"), sharey=True)
    for method in METHODS:
        found = {x: look(data, method, s, HONEST) for x, s in zip(at, samples, strict=True)}
        points = {x: estimate(f.rows, "slowdown") for x, f in found.items() if len(f) and not f.smoke}
        if points:
            axes[method.kill != "none"].errorbar(
                list(points),
                [e.mean for e in points.values()],
                [e.high - e.mean for e in points.values()],
                fmt="o--" if method.kill == "learned" else "o-",
                markersize=3,
                linewidth=1,
                capsize=2,
                color=_OF_NAME[method.name],
                label=method.row,
            )
    for one in axes:
        one.set_xlabel(label)
        one.set_yscale("log")
        one.set_yticks(_TICKS, [f"{tick}" for tick in _TICKS])
        one.minorticks_off()
        legend(one)
    axes[0].set_ylabel("mean slowdown")
    return saved(figure, f"rlschert-figure-{number}")


def holes(data: pd.DataFrame) -> Path:
    """Draw Figure 12: holes, accumulated over the steps, and the distribution of waits."""
    figure, (left, right) = panels(9.0, 3.8, ("", ""))
    for method, colour, found in _seen(data, WITH_HOLES, TEST):
        sequences = len(found) * len(np.asarray(found.rows["jobs"].iloc[0]))
        grown, style = np.cumsum(total(found.rows, "by_step")) / sequences, _STYLE[method.kill]
        left.plot(np.arange(len(grown)), grown, style, color=colour, linewidth=1.2, label=method.row)
        waits = total(found.rows, "waits")
        share = np.cumsum(waits) / waits.sum()
        right.step(np.arange(len(share)) + 1, share, style, where="post", color=colour, linewidth=1.2)
    left.set_xlabel("step")
    left.set_ylabel("unit-steps in holes so far")
    right.set_xlabel("steps waited, plus one")
    right.set_xscale("log")
    right.set_ylabel("share of the jobs")
    legend(left)
    return saved(figure, "rlschert-figure-12")


def killed(data: pd.DataFrame) -> Path:
    """Draw Figure 13: how long killed attempts' jobs truly are, beside all jobs."""
    figure, (axes,) = panels(6.5, 3.6)
    names = ["< ¼", *(f"{edge:.2g}" for edge in EDGES[1:-1])]
    at, everyone = np.arange(len(names)), None
    for method, colour, found in _seen(data, WITH_KILLS, TEST):
        both = (np.sum(np.stack(list(found.rows[c])), axis=0) for c in ("killed_ratios", "all_ratios"))
        counts, everyone = both
        if counts.sum():
            share, style = counts / counts.sum(), "--" if method is WITH_KILLS[1] else "-"
            axes.step(at, share, style, where="mid", color=colour, label=f"killed: {method.row}")
    if everyone is not None:
        axes.bar(at, everyone / everyone.sum(), width=1.0, color="#dddddd", label="all jobs")
        axes.axvline(float(np.searchsorted(EDGES, 1.0)) - 0.5, color=LIMIT, linewidth=0.8)
        legend(axes)
    axes.set_xticks(at, names, fontsize="small")
    axes.set_xlabel("true length / believed length, at least")
    axes.set_ylabel("share")
    return saved(figure, "rlschert-figure-13")
