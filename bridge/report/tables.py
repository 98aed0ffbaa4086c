"""What is said of runs in tables: the metrics of one run, several runs side by side, a breakdown."""

from typing import TYPE_CHECKING, Any

from bridge.report.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from bridge.judge.compare import Comparison
    from bridge.judge.run import Run

#: Metric families that are shown with all their statistics, and their names.
FAMILIES: tuple[tuple[str, str], ...] = (
    ("wait", "wait"),
    ("turnaround", "turnaround"),
    ("slowdown", "slowdown"),
    ("bsld", "bounded slowdown"),
)
STATISTICS: tuple[str, ...] = ("mean", "median", "p95", "p99", "max")
#: Rows of a comparison, in order; every metric is in its --json.
COMPARED: tuple[str, ...] = (
    "jobs.started",
    "jobs.rejected",
    "jobs.state.COMPLETED_WALLTIME_REACHED",
    "wait.mean",
    "wait.median",
    "wait.p95",
    "wait.p99",
    "wait.max",
    "turnaround.mean",
    "slowdown.mean",
    "bsld.mean",
    "bsld.median",
    "bsld.p95",
    "bsld.p99",
    "bsld.max",
    "makespan",
    "queue.jobs.mean",
    "queue.jobs.max",
    "loss_of_capacity",
    "power.mean",
    "power.max",
    "energy.machine.joules",
    "fairness.jain",
)
#: Rows of a run's table that are left out where the value is not known.
SOMETIMES: tuple[tuple[str, str], ...] = (
    ("Jain fairness, users", "fairness.jain"),
    ("power budget", "power.budget"),
    ("  of it idle nodes", "power.idle"),
    ("  exceeded for", "over_budget.seconds"),
    ("energy, jobs", "energy.joules"),
    ("energy, machine", "energy.machine.joules"),
)
ORACLE_NOTE = "oracle: an estimator read true run times, which no real scheduler can"


def duration(seconds: float) -> str:
    """Return a time for reading: ``45 s``, ``12.3 min``, ``4.56 h``, ``12.3 d``."""
    size = abs(seconds)
    for limit, unit, name in ((90, 1, "s"), (5400, 60, "min"), (172_800, 3600, "h")):
        if size < limit:
            return f"{_short(seconds / unit)} {name}"
    return f"{_short(seconds / 86_400)} d"


def _short(value: float) -> str:
    """Return about four digits, thousands separated, no exponent."""
    size = abs(value)
    if value == int(value) and size < 1e15:
        return f"{int(value):,}"
    digits = 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 1 else 4
    return f"{value:,.{digits}f}"


def show(key: str, value: float | None) -> str:
    """Return a metric's value as the tables show it, by its key."""
    if value is None:
        return "–"
    family = key.split(".")[0]
    if family in ("wait", "turnaround", "makespan", "over_budget") or ".wait." in key:
        return duration(value)
    if family in ("utilisation", "loss_of_capacity"):
        return f"{100 * value:.2f} %"
    if family == "power":
        return f"{_short(value / 1000)} kW" if value >= 10_000 else f"{_short(value)} W"
    if family == "energy":
        return f"{_short(value / 3.6e9)} MWh" if value >= 3.6e10 else f"{_short(value / 3.6e6)} kWh"
    if family == "fairness":
        return f"{value:.4f}"
    return _short(value)


def metrics_table(run: "Run", title: str = "") -> Table:
    """Return the metrics of ``run`` as a table of five columns of numbers."""
    metrics = run.metrics
    table = Table(("", *STATISTICS), title=title or run.name, caption=ORACLE_NOTE if run.oracle else "")
    for family, label in FAMILIES:
        keys = [f"{family}.{statistic}" for statistic in STATISTICS]
        table.add(label, *(show(key, metrics.get(key)) for key in keys))
    for part, label in (("jobs", "queue, jobs"), ("nodes", "queue, nodes")):
        mean, most = f"queue.{part}.mean", f"queue.{part}.max"
        table.add(label, show(mean, metrics.get(mean)), "", "", "", show(most, metrics.get(most)))
    if metrics.get("power.mean") is not None:
        mean, most = (show(key, metrics[key]) for key in ("power.mean", "power.max"))
        table.add("power of the machine", mean, "", "", "", most)
    table.line()
    for row in _single(run):
        table.add(*row)
    return table


def _single(run: "Run") -> list[tuple[str, str]]:
    metrics = run.metrics
    counts = [("  rejected", "jobs.rejected")]
    for state in ("WALLTIME_REACHED", "FAILED", "KILLED"):
        counts.append((f"  {state.lower().replace('_', ' ')}", f"jobs.state.COMPLETED_{state}"))
    always = [("makespan", "makespan")]
    for resource in run.capacity:
        key = f"utilisation.{resource}"
        always += [(f"utilisation, {resource}", key), ("  trimmed", f"{key}.trimmed")]
    always.append(("loss of capacity", "loss_of_capacity"))
    rows = [("jobs", "jobs.total"), *(row for row in counts if metrics.get(row[1])), *always]
    rows += [row for row in SOMETIMES if metrics.get(row[1]) is not None]
    return [(name, show(key, metrics.get(key))) for name, key in rows]


def comparison_table(comparison: "Comparison") -> Table:
    """Return the main metrics of several runs; under each but the first, its difference to the first."""
    base, *others = _marked(comparison)
    headings = ["", base, *(heading for name in others for heading in (name, "difference"))]
    table = Table(headings, caption=_oracle_note(comparison))
    keys = [key for key in COMPARED if any(v is not None for v in comparison.metrics.get(key, ()))]
    keys += [key for key in comparison.metrics if key.startswith("utilisation.")]
    for key in keys:
        values, steps = comparison.metrics[key], comparison.differences[key]
        cells = [show(key, values[0])]
        for value, step in zip(values[1:], steps[1:], strict=True):
            cells += [show(key, value), difference(key, values[0], step)]
        table.add(key.replace("jobs.state.COMPLETED_", "jobs ").lower(), *cells)
    return table


def _marked(comparison: "Comparison") -> list[str]:
    return [f"{n} *" if oracle else n for n, oracle in zip(comparison.names, comparison.oracle, strict=True)]


def _oracle_note(comparison: "Comparison") -> str:
    return f"* {ORACLE_NOTE}" if any(comparison.oracle) else ""


#: Columns of an overview: key, heading in two lines.
OVERVIEW: tuple[tuple[str, str], ...] = (
    ("wait.mean", "wait\nmean"),
    ("wait.p95", "wait\np95"),
    ("wait.max", "wait\nmax"),
    ("bsld.mean", "bsld\nmean"),
    ("bsld.p95", "bsld\np95"),
    ("utilisation.nodes", "nodes\nused"),
)


def overview_table(comparison: "Comparison") -> Table:
    """Return one row per run with the most asked-for metrics: for more runs than fit side by side."""
    table = Table(("", *(heading for _, heading in OVERVIEW)), caption=_oracle_note(comparison))
    for k, name in enumerate(_marked(comparison)):
        values = (comparison.metrics.get(key, (None,) * (k + 1))[k] for key, _ in OVERVIEW)
        table.add(name, *(show(key, value) for (key, _), value in zip(OVERVIEW, values, strict=True)))
    return table


def difference(key: str, base: float | None, step: float | None) -> str:
    """Return a difference with its sign, and in per cent of the base where that says something."""
    if step is None or base is None:
        return "–"
    if step == 0:
        return "="
    text = ("+" if step > 0 else "−") + show(key, abs(step))
    plain = key.split(".")[0] in ("wait", "turnaround", "slowdown", "bsld", "makespan", "queue")
    return f"{text} ({100 * step / base:+.1f} %)".replace("(-", "(−") if plain and base else text


def breakdown_table(frame: "pd.DataFrame", rows: int = 20) -> Table:
    """Return the first ``rows`` groups of a breakdown (``bridge.judge.metrics.breakdown``)."""
    left = len(frame) - rows
    headings = ("jobs", "node-\nhours", "wait\nmean", "median", "max", "bsld\nmean", "max")
    table = Table((str(frame.index.name), *headings), caption=f"and {left} more" if left > 0 else "")
    for group, row in frame.head(rows).iterrows():
        values: dict[Any, Any] = row.to_dict()
        table.add(
            str(group),
            _short(values["jobs"]),
            _short(values["node_seconds"] / 3600),
            *(duration(values[f"wait.{s}"]) for s in ("mean", "median", "max")),
            *(_short(values[f"bsld.{s}"]) for s in ("mean", "max")),
        )
    return table
