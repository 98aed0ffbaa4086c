"""An evaluation as `bridge evaluate --json` prints it, read into typed values."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.errors import BridgeError
from bridge.judge.stats import Estimate

Floats = NDArray[np.float64]


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
    values: Floats
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
    starts = document.get("starts")
    starts = tuple(int(s) for s in starts) if isinstance(starts, list) and all(map(_is_int, starts)) else ()
    raw = document["policies"]
    entries = [_entry(one, f"{where}: policy {k}") for k, one in enumerate(raw, 1)]
    for k, one in enumerate(entries, 1):
        if len(one.values) != len(entries[0].values) or (starts and len(one.values) != len(starts)):
            wanted = len(starts) or len(entries[0].values)
            raise BridgeError(
                f"has {len(one.values)} values, not {wanted}",
                where=f"{where}: policy {k}",
                remedy="All policies of an evaluation are judged on the same windows.",
            )
    length = document.get("length")
    return Evaluation(
        workload=str(document.get("workload") or ""),
        metric=str(document.get("metric") or "metric"),
        length=length if _is_int(length) else None,
        starts=starts,
        entries=tuple(_told_apart(entries)),
    )


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _entry(one: Any, where: str) -> Entry:
    if not isinstance(one, dict):
        raise BridgeError("is not an object", where=where)
    values = one.get("values")
    if not isinstance(values, list) or not values or not all(_finite(v) for v in values):
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


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and bool(np.isfinite(value))


def _name(one: Mapping[str, Any], where: str) -> str:
    if one.get("agent"):
        return str(one.get("name") or one["agent"])
    if not one.get("order"):
        raise BridgeError("names neither an order nor an agent", where=where)
    name, backfill, by = str(one["order"]), one.get("backfill"), one.get("candidate_order")
    if backfill and backfill != "none":
        name += f"+{backfill}"
    return f"{name} by {by}" if by else name


def _estimate(told: Any, n: int) -> Estimate | None:
    if not isinstance(told, dict) or not _finite(told.get("mean")):
        return None
    known = _finite(told.get("low")) and _finite(told.get("high"))
    low, high = (float(told[key]) if known else np.nan for key in ("low", "high"))
    return Estimate(float(told["mean"]), low, high, n)


def _told_apart(entries: list[Entry]) -> list[Entry]:
    """Name the estimator where names alone are the same, and number what then is still the same."""
    from dataclasses import replace

    def counts() -> Counter[str]:
        return Counter(one.name for one in entries)

    several = counts()
    entries = [
        replace(one, name=f"{one.name}, {one.estimator}") if several[one.name] > 1 and one.estimator else one
        for one in entries
    ]
    several, met = counts(), Counter[str]()
    for k, one in enumerate(entries):
        met[one.name] += 1
        if several[one.name] > 1:
            entries[k] = replace(one, name=f"{one.name} ({met[one.name]})")
    return entries
