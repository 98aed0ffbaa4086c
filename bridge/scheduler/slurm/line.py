"""The line of waiting jobs in the order of a pass, kept between passes."""

from collections.abc import Iterable, Iterator

import numpy as np

from bridge.scheduler.slurm import arrays as at
from bridge.scheduler.slurm import line_kernels as kernels
from bridge.scheduler.slurm.arrays import Number
from bridge.scheduler.slurm.eligible import partition_reason
from bridge.scheduler.slurm.jobs import PENDING, SlurmJob
from bridge.scheduler.slurm.quick import Quick
from bridge.scheduler.slurm.rows import Rows

_sort, _insert = Quick(kernels.sort_line_now), Quick(kernels.insert_in_line)
_drop, _take_turns = Quick(kernels.drop_now), Quick(kernels.take_turns_now)


def is_plain(job: SlurmJob, now: int) -> bool:
    """Tell whether from now on nothing but limits and nodes, or an event, decides when a job may start."""
    has_conditions = job.dependencies or job.singleton or job.task >= 0 or job.array_most or job.reservation
    has_conditions = has_conditions or job.het
    return bool(not has_conditions and job.eligible and job.begin <= now and job.requeued_until <= now)


class PassLine:
    """Jobs that a pass may look at, each in each of its partitions: entries, see `arrays`.

    Attributes:
        n: how many entries there are.
        odd: jobs among them that each pass has to ask whether they may start, by key.
        is_valid: 0 after an event that may change the order, who is in the line, or what jobs ask for.
        has_gone: some of the entries' jobs wait no more.
        changes: how often the entries, or their order, changed.
    """

    n, is_valid, has_gone = Number(at.N_LINE), Number(at.IS_VALID), Number(at.HAS_GONE)
    changes = Number(at.CHANGES)

    def __init__(self, rows: Rows) -> None:
        self.rows, self.store = rows, rows.store
        self.odd: dict[int, SlurmJob] = {}
        self.is_valid = 1

    def see_new_priorities(self) -> None:
        """Take note of new priorities."""
        if self.is_valid:
            _sort(self.store.bundle)

    def _entries_of(self, job: SlurmJob, now: int) -> Iterator[int]:
        """Yield a job's places in the line."""
        if not is_plain(job, now):
            self.odd[job.key] = job
        elif job.held or job.never or job.priority == 0:
            return
        for part in job.parts:
            if not partition_reason(self.rows.site, job, part):
                yield job.entries[part.index]

    def add(self, job: SlurmJob, now: int) -> None:
        """Take a job in."""
        self.changes += 1
        if self.is_valid:
            for entry in self._entries_of(job, now):
                _insert(self.store.bundle, entry)

    def refresh(self, pending: Iterable[SlurmJob], now: int) -> None:
        """Bring the line up to date."""
        if not self.is_valid:
            before = self.store.line[: self.n].copy()
            self.odd = {}
            for job in pending:
                self.rows.write(job)
            entries = [entry for job in pending for entry in self._entries_of(job, now)]
            self.n = len(entries)
            self.store.line[: self.n] = entries
            changes = self.changes
            _sort(self.store.bundle)
            self.changes = changes + (not np.array_equal(before, self.store.line[: self.n]))
            self.is_valid, self.has_gone = 1, 0
        else:
            _drop(self.store.bundle)
            self.forget_odd()

    def forget_odd(self) -> None:
        """Forget odd jobs that wait no more."""
        if self.odd:
            self.odd = {key: job for key, job in self.odd.items() if job.state == PENDING}

    def take_turns(self) -> int:
        """Write the entries at which a pass looks to `turn`; return how many there are."""
        return int(_take_turns(self.store.bundle))
