"""Jobs as a predictor meets them: what is known at submission, and when the run became known."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from bridge.workload.select import Jobs
from bridge.workload.table import Workload

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

MICRO = 1_000_000
#: When the run of a job becomes known that has none: later than any log's end.
NEVER = 1 << 61


@dataclass(frozen=True)
class Submissions:
    """n jobs in any order. Times in microseconds; negative = unknown, except submit times.

    Attributes:
        submit, run, request, wait: [n], as logged. A run of 0 or less is unknown: the job never ran.
        procs, user, group, executable, queue: [n], as logged.
    """

    submit: Ints
    run: Ints
    request: Ints
    wait: Ints
    procs: Ints
    user: Ints
    group: Ints
    executable: Ints
    queue: Ints

    def __len__(self) -> int:
        return len(self.submit)

    @property
    def end(self) -> Ints:
        """[n] when the run became known, by the log's own wait (none logged: 0); NEVER for unknown runs."""
        return np.where(self.run > 0, self.submit + np.maximum(self.wait, 0) + self.run, NEVER)


def of_workload(workload: Workload) -> Submissions:
    """Return the records of a log, in file order, every one of them."""
    table = workload.jobs
    requested, allocated = (_numbers(table, name) for name in ("req_procs", "procs"))
    return Submissions(
        **{name: _micro(table[name]) for name in ("submit", "run", "wait")},
        request=_micro(table["req_time"]),
        procs=np.where(requested > 0, requested, allocated),
        **{name: _numbers(table, name) for name in ("user", "group", "executable", "queue")},
    )


def of_jobs(jobs: Jobs) -> Submissions:
    """Return selected jobs, whose groups and executables are not known."""
    unknown = np.full(len(jobs), -1, np.int64)
    return Submissions(
        submit=jobs.submit,
        run=jobs.run,
        request=jobs.request,
        wait=jobs.logged_wait,
        procs=jobs.demand[:, 0],
        user=jobs.user,
        group=unknown,
        executable=unknown,
        queue=jobs.queue,
    )


def _micro(column: "pd.Series[float]") -> Ints:
    return np.asarray(np.rint(column.to_numpy(np.float64) * MICRO), np.int64)


def _numbers(table: pd.DataFrame, name: str) -> Ints:
    return np.asarray(table[name], np.int64)
