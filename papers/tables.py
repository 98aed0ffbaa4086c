"""What results say: values, differences with intervals, and the cells and sentences of the papers' tables."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from bridge.judge.sequences import Judged, judge
from papers import store
from papers.study import Row, Table

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


def command_of(table: Table, row: Row) -> str:
    """Return the command that runs a row."""
    return f'`python -m papers run {table.name} --row "{row.name}"`'


class Results:
    """What was measured of a table on the sequences of one test."""

    def __init__(self, table: Table, test: str) -> None:
        """Read it."""
        self.table, self.test, self._by = table, test, dict[tuple[str, str], pd.DataFrame]()
        found = store.read(table.name)
        self.metric: str = found["metric"].iloc[0] if len(found) else ""
        if len(found):
            mine = found[found["test"] == test].groupby(["row", "label"], sort=False)
            self._by = {(str(row), str(label)): one for (row, label), one in mine}

    def of(self, row: Row, label: str) -> pd.DataFrame | None:
        """Return the results of one contestant of a row, one per seed; None if it has not played."""
        return self._by.get((row.name, label))

    def values(self, row: Row, label: str, metric: str = "") -> Floats | None:
        """Return a contestant's value per sequence, the mean over its seeds; None if it has not played.

        Args:
            row: where it stands.
            label: who.
            metric: one of the table's further ones; else what agents are judged by.
        """
        mine, column = self.of(row, label), f"values.{metric}" if metric else "values"
        if mine is None or column not in mine:
            return None
        return np.asarray(np.mean(np.stack([np.asarray(v, np.float64) for v in mine[column]]), axis=0))

    def judged(self, row: Row, mine: Floats, other: Floats) -> Judged:
        """Compare values on the sequences of a row."""
        one = self._by[row.name, "base"].iloc[0]
        return judge(mine, other, np.asarray(one["starts"], np.int64), int(one["length"]))

    def mean(self, row: Row, label: str, column: str) -> float:
        """Return the mean of a column over a contestant's seeds."""
        return float(self._by[row.name, label][column].mean())

    def oracle(self, row: Row, label: str) -> bool:
        """Tell whether somebody reads true run times."""
        return bool(self._by[row.name, label]["oracle"].any())


# One line per row.

LINE = (
    "row",
    "seeds",
    "paper: base → agent",
    "base",
    "agent",
    "agent − base",
    "best that does not learn",
    "agent − it",
)


def line(results: Results, row: Row) -> tuple[list[str], str]:
    """Return a row's cells, as `LINE` names them, and its sentence."""
    base, agent = results.values(row, "base"), results.values(row, "agent")
    published = row.paper and results.test == "paper"
    paper = " → ".join(_number(row.paper.get(k)) for k in ("base", "agent")) if published else "–"
    if base is None or agent is None:
        mean = _number(None if base is None else float(base.mean()))
        sentence = f"{row.name}: not run; {command_of(results.table, row)}."
        return [row.name, "0", paper, mean, "not run", "", "", ""], sentence
    some = results.of(row, "agent")
    assert some is not None
    smoke = int(some["smoke"].max())
    seeds = f"{len(some)}" + (f" (smoke: {smoke} epochs)" if smoke else "")
    judged, everybody = results.judged(row, agent, base), results.oracle(row, "agent")
    cells = [row.name, seeds, paper, f"{base.mean():.2f}", f"{agent.mean():.2f}", _interval(judged)]
    sentence = f"{row.name}: {_said(judged, 'the base')}"
    if everybody:  # the loading rule tells the agent, too
        sentence += " (requested times are the true run times, for everybody here)"
    others = {
        one.label: values
        for one in row.baselines
        if (values := results.values(row, one.label)) is not None
        and (everybody or not results.oracle(row, one.label))
    }
    if others:
        best = min(others, key=lambda label: float(others[label].mean()))
        against = results.judged(row, agent, others[best])
        cells += [f"{best}: {others[best].mean():.2f}", _interval(against)]
        sentence += f", and {_said(against, f'the best that does not learn ({best})')}"
    else:
        cells += ["–", "–"]
    per_seed = ", ".join(f"{m:.2f}" for m in some.sort_values("seed")["mean"])
    sentence += (
        f"; {_price(results, row)}; by seed {per_seed}; "
        f"trained {some['train_seconds'].mean() / 60:.1f} min a seed."
    )
    if smoke:
        command = command_of(results.table, row)
        sentence += f" A smoke row: {smoke} epochs show that it runs, no more; {command}."
    return cells, sentence


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _interval(judged: Judged) -> str:
    d = judged.difference
    assert d is not None
    return f"{d.mean:+.2f} " + ("(no interval)" if np.isnan(d.low) else f"[{d.low:+.2f}, {d.high:+.2f}]")


def _price(results: Results, row: Row) -> str:
    """Say what else differs: mean wait and utilisation, base and agent."""
    waits = (f"{results.mean(row, who, 'wait') / 3600:.1f} h" for who in ("base", "agent"))
    used = (f"{100 * results.mean(row, who, 'utilisation'):.0f} %" for who in ("base", "agent"))
    return f"mean wait {' → '.join(waits)}, utilisation {' → '.join(used)}"


def _said(judged: Judged, whom: str) -> str:
    said = judged.verdict
    if said == "not distinguishable":
        return f"not distinguishable from {whom}"
    if said in MARKS:
        return f"{said} than {whom}"
    if judged.mean.n == 1:
        return f"on this one sequence, which has no interval, not to be told from {whom}"
    return f"{said} ({whom})"


def others(results: Results, row: Row) -> str:
    """Return everybody else on the sequences of a row, with what is published of them."""
    labels = [
        label for label in ("base", *(b.label for b in row.baselines)) if results.of(row, label) is not None
    ]
    cells = [
        f"{label}{'*' if results.oracle(row, label) else ''} {results.mean(row, label, 'mean'):.2f}"
        for label in labels
    ]
    published = [f"{name} {value:.2f}" for name, value in row.paper.items() if name not in ("base", "agent")]
    text = " · ".join(cells)
    return text + (f" (published: {', '.join(published)})" if published and results.test == "paper" else "")


# Tables of many metrics.


def by_trace(table: Table) -> dict[str, list[Row]]:
    """Return the table's rows by what they are judged on."""
    rows: dict[str, list[Row]] = {}
    for row in table.rows:
        rows.setdefault(row.trace, []).append(row)
    return rows


def contestants(rows: list[Row]) -> list[tuple[str, Row, str]]:
    """Return (name, row, label) of everybody on one workload: base, who does not learn, agents."""
    first = rows[0]
    found = [("base", first, "base"), *((b.label, first, b.label) for b in first.baselines)]
    return found + [(row.name.split(",")[0], row, "agent") for row in rows]


def everybody(results: Results) -> list[list[str]]:
    """Return lines of all metrics, with a mark where a difference to the base is more than chance."""
    metrics, lines = results.table.more, []
    for trace, rows in by_trace(results.table).items():
        for name, row, label in contestants(rows):
            pairs = ((results.values(row, label, m), results.values(rows[0], "base", m)) for m in metrics)
            cells = [_cell(results, row, label, m, *pair) for m, pair in zip(metrics, pairs, strict=True)]
            lines.append([trace, name, *cells])
    return lines


def _cell(
    results: Results, row: Row, label: str, metric: str, mine: Floats | None, base: Floats | None
) -> str:
    if mine is None or base is None:
        return "not run"
    _, factor, digits = HEADS[metric]
    mark = ""
    if label != "base" and len(mine) > 1:
        told = results.judged(row, mine, base)
        higher = metric.startswith("utilisation")
        mark = MARKS.get(told.verdict_higher if higher else told.verdict, "")
    return f"{mine.mean() * factor:.{digits}f}{' ' * bool(mark)}{mark}"


def rivals(results: Results) -> list[str]:
    """Return one sentence per workload for each pair of agents that are compared directly."""
    return [
        f"{trace}: {_rivals(results, rows, *pair)}"
        for pair in results.table.rivals
        for trace, rows in by_trace(results.table).items()
    ]


def _rivals(results: Results, rows: list[Row], ours: str, theirs: str) -> str:
    metric = results.table.metric
    one, other = (next((r for r in rows if r.name.startswith(who)), None) for who in (ours, theirs))
    mine, base = (None if r is None else results.values(r, "agent", metric) for r in (one, other))
    if one is None or mine is None or base is None:
        return f"{ours} against {theirs}: not run."
    told = results.judged(one, mine, base)
    (head, factor, digits), d = HEADS[metric], told.difference
    assert d is not None
    change = 100 * (mine.mean() / base.mean() - 1)
    mean, low, high = (f"{value * factor:+.{digits}f}" for value in (d.mean, d.low, d.high))
    what = f"{head.removeprefix('mean ')} ({change:+.0f} %)"
    if np.isnan(d.low):
        return f"{ours} − {theirs}: {mean} {what}; no interval."
    verdict = f"{told.verdict} {'than' if told.verdict in MARKS else 'from'}"
    return f"{ours} {verdict} {theirs}: {mean} [{low}, {high}] {what}."
