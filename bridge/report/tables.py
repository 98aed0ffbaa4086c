"""What is said in tables: of runs and what differs between them, of forecasts, of agents and of logs."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.base.counted import counted
from bridge.config import read_toml
from bridge.judge.compare import JobDifference, RunComparison
from bridge.judge.run import Run
from bridge.judge.stats import ConfidenceInterval, mark_of
from bridge.report.table import Table

if TYPE_CHECKING:
    from bridge.forecasting.whatif import WhatIfResult
    from bridge.prediction.accuracy import Accuracy
    from bridge.workload.statistics import Summary
    from bridge.workload.table import Tally, Workload

_LABELS: dict[str, Any] = read_toml(Path(__file__).with_name("metrics.toml"))
STATISTICS, COMPARED, ROWS = (_LABELS[name] for name in ("statistics", "compared", "rows"))
RATIOS, TITLES, OVERVIEW = (_LABELS[name] for name in ("ratios", "titles", "overview"))
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


def format_metric(key: str, value: float | None) -> str:
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
    return key.replace("jobs.state.COMPLETED_", "jobs ").lower()


def metrics_table(run: Run) -> Table:
    metric_of = run.metrics.get
    table = Table(("", *STATISTICS), title=run.name, caption=ORACLE_NOTE if run.oracle else "")
    for family, label in _LABELS["families"].items():
        keys = [f"{family}.{statistic}" for statistic in STATISTICS]
        table.add(label, *(format_metric(key, metric_of(key)) for key in keys))
    ends = [("queue.jobs", "queue, jobs"), ("queue.nodes", "queue, nodes")]
    ends += [("power", "power of the machine")] if metric_of("power.mean") is not None else []
    for key, label in ends:
        mean, most = (format_metric(end, metric_of(end)) for end in (f"{key}.mean", f"{key}.max"))
        table.add(label, mean, "", "", "", most)
    table.line()
    states = {s.lower().replace("_", " "): s for s in ("WALLTIME_REACHED", "FAILED", "KILLED")}
    counts = {"  rejected": "jobs.rejected"}
    counts |= {f"  {row_label}": f"jobs.state.COMPLETED_{state}" for row_label, state in states.items()}
    rows = [
        ("jobs", "jobs.total"),
        *((row_label, key) for row_label, key in counts.items() if metric_of(key)),
    ]
    rows.append(("makespan", "makespan"))
    for resource in run.capacity:
        key = f"utilisation.{resource}"
        rows += [(f"utilisation, {resource}", key), ("  trimmed", f"{key}.trimmed")]
    rows.append(("loss of capacity", "loss_of_capacity"))
    rows += [
        (row_label, key) for row_label, key in _LABELS["sometimes"].items() if metric_of(key) is not None
    ]
    for row_label, key in rows:
        table.add(row_label, format_metric(key, metric_of(key)))
    return table


def comparison_table(comparison: RunComparison) -> Table:
    """Return the main metrics of several runs; under each but the first, its difference to the first."""
    base, *others = _marked(comparison)
    headings = ["", base, *(heading for name in others for heading in (name, "difference"))]
    table = Table(headings, caption=_oracle_note(comparison))
    keys = [key for key in COMPARED if any(v is not None for v in comparison.metrics.get(key, ()))]
    keys += [key for key in comparison.metrics if key.startswith("utilisation.")]
    for key in keys:
        first, *rest = comparison.metrics[key]
        cells = [format_metric(key, first)]
        for value, step in zip(rest, comparison.differences[key][1:], strict=True):
            cells += [format_metric(key, value), difference(key, first, step)]
        table.add(metric_name(key), *cells)
    return table


def overview_table(comparison: RunComparison) -> Table:
    """Return one row per run with the most asked-for metrics: for more runs than fit side by side."""
    table = Table(("", *OVERVIEW.values()), caption=_oracle_note(comparison))
    for k, name in enumerate(_marked(comparison)):
        rows = ((key, comparison.metrics.get(key)) for key in OVERVIEW)
        table.add(name, *(format_metric(key, values[k] if values else None) for key, values in rows))
    return table


def _marked(comparison: RunComparison) -> list[str]:
    return [f"{n} *" if oracle else n for n, oracle in zip(comparison.names, comparison.oracle, strict=True)]


def _oracle_note(comparison: RunComparison) -> str:
    return f"* {ORACLE_NOTE}" if any(comparison.oracle) else ""


def signed(key: str, value: float | None) -> str:
    return (
        format_metric(key, value)
        if not value
        else ("+" if value > 0 else "−") + format_metric(key, abs(value))
    )


def difference(key: str, base: float | None, step: float | None) -> str:
    """Return a difference with its sign, and in per cent of the base where that is meaningful."""
    if step is None or base is None:
        return "–"
    text = signed(key, step) if step else "="
    plain = key.split(".")[0] in ("wait", "turnaround", "slowdown", "bsld", "makespan", "queue")
    return f"{text} ({100 * step / base:+.1f} %)".replace("(-", "(−") if plain and base and step else text


def wait_difference(jobs: JobDifference) -> list[str]:
    """Return a line of how the waits of jobs in two runs differ; none where no job is in both."""
    if jobs.wait_quantiles is None or jobs.wait_mean is None:
        return []
    quantiles = "  ".join(f"{float(q):.0%} {duration(v)}" for q, v in jobs.wait_quantiles.items())
    return [f"  wait difference: mean {duration(jobs.wait_mean)}; quantiles {quantiles}"]


def format_interval(
    key: str, interval: ConfidenceInterval | None, format_value: Callable[[str, float], str] = format_metric
) -> str:
    if interval is None or math.isnan(interval.low):
        return "–"
    return f"{format_value(key, interval.low)} … {format_value(key, interval.high)}{interval.mark}"


def breakdown_table(frame: Any, rows: int = 20) -> Table:
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


def forecast_table(rows: Iterable[Mapping[str, Any]], now: float, title: str) -> Table:
    """Return when jobs will start, by rows of a `Forecast`; `now` is the state's, s."""

    def until(time: float | None) -> str:
        return "never" if time is None else duration(max(time - now, 0.0))

    headings = ("job", "waits since", "starts in", "50 % within", "90 % within", "reserved for")
    caption = "Times from now; reserved: if all jobs ran as long as they request."
    table = Table(headings, title=title, caption=caption)
    for row in rows:
        half, most = (f"{until(row[f'low{p}'])} … {until(row[f'high{p}'])}" for p in (50, 90))
        since = duration(now - row["submitted"])
        table.add(row["job"], since, until(row["median"]), half, most, until(row["reserved"]))
    return table


def judged_table(document: Mapping[str, Any], name: str) -> Table:
    """Return the scores of forecasts on a log (`forecasting.scoring`) beside the baselines."""
    headings = (
        "forecast",
        "after",
        "jobs",
        "b",
        "in 90 %",
        "in 50 %",
        "median error",
        "width",
        "Winkler score",
    )
    caption = (
        "in 90 %: starts within these intervals, and the 95 % interval of that share, over b blocks of jobs"
    )
    caption += " (t: Student's t, few blocks); width: their mean"
    table = Table(headings, title=f"{name}: starts under fcfs+easy", caption=caption)
    for method, scores in (("futures", document), *document["baselines"].items()):
        for horizon, one in scores["horizons"].items():
            if one["jobs"]:
                inside = f"{100 * one['coverage90']:.1f} %"
                if one["coverage90_low"] is not None:
                    low, high = 100 * one["coverage90_low"], 100 * one["coverage90_high"]
                    inside += f" [{low:.0f}, {high:.0f}]{mark_of(one['coverage90_kind'])}"
                half = f"{100 * one['coverage50']:.1f} %"
                errors = (duration(one[key]) for key in ("median_abs_error", "mean_width", "winkler"))
                table.add(
                    method,
                    duration(float(horizon)),
                    f"{one['jobs']:,}",
                    one["coverage90_b"],
                    inside,
                    half,
                    *errors,
                )
    return table


def whatif_table(outcomes: "Sequence[WhatIfResult]", changed: bool, futures: int) -> Table:
    """Return the same futures under several rules; `changed`: but the first on a machine that is changed."""
    headings = ("policy", "mean wait", "difference", "slowdown", "difference", "last start", "shorter waits")
    caption = "Differences to the first, future by future, with 95 % intervals; slowdown: bounded."
    waiting, compared = outcomes[0].waiting, outcomes[0].compared
    if compared < waiting:
        caption += (
            f" Compared: the {compared} of {waiting} waiting jobs that start under every rule. Where the"
        )
        caption += " others never start, they delay nobody."
    table = Table(headings, title=counted(futures, "future"), caption=caption)
    for k, one in enumerate(outcomes):
        mean = {name: value.mean for name, value in one.values.items()}
        name = f"{one.policy}, changed" if changed and k else one.policy
        by_wait = by_slowdown = better = ""
        if k:
            wait, slow = one.differences["wait"], one.differences["bsld"]
            by_wait = f"{duration(wait.mean)} [{duration(wait.low)}, {duration(wait.high)}]"
            by_slowdown = f"{slow.mean:.2f} [{slow.low:.2f}, {slow.high:.2f}]"
            better = f"{100 * one.better:.0f} %"
        waits, last = duration(mean["wait"]), duration(mean["drained"])
        table.add(name, waits, by_wait, f"{mean['bsld']:.2f}", by_slowdown, last, better)
        if one.never:
            table.add(f"  never start: {counted(one.never, 'job')}")
    return table


def explanation_table(document: Mapping[str, Any], chosen: str, title: str) -> Table:
    """Return the features that an agent uses, by `bridge explain --json`; `chosen`: its action on jobs."""
    counts = {name: f"{document[name]:,}" for name in ("chosen", "rows", "decisions", "sequences", "length")}
    quantiles = " / ".join(f"{q:.0%}" for q in document["quantiles"])
    table = Table(
        ("feature", "distance", f"{chosen} are", chosen, "all"),
        title=f"{title}: {counts['chosen']} of {counts['rows']} rows {chosen} in {counts['decisions']} "
        f"decisions, {counts['sequences']} sequences of {counts['length']} jobs",
        caption=f"Quantiles {quantiles}; distance of the two distributions: Kolmogorov–Smirnov.",
    )
    for one in document["features"]:
        sides = (" / ".join(f"{v:.3g}" for v in one[f"{side}_quantiles"]) for side in ("chosen", "all"))
        table.add(one["feature"], f"{one['distance']:.3f}", one["chosen_are"] or "–", *sides)
    return table


def accuracy_table(accuracies: "Mapping[str, Accuracy | None]", title: str) -> Table:
    errors = _LABELS["errors"]
    table = Table(("believed", "jobs", *errors.values()), title=title)
    for name, one in accuracies.items():
        if one is not None:
            table.add(name, f"{one.jobs:,}", *(f"{100 * getattr(one, error):.1f} %" for error in errors))
    return table


#: What a quantity of a log is called in a table: nodes or cores, as the log has them.
_SHORT = {"processors": "size"}


def log_tables(records: "Workload", summary: "Summary") -> list[Table]:
    """Return a log's totals, and the distributions of its quantities."""
    from bridge.workload.resources import idle_power_of

    labels = ((label, records.header.get(label)) for label in _LABELS["header"])
    rows = [(label, text.replace("\n", " ")) for label, text in labels if text]
    capacity = ", ".join(f"{name} {amount:,}" for name, amount in summary.capacity.items())
    span = summary.span
    rows += [
        ("capacity", capacity or "not stated in the log"),
        ("records", f"{summary.records:,}"),
        ("span", "unknown" if span is None else f"{span:,.0f} s ({span / 86_400:,.1f} days)"),
        ("offered load", "unknown" if summary.load is None else f"{summary.load:.3f}"),
        *((f"offered load, {name}", f"{load:.3f}") for name, load in summary.loads.items()),
    ]
    if "power" in summary.capacity:
        idle = idle_power_of(records.header, records.source)
        budget = summary.capacity["power"] + idle * summary.capacity.get("nodes", 0)
        rows.append(("power budget", f"{budget:,} W, {idle} W of it for each node"))
    rows += [
        ("users", f"{summary.users:,}" if summary.users else "unknown"),
        ("size 1", f"{summary.serial:.1%}"),
        ("size a power of two", f"{summary.power_of_two:.1%}"),
    ]
    if summary.overrun is not None:
        rows.append(("ran past their request", f"{summary.overrun:.1%}"))
    distributions = summary.distributions
    keys = {
        key: f"{key[1:]} %" if key.startswith("q") else key for key in next(iter(distributions.values()), {})
    }
    quantities = [
        (row_label, *(number(of[key]) for of in distributions.values())) for key, row_label in keys.items()
    ]
    return [
        Table(("", ""), rows, title=records.name, words=(1,)),
        Table(
            ("", *(_SHORT.get(name, name) for name in distributions)),
            quantities,
            title="distributions (times in seconds)",
        ),
    ]


def number(value: float) -> str:
    """Return a quantity of a log for reading: two digits behind the point at most."""
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:,.2f}"


def tally_table(tally: "Tally", title: str) -> Table:
    table = Table(("", "records", "reason", "job ids, for example"), title=title, words=(2, 3))
    kinds = ("dropped", "repaired", "noted", "ignored")
    for why, reason in sorted(tally.items(), key=lambda item: kinds.index(item[1].kind)):
        table.add(reason.kind, f"{reason.count:,}", why, reason.examples_text)
    return table
