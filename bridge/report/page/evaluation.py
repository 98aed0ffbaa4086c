"""An evaluation as `bridge evaluate --json` prints it, read into typed values."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.errors import BridgeError
from bridge.judge.stats import Estimate


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
    mean: Estimate
    difference: Estimate | None
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
class Evaluation:
    """Policies on the same windows of one workload; the first entry is the base.

    Attributes:
        starts: the first job of every window, empty if not told.
        length: jobs a window, None if not told.
    """

    workload: str
    metric: str
    length: int | None
    starts: tuple[int, ...]
    entries: tuple[Entry, ...]

    @property
    def base(self) -> Entry:
        """The entry that the others are compared with."""
        return self.entries[0]

    @property
    def higher_is_better(self) -> bool:
        """Whether a larger metric is the better one."""
        return self.metric.startswith("utilisation")


def holds(document: Any, key: str) -> bool:
    """Tell whether a JSON document has policies with a key, as evaluations (values) and validations have."""
    policies = document.get("policies") if isinstance(document, dict) else None
    return isinstance(policies, list) and any(isinstance(p, dict) and key in p for p in policies)


def parse(document: Mapping[str, Any], where: str) -> Evaluation:
    """Read an evaluation; keys that are not known are left alone.

    Raises:
        BridgeError: a policy has no name or no values, the values are no finite numbers, or differ in number.
    """
    told, length = document.get("starts"), document.get("length")
    starts = tuple(told) if isinstance(told, list) and all(type(one) is int for one in told) else ()
    entries = [_entry(one, f"{where}: policy {k}") for k, one in enumerate(document["policies"], 1)]
    wanted = len(starts) or len(entries[0].values)
    for k, one in enumerate(entries, 1):
        if len(one.values) != wanted:
            what = f"has {len(one.values)} values, not {wanted}"
            remedy = "All policies of an evaluation are judged on the same windows."
            raise BridgeError(what, where=f"{where}: policy {k}", remedy=remedy)
    return Evaluation(
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
        mean=_estimate(one.get("ci95"), len(x)) or Estimate(float(x.mean()), np.nan, np.nan, len(x)),
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


def _estimate(told: Any, n: int) -> Estimate | None:
    told = told if isinstance(told, dict) else {}
    mean, low, high = (told.get(key) for key in ("mean", "low", "high"))
    if not is_number(mean):
        return None
    low, high = (low, high) if is_number(low) and is_number(high) else (np.nan, np.nan)
    return Estimate(float(mean), float(low), float(high), n)


def _told_apart(entries: list[Entry]) -> list[Entry]:
    """Name the estimator where names alone are the same, and number what then is still the same."""
    names = [one.name for one in entries]
    estimators = [f", {one.estimator}" if one.estimator else "" for one in entries]
    names = [n + e if names.count(n) > 1 else n for n, e in zip(names, estimators, strict=True)]
    names = [f"{n} ({names[: k + 1].count(n)})" if names.count(n) > 1 else n for k, n in enumerate(names)]
    return [replace(one, name=name) for one, name in zip(entries, names, strict=True)]
