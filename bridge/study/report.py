"""The tables of a study from what its store has: Markdown, one page of HTML, JSON."""

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from bridge.errors import BridgeError
from bridge.files import replacing
from bridge.judge.stats import Estimate
from bridge.report.table import Table
from bridge.study.cells import Cell
from bridge.study.intervals import Values, interval, judged
from bridge.study.spec import Study
from bridge.study.store import Store

#: Metric → (heading, factor, digits); others as they are.
HEADS = {
    "bsld": ("mean bounded slowdown", 1.0, 2),
    "slowdown": ("mean slowdown", 1.0, 2),
    "wait": ("mean wait, h", 1 / 3600, 2),
    "turnaround": ("mean turnaround, h", 1 / 3600, 2),
    "utilisation": ("utilisation, %", 100.0, 1),
    "bsld.max": ("largest bounded slowdown", 1.0, 1),
    "wait.max": ("longest wait, h", 1 / 3600, 1),
}
_STYLE = """body{font:16px/1.5 sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;margin:1rem 0}
th,td{padding:.2rem .6rem;border-bottom:1px solid #ccc;text-align:left}
td.n,th.n{text-align:right}.scroll{overflow-x:auto}"""


def document_of(study: Study, cells: Sequence[Cell], store: Store) -> dict[str, Any]:
    """Return all that is known of a study, as plain data: rows and comparisons by log and test."""
    by: dict[tuple[str, str], list[dict[str, Any]]] = {}
    asked: dict[tuple[str, str], int] = {}
    failed = []
    for cell in cells:
        name = (cell.row, cell.log)
        asked[name] = asked.get(name, 0) + 1
        found = store.cell(cell.key)
        if found is not None:
            by.setdefault(name, []).append(found)
        elif error := store.failure(cell.key):
            failed.append({"cell": cell.title, "error": error})
    rows, comparisons = [], []
    for k, test in enumerate(study.tests):
        values = {name: _values(found, k, study.metric) for name, found in by.items()}
        rows += [
            _row(name, test.name, by.get(name, []), values.get(name), count, study, k)
            for name, count in asked.items()
        ]
        for log in dict.fromkeys(log for _, log in asked):
            for one in study.compared:
                mine, base = values.get((one.row, log)), values.get((one.base, log))
                if mine is not None and base is not None:
                    told = _comparison(study, mine, base)
                    comparisons.append(
                        {"log": log, "test": test.name, "row": one.row, "base": one.base} | told
                    )
    return {
        "title": study.title,
        "metric": study.metric,
        "cells": len(cells),
        "done": sum(map(len, by.values())),
        "failed": failed,
        "rows": rows,
        "comparisons": comparisons,
    }


def _values(found: Sequence[dict[str, Any]], test: int, metric: str) -> Values:
    tests = [one["tests"][test] for one in found]
    of = np.array([one["values"][metric] for one in tests], np.float64)
    return Values(of, np.array(tests[0]["starts"], np.int64), int(tests[0]["length"]))


def _row(
    name: tuple[str, str],
    test: str,
    found: Sequence[dict[str, Any]],
    values: Values | None,
    asked: int,
    study: Study,
    k: int,
) -> dict[str, Any]:
    """Return what is known of one row on one log."""
    row: dict[str, Any] = {"log": name[1], "test": test, "row": name[0], "seeds_asked": asked, "seeds": 0}
    if values is None:
        return row
    learnt = any(one["epochs"] for one in found)
    return row | {
        "seeds": len(found),
        "learnt": learnt,
        "windows": len(values.starts),
        "windows_apart": values.apart,
        "mean": _plain(interval(values)),
        "by_seed": {str(one["seed"]): float(np.mean(v)) for one, v in zip(found, values.of, strict=True)},
        "more": {m: float(_values(found, k, m).of.mean()) for m in study.metrics if m != study.metric},
        "oracle": any(one["tests"][k]["oracle"] for one in found),
        "epochs": max(one["epochs"] for one in found),
        "best_epochs": [one["best_epoch"] for one in found] if learnt else [],
        "train_seconds": float(np.mean([one["train_seconds"] for one in found])) if learnt else 0.0,
    }


def _comparison(study: Study, mine: Values, base: Values) -> dict[str, Any]:
    if not mine.alike(base):
        return {"verdict": "not judged on the same windows", "windows_apart": 0, "seeds": 0, "base_seeds": 0}
    difference = interval(mine, base)
    return {
        "difference": _plain(difference),
        "percent": 100 * difference.mean / float(base.of.mean()) if base.of.any() else None,
        "verdict": judged(difference, study.metric),
        "seeds": mine.seeds,
        "base_seeds": base.seeds,
        "windows_apart": mine.apart,
    }


def _plain(estimate: Estimate) -> dict[str, float | None]:
    bounds = {"low": estimate.low, "high": estimate.high}
    return {"mean": estimate.mean} | {k: None if np.isnan(v) else v for k, v in bounds.items()}


# Tables.


def _number(metric: str, value: float, sign: str = "") -> str:
    _, factor, digits = HEADS.get(metric, ("", 1.0, 3))
    return f"{value * factor:{sign}.{digits}f}"


def _interval(metric: str, of: dict[str, float | None], sign: str = "") -> str:
    mean, low, high = of["mean"], of["low"], of["high"]
    assert mean is not None
    if low is None or high is None:
        return f"{_number(metric, mean, sign)} (no interval)"
    return f"{_number(metric, mean, sign)} [{_number(metric, low, sign)}, {_number(metric, high, sign)}]"


def _head(metric: str) -> str:
    return HEADS.get(metric, (metric, 1.0, 3))[0]


def tables_of(document: dict[str, Any]) -> list[Table]:
    """Return the two tables of a study: the rows, and their comparisons."""
    named = ["log", "test"]  # columns that say the same everywhere stand in the caption
    same = [key for key in named if len({row[key] for row in document["rows"]}) == 1]
    named = [key for key in named if key not in same]
    where = ": " * bool(same) + ", ".join(document["rows"][0][key] for key in same)
    return [_rows(document, named, where), _comparisons(document, named, where)]


def _rows(document: dict[str, Any], named: list[str], where: str) -> Table:
    metric = document["metric"]
    others = list(dict.fromkeys(m for row in document["rows"] for m in row.get("more", ())))
    head = [*named, "seeds", "windows (apart)", _head(metric), *map(_head, others), "best epoch"]
    table = Table(["row", *head], caption=f"Rows{where}", words=range(1, 1 + len(named)))
    for row in document["rows"]:
        first = [row["row"] + ("*" if row.get("oracle") else ""), *(row[key] for key in named)]
        if not row["seeds"]:
            table.add(*first, f"0 of {row['seeds_asked']}", "", "not run")
            continue
        seeds = f"{row['seeds']} of {row['seeds_asked']}" if row["learnt"] else "–"
        more = [_number(m, row["more"][m]) for m in others]
        epochs = f"{', '.join(map(str, row['best_epochs']))} of {row['epochs']}" if row["learnt"] else "–"
        windows = f"{row['windows']} ({row['windows_apart']})"
        table.add(*first, seeds, windows, _interval(metric, row["mean"]), *more, epochs)
    return table


def _comparisons(document: dict[str, Any], named: list[str], where: str) -> Table:
    metric = document["metric"]
    head = [*named, "seeds of both", "windows apart", f"difference in {_head(metric)}", "%", "says"]
    words = (*range(1, 1 + len(named)), len(head))
    table = Table(["row − base", *head], caption=f"Comparisons{where}", words=words)
    for one in document["comparisons"]:
        first = [f"{one['row']} − {one['base']}", *(one[key] for key in named)]
        first += [f"{one['seeds']}, {one['base_seeds']}", str(one["windows_apart"])]
        if "difference" not in one:
            table.add(*first, "", "", one["verdict"])
            continue
        percent = "" if one["percent"] is None else f"{one['percent']:+.1f}"
        table.add(*first, _interval(metric, one["difference"], "+"), percent, one["verdict"])
    return table


def notes_of(document: dict[str, Any]) -> list[str]:
    """Return the sentences below the tables."""
    notes = [
        f"{document['done']} of {document['cells']} cells are done.",
        "Intervals are 95 %, by a bootstrap over seeds and windows together; a difference whose interval "
        "holds 0 is not distinguishable. Windows apart: how many share no job.",
    ]
    if any(row.get("learnt") and row["seeds"] == 1 for row in document["rows"]):
        notes.append("With one seed an interval does not hold the training's own variance.")
    if any(row.get("oracle") for row in document["rows"]):
        notes.append("* reads true run times.")
    return notes + [f"Failed: {one['cell']}: {one['error']}" for one in document["failed"]]


def write(study: Study, document: dict[str, Any], folder: Path) -> list[Path]:
    """Write `study.md`, `study.html` and `study.json`; returns the files.

    Raises:
        BridgeError: the folder cannot be written.
    """
    tables, notes = tables_of(document), notes_of(document)
    markdown = [f"# {study.title}\n", *([f"{study.says}\n"] if study.says else [])]
    markdown += [table.markdown() for table in tables if table.rows] + [f"{note}\n" for note in notes]
    page = "\n".join(
        [
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(study.title)}</title>',
            f"<style>{_STYLE}</style><h1>{escape(study.title)}</h1><p>{escape(study.says)}</p>",
            *(table.html() for table in tables if table.rows),
            *(f"<p>{escape(note)}</p>" for note in notes),
            "</html>\n",
        ]
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BridgeError(f"cannot be made ({error.strerror})", where=str(folder)) from error
    texts = {
        "study.md": "\n".join(markdown),
        "study.html": page,
        "study.json": json.dumps(document, indent=1) + "\n",
    }
    for name, text in texts.items():
        with replacing(folder / name) as out:
            out.write(text.encode())
    return [folder / name for name in texts]
