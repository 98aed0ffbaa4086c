"""How much is left to win on a log, as `bridge bound --json` prints it: in a sentence, and as a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bridge.errors import BridgeError
from bridge.report.page.charts import Block
from bridge.report.page.evaluation import is_number
from bridge.report.table import Table


@dataclass(frozen=True)
class Known:
    """One policy with what it knows; its difference to the first is in percent, None of the first."""

    known: str
    policy: str
    oracle: bool
    mean: float
    percent: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Bounds:
    """What is left on the same sequences of a log; the first row is the best rule on what is believed."""

    workload: str
    estimator: str
    sequences: int
    length: int
    rows: tuple[Known, ...]


def bounds_of(document: Mapping[str, Any], where: str) -> Bounds:
    """Read a bound.

    Raises:
        BridgeError: something else stands where a number or a name should.
    """
    remedy = "`bridge bound LOG --json` makes one."
    rows, found = document.get("rows"), []
    counts = [document.get(key) for key in ("sequences", "length")]
    whole = isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows)
    if not whole or not all(type(one) is int for one in counts):
        raise BridgeError("is no bound", where=where, remedy=remedy)
    for k, row in enumerate(rows or (), 1):
        apart = row.get("difference_percent") or {}
        told = [row.get("mean"), *(apart.get(key) for key in ("mean", "low", "high"))]
        if told[0] is None or not all(one is None or is_number(one) for one in told):
            raise BridgeError("holds something that is no number", where=f"{where}: row {k}", remedy=remedy)
        words = str(row.get("known")), str(row.get("policy")), bool(row.get("oracle"))
        found.append(Known(*words, *told))
    workload, estimator = (str(document.get(key) or "") for key in ("workload", "estimator"))
    return Bounds(workload, estimator, document["sequences"], document["length"], tuple(found))


def summary(bounds: Bounds) -> tuple[str, str]:
    """Return a sentence's head and its rest: the most that those reach who know more."""
    best, most = bounds.rows[0], dict[str, float]()
    for row in bounds.rows:
        if row.oracle and row.percent is not None:
            most[row.known] = min(row.percent, most.get(row.known, row.percent))
    said = "; ".join(f"with true {known} {_percent(percent)}" for known, percent in most.items())
    base = f"{best.policy}, the best rule in hindsight ({best.mean:,.2f})"
    return "How much is left", f" on {bounds.workload}, against {base}: {said}."


def left(bounds: Bounds) -> list[Block]:
    """Return the table of a bound."""
    caption = f"Mean bounded slowdown of {bounds.sequences:,} sequences of {bounds.length:,} jobs, each on an"
    caption += f" idle machine; believed run times: {bounds.estimator}."
    rows = [
        [
            row.known,
            row.policy + (" *" if row.oracle else ""),
            f"{row.mean:,.2f}",
            _percent(row.percent),
            "" if row.low is None or row.high is None else f"{_percent(row.low)} … {_percent(row.high)}",
        ]
        for row in bounds.rows
    ]
    return [Table(("knows", "policy", "mean", "difference", "95 % interval"), rows, caption=caption)]


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:+.0f}\u00a0%".replace("-", "−")
