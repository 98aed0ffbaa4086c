"""What a study has found, as plain data: rows, and their differences to their bases and the best rules."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bridge.judge.stats import ConfidenceInterval
from bridge.scheduler.names import PREFIX
from bridge.study.cells import Cell
from bridge.study.spec import Study
from bridge.study.store import Store
from bridge.study.windows import RowValues, interval, judged, spread

Document = dict[str, Any]


class StudyResults:
    """What the store has of a study's cells, by row, log and test."""

    def __init__(self, study: Study, cells: Sequence[Cell], store: Store) -> None:
        self.study = study
        self.expected_seeds: dict[tuple[str, str], int] = {}
        self.cells: dict[tuple[str, str], list[Document]] = {}
        self.failed = []
        self._failures = Counter[tuple[str, str]]()
        for cell in cells:
            name = (cell.row, cell.log)
            self.expected_seeds[name] = self.expected_seeds.get(name, 0) + 1
            if (record := store.cell(cell.key)) is not None:
                self.cells.setdefault(name, []).append(record | {"seed": cell.seed, "of": cell})
            elif error := store.failed.reason(cell.key):
                self.failed.append({"cell": cell.title, "error": error})
                self._failures[name] += 1
        self.rows = {row.name: row for row in study.rows}

    def of(self, row: str, log: str, test: str) -> list[tuple[Document, Document]]:
        """Return (cell, what its test has found) of every seed that there is."""
        return [
            (cell, test_record)
            for cell in self.cells.get((row, log), [])
            for cell_test, test_record in zip(cell["of"].tests, cell["tests"], strict=True)
            if cell_test.name == test
        ]

    def values(self, row: str, log: str, test: str) -> RowValues | None:
        """Return a row's values of the metric that rows are compared by; None if it has none."""
        records = [test_found for _, test_found in self.of(row, log, test)]
        if not records:
            return None
        of = np.array([one["values"][self.study.metric] for one in records], np.float64)
        return RowValues(of, np.array(records[0]["starts"], np.int64), int(records[0]["length"]))

    def row(self, row: str, log: str, test: str) -> Document:
        expected, learns = self.expected_seeds[row, log], bool(self.rows[row].policy)
        document: Document = {"log": log, "test": test, "row": row}
        document |= {
            "seeds_asked": expected,
            "seeds": 0,
            "learnt": learns,
            "failed": self._failures[row, log],
        }
        if test == self.study.tests_of(self.rows[row], log)[-1].name:
            document["published"] = self.rows[row].published.get(log)
        records, values = self.of(row, log, test), self.values(row, log, test)
        if values is None:
            return document
        cells, of_test = ([pair[k] for pair in records] for k in (0, 1))
        validated = all(cell["of"].recipe and cell["of"].recipe.training.validates for cell in cells)
        further = (metric for metric in self.study.metrics if metric != self.study.metric)
        return document | {
            "seeds": len(cells),
            "windows": len(values.starts),
            "windows_apart": values.n_disjoint,
            "length": values.length,
            "unit": "steps" if cells[0]["of"].file.startswith(PREFIX) else "jobs",
            "mean": _interval_fields(interval(values), values),
            "by_seed": {str(c["seed"]): float(np.mean(v)) for c, v in zip(cells, values.of, strict=True)},
            "kept": _kept(cells, values),
            "more": {metric: _mean(of_test, metric) for metric in further},
            "oracle": any(one["oracle"] for one in of_test),
            "epochs": [int(c["epochs"]) for c in cells] if learns else [],
            "best_epochs": [int(c["best_epoch"]) for c in cells] if learns and validated else [],
            "train_seconds": float(np.mean([c["train_seconds"] for c in cells])) if learns else 0.0,
        }

    def comparison(self, row: str, base: str, log: str, test: str) -> Document | None:
        """Return the difference of two rows; None where one has not been run, or by another test."""
        mine, other = self.values(row, log, test), self.values(base, log, test)
        if mine is None or other is None:
            return None
        document: Document = {"log": log, "test": test, "row": row, "base": base}
        if not mine.has_same_sequences(other) or self._jobs(row, log, test) != self._jobs(base, log, test):
            nothing = dict.fromkeys(("windows_apart", "seeds", "base_seeds"), 0)
            return document | {"verdict": "not judged on the same windows", **nothing}
        difference, mean = interval(mine, other), float(other.of.mean())
        return document | {
            "base_mean": mean,
            "difference": _interval_fields(difference, mine, other),
            "percent": 100 * difference.mean / mean if mean else None,
            "verdict": judged(difference, self.study.metric),
            "seeds": mine.seeds,
            "base_seeds": other.seeds,
            "windows_apart": mine.n_disjoint,
        }

    def _jobs(self, row: str, log: str, test: str) -> tuple[object, ...]:
        """Return how many jobs a row is judged on, and what decides which."""
        cell, record = self.of(row, log, test)[0]
        setup = getattr(cell["of"].recipe, "setup", cell["of"].setup)
        return int(record["jobs"]), *setup.selection

    def best_rule(self, row: str, log: str, test: str) -> Document | None:
        """Return the difference to the best fixed rule on the same windows with the same information."""
        oracle = any(record["oracle"] for _, record in self.of(row, log, test))
        sign = -1.0 if self.study.metric.startswith("utilisation") else 1.0
        rivals = []
        for name, other in self.rows.items():
            record = None if other.policy else self.comparison(row, name, log, test)
            if record is None or "difference" not in record:
                continue
            if oracle or not any(f["oracle"] for _, f in self.of(name, log, test)):
                rivals.append(record)
        return min(rivals, key=lambda one: sign * one["base_mean"], default=None)


def document_of(study: Study, cells: Sequence[Cell], store: Store) -> Document:
    """Return all that is known of a study, as plain data: rows and comparisons by log and test."""
    results = StudyResults(study, cells, store)
    rows, comparisons, best = [], [], []
    pairs = [
        (row, log, test.name)
        for test in study.tests
        for log in dict.fromkeys(log for _, log in results.expected_seeds)
        for row in results.rows.values()
        if (row.name, log) in results.expected_seeds
        and test.name in {t.name for t in study.tests_of(row, log)}
    ]
    for row, log, test in pairs:
        rows.append(results.row(row.name, log, test))
        bases = [one.base for one in study.compared if one.row == row.name]
        row_documents = [results.comparison(row.name, base, log, test) for base in bases]
        comparisons += [one for one in row_documents if one and ("difference" in one or study.comparisons)]
        if row.policy and (rule := results.best_rule(row.name, log, test)) is not None:
            best.append(rule)
    return {
        "title": study.title,
        "says": study.introduction,
        "details": study.details,
        "metric": study.metric,
        "cells": len(cells),
        "done": sum(map(len, results.cells.values())),
        "failed": results.failed,
        "left_out": [row for row in results.rows if row not in {name for name, _ in results.expected_seeds}],
        "rows": rows,
        "comparisons": comparisons,
        "best_rules": best,
    }


def _interval_fields(
    interval: ConfidenceInterval, mine: RowValues, base: RowValues | None = None
) -> Document:
    """Return an estimate as plain data; where it has no interval, how far the seeds' means spread."""
    seeds = mine.seeds > 1 and interval.kind is None
    return {**interval.as_dict(), **({"seeds": spread(mine, base)} if seeds else {})}


def _kept(cells: Sequence[Document], values: RowValues) -> Document | None:
    """Return what the seed has that did best in validation; None with one seed, or where that is unknown."""
    validated = [float(one) for cell in cells if (one := cell.get("validated")) is not None]
    if len(validated) < max(2, len(cells)):
        return None
    best = int(np.argmin(validated))
    mean = interval(replace(values, of=values.of[best : best + 1]))
    return {"seed": int(cells[best]["seed"]), "mean": mean.as_dict()}


def _mean(records: Sequence[Document], metric: str) -> float | None:
    means = (one["values"].get(metric, one.get("means", {}).get(metric)) for one in records)
    means_of_tests = [np.mean(values) for values in means if values is not None]
    return float(np.mean(means_of_tests)) if means_of_tests else None
