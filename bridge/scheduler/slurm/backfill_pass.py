"""The backfill pass: every job in turn is planned against a map of time, and started if it can start now."""

import functools

import numpy as np

from bridge.base.arrays import Ints
from bridge.scheduler.slurm import plan_kernels as kernels
from bridge.scheduler.slurm import preemption
from bridge.scheduler.slurm.choice import chosen_of, is_exclusive, need_of
from bridge.scheduler.slurm.controller import FAR, LIMIT, STARTED, Controller, IdlePass
from bridge.scheduler.slurm.eligible import Entry
from bridge.scheduler.slurm.jobs import PENDING, RUNNING, SlurmJob
from bridge.scheduler.slurm.license_map import LicenseMap
from bridge.scheduler.slurm.limits import job_limit
from bridge.scheduler.slurm.main_pass import next_change
from bridge.scheduler.slurm.node_words import mask_of_words, words_of
from bridge.scheduler.slurm.order import by_ranks, priority_in
from bridge.scheduler.slurm.quick import Quick
from bridge.scheduler.slurm.site import Site, SlurmPart
from bridge.scheduler.slurm.time_map import TimeMap

#: So many jobs are planned by one call of the kernel.
_TOGETHER = 64
_plan_jobs = Quick(kernels.plan_jobs)


def _end_of(job: SlurmJob) -> int:
    return job.end


class BackfillWalk:
    """One walk through the queue, with a map of time."""

    def __init__(self, slurm: Controller, now: int) -> None:
        self.slurm, self.now = slurm, now
        site = slurm.site
        parameters = self.parameters = site.parameters
        self.map = TimeMap(now, parameters.bf_window, parameters.bf_resolution, site.all_nodes, site.n_words)
        self.starts = 0
        self.is_over = False
        self.counts: dict[tuple[str, object], int] = {}
        self.reserved_in: dict[int, int] = {}
        self.not_before: dict[int, int] = {}
        size = parameters.bf_map_size
        late = site.settings.kill_wait + site.settings.over_time
        self.of_pass = np.array(
            (now, parameters.bf_window, parameters.bf_resolution, size, parameters.bf_max_test,
             parameters.bf_window_scale, late),
            np.int64,
        )  # fmt: skip
        self.own = np.zeros(kernels.OWN_SIZE, np.int64)
        self.own[kernels.HORIZON] = FAR
        self.nodes, self.chosen = np.zeros(site.n_words, np.int64), np.zeros(site.n_words, np.int64)
        self.completing = words_of(slurm.completing_nodes, site.n_words)
        self.booked = self._booked(None) if slurm.reservations else _nothing_booked(site.n_words)
        counts = parameters.bf_max_user or parameters.bf_max_part or parameters.bf_max_assoc
        alone = counts or parameters.bf_max_user_part or slurm.preempts
        self.together = 1 if alone else _TOGETHER
        self.words: dict[int, Ints] = {}
        self.running: list[SlurmJob] = []
        self._table: kernels.Running | None = None
        if parameters.bf_running_reserve or slurm.preempts:
            self._sort_running()
        if parameters.bf_running_reserve:
            for job in self.running:
                if job.whole:
                    self._occupy(job)
        self.licenses: LicenseMap | None = None
        if parameters.bf_licenses:
            self.licenses = LicenseMap(site.licenses)
            for job in self.running:
                self._take_licenses(job, self.map.begin, job.end)

    def _occupy(self, job: SlurmJob) -> None:
        """Take the nodes of a running job out of the map until its limit."""
        begin, resolution = self.map.begin, self.parameters.bf_resolution
        self.map.reserve(begin, max(job.end // resolution * resolution, begin + resolution), job.nodes)

    def _take_licenses(self, job: SlurmJob, begin: int, end: int) -> None:
        """Take the licences of a job out of the map in its time, of which one step is the least."""
        if self.licenses is not None and job.licenses:
            resolution = self.parameters.bf_resolution
            end = max(end // resolution * resolution, begin + resolution)
            self.licenses.take(begin, end, job.licenses)

    @property
    def table(self) -> kernels.Running:
        """Running jobs as a forecast reads them, of the begin of the pass or of its last start."""
        if self._table is None:
            self._sort_running()
        assert self._table is not None
        return self._table

    def _sort_running(self) -> None:
        site = self.slurm.site
        jobs = [job for job in self.slurm.running.values() if job.state == RUNNING]
        jobs.sort(key=_end_of)
        self.running = jobs
        count, size, behind = len(jobs), 4 * site.n_words, 0
        rows, first = [], [0]
        for job in jobs:
            rows.append(job.rows)
            behind += len(job.rows)
            first.append(behind)
        gres = np.zeros((count, len(site.gres)), np.int64)
        if site.gres:
            for r, job in enumerate(jobs):
                if job.gres:
                    gres[r] = job.gres_row
        nodes = b"".join([job.nodes.to_bytes(size, "little") for job in jobs])
        self._table = kernels.Running(
            np.array([job.end for job in jobs], np.int64),
            np.frombuffer(nodes, "<u4").astype(np.int64).reshape(count, site.n_words),
            np.array(first, np.int64),
            np.concatenate(rows) if rows else np.zeros((0, 3), np.int64),
            gres,
            np.arange(count),
            np.zeros(0, np.int64),
        )

    def _booked(self, job: SlurmJob | None) -> kernels.Booked:
        """Return the reservations that take nodes from a job; None: from one that has none of its own."""
        slurm = self.slurm
        own = slurm.reservations.get(job.reservation) if job is not None and job.reservation else None
        others = [
            one
            for one in slurm.reservations.values()
            if one is not own and not (own is not None and own.maint and one.maint)
        ]
        n_words = slurm.site.n_words
        words = [words_of(one.nodes, n_words) for one in others]
        return kernels.Booked(
            np.array([(one.start, one.end) for one in others], np.int64).reshape(-1, 2),
            np.array(words, np.int64).reshape(-1, n_words),
            np.array([one.end for one in slurm.reservations.values()], np.int64),
        )

    # --- plans

    def is_skipped(self, job: SlurmJob, part: SlurmPart) -> bool:
        """Tell whether a job is not planned, for a limit, the pass' own limits, or a licence."""
        slurm = self.slurm
        if slurm.ledger.before(job, part) or not self._counts_in(job, part):
            return True
        return bool(job.licenses) and not slurm.has_licenses(job) and not self.parameters.bf_licenses

    def look_at(self, job: SlurmJob, part: SlurmPart) -> str:
        """Plan one job; returns `started`, or what else came of it."""
        if self.is_skipped(job, part):
            return "skipped"
        return self.plan([(job, part)])[1]

    def plan(self, entries: list[Entry]) -> tuple[int, str]:
        """Plan jobs in turn, up to one that starts; return how many, and what came of the last one."""
        own, requests = self.own, self._requests(entries)
        last = len(entries) - 1
        own[kernels.WHICH] = own[kernels.RESUMES] = first = 0
        table, booked = self._who_runs(*entries[0]), self._booked_for(entries[0][0])
        result = "none"
        while first <= last:
            self.map.make_room(len(entries) - first)
            came = self._plan_on(requests, table, booked)
            here = int(own[kernels.WHICH])
            for k in range(first, min(here, last) + 1):
                self._note_plan(entries[k][0], int(requests.totals[k]))
            first = here
            if here > last:  # all are planned, the last one without a word
                return len(entries), result
            job, part = entries[here]
            if came == kernels.START:
                result = "none" if job.het else self._start(job, part, mask_of_words(self.nodes))
                if result in (STARTED, LIMIT):
                    return here + 1, result
                own[kernels.RESUMES], result = 1, "none"
                continue
            if came != kernels.RESERVE:
                self.is_over = True
                return here + 1, "over"
            low, high = int(own[kernels.LOW]), int(own[kernels.HIGH])
            result = self._reserve(job, part, low, high, mask_of_words(self.chosen))
            own[kernels.WHICH], own[kernels.RESUMES] = here + 1, 0
            first = here + 1
        return len(entries), result

    def _plan_on(self, requests: kernels.Requests, table: kernels.Running, booked: kernels.Booked) -> int:
        """Plan on until a start, or a plan to be asked about; see `plan_kernels.plan_jobs`."""
        slurm, plan = self.slurm, self.map
        return int(
            _plan_jobs(
                self.of_pass, self.own, plan.times, plan.free, plan.sizes, slurm.usage.book,
                slurm.future, slurm.site.table, slurm.weights, requests, self.completing, table, booked,
                self.nodes, self.chosen, *slurm.site.scratch,
            )
        )  # fmt: skip

    def could_start(self, job: SlurmJob, part: SlurmPart) -> bool:
        """Tell whether a job is planned to start now; nothing is reserved, and nothing counted."""
        slurm = self.slurm
        if job.het or job.state != PENDING or not slurm.is_independent(job, self.now):
            return False
        free = slurm.usage.idle if is_exclusive(job, part.about.exclusive) else slurm.usage.not_full
        up = slurm.up & ~slurm.completing_nodes & part.mask
        if job.min_nodes > (free & up).bit_count() or slurm.ledger.before(job, part):
            return False
        if job.licenses and not slurm.has_licenses(job):
            return False
        requests, own = self._requests([(job, part)]), self.own.copy()
        requests.stops[:] = 1
        self.own[kernels.WHICH] = self.own[kernels.RESUMES] = 0
        self.map.make_room(1)
        came = self._plan_on(requests, self._who_runs(job, part), self._booked_for(job))
        self.own[:] = own
        return came == kernels.START

    def _note_plan(self, job: SlurmJob, total: int) -> None:
        """Take note of the CPUs of a job's plan, and when a component of others would start."""
        slurm = self.slurm
        if total and total != job.planned:
            job.planned = total
            slurm.version += 1
        if job.het and (begin := int(self.own[kernels.PLANNED_AT])) >= 0:
            slurm.het_estimates.setdefault(job.het, {})[job.het_offset] = begin

    def _requests(self, entries: list[Entry]) -> kernels.Requests:
        """Return what jobs ask for."""
        n, site, slurm = len(entries), self.slurm.site, self.slurm
        requests = kernels.Requests(
            np.empty((n, 12 + len(site.gres)), np.int64),
            np.array([self._times(job, part) for job, part in entries], np.int64),
            np.empty((n, site.n_words), np.int64),
            np.empty((n, site.n_words), np.int64),
            np.zeros(n + 1, np.int64),
            np.empty((0, site.n_words), np.int64),
            np.array([self._is_asked_before_reserving(job, part) for job, part in entries], np.int64),
            np.zeros(n, np.int64),
        )
        sets = []
        for k, (job, part) in enumerate(entries):
            if job.sets is None:
                job.sets = _sets_of(site, job)
            nodes = part.mask & slurm.up & ~job.excluded
            own = slurm.reservations.get(job.reservation) if job.reservation else None
            if own is not None and not own.flex:
                nodes &= own.nodes
            if nodes not in self.words:
                self.words[nodes] = words_of(nodes, site.n_words)
            requests.needs[k] = need_of(site, job, part.index, is_exclusive(job, part.about.exclusive))
            requests.base[k], requests.required[k] = self.words[nodes], job.sets[1]
            requests.first[k + 1] = requests.first[k] + len(job.sets[0])
            sets.append(job.sets[0])
        return requests._replace(sets=np.concatenate(sets))

    def _times(self, job: SlurmJob, part: SlurmPart) -> tuple[int, int]:
        """Return from when on a job is planned, and for how long."""
        site, limit = self.slurm.site, job_limit(job, part)
        if job.min_limit:
            limit = min(limit, job.min_limit)
        if self.slurm.preempts and site.qos[job.qos].no_reserve:
            limit = min(limit, 60)
        if self.licenses is not None and job.licenses:
            return self.licenses.first_fit(self.not_before.get(job.key, self.now), limit, job.licenses), limit
        if not job.het:
            return self.now, limit
        return max(self.now, max(self.slurm.het_estimates.get(job.het, {}).values(), default=0)), limit

    def _is_asked_before_reserving(self, job: SlurmJob, part: SlurmPart) -> bool:
        """Tell whether a rule besides the plan says if a job's plan is reserved."""
        parameters, slurm = self.parameters, self.slurm
        is_bound = parameters.bf_part_reserve or parameters.bf_min_prio or parameters.bf_min_age
        its = slurm.ledger.class_of(job, part)
        plans_licenses = self.licenses is not None and bool(job.licenses)
        return bool(
            plans_licenses or is_bound or job.task >= 0 or its.has_after or slurm.site.qos[job.qos].no_reserve
        )

    def _booked_for(self, job: SlurmJob) -> kernels.Booked:
        return self._booked(job) if job.reservation else self.booked

    def _who_runs(self, job: SlurmJob, part: SlurmPart) -> kernels.Running:
        """Return the running jobs; those that a job may preempt give way."""
        victims = preemption.candidates(self.slurm.site, job, part, self.slurm.running.values(), self.now)
        if not victims:
            return self.table
        gone = {id(one) for one in victims}
        which = np.array([id(one) in gone for one in self.running], np.bool_)
        return self.table._replace(left=np.flatnonzero(~which), victims=np.flatnonzero(which))

    def _counts_in(self, job: SlurmJob, part: SlurmPart) -> bool:
        """Count a job in its user, partition and association; False if one had enough in this pass."""
        parameters = self.parameters
        for key, most in (
            (("user", job.user), parameters.bf_max_user),
            (("part", part.index), parameters.bf_max_part),
            (("assoc", job.assoc), parameters.bf_max_assoc),
            (("both", (job.user, part.index)), parameters.bf_max_user_part),
        ):
            if most:
                if self.counts.get(key, 0) >= most:
                    return False
                self.counts[key] = self.counts.get(key, 0) + 1
        return True

    def _start(self, job: SlurmJob, part: SlurmPart, nodes: int) -> str:
        slurm = self.slurm
        result = slurm.try_start(job, part, nodes & ~slurm.completing_nodes, self.now, "backfill")
        if result == STARTED:
            self.starts += 1
            self._table = None
            if slurm.preempts:
                self._sort_running()
            if job.whole:
                self._occupy(job)
            self._take_licenses(job, self.map.begin, job.end)
            if self.parameters.bf_max_start and self.starts >= self.parameters.bf_max_start:
                self.is_over = True
        return result

    def _reserve(self, job: SlurmJob, part: SlurmPart, start: int, end: int, nodes: int) -> str:
        slurm, parameters = self.slurm, self.parameters
        if self.licenses is not None and job.licenses:
            later = self.licenses.first_fit(start, end - start, job.licenses)
            if later > start:
                self.not_before[job.key] = later
                return self.plan([(job, part)])[1]
        if slurm.ledger.class_of(job, part).has_after:
            tres = slurm.tres_of(job, part, chosen_of(slurm.site.scratch[0][2]))
            if slurm.ledger.after(job, part, tres, nodes):
                return "limit"
        if slurm.site.qos[job.qos].no_reserve:
            return "unreserved"
        if parameters.bf_part_reserve:
            if self.reserved_in.get(part.index, 0) >= parameters.bf_part_reserve:
                return "unreserved"
            self.reserved_in[part.index] = self.reserved_in.get(part.index, 0) + 1
        if parameters.bf_min_prio and priority_in((job, part)) < parameters.bf_min_prio:
            return "unreserved"
        if parameters.bf_min_age and self.now - job.eligible < parameters.bf_min_age:
            return "unreserved"
        self.map.reserve(start, end, nodes)
        self._take_licenses(job, start, end)
        return "planned"


@functools.cache
def _nothing_booked(n_words: int) -> kernels.Booked:
    return kernels.Booked(np.zeros((0, 2), np.int64), np.zeros((0, n_words), np.int64), np.zeros(0, np.int64))


def _sets_of(site: Site, job: SlurmJob) -> tuple[Ints, Ints]:
    """Return the words of the sets of nodes of which a job takes one, and of those that it must have."""
    alternatives = [(one,) for one in job.features] if job.one_feature else [job.features]
    words = [words_of(site.with_features(one), site.n_words) for one in alternatives]
    if any(kind not in site.gres for kind in job.gres):
        words = []
    return np.array(words, np.int64).reshape(-1, site.n_words), words_of(job.required, site.n_words)


def backfill_pass(slurm: Controller, now: int) -> None:
    """Plan the queue once, and start what can start now. A pass that provably changes nothing is left out."""
    entries = begin_backfill(slurm, now)
    if entries is None:
        return
    before, horizon = state_of(slurm), FAR
    n = last_that_counts(slurm, entries, 0, len(entries)) + 1
    if n:
        walk = BackfillWalk(slurm, now)
        at = starts = 0
        while at < n and not walk.is_over:
            at = _look_at_some(walk, entries, at, n)
            if walk.starts > starts:  # fewer nodes are left
                starts, n = walk.starts, last_that_counts(slurm, entries, at, n) + 1
        horizon = int(walk.own[kernels.HORIZON])
    end_backfill(slurm, now, before, horizon)


def begin_backfill(slurm: Controller, now: int) -> list[Entry] | None:
    """Return the queue of a backfill pass; None: the pass provably changes nothing."""
    slurm.het_estimates.clear()
    if not slurm.pending:
        return None
    entries = slurm.queue(now)
    if now < backfill_idle_until(slurm):
        return None
    return by_ranks(entries, slurm.ranks) if slurm.ranks else entries


def state_of(slurm: Controller) -> tuple[int, int, int | None]:
    """Return what changes if a backfill pass starts a job, plans one otherwise, or leaves other weights."""
    return slurm.n_starts, slurm.version, slurm.packed


def end_backfill(slurm: Controller, now: int, before: tuple[int, int, int | None], horizon: int) -> None:
    """Take note of a backfill pass that changed nothing of the state `before` it."""
    _start_heterogeneous(slurm, now)
    if state_of(slurm) == before:
        until = min(horizon, _next_change(slurm, now))
        slurm.is_planned = IdlePass(slurm.version, slurm.packed, slurm.line.changes, until)


def backfill_idle_until(slurm: Controller) -> int:
    """Return until when a backfill pass provably decides what the last one did: nothing."""
    if not slurm.pending:
        return FAR
    version, packed, changes, until = slurm.is_planned
    is_same = version == slurm.version and packed == slurm.packed and slurm.line.is_kept
    return until if is_same and changes == slurm.line.changes else 0


def _next_change(slurm: Controller, now: int) -> int:
    """Return until when nothing but the forecast changes by the time alone; `now`: it may at any time."""
    if slurm.site.parameters.bf_running_reserve or any(job.het for job in slurm.pending.values()):
        return now
    return next_change(slurm, now)


def last_that_counts(slurm: Controller, entries: list[Entry], first: int, n: int) -> int:
    """Return the place of the last of some jobs that a pass may start, or whose plan is read afterwards.

    Those behind it would only be planned, and the map of time is gone after the pass. -1: there is none.
    """
    site = slurm.site
    if slurm.preempts:
        return n - 1
    up, sizes_count = slurm.up & ~slurm.completing_nodes, bool(site.cluster.priority.job_size)
    idle, free = slurm.usage.idle & up, slurm.usage.not_full & up
    for k in range(n - 1, first - 1, -1):
        job, part = entries[k]
        if job.task >= 0 or job.het:
            return k
        exclusive = is_exclusive(job, part.about.exclusive)
        counts = job.min_nodes <= (part.mask & (idle if exclusive else free)).bit_count()
        if not counts and not (job.planned and exclusive and site.is_uniform):
            counts = sizes_count or slurm.ledger.class_of(job, part).has_after
        if counts and not slurm.ledger.before(job, part):  # a job over such a limit is not planned at all
            return k
    return -1


def _look_at_some(walk: BackfillWalk, entries: list[Entry], at: int, n: int) -> int:
    """Plan the job at a place of the queue, and others with it if they go together; return the next place."""
    group: list[Entry] = []
    places: list[int] = []
    place = at
    while place < n and len(group) < walk.together:
        job, part = entries[place]
        if job.het or job.task >= 0 or job.reservation or (walk.licenses is not None and job.licenses):
            break
        if job.state == PENDING and not walk.is_skipped(job, part):
            group.append(entries[place])
            places.append(place)
        place += 1
    if group:
        planned, _ = walk.plan(group)
        return place if planned == len(group) else places[planned - 1] + 1
    if place == at:
        look_at_all(walk, *entries[at])
        return at + 1
    return place


def look_at_all(walk: BackfillWalk, head: SlurmJob, part: SlurmPart) -> None:
    """Plan a job, or the next tasks of its array."""
    slurm, planned = walk.slurm, 0
    tasks = [head]
    if head.task >= 0:
        tasks = [one for one in slurm.by_id[head.id] if one.state == PENDING and one.key in slurm.pending]
    most = slurm.site.parameters.bf_array_resv
    for job in tasks:
        if job.state != PENDING or planned >= most or not slurm.is_independent(job, walk.now):
            return
        if head.array_most:
            running = sum(one.state == RUNNING for one in slurm.by_id[head.id])
            if running + planned >= head.array_most:
                return
        result = walk.look_at(job, part)
        if walk.is_over:
            return
        if result == STARTED:
            continue
        if result != "planned":
            return
        planned += 1


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
