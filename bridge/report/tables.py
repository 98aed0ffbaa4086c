"""What is said of runs in tables: the metrics of one run, several runs side by side, a breakdown."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from bridge.config import read_toml
from bridge.judge.compare import Comparison
from bridge.judge.run import Run
from bridge.judge.stats import Estimate
from bridge.report.table import Table

_SHOWN: dict[str, Any] = read_toml(Path(__file__).with_name("metrics.toml"))
STATISTICS, COMPARED, ROWS = (_SHOWN[name] for name in ("statistics", "compared", "rows"))
RATIOS, TITLES, OVERVIEW = (_SHOWN[name] for name in ("ratios", "titles", "overview"))
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
    match key.split(".")[0]:
        case "wait" | "turnaround" | "makespan" | "over_budget":
            return duration(value)
        case "utilisation" | "loss_of_capacity":
            return f"{100 * value:.2f} %"
        case "power":
            return f"{_short(value / 1000)} kW" if value >= 10_000 else f"{_short(value)} W"
        case "energy":
            return f"{_short(value / 3.6e9)} MWh" if value >= 3.6e10 else f"{_short(value / 3.6e6)} kWh"
        case "fairness":
            return f"{value:.4f}"
    return duration(value) if ".wait." in key else _short(value)


def metric_name(key: str) -> str:
    """Return what a metric is called in a comparison."""
    return key.replace("jobs.state.COMPLETED_", "jobs ").lower()


def metrics_table(run: Run, title: str = "") -> Table:
    """Return the metrics of ``run`` as a table of five columns of numbers."""
    known = run.metrics.get
    table = Table(("", *STATISTICS), title=title or run.name, caption=ORACLE_NOTE if run.oracle else "")
    for family, label in _SHOWN["families"].items():
        keys = [f"{family}.{statistic}" for statistic in STATISTICS]
        table.add(label, *(show(key, known(key)) for key in keys))
    ends = [("queue.jobs", "queue, jobs"), ("queue.nodes", "queue, nodes")]
    ends += [("power", "power of the machine")] if known("power.mean") is not None else []
    for key, label in ends:
        mean, most = (show(end, known(end)) for end in (f"{key}.mean", f"{key}.max"))
        table.add(label, mean, "", "", "", most)
    table.line()
    states = {s.lower().replace("_", " "): s for s in ("WALLTIME_REACHED", "FAILED", "KILLED")}
    counts = {"  rejected": "jobs.rejected"}
    counts |= {f"  {said}": f"jobs.state.COMPLETED_{state}" for said, state in states.items()}
    rows = [("jobs", "jobs.total"), *((said, key) for said, key in counts.items() if known(key))]
    rows.append(("makespan", "makespan"))
    for resource in run.capacity:
        key = f"utilisation.{resource}"
        rows += [(f"utilisation, {resource}", key), ("  trimmed", f"{key}.trimmed")]
    rows.append(("loss of capacity", "loss_of_capacity"))
    rows += [(said, key) for said, key in _SHOWN["sometimes"].items() if known(key) is not None]
    for said, key in rows:
        table.add(said, show(key, known(key)))
    return table


def comparison_table(comparison: Comparison) -> Table:
    """Return the main metrics of several runs; under each but the first, its difference to the first."""
    base, *others = _marked(comparison)
    headings = ["", base, *(heading for name in others for heading in (name, "difference"))]
    table = Table(headings, caption=_oracle_note(comparison))
    keys = [key for key in COMPARED if any(v is not None for v in comparison.metrics.get(key, ()))]
    keys += [key for key in comparison.metrics if key.startswith("utilisation.")]
    for key in keys:
        first, *rest = comparison.metrics[key]
        cells = [show(key, first)]
        for value, step in zip(rest, comparison.differences[key][1:], strict=True):
            cells += [show(key, value), difference(key, first, step)]
        table.add(metric_name(key), *cells)
    return table


def overview_table(comparison: Comparison) -> Table:
    """Return one row per run with the most asked-for metrics: for more runs than fit side by side."""
    table = Table(("", *OVERVIEW.values()), caption=_oracle_note(comparison))
    for k, name in enumerate(_marked(comparison)):
        rows = ((key, comparison.metrics.get(key)) for key in OVERVIEW)
        table.add(name, *(show(key, values[k] if values else None) for key, values in rows))
    return table


def _marked(comparison: Comparison) -> list[str]:
    return [f"{n} *" if oracle else n for n, oracle in zip(comparison.names, comparison.oracle, strict=True)]


def _oracle_note(comparison: Comparison) -> str:
    return f"* {ORACLE_NOTE}" if any(comparison.oracle) else ""


def signed(key: str, value: float | None) -> str:
    """Return a difference of a metric with its sign."""
    return show(key, value) if not value else ("+" if value > 0 else "−") + show(key, abs(value))


def difference(key: str, base: float | None, step: float | None) -> str:
    """Return a difference with its sign, and in per cent of the base where that says something."""
    if step is None or base is None:
        return "–"
    text = signed(key, step) if step else "="
    plain = key.split(".")[0] in ("wait", "turnaround", "slowdown", "bsld", "makespan", "queue")
    return f"{text} ({100 * step / base:+.1f} %)".replace("(-", "(−") if plain and base and step else text


def between(key: str, interval: Estimate | None, shown: Callable[[str, float], str] = show) -> str:
    """Return an interval of a metric; a dash where it has no bounds."""
    if interval is None or math.isnan(interval.low):
        return "–"
    return f"{shown(key, interval.low)} … {shown(key, interval.high)}"


def breakdown_table(frame: pd.DataFrame, rows: int = 20) -> Table:
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
