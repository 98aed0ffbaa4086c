"""Tables of what actions win and cost."""

from collections.abc import Mapping, Sequence
from typing import Any

from bridge.base.counted import counted
from bridge.forecasting.action_bound import ActionRow
from bridge.judge.action_metrics import ACTION_METRICS
from bridge.judge.stats import ConfidenceInterval
from bridge.report.table import Table


def action_costs(rows: Sequence[tuple[str, Mapping[str, float | None]]]) -> Table:
    """Return `ACTION_METRICS` of policies (name, means), a policy a column."""
    title = "What actions win and cost: means over the sequences; waits run to the end of the last life"
    table = Table(("", *(name for name, _ in rows)), title=title)
    for key, label in ACTION_METRICS.items():
        values = (means[key] for _, means in rows)
        table.add(label, *("–" if value is None else f"{value:,.{_digits(value)}f}" for value in values))
    return table


def action_bound_tables(document: Mapping[str, Any], rows: Sequence[ActionRow]) -> list[Table]:
    caption = (
        f"{counted(document['sequences'], 'sequence')} of {counted(document['length'], 'job')}, "
        "each on an idle machine; "
        f"{document['share']:.0%} of the users permit the action. Differences to the first row, in %, with "
        "95 % intervals."
    )
    table = Table(
        ("policy", "believes", "bsld", "difference", "wait, s", "difference", "waste, %"),
        title=f"{document['workload']}: what an action would win",
        caption=caption,
        words=(1,),
    )
    for row in rows:
        mean, wait, waste = (row.metrics[key] or 0.0 for key in ("bsld", "wait", "waste"))
        cells = (f"{mean:,.2f}", _percent(row.bsld), f"{wait:,.0f}", _percent(row.wait), f"{waste:.2f}")
        table.add(row.policy, row.belief, *cells)
    return [table, action_costs([(row.policy.removeprefix("saf+easy+"), row.metrics) for row in rows])]


def _percent(value: ConfidenceInterval | None) -> str:
    if value is None:
        return "base"
    if value.kind is None:
        return f"{value.mean:+.0f}"
    return f"{value.mean:+.0f} [{value.low:+.0f}, {value.high:+.0f}]{value.mark}"


def _digits(value: float) -> int:
    return 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 4
