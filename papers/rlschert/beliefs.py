"""Predictions as the pool takes them: a belief at submission, one after each step of the run; and folds."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bridge.errors import BridgeError
from bridge.pool.jobset import LONGEST_BELIEF, LONGEST_BELIEVED, STEP_SECONDS, JobSet
from bridge.predict.predictors import History
from bridge.predict.submissions import MICRO, Submissions

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def with_beliefs(jobs: JobSet, believed: Floats, totals: Floats | None = None) -> JobSet:
    """Return the same jobs with other predictions, rounded to whole steps within the scheduler's limits.

    Args:
        jobs: N jobs.
        believed: [N] steps, predicted at submission.
        totals: [N, W] total steps, predicted after 0, 1, … steps; without it what was believed at submission
            is believed for ever.

    Raises:
        BridgeError: other numbers of jobs or steps, or a prediction that is no number.
    """
    n, width = jobs.beliefs.shape
    if totals is None:
        totals = np.repeat(np.asarray(believed, np.float64)[:, None], width, axis=1)
    if believed.shape != (n,) or totals.shape != (n, width):
        raise BridgeError(
            f"predictions of shape {believed.shape} and {totals.shape}, not {(n,)} and {(n, width)}",
            where=jobs.name,
        )
    if not (np.isfinite(believed).all() and np.isfinite(totals).all()):
        raise BridgeError("a prediction is not a finite number", where=jobs.name)
    return replace(
        jobs,
        believed=np.clip(np.rint(believed), 1, LONGEST_BELIEVED).astype(np.int64),
        beliefs=np.clip(np.rint(totals), 1, LONGEST_BELIEF).astype(np.int16),
        oracle=False,
    )


def by_user(jobs: JobSet, user: Ints) -> Floats:
    """Predict every job from the last two of its user: [N] steps.

    A set of jobs has no times: every job counts as submitted when all jobs before it in the set have ended.
    Of users with fewer than two jobs so far the mean of all jobs so far is believed, at first an hour.

    Args:
        jobs: N jobs.
        user: [N] numbers of users, -1 = unknown.
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
    """Return `count` sorted lists of job numbers; each of ``0 … jobs - 1`` is in one, drawn from the seed.

    Raises:
        BridgeError: fewer than two folds, or more folds than jobs.
    """
    if not 2 <= count <= jobs:
        raise BridgeError(
            f"{jobs} jobs cannot be split into {count} folds", remedy="Use 2 … as many as jobs."
        )
    drawn = np.random.default_rng(seed).permutation(jobs)
    return [np.sort(part) for part in np.array_split(drawn, count)]
