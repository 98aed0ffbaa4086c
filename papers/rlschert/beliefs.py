"""Predictions as the pool takes them, of jobs in folds: beliefs at submission and after each step; errors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from bridge.base.arrays import Floats, Ints
from bridge.base.errors import BridgeError
from bridge.pool.jobset import LONGEST_BELIEF, LONGEST_BELIEVED, STEP_SECONDS, JobSet
from bridge.prediction.predictors import History
from bridge.prediction.submissions import MICRO, Submissions
from bridge.prediction.trees import Boosting, fit


def with_beliefs(jobs: JobSet, believed: Floats, totals: Floats | None = None) -> JobSet:
    """Return the N jobs with other predictions, rounded to whole steps within the scheduler's limits.

    `believed`: [N] steps, predicted at submission. `totals`: [N, W] total steps, predicted after 0, 1, …
    steps; without it what was believed at submission is believed for ever. BridgeError: other numbers of jobs
    or steps, or a prediction that is no number.
    """
    n, width = jobs.beliefs.shape
    if totals is None:
        totals = np.repeat(np.asarray(believed, np.float64)[:, None], width, axis=1)
    if believed.shape != (n,) or totals.shape != (n, width):
        what = f"predictions of shape {believed.shape} and {totals.shape}, not {(n,)} and {(n, width)}"
        raise BridgeError(what, where=jobs.name)
    if not (np.isfinite(believed).all() and np.isfinite(totals).all()):
        raise BridgeError("a prediction is not a finite number", where=jobs.name)
    return replace(
        jobs,
        believed=np.clip(np.rint(believed), 1, LONGEST_BELIEVED).astype(np.int64),
        beliefs=np.clip(np.rint(totals), 1, LONGEST_BELIEF).astype(np.int16),
        oracle=False,
    )


def by_user(jobs: JobSet, user: Ints) -> Floats:
    """Predict every job from the last two of its user, [N], -1 = unknown: [N] steps.

    A set of jobs has no times: every job counts as submitted when all jobs before it in the set have ended.
    Of users with fewer than two jobs so far the mean of all jobs so far is believed, at first an hour.
    """
    run = jobs.length * STEP_SECONDS * MICRO
    unknown = np.full(len(jobs), -1, np.int64)
    submitted = Submissions(
        submit=np.cumsum(run) - run,
        run=run,
        request=unknown,
        wait=unknown,
        procs=jobs.units,
        user=user,
        group=unknown,
        executable=unknown,
        queue=unknown,
    )
    return History()(submitted) / (STEP_SECONDS * MICRO)


def folds(jobs: int, count: int = 5, seed: int = 0) -> list[Ints]:
    """Return `count` sorted lists of job numbers, drawn from the seed; BridgeError: too few, too many."""
    if not 2 <= count <= jobs:
        raise BridgeError(
            f"{jobs} jobs cannot be split into {count} folds", remedy="Use 2 … as many as jobs."
        )
    shuffled = np.random.default_rng(seed).permutation(jobs)
    return [np.sort(part) for part in np.array_split(shuffled, count)]


def fit_predict_others(
    features: Floats, lengths: Floats, folds: Sequence[Ints], settings: Boosting | None = None
) -> Floats:
    """Predict every job, [n], from the jobs of all other folds; each job is in exactly one of them."""
    predicted = np.empty(len(lengths))
    for fold in folds:
        others = np.setdiff1d(np.arange(len(lengths)), fold)
        predicted[fold] = fit(features[others], lengths[others], settings)(features[fold])
    return predicted


#: Parts of a run after which predictions are compared.
DECILES = 10


@dataclass(frozen=True)
class RunningAccuracy:
    """How well total lengths were predicted while jobs ran.

    Attributes:
        deciles: [10] mean absolute percentage error when 0, 10, … 90 % of a job has run, as a fraction.
        overall: the same over all steps: the mean over jobs of each job's mean.
    """

    deciles: Floats
    overall: float


def running_accuracy(
    length: npt.ArrayLike, totals: npt.ArrayLike, steps: Ints | None = None
) -> RunningAccuracy:
    """Compare predictions made while jobs ran with the truth (RLSchert, Section 4.2, Figure 6).

    At a decile counts what was believed after the last whole step that lies within that part of the run, so
    that jobs of fewer than ten steps count everywhere. `length`: [n] true lengths, steps. `totals`: [n, W]
    total lengths believed after 0, 1, … steps. `steps`: [n] how many of these were made while the job ran;
    without it, one before each step of it. BridgeError: no job, a job longer than its series, or a length
    below one step.
    """
    length, totals = np.asarray(length, np.float64), np.asarray(totals, np.float64)
    whole = np.trunc(length).astype(np.int64)
    steps = whole if steps is None else steps
    if (
        len(length) == 0
        or length.min() < 1
        or steps.min() < 1
        or max(whole.max(), steps.max()) > totals.shape[1]
    ):
        raise BridgeError("running jobs must have 1 … as many steps as their series of predictions")
    errors = np.abs(totals - length[:, None]) / length[:, None]
    after = np.arange(DECILES) * whole[:, None] // DECILES
    is_running = np.arange(totals.shape[1]) < steps[:, None]
    return RunningAccuracy(
        np.take_along_axis(errors, after, axis=1).mean(axis=0),
        float((np.where(is_running, errors, 0.0).sum(axis=1) / steps).mean()),
    )
