"""Features of a job at its submission: what it asks for, whose it is, and how that user's ended jobs ran.

The selection follows Gaussier, Glesser, Reis & Trystram, "Improving backfilling by using machine learning to
predict running times", SC 2015, Section 4: the user's last runs say more than anything in the request.
"""

from dataclasses import dataclass

import numpy as np

from bridge.base.arrays import Flags, Floats, Ints
from bridge.prediction.submissions import MICRO, NEVER, Submissions

#: Columns of `features`. Times in seconds; jobs are alike if user, processors and request are the same.
#: ``user_ended`` is a number of jobs, ``user_since_end`` counts from the last one's end.
FEATURES = (
    *("processors", "request", "time_of_day", "day_of_week", "user", "group", "executable", "queue"),
    *("user_ended", "user_last_run", "user_previous_run", "user_mean_run", "user_since_end"),
    *("user_since_submission", "user_submissions_of_a_day", "alike_last_run", "alike_mean_run"),
)
_DAY = 86_400 * MICRO


def features(s: Submissions) -> Floats:
    """Return [n, F], columns `FEATURES`, NaN = unknown; of other jobs only what had ended at submission.

    Behind these stand, for each further column that is known at submission, its value, and how many of the
    user's ended jobs have the same value, their last and their mean run; and for each that is known at the
    end its value of the user's last ended job, and of the last with the same request and size.
    """
    alike = _groups(s.user >= 0, s.user, s.procs, s.request)
    nothing = np.zeros(len(s), np.int64)
    user = look_back(s.user, s.submit, s.end, np.maximum(s.run, 0))
    same = look_back(alike, s.submit, s.end, np.maximum(s.run, 0))
    came = look_back(s.user, s.submit, s.submit, nothing, strictly=True)
    came_long_ago = look_back(s.user, s.submit, s.submit + _DAY, nothing, strictly=True)
    columns = {
        "processors": _nan_where_missing(s.procs),
        "request": _nan_where_missing(s.request) / MICRO,
        "time_of_day": s.submit % _DAY / MICRO,
        "day_of_week": (s.submit // _DAY % 7).astype(np.float64),
        "user": _nan_where_missing(s.user),
        "group": _nan_where_missing(s.group),
        "executable": _nan_where_missing(s.executable),
        "queue": _nan_where_missing(s.queue),
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
    columns_used = [columns[name] for name in FEATURES]
    for values in s.extra_columns.values():
        own = _groups((s.user >= 0) & (values >= 0), s.user, values)
        alone = look_back(own, s.submit, s.end, np.maximum(s.run, 0))
        mean = _mean(alone.total, alone.count)
        columns_used += [
            _nan_where_missing(values),
            alone.count.astype(np.float64),
            _at(s.run, alone.last),
            mean,
        ]
    for values in s.outcome.values():
        columns_used += [
            np.where(job >= 0, _nan_where_missing(values)[job], np.nan) for job in (user.last, same.last)
        ]
    return np.column_stack(columns_used)


def _groups(has_value: Flags, *columns: Ints) -> Ints:
    """Return numbers of groups of jobs with equal values in all columns, -1 where not `has_value`: [n]."""
    _, number = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    return np.where(has_value, np.asarray(number, np.int64).ravel(), -1)


def _nan_where_missing(values: Ints) -> Floats:
    return np.where(values >= 0, values.astype(np.float64), np.nan)


def _at(times: Ints, job: Ints) -> Floats:
    """Return times of jobs in seconds, NaN for job -1."""
    return np.where(job >= 0, times[job] / MICRO, np.nan)


def _mean(total: Ints, count: Ints) -> Floats:
    return np.where(count > 0, total / np.maximum(count, 1) / MICRO, np.nan)


@dataclass(frozen=True)
class Earlier:
    """What each of n jobs could look back on in its own group.

    Attributes:
        count: [n] events so far; 0 without a group.
        last, previous: [n] jobs of the last event and of the one before it, -1 = there was none.
        total: [n] sum of the events' amounts. Whole numbers, so that it is exact: a rounding error of a
            running sum would carry traces of what came later.
    """

    count: Ints
    last: Ints
    previous: Ints
    total: Ints


def look_back(group: Ints, queries: Ints, happened: Ints, amount: Ints, *, strictly: bool = False) -> Earlier:
    """Look back from every job at the events of its group before `queries`, [n] each.

    `group`: negative = none. `happened`: when each job's event was, NEVER = not at all. `amount`: summed.
    `strictly`: events of the same instant do not count.
    """
    n = len(group)
    counted = np.flatnonzero((group >= 0) & (happened < NEVER))
    asking = np.flatnonzero(group >= 0)
    job = np.concatenate((counted, asking))
    time = np.concatenate((happened[counted], queries[asking]))
    asks = np.repeat([False, True], [len(counted), len(asking)])
    order = np.lexsort((asks != strictly, time, group[job]))
    job, asks = job[order], asks[order]
    events = job[~asks]
    until = np.cumsum(~asks)  # events up to here, of this and all groups before
    opens = np.ones(len(job), np.bool_)
    opens[1:] = group[job][1:] != group[job][:-1]
    before = (until - ~asks)[opens][np.cumsum(opens) - 1]  # events of all groups before
    sums = np.concatenate(([0], np.cumsum(amount[events])))

    by_name = {name: np.zeros(n, np.int64) for name in ("count", "total")}
    by_name |= {name: np.full(n, -1, np.int64) for name in ("last", "previous")}
    at, until, before = job[asks], until[asks], before[asks]
    by_name["count"][at] = until - before
    by_name["total"][at] = sums[until] - sums[before]
    for name, back in (("last", 1), ("previous", 2)):
        there = until - before >= back
        by_name[name][at[there]] = events[until[there] - back]
    return Earlier(**by_name)
