"""RLSchert's Tables 5, 10 and 11 on synthetic jobs: predictors, and a pool of mixed applications."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bridge.arrays import Flags, Floats, Ints
from bridge.errors import BridgeError
from bridge.pool.synthetic import PARAMETERS, SyntheticJobs
from bridge.predict.accuracy import accuracy
from papers import store
from papers.rlschert.agents import Data, digest_of, trained
from papers.rlschert.beliefs import by_user, fit_predict_others, folds, running_accuracy, with_beliefs
from papers.rlschert.found import COMMAND
from papers.rlschert.play import Wanted, judge
from papers.rlschert.study import CLAMP, HELD_OUT, HONEST, METHODS, OBJECTIVES, TEST, PaperTable
from papers.rlschert.tables import held_out_table
from papers.say import Say

#: (predictor, when) -> what computes its predictions: [N] steps at submission, [N, W] while running.
Predictions = dict[tuple[str, str], Callable[[], Floats]]
FILE, ACCURACY = "rlschert-synthetic", "rlschert-accuracy"
#: What the paper prints of its own mix of jobs (Table 11), mean slowdown.
PRINTED = (
    "Tetris 14.42, Random 12.81, SJF 11.9, Tetris* 11.08, SAF 11.7, DeepRM 9.89, RLSchert with its kills 8.41"
)
#: The paper's mix is not public: nothing is printed for these.
TABLES = tuple(
    PaperTable(0, sample, metric, f"{title}, {sample.name}")
    for sample in (HELD_OUT, TEST)
    for metric, title in zip(OBJECTIVES, ("mean slowdown", "mean completion time in steps"), strict=True)
)
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


def users(made: SyntheticJobs) -> Ints:
    """Return the user of each job: jobs of the same habits are one user's."""
    habits = made.parameters[:, [PARAMETERS.index(name) for name in HABITS]]
    return np.asarray(np.unique(habits, axis=0, return_inverse=True)[1], np.int64).ravel()


def others(made: SyntheticJobs) -> Flags:
    """Return which jobs count as other applications: half of them (RLSchert, Section 4.5.4)."""
    n = len(made.jobs)
    return np.asarray(np.random.default_rng(n).permutation(n) < n // 2, np.bool_)


def data_of(made: SyntheticJobs) -> Data:
    """Return mixed applications: of the others nothing but the history of their users is known."""
    other, history = others(made), by_user(made.jobs, users(made))
    believed = np.where(other, history, made.jobs.believed)
    totals = np.where(other[:, None], history[:, None], made.jobs.beliefs)
    jobs = replace(with_beliefs(made.jobs, believed, totals), name=f"{made.jobs.name}-mixed")
    return Data(Path(jobs.name), digest_of(jobs), jobs, word="synthetic")


def run(wanted: Wanted, made: SyntheticJobs) -> None:
    """Measure predictors; train agents for slowdown, unless they are; let everybody play."""
    accuracies(made, wanted.say)
    data = data_of(made)
    methods = [method for method in METHODS if method in wanted.methods]
    for seed in range(1, wanted.seeds + 1):
        for label in (label for label in (HONEST, CLAMP) if label in wanted.labels):
            for method in methods:
                if method.setting:
                    pupil = wanted.pupil(method.setting, label)
                    trained(pupil, seed, data, wanted.say)
    for player in replace(wanted, objectives=("slowdown",)).players(data):
        for sample in dict.fromkeys(table.sample for table in TABLES):
            judge(FILE, player, sample, data, wanted.say)


# Predictors.


def accuracies(made: SyntheticJobs, say: Say) -> None:
    """Measure what has not been measured: errors of each predictor, in percent."""
    made_of = store.digest(digest_of(made.jobs), FOLDS, "mixed")
    kinds = {"single": ~made.multiple, "multiple": made.multiple, "all": np.ones(len(made.jobs), np.bool_)}
    kinds |= {"iterative": ~others(made), "others": others(made)}
    length = made.jobs.length
    for (name, when), predict in predictions(made).items():
        if store.has(ACCURACY, name, when, made.jobs.name, 0, made_of):
            continue
        say(f"{name}, {when}: {made.jobs.name}")
        try:
            predicted = predict()
        except BridgeError as error:  # a library is not installed
            say(f"  error: {error}")
            continue
        result = {"row": name, "test": when, "label": made.jobs.name, "seed": 0, "digest": made_of}
        for kind, k in kinds.items():
            if when == SUBMIT:
                result[kind] = 100 * accuracy(length[k], predicted[k]).mape
            else:
                found = running_accuracy(length[k], predicted[k])
                result[kind] = 100 * found.overall
                result[f"{kind}_deciles"] = 100 * found.deciles
        store.add(ACCURACY, result)


def predictions(made: SyntheticJobs, count: int = FOLDS, seed: int = 0) -> Predictions:
    """Return what computes the predictions of `PREDICTORS`, by (name, when).

    Args:
        made: jobs.
        count: of folds, which are drawn from the
        seed: of theirs.
    """
    length, parts = made.jobs.length, folds(len(made.jobs), count, seed)

    def recurrent() -> Floats:
        from papers.rlschert.predict_series import predict_others

        return predict_others(made.parameters, made.series, length, parts)

    return {
        ("history of users", SUBMIT): lambda: by_user(made.jobs, users(made)),
        ("trees", SUBMIT): lambda: fit_predict_others(made.parameters, length.astype(np.float64), parts),
        ("recurrent", RUNNING): recurrent,
        ("the generator's own", SUBMIT): lambda: made.jobs.believed.astype(np.float64),
        ("the generator's own", RUNNING): lambda: made.jobs.beliefs.astype(np.float64),
    }


# Text.


def text(data: pd.DataFrame, measured: pd.DataFrame) -> dict[str, Any]:
    """Return the section.

    Args:
        data: results of the pool.
        measured: errors of the predictors.
    """
    command = f"{COMMAND} --jobs synthetic"
    # one training serves both metrics
    renamed = data.assign(row=data["row"].str.replace("(slowdown)", "(completion)")) if len(data) else data
    return {
        "command": command,
        "folds": FOLDS,
        "table_5": _errors(measured, PREDICTORS, ("single", "multiple", "all")),
        "table_10": _errors(measured, MIXED, ("iterative", "others", "all")),
        "printed": PRINTED,
        "tables": [
            held_out_table(
                table,
                data if table.metric == "slowdown" else renamed,
                f"Synthetic jobs: {table.title}",
                command,
            )
            for table in TABLES
        ],
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
