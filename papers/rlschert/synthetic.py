"""RLSchert's Tables 5 and 10 on synthetic jobs: predictors; and the mixed applications of Table 11."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bridge.base.arrays import Flags, Floats, Ints
from bridge.base.errors import BridgeError
from bridge.pool.jobset import JobSet, write_vasp
from bridge.pool.study_rows import digest_of
from bridge.pool.synthetic import PARAMETERS, SyntheticJobs, synthetic
from bridge.prediction.accuracy import accuracy
from papers import store
from papers.output import LineWriter
from papers.rlschert.beliefs import by_user, fit_predict_others, folds, running_accuracy, with_beliefs

#: (predictor, when) -> what computes its predictions: [N] steps at submission, [N, W] while running.
Predictions = dict[tuple[str, str], Callable[[], Floats]]
ACCURACY = "rlschert-accuracy"
#: What Table 11's agents learn from: its study reads it.
MIXED_JOBS = store.WORK / "workloads" / "vasp-mixed.csv.gz"
#: Jobs that agree in these make a user of the synthetic jobs, who has habits, as users have.
HABITS = ("algorithm", "cutoff_ev", "spin")
#: Errors are of predictions from so many folds.
FOLDS = 5
SUBMIT, RUNNING = "at submission", "while running"
#: Table 10, %: iterative jobs, others, all; the paper's of its VASP jobs and its others.
MIXED = (
    ("history of users", SUBMIT, ("101.5", "121.2", "110.8")),
    ("trees", SUBMIT, ("39.8", "–", "39.8")),
    ("recurrent", RUNNING, ("10.3", "–", "10.3")),
)
#: Table 5, and its numbers in the paper, of logged jobs, %: single ionic step, several, all.
PREDICTORS = (
    ("history of users", SUBMIT, ("–", "–", "–")),
    ("trees", SUBMIT, ("29.9", "67.3", "39.8")),
    ("recurrent", RUNNING, ("4.9", "25.4", "10.3")),
    ("the generator's own", SUBMIT, ("–", "–", "–")),
    ("the generator's own", RUNNING, ("–", "–", "–")),
)


def users(generated: SyntheticJobs) -> Ints:
    habits = generated.parameters[:, [PARAMETERS.index(name) for name in HABITS]]
    return np.asarray(np.unique(habits, axis=0, return_inverse=True)[1], np.int64).ravel()


def others(generated: SyntheticJobs) -> Flags:
    """Return which jobs count as other applications: half of them (RLSchert, Section 4.5.4)."""
    n = len(generated.jobs)
    return np.asarray(np.random.default_rng(n).permutation(n) < n // 2, np.bool_)


def mixed(generated: SyntheticJobs) -> JobSet:
    """Return mixed applications: of the others nothing but the history of their users is known."""
    other, history = others(generated), by_user(generated.jobs, users(generated))
    believed = np.where(other, history, generated.jobs.believed)
    totals = np.where(other[:, None], history[:, None], generated.jobs.beliefs)
    return replace(with_beliefs(generated.jobs, believed, totals), name=f"{generated.jobs.name}-mixed")


def write_mixed() -> Path:
    """Write the mixed applications of the synthetic jobs, seed 0, where the study looks for them."""
    if not MIXED_JOBS.exists():
        write_vasp(MIXED_JOBS, mixed(synthetic()))
    return MIXED_JOBS


# Predictors.


def accuracies(generated: SyntheticJobs, say: LineWriter) -> None:
    """Measure what has not been measured: errors of each predictor, in percent."""
    made_of = store.digest(digest_of(generated.jobs), FOLDS, "mixed")
    kinds = {
        "single": ~generated.multiple,
        "multiple": generated.multiple,
        "all": np.ones(len(generated.jobs), np.bool_),
    }
    kinds |= {"iterative": ~others(generated), "others": others(generated)}
    length = generated.jobs.length
    for (name, when), predict in predictions(generated).items():
        if store.has(ACCURACY, name, when, generated.jobs.name, 0, made_of):
            continue
        say(f"{name}, {when}: {generated.jobs.name}")
        try:
            predicted = predict()
        except BridgeError as error:  # a library is not installed
            say(f"  error: {error}")
            continue
        result = {"row": name, "test": when, "label": generated.jobs.name, "seed": 0, "digest": made_of}
        for kind, k in kinds.items():
            if when == SUBMIT:
                result[kind] = 100 * accuracy(length[k], predicted[k]).mape
            else:
                accuracy_result = running_accuracy(length[k], predicted[k])
                result[kind] = 100 * accuracy_result.overall
                result[f"{kind}_deciles"] = 100 * accuracy_result.deciles
        store.add(ACCURACY, result)


def predictions(generated: SyntheticJobs, count: int = FOLDS, seed: int = 0) -> Predictions:
    """Return what computes predictions of `PREDICTORS`, by (name, when); folds are drawn from the seed."""
    length, parts = generated.jobs.length, folds(len(generated.jobs), count, seed)

    def recurrent() -> Floats:
        from bridge.prediction.series_network import predict_others

        return predict_others(generated.parameters, generated.series, length, parts)

    return {
        ("history of users", SUBMIT): lambda: by_user(generated.jobs, users(generated)),
        ("trees", SUBMIT): lambda: fit_predict_others(generated.parameters, length.astype(np.float64), parts),
        ("recurrent", RUNNING): recurrent,
        ("the generator's own", SUBMIT): lambda: generated.jobs.believed.astype(np.float64),
        ("the generator's own", RUNNING): lambda: generated.jobs.beliefs.astype(np.float64),
    }


# Text.


def text(measured: pd.DataFrame) -> dict[str, Any]:
    """Return Tables 5 and 10 from the errors of the predictors."""
    return {
        "folds": FOLDS,
        "table_5": _errors(measured, PREDICTORS, ("single", "multiple", "all")),
        "table_10": _errors(measured, MIXED, ("iterative", "others", "all")),
    }


def _errors(
    measured: pd.DataFrame, predictors: Iterable[tuple[str, str, tuple[str, ...]]], kinds: tuple[str, ...]
) -> list[list[str]]:
    """Return printed and measured errors, a pair of columns for each kind of jobs."""
    rows = []
    for name, when, paper in predictors:
        mine = measured[(measured["row"] == name) & (measured["test"] == when)] if len(measured) else measured
        ours = [f"{mine[kind].iloc[0]:.1f}" for kind in kinds] if len(mine) else ["not run"] * len(kinds)
        rows.append([f"{name}, {when}", *(x for pair in zip(paper, ours, strict=True) for x in pair)])
    return rows
