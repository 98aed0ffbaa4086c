"""What commands show of evaluations and validations: tables, and sentences below them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bridge.base.counted import counted
from bridge.judge.sequences import PairedResult
from bridge.judge.stats import FEWEST, ConfidenceInterval
from bridge.judge.world_agreement import Agreement, Rank
from bridge.report.action_table import action_costs
from bridge.report.table import Table
from bridge.report.tables import COMPARED, difference, format_metric, metric_name, wait_difference

#: Between a verdict and the base's name.
_THAN = {"better": "than", "worse": "than", "not distinguishable": "from"}
#: Metrics that are times, in seconds; the others are ratios.
_TIMES = ("wait", "turnaround")
ORACLE = "* true run times are read (oracle)."


def evaluation(document: Mapping[str, Any], judged: Sequence[PairedResult], protocol: str) -> list[Any]:
    """Return the tables and lines of policies on the same sequences.

    `document` is as `bridge evaluate --json` prints it, `judged` the policies' values, `protocol` the base's.
    """
    metric, length, count, policies = (document[k] for k in ("metric", "length", "sequences", "policies"))
    digits = 4 if metric == "utilisation" else 2
    size = f"{count:,} sequence{'s' * (count != 1)} of {length:,} job{'s' * (length != 1)}"
    title = f"{document['workload']}: {metric}, {size}, protocol {protocol}"
    unit = "s" if metric.partition(".")[0] in _TIMES else ""
    mean, difference_, interval = (f"{name}{unit and f', {unit}'}" for name in ("mean", "− base", "95 % CI"))
    headings = ("policy", mean, interval, difference_, interval, "verdict")
    table = Table(headings, title=title, words=(5,))
    several = len({one["estimator"] for one in policies}) > 1
    for one, j in zip(policies, judged, strict=True):
        table.add(
            one["name"] + (f", {one['estimator']}" if several else "") + ("*" if one["oracle"] else ""),
            f"{j.mean.mean:,.{digits}f}",
            _between(j.mean, digits),
            f"{j.difference.mean:+,.{digits}f}" if j.difference else "base",
            _between(j.difference, digits) if j.difference else "",
            one["verdict"],
        )
    output: list[Any] = [table, *action_tables(policies)]
    output.append(_blocks(judged[0].mean))
    if any(one["oracle"] for one in policies):
        output.append(ORACLE)
    base = policies[0]["name"]
    for one, j in zip(policies, judged, strict=True):
        if one["agent"] and j.difference is not None:
            verdict = one["verdict"]
            than = _THAN.get(verdict, "whether better than")
            text = f"{j.difference.mean:+,.{digits}f}{unit and f' {unit}'} {metric}"
            between = (
                f"(paired 95 % CI {_between(j.difference, digits)}, "
                f"{counted(count, 'sequence')}, b = {j.mean.b})"
            )
            output.append(f"{one['name']}: {verdict} {than} {base}: {text} {between}")
    return output


def action_tables(policies: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return what actions win and cost, a policy a column; nothing where no policy has an action."""
    rows = [one for one in policies if "action_metrics" in one]
    if not rows:
        return []
    return [action_costs([(one["name"], one["action_metrics"]) for one in rows])]


def _blocks(mean: ConfidenceInterval) -> str:
    """Return over how many independent blocks intervals are, and of which kind they are."""
    text = f"b = {mean.b:,} independent block{'s' * (mean.b != 1)} of neighbouring sequences"
    if mean.kind is None:
        return (
            f"{text}: too few for an interval, which needs {FEWEST}. More of the log, or shorter ones, help."
        )
    how = "Student's t over their means (t)" if mean.kind == "t" else "circular block bootstrap"
    return f"{text}: 95 % intervals by {how}."


def _between(estimate: ConfidenceInterval, digits: int) -> str:
    if np.isnan(estimate.low):
        return "–"
    if max(abs(estimate.low), abs(estimate.high)) >= 100:  # so that the table fits on a screen
        digits = 1
    return f"{estimate.low:,.{digits}f} … {estimate.high:,.{digits}f}{estimate.mark}"


def agreements(agreed: Sequence[Agreement], ranks: Mapping[str, Rank]) -> list[Any]:
    """Return the tables and lines of policies in both worlds."""
    output: list[Any] = []
    for one in agreed:
        output += [_agreement(one), *_differences(one)]
    if ranks:
        text = ", ".join(f"{key} {rank}" for key, rank in ranks.items())
        output.append(f"rank agreement of {len(agreed)} policies (Kendall τ): {text}")
    return output


def _agreement(one: Agreement) -> Table:
    table = Table(("", "fast", "detailed", "difference"), title=one.policy)
    used = [key for key in one.fast if key.startswith("utilisation.") and key.count(".") == 1]
    for key in (*COMPARED, *used, "energy.joules"):
        fast, detailed = one.fast.get(key), one.detailed.get(key)
        if fast is None and detailed is None:
            continue
        step = difference(key, fast, one.differences.get(key))
        table.add(metric_name(key), format_metric(key, fast), format_metric(key, detailed), step)
    return table


def _differences(one: Agreement) -> Iterator[str]:
    jobs = one.jobs
    yield f"{jobs.differing_starts:,} of {counted(jobs.common, 'job')} start at another time on the platform"
    if jobs.first is not None:
        yield f"  first: job {jobs.first.job}: {one.reason}"
    if jobs.differing_starts:
        yield from wait_difference(jobs)
    if one.longer and one.stretch is not None:
        yield (
            f"  {counted(one.longer, 'job')} ran longer; run times are {one.stretch[0]:.4f} times as long in "
            f"the mean, {one.stretch[1]:.4f} at most"
        )
    if any(one.killed):
        yield f"  killed at the walltime: {one.killed[0]:,} fast, {one.killed[1]:,} detailed"
    if jobs.only_base or jobs.only_here:
        yield (
            f"  only in the fast world: {jobs.only_base:,}; only on the platform: {jobs.only_here:,} "
            f"(such as {', '.join(jobs.examples)})"
        )
