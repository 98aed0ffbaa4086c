"""Runs on the page: metrics with intervals, queue and utilisation over time, the schedule."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bridge.base.arrays import Flags, Floats
from bridge.base.counted import counted
from bridge.judge.fidelity import describe, run_distance
from bridge.judge.jobs import Started, started
from bridge.judge.metrics import (
    BSLD_THRESHOLD,
    bounded_slowdown,
    note_without_waits,
    step_function,
)
from bridge.judge.run import Run
from bridge.judge.stats import ConfidenceInterval, block_bootstrap
from bridge.report.page import charts
from bridge.report.page.charts import Block, Chart, Sheet
from bridge.report.plots import bin_step_function, time_unit
from bridge.report.table import Table
from bridge.report.tables import ORACLE_NOTE, ROWS, duration, format_interval, format_metric

if TYPE_CHECKING:
    from bridge.judge.hosts import HostAllocation
#: A block of the bootstrap holds this share of a run's jobs; for fewer jobs than this there is no interval.
SHARE, FEWEST = 0.05, 100
#: Equal spans that curves over time are means over; several curves of utilisation need fewer to be read.
SPANS, FEWER_SPANS = 400, 100
#: More lines than this cannot be told apart.
MOST_LINES = len(charts.COLOURS) * len(charts.DASHES)
#: Classes of waits: up to so many s, the name, the number of the colour; cool to warm.
CLASSES: tuple[tuple[float, str, int], ...] = (
    *((0.0, "no wait", 4), (600.0, "≤ 10 min", 0), (3600.0, "≤ 1 h", 2)),
    *((28_800.0, "≤ 8 h", 7), (86_400.0, "≤ 1 day", 1), (np.inf, "longer", 5)),
)
#: Beyond so many bars only the largest jobs are drawn: the others are hardly seen beside them, and a
#: browser takes a second for each zoom. A job has one bar per interval of neighbouring nodes.
MOST_BARS = 8_000
#: Neighbours of one class differ in opacity, so that they can be told apart at every zoom.
OPACITIES = (1.0, 0.88, 0.76)
#: Rows of the table beside the schedule, and decimals that are needed to tell seconds in each unit of time.
LONGEST_WAITS, DECIMALS = 10, {"s": 3, "min": 4, "h": 5, "days": 5}


def run_label(name: str, run: Run) -> str:
    """Return a run's name with the mark of oracles."""
    return f"{name} *" if run.oracle else name


def mean_over_jobs(values: Floats) -> ConfidenceInterval:
    """Return a mean over jobs [jobs] in order of submission, with its interval over blocks of jobs."""
    if len(values) < FEWEST:
        return ConfidenceInterval(float(values.mean()), float("nan"), float("nan"), len(values))
    return block_bootstrap(values, int(SHARE * len(values)))


def metrics(runs: Sequence[tuple[str, Run]], sheet: Sheet) -> list[Block]:
    if not runs:
        return []
    names = [run_label(name, run) for name, run in runs]
    waits, slowdowns = zip(*(_means(run) for _, run in runs), strict=True)
    charts_of_metrics: list[Chart] = []
    for kind, intervals in (("mean bounded slowdown", slowdowns), ("mean wait", waits)):
        means_of_kind = [one.mean if np.isnan(one.high) else one.high for one in intervals if one is not None]
        if means_of_kind:
            unit, unit_name = time_unit(max(means_of_kind)) if kind == "mean wait" else (1.0, "")
            title = f"{kind} ({unit_name})" if unit_name else kind
            rows = charts.forest(names, intervals, title, unit=unit, from_zero=True)
            charts_of_metrics.append(sheet.add(rows, f"{kind.capitalize()} of each run."))
    used = [run.metrics.get("utilisation.nodes") for _, run in runs]
    if any(value is not None for value in used):
        shares = [None if value is None else ConfidenceInterval(value, np.nan, np.nan, 1) for value in used]
        rows = charts.forest(names, shares, "utilisation (% of node-time)", unit=0.01, from_zero=True)
        charts_of_metrics.append(sheet.add(rows, "Share of the machine's node-time that jobs used."))
    blocks = sorted({one.b for one in slowdowns if one is not None and one.kind})
    b = f" (b = {' or '.join(map(str, blocks))})" if blocks else ""
    lead = (
        "Bars are 95 % intervals: circular block bootstrap over jobs in order of submission, blocks of 5 %"
        f"{b}. They say how much a mean hangs on the part of the log that was replayed; runs of fewer than "
        f"{FEWEST} jobs have none."
    )
    if any(run.oracle for _, run in runs):
        lead += f" * {ORACLE_NOTE}."
    near = [(name, run_distance(run.jobs)) for name, run in runs]
    lines = [f"{name}: {describe(distance)}." for name, distance in near if distance]
    if note := note_without_waits(run.metrics.get("wait.max") for _, run in runs):
        lines.append(f"{note}.")
    table = _table(runs, names, {"wait.mean": waits, "bsld.mean": slowdowns})
    return [charts_of_metrics, lead, table, *lines]


def _means(run: Run) -> tuple[ConfidenceInterval | None, ConfidenceInterval | None]:
    done = started(run.jobs.sort_values("submission_time", kind="stable"), killed=False)
    if len(done) == 0:
        return None, None
    threshold = run.metrics.get("bsld.threshold") or BSLD_THRESHOLD
    return mean_over_jobs(done.wait), mean_over_jobs(bounded_slowdown(done.wait, done.run, threshold))


def _table(
    runs: Sequence[tuple[str, Run]],
    names: Sequence[str],
    intervals: Mapping[str, Sequence[ConfidenceInterval | None]],
) -> Table:
    """Return one column per run: that reads well for one run, and scrolls for many."""
    table = Table(["", *names])
    resources = dict.fromkeys(name for _, run in runs for name in run.capacity)
    both = (("", ""), (", trimmed", ".trimmed"))
    used = [(f"utilisation, {r}{label}", f"utilisation.{r}{key}") for r in resources for label, key in both]
    for title, key in (one for row in ROWS for one in (used if "{}" in row[1] else [row])):
        values = [run.metrics.get(key) for _, run in runs]
        if any(value is not None for value in values):
            table.add(title, *(format_metric(key, value) for value in values))
        if key in intervals:
            table.add("  95 % interval", *(format_interval(key, interval) for interval in intervals[key]))
    return table


def over_time(runs: Sequence[tuple[str, Run]], sheet: Sheet) -> list[Block]:
    """Return queue length and utilisation over time; nothing if no job of any run started."""
    runs = [(name, run) for name, run in runs if run.jobs["starting_time"].notna().any()]
    if not runs:
        return []
    charts_of_steps = curves(runs[:MOST_LINES], sheet)
    lead = f"The first {MOST_LINES} runs are drawn." if len(runs) > MOST_LINES else ""
    keys = ("queue.jobs.mean", "queue.jobs.max", "queue.nodes.mean", "queue.nodes.max", "utilisation.nodes")
    headings = ("run", "jobs waiting, mean", "max", "nodes waited for, mean", "max", "utilisation")
    rows = [
        [run_label(name, run), *(format_metric(key, run.metrics.get(key)) for key in keys)]
        for name, run in runs
    ]
    return [charts_of_steps, lead, Table(headings, rows)]


def curves(runs: Sequence[tuple[str, Run]], sheet: Sheet, what: str = "") -> list[Chart]:
    """Return two charts with one line per run, at most ``MOST_LINES``: jobs that wait, and nodes in use."""
    started_jobs = [started(run.jobs) for _, run in runs]
    spans = [(float(done.submit.min()), float(done.end.max())) for done in started_jobs]
    unit, unit_name = time_unit(max(end - first for first, end in spans))
    queues: list[dict[str, Any]] = []
    uses: list[dict[str, Any]] = []
    parts = SPANS if len(runs) == 1 else FEWER_SPANS
    alone = {"fill": "tozeroy"} if len(runs) == 1 else {}
    for k, ((name, run), (first, end)) in enumerate(zip(runs, spans, strict=True)):
        looks = {"color": charts.colour(k), "dash": charts.dash(k), "width": 1.6, "shape": "hv"}
        more = {"hovertemplate": "%{y:,}", "showlegend": len(runs) > 1} | alone
        for into, over, count in ((queues, _waiting, SPANS), (uses, _used, parts)):
            edges = np.linspace(first, max(end, first + 1e-6), count + 1)
            x, values = charts.significant((edges[:-1] - first) / unit), charts.fixed(over(run, edges), 2)
            into.append(charts.curve(x, values, charts.label(run_label(name, run)), looks, **more))
    bottom = charts.axis(f"time since the first submission ({unit_name})")
    both = {"hovermode": "x unified", "dragmode": "zoom", "xaxis": bottom}
    full = {"shapes": [charts.LOOKS["full"]], "annotations": [charts.LOOKS["all_nodes"]]}
    waiting = charts.figure(queues, 330, yaxis=charts.axis("jobs waiting", rangemode="tozero"), **both)
    use = charts.figure(uses, 330, yaxis=charts.axis("nodes in use (%)", range=[0, 110]), **full, **both)
    of = f" of {what}" if what else ""
    return [
        sheet.add(waiting, f"Jobs waiting over time{of}; means over 1/{SPANS} of it.", wide=True),
        sheet.add(use, f"Utilisation over time{of}; means over 1/{parts} of it.", wide=True),
    ]


def _waiting(run: Run, edges: Floats) -> Floats:
    done = started(run.jobs, killed=False)
    return _mean(done.submit, done.start, np.ones(len(done)), edges)


def _used(run: Run, edges: Floats) -> Floats:
    done = started(run.jobs)
    return 100 * _mean(done.start, done.end, done.nodes, edges) / max(run.capacity.get("nodes", 0), 1)


def _mean(begin: Floats, end: Floats, amounts: Floats, edges: Floats) -> Floats:
    times, changes = np.concatenate((begin, end)), np.concatenate((amounts, -amounts))
    return bin_step_function(*step_function(times, changes), edges)[0]


def schedule(named_run: tuple[str, Run], sheet: Sheet) -> list[Block]:
    """Return the Gantt chart of a run, hosts up and time to the right; nothing if no job started."""
    name, run = named_run
    jobs, nodes = started(run.jobs), run.capacity.get("nodes", 0)
    if len(jobs) == 0:
        return []
    from bridge.judge.hosts import hosts_of  # compiles kernels

    allocation, placed = hosts_of(jobs.jobs, nodes, name)
    work = jobs.nodes * jobs.run
    largest = np.argsort(-work, kind="stable")
    bars = np.cumsum(np.diff(allocation.offsets)[largest])
    is_visible = np.zeros(len(jobs), np.bool_)
    is_visible[largest[bars <= MOST_BARS]] = True
    lead = "" if placed else "The run tells no nodes: each job is placed on the lowest free ones. "
    if not is_visible.all():
        share = work[is_visible].sum() / work.sum() if work.sum() else 1.0
        lead += f"Drawn are the {is_visible.sum():,} largest jobs, {100 * share:.1f} % of the node-time."
    caption = f"Schedule of {run_label(name, run)}: {counted(len(jobs), 'job')} on {counted(nodes, 'node')}."
    chart = sheet.add(_bars(jobs, allocation, is_visible, nodes), caption, wide=True)
    return [[chart], lead.strip(), _longest_waits(jobs)]


def _bars(jobs: Started, allocation: "HostAllocation", is_visible: Flags, nodes: int) -> object:
    """Return one trace per class of wait."""
    first, end = float(jobs.submit.min()), float(jobs.end.max())
    unit, unit_name = time_unit(end - first)
    decimals = DECIMALS[unit_name]
    owner = np.repeat(np.arange(len(jobs)), np.diff(allocation.offsets))
    low, high = allocation.first, allocation.last + 1
    hover_texts = [
        f"job {charts.label(job)}<br>{n:,} node{'s' * (n != 1)}<br>waited {duration(w)}<br>ran {duration(r)}"
        for job, n, w, r in _listed(jobs, jobs.nodes.astype(np.int64), jobs.wait, jobs.run)
    ]
    kind = np.searchsorted([limit for limit, _, _ in CLASSES], jobs.wait)
    traces = []
    for k, (_, title, shade) in enumerate(CLASSES):
        bars = np.flatnonzero((kind[owner] == k) & is_visible[owner])
        rows = owner[bars]
        opacity = [OPACITIES[row % len(OPACITIES)] for row in rows.tolist()]
        place = {
            "base": charts.fixed((jobs.start[rows] - first) / unit, decimals),
            "x": charts.fixed(jobs.run[rows] / unit, decimals),
            "y": charts.fixed((low[bars] + high[bars]) / 2, 1),
            "width": charts.fixed(high[bars] - low[bars], 0),
            "marker": {"color": charts.colour(shade), "opacity": opacity, "line": {"width": 0}},
            "customdata": [hover_texts[row] for row in rows.tolist()],
        }
        if len(bars):
            traces.append(charts.LOOKS["bar"] | {"name": title} | place)
    hosts = max(nodes, int(high.max(initial=0)))
    span, still = [0, round((end - first) / unit, decimals)], {"showgrid": False, "zeroline": False}
    bottom = charts.axis(f"time since the first submission ({unit_name})", range=span, zeroline=False)
    height = int(np.clip(240 + hosts, 300, 520))
    left = charts.axis("node", range=[0, hosts], **still)
    return charts.figure(traces, height, xaxis=bottom, yaxis=left, **charts.LOOKS["gantt"])


def _listed(jobs: Started, *columns: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    return zip(jobs.jobs["job_id"].astype("str"), *(column.tolist() for column in columns), strict=True)


def _longest_waits(jobs: Started) -> Table:
    first = float(jobs.submit.min())
    times = (jobs.submit - first, jobs.start - first, jobs.wait, jobs.run)
    everything = list(_listed(jobs, jobs.nodes, *times))
    longest = np.argsort(-jobs.wait, kind="stable")[:LONGEST_WAITS].tolist()
    rows = [
        (job, f"{int(nodes):,}", *map(duration, at)) for job, nodes, *at in (everything[k] for k in longest)
    ]
    caption = f"The {len(longest)} longest waits." if len(longest) > 1 else "The longest wait."
    return Table(("job", "nodes", "submitted after", "started after", "wait", "run"), rows, caption=caption)
