"""The state of a site's Slurm, and what changes it; its two passes stand in files of their own."""

from typing import NamedTuple

import numpy as np

from bridge.base.arrays import Ints
from bridge.cluster.reasons import NEVER_FITS, PARTITION_INACTIVE
from bridge.scheduler.slurm import advance, eligible, plan_kernels, preemption, start_kernels
from bridge.scheduler.slurm import arrays as at
from bridge.scheduler.slurm.arrays import SlurmStore
from bridge.scheduler.slurm.choice import Chosen, as_gres_row, choose, is_exclusive, need_of
from bridge.scheduler.slurm.choice_kernels import WHOLE
from bridge.scheduler.slurm.eligible import Entry
from bridge.scheduler.slurm.jobs import DONE, PENDING, RUNNING, SUSPENDED, SlurmJob
from bridge.scheduler.slurm.limit_kernels import CORES_USED
from bridge.scheduler.slurm.limits import Ledger, job_limit
from bridge.scheduler.slurm.line import PassLine
from bridge.scheduler.slurm.masks import bits, mask_of
from bridge.scheduler.slurm.node_words import mask_of_words, words_of
from bridge.scheduler.slurm.order import preemptors_first
from bridge.scheduler.slurm.priority import Priorities
from bridge.scheduler.slurm.quick import Quick
from bridge.scheduler.slurm.rows import Rows, rules_of
from bridge.scheduler.slurm.site import Site, SlurmPart
from bridge.scheduler.slurm.usage import SlurmUsage

#: A requeued job is eligible again so long after its nodes are free, s: a credential's life, and one.
REQUEUE_DELAY = 121
#: What an attempt to start a job can come to.
STARTED, BUSY, LIMIT, RESERVED, IMPOSSIBLE = OUTCOMES = (
    *("started", "busy", "limit", "reserved", "impossible"),
)
_order_runs, _try_now = Quick(start_kernels.order_runs), Quick(start_kernels.try_now)
_judge_now, _start_job = Quick(start_kernels.judge_now), Quick(start_kernels.start_job)
_end_job, _pause_job = Quick(start_kernels.end_job), Quick(start_kernels.pause_job)

#: An instant that never comes.
FAR = 1 << 62

#: No main pass yet: its version, how far it went, until when nothing changes by itself, and
#: the line's changes and the preferred nodes that it left.
_NEVER_PASSED: tuple[int, bool, int, int, bytes | None] = (-1, False, 0, -1, None)


class IdlePass(NamedTuple):
    """A backfill pass that changed nothing: in which state, and until when it holds.

    Attributes:
        packed: see `Controller`.
        changes: see `PassLine`.
    """

    version: int = -1
    packed: bytes | None = None
    changes: int = -1
    until: int = 0


class Controller:
    """What slurmctld knows. Instants are whole seconds since 1970.

    Attributes:
        jobs: by key.
        started: jobs that started since the world last looked, with the scheduler that started them.
        n_starts: how many there were.
        version: changes with all that a main pass looks at.
        is_passed: the last main pass that changed nothing, see `bridge.scheduler.slurm.main_pass`.
        is_planned: the last backfill pass that changed nothing, see `bridge.scheduler.slurm.backfill_pass`.
        ends_changed: ends of running jobs are not those that passes know.
        ended: jobs that were killed, requeued or preempted since then, with how.
        completing: of each node, how many jobs are ending there; `completing_nodes` those with any.
        preempts: jobs may give way to others.
        ranks: order of (job, partition) that an agent's last picks made, if it is not the queue's own.
        held_picks: (job, partition) that an agent picked, and that did not start.
        limits_due: no check of limits before this instant ends a job.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self.store = self._store()
        self.ledger = Ledger(site, self.store)
        self.rows = Rows(site, self.ledger, self.store)
        self.priorities = Priorities(site, self.rows)
        self.usage, self.empty = SlurmUsage(self.store.book), SlurmUsage(self.store.empty)
        self.jobs: dict[int, SlurmJob] = {}
        self.by_id: dict[int, list[SlurmJob]] = {}
        self.pending: dict[int, SlurmJob] = {}
        self.line = PassLine(self.rows)
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
        self.ends_changed = False
        self.preempts = site.cluster.scheduler.preempt != "none"

    def _store(self) -> SlurmStore:
        """Return the arrays that do not grow, and those of the nodes."""
        site, store = self.site, SlurmStore()
        book, n_nodes = SlurmUsage.of_site(site).book, len(site.nodes)
        self.masks = [-1] * at.MASKS  # as whole numbers, those that are written
        store.put(
            now=np.zeros(at.NOW_SIZE, np.int64),
            rules=rules_of(site),
            masks=np.zeros((at.MASKS, site.n_words), np.int64),
            parts=np.zeros((len(site.parts), at.PART_SIZE), np.int64),
            part_nodes=np.array([words_of(part.mask, site.n_words) for part in site.parts], np.int64),
            book=book,
            empty=book.copy(),
            future=book.copy(),
            site=site.table,
            usual=site.weights,
            weights=site.weights.copy(),
            inside=site.weights.copy(),
            packed=np.zeros(site.n_words, np.int64),
            scratch=site.scratch[0],
            room=site.scratch[1],
            free_licenses=np.zeros(len(site.licenses), np.int64),
            placed=np.zeros((n_nodes, 3), np.int64),
            booked=np.zeros((1, at.BOOKED_SIZE), np.int64),
            booked_nodes=np.zeros((1, site.n_words), np.int64),
            own=np.zeros(plan_kernels.OWN_SIZE, np.int64),
            times=np.zeros((64, 2), np.int64),
            free=np.zeros((64, site.n_words), np.int64),
            sizes=np.zeros(2, np.int64),
        )
        return store

    # --- nodes

    @property
    def weights(self) -> Ints:
        """The weights of nodes in force."""
        weights: Ints = self.store.weights
        return weights

    @property
    def packed(self) -> bytes | None:
        """The nodes that the weights in force prefer; None: they are the site's."""
        return self.store.packed.tobytes() if self.store.now[at.IS_PACKED] else None

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
        if self.store.now[at.IS_PACKED]:
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
        if not self.store.now[at.IS_PACKED]:
            self.store.weights[:] = self.store.usual

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
        self.rows.add(job)
        first = self.by_id[job.id][0]
        if job.task >= 0 and first is not job and self.priorities.is_basic:
            job.priority = first.priority  # one record until a task is split from it
        else:
            self.priorities.submit(job, now)
        if self.priorities.is_basic:
            self.rows.write_priorities((job,))
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
            job.eligible = self.store.jobs[job.row, at.ELIGIBLE] = now
        if eligible.array_is_full(job, self.by_id):
            return False
        return eligible.reservation_is_open(job, self.reservations, now)

    def queue(self, now: int) -> int:
        """Write the entries at which a pass looks to `turn`, and all else that it reads; return how many.

        Of an array, it looks at its first task that waits.
        """
        self.ends_changed |= not self.line.is_valid
        self.line.refresh(self.pending.values(), now)
        store = self.store
        if self.line.odd:
            closed = self._closed_odd(now)
            for job in self.line.odd.values():
                store.jobs[job.row, at.IS_CLOSED] = int(job.key in closed)
        self._write_state()
        n = self.line.take_turns()
        if self.preempts:
            self.write_turn(preemptors_first(self.site, self.entries(n)))
        return n

    def _write_licenses(self) -> None:
        """Write how many licences are free."""
        if self.rows.kinds:
            self.store.free_licenses[:] = [self.licenses.get(name, 0) for name in self.rows.kinds]

    def entries(self, n: int) -> list[Entry]:
        """Return the jobs at which a pass looks, each with a partition, in its order."""
        store, rows = self.store, self.rows
        return [(rows.jobs[store.entries[e, at.JOB]], rows.parts[e]) for e in store.turn[:n].tolist()]

    def write_turn(self, entries: list[Entry]) -> None:
        """Write the order in which a pass looks at jobs."""
        self.store.turn[: len(entries)] = [job.entries[part.index] for job, part in entries]

    def _write_state(self) -> None:
        """Write what passes read of nodes, licences and reservations."""
        for place, mask in ((at.UP, self.up), (at.COMPLETING, self.completing_nodes)):
            if self.masks[place] != mask:
                self.masks[place] = mask
                self.store.masks[place] = words_of(mask, self.site.n_words)
        self._write_licenses()
        if self.reservations or self.store.now[at.RESERVATIONS]:
            self.rows.write_reservations(self.reservations, self.pending.values())

    def write_rows(self) -> None:
        """Write jobs as they are after an event that may have changed them."""
        for job in self.pending.values():
            self.rows.write(job)
        self.rows.write_ends(self.running.values())
        self.ends_changed = True

    def entry(self) -> tuple[SlurmJob, SlurmPart]:
        """Return the job at which a pass stopped, and in which partition."""
        e = int(self.store.now[at.ENTRY])
        return self.rows.jobs[self.store.entries[e, at.JOB]], self.rows.parts[e]

    def take_changes(self) -> int:
        """Take over which plans a pass changed, or which jobs it blocked; return how many."""
        store = self.store
        if not (count := int(store.now[at.CHANGED])):
            return 0
        for row in store.changed[:count].tolist():
            job = self.rows.jobs[row]
            job.planned, job.blocked_at = store.jobs[row, (at.PLANNED, at.BLOCKED)].tolist()
            if self.site.cluster.priority.job_size and job.state == PENDING:
                for part in job.parts:
                    self.priorities.write_terms(job, part, job.entries[part.index])
        store.now[at.CHANGED] = 0
        return count

    def sort_running(self) -> None:
        """Write running jobs in the order of their ends, as the next forecasts see them."""
        if self.ends_changed:
            self.ends_changed = False
            self.rows.write_ends(self.running.values())
        _order_runs(self.store.bundle)
        self.rows.forget_over()

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
        self._write_state()
        self.store.now[at.NOW], self.store.now[at.ENTRY] = now, job.entries[part.index]
        words = words_of(nodes, self.site.n_words)
        result = int(_try_now(self.store.bundle, job.entries[part.index], words))
        if result == start_kernels.PREEMPTION:
            return self.let_give_way(now, who)
        if result == start_kernels.STARTED:
            self.start_entry(now, who)
        return OUTCOMES[result]

    def let_give_way(self, now: int, who: str) -> str:
        """Start the job at which a pass stopped on nodes where others give way, or return why not."""
        store, (job, part) = self.store, self.entry()
        e = job.entries[part.index]
        usable = mask_of_words(store.masks[at.TRY])
        chosen, victims = self._by_preemption(job, part, usable, bool(store.need[e, WHOLE]), now)
        self._write_taken(chosen or {})
        result = int(_judge_now(store.bundle, e, chosen is not None))
        if result != start_kernels.STARTED:
            return OUTCOMES[result]
        if victims:
            suspends = all(preemption.mode_of(self.site, one) == "suspend" for one in victims)
            for one in victims:
                self._preempt(one, job, now)
            if not suspends:
                job.preempting_until = now + self.site.settings.kill_wait + self.site.settings.message_timeout
                store.jobs[job.row, at.PREEMPTING_UNTIL] = job.preempting_until
                self._write_state()
                return BUSY
        self.start_entry(now, who)
        return STARTED

    def _write_taken(self, chosen: Chosen) -> None:
        """Write the CPUs of a job on each node where kernels read them."""
        taken = self.store.scratch[1]
        taken[:] = 0
        taken[list(chosen)] = list(chosen.values())

    def adopt(self, job: SlurmJob, part: SlurmPart, chosen: Chosen, start: int) -> None:
        """Take a waiting job as one that runs since an instant: a real Slurm has started it."""
        self._write_taken(chosen)
        self.store.now[at.ENTRY] = job.entries[part.index]
        self.start_entry(start, "")

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
            self.ends_changed = True
            self.limits_due = min(self.limits_due, victim.end)
            return
        if mode == "requeue":
            self.requeue(victim, now, "preempted")
        else:
            self.stop(victim, now, "preempted")

    def start_entry(self, now: int, who: str) -> None:
        """Start the job at which a pass stopped, with the CPUs on each node that kernels chose."""
        store, (job, part) = self.store, self.entry()
        e = int(store.now[at.ENTRY])
        run = self.rows.start(job)
        job.part, job.state, job.start = part, RUNNING, now
        job.limit = job_limit(job, part)
        job.end = now + job.limit
        job.whole = bool(store.need[e, WHOLE])
        if self.site.gres:
            job.gres_row = as_gres_row(self.site, job)
            store.run_gres[run] = job.gres_row
        _start_job(store.bundle, e, run, self.n_starts, now, job.end)
        job.rows = store.placed[: int(store.now[at.PLACED])].copy()
        job.alloc = dict(job.rows[:, :2].tolist())
        job.nodes = mask_of_words(store.run_nodes[run])
        job.cpus = job.planned = int(store.run_amounts[run, CORES_USED])
        job.stands, job.is_victim = [], False
        own = self.reservations.get(job.reservation) if job.reservation else None
        job.until = own.end if own is not None and not own.flex else 0
        self.limits_due = min(self.limits_due, self._limit_of(job))
        for name, count in job.licenses.items():
            self.licenses[name] = self.licenses.get(name, 0) - count
        self._write_licenses()
        self.ledger.start(job)
        del self.pending[job.key]
        self.rows.remove(job)
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
        _end_job(self.store.bundle, job.run, job.state != SUSPENDED)
        for name, count in job.licenses.items():
            self.licenses[name] = self.licenses.get(name, 0) + count
        self._write_licenses()
        self.priorities.end(job, now)
        self.ledger.end(job, now)
        self.ledger.submit(job, -1)
        job.state, job.ended, job.exit_code, job.completing = DONE, now, exit_code, True
        for n in bits(job.nodes):
            self.completing[n] += 1
        self.completing_nodes |= job.nodes
        del self.running[job.key]
        self.rows.end(job)
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
        self.rows.add(job)
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
            self.rows.remove(job)
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
        _pause_job(self.store.bundle, job.run, -1)
        self.ends_changed = True
        job.state, job.suspended_at = SUSPENDED, now
        self.store.runs[job.run, at.IS_RUNNING] = 2
        self.ended.append((job, "suspended"))

    def resume(self, job: SlurmJob, now: int) -> None:
        """Let a suspended job go on; the time in between does not count."""
        if job.state != SUSPENDED:
            return
        job.stands.append((job.suspended_at, now))
        job.end += now - job.suspended_at
        job.state = RUNNING
        self.store.runs[job.run, at.SINCE], self.store.runs[job.run, at.IS_RUNNING] = now, 1
        self.limits_due = min(self.limits_due, self._limit_of(job))
        self.version += 1
        _pause_job(self.store.bundle, job.run, 1)
        self.ends_changed = True
        self.ended.append((job, "resumed"))

    def _resume_those_suspended_by(self, job: SlurmJob, now: int) -> None:
        if not self.preempts:
            return
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
