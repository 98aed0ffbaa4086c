"""Who wins where: the winner of every log and the best that learns, and everybody beside the winner."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bridge.report.plots import new_figure, save
from bridge.report.table import Table
from bridge.study.report import interval

Document = Mapping[str, Any]
Row = Mapping[str, Any]


def by_log(document: Document) -> dict[str, list[Row]]:
    rows_by_log: dict[str, list[Row]] = {}
    for row in document["rows"]:
        if row["seeds"]:
            rows_by_log.setdefault(row["log"], []).append(row)
    return {
        log: sorted(rows, key=lambda row: float(row["mean"]["mean"])) for log, rows in rows_by_log.items()
    }


def _cell(row: Row | None) -> str:
    if row is None:
        return "not run"
    seeds = f", {row['seeds']} seed{'s' * (row['seeds'] > 1)}" if row["learnt"] else ""
    means = f"{row['more']['wait'] / 3600:.2f} h, {100 * row['more']['utilisation']:.1f} %{seeds}"
    return f"{row['row']}: {row['mean']['mean']:.2f} ({means})"


#: It rejects jobs that fit, and nothing tells it what that costs: who holds jobs back is no winner.
HOLDS_BACK = "SchedInspector on SJF"


def winners(document: Document) -> Table:
    """Return a line a log: best rule, best that learns, and their difference."""
    head = ["windows (apart)", "b", "best rule", "best that learns", "learnt − rule", "FCFS + EASY"]
    table = Table(["log", *head], words=(3, 4, 5, 6))
    against = {(one["row"], one["log"]): one for one in document["best_rules"]}
    for log, rows in by_log(document).items():
        rule = next(row for row in rows if not row["learnt"])
        learnt = next((row for row in rows if row["learnt"] and row["row"] != HOLDS_BACK), None)
        one = against.get((learnt["row"], log)) if learnt else None
        difference = "–"
        if one is not None:
            difference = f"{one['verdict']}: {interval(document['metric'], one['difference'], '+')}"
        plain = next((row for row in rows if row["row"] == "FCFS + EASY"), None)
        windows = f"{rule['windows']} ({rule['windows_apart']})"
        table.add(log, windows, rule["mean"]["b"], _cell(rule), _cell(learnt), difference, _cell(plain))
    return table


def draw(document: Document, path: Path) -> Path:
    """Draw everybody's slowdown over the winner's, by log."""
    rows_by_log = by_log(document)
    names = list(dict.fromkeys(row["row"] for row in document["rows"]))
    ratio = np.full((len(names), len(rows_by_log)), np.nan)
    for k, rows in enumerate(rows_by_log.values()):
        for row in rows:
            ratio[names.index(row["row"]), k] = row["mean"]["mean"] / rows[0]["mean"]["mean"]
    kept = np.argsort(np.nanmean(np.log(ratio), axis=1))
    kept = kept[~np.isnan(ratio[kept]).all(axis=1)]
    figure = new_figure(8.5, 1.2 + 0.32 * len(kept))
    axes = figure.subplots()
    axes.imshow(np.log(ratio[kept]), cmap="cividis_r", aspect="auto", vmin=0, vmax=np.log(6))
    for y, row in enumerate(ratio[kept]):
        for x, value in enumerate(row):
            if not np.isnan(value):
                colour = "white" if value > 2.2 else "black"
                axes.text(x, y, f"{value:.2f}", ha="center", va="center", fontsize=7, color=colour)
    axes.set_xticks(range(len(rows_by_log)), list(rows_by_log), fontsize=8)
    axes.set_yticks(range(len(kept)), [names[k] for k in kept], fontsize=8)
    axes.set_xlabel("mean bounded slowdown over the winner's; rows by their geometric mean")
    save(figure, path)
    return path
