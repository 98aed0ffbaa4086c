"""A log replayed as a site's Slurm would schedule it, with its own clocks, as a schedule like any other."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.base.errors import BridgeError
from bridge.base.garbage import no_looks_for_garbage
from bridge.cluster.description import SchedulerParameters
from bridge.cluster.reasons import RESERVATION_NOT_ALLOWED
from bridge.scheduler import timed_state as timed
from bridge.scheduler.slurm.advance import Advance
from bridge.scheduler.slurm.agent_passes import Steps, decisions_of
from bridge.scheduler.slurm.controller import Controller
from bridge.scheduler.slurm.jobs import PENDING, SlurmJob
from bridge.scheduler.slurm.masks import mask_of
from bridge.scheduler.slurm.order_priority import OrderPriorities, Scorer, score_jobs
from bridge.scheduler.slurm.settings import settings_of_site
from bridge.scheduler.slurm.site import Site
from bridge.scheduler.state import HOW_BACKFILLED, SECOND, STARTED_AS_HEAD, reset
from bridge.scheduler.state import allocate as allocate_state
from bridge.workload.requests import NEVER
from bridge.worlds.fast import episode
from bridge.worlds.fast.cluster_calendar import names_foreign_reservation
from bridge.worlds.fast.lives import Lives
from bridge.worlds.fast.slurm.log_jobs import LogJobs
from bridge.worlds.fast.slurm.log_parts import part_of_arrays
from bridge.worlds.fast.slurm.own_clock import OwnClock
from bridge.worlds.fast.slurm.world import SlurmWorld

if TYPE_CHECKING:
    from bridge.worlds.fast.episode import Scenario

#: The log's clock begins at a whole minute, s since 1970: windows are aligned to the epoch.
EPOCH = 1_000_000_800
#: From the end of a job to free nodes, s: a node answers soon; one that kills takes longer.
FREE_DELAY, KILLED_DELAY = 0.5, 1.0
_STATES = {timed.PARTITION_UP: "up", timed.PARTITION_DOWN: "down", timed.PARTITION_CLOSED: "inactive"}


def _refuse_other_rules(scheduler: SchedulerParameters, where: str) -> None:
    """Raise BridgeError for rules of a cluster in whose place Slurm has its own."""
    pairs = (
        (scheduler.select not in ("weight", "least_loaded"), "select", scheduler.select),
        (scheduler.limits != "override", "limits", scheduler.limits),
        (scheduler.requeue_delay > 0, "requeue_delay", scheduler.requeue_delay),
    )
    for is_wrong, name, value in pairs:
        if is_wrong:
            what = f"{name} = {value!r} is none of the protocol slurm, which has Slurm's own rule"
            raise BridgeError(what, where=where, remedy="Leave it out, or use the standard protocol.")


class UsualDelays(SlurmWorld):
    """A world in which nodes are free so long after each end, as no record says how long it took."""

    def free_delay(self, job: SlurmJob) -> float:
        del job
        return FREE_DELAY

    def freed(self, job: SlurmJob, episode: int, ended: float, *, killed: bool) -> float:
        del job, episode
        return ended + (KILLED_DELAY if killed else FREE_DELAY)


class LogReplay(UsualDelays):
    """Plays the jobs `part` of a scenario on an idle site; times of outcomes in microseconds."""

    def __init__(self, prepared: "Scenario", part: tuple[int, int] | None = None) -> None:
        assert prepared.cluster is not None
        first, last = part or (0, len(prepared.jobs))
        self.prepared, self.first = prepared, first
        self.arrays, self.all = prepared.cluster, prepared.jobs
        if part is not None:
            self.arrays = part_of_arrays(self.arrays, first, last)
            self.all = self.all.take(slice(first, last))
        cluster = self.arrays.cluster
        where = f"cluster {cluster.name!r}, scheduler"
        _refuse_other_rules(cluster.scheduler, where)
        weights = cluster.priority
        has_weights = any((weights.age, weights.fairshare, weights.job_size, weights.partition, weights.qos,
                           weights.association, weights.tres))  # fmt: skip
        by_multifactor = prepared.compiled.order.by_priority
        settings = settings_of_site(cluster.scheduler.settings, has_weights=has_weights, where=where)
        if not by_multifactor:
            settings = replace(settings, basic=False)
        site = Site(cluster, settings, where)
        slurm = Controller(site)
        if not by_multifactor:
            slurm.priorities = OrderPriorities(site, slurm.rows, scorer(prepared, first, last))
        self.agent = decisions_of(prepared.compiled.policy)
        super().__init__(site, slurm, EPOCH)
        self.maker = LogJobs(self.all, self.arrays, site, EPOCH)
        self.is_foreign = names_foreign_reservation(cluster, self.arrays.requests)
        n = len(self.all)
        self.run = (self.all.run / SECOND).tolist()
        self.whole_run, self.tasks = self.all.run.tolist(), self.arrays.requests.tasks.tolist()
        self.succeeds = self.arrays.jobs.succeeds.tolist()
        self.codes = {name: k for k, name in enumerate(self.arrays.reasons)}
        self.columns = {
            name: [-1] * n
            for name in ("start", "end", "how", "serial", "eligible", "head_at", "never_at", "ran")
        }
        self.since: list[int] = self.all.submit.tolist()
        self.refused = [0] * n
        self.began: dict[int, tuple[float, int]] = {}  # of a running job its start, and its serial
        self.records: list[tuple[int, ...]] = []
        self.stands: list[tuple[int, ...]] = []
        self.nodes: list[int] = []
        self.units: list[int] = []
        self.serial = self.over = 0

    # --- what happens

    def play(self, seed: int, glance: Callable[[int], None] | None = None) -> None:
        """Play all jobs, without an agent; errors as `decisions`."""
        with no_looks_for_garbage():
            for _ in self.decisions(seed, glance):
                raise AssertionError("nobody answers")

    def decisions(self, seed: int, glance: Callable[[int], None] | None = None) -> Steps:
        """Play all jobs, up to each decision of an agent in turn.

        BridgeError: a job asks for what the protocol does not have.
        """
        for j, time in enumerate((self.all.submit / SECOND).tolist()):
            self.push(time, "submit", j)
        self._plan_calendar()
        first = float(self.all.submit.min()) / SECOND
        self.glance = glance
        return self.steps(OwnClock.of_site(self.site, first, seed + self.first))

    def _plan_calendar(self) -> None:
        cluster, origin = self.arrays.cluster, self.all.origin
        for n, row in enumerate(cluster.calendar):
            time = max(row.time - origin / SECOND, 0.0)
            if row.event == "licenses":
                self.push(time, "licenses", (row.license, row.value))
            elif row.event == "limit":
                where = f"cluster {cluster.name!r}, calendar[{n}]"
                what = "the protocol slurm has no limits that change in time"
                raise BridgeError(what, where=where, remedy="Leave the event out.")
        for one in cluster.reservations:
            self.push(max(one.announced - origin / SECOND, 0.0), "announce", one)
        calendar = self.arrays.calendar
        for event in calendar.events if calendar is not None else ():
            if event.kind not in (timed.LIMIT, timed.MOMENT):
                self.push(int(event.time) / SECOND, "calendar", event)

    def happen_more(self, kind: str, what: Any, time: float, now: int) -> None:
        del time
        slurm = self.slurm
        if kind == "submit":
            self._submit(what, now)
        elif kind == "release":
            self._release(what, now)
        elif kind == "announce":
            self._announce(what)
        elif kind == "licenses":
            name, count = what
            slurm.rows.add_licenses(name, count - self.site.licenses.get(name, 0))
            self.site.licenses[name] = count
        elif kind == "calendar":
            self._change(what, now)

    def _submit(self, j: int, now: int) -> None:
        job = self.maker.make(j)
        reason = RESERVATION_NOT_ALLOWED if self.is_foreign[j] else self.slurm.refuses(job)
        if reason:
            self.refused[j] = 1 + self.codes[reason]
            self.over += 1
            return
        self.slurm.submit(job, now)
        self.expect(job)
        if job.held and (until := int(self.arrays.requests.hold_until[j])) != NEVER:
            self.push(until / SECOND, "release", j)
        if job.begin > now:
            self.push(float(job.begin - EPOCH), "moment", None)

    def _release(self, j: int, now: int) -> None:
        job = self.slurm.jobs.get(j)
        if job is not None and job.state == PENDING and job.held:
            job.held, job.priority = False, 0
            job.eligible = max(now, job.begin) if not job.dependencies else 0
            self.slurm.rows.write(job)
            self.slurm.priorities.submit(job, now)

    def _announce(self, one: Any) -> None:
        table, base = self.arrays.classes.table, EPOCH - self.all.origin // SECOND
        names = [table.names[int(n)] for n in table.indices(one.nodes)[0]]
        nodes = mask_of(self.site.index[name] for name in names)
        self.slurm.reservations[one.name] = Advance(
            one.name,
            one.start + base,
            one.end + base,
            nodes,
            every_node=nodes == self.site.all_nodes,
        )
        self.watch_reservations()

    def _change(self, event: Any, now: int) -> None:
        slurm, kind = self.slurm, int(event.kind)
        calendar = self.arrays.calendar
        assert calendar is not None
        if kind in (timed.NODES_DOWN, timed.NODES_DRAIN, timed.NODES_UP):
            table = self.arrays.classes.table
            members = calendar.static["event_nodes"][int(event.first) : int(event.last)]
            mask = mask_of(self.site.index[table.names[int(n)]] for n in members)
            if kind == timed.NODES_DRAIN:
                slurm.drained |= mask
            elif kind == timed.NODES_UP:
                slurm.drained &= ~mask
                slurm.down &= ~mask
            else:
                slurm.down |= mask
                for job in list(slurm.running.values()):
                    if job.nodes & mask:
                        slurm.requeue(job, now, "node failed")
        elif kind == timed.PARTITION_STATE:
            part = self.site.part_index[self.arrays.classes.partitions[int(event.which)].name]
            part.state = _STATES[int(event.value)]
            part.version += 1
        else:
            self._change_job(self.slurm.jobs.get(int(event.which)), kind, now)

    def _change_job(self, job: SlurmJob | None, kind: int, now: int) -> None:
        if job is None:
            return
        if kind == timed.CANCEL:
            self.slurm.cancel(job, now)
        elif kind == timed.RELEASE:
            self._release(job.key, now)
        elif job.state == PENDING:
            job.held, job.priority, job.priorities = True, 0, {}

    # --- what a world knows of its jobs

    def work_of(self, job: SlurmJob) -> float:
        return float(self.run[job.key])

    def exit_code(self, job: SlurmJob) -> int:
        return 0 if self.succeeds[job.key] else 1

    def on_start(self, job: SlurmJob, who: str, time: float) -> None:
        j, columns = job.key, self.columns
        columns["start"][j] = round(time * SECOND)
        columns["how"][j] = HOW_BACKFILLED if who == "backfill" else STARTED_AS_HEAD
        columns["serial"][j] = self.serial
        self._note_waiting(job)
        self.began[j] = (time, self.serial)
        self.serial += 1

    def _note_waiting(self, job: SlurmJob) -> tuple[int, int]:
        """Note since when a job was eligible, and since when it was the first of its partition."""
        j, columns = job.key, self.columns
        if columns["eligible"][j] < 0:
            columns["eligible"][j] = max((job.eligible - EPOCH) * SECOND, int(self.all.submit[j]))
        if columns["head_at"][j] < 0 and job.blocked_at:
            columns["head_at"][j] = (job.blocked_at - EPOCH) * SECOND
        return columns["eligible"][j], columns["head_at"][j]

    def on_end(self, job: SlurmJob, episode: int, how: str, time: float) -> None:
        j, columns = job.key, self.columns
        if how.endswith("waiting"):
            self.over += 1
            return
        began, serial = self.began.pop(j)
        start = round(began * SECOND)
        stood = job.suspended * SECOND
        whole = start + self.whole_run[j] + stood
        # instants of Slurm are whole seconds: a job at its limit is killed within the second of its end
        is_whole = not how or (how == "timeout" and round(time * SECOND) > whole - SECOND)
        end = whole if is_whole else round(time * SECOND)
        outcome = timed.ENDED
        if how.startswith("preempted"):
            outcome = timed.PREEMPTED_REQUEUED if how.endswith("requeued") else timed.PREEMPTED
        elif how.startswith("node failed"):
            outcome = timed.FAILED_REQUEUED if how.endswith("requeued") else timed.NODE_FAILED
        first = len(self.nodes)
        table_index, each, rows = self.site.table_index, job.cpus_per_task, job.rows.tolist()
        self.nodes += [table_index[n] for n, _, _ in rows]
        of_tasks = self.tasks[j] > 0 and not job.whole
        self.units += [max(cpus // each, 1) if of_tasks else 1 for _, cpus, _ in rows]
        places = (first, len(self.nodes), 0, 0)
        self.records.append((start, end, self.since[j], stood, serial, j, episode, outcome, *places))
        for since, until in job.stands:
            span = ((since - EPOCH) * SECOND, min((until - EPOCH) * SECOND, end))
            self.stands.append((*span, self.since[j], 0, serial, j, episode, timed.STOOD, *places))
        if how.endswith("requeued"):
            self.since[j] = end
            columns["start"][j] = -1
        else:
            columns["end"][j], columns["ran"][j] = end, end - start - stood
            self.over += 1
        if self.glance is not None:
            self.glance(self.over)

    def outcomes(self) -> dict[str, Any]:
        """Return what became of the jobs, as `bridge.worlds.fast.replay.Schedule` takes it."""
        n = len(self.all)
        nothing = np.full(n, -1, np.int64)
        columns: dict[str, Any] = {name: np.array(values, np.int64) for name, values in self.columns.items()}
        for job in self.slurm.pending.values():
            if job.never:
                columns["never_at"][job.key] = self.all.submit[job.key]
            elif job.eligible and columns["eligible"][job.key] < 0:
                columns["eligible"][job.key] = max(
                    (job.eligible - EPOCH) * SECOND, int(self.all.submit[job.key])
                )
                if job.blocked_at:
                    columns["head_at"][job.key] = (job.blocked_at - EPOCH) * SECOND
        records, stands = (
            np.array(rows, timed.LIFE).view(np.recarray) for rows in (self.records, self.stands)
        )
        lives = Lives(records, np.array(self.nodes, np.int64), np.array(self.units, np.int64), stands)
        return dict(
            past=nothing,
            reserved=nothing.copy(),
            submit=self.all.submit,
            refused=np.array(self.refused, np.int64),
            since=np.array(self.since, np.int64),
            allocation=lives.allocations(n, self.arrays.classes),
            node_lives=lives,
            **columns,
        )


def scorer(prepared: "Scenario", first: int, last: int) -> Scorer:
    """Return what computes an order's scores of the jobs ``first:last``, as in all other replays."""
    n = last - first
    state = allocate_state(1, n, len(prepared.jobs.resources), window=1, users=len(prepared.share))
    reset(state, 0)
    episode.write(state, 0, 0, replace(prepared, cluster=None), first, last)
    state.constants[:2] = prepared.estimate.order.max() / SECOND, prepared.jobs.capacity[0]
    program = prepared.compiled.order.program.view(np.recarray)

    def score(keys: Sequence[int], now: int) -> Sequence[float]:
        state.scalars.now[0] = (now - EPOCH) * SECOND
        which = np.array(keys, np.int32)
        score_jobs(state, program, which, len(keys))
        bad = int(state.scalars.bad_score[0])
        if bad >= 0:
            what = f"the score of job {prepared.jobs.id[first + bad]} is not a finite number"
            remedy = "Guard divisions and logarithms, for example log2(max(n, 2))."
            raise BridgeError(what, where=f"order {prepared.compiled.order.name!r}", remedy=remedy)
        scores: list[float] = state.stack[0, : len(keys)].tolist()
        return scores

    return score


def replay_by_slurm(
    prepared: "Scenario",
    progress: Callable[[int], None] | None = None,
    part: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Replay jobs by a site's Slurm; return a schedule's fields, a start of -1: never. `part`: not all."""
    world = LogReplay(prepared, part)
    world.play(prepared.seed, progress)
    return world.outcomes()
