"""Policy against policy on the same windows: means, paired differences, and every window against the base."""

from typing import Any

import numpy as np

from bridge.base.counted import counted
from bridge.judge.stats import INTERVALS
from bridge.report.evaluation_document import EvaluationDocument
from bridge.report.page import charts
from bridge.report.page.charts import Block, Chart, Sheet
from bridge.report.plots import time_unit
from bridge.report.table import Table
from bridge.report.tables import ORACLE_NOTE, TITLES, format_interval, format_metric, signed

#: The box chart shows differences between these quantiles first; zooming out shows all.
QUANTILES_DRAWN = (0.01, 0.99)
#: Height of one row of the box chart, px.
ROW_BOX, DENSE_ROW_BOX = 70, 54
#: Policies that the scatter chart shows from the start, agents first; the others on a click.
VISIBLE = 4


def evaluation_section(evaluation: EvaluationDocument, sheet: Sheet) -> list[Block]:
    """Return an evaluation: its charts and its table."""
    unit, unit_name, title = _unit(evaluation)
    axis = "policy − base" + (f" ({unit_name})" if unit_name else "")
    base, others = evaluation.base, evaluation.entries[1:]
    higher = evaluation.higher_is_better
    better, side, where = ("higher", "right", "above") if higher else ("lower", "left", "below")
    windows = len(base.values)
    head = counted(windows, "window") + (f" of {evaluation.length:,} jobs" if evaluation.length else "")
    head += f" of {evaluation.workload}" if evaluation.workload else ""
    head += f"; {_name(evaluation.metric)}, {better} is better; the base is {base.name}."
    head += f" * {ORACLE_NOTE}." if any(one.oracle for one in evaluation.entries) else ""
    charts_of_policies, after = [means(evaluation, sheet)], ""
    compared = {k: one for k, one in enumerate(evaluation.entries) if one.difference is not None and k}
    if compared:
        names, intervals = zip(*((one.label, one.difference) for one in compared.values()), strict=True)
        rows = charts.forest(names, intervals, axis, unit=unit, line=0.0, groups=list(compared))
        caption = f"Mean paired difference to the base with its 95 % interval; {side} of the line is better."
        charts_of_policies.append(sheet.add(rows, caption))
    if others:
        caption = (
            f"Every window under each policy (up) and under the base (right): {where} the dashed line the "
        )
        caption += "policy is better." + (" Click a name to show it." if len(others) > VISIBLE else "")
        charts_of_policies.append(sheet.add(_scatter(evaluation, unit, title), caption))
        box, outside = _box(evaluation, unit, axis)
        charts_of_policies.append(
            sheet.add(box, "Paired differences to the base: quartiles, whiskers, outliers.")
        )
        total = len(others) * windows
        if outside:
            after = f"The boxes' chart first shows {total - outside:,} of {total:,} paired differences; "
            after += "double-click it to see all."
    return [head, charts_of_policies, after, _table(evaluation)]


def means(evaluation: EvaluationDocument, sheet: Sheet) -> Chart:
    unit, _, title = _unit(evaluation)
    labels, intervals = zip(*((one.label, one.mean) for one in evaluation.entries), strict=True)
    rows = charts.forest(labels, intervals, f"mean {title}", unit=unit, from_zero=True)
    return sheet.add(rows, f"Mean {_name(evaluation.metric)} of each policy with its 95 % interval.")


def _name(metric: str) -> str:
    return str(TITLES.get(metric, metric))


def _unit(evaluation: EvaluationDocument) -> tuple[float, str, str]:
    """Return what values are divided by, the unit's name, and the axis title with it, safe in a chart."""
    name = charts.label(_name(evaluation.metric))
    if evaluation.metric.split(".")[0] in ("wait", "turnaround"):
        typical = max(float(one.values.mean()) for one in evaluation.entries)
        unit, unit_name = time_unit(typical)
        return unit, unit_name, f"{name} ({unit_name})"
    if evaluation.higher_is_better:
        return 0.01, "%", f"{name} (%)"
    return 1.0, "", name


def _scatter(evaluation: EvaluationDocument, unit: float, title: str) -> object:
    base, *others = (one.values / unit for one in evaluation.entries)
    everything = np.concatenate((base, *others))
    low, high = float(everything.min()), float(everything.max())
    log = low > 0 and high > charts.WIDE * low
    if log:
        low, high = low / 1.15, high * 1.15
        ends = charts.significant(np.log10([low, high]))
    else:
        low, high = charts.padded([low, high], 0.04)
        ends = charts.significant([low, high])
    both = {"range": ends, "zeroline": False, **({"type": "log", "dtick": 1} if log else {"type": "linear"})}
    windows = [f"window from job {start:,}" for start in evaluation.starts]
    windows = windows or [f"window {w:,}" for w in range(1, len(base) + 1)]
    hover = "%{customdata}<br>base %{x:,}<br>%{fullData.name} %{y:,}<extra></extra>"
    ranked = sorted(range(1, len(others) + 1), key=lambda k: not evaluation.entries[k].agent)
    traces = [charts.diagonal(low, high)]
    for k, values in enumerate(others, 1):
        more: dict[str, Any] = {"visible": True if k in ranked[:VISIBLE] else "legendonly"}
        more |= {"customdata": windows, "hovertemplate": hover}
        name = evaluation.entries[k].label
        traces.append(charts.points(base, values, name, k, opacity=0.7, **more))
    below, left = charts.axis(f"{title}, base", **both), charts.axis(f"{title}, policy", **both)
    return charts.figure(traces, 400 + 12 * min(len(others), 20), xaxis=below, yaxis=left)  # the legend grows


def _box(evaluation: EvaluationDocument, unit: float, title: str) -> tuple[object, int]:
    """Return the box chart, and how many differences lie outside of what it shows first."""
    others = evaluation.entries[1:]
    differences = [(one.values - evaluation.base.values) / unit for one in others]
    everything = np.concatenate(differences)
    low, high = charts.padded(np.quantile(np.append(everything, 0.0), QUANTILES_DRAWN).tolist(), 0.06)
    traces = [
        charts.LOOKS["box"]
        | {"x": charts.significant(values), "y": [k] * len(values), "y0": k, "name": charts.label(one.label)}
        | {"line": {"color": charts.colour(k + 1), "width": 1.6}}
        for k, (one, values) in enumerate(zip(others, differences, strict=True))
    ]
    figure = charts.figure(
        traces,
        charts.AROUND + (ROW_BOX if len(others) <= charts.MANY else DENSE_ROW_BOX) * len(others),
        xaxis=charts.axis(title, range=charts.significant([low, high]), zeroline=False),
        yaxis=charts.rows_axis(len(others)),
        annotations=charts.row_names([one.label for one in others], 22),
        shapes=[charts.vertical(0.0)],
        boxmode="overlay",
    )
    return figure, int(((everything < low) | (everything > high)).sum())


def _table(evaluation: EvaluationDocument) -> Table:
    metric, base = evaluation.metric, evaluation.base
    several = len({(one.protocol, one.estimator) for one in evaluation.entries}) > 1
    sign = 1.0 if evaluation.higher_is_better else -1.0
    rows = []
    for one in evaluation.entries:
        differ = one.difference
        wins = "" if one is base else f"{100 * float((sign * (one.values - base.values) > 0).mean()):.0f} %"
        row = [one.label, format_metric(metric, one.mean.mean), format_interval(metric, one.mean)]
        row += ["base" if one is base else signed(metric, differ.mean if differ else None)]
        row += [format_interval(metric, differ, signed) if differ else "", wins, one.verdict]
        rows.append([*row, one.protocol, one.estimator] if several else row)
    headings = ["policy", "mean", "95 % interval", "− base", "95 % interval", "better in", "verdict"]
    headings += ["protocol", "estimator"] if several else []
    caption = f"{_name(metric)} over {counted(len(base.values), 'window')}"
    caption += f", b = {base.mean.b:,}. {INTERVALS}" if base.mean.b else ""
    return Table(headings, rows, caption=caption, words=(6, 7, 8))
