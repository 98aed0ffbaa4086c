"""The backfill pass: every job in turn is planned against a map of time, and started if it can start now."""

from bridge.scheduler.slurm import arrays as at
from bridge.scheduler.slurm import backfill_kernels as kernels
from bridge.scheduler.slurm import pass_kernels, preemption
from bridge.scheduler.slurm import plan_kernels as plan
from bridge.scheduler.slurm.arrays import Number
from bridge.scheduler.slurm.controller import LIMIT, STARTED, Controller
from bridge.scheduler.slurm.eligible import Entry
from bridge.scheduler.slurm.jobs import PENDING, RUNNING, SlurmJob
from bridge.scheduler.slurm.license_map import LicenseMap
from bridge.scheduler.slurm.order import by_ranks
from bridge.scheduler.slurm.quick import Quick
from bridge.scheduler.slurm.site import SlurmPart

_begin, _begin_single = Quick(kernels.begin_backfill), Quick(kernels.begin_single)
_may_start, _would_start = Quick(kernels.may_start), Quick(kernels.would_start)
_go_on, _set_last = Quick(kernels.walk), Quick(kernels.set_last)
_idle_until, _end = Quick(pass_kernels.backfill_until), Quick(pass_kernels.end_backfill_now)


class BackfillWalk:
    """One walk through the queue, of `length` entries, with a map of time."""

    starts = Number(at.BF_STARTS)

    def __init__(self, slurm: Controller, now: int, length: int) -> None:
        self.slurm, self.now, self.length = slurm, now, length
        self.store, self.parameters = slurm.store, slurm.site.parameters
        self.is_over = False
        self.not_before: dict[int, int] = {}
        slurm.sort_running()
        slurm.rows.make_room()
        _begin(self.store.bundle, now, length)
        self.licenses: LicenseMap | None = None
        if self.parameters.bf_licenses:
            self.licenses = LicenseMap(slurm.site.licenses)
            for job in slurm.running.values():
                if job.state == RUNNING:
                    self._take_licenses(job, self.begin, job.end)

    @property
    def planned_at(self) -> int:
        """For when the last job was planned; -1: it was not."""
        return int(self.store.own[plan.PLANNED_AT])

    @property
    def begin(self) -> int:
        """When the map begins."""
        return int(self.store.times[0, 0])

    def _take_licenses(self, job: SlurmJob, begin: int, end: int) -> None:
        """Take the licences of a job out of the map in its time, of which one step is the least."""
        if self.licenses is not None and job.licenses:
            resolution = self.parameters.bf_resolution
            end = max(end // resolution * resolution, begin + resolution)
            self.licenses.take(begin, end, job.licenses)

    # --- plans

    def plan(self) -> None:
        """Plan all jobs in turn, and start those that can start."""
        self._set_last(0)
        self._go_on(kernels.GO_ON)

    def _set_last(self, first: int) -> None:
        _set_last(self.store.bundle, first, self.length)

    def last_that_counts(self, entries: list[Entry], first: int, n: int) -> int:
        """Return the place of the last of some jobs that may start, or whose plan is read afterwards; -1."""
        self.slurm.write_turn(entries)
        _set_last(self.store.bundle, first, n)
        return int(self.store.now[at.LAST]) - 1

    def could_start(self, job: SlurmJob, part: SlurmPart) -> bool:
        """Tell whether a job is planned to start now; nothing is reserved, and nothing counted."""
        if job.het or job.state != PENDING or not self.slurm.is_independent(job, self.now):
            return False
        own, e = self.store.own.copy(), job.entries[part.index]
        if not _may_start(self.store.bundle, e):
            return False
        self._set_begin(job, part)
        starts = bool(_would_start(self.store.bundle, e))
        self.store.own[:] = own
        return starts

    def _go_on(self, answer: int) -> bool:
        """Let the pass, or one job by itself, go on to its end; tell whether the last job started."""
        slurm, has_started = self.slurm, False
        while not self.is_over:
            came = _go_on(self.store.bundle, answer)
            slurm.see_starts()
            if came in (kernels.DONE, kernels.OVER):
                self.is_over = self.is_over or came == kernels.OVER
                break
            answer, has_started = kernels.GO_ON, False
            if came == kernels.START:
                answer, has_started = self._take_start(), True
            elif came == kernels.PREEMPT:
                result = slurm.let_give_way(self.now, "backfill")
                has_started = result == STARTED
                if has_started:
                    answer = self._take_start()
                else:
                    answer = kernels.IS_LIMITED if result == LIMIT else kernels.HAS_NOT_STARTED
            elif came == kernels.ODD:
                self.look_at_all(*slurm.entry())
            elif came == kernels.SAY_WHO:
                self._say_who(*slurm.entry())
            else:
                answer = self._plan_licenses(*slurm.entry())
        return has_started

    def _take_start(self) -> int:
        """Take note of the job that started; return what the pass is told."""
        job, _ = self.slurm.entry()
        self.slurm.sort_running()
        self._take_licenses(job, self.begin, job.end)
        return kernels.HAS_STARTED

    def _say_who(self, job: SlurmJob, part: SlurmPart) -> None:
        """Write which running jobs a job may preempt: they give way."""
        slurm, store = self.slurm, self.store
        victims = preemption.candidates(slurm.site, job, part, slurm.running.values(), self.now)
        gone = {one.run for one in victims}
        order = store.by_end[: int(store.now[at.RUNS])].tolist()
        for name, size, places in (
            ("giving", at.GIVING, [k for k, run in enumerate(order) if run in gone]),
            ("staying", at.STAYING, [k for k, run in enumerate(order) if run not in gone]),
        ):
            getattr(store, name)[: len(places)] = places
            store.now[size] = len(places)

    # --- one job by itself

    def _look_at_one(self, job: SlurmJob, part: SlurmPart) -> str:
        """Plan one job; returns `started`, `planned`, or nothing."""
        slurm, store = self.slurm, self.store
        if not _begin_single(store.bundle, job.entries[part.index]):
            return ""
        self._set_begin(job, part)
        has_started = self._go_on(kernels.GO_ON)
        if job.het and (begin := self.planned_at) >= 0:
            slurm.het_estimates.setdefault(job.het, {})[job.het_offset] = begin
        if has_started:
            return STARTED
        if store.now[at.RESULT] != kernels.IS_PLANNED:
            return ""
        self._take_licenses(job, int(store.own[plan.LOW]), int(store.own[plan.HIGH]))
        return "planned"

    def _set_begin(self, job: SlurmJob, part: SlurmPart) -> None:
        """Write from when on a job is planned whose plan has begun, and who may give way to it."""
        slurm, own = self.slurm, self.store.own
        if self.licenses is not None and job.licenses:
            limit = int(own[plan.LASTS])
            start = self.licenses.first_fit(self.not_before.get(job.key, self.now), limit, job.licenses)
            own[plan.FROM] = start
        elif job.het:
            estimates = slurm.het_estimates.get(job.het, {})
            own[plan.FROM] = max(self.now, max(estimates.values(), default=0))
        if slurm.preempts:
            self._say_who(job, part)

    def _plan_licenses(self, job: SlurmJob, part: SlurmPart) -> int:
        """Plan a job again from when on its licences are free, if they are not where it is planned."""
        assert self.licenses is not None
        own, limit = self.store.own, int(self.store.entries[job.entries[part.index], at.BF_LIMIT])
        start, end = int(own[plan.LOW]), int(own[plan.HIGH])
        later = self.licenses.first_fit(start, end - start, job.licenses)
        if later <= start:
            return kernels.RESERVES
        self.not_before[job.key] = later
        own[plan.FROM] = self.licenses.first_fit(later, limit, job.licenses)
        return kernels.AGAIN

    def look_at_all(self, head: SlurmJob, part: SlurmPart) -> None:
        """Plan a job, or the next tasks of its array, each by itself."""
        starts, store = self.starts, self.store
        store.own[plan.PLANNED_AT] = -1
        self._look_at_tasks(head, part)
        store.now[at.SINGLE], store.now[at.ENTRY] = 0, -1
        if self.starts > starts:  # fewer nodes are left
            self._set_last(int(store.now[at.AT]))

    def _look_at_tasks(self, head: SlurmJob, part: SlurmPart) -> None:
        slurm, planned = self.slurm, 0
        tasks = [head]
        if head.task >= 0:
            tasks = [one for one in slurm.by_id[head.id] if one.state == PENDING and one.key in slurm.pending]
        most = self.parameters.bf_array_resv
        for job in tasks:
            if job.state != PENDING or planned >= most or not slurm.is_independent(job, self.now):
                return
            if head.array_most:
                running = sum(one.state == RUNNING for one in slurm.by_id[head.id])
                if running + planned >= head.array_most:
                    return
            result = self._look_at_one(job, part)
            if self.is_over:
                return
            if result == STARTED:
                continue
            if result != "planned":
                return
            planned += 1


def backfill_pass(slurm: Controller, now: int) -> None:
    """Plan the queue once, and start what can start now. A pass that provably changes nothing is left out."""
    n = begin_backfill(slurm, now)
    if n is None:
        return
    BackfillWalk(slurm, now, n).plan()
    end_backfill(slurm, now)


def begin_backfill(slurm: Controller, now: int) -> int | None:
    """Return how many entries a backfill pass looks at; None: the pass provably changes nothing."""
    slurm.het_estimates.clear()
    if not slurm.pending:
        return None
    n = slurm.queue(now)
    slurm.rows.forget_left()
    if now < backfill_idle_until(slurm):
        return None
    if slurm.ranks:
        slurm.write_turn(by_ranks(slurm.entries(n), slurm.ranks))
    return n


def end_backfill(slurm: Controller, now: int) -> bool:
    """Take note of a backfill pass, and tell whether it changed nothing."""
    _start_heterogeneous(slurm, now)
    at_any_time = any(job.het for job in slurm.line.odd.values())
    return bool(_end(slurm.store.bundle, now, at_any_time))


def backfill_idle_until(slurm: Controller) -> int:
    """Return until when a backfill pass provably decides what the last one did: nothing."""
    return int(_idle_until(slurm.store.bundle))


def _start_heterogeneous(slurm: Controller, now: int) -> None:
    """Start heterogeneous jobs all of whose components could start now."""
    for het, estimates in list(slurm.het_estimates.items()):
        jobs = sorted(
            (job for job in slurm.pending.values() if job.het == het), key=lambda job: job.het_offset
        )
        if not jobs or len(estimates) < len(jobs) or max(estimates.values()) > now:
            continue
        together: list[SlurmJob] = []
        for job in jobs:
            nodes = slurm.up & ~slurm.completing_nodes
            if slurm.try_start(job, job.parts[0], nodes, now, "backfill") != STARTED:
                break
            together.append(job)
