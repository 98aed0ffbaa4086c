"""The state of a site's Slurm, and what changes it; its two passes stand in files of their own."""

from typing import NamedTuple

import numpy as np

from bridge.base.arrays import Ints
from bridge.cluster.reasons import NEVER_FITS, PARTITION_INACTIVE
from bridge.scheduler.slurm import advance, eligible, preemption
from bridge.scheduler.slurm.choice import (
    Chosen,
    as_gres_row,
    choose,
    default_memory,
    is_exclusive,
    need_of,
)
from bridge.scheduler.slurm.choice_kernels import UNCOUNTED
from bridge.scheduler.slurm.eligible import Entry
from bridge.scheduler.slurm.jobs import DONE, PENDING, RUNNING, SUSPENDED, SlurmJob
from bridge.scheduler.slurm.limits import Ledger, job_limit
from bridge.scheduler.slurm.line import PassLine
from bridge.scheduler.slurm.masks import bits, mask_of
from bridge.scheduler.slurm.order import preemptors_first
from bridge.scheduler.slurm.priority import Priorities
from bridge.scheduler.slurm.site import Site, SlurmPart
from bridge.scheduler.slurm.usage import SlurmUsage

#: A requeued job is eligible again so long after its nodes are free, s: a credential's life, and one.
REQUEUE_DELAY = 121
#: What an attempt to start a job can come to.
STARTED, BUSY, LIMIT, RESERVED, LICENSES, IMPOSSIBLE = (
    "started",
    "busy",
    "limit",
    "reserved",
    "licenses",
    "impossible",
)

#: An instant that never comes.
FAR = 1 << 62

#: No main pass yet: its version, how far it went, until when nothing changes by itself, and
#: the line's changes and the preferred nodes that it left.
_NEVER_PASSED: tuple[int, bool, int, int, int | None] = (-1, False, 0, -1, None)


class IdlePass(NamedTuple):
    """A backfill pass that changed nothing: in which state, and until when it holds.

    Attributes:
        packed: see `Controller`.
        changes: see `PassLine`.
    """

    version: int = -1
    packed: int | None = None
    changes: int = -1
    until: int = 0


class Controller:
    """What slurmctld knows. Instants are whole seconds since 1970.

    Attributes:
        jobs: by key.
        future: room for the forecast's book.
        started: jobs that started since the world last looked, with the scheduler that started them.
        n_starts: how many there were.
        version: changes with all that a main pass looks at.
        is_passed: the last main pass that changed nothing, see `bridge.scheduler.slurm.main_pass`.
        is_planned: the last backfill pass that changed nothing, see `bridge.scheduler.slurm.backfill_pass`.
        packed: nodes that the weights in force prefer; None: they are the site's.
        ended: jobs that were killed, requeued or preempted since then, with how.
        completing: of each node, how many jobs are ending there; `completing_nodes` those with any.
        preempts: jobs may give way to others.
        ranks: order of (job, partition) that an agent's last picks made, if it is not the queue's own.
        held_picks: (job, partition) that an agent picked, and that did not start.
        limits_due: no check of limits before this instant ends a job.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self.ledger = Ledger(site)
        self.priorities = Priorities(site, self.ledger)
        self.usage = SlurmUsage.of_site(site)
        self.empty = SlurmUsage.of_site(site)
        self.future = self.usage.book.copy()
        self.jobs: dict[int, SlurmJob] = {}
        self.by_id: dict[int, list[SlurmJob]] = {}
        self.pending: dict[int, SlurmJob] = {}
        self.line = PassLine(site)
        self.running: dict[int, SlurmJob] = {}
        self.reservations: dict[str, advance.Advance] = {}
        self.down, self.drained = 0, 0
        for n, node in enumerate(site.nodes):
            if node.state == "down":
                self.down |= 1 << n
            elif node.state == "drain":
                self.drained |= 1 << n
        self.completing = [0] * len(site.nodes)
        self.completing_nodes = 0
        self.licenses = dict(site.licenses)
        self.weights = site.weights
        self.packed: int | None = None
        self._packed = 0, np.ones(len(site.nodes), np.int64)
        self._fits: dict[tuple[object, ...], bool] = {}
        self.started: list[tuple[SlurmJob, str]] = []
        self.n_starts = 0
        self.ended: list[tuple[SlurmJob, str]] = []
        self.het_estimates: dict[int, dict[int, int]] = {}
        self.version = 0
        self.is_passed = _NEVER_PASSED
        self.is_planned = IdlePass()
        self.has_skipped = False  # the last main pass passed a job over, for its partition had failed
        self.has_barred = False  # in it, an advance reservation kept a job from its nodes
        self.ranks: dict[tuple[int, int], int] = {}
        self.held_picks: set[tuple[int, int]] = set()
        self.limits_due = 0
        self.preempts = site.cluster.scheduler.preempt != "none"

    # --- nodes

    @property
    def up(self) -> int:
        """Nodes that take jobs, those that are completing among them."""
        return self.site.all_nodes & ~self.down & ~self.drained

    # --- submission

    def refuses(self, job: SlurmJob) -> str:
        """Return why a job is refused when submitted; empty: it is not."""
        parts = [part for part in job.parts if part.state in ("up", "down")]
        if not parts:
            return PARTITION_INACTIVE
        if self.site.settings.limits:
            for part in job.parts[:1]:
                if reason := self.ledger.refuses(job, part):
                    return reason
        for part in job.parts:
            if job.min_cpus > part.cpus or job.min_nodes > part.mask.bit_count():
                if job.min_nodes > part.mask.bit_count() and len(job.parts) == 1:
                    return NEVER_FITS
                return ""
            if self.could_ever(job, part):
                return ""
        return NEVER_FITS

    def could_ever(self, job: SlurmJob, part: SlurmPart) -> bool:
        """Tell whether a job fits the nodes of a partition when they are empty."""
        if part.index not in job.could:
            job.could[part.index] = self._fits_empty(job, part)
        return job.could[part.index]

    def _fits_empty(self, job: SlurmJob, part: SlurmPart) -> bool:
        """Tell whether a job fits the empty nodes of a partition; equal requests are tried once."""
        if self.weights is not self.site.weights:
            return self._could(job, part, part.mask)
        need = need_of(self.site, job, part.index, is_exclusive(job, part.about.exclusive))
        kinds = tuple(sorted(job.gres)), job.features, job.one_feature
        key = (part.index, need.tobytes(), job.required, job.excluded, kinds)
        if key not in self._fits:
            self._fits[key] = self._could(job, part, part.mask)
        return self._fits[key]

    def forget_fits(self) -> None:
        """Forget which requests fit empty nodes, whose weights have changed."""
        self._fits.clear()

    def _could(self, job: SlurmJob, part: SlurmPart, nodes: int) -> bool:
        exclusive = is_exclusive(job, part.about.exclusive)
        nodes &= ~job.excluded
        return (
            choose(self.site, job, nodes, self.empty, part.index, self.weights, exclusive=exclusive)
            is not None
        )

    def submit(self, job: SlurmJob, now: int) -> None:
        """Take a job that is not refused."""
        self.version += 1
        job.submit = now
        if not job.dependencies and not job.singleton:
            job.eligible = max(now, job.begin)
        self.jobs[job.key] = job
        self.by_id.setdefault(job.id, []).append(job)
        self.pending[job.key] = job
        self.ledger.submit(job)
        if job.task >= 0 and len(self.by_id[job.id]) > 1:  # one record until a task is split from it
            first = self.by_id[job.id][0]
            if self.priorities.is_basic:
                job.priority = first.priority
                self.line.add(job, now)
                return
        self.priorities.submit(job, now)
        self.line.add(job, now)

    # --- the queue

    def is_independent(self, job: SlurmJob, now: int) -> bool:
        """Tell whether nothing but resources and limits holds a job back; sets when it became eligible."""
        if job.priority == 0 or job.held or job.never or job.requeued_until > now or job.begin > now:
            return False
        if job.dependencies:
            state = eligible.dependency(job, self.by_id, now)
            if state == eligible.NEVER:
                if self.site.cluster.scheduler.kill_invalid_dependency:
                    self.cancel(job, now)
                else:
                    job.never = True
                return False
            if state == eligible.WAITS:
                return False
        if job.singleton and eligible.singleton_waits(job, (*self.pending.values(), *self.running.values())):
            return False
        if not job.eligible:
            job.eligible = now
        if eligible.array_is_full(job, self.by_id):
            return False
        return eligible.reservation_is_open(job, self.reservations, now)

    def queue(self, now: int) -> list[Entry]:
        """Return the jobs that a pass looks at, in its order; of an array, its first task that waits."""
        self.line.refresh(self.pending.values(), now)
        entries, odd = self.line.entries, self.line.odd
        if odd:
            closed = self._closed_odd(now)
            entries = [entry for entry in entries if entry[0].key not in closed]
        if self.preempts:
            return preemptors_first(self.site, entries)
        return entries

    def _closed_odd(self, now: int) -> set[int]:
        """Return the odd jobs at which a pass does not look."""
        closed: set[int] = set()
        arrays: set[int] = set()
        for job in sorted(self.line.odd.values(), key=lambda one: one.order):
            if (job.task >= 0 and job.id in arrays) or not self.is_independent(job, now):
                closed.add(job.key)
            elif job.task >= 0:
                arrays.add(job.id)
        return closed

    def next_task(self, job: SlurmJob, now: int) -> SlurmJob | None:
        """Return the next task of a job's array that waits and may start."""
        if job.task < 0:
            return None
        for one in self.by_id[job.id]:
            if one.state == PENDING and one.key in self.pending and self.is_independent(one, now):
                return one
        return None

    def has_licenses(self, job: SlurmJob) -> bool:
        return all(self.licenses.get(name, 0) >= count for name, count in job.licenses.items())

    # --- starting

    def try_start(self, job: SlurmJob, part: SlurmPart, nodes: int, now: int, who: str) -> str:
        """Start a job on some of the nodes, or return why not; may preempt others."""
        site = self.site
        exclusive = is_exclusive(job, part.about.exclusive)
        packed = self.packed = self.ledger.packed_on(job, part)
        self.weights = site.weights if packed is None else self._packed_weights(packed)
        nodes &= part.mask & ~job.excluded
        usable, is_reserved, weights = nodes, False, self.weights
        if self.reservations:
            usable, is_reserved = advance.usable_nodes(
                self.reservations, job, nodes, now, job_limit(job, part)
            )
            weights = self._inside_first(job)
        there = usable & self.usage.idle if exclusive else usable
        chosen = choose(site, job, there, self.usage, part.index, weights, exclusive=exclusive)
        victims: list[SlurmJob] = []
        if chosen is None and self.preempts and job.preempting_until < now:
            chosen, victims = self._by_preemption(job, part, usable, exclusive, now)
        reason = ""
        if self.ledger.class_of(job, part).has_after:
            if chosen is not None:
                tres = self.tres_of(job, part, chosen)
                reason = self.ledger.after(job, part, tres, mask_of(chosen))
            else:
                reason = self.ledger.after(job, part, self.ledger.request(job), None)
        if reason:
            return LIMIT
        if chosen is None:
            if is_reserved and not self._could(job, part, usable):
                return RESERVED
            if not self.could_ever(job, part):
                return IMPOSSIBLE
            return BUSY
        if victims:
            suspends = all(preemption.mode_of(site, one) == "suspend" for one in victims)
            for one in victims:
                self._preempt(one, job, now)
            if not suspends:
                job.preempting_until = now + site.settings.kill_wait + site.settings.message_timeout
                return BUSY
        self._start(job, part, chosen, exclusive, now, who)
        return STARTED

    def adopt(self, job: SlurmJob, part: SlurmPart, chosen: Chosen, start: int) -> None:
        """Take a waiting job as one that runs since an instant: a real Slurm has started it."""
        self._start(job, part, chosen, is_exclusive(job, part.about.exclusive), start, "")

    def _packed_weights(self, nodes: int) -> Ints:
        """Return the weights with which a job prefers some nodes."""
        if self._packed[0] != nodes:
            self._packed = nodes, self._outside(nodes)
        return self.site.weights + self._packed[1]

    def _outside(self, nodes: int) -> Ints:
        """Return 1 for nodes that are none of some, else 0 [N]."""
        outside = np.ones(len(self.site.nodes), np.int64)
        outside[list(bits(nodes))] = 0
        return outside

    def _inside_first(self, job: SlurmJob) -> Ints:
        own = self.reservations.get(job.reservation) if job.reservation else None
        if own is None or not own.flex:
            return self.weights
        return self.weights + (1 << 40) * self._outside(own.nodes)

    def _by_preemption(
        self, job: SlurmJob, part: SlurmPart, nodes: int, exclusive: bool, now: int
    ) -> tuple[Chosen | None, list[SlurmJob]]:
        """Return nodes that a job gets if others give way, and those; None: it does not fit even then."""
        site = self.site
        order = preemption.candidates(site, job, part, self.running.values(), now)
        order = [one for one in order if one.nodes & nodes]
        if order and all(preemption.mode_of(site, one) == "suspend" for one in order):
            usage = self.usage.copy()  # gangs share cores: all of lower tiers are as good as free
            for one in order:
                usage.remove(one, keep_memory=True)
            chosen = choose(site, job, nodes, usage, part.index, self.weights, exclusive=exclusive)
            taken = mask_of(chosen or ())
            return chosen, [one for one in order if one.nodes & taken]
        for again in range(site.parameters.preempt_reorder + 1):
            usage = self.usage.copy()
            for k, one in enumerate(order):
                usage.remove(one, keep_memory=preemption.mode_of(site, one) == "suspend")
                chosen = choose(site, job, nodes, usage, part.index, self.weights, exclusive=exclusive)
                if chosen is None:
                    continue
                if again < site.parameters.preempt_reorder and k:
                    order.insert(0, order.pop(k))
                    break
                taken = mask_of(chosen)
                return chosen, [other for other in order[: k + 1] if other.nodes & taken]
            else:
                return None, []
        return None, []

    def _preempt(self, victim: SlurmJob, by: SlurmJob, now: int) -> None:
        mode = preemption.mode_of(self.site, victim)
        if mode == "suspend":
            victim.suspended_by.add(by.key)
            self.suspend(victim, now)
            return
        grace = preemption.grace_of(self.site, victim)
        victim.is_victim = True
        if grace and mode == "cancel":
            victim.end = min(victim.end, now + grace)
            self.limits_due = min(self.limits_due, victim.end)
            return
        if mode == "requeue":
            self.requeue(victim, now, "preempted")
        else:
            self.stop(victim, now, "preempted")

    def tres_of(self, job: SlurmJob, part: SlurmPart, chosen: Chosen) -> dict[str, int]:
        """Return what a job would use on the chosen nodes."""
        tres = self.ledger.request(job)
        tres["cores"], tres["nodes"] = sum(chosen.values()), len(chosen)
        tres["memory"] = sum(self._memory(job, part, chosen))
        for kind, count in job.gres.items():
            tres["gpus" if kind == "gpu" else kind.replace("gpu:", "gpus_")] = count * len(chosen)
        return tres

    def _memory(self, job: SlurmJob, part: SlurmPart, chosen: Chosen) -> list[int]:
        """Return MiB of a job on each of the chosen nodes."""
        per_node, per_cpu = default_memory(self.site, job, part.index)
        if per_node:
            return [per_node] * len(chosen)
        memory = self.site.memory
        if per_cpu:
            return [min(per_cpu * cpus, memory[n]) for n, cpus in chosen.items()]
        return [memory[n] if memory[n] < UNCOUNTED else 0 for n in chosen]

    def _start(
        self, job: SlurmJob, part: SlurmPart, chosen: Chosen, exclusive: bool, now: int, who: str
    ) -> None:
        job.part, job.state, job.start = part, RUNNING, now
        job.limit = job_limit(job, part)
        job.end = now + job.limit
        job.alloc, job.nodes, job.whole = chosen, mask_of(chosen), exclusive
        rows = (list(chosen), list(chosen.values()), self._memory(job, part, chosen))
        job.rows = np.ascontiguousarray(np.array(rows, np.int64).T)
        if job.gres:
            job.gres_row = as_gres_row(self.site, job)
        job.tres = self.tres_of(job, part, chosen)
        job.planned = job.tres["cores"]
        job.last_usage, job.stands, job.is_victim = now, [], False
        own = self.reservations.get(job.reservation) if job.reservation else None
        job.until = own.end if own is not None and not own.flex else 0
        self.limits_due = min(self.limits_due, self._limit_of(job))
        for name, count in job.licenses.items():
            self.licenses[name] = self.licenses.get(name, 0) - count
        self.usage.add(job)
        self.ledger.start(job)
        del self.pending[job.key]
        self.line.has_gone = True
        self.running[job.key] = job
        self.started.append((job, who))
        self.n_starts += 1
        self.version += 1

    # --- ends

    def finish(self, job: SlurmJob, now: int, exit_code: int = 0) -> None:
        """End a running job; its nodes complete until `nodes_freed`."""
        self.version += 1
        if job.state == SUSPENDED:
            job.stands.append((job.suspended_at, now))
        else:
            self.usage.remove(job)
        for name, count in job.licenses.items():
            self.licenses[name] = self.licenses.get(name, 0) + count
        self.priorities.end(job, now)
        self.ledger.end(job, now)
        self.ledger.submit(job, -1)
        job.state, job.ended, job.exit_code, job.completing = DONE, now, exit_code, True
        for n in bits(job.nodes):
            self.completing[n] += 1
        self.completing_nodes |= job.nodes
        del self.running[job.key]
        self._resume_those_suspended_by(job, now)

    def nodes_freed(self, nodes: int) -> None:
        """Take nodes of an ended job as free."""
        self.version += 1
        for n in bits(nodes):
            self.completing[n] = max(self.completing[n] - 1, 0)
            if not self.completing[n]:
                self.completing_nodes &= ~(1 << n)

    def stop(self, job: SlurmJob, now: int, how: str) -> None:
        """Kill a running job."""
        self.finish(job, now, 1)
        job.cancelled = how in ("cancelled", "preempted")
        self.ended.append((job, how))

    def requeue(self, job: SlurmJob, now: int, how: str) -> None:
        """Kill a running job, which waits again later."""
        if not job.requeue:
            self.stop(job, now, how)
            return
        self.finish(job, now, 0)
        self.ended.append((job, how + ", requeued"))
        job.state, job.requeued_until = PENDING, 1 << 62
        job.episode += 1
        self.pending[job.key] = job
        self.line.is_valid = False
        self.ledger.submit(job)

    def requeued(self, job: SlurmJob, now: int) -> None:
        """Take a requeued job's nodes as free: it is eligible again a while later."""
        self.version += 1
        job.submit = now
        job.requeued_until = job.eligible = now + REQUEUE_DELAY
        job.start, job.nodes, job.alloc, job.part = 0, 0, {}, None
        job.rows = job.rows[:0]
        job.is_victim = False
        self.priorities.refresh(job, now)
        self.line.is_valid = False

    def cancel(self, job: SlurmJob, now: int) -> None:
        """Cancel a job, whether it waits or runs."""
        self.version += 1
        if job.state in (RUNNING, SUSPENDED):
            self.stop(job, now, "cancelled")
        elif job.state == PENDING:
            self.pending.pop(job.key, None)
            self.line.has_gone = True
            job.state, job.cancelled, job.ended, job.exit_code = DONE, True, now, 1
            self.ledger.submit(job, -1)
            self.ended.append((job, "cancelled, waiting"))

    def suspend(self, job: SlurmJob, now: int) -> None:
        """Stop a job in its place: its cores are free, its memory is not."""
        if job.state != RUNNING:
            return
        self.priorities.end(job, now)
        self.version += 1
        self.usage.remove(job, keep_memory=True)
        job.state, job.suspended_at = SUSPENDED, now
        self.ended.append((job, "suspended"))

    def resume(self, job: SlurmJob, now: int) -> None:
        """Let a suspended job go on; the time in between does not count."""
        if job.state != SUSPENDED:
            return
        job.stands.append((job.suspended_at, now))
        job.end += now - job.suspended_at
        job.state, job.last_usage = RUNNING, now
        self.limits_due = min(self.limits_due, self._limit_of(job))
        self.version += 1
        self.usage.add(job, without_memory=True)
        self.ended.append((job, "resumed"))

    def _resume_those_suspended_by(self, job: SlurmJob, now: int) -> None:
        for one in list(self.running.values()):
            if job.key in one.suspended_by:
                one.suspended_by.discard(job.key)
                if not one.suspended_by:
                    self.resume(one, now)

    # --- checks

    def check_limits(self, now: int) -> None:
        """Kill what ran past its limit, its grace time or its reservation (every 30 s)."""
        if now < self.limits_due:
            return
        for job in list(self.running.values()):
            if job.state == RUNNING and self._limit_of(job) <= now:
                self.stop(job, now, "preempted" if job.is_victim else "timeout")
        jobs = (job for job in self.running.values() if job.state == RUNNING)
        self.limits_due = min(map(self._limit_of, jobs), default=FAR)

    def _limit_of(self, job: SlurmJob) -> int:
        """Return from when on a check of limits ends a running job."""
        if job.is_victim:
            return job.end
        settings = self.site.settings
        limit = job.end + settings.over_time
        return min(limit, job.until + settings.resv_over_run) if job.until else limit
