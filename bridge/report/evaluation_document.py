"""What `bridge evaluate --json` and `bridge bound --json` print, read into typed values."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.judge.stats import INTERVALS, ConfidenceInterval, Kind, mark_of
from bridge.report.table import Table


@dataclass(frozen=True)
class Entry:
    """One policy.

    Attributes:
        name: the agent's, or order and backfilling; distinct within an evaluation.
        values: the metric of every window, shape (windows,).
        mean: over the windows; bounds are NaN where none can be given.
        difference: paired, policy − base; None for the base.
        verdict: better, worse, …; empty for the base.
        agent: whether it is a learnt policy.
        oracle: whether an estimator read true run times.
        protocol, estimator: empty where not told.
    """

    name: str
    values: NDArray[np.float64]
    mean: ConfidenceInterval
    difference: ConfidenceInterval | None
    verdict: str
    agent: bool
    oracle: bool
    protocol: str
    estimator: str

    @property
    def label(self) -> str:
        """The name with the mark of oracles."""
        return f"{self.name} *" if self.oracle else self.name


@dataclass(frozen=True)
class EvaluationDocument:
    """Policies on the same windows of one workload, of `length` jobs from `starts` on; the base is first."""

    workload: str
    metric: str
    length: int | None
    starts: tuple[int, ...]
    entries: tuple[Entry, ...]

    @property
    def base(self) -> Entry:
        return self.entries[0]

    @property
    def higher_is_better(self) -> bool:
        return self.metric.startswith("utilisation")


def has_policies_with(document: Any, key: str) -> bool:
    """Tell whether a JSON document has policies with a key, as evaluations (values) and validations have."""
    policies = document.get("policies") if isinstance(document, dict) else None
    return isinstance(policies, list) and any(isinstance(p, dict) and key in p for p in policies)


def parse(document: Mapping[str, Any], where: str) -> EvaluationDocument:
    """Read an evaluation; unknown keys are ignored. BridgeError: a value is no number."""
    starts_value, length = document.get("starts"), document.get("length")
    starts = (
        tuple(starts_value)
        if isinstance(starts_value, list) and all(type(one) is int for one in starts_value)
        else ()
    )
    entries = [_entry(one, f"{where}: policy {k}") for k, one in enumerate(document["policies"], 1)]
    wanted = len(starts) or len(entries[0].values)
    for k, one in enumerate(entries, 1):
        if len(one.values) != wanted:
            what = f"has {len(one.values)} values, not {wanted}"
            remedy = "All policies of an evaluation are judged on the same windows."
            raise BridgeError(what, where=f"{where}: policy {k}", remedy=remedy)
    return EvaluationDocument(
        workload=str(document.get("workload") or ""),
        metric=str(document.get("metric") or "metric"),
        length=length if type(length) is int else None,
        starts=starts,
        entries=tuple(_told_apart(entries)),
    )


def _entry(one: Any, where: str) -> Entry:
    if not isinstance(one, dict):
        raise BridgeError("is not an object", where=where)
    values = one.get("values")
    if not isinstance(values, list) or not values or not all(map(is_number, values)):
        raise BridgeError("has no list `values` of finite numbers, one per window", where=where)
    x = np.array(values, np.float64)
    return Entry(
        name=_name(one, where),
        values=x,
        mean=_estimate(one.get("ci95"), len(x))
        or ConfidenceInterval(float(x.mean()), np.nan, np.nan, len(x)),
        difference=_estimate(one.get("difference"), len(x)),
        verdict=str(one.get("verdict") or ""),
        agent=bool(one.get("agent")),
        oracle=bool(one.get("oracle")),
        protocol="/".join(str(one[key]) for key in ("protocol", "preset") if one.get(key)),
        estimator=str(one.get("estimator") or ""),
    )


def is_number(value: Any) -> bool:
    """Tell whether a JSON value is a finite number."""
    return type(value) in (int, float) and math.isfinite(value)


def _name(one: Mapping[str, Any], where: str) -> str:
    if one.get("agent"):
        return str(one.get("name") or one["agent"])
    if not one.get("order"):
        raise BridgeError("names neither an order nor an agent", where=where)
    backfill, by = one.get("backfill") or "none", one.get("candidate_order")
    name = f"{one['order']}" + ("" if backfill == "none" else f"+{backfill}")
    return f"{name} by {by}" if by else name


def _estimate(value: Any, n: int) -> ConfidenceInterval | None:
    value = value if isinstance(value, dict) else {}
    mean, low, high = (value.get(key) for key in ("mean", "low", "high"))
    if not is_number(mean):
        return None
    low, high = (low, high) if is_number(low) and is_number(high) else (np.nan, np.nan)
    b, kind = value.get("b"), value.get("kind")
    kind = kind if kind in get_args(Kind) else None
    return ConfidenceInterval(float(mean), float(low), float(high), n, b if type(b) is int else 0, kind)


def _told_apart(entries: list[Entry]) -> list[Entry]:
    """Name the estimator where names alone are the same, and number what then is still the same."""
    names = [one.name for one in entries]
    estimators = [f", {one.estimator}" if one.estimator else "" for one in entries]
    names = [n + e if names.count(n) > 1 else n for n, e in zip(names, estimators, strict=True)]
    names = [f"{n} ({names[: k + 1].count(n)})" if names.count(n) > 1 else n for k, n in enumerate(names)]
    return [replace(one, name=name) for one, name in zip(entries, names, strict=True)]


@dataclass(frozen=True)
class BoundEntry:
    """One policy and its estimator; difference to the first in percent, None for the first."""

    estimates: str
    policy: str
    oracle: bool
    mean: float
    percent: float | None
    low: float | None
    high: float | None
    b: int | None = None
    kind: str | None = None


@dataclass(frozen=True)
class Bounds:
    """Bounds on the same sequences of a log; the first row is the best rule on estimates."""

    workload: str
    estimator: str
    sequences: int
    length: int
    rows: tuple[BoundEntry, ...]


def bounds_of(document: Mapping[str, Any], where: str) -> Bounds:
    """Read a bound. Raises BridgeError: something else stands where a number or a name should."""
    remedy = "`bridge bound LOG --json` makes one."
    rows, entries = document.get("rows"), []
    counts = [document.get(key) for key in ("sequences", "length")]
    whole = isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows)
    if not whole or not all(type(one) is int for one in counts):
        raise BridgeError("is no bound", where=where, remedy=remedy)
    for k, row in enumerate(rows or (), 1):
        apart = row.get("difference_percent") or {}
        values = [row.get("mean"), *(apart.get(key) for key in ("mean", "low", "high"))]
        if values[0] is None or not all(one is None or is_number(one) for one in values):
            raise BridgeError("holds something that is no number", where=f"{where}: row {k}", remedy=remedy)
        words = str(row.get("known")), str(row.get("policy")), bool(row.get("oracle"))
        b, kind = apart.get("b"), apart.get("kind")
        blocks = (b if type(b) is int else None, kind if kind in get_args(Kind) else None)
        entries.append(BoundEntry(*words, *(*values, *blocks)))
    workload, estimator = (str(document.get(key) or "") for key in ("workload", "estimator"))
    return Bounds(workload, estimator, document["sequences"], document["length"], tuple(entries))


def bound_summary(bounds: Bounds) -> tuple[str, str]:
    """Return a sentence in two parts: the best result with better estimates."""
    best, most = bounds.rows[0], dict[str, float]()
    for row in bounds.rows:
        if row.oracle and row.percent is not None:
            most[row.estimates] = min(row.percent, most.get(row.estimates, row.percent))
    parts = "; ".join(f"with true {estimates} {_percent(percent)}" for estimates, percent in most.items())
    base = f"{best.policy}, the best rule in hindsight ({best.mean:,.2f})"
    return "How much is left", f" on {bounds.workload}, against {base}: {parts}."


def bound_table(bounds: Bounds) -> list[Table]:
    caption = (
        f"Mean bounded slowdown of {counted(bounds.sequences, 'sequence')} of "
        f"{counted(bounds.length, 'job')}, each on an"
    )
    caption += f" idle machine; believed run times: {bounds.estimator}."
    blocks = next((row.b for row in bounds.rows if row.b is not None), None)
    caption += f" b = {blocks}. {INTERVALS}" if blocks is not None else ""
    rows = [
        [
            row.estimates,
            row.policy + (" *" if row.oracle else ""),
            f"{row.mean:,.2f}",
            _percent(row.percent),
            ""
            if row.low is None or row.high is None
            else f"{_percent(row.low)} … {_percent(row.high)}{mark_of(row.kind)}",
        ]
        for row in bounds.rows
    ]
    headings = ("knows", "policy", "mean", "difference", "95 % interval")
    return [Table(headings, rows, title=f"{bounds.workload}: what is left", caption=caption, words=(1,))]


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:+.0f}\u00a0%".replace("-", "−")
