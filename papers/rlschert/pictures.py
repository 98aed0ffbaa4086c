"""Pictures of RLSchert's page: its Figures 5, 6, 12 and 13."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from bridge.report.plots import COLOURS, LIMIT
from papers.pictures import legend, panels, saved
from papers.rlschert.figures import WITH_HOLES, WITH_KILLS, total
from papers.rlschert.job_sizes import counts
from papers.rlschert.measures import EDGES
from papers.rlschert.results import RowResults, look
from papers.rlschert.running import KINDS
from papers.rlschert.running import lines as errors_while_running


def _style(row: str) -> str:
    return ":" if "rule kill" in row else "--" if "learned kill" in row else "-"


def _available(data: pd.DataFrame, rows: Sequence[str]) -> Iterator[tuple[str, str, RowResults]]:
    """Yield who can be drawn, in a colour each."""
    for row, colour in zip(rows, COLOURS, strict=False):
        if len(results := look(data, row)):
            yield row, colour, results


def job_sizes(data: pd.DataFrame) -> Path | None:
    """Draw Figure 5: how many jobs take so many steps, and so many units; None where they are not counted."""
    if not len(data):
        return None
    figure, axes = panels(8.0, 2.8, ("", ""))
    for one, name, unit in zip(
        axes, ("lengths", "units"), ("steps of 5 min", "units of 10 cores"), strict=True
    ):
        many = counts(data, name)
        one.bar(np.arange(len(many)), 100 * many / many.sum(), width=0.9, color=COLOURS[0])
        one.set_xlabel(unit)
        one.set_ylabel("% of the jobs")
        one.set_xlim(left=0)
    return saved(figure, "rlschert-figure-5")


def running(measured: pd.DataFrame) -> Path | None:
    """Draw Figure 6: errors of predictors by how much of a job has run; None where none was measured."""
    error_curves = list(errors_while_running(measured))
    figure, (axes,) = panels(7.0, 3.6)
    for k, (name, kind, errors) in enumerate(error_curves):
        label = f"{name}: {KINDS[kind][0]}"
        axes.plot(range(0, 100, 10), errors, "o-", markersize=3, color=COLOURS[k % len(COLOURS)], label=label)
    axes.set_xlabel("run so far, %")
    axes.set_ylabel("mean absolute error, %")
    axes.set_ylim(bottom=0)
    legend(axes)
    return saved(figure, "rlschert-figure-6") if error_curves else None


def holes(data: pd.DataFrame) -> Path:
    """Draw Figure 12: holes, accumulated over the steps, and the distribution of waits."""
    figure, (left, right) = panels(9.0, 3.8, ("", ""))
    for row, colour, results in _available(data, WITH_HOLES):
        sequences = len(results) * len(np.asarray(results.rows["jobs"].iloc[0]))
        grown, style = np.cumsum(total(results.rows, "by_step")) / sequences, _style(row)
        left.plot(np.arange(len(grown)), grown, style, color=colour, linewidth=1.2, label=row)
        waits = total(results.rows, "waits")
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
    for row, colour, results in _available(data, WITH_KILLS):
        both = (np.sum(np.stack(list(results.rows[c])), axis=0) for c in ("killed_ratios", "all_ratios"))
        counts, everyone = both
        if counts.sum():
            share, style = counts / counts.sum(), "--" if row == WITH_KILLS[1] else "-"
            axes.step(at, share, style, where="mid", color=colour, label=f"killed: {row}")
    if everyone is not None:
        axes.bar(at, everyone / everyone.sum(), width=1.0, color="#dddddd", label="all jobs")
        axes.axvline(float(np.searchsorted(EDGES, 1.0)) - 0.5, color=LIMIT, linewidth=0.8)
        legend(axes)
    axes.set_xticks(at, names, fontsize="small")
    axes.set_xlabel("true length / believed length, at least")
    axes.set_ylabel("share")
    return saved(figure, "rlschert-figure-13")
