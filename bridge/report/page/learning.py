"""Agents on the page: what a checkpoint is, how it learnt, and what its decisions look at."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bridge.base.counted import counted
from bridge.report.page import charts
from bridge.report.page.charts import Block, Sheet
from bridge.report.page.inputs import PROGRESS, CheckpointReport
from bridge.report.table import Table

#: Longest cell of the table of facts, and most points of a curve, of a cumulative one.
LONGEST_CELL, MOST_POINTS, CDF_POINTS = 160, 1_500, 200


def training_section(checkpoint: CheckpointReport, sheet: Sheet) -> Iterator[Block]:
    """Yield a checkpoint's facts and its training curves."""
    if checkpoint.progress is not None and len(checkpoint.progress):
        yield from _curves(checkpoint.progress, checkpoint.agent, sheet)
    yield Table(("agent", ""), _facts(checkpoint.agent), words=(1,))


def _facts(agent: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Return an agent's facts as rows: objects one level deep as key.key, everything else as short text."""
    for key, value in agent.items():
        if isinstance(value, dict) and value and not prefix:
            yield from _facts(value, f"{key}.")
            continue
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        text = f"{value:.6g}" if isinstance(value, float) else "–" if value is None else text
        yield prefix + key, text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "…"


def _curves(progress: pd.DataFrame, agent: Mapping[str, Any], sheet: Sheet) -> Iterator[Block]:
    charts_of_epochs, rows = [], []
    numbers = {
        name: progress[name].to_numpy(np.float64, na_value=np.nan) for name in PROGRESS if name in progress
    }
    columns_with_values = {name: values for name, values in numbers.items() if np.isfinite(values).any()}
    epochs, metric = numbers["epoch"], agent.get("metric")
    for chart in charts.SECTIONS["training"]["curves"]:
        heading, names = chart["heading"], chart["columns"]
        title = heading.replace("metric", metric) if isinstance(metric, str) else heading
        lines = [
            (name, columns_with_values[column])
            for column, name in names.items()
            if column in columns_with_values
        ]
        rows += [[name if len(names) == 1 else f"{title}, {name}", *_ends(epochs, v)] for name, v in lines]
        if lines:
            picture = _lines(epochs, lines, charts.label(title), log=chart["log"])
            charts_of_epochs.append(sheet.add(picture, chart["said"]))
    yield charts_of_epochs
    pace = (
        f", {np.nanmean(columns_with_values['seconds']):.3g} s an epoch in the mean"
        if "seconds" in columns_with_values
        else ""
    )
    yield f"{counted(len(progress), 'epoch')}{pace}."
    yield Table(("", "first", "last", "lowest", "in epoch", "highest", "in epoch"), rows)


def _ends(epochs: Any, values: Any) -> list[str]:
    at = np.flatnonzero(np.isfinite(values))
    low, high = at[np.argmin(values[at])], at[np.argmax(values[at])]
    cells = [_number(values[k]) for k in (at[0], at[-1])]
    for k in (low, high):
        cells += [_number(values[k]), f"{epochs[k]:g}"]
    return cells


def _number(value: float) -> str:
    return f"{value:.4g}" if value >= 0 else f"−{-value:.4g}"


def _lines(epochs: Any, columns: Sequence[tuple[str, Any]], title: str, *, log: bool) -> Any:
    everything = np.concatenate([values[np.isfinite(values)] for _, values in columns])
    wide = log and everything.min() > 0 and everything.max() > charts.WIDE * everything.min()
    traces = []
    for k, (name, values) in enumerate(columns):
        at = np.flatnonzero(np.isfinite(values))
        at = at[:: max(1, -(-len(at) // MOST_POINTS))]
        looks = {"color": charts.colour(k), "dash": "solid", "width": 1.8}
        looks |= {"color": "var(--ink)", "dash": "dash"} if name == "base" else {}
        more = {"marker": {"size": 5}, "hovertemplate": "%{y:,}", "showlegend": len(columns) > 1}
        mode = "lines+markers" if len(at) <= 40 else "lines"
        x, y = charts.significant(epochs[at], 7), charts.significant(values[at])
        traces.append(charts.curve(x, y, name, looks, mode=mode, **more))
    bottom = charts.axis("epoch", zeroline=False)
    left = charts.axis(title, **({"type": "log", "dtick": 1} if wide else {}))
    return charts.figure(traces, 280, hovermode="x unified", xaxis=bottom, yaxis=left)


def explanation_section(checkpoint: CheckpointReport, sheet: Sheet) -> Iterator[Block]:
    """Yield the features that an agent's decisions depend on; nothing without an explanation."""
    frame = checkpoint.explanation
    if frame is None or len(frame) == 0:
        return
    charts_of_features, rows = [], []
    for feature, part in frame.groupby(frame["feature"].astype("str"), sort=False):
        kinds = [kind for kind in ("chosen", "all") if (part["kind"] == kind).any()]
        curves = {kind: _curve(part[part["kind"] == kind]) for kind in kinds}
        charts_of_features.append(
            sheet.add(_cumulative(charts.label(feature), curves), f"{feature}: chosen against all.")
        )
        medians = [_median(*curves[kind]) if kind in curves else "–" for kind in ("chosen", "all")]
        gap = f"{_gap(curves['chosen'], curves['all']):.3f}" if len(curves) == 2 else "–"
        rows.append([feature, *medians, gap])
    yield charts_of_features
    caption = "The largest gap between the curves is the Kolmogorov–Smirnov distance, 0 … 1."
    yield Table(("feature", "median, chosen", "median, all", "largest gap"), rows, caption=caption)


def _curve(frame: pd.DataFrame) -> tuple[Any, Any]:
    frame = frame.sort_values(["value", "cdf"], kind="stable")
    return frame["value"].to_numpy(np.float64), frame["cdf"].to_numpy(np.float64)


def _cumulative(title: str, curves: Mapping[str, tuple[Any, Any]]) -> Any:
    traces = []
    for kind, (values, shares) in curves.items():
        keep = np.unique(np.linspace(0, len(values) - 1, min(len(values), CDF_POINTS)).astype(np.int64))
        x, y = charts.significant(values[keep], 4), charts.fixed(100 * shares[keep], 2)
        shade, dash = (5, "solid") if kind == "chosen" else (0, "dash")
        looks = {"color": charts.colour(shade), "dash": dash}
        more = {"showlegend": True, "hovertemplate": "%{y} % at or below %{x}"}
        traces.append(charts.curve(x, y, kind, looks | {"width": 2, "shape": "hv"}, **more))
    bottom, left = charts.axis(title, zeroline=False), charts.axis("at or below (%)", range=[0, 102])
    return charts.figure(traces, 280, xaxis=bottom, yaxis=left)


def _median(values: Any, shares: Any) -> str:
    return f"{values[min(int(np.searchsorted(shares, 0.5)), len(values) - 1)]:.4g}"


def _gap(one: tuple[Any, Any], other: tuple[Any, Any]) -> float:
    """Return the largest difference between two right-continuous cumulative curves."""
    at = np.union1d(one[0], other[0])

    def share(line: tuple[Any, Any]) -> Any:
        k = np.searchsorted(line[0], at, side="right")
        return np.where(k > 0, line[1][np.maximum(k - 1, 0)], 0.0)

    return float(np.abs(share(one) - share(other)).max())
