"""Tables of many metrics: everybody in every metric, agents against each other, and Kiviat charts."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bridge.judge.sequences import judge
from bridge.report.style import COLOURS, new_figure, save
from papers import store
from papers.rows import Row, Table

Floats = npt.NDArray[np.float64]

#: Metrics -> heading, factor and digits of its numbers.
HEADS: dict[str, tuple[str, float, int]] = {
    "utilisation": ("nodes, %", 100.0, 1),
    "utilisation.burst_buffer": ("burst buffer, %", 100.0, 1),
    "utilisation.power": ("power, %", 100.0, 1),
    "wait": ("mean wait, h", 1 / 3600, 2),
    "slowdown": ("mean slowdown", 1.0, 1),
    "bsld": ("mean bounded slowdown", 1.0, 1),
}
#: Whether a difference to the base is one: better, worse, or cannot be told.
MARKS = {"better": "▲", "worse": "▼"}


def values(found: pd.DataFrame, row: str, test: str, label: str, metric: str) -> Floats | None:
    """Return a contestant's value per sequence, the mean over its seeds; None if it has not played."""
    mine = found[(found["row"] == row) & (found["test"] == test) & (found["label"] == label)]
    column = f"values.{metric}"
    if not len(mine) or column not in mine:
        return None
    return np.mean(np.stack([np.asarray(v, np.float64) for v in mine[column]]), axis=0)


def _judged(mine: Floats, other: Floats, found: pd.DataFrame, row: str, test: str) -> Any:
    one = found[(found["row"] == row) & (found["test"] == test)].iloc[0]
    return judge(mine, other, np.asarray(one["starts"], np.int64), int(one["length"]))


def _by_trace(table: Table) -> dict[str, list[Row]]:
    """Return the table's rows by what they are judged on."""
    rows: dict[str, list[Row]] = {}
    for row in table.rows:
        rows.setdefault(row.trace, []).append(row)
    return rows


def contestants(rows: list[Row]) -> list[tuple[str, str, str]]:
    """Return (name, row, label) of everybody on one workload: base, who does not learn, agents."""
    first = rows[0]
    found = [("base", first.name, "base"), *((b.label, first.name, b.label) for b in first.baselines)]
    return found + [(row.name.split(",")[0], row.name, "agent") for row in rows]


def everybody(table: Table, test: str, found: pd.DataFrame) -> list[str]:
    """Return the table of all metrics, with a mark where a difference to the base is more than chance."""
    text = [
        "Every metric (means over sequences and seeds; ▲ better and ▼ worse than the base by a paired 95 % "
        "interval, without a mark it cannot be told):",
        "",
        f"| workload | who | {' | '.join(HEADS[m][0] for m in table.more)} |",
        f"|---|---|{'---|' * len(table.more)}",
    ]
    for trace, rows in _by_trace(table).items():
        for name, row, label in contestants(rows):
            cells = []
            for metric in table.more:
                mine = values(found, row, test, label, metric)
                base = values(found, rows[0].name, test, "base", metric)
                if mine is None or base is None:
                    cells.append("not run")
                    continue
                _, factor, digits = HEADS[metric]
                mark = ""
                if label != "base" and len(mine) > 1:
                    told = _judged(mine, base, found, row, test)
                    higher = metric.startswith("utilisation")
                    mark = MARKS.get(told.verdict_higher if higher else told.verdict, "")
                cells.append(f"{mine.mean() * factor:.{digits}f}{' ' * bool(mark)}{mark}")
            text.append(f"| {trace} | {name} | {' | '.join(cells)} |")
    return [*text, ""]


def rivals(table: Table, test: str, found: pd.DataFrame) -> list[str]:
    """Return one sentence per workload for each pair of agents that are compared directly."""
    text = []
    for ours, theirs in table.rivals:
        for trace, rows in _by_trace(table).items():
            pair = [next((r.name for r in rows if r.name.startswith(who)), "") for who in (ours, theirs)]
            both = [values(found, name, test, "agent", table.metric) for name in pair]
            if both[0] is None or both[1] is None:
                text.append(f"- {trace}: {ours} against {theirs}: not run.")
                continue
            told = _judged(both[0], both[1], found, pair[0], test)
            _, factor, digits = HEADS[table.metric]
            d = told.difference
            change = 100 * (both[0].mean() / both[1].mean() - 1)
            what = f"{HEADS[table.metric][0].removeprefix('mean ')} ({change:+.0f} %)"
            if np.isnan(d.low):
                text.append(
                    f"- {trace}: {ours} − {theirs}: {d.mean * factor:+.{digits}f} {what}; no interval."
                )
                continue
            low, high = d.low * factor, d.high * factor
            text.append(
                f"- {trace}: {ours} {told.verdict} {'than' if told.verdict in MARKS else 'from'} {theirs}: "
                f"{d.mean * factor:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}] {what}."
            )
    return [*text, ""] if text else []


def kiviat(table: Table, test: str = "held-out") -> Path | None:
    """Draw one Kiviat chart per workload: every metric over the best one's (MRSch, Figure 5).

    Returns:
        The picture, or None where nobody has played.
    """
    found = store.read(table.name)
    traces = _by_trace(table)
    metrics = [m for m in table.more if m != "bsld"]
    if not len(found) or len(metrics) < 3:
        return None
    columns = min(len(traces), 5)
    figure = new_figure(3.0 * columns, 3.9)
    angles = np.linspace(0, 2 * np.pi, len(metrics), endpoint=False)
    closed = np.append(angles, angles[0])
    drawn = {}
    for k, (trace, rows) in enumerate(traces.items()):
        axes = figure.add_subplot(1, columns, k + 1, projection="polar")
        means = {}
        for name, row, label in contestants(rows):
            each = [values(found, row, test, label, m) for m in metrics]
            if all(v is not None for v in each):
                means[name] = np.array([float(v.mean()) for v in each if v is not None])
        if not means:
            continue
        goods = {
            name: np.array(
                [v if m.startswith("utilisation") else 1 / v for m, v in zip(metrics, row, strict=True)]
            )
            for name, row in means.items()
        }
        best = np.max(np.stack(list(goods.values())), axis=0)
        for c, (name, good) in enumerate(goods.items()):
            share = good / best
            (line,) = axes.plot(
                closed, np.append(share, share[0]), color=COLOURS[c % len(COLOURS)], linewidth=1.3
            )
            drawn.setdefault(name, line)
        axes.set_xticks(angles, [HEADS[m][0].split(",")[0].replace("mean ", "") for m in metrics], fontsize=7)
        axes.set_ylim(0, 1.02)
        axes.set_yticks([0.25, 0.5, 0.75, 1.0], ["", "0.5", "", "1"], fontsize=6)
        axes.set_title(trace, fontsize=9, pad=12)
    if not drawn:
        return None
    figure.legend(
        drawn.values(), drawn.keys(), loc="outside lower center", ncols=len(drawn), frameon=False, fontsize=8
    )
    path = store.RESULTS / f"{table.name}-kiviat.svg"
    save(figure, path)
    return path
