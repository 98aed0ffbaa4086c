"""Jobs as a predictor meets them: what is known at submission, and when the run became known."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import pandas as pd

from bridge.base.arrays import Ints
from bridge.base.errors import BridgeError
from bridge.workload.select import Jobs
from bridge.workload.table import SWF_COLUMNS, Workload

MICRO = 1_000_000
#: When the run of a job becomes known that has none: later than any log's end.
NEVER = 1 << 61
#: Columns of a log, and those that an import adds, that are known only when a job has started or ended.
_TOLD_BY_THE_END = (
    *("wait", "run", "cpu_time", "memory", "status"),
    *("state", "exit_code", "suspended", "allocated_nodes"),
)


@dataclass(frozen=True)
class Submissions:
    """n jobs in any order. Times in microseconds; negative = unknown, except submit times.

    Attributes:
        submit, run, request, wait: [n], as logged. A run of 0 or less is unknown: the job never ran.
        procs, user, group, executable, queue: [n], as logged.
        extra_columns: further columns that are known at submission (job name, script, working directory,
            place in an array): name to [n] numbers that stand for their values, negative = unknown.
        outcome: further columns that are known when a job has ended (exit state): the same.
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
    extra_columns: Mapping[str, Ints] = field(default_factory=dict)
    outcome: Mapping[str, Ints] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.submit)

    def take(self, which: slice | Ints) -> "Submissions":
        parts: dict[str, Any] = {}
        for one in fields(self):
            values = getattr(self, one.name)
            several = isinstance(values, Mapping)
            parts[one.name] = {n: v[which] for n, v in values.items()} if several else values[which]
        return Submissions(**parts)

    @property
    def end(self) -> Ints:
        """[n] when the run became known, by the log's own wait (none logged: 0); NEVER for unknown runs."""
        return np.where(self.run > 0, self.submit + np.maximum(self.wait, 0) + self.run, NEVER)

    def training_blocks(
        self, size: Callable[[int], int], memory: int, least: int, begin: int = 0
    ) -> Iterator[tuple[Ints, Ints, int]]:
        """Yield blocks of jobs in order of submission, each with what to learn from, and jobs done.

        `size`: of the block that begins behind so many jobs. `memory`: jobs to learn from, at most: those
        that had ended last as the block's first was submitted; none while fewer than `least`. The first
        `begin` are left.
        """
        by_end = np.argsort(self.end, kind="stable")
        ends, order = self.end[by_end], np.argsort(self.submit, kind="stable")
        while begin < len(self):
            block = order[begin : begin + size(begin)]
            ended = by_end[: np.searchsorted(ends, self.submit[block[0]], side="right")]
            begin += len(block)
            yield block, ended[-memory:] if len(ended) >= least else ended[:0], begin


def of_workload(
    workload: Workload, extra_columns: Sequence[str] = (), outcome: Sequence[str] = ()
) -> Submissions:
    """Return the records of a log, in file order, every one of them.

    `extra_columns`: further columns, of text or numbers, that were known at submission; `outcome`: when a
    job had ended. BridgeError: the log has no such column, or one is called known that only the job's end
    tells.
    """
    table = workload.jobs
    if early := [name for name in extra_columns if name in _TOLD_BY_THE_END]:
        what = f"{early[0]!r} is not known when a job is submitted"
        raise BridgeError(what, where=workload.where, remedy="Name it as an outcome, of earlier jobs.")
    for name in (*extra_columns, *outcome):
        if name not in table:
            others = ", ".join(sorted({*table.columns} - {*SWF_COLUMNS})) or "none beyond the log fields"
            remedy = f"Its columns: {others}."
            raise BridgeError(f"has no column {name!r}", where=workload.where, remedy=remedy)
    requested, allocated = (_numbers(table, name) for name in ("req_procs", "procs"))
    return Submissions(
        **{name: _micro(table[name]) for name in ("submit", "run", "wait")},
        request=_micro(table["req_time"]),
        procs=np.where(requested > 0, requested, allocated),
        **{name: _numbers(table, name) for name in ("user", "group", "executable", "queue")},
        extra_columns={name: encode_categories(table[name]) for name in extra_columns},
        outcome={name: encode_categories(table[name]) for name in outcome},
    )


def encode_categories(column: "pd.Series[Any]") -> Ints:
    """Return numbers for the values of a column: [n], -1 = unknown.

    Whole numbers stand for themselves; other values are numbered as they come, so that no value's number
    tells of later jobs.
    """
    if column.dtype.kind in "iu":
        return np.asarray(column, np.int64)
    return np.asarray(pd.factorize(column, use_na_sentinel=True)[0], np.int64)


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
