"""The fast world against the detailed platform: metrics, ranks, and every job's wait in both."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from bridge.base.counted import counted
from bridge.judge.compare import index_by_job
from bridge.judge.run import Run
from bridge.judge.world_agreement import Agreement, Rank
from bridge.report.page import charts
from bridge.report.page.charts import Block, Sheet
from bridge.report.page.inputs import ValidationInput
from bridge.report.page.runs import curves
from bridge.report.table import Table
from bridge.report.tables import COMPARED, RATIOS, difference, duration, format_metric, metric_name

#: Points of a scatter chart; of more jobs every k-th is drawn.
MOST_POINTS = 4_000


def validated(validation: ValidationInput, sheet: Sheet) -> list[Block]:
    """Return a validation: metrics, ranks, and each policy's jobs in both worlds."""
    document = validation.document
    policies = document.policies
    names = [one.policy for one in policies]
    charts_of_worlds = []
    if any(_ratio(one, key) is not None for one in policies for key in RATIOS):
        caption = "Each metric on the detailed platform, as a multiple of the fast world's."
        charts_of_worlds.append(sheet.add(_ratios(policies), caption))
    compared = {policy: _waits(*pair) for policy, pair in validation.runs.items()}
    compared = {policy: pair for policy, pair in compared.items() if len(pair[0])}
    if compared:
        caption = "Every job's wait in both worlds: on the dashed line it is the same. "
        charts_of_worlds.append(sheet.add(_scatter(names, compared), f"{caption}Below 1 s is drawn at 1 s."))
    body: list[Block] = [_inputs(document.inputs), charts_of_worlds, _ranks(document.ranks)]
    for one in policies:
        body += [
            Markup('<h4 class="policy">{}</h4>').format(charts.shortened(one.policy, 200)),
            _agreement_text(one),
        ]
        pair = validation.runs.get(one.policy)
        if pair and all(run.jobs["starting_time"].notna().any() for run in pair):
            body.append(curves([("fast", pair[0]), ("detailed", pair[1])], sheet, one.policy))
        body.append(_table(one))
    if len(validation.runs) < len(policies):
        body.append("Runs that do not lie beside the validation are not compared job by job.")
    return body


#: What a validation tells of its inputs.
INPUTS = ("workload", "jobs", "nodes", "platform", "world", "profile", "walltime", "placement", "estimator")


def _inputs(inputs: Mapping[str, Any]) -> str:
    values = {key: inputs[key] for key in INPUTS if inputs.get(key) is not None}
    return " · ".join(f"{k} {v:,}" if isinstance(v, int) else f"{k} {v}" for k, v in values.items())


def _ratio(one: Agreement, key: str) -> float | None:
    fast, detailed = one.fast.get(key), one.detailed.get(key)
    if not fast or detailed is None or fast < 0 or detailed <= 0:
        return None
    return float(detailed / fast)


def _ratios(agreements: Sequence[Agreement]) -> Any:
    traces: list[dict[str, Any]] = []
    everything = [1.0]
    offsets = np.linspace(-0.11, 0.11, len(agreements)) if len(agreements) > 1 else np.zeros(1)
    for k, one in enumerate(agreements):
        values = {row: _ratio(one, key) for row, key in enumerate(RATIOS)}
        values_by_row = {row + offsets[k]: value for row, value in values.items() if value is not None}
        everything += values_by_row.values()
        hover = "%{fullData.name}: × %{x}<extra></extra>"
        traces.append(
            charts.points(
                [*values_by_row.values()], [*values_by_row], one.policy, k, size=10, hovertemplate=hover
            )
        )
    span = charts.significant(charts.padded(everything))
    bottom, rows = charts.axis("detailed ÷ fast", range=span, zeroline=False), charts.rows_axis(len(RATIOS))
    above = {"annotations": charts.row_names(RATIOS.values(), 24), "shapes": [charts.vertical(1.0)]}
    return charts.figure(traces, 500, xaxis=bottom, yaxis=rows, **above)


def _waits(fast: Run, detailed: Run) -> tuple[Any, Any, Any]:
    """Return ids and waits, in s, of the jobs that started in both worlds."""
    here, there = (
        table["waiting_time"].dropna() for table in index_by_job((fast, detailed), (fast.name, detailed.name))
    )
    common = here.index.intersection(there.index, sort=False)
    common = common[:: max(1, -(-len(common) // MOST_POINTS))]
    return common.to_numpy(), here[common].to_numpy(np.float64), there[common].to_numpy(np.float64)


def _scatter(names: Sequence[str], compared: Mapping[str, tuple[Any, Any, Any]]) -> Any:
    longest = max(float(max(fast.max(), detailed.max())) for _, fast, detailed in compared.values())
    traces = [charts.diagonal(0.8, max(longest, 60.0) * 1.3)]
    for policy, (ids, fast, detailed) in compared.items():
        hover_texts = [
            f"job {charts.label(job)}<br>waits {duration(a)} fast<br>{duration(b)} detailed"
            for job, a, b in zip(ids, fast, detailed, strict=True)
        ]
        hover = "%{customdata}<extra>%{fullData.name}</extra>"
        x, y, k = np.maximum(fast, 1.0), np.maximum(detailed, 1.0), names.index(policy)
        traces.append(
            charts.points(x, y, policy, k, opacity=0.6, customdata=hover_texts, hovertemplate=hover)
        )
    right = charts.waits_axis("wait in the fast world", longest)
    up = charts.waits_axis("wait on the platform", longest)
    return charts.figure(traces, 500, xaxis=right, yaxis=up)


def _ranks(ranks: Mapping[str, Rank]) -> Block:
    rows = [(key, str(rank).replace("-", "−")) for key, rank in ranks.items()]
    caption = "How far both worlds rank the policies alike: 1 the same order, −1 the reverse."
    return Table(("metric", "Kendall τ"), rows, caption=caption) if rows else ""


def _agreement_text(one: Agreement) -> str:
    jobs = one.jobs
    text = (
        f"{jobs.differing_starts:,} of {counted(jobs.common, 'job')} start at another time on the platform."
    )
    if (more := jobs.wait_mean) is not None:
        length = f"{duration(abs(more))} {'longer' if more > 0 else 'less'}" if more else "as long"
        text += f" They wait {length} in the mean."
    if one.longer and one.stretch:
        mean, most = one.stretch
        text += f" {counted(one.longer, 'job')} ran longer; "
        text += f"run times are {mean:.3f} times as long in the mean, {most:.3f} at most."
    if one.reason and jobs.first:
        text += f" The first is job {jobs.first.job}: {one.reason}."
    return text


def _table(one: Agreement) -> Table:
    rows = []
    for key in (*COMPARED, "utilisation.nodes", "energy.joules"):
        fast, detailed = one.fast.get(key), one.detailed.get(key)
        if fast is not None or detailed is not None:
            step = difference(key, fast, one.differences.get(key))
            rows.append([metric_name(key), format_metric(key, fast), format_metric(key, detailed), step])
    return Table(("metric", "fast", "detailed", "difference"), rows)
