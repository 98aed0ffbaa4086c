"""Features of a job at its submission: what it asks for, whose it is, and how that user's ended jobs ran.

The selection follows Gaussier, Glesser, Reis & Trystram, "Improving backfilling by using machine learning to
predict running times", SC 2015, Section 4: the user's last runs say more than anything in the request.
"""

import numpy as np
import numpy.typing as npt

from bridge.predict.earlier import earlier
from bridge.predict.submissions import MICRO, Submissions

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Columns of `features`. Times in seconds; jobs are alike if user, processors and request are the same.
FEATURES = (
    "processors",
    "request",
    "time_of_day",
    "day_of_week",
    "user",
    "group",
    "executable",
    "queue",
    "user_ended",  # how many
    "user_last_run",
    "user_previous_run",
    "user_mean_run",
    "user_since_end",  # of the job that ended last
    "user_since_submission",
    "user_submissions_of_a_day",
    "alike_last_run",
    "alike_mean_run",
)
_DAY = 86_400 * MICRO


def features(s: Submissions) -> Floats:
    """Return [n, F], columns `FEATURES`, NaN = unknown; of other jobs only what had ended at submission."""
    alike = _alike(s)
    nothing = np.zeros(len(s), np.int64)
    user = earlier(s.user, s.submit, s.end, np.maximum(s.run, 0))
    same = earlier(alike, s.submit, s.end, np.maximum(s.run, 0))
    came = earlier(s.user, s.submit, s.submit, nothing, strictly=True)
    came_long_ago = earlier(s.user, s.submit, s.submit + _DAY, nothing, strictly=True)
    columns = {
        "processors": _known(s.procs),
        "request": _known(s.request) / MICRO,
        "time_of_day": s.submit % _DAY / MICRO,
        "day_of_week": (s.submit // _DAY % 7).astype(np.float64),
        "user": _known(s.user),
        "group": _known(s.group),
        "executable": _known(s.executable),
        "queue": _known(s.queue),
        "user_ended": user.count.astype(np.float64),
        "user_last_run": _at(s.run, user.last),
        "user_previous_run": _at(s.run, user.previous),
        "user_mean_run": _mean(user.total, user.count),
        "user_since_end": s.submit / MICRO - _at(s.end, user.last),
        "user_since_submission": s.submit / MICRO - _at(s.submit, came.last),
        "user_submissions_of_a_day": (came.count - came_long_ago.count).astype(np.float64),
        "alike_last_run": _at(s.run, same.last),
        "alike_mean_run": _mean(same.total, same.count),
    }
    return np.column_stack([columns[name] for name in FEATURES])


def _alike(s: Submissions) -> Ints:
    """Return numbers of the groups of jobs that are alike, -1 where the user is not known: [n]."""
    _, number = np.unique(np.column_stack((s.user, s.procs, s.request)), axis=0, return_inverse=True)
    return np.where(s.user >= 0, np.asarray(number, np.int64).ravel(), -1)


def _known(values: Ints) -> Floats:
    return np.where(values >= 0, values.astype(np.float64), np.nan)


def _at(times: Ints, job: Ints) -> Floats:
    """Return times of jobs in seconds, NaN for job -1."""
    return np.where(job >= 0, times[job] / MICRO, np.nan)


def _mean(total: Ints, count: Ints) -> Floats:
    return np.where(count > 0, total / np.maximum(count, 1) / MICRO, np.nan)
