"""The main pass: the sorted walk, in which a job that does not fit closes its partition for the rest."""

from bridge.scheduler.slurm.advance import Advance
from bridge.scheduler.slurm.controller import (
    BUSY,
    FAR,
    LIMIT,
    RESERVED,
    STARTED,
    Controller,
)
from bridge.scheduler.slurm.eligible import Entry
from bridge.scheduler.slurm.jobs import PENDING, SlurmJob
from bridge.scheduler.slurm.order import priority_in
from bridge.scheduler.slurm.site import SlurmPart


class MainWalk:
    """One walk through the queue, entry by entry; `full`: to its end."""

    def __init__(self, slurm: Controller, now: int, *, full: bool) -> None:
        self.slurm, self.now, self.full = slurm, now, full
        self.depth = 0
        self.by_part: dict[int, int] = {}
        self.available = slurm.up & ~slurm.completing_nodes
        self.failed: set[int] = set()
        self.failed_reservations: set[str] = set()

    def is_closed(self, job: SlurmJob, part: SlurmPart) -> bool:
        """Tell whether an earlier job of its reservation or partition was blocked."""
        return job.reservation in self.failed_reservations or (
            part.index in self.failed and not job.reservation
        )

    def step(self, head: SlurmJob, part: SlurmPart) -> bool | None:
        """Look at a job, or the next tasks of its array; the walk is over unless it is None.

        False: the pass looks at no more jobs; True: nothing behind could start.
        """
        slurm, parameters = self.slurm, self.slurm.site.parameters
        job: SlurmJob | None = head
        if head.state != PENDING:
            job = slurm.next_task(head, self.now) if head.task >= 0 else None
        while job is not None:
            if not self.full and self.depth > parameters.queue_depth:
                return False
            self.depth += 1
            if parameters.partition_depth:
                self.by_part[part.index] = self.by_part.get(part.index, 0) + 1
                if self.by_part[part.index] > parameters.partition_depth:
                    break
            if self.is_closed(job, part):
                slurm.has_skipped = True
                break
            result = self.look_at(job, part)
            if result == "licenses" and parameters.bf_licenses:
                return True
            job = slurm.next_task(job, self.now) if result == STARTED else None
        return None

    def look_at(self, job: SlurmJob, part: SlurmPart) -> str:
        """Try to start one job; returns what came of it, or empty if it was skipped."""
        slurm, now = self.slurm, self.now
        if job.het:
            self._fail(part)
            return ""
        if reason := slurm.ledger.before(job, part):
            if slurm.site.parameters.limit_stop:
                self._fail(part)
            return reason and ""
        own = slurm.reservations.get(job.reservation) if job.reservation else None
        if own is not None and job.min_nodes > own.nodes.bit_count():
            return ""
        usable = self.available & part.mask
        if usable.bit_count() < job.min_nodes and own is None:
            self._fail(part)
            return ""
        if not slurm.has_licenses(job):
            return "licenses"
        result = slurm.try_start(job, part, self.available, now, "main")
        slurm.has_barred |= result == RESERVED
        if result == BUSY and not job.blocked_at:
            job.blocked_at = now
        if result == BUSY or (result == LIMIT and slurm.site.parameters.limit_stop):
            self._block(job, part, own)
        return result

    def _block(self, job: SlurmJob, part: SlurmPart, own: Advance | None) -> None:
        parameters = self.slurm.site.parameters
        if own is not None:
            self.failed_reservations.add(own.name)
            self.available &= ~own.nodes
        elif job.required and job.required.bit_count() >= job.min_nodes:
            self.available &= ~job.required
        else:
            least = parameters.bf_min_prio  # 0: there is none; an order's scores may be negative
            is_low = bool(least) and priority_in((job, part)) < least
            is_young = self.now - job.eligible < parameters.bf_min_age
            if not is_low and not is_young:
                self._fail(part)

    def _fail(self, part: SlurmPart) -> None:
        self.failed.add(part.index)
        self.available &= ~part.mask


def main_pass(slurm: Controller, now: int, *, full: bool) -> None:
    """Walk the queue once; `full`: to its end. A pass that provably changes nothing is left out."""
    entries = begin_main(slurm, now, full=full)
    if entries is not None:
        starts = slurm.n_starts
        end_main(slurm, now, starts, whole=_walk(slurm, entries, now, full=full) or full)


def begin_main(slurm: Controller, now: int, *, full: bool) -> list[Entry] | None:
    """Return the queue of a main pass; None: the pass provably changes nothing."""
    if now < main_idle_until(slurm, full=full):
        return None
    entries = slurm.queue(now)  # now the line is in order, so that more may be known
    if now < main_idle_until(slurm, full=full):
        return None
    slurm.has_skipped = slurm.has_barred = False
    return entries


def end_main(slurm: Controller, now: int, starts: int, *, whole: bool) -> None:
    """Take note of a main pass that started nothing since there were `starts`; `whole`: it saw all jobs."""
    if slurm.n_starts == starts:  # else the next one may find a job over a limit that blocked in this one
        until = next_change(slurm, now)
        slurm.is_passed = slurm.version, whole, until, slurm.line.changes, slurm.packed


def main_idle_until(slurm: Controller, *, full: bool) -> int:
    """Return until when main passes provably change nothing, and leave the weights as they are."""
    if not slurm.pending:
        return FAR
    version, was_whole, until, changes, packed = slurm.is_passed
    is_same = version == slurm.version and changes == slurm.line.changes and packed == slurm.packed
    return until if is_same and slurm.line.is_kept and (was_whole or not full) else 0


def next_change(slurm: Controller, now: int) -> int:
    """Return until when nothing that a pass looks at changes by the time alone; `now`: it may at any time."""
    parameters = slurm.site.parameters
    if slurm.reservations or parameters.bf_min_age or parameters.bf_min_prio or slurm.ledger.counts_minutes:
        return now
    if slurm.preempts:
        return now
    until = FAR
    for job in slurm.line.odd.values():
        if job.dependencies or job.singleton:
            return now
        for time in (job.begin, job.requeued_until):
            if time > now:
                until = min(until, time)
    return until


def _walk(slurm: Controller, entries: list[Entry], now: int, *, full: bool) -> bool:
    """MainWalk the queue; tell whether its end was reached."""
    walk = MainWalk(slurm, now, full=full)
    for head, part in entries:
        if (is_whole := walk.step(head, part)) is not None:
            return is_whole
    return True
