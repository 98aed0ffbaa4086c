"""Policy against policy on the same windows: means, paired differences, and every window against the base."""

from collections.abc import Sequence

import numpy as np

from bridge.judge.stats import Estimate
from bridge.report.html import Block, Section, label, section
from bridge.report.page.charts import (
    AROUND,
    LOOKS,
    MANY,
    WIDE,
    Chart,
    Sheet,
    axis,
    colour,
    diagonal,
    figure,
    forest,
    points,
    row_names,
    rows_axis,
    significant,
    vertical,
)
from bridge.report.page.evaluation import Evaluation
from bridge.report.style import time_unit
from bridge.report.table import Table
from bridge.report.tables import ORACLE_NOTE, show

TITLES = {
    "bsld": "bounded slowdown",
    "bsld.max": "largest bounded slowdown",
    "wait.max": "longest wait",
    "utilisation": "utilisation",
}
#: The box chart shows differences between these quantiles first; zooming out shows all.
SHOWN = (0.01, 0.99)
#: Height of one row of the box chart, px.
ROW_BOX, DENSE_ROW_BOX = 70, 54
#: Policies that the scatter chart shows from the start, agents first; the others on a click.
VISIBLE = 4


def policies(evaluations: Sequence[tuple[str, Evaluation]], sheet: Sheet) -> Section | None:
    """Return every evaluation; None without one."""
    lead = (
        "All policies on the same windows of a log, each window on an idle machine: their means, and their "
        "paired differences to the base, which is the first policy."
    )
    parts = ((name, _evaluation(evaluation, sheet)) for name, evaluation in evaluations)
    return section("policies", "Policy against policy", lead, parts)


def _evaluation(evaluation: Evaluation, sheet: Sheet) -> list[Block]:
    unit, unit_name, title = _unit(evaluation)
    base, others = evaluation.base, list(evaluation.entries[1:])
    better = "higher" if evaluation.higher_is_better else "lower"
    windows = len(base.values)
    said = f"{windows:,} windows" + (f" of {evaluation.length:,} jobs" if evaluation.length else "")
    said += f" of {evaluation.workload}" if evaluation.workload else ""
    head = f"{said}; {_name(evaluation.metric)}, {better} is better; the base is {base.name}."
    if any(one.oracle for one in evaluation.entries):
        head += f" * {ORACLE_NOTE}."
    drawn = [means(evaluation, sheet)]
    compared = [k for k, one in enumerate(evaluation.entries) if k and one.difference is not None]
    if compared:
        rows = forest(
            [evaluation.entries[k].label for k in compared],
            [evaluation.entries[k].difference for k in compared],
            _beyond_base(unit_name),
            unit=unit,
            line=0.0,
            groups=compared,
        )
        side = "right" if evaluation.higher_is_better else "left"
        said = f"Mean paired difference to the base with its 95 % interval; {side} of the line is better."
        drawn.append(sheet.add(rows, said))
    after = ""
    if others:
        scatter = sheet.add(
            _scatter(evaluation, unit, title),
            f"Every window under each policy (up) and under the base (right): {_side(evaluation)} the dashed "
            "line the policy is better." + (" Click a name to show it." if len(others) > VISIBLE else ""),
        )
        box, outside = _box(evaluation, unit, unit_name)
        drawn += [scatter, sheet.add(box, "Paired differences to the base: quartiles, whiskers, outliers.")]
        if outside:
            total = len(others) * windows
            after = (
                f"The boxes' chart first shows {total - outside:,} of {total:,} paired differences; "
                "double-click it to see all."
            )
    return [head, drawn, after, _table(evaluation)]


def means(evaluation: Evaluation, sheet: Sheet) -> Chart:
    """Return the chart of every policy's mean."""
    unit, _, title = _unit(evaluation)
    labels, found = [one.label for one in evaluation.entries], [one.mean for one in evaluation.entries]
    rows = forest(labels, found, f"mean {title}", unit=unit, from_zero=True)
    return sheet.add(rows, f"Mean {_name(evaluation.metric)} of each policy with its 95 % interval.")


def _name(metric: str) -> str:
    return TITLES.get(metric, metric)


def _side(evaluation: Evaluation) -> str:
    return "above" if evaluation.higher_is_better else "below"


def _unit(evaluation: Evaluation) -> tuple[float, str, str]:
    """Return what values are divided by, the unit's name, and the axis title with it, safe in a chart."""
    name = label(_name(evaluation.metric))
    if evaluation.metric.split(".")[0] in ("wait", "turnaround"):
        typical = max(float(one.values.mean()) for one in evaluation.entries)
        unit, unit_name = time_unit(typical)
        return unit, unit_name, f"{name} ({unit_name})"
    if evaluation.higher_is_better:
        return 0.01, "%", f"{name} (%)"
    return 1.0, "", name


def _beyond_base(unit_name: str) -> str:
    return "policy − base" + (f" ({unit_name})" if unit_name else "")


def _scatter(evaluation: Evaluation, unit: float, title: str) -> object:
    base = evaluation.base.values / unit
    everything = np.concatenate([one.values / unit for one in evaluation.entries])
    low, high = float(everything.min()), float(everything.max())
    log = low > 0 and high > WIDE * low
    if log:
        low, high = low / 1.15, high * 1.15
        ends = [float(np.log10(low)), float(np.log10(high))]
    else:
        pad = 0.04 * (high - low) or 0.5
        low, high = low - pad, high + pad
        ends = [low, high]
    kind = {"type": "log", "dtick": 1} if log else {"type": "linear"}
    both = {"range": significant(ends), "zeroline": False, **kind}
    traces = [diagonal(low, high)]
    others = evaluation.entries[1:]
    visible = sorted(range(1, len(others) + 1), key=lambda k: not evaluation.entries[k].agent)[:VISIBLE]
    for k, one in enumerate(others, 1):
        told = [f"window from job {start:,}" for start in evaluation.starts] or [
            f"window {w:,}" for w in range(1, len(base) + 1)
        ]
        trace = points(
            base,
            one.values / unit,
            one.label,
            k,
            opacity=0.7,
            visible=True if k in visible else "legendonly",
            customdata=told,
            hovertemplate="%{customdata}<br>base %{x:,}<br>%{fullData.name} %{y:,}<extra></extra>",
        )
        traces.append(trace)
    return figure(
        traces,
        400 + 12 * min(len(others), 20),  # the legend grows
        xaxis=axis(f"{title}, base", **both),
        yaxis=axis(f"{title}, policy", **both),
    )


def _box(evaluation: Evaluation, unit: float, unit_name: str) -> tuple[object, int]:
    """Return the box chart, and how many differences lie outside of what it shows first."""
    others = evaluation.entries[1:]
    differences = [(one.values - evaluation.base.values) / unit for one in others]
    everything = np.concatenate(differences)
    low, high = (float(v) for v in np.quantile(np.append(everything, 0.0), SHOWN))
    pad = 0.06 * (high - low) or 0.5
    low, high = low - pad, high + pad
    traces = [
        LOOKS["box"]
        | {"x": significant(values), "y": [k] * len(values), "y0": k, "name": label(one.label)}
        | {"line": {"color": colour(k + 1), "width": 1.6}}
        for k, (one, values) in enumerate(zip(others, differences, strict=True))
    ]
    drawn = figure(
        traces,
        AROUND + (ROW_BOX if len(others) <= MANY else DENSE_ROW_BOX) * len(others),
        xaxis=axis(_beyond_base(unit_name), range=significant([low, high]), zeroline=False),
        yaxis=rows_axis(len(others)),
        annotations=row_names([one.label for one in others], 22),
        shapes=[vertical(0.0)],
        boxmode="overlay",
    )
    return drawn, int(((everything < low) | (everything > high)).sum())


def _table(evaluation: Evaluation) -> Table:
    metric, base = evaluation.metric, evaluation.base
    several = len({(one.protocol, one.estimator) for one in evaluation.entries}) > 1
    headings = ["policy", "mean", "95 % interval", "− base", "95 % interval", "better in", "verdict"]
    if several:
        headings += ["protocol", "estimator"]
    sign = 1.0 if evaluation.higher_is_better else -1.0
    rows = []
    for one in evaluation.entries:
        wins = "" if one is base else f"{100 * float((sign * (one.values - base.values) > 0).mean()):.0f} %"
        row = [
            one.label,
            show(metric, one.mean.mean),
            between(metric, one.mean),
            "base" if one is base else signed(metric, one.difference.mean if one.difference else None),
            between(metric, one.difference, signs=True),
            wins,
            one.verdict,
        ]
        rows.append([*row, one.protocol, one.estimator] if several else row)
    caption = f"{_name(metric)} over {len(base.values):,} windows"
    return Table(headings, rows, caption=caption, words=(6, 7, 8))


def signed(key: str, value: float | None) -> str:
    """Return a difference of a metric with its sign."""
    if value is None:
        return "–"
    return show(key, value) if value == 0 else ("+" if value > 0 else "−") + show(key, abs(value))


def between(metric: str, interval: Estimate | None, *, signs: bool = False) -> str:
    """Return an interval of a metric; a dash where it has no bounds."""
    if interval is None:
        return ""
    if np.isnan(interval.low):
        return "–"
    shown = signed if signs else show
    return f"{shown(metric, interval.low)} … {shown(metric, interval.high)}"
