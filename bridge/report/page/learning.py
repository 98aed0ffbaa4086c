"""Agents on the page: what a checkpoint is, how it learnt, and what its decisions look at."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.report.html import Block, Section, label, section
from bridge.report.page.charts import INK, WIDE, Sheet, axis, colour, curve, figure, fixed, significant
from bridge.report.page.inputs import Checkpoint
from bridge.report.table import Table

if TYPE_CHECKING:
    import pandas as pd

_BOTH = "Mean over {} windows, the agent's and the base policy's on the same."
_TRAINED = {"train_mean": "agent", "base_mean": "base"}
_VALIDATED = {"valid_mean": "agent", "valid_base": "base"}
_CLIPPED = {"clip_fraction": "clipped share"}
#: Charts of training: heading, what is said below, the columns in it and their names, whether the axis may be
#: logarithmic.
CURVES: tuple[tuple[str, str, dict[str, str], bool], ...] = (
    ("training metric", _BOTH.format("an epoch's"), _TRAINED, True),
    ("validation metric", _BOTH.format("the validation"), _VALIDATED, True),
    ("reward", "Mean reward of an epoch's episodes.", {"reward_mean": "mean reward"}, False),
    ("KL divergence", "How far an epoch's updates moved the policy.", {"kl": "KL divergence"}, False),
    ("entropy", "How undecided the policy is.", {"entropy": "entropy"}, False),
    ("clipped share", "Share of the decisions whose update was clipped.", _CLIPPED, False),
    ("policy loss", "Loss of the policy network.", {"policy_loss": "policy loss"}, False),
    ("value loss", "Loss of the value network.", {"value_loss": "value loss"}, True),
    ("decisions", "Decisions taken in an epoch.", {"decisions": "decisions"}, False),
)
#: Longest cell of the table of facts, and most points of a curve.
LONGEST_CELL, MOST_POINTS = 160, 1_500
#: Points of a cumulative curve.
CDF_POINTS = 200


def training(checkpoints: Sequence[tuple[str, Checkpoint]], sheet: Sheet) -> Section | None:
    """Return what every checkpoint is and how it learnt; None without one."""
    lead = (
        "How each agent learnt, epoch by epoch, beside the base policy on the same windows, and how it was "
        "set up."
    )
    parts = ((name, _learnt(checkpoint, sheet)) for name, checkpoint in checkpoints)
    return section("training", "Training", lead, parts)


def _learnt(checkpoint: Checkpoint, sheet: Sheet) -> list[Block]:
    facts = Table(("agent", ""), _facts(checkpoint.agent), words=(1,))
    if checkpoint.progress is None or len(checkpoint.progress) == 0:
        return [facts]
    return [*_curves(checkpoint.progress, checkpoint.agent, sheet), facts]


def _facts(agent: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Return an agent's facts as rows: objects one level deep as key.key, everything else as short text."""
    for key, value in agent.items():
        if isinstance(value, dict) and value and not prefix:
            yield from _facts(value, f"{key}.")
            continue
        if isinstance(value, str):
            said = value
        elif isinstance(value, float):
            said = f"{value:.6g}"
        elif value is None:
            said = "–"
        else:
            said = json.dumps(value, ensure_ascii=False)
        yield prefix + key, said if len(said) <= LONGEST_CELL else said[: LONGEST_CELL - 1] + "…"


def _curves(progress: "pd.DataFrame", agent: Mapping[str, Any], sheet: Sheet) -> Iterator[Block]:
    drawn, rows = [], []
    epochs = progress["epoch"].to_numpy(np.float64)
    metric = agent.get("metric")
    for heading, said, columns, log in CURVES:
        known = []
        title = heading.replace("metric", metric) if isinstance(metric, str) else heading
        for column, name in columns.items():
            if column in progress.columns:
                values = progress[column].to_numpy(np.float64, na_value=np.nan)
                if np.isfinite(values).any():
                    known.append((name, values))
                    rows.append([name if len(columns) == 1 else f"{title}, {name}", *_ends(epochs, values)])
        if known:
            drawn.append(sheet.add(_lines(epochs, known, label(title), log=log), said))
    yield drawn
    told = f"{len(progress):,} epochs"
    if "seconds" in progress.columns:
        seconds = progress["seconds"].to_numpy(np.float64, na_value=np.nan)
        if np.isfinite(seconds).any():
            told += f", {np.nanmean(seconds):.3g} s an epoch in the mean"
    yield f"{told}."
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


def _lines(epochs: Any, known: Sequence[tuple[str, Any]], title: str, *, log: bool) -> Any:
    everything = np.concatenate([values[np.isfinite(values)] for _, values in known])
    wide = log and everything.min() > 0 and everything.max() > WIDE * everything.min()
    traces = []
    for k, (name, values) in enumerate(known):
        at = np.flatnonzero(np.isfinite(values))
        at = at[:: max(1, -(-len(at) // MOST_POINTS))]
        base = name == "base"
        trace = curve(
            significant(epochs[at], 7),
            significant(values[at]),
            name,
            {"color": INK if base else colour(k), "dash": "dash" if base else "solid", "width": 1.8},
            mode="lines+markers" if len(at) <= 40 else "lines",
            showlegend=len(known) > 1,
            marker={"size": 5},
            hovertemplate="%{y:,}",
        )
        traces.append(trace)
    kind = {"type": "log", "dtick": 1} if wide else {}
    return figure(
        traces, 280, hovermode="x unified", xaxis=axis("epoch", zeroline=False), yaxis=axis(title, **kind)
    )


def explanations(checkpoints: Sequence[tuple[str, Checkpoint]], sheet: Sheet) -> Section | None:
    """Return what every explained agent's decisions look at; None without an explanation."""
    lead = (
        "How each feature is distributed over what the agent chose and over all that it could have chosen: "
        "where the curves part, the agent looks at the feature."
    )
    parts = ((name, _explained(checkpoint.explanation, sheet)) for name, checkpoint in checkpoints)
    return section("explanations", "Explanations", lead, parts)


def _explained(frame: "pd.DataFrame | None", sheet: Sheet) -> Iterator[Block]:
    if frame is None or len(frame) == 0:
        return
    drawn, rows = [], []
    for feature in dict.fromkeys(frame["feature"].astype("str")):
        part_of = frame[frame["feature"].astype("str") == feature]
        curves = {
            kind: _curve(part_of[part_of["kind"].astype("str") == kind])
            for kind in ("chosen", "all")
            if (part_of["kind"].astype("str") == kind).any()
        }
        drawn.append(sheet.add(_cumulative(label(feature), curves), f"{feature}: chosen against all."))
        medians = [_median(*curves[kind]) if kind in curves else "–" for kind in ("chosen", "all")]
        gap = f"{_gap(curves['chosen'], curves['all']):.3f}" if len(curves) == 2 else "–"
        rows.append([feature, *medians, gap])
    yield drawn
    caption = "The largest gap between the curves is the Kolmogorov–Smirnov distance, 0 … 1."
    headings = ("feature", "median, chosen", "median, all", "largest gap")
    yield Table(headings, rows, caption=caption)


def _curve(frame: "pd.DataFrame") -> tuple[Any, Any]:
    frame = frame.sort_values(["value", "cdf"], kind="stable")
    return frame["value"].to_numpy(np.float64), frame["cdf"].to_numpy(np.float64)


def _cumulative(title: str, curves: Mapping[str, tuple[Any, Any]]) -> Any:
    traces = []
    for kind, (values, shares) in curves.items():
        keep = np.unique(np.linspace(0, len(values) - 1, min(len(values), CDF_POINTS)).astype(np.int64))
        shade, kind_of_line = (colour(5), "solid") if kind == "chosen" else (colour(0), "dash")
        trace = curve(
            significant(values[keep], 4),
            fixed(100 * shares[keep], 2),
            kind,
            {"color": shade, "dash": kind_of_line, "width": 2, "shape": "hv"},
            showlegend=True,
            hovertemplate="%{y} % at or below %{x}",
        )
        traces.append(trace)
    return figure(
        traces, 280, xaxis=axis(title, zeroline=False), yaxis=axis("at or below (%)", range=[0, 102])
    )


def _median(values: Any, shares: Any) -> str:
    return f"{values[min(int(np.searchsorted(shares, 0.5)), len(values) - 1)]:.4g}"


def _gap(one: tuple[Any, Any], other: tuple[Any, Any]) -> float:
    """Return the largest difference between two right-continuous cumulative curves."""
    at = np.union1d(one[0], other[0])

    def share(curve: tuple[Any, Any]) -> Any:
        k = np.searchsorted(curve[0], at, side="right")
        return np.where(k > 0, curve[1][np.maximum(k - 1, 0)], 0.0)

    return float(np.abs(share(one) - share(other)).max())
