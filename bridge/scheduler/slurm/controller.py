"""The state of a site's Slurm, and what changes it; its two passes stand in files of their own."""

from typing import NamedTuple

import numpy as np

from bridge.base.arrays import Ints
from bridge.cluster.reasons import NEVER_FITS, PARTITION_INACTIVE
from bridge.scheduler.slurm import (
    advance,
    eligible,
    pass_kernels,
    plan_kernels,
    preemption,
    start_kernels,
)
from bridge.scheduler.slurm import arrays as at
from bridge.scheduler.slurm.arrays import Number, SlurmStore
from bridge.scheduler.slurm.choice import Chosen, as_gres_row, choose, is_exclusive, need_of
from bridge.scheduler.slurm.choice_kernels import WHOLE
from bridge.scheduler.slurm.eligible import Entry
from bridge.scheduler.slurm.jobs import DONE, PENDING, RUNNING, SUSPENDED, SlurmJob
from bridge.scheduler.slurm.limit_kernels import CORES_USED
from bridge.scheduler.slurm.limits import Ledger
from bridge.scheduler.slurm.line import PassLine
from bridge.scheduler.slurm.masks import mask_of
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
_try_now, _judge_now = Quick(start_kernels.try_now), Quick(start_kernels.judge_now)
_start_now, _end_now = Quick(start_kernels.start_now), Quick(start_kernels.end_now)
_period = Quick(pass_kernels.period_now)
_free_nodes, _pause_job = Quick(start_kernels.free_nodes), Quick(start_kernels.pause_job)
#: The schedulers, by their places in kernels.
_SCHEDULERS = ("main", "backfill", "")


class News(NamedTuple):
    """What happened to a job: it started, `by` a scheduler, ended by itself, or its nodes became free."""

    kind: int
    job: SlurmJob
    by: str


class Controller:
    """What slurmctld knows. Instants are whole seconds since 1970.

    Attributes:
        jobs: by key.
        started: jobs that started since the world last looked, with the scheduler that started them.
        n_starts: how many there were.
        version: changes with all that a main pass looks at.
        has_skipped: the last main pass passed a job over, for its partition had failed.
        has_barred: in it, an advance reservation kept a job from its nodes.
        ends_changed: ends of running jobs are not those that passes know.
        ended: jobs that were killed, requeued or preempted since then, with how.
        preempts: jobs may give way to others.
        ranks: order of (job, partition) that an agent's last picks made, if it is not the queue's own.
        held_picks: (job, partition) that an agent picked, and that did not start.
        limits_due: no check of limits before this instant ends a job.
    """

    n_starts, version, limits_due = Number(at.N_STARTS), Number(at.VERSION), Number(at.LIMITS_DUE)
    has_skipped, has_barred = Number(at.HAS_SKIPPED), Number(at.HAS_BARRED)

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
        self._fits: dict[tuple[object, ...], bool] = {}
        self.started: list[tuple[SlurmJob, str]] = []
        self.ended: list[tuple[SlurmJob, str]] = []
        self.het_estimates: dict[int, dict[int, int]] = {}
        self.forget_passes()
        self.ranks: dict[tuple[int, int], int] = {}
        self.held_picks: set[tuple[int, int]] = set()
        self.ends_changed = False
        self.preempts = site.cluster.scheduler.preempt != "none"

    def _store(self) -> SlurmStore:
        """Return the arrays that do not grow, and those of the nodes."""
        site, store = self.site, SlurmStore()
        book, n_nodes = SlurmUsage.of_site(site).book, len(site.nodes)
        self._up = 0  # as kernels know it
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
            completing=np.zeros(n_nodes, np.int64),
            packed_then=np.zeros((3, 1 + site.n_words), np.int64),
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
    def completing_nodes(self) -> int:
        """Nodes on which a job is ending."""
        return mask_of_words(self.store.masks[at.COMPLETING])

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
        """Tell whether a job fits the empty nodes of a partition; equal requests are tried once.

        Which nodes limits prefer does not matter to whole nodes with as many CPUs, of which any will do.
        """
        site, is_whole = self.site, is_exclusive(job, part.about.exclusive)
        any_will_do = is_whole and site.is_uniform and not job.contiguous and not job.required
        if self.store.now[at.IS_PACKED] and not (any_will_do and job.min_nodes == job.max_nodes):
            return self._could(job, part, part.mask)
        need = need_of(site, job, part.index, is_whole)
        kinds = tuple(sorted(job.gres)) if job.gres else (), job.features, job.one_feature
        key = (part.index, id(need), job.required, job.excluded, kinds)
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

    def forget_passes(self) -> None:
        """Let no pass be left out because an earlier one changed nothing."""
        self.store.now[[at.PASSED_VERSION, at.PLAN_VERSION]] = -1

    def queue(self, now: int) -> int:
        """Write the entries at which a pass looks to `turn`, and all else that it reads; return how many.

        Of an array, it looks at its first task that waits.
        """
        self.take_priorities()
        self.ends_changed |= not self.line.is_valid
        self.line.refresh(self.pending.values(), now)
        store = self.store
        if self.line.odd:
            closed = self._closed_odd(now)
            for job in self.line.odd.values():
                store.jobs[job.row, at.IS_CLOSED] = int(job.key in closed)
        store.now[at.ODD_UNTIL] = self._odd_until(now)
        self.write_state()
        n = self.line.take_turns()
        if self.preempts:
            self.write_turn(preemptors_first(self.site, self.entries(n)))
        return n

    def _odd_until(self, now: int) -> int:
        """Return until when an odd job is held as it is now, unless something happens; 0: it may not be."""
        until = at.FAR
        for job in self.line.odd.values():
            if job.dependencies or job.singleton:
                return 0
            for time in (job.begin, job.requeued_until):
                if time > now:
                    until = min(until, time)
        return until

    def entries(self, n: int) -> list[Entry]:
        """Return the jobs at which a pass looks, each with a partition, in its order."""
        store, rows = self.store, self.rows
        return [(rows.jobs[store.entries[e, at.JOB]], rows.parts[e]) for e in store.turn[:n].tolist()]

    def write_turn(self, entries: list[Entry]) -> None:
        """Write the order in which a pass looks at jobs."""
        self.store.turn[: len(entries)] = [job.entries[part.index] for job, part in entries]

    def write_state(self) -> None:
        """Write what passes read of nodes and reservations."""
        if self._up != self.up:
            self._up = self.up
            self.store.masks[at.UP] = words_of(self._up, self.site.n_words)
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

    def take_changes(self) -> None:
        """Take over which plans a pass changed, and which jobs it blocked."""
        store = self.store
        if count := int(store.now[at.CHANGED]):
            store.now[at.CHANGED] = 0
            for row in store.changed[:count].tolist():
                job = self.rows.jobs[row]
                job.planned, job.blocked_at = store.jobs[row, at.PLANNED : at.BLOCKED + 1].tolist()
                store.jobs[row, at.IS_CHANGED] = 0

    def take_news(self) -> list[News]:
        """Take over what kernels did to jobs: plans and blocks, starts, ends; return all but the former."""
        self.take_changes()
        store = self.store
        if not (count := int(store.now[at.N_NEWS])):
            return []
        store.now[at.N_NEWS] = 0
        return [self._take(*row) for row in store.news[:count].tolist()]

    def _take(self, kind: int, e: int, run: int, now: int, by: int) -> News:
        if kind == at.STARTED_NEWS:
            return News(kind, self._take_start(e, run, now), _SCHEDULERS[by])
        job = self.rows.runs[run]
        assert job is not None
        if kind == at.ENDED_NEWS:
            self._take_end(job, now)
        else:
            job.completing = False
            self.rows.end(job)
        return News(kind, job, "")

    def _take_start(self, e: int, run: int, now: int) -> SlurmJob:
        store, rows = self.store, self.rows
        job: SlurmJob = rows.jobs[int(store.entries[e, at.JOB])]
        part = rows.parts[e]
        rows.runs[run], job.run = job, run
        job.part, job.state, job.start = part, RUNNING, now
        job.limit = int(store.entries[e, at.RUN_LIMIT])
        job.end = now + job.limit
        job.whole = bool(store.need[e, WHOLE])
        if self.site.gres:
            job.gres_row = as_gres_row(self.site, job)
        first, last = store.runs[run, at.FIRST_ROW], store.runs[run, at.LAST_ROW]
        job.rows = store.pool[first:last].copy()
        job.nodes = mask_of_words(store.run_nodes[run])
        job.cpus = job.planned = int(store.run_amounts[run, CORES_USED])
        job.stands, job.is_victim = [], False
        own = self.reservations.get(job.reservation) if job.reservation else None
        job.until = own.end if own is not None and not own.flex else 0
        del self.pending[job.key]
        rows.leave(job)
        self.running[job.key] = job
        return job

    def see_starts(self) -> None:
        """Take over what a pass did."""
        self.started += [(news.job, news.by) for news in self.take_news()]

    def run_period(self, now: int) -> None:
        """Compute all priorities, as each calculation period does."""
        if self.store.rules[at.PERIODS] == at.BY_PYTHON:
            self.priorities.run_period(self.pending.values(), self.running.values(), now)
            self.line.see_new_priorities()
        else:
            _period(self.store.bundle, self.priorities.tree(), now)

    def take_priorities(self) -> None:
        """Take over priorities that a kernel computed."""
        if self.store.now[at.IS_FRESH]:
            self.store.now[at.IS_FRESH] = 0
            self.priorities.take(self.pending.values())

    def sort_running(self) -> None:
        """Write running jobs as the next pass sees them, if Python changed when they end."""
        if self.ends_changed:
            self.ends_changed = False
            self.rows.write_ends(self.running.values())

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

    # --- starting

    def try_start(self, job: SlurmJob, part: SlurmPart, nodes: int, now: int, who: str) -> str:
        """Start a job on some of the nodes, or return why not; may preempt others."""
        self.write_state()
        self.rows.make_room()
        self.store.now[at.NOW], self.store.now[at.ENTRY] = now, job.entries[part.index]
        words = words_of(nodes, self.site.n_words)
        result = int(_try_now(self.store.bundle, job.entries[part.index], words))
        if result == start_kernels.PREEMPTION:
            return self.let_give_way(now, who)
        if result == start_kernels.STARTED:
            self.start_entry(who)
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
                self.write_state()
                return BUSY
        self.start_entry(who)
        return STARTED

    def _write_taken(self, chosen: Chosen) -> None:
        """Write the CPUs of a job on each node where kernels read them."""
        taken = self.store.scratch[1]
        taken[:] = 0
        taken[list(chosen)] = list(chosen.values())

    def adopt(self, job: SlurmJob, part: SlurmPart, chosen: Chosen, start: int) -> None:
        """Take a waiting job as one that runs since an instant: a real Slurm has started it."""
        self.rows.make_room()
        self._write_taken(chosen)
        self.store.now[at.ENTRY], self.store.now[at.NOW] = job.entries[part.index], start
        self.start_entry("")

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
            self.store.runs[victim.run, at.DUE] = victim.end
            self.limits_due = min(self.limits_due, victim.end)
            return
        if mode == "requeue":
            self.requeue(victim, now, "preempted")
        else:
            self.stop(victim, now, "preempted")

    def start_entry(self, who: str) -> None:
        """Start the job at which a pass stopped, with the CPUs on each node that kernels chose."""
        self.rows.make_room()
        _start_now(self.store.bundle, int(self.store.now[at.ENTRY]), _SCHEDULERS.index(who))
        self.see_starts()

    # --- ends

    def finish(self, job: SlurmJob, now: int, exit_code: int = 0) -> None:
        """End a running job before its time; its nodes complete until `nodes_freed`."""
        self.rows.make_room()
        self.store.now[at.NOW] = now
        _end_now(self.store.bundle, self.priorities.tree(), job.run)
        self.take_news()
        job.exit_code = exit_code
        self.rows.end(job)
        self.resume_those_suspended_by(job, now)

    def _take_end(self, job: SlurmJob, now: int) -> None:
        if job.state == SUSPENDED:
            job.stands.append((job.suspended_at, now))
        job.state, job.ended, job.exit_code, job.completing = DONE, now, 0, True
        del self.running[job.key]

    def nodes_freed(self, nodes: int) -> None:
        """Take nodes of an ended job as free."""
        _free_nodes(self.store.bundle, words_of(nodes, self.site.n_words))

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
        self.line.is_valid = 0
        self.ledger.submit(job)

    def requeued(self, job: SlurmJob, now: int) -> None:
        """Take a requeued job's nodes as free: it is eligible again a while later."""
        self.version += 1
        job.submit = now
        job.requeued_until = job.eligible = now + REQUEUE_DELAY
        job.start, job.nodes, job.part = 0, 0, None
        job.rows = job.rows[:0]
        job.is_victim = False
        self.priorities.refresh(job, now)
        self.line.is_valid = 0

    def cancel(self, job: SlurmJob, now: int) -> None:
        """Cancel a job, whether it waits or runs."""
        self.version += 1
        if job.state in (RUNNING, SUSPENDED):
            self.stop(job, now, "cancelled")
        elif job.state == PENDING:
            if self.pending.pop(job.key, None) is not None:
                self.rows.withdraw(job)
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
        row, due = self.store.runs[job.run], self.rows.due(job)
        row[at.SINCE], row[at.IS_RUNNING], row[at.DUE], row[at.PAUSED] = now, 1, due, job.suspended
        self.limits_due = min(self.limits_due, due)
        self.version += 1
        _pause_job(self.store.bundle, job.run, 1)
        self.ends_changed = True
        self.ended.append((job, "resumed"))

    def resume_those_suspended_by(self, job: SlurmJob, now: int) -> None:
        """Let jobs go on that were suspended for one that has ended."""
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
            if job.state == RUNNING and self.rows.due(job) <= now:
                self.stop(job, now, "preempted" if job.is_victim else "timeout")
        jobs = (job for job in self.running.values() if job.state == RUNNING)
        self.limits_due = min(map(self.rows.due, jobs), default=at.FAR)
