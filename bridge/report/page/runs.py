"""Runs on the page: their metrics with intervals, and queue and utilisation over time."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.judge.jobs import started
from bridge.judge.metrics import BSLD_THRESHOLD, Floats, bounded_slowdown, level
from bridge.judge.stats import Estimate, block_bootstrap
from bridge.report.html import Section, label
from bridge.report.page.charts import (
    COLOURS,
    DASHES,
    LOOKS,
    Chart,
    Sheet,
    axis,
    colour,
    curve,
    dash,
    figure,
    fixed,
    forest,
    significant,
)
from bridge.report.plots import binned
from bridge.report.style import time_unit
from bridge.report.table import Table
from bridge.report.tables import ORACLE_NOTE, STATISTICS, show

if TYPE_CHECKING:
    from bridge.judge.run import Run

#: A block of the bootstrap holds this share of a run's jobs; for fewer jobs than this there is no interval.
SHARE, FEWEST = 0.05, 100
#: Equal spans that curves over time are means over; several curves of utilisation need fewer to be read.
SPANS, FEWER_SPANS = 400, 100
#: More lines than this cannot be told apart.
MOST_LINES = len(COLOURS) * len(DASHES)


def named(name: str, run: "Run") -> str:
    """Return a run's name with the mark of oracles."""
    return f"{name} *" if run.oracle else name


def mean_over_jobs(values: Floats) -> Estimate:
    """Return a mean over jobs in order of submission, with a moving-block bootstrap interval.

    Args:
        values: one per job, shape (jobs,), at least one. Below ``FEWEST`` jobs the bounds are NaN.
    """
    if len(values) < FEWEST:
        return Estimate(float(values.mean()), float("nan"), float("nan"), len(values))
    return block_bootstrap(values, int(np.ceil(SHARE * len(values))))


def metrics(runs: "Sequence[tuple[str, Run]]", sheet: Sheet) -> Section | None:
    """Return the metrics of every run; None without runs."""
    if not runs:
        return None
    names = [named(name, run) for name, run in runs]
    waits, slowdowns = zip(*(_means(run) for _, run in runs), strict=True)
    drawn: list[Chart] = []
    for kind, found in (("mean bounded slowdown", slowdowns), ("mean wait", waits)):
        known = [one.mean if np.isnan(one.high) else one.high for one in found if one is not None]
        if not known:
            continue
        unit, unit_name = time_unit(max(known)) if kind == "mean wait" else (1.0, "")
        title = f"{kind} ({unit_name})" if unit_name else kind
        rows = forest(names, found, title, unit=unit, from_zero=True)
        drawn.append(sheet.add(rows, f"{kind.capitalize()} of each run."))
    used = [run.metrics.get("utilisation.nodes") for _, run in runs]
    if any(value is not None for value in used):
        shares = [None if value is None else Estimate(value, np.nan, np.nan, 1) for value in used]
        rows = forest(names, shares, "utilisation (% of node-time)", unit=0.01, from_zero=True)
        drawn.append(sheet.add(rows, "Share of the machine's node-time that jobs used."))
    said = (
        "Bars are 95 % intervals: moving-block bootstrap over jobs in order of submission, blocks of 5 % "
        "of the jobs. They say how much a mean hangs on the part of the log that was replayed; runs of fewer "
        f"than {FEWEST} jobs have none."
    )
    if any(run.oracle for _, run in runs):
        said += f" * {ORACLE_NOTE}."
    body = (drawn, said, _table(runs, names, {"wait.mean": waits, "bsld.mean": slowdowns}))
    count = "The run's" if len(runs) == 1 else f"The {len(runs)} runs'"
    lead = f"{count} waits, bounded slowdowns and use of the machine, with 95 % intervals of the means."
    return Section("metrics", "Metrics", lead, body)


def _means(run: "Run") -> tuple[Estimate | None, Estimate | None]:
    done = started(run.jobs.sort_values("submission_time", kind="stable"), killed=False)
    if len(done) == 0:
        return None, None
    threshold = run.metrics.get("bsld.threshold") or BSLD_THRESHOLD
    return mean_over_jobs(done.wait), mean_over_jobs(bounded_slowdown(done.wait, done.run, threshold))


#: Rows of the metrics' table: name, key; an interval stands below where there is one.
ROWS: tuple[tuple[str, str], ...] = (
    ("jobs", "jobs.total"),
    ("jobs started", "jobs.started"),
    ("jobs rejected", "jobs.rejected"),
    ("jobs killed at their walltime", "jobs.state.COMPLETED_WALLTIME_REACHED"),
    *((f"wait, {statistic}", f"wait.{statistic}") for statistic in STATISTICS),
    *((f"bounded slowdown, {statistic}", f"bsld.{statistic}") for statistic in STATISTICS),
    ("turnaround, mean", "turnaround.mean"),
    ("makespan", "makespan"),
    ("utilisation, {}", "utilisation.{}"),
    ("loss of capacity", "loss_of_capacity"),
    ("jobs waiting, mean", "queue.jobs.mean"),
    ("jobs waiting, max", "queue.jobs.max"),
    ("nodes waited for, mean", "queue.nodes.mean"),
    ("nodes waited for, max", "queue.nodes.max"),
    ("Jain fairness, users", "fairness.jain"),
    ("energy, jobs", "energy.joules"),
    ("energy, machine", "energy.machine.joules"),
    ("power, mean", "power.mean"),
    ("power, largest", "power.max"),
    ("power, budget", "power.budget"),
)


def _table(
    runs: "Sequence[tuple[str, Run]]",
    names: Sequence[str],
    intervals: Mapping[str, Sequence[Estimate | None]],
) -> Table:
    """Return one column per run: that reads well for one run, and scrolls for many."""
    table = Table(["", *names])
    resources = dict.fromkeys(name for _, run in runs for name in run.capacity)
    used = [(f"utilisation, {r}{t[1]}", f"utilisation.{r}{t[0]}") for r in resources for t in _TRIMMED]
    for title, key in (one for row in ROWS for one in (used if "{}" in row[1] else [row])):
        values = [run.metrics.get(key) for _, run in runs]
        if any(value is not None for value in values):
            table.add(title, *(show(key, value) for value in values))
        if key in intervals:
            table.add("  95 % interval", *(_between(key, found) for found in intervals[key]))
    return table


#: The two utilisations of a resource: what is behind its key, and behind its name.
_TRIMMED = (("", ""), (".trimmed", ", trimmed"))


def _between(key: str, found: Estimate | None) -> str:
    known = found is not None and not np.isnan(found.low)
    return f"{show(key, found.low)} … {show(key, found.high)}" if found and known else "–"


def over_time(runs: "Sequence[tuple[str, Run]]", sheet: Sheet) -> Section | None:
    """Return queue length and utilisation over time; None if no job of any run started."""
    runs = [(name, run) for name, run in runs if run.jobs["starting_time"].notna().any()]
    if not runs:
        return None
    many = len(runs) > MOST_LINES
    drawn = curves(runs[:MOST_LINES], sheet)
    said = f"The first {MOST_LINES} runs are drawn." if many else ""
    keys = ("queue.jobs.mean", "queue.jobs.max", "queue.nodes.mean", "queue.nodes.max", "utilisation.nodes")
    headings = ("run", "jobs waiting, mean", "max", "nodes waited for, mean", "max", "utilisation")
    rows = [[named(name, run), *(show(key, run.metrics.get(key)) for key in keys)] for name, run in runs]
    lead = "How many jobs wait, and which share of the nodes is in use, from first submission to last end."
    return Section("over-time", "Queue and utilisation over time", lead, (drawn, said, Table(headings, rows)))


def curves(runs: "Sequence[tuple[str, Run]]", sheet: Sheet, what: str = "") -> list[Chart]:
    """Return two charts with one line per run: jobs that wait, and nodes in use.

    Args:
        runs: at most ``MOST_LINES``, each with a job that started.
        what: what the lines are of, for the captions.
    """
    spans = [_span(run) for _, run in runs]
    unit, unit_name = time_unit(max(end - first for first, end in spans))
    queues: list[dict[str, Any]] = []
    uses: list[dict[str, Any]] = []
    for k, ((name, run), (first, end)) in enumerate(zip(runs, spans, strict=True)):
        drawn = ((queues, _waiting, SPANS), (uses, _used, SPANS if len(runs) == 1 else FEWER_SPANS))
        for into, over, spans_drawn in drawn:
            edges = np.linspace(first, max(end, first + 1e-6), spans_drawn + 1)
            x, values = significant((edges[:-1] - first) / unit), over(run, edges)
            looks = {"color": colour(k), "dash": dash(k), "width": 1.6, "shape": "hv"}
            trace = curve(x, fixed(values, 2), label(named(name, run)), looks, hovertemplate="%{y:,}")
            trace["showlegend"] = len(runs) > 1
            if len(runs) == 1:
                trace["fill"] = "tozeroy"
            into.append(trace)
    bottom = axis(f"time since the first submission ({unit_name})")
    more = {"hovermode": "x unified", "dragmode": "zoom", "xaxis": bottom}
    waiting = figure(queues, 330, yaxis=axis("jobs waiting", rangemode="tozero"), **more)
    use = figure(
        uses,
        330,
        yaxis=axis("nodes in use (%)", range=[0, 110]),
        shapes=[LOOKS["full"]],
        annotations=[LOOKS["all_nodes"]],
        **more,
    )
    of = f" of {what}" if what else ""
    parts = SPANS if len(runs) == 1 else FEWER_SPANS
    return [
        sheet.add(waiting, f"Jobs waiting over time{of}; means over 1/{SPANS} of it.", wide=True),
        sheet.add(use, f"Utilisation over time{of}; means over 1/{parts} of it.", wide=True),
    ]


def _span(run: "Run") -> tuple[float, float]:
    done = started(run.jobs)
    return float(done.submit.min()), float(done.end.max())


def _waiting(run: "Run", edges: Floats) -> Floats:
    done = started(run.jobs, killed=False)
    return _mean(done.submit, done.start, np.ones(len(done)), edges)


def _used(run: "Run", edges: Floats) -> Floats:
    done = started(run.jobs)
    return 100 * _mean(done.start, done.end, done.nodes, edges) / max(run.capacity.get("nodes", 0), 1)


def _mean(begin: Floats, end: Floats, amounts: Floats, edges: Floats) -> Floats:
    """Return the mean of what is there from ``begin`` to ``end`` in each span between ``edges``."""
    times, changes = np.concatenate((begin, end)), np.concatenate((amounts, -amounts))
    return binned(*level(times, changes), edges)[0]
