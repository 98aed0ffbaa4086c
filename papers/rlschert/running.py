"""RLSchert's Figure 6: how wrong predictions of running jobs are, by how much of a job has run."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bridge.pool.jobset import JobSet
from bridge.pool.study_rows import digest_of
from papers import store
from papers.output import LineWriter
from papers.rlschert.beliefs import running_accuracy
from papers.rlschert.synthetic import ACCURACY, RUNNING

SHIPPED = "the authors', of logged jobs"
#: Kinds of jobs, and the paper's error near their end, % (Section 4.2).
KINDS = {"single": ("single ionic step", "3.55"), "multiple": ("several", "17.9"), "all": ("all", "–")}


def run(jobs: JobSet, say: LineWriter) -> None:
    """Measure the predictions that came with the logged jobs, unless that was done."""
    made_of = store.digest(digest_of(jobs), "shipped")
    if store.has(ACCURACY, SHIPPED, RUNNING, "logged", 0, made_of):
        return
    say(f"{SHIPPED}, {RUNNING}")
    accuracy = running_accuracy(jobs.length, jobs.beliefs)
    result = {"row": SHIPPED, "test": RUNNING, "label": "logged", "seed": 0, "digest": made_of}
    store.add(ACCURACY, result | {"all": 100 * accuracy.overall, "all_deciles": 100 * accuracy.deciles})


def lines(measured: pd.DataFrame) -> Iterator[tuple[str, str, npt.NDArray[np.float64]]]:
    """Yield (predictor, kind of jobs, [10] errors in % when 0, 10, … 90 % of a job has run)."""
    for _, one in measured[measured["test"] == RUNNING].iterrows() if len(measured) else ():
        for kind in KINDS:
            deciles = one.get(f"{kind}_deciles")
            if isinstance(deciles, np.ndarray):
                yield one["row"], kind, deciles


def rows(measured: pd.DataFrame) -> list[list[Any]]:
    """Return the rows of the table: predictor, jobs, the paper's error at the end, ten of ours."""
    return [[name, *KINDS[kind], *(f"{v:.1f}" for v in errors)] for name, kind, errors in lines(measured)]
