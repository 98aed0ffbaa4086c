"""RLSchert's Table 9 and Figures 10 and 11: rows beside shares, loads or sizes of the pool, and as lines."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bridge.report.plots import COLOURS
from bridge.report.table import Table
from bridge.study import report
from bridge.study.headings import heading
from bridge.study.report import SHORT
from bridge.study.results import StudyResults
from bridge.study.windows import interval, judged
from papers.pictures import legend, panels, saved

TABLES = ("rlschert-9", "rlschert-10", "rlschert-11")
Document = Mapping[str, Any]
#: The number in the name of a share, a load or a size.
_NUMBER = re.compile(r"[\d.]+")
_CLAMP = ", oracle clamp"


def _columns(document: Document) -> tuple[str, list[str]]:
    """Return what varies, ``test`` or ``log``, and its names."""
    of = {name: list(dict.fromkeys(row[name] for row in document["rows"])) for name in ("test", "log")}
    return max(of.items(), key=lambda item: len(item[1]))


def _rows(document: Document) -> dict[str, dict[str, Any]]:
    """Return the rows that learn and their bases: name -> name of a share, load or size -> row."""
    varies, _ = _columns(document)
    bases = {one["base"] for one in document["comparisons"]}
    cells: dict[str, dict[str, Any]] = {}
    for row in document["rows"]:
        if row["learnt"] or row["row"] in bases:
            cells.setdefault(row["row"], {})[row[varies]] = row
    return cells


def table(document: Document) -> Table:
    """Return a line for each row that learns and each base: means, and what each is beside its base."""
    varies, names = _columns(document)
    marks: dict[tuple[str, str], str] = {}
    for one in document["comparisons"]:
        marks.setdefault((one["row"], one[varies]), one["verdict"])
    page_table = Table([heading(document["metric"]), "seeds", *names], words=(1,))
    for name, rows in _rows(document).items():
        seeds = sorted({row["seeds"] for row in rows.values() if row["learnt"]})
        cells = (_cell(rows[at], marks.get((name, at), "") if seeds else "") for at in names)
        page_table.add(
            name, "–".join(map(str, dict.fromkeys((seeds[0], seeds[-1])))) if seeds else "–", *cells
        )
    return page_table


def _cell(row: Mapping[str, Any], verdict: str) -> str:
    if not row["seeds"]:
        return "not run"
    return f"{row['mean']['mean']:.2f} {SHORT.get(verdict, verdict)}".rstrip()


def shares(results: StudyResults) -> list[str]:
    """Return what each agent of Table 9 that corrects predictions loses where fewer jobs are predicted."""
    *fewer, most = (test.name for test in results.study.tests)
    lines = []
    for (row, log), cells in results.cells.items():
        recipe, all_of_them = cells[0]["of"].recipe, results.values(row, log, most)
        if recipe is None or recipe.estimator == "submit" or all_of_them is None:
            continue
        parts = []
        for test in fewer:
            if (values := results.values(row, log, test)) is not None:
                apart, metric = interval(values, all_of_them), results.study.metric
                interval_text = report.interval(metric, apart.as_dict(), "+")
                parts.append(f"{test} {judged(apart, metric)} ({interval_text})")
        lines.append(f"{row}, against {most}: {'; '.join(parts)}.")
    return lines


def draw(document: Document, name: str) -> Path:
    """Draw means with their intervals against what varies: honest left, with the oracle clamp right."""
    _, names = _columns(document)
    figure, axes = panels(9.0, 3.8, ("honest", "oracle clamp"), sharey=True)
    cells = _rows(document)
    colours: dict[str, str] = {}
    for row, of in cells.items():
        who, clamped = row.removesuffix(_CLAMP), row.endswith(_CLAMP)
        colour = colours.setdefault(who, COLOURS[len(colours) % len(COLOURS)])
        means_by_setting = {at: of[at]["mean"] for at in names if of[at]["seeds"]}
        if means_by_setting:
            where = [float(_NUMBER.findall(at)[0]) for at in means_by_setting]
            low, mean, high = (
                np.array([one[end] for one in means_by_setting.values()], np.float64)
                for end in ("low", "mean", "high")
            )
            axes[clamped].plot(where, mean, "o-", markersize=3, linewidth=1.2, color=colour, label=who)
            axes[clamped].fill_between(where, low, high, color=colour, alpha=0.12, linewidth=0)
    for panel in axes:
        panel.set_xlabel(_NUMBER.sub("", names[0]).strip())
    axes[0].set_ylabel(heading(document["metric"]))
    legend(axes[0])
    return saved(figure, name)
