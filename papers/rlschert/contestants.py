"""Who plays RLSchert's test set again for what its tables do not keep: rules, and agents that learnt here."""

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from bridge.learn.checkpoint import load
from bridge.pool.evaluate import PoolEvaluation
from bridge.pool.jobset import JobSet
from bridge.pool.recipe import PoolRecipe
from bridge.pool.study_rows import played
from bridge.study.cells import Cell, load_log
from bridge.study.spec import Study
from bridge.study.store import Store
from bridge.study.windows import TestSet
from papers import store, studies
from papers.output import LineWriter

PAPER, TABLE, LOG, TEST = "rlschert", "rlschert-7", "VASP jobs", "the paper's test set"
#: Nobody reads true run times.
HONEST = "honest"
#: Whom everybody is compared with: the best that does not learn.
BASE = "SAF"
#: What is kept of an evaluation, beside who played what: (evaluation, jobs) -> columns.
Measure = Callable[[PoolEvaluation, JobSet], dict[str, Any]]


def table() -> tuple[Study, tuple[Cell, ...]]:
    return studies.table(PAPER, TABLE)


def test(name: str = TEST) -> TestSet:
    return next(test for test in table()[0].tests if test.name == name)


def jobs() -> JobSet:
    jobset: JobSet = load_log(table()[0].files[LOG])
    return jobset


def folder_of(cell: Cell) -> Path | None:
    """Return where a cell's agent is kept, if one has learnt here."""
    folder = Store(studies.CELLS).agent(cell.agent_key) if cell.agent_key else None
    return folder if folder is not None and folder.exists() else None


def players(rows: Collection[str]) -> Iterator[Cell]:
    """Yield the cells of some rows that can play without learning anything more."""
    for cell in table()[1]:
        if cell.row in rows and (cell.recipe is None or folder_of(cell) is not None):
            yield cell


def head_of(cell: Cell, test: str, *more: object) -> dict[str, Any]:
    """Return the columns that every result of a cell has; the digest is alike for all its seeds."""
    digest = store.digest(store.non_default_fields(cell.heuristic), cell.sha256, *more)
    head = {"row": cell.row, "test": test, "label": HONEST, "seed": cell.seed, "digest": digest}
    return head | {"agent": cell.agent_key}


def is_done(file: str, head: Mapping[str, Any]) -> bool:
    """Tell whether a result is there, of the very same agent."""
    rows = store.read(file)
    return bool((rows[[*head]] == pd.Series(head)).all(axis=1).any())


def judge(file: str, rows: Collection[str], measure: Measure, say: LineWriter) -> None:
    """Let everybody play the test set, unless that has been done, and keep what is measured."""
    pool_test = test()
    for cell in players(rows):
        head = head_of(cell, TEST, pool_test.as_key())
        if is_done(file, head):
            continue
        say(f"{cell.title}: {TEST}")
        folder = folder_of(cell)
        agent = load(folder, PoolRecipe) if folder else None
        evaluation = played(cell, agent, jobs(), pool_test)
        store.add(file, head | measure(evaluation, jobs()))
