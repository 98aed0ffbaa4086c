"""The world of Slurm's schedulers: it moves time, ends jobs, frees nodes and lets the passes come."""

import abc
import heapq
from typing import Any

import numpy as np

from bridge.base.arrays import Floats
from bridge.scheduler.slurm import arrays as at
from bridge.scheduler.slurm.agent_passes import (
    AgentDecisions,
    Steps,
    agent_backfill_pass,
    agent_main_pass,
)
from bridge.scheduler.slurm.arrays import ArrayStore
from bridge.scheduler.slurm.backfill_pass import backfill_pass
from bridge.scheduler.slurm.controller import Controller
from bridge.scheduler.slurm.jobs import PENDING, SlurmJob
from bridge.scheduler.slurm.main_pass import main_pass
from bridge.scheduler.slurm.marks import marks_plans
from bridge.scheduler.slurm.quick import Quick
from bridge.scheduler.slurm.site import Site
from bridge.worlds.fast.slurm import clock_kernels
from bridge.worlds.fast.slurm import loop_kernels as kernels
from bridge.worlds.fast.slurm.own_clock import KINDS, OwnClock

#: The other nodes of a killed job are free after so much of the time that its first one takes.
EARLIER = 0.6
_FAR = float("inf")
_OF_JOBS = ("work", "delay", "left", "since", "token", "run")
_advance, _run_now = Quick(kernels.advance), Quick(kernels.run_now)


class SlurmWorld(abc.ABC):
    """Plays jobs on a site; instants are s of a clock whose 0 is `epoch`, in s since 1970.

    Attributes:
        agent: what of the passes an agent decides; `instant` is the second of the pass in which it does.
        stops_at_starts: starts are noted before anything else happens.
        leaves_out: passes that provably do nothing are left out.
        heap: events but for ends and free nodes, which kernels have.
    """

    agent: AgentDecisions | None = None
    instant = 0
    stops_at_starts = False
    leaves_out = True

    def __init__(self, site: Site, slurm: Controller, epoch: int) -> None:
        self.site, self.slurm, self.epoch = site, slurm, epoch
        self.heap: list[tuple[float, int, str, Any]] = []
        self.ends_of_reservations: set[tuple[str, int]] = set()
        self.loop = ArrayStore(kernels.LoopArrays)
        self.loop.put(
            at=np.zeros(clock_kernels.SIZE),
            late=np.zeros(1),
            idle=np.zeros(clock_kernels.IDLE_SIZE),
            passes=np.zeros((0, 2)),
            counts=np.zeros(kernels.COUNTS_SIZE, np.int64),
            work=np.zeros(64),
            delay=np.zeros(64),
            left=np.zeros(64),
            since=np.zeros(64),
            token=np.full(64, -1),
            run=np.zeros(64, np.int64),
            times=np.zeros(64),
            events=np.zeros((64, kernels.EVENT_SIZE), np.int64),
            news_times=np.zeros(64),
        )
        self.loop.counts[kernels.EPOCH] = epoch
        self.loop.counts[kernels.EPILOG] = site.settings.epilog

    # --- what a world knows of its jobs

    @abc.abstractmethod
    def work_of(self, job: SlurmJob) -> float:
        """Return how long a job runs if nobody ends it, s; less than 0: to its limit."""

    def free_delay(self, job: SlurmJob) -> float:
        """Return how long after a job's end by itself its nodes are free, s; less than 0: see `freed`."""
        del job
        return -1.0

    @abc.abstractmethod
    def freed(self, job: SlurmJob, episode: int, ended: float, *, killed: bool) -> float:
        """Return when the last node of a run that ended is free."""

    @abc.abstractmethod
    def exit_code(self, job: SlurmJob) -> int:
        """Return the exit code of a job that ends by itself."""

    @abc.abstractmethod
    def on_start(self, job: SlurmJob, who: str, time: float) -> None:
        """Take note of a start."""

    def on_end(self, job: SlurmJob, episode: int, how: str, time: float) -> None:  # noqa: B027
        """Take note of the end of a run: `how` is empty if the job ended by itself."""

    def counts_pauses(self, job: SlurmJob) -> bool:
        """Tell whether a job's work is longer by the time for which it is suspended."""
        del job
        return True

    def happen_more(self, kind: str, what: Any, time: float, now: int) -> None:
        """Carry out an event of the world's own kinds."""
        raise NotImplementedError(kind)

    def expect(self, job: SlurmJob) -> None:
        """Take note of how long a job will run that has begun to wait."""
        loop, key = self.loop, job.key
        if key >= len(loop.work):
            loop.make_room(key + 1, *_OF_JOBS)
        loop.work[key], loop.delay[key], loop.token[key] = self.work_of(job), self.free_delay(job), -1

    # --- events

    def push(self, time: float, kind: str, what: object) -> None:
        """Let something happen at an instant."""
        counts = self.loop.counts
        counts[kernels.PUSHED] += 1
        heapq.heappush(self.heap, (time, int(counts[kernels.PUSHED]), kind, what))

    def now(self, time: float) -> int:
        """Return the whole second of an instant, since 1970."""
        return int(self.epoch + time // 1)

    def play_freely(self, clock: OwnClock) -> None:
        """Let passes come by Slurm's own rules, until nothing can happen any more; no agent decides."""
        for _ in self.steps(clock):
            raise AssertionError("nobody answers")

    def play_recorded(self, passes: Floats) -> None:
        """Let passes come when they were recorded: [·, 2] instants, and places among `KINDS`, in order."""
        self.loop.put(passes=passes)
        self.loop.counts[kernels.IS_RECORDED] = 1
        for _ in self._play(None):
            raise AssertionError("nobody answers")

    def steps(self, clock: OwnClock) -> Steps:
        """Let passes come by Slurm's own rules, up to each decision of an agent, until the end."""
        self.loop.put(at=clock.at, late=clock.late)
        return self._play(clock)

    def _play(self, clock: OwnClock | None) -> Steps:
        loop, slurm = self.loop, self.slurm
        while not self._is_over():
            self._prepare()
            event, order = self.heap[0][:2] if self.heap else (_FAR, 0)
            tree = slurm.priorities.tree()
            kind = int(_advance(slurm.store.bundle, tree, loop.bundle, event, order))
            self._take_news()
            if kind < kernels.EVENT:
                time, before = float(loop.at[clock_kernels.NEXT]), slurm.n_starts
                yield from self._decide(time, KINDS[kind])
                if clock is not None:
                    started, changed = slurm.n_starts > before, self._writes(KINDS[kind], time)
                    clock.passed(time, KINDS[kind], started=started, changed=changed)
                    if KINDS[kind] == "backfill":
                        loop.counts[kernels.HAS_MARKED] = changed
            elif kind == kernels.EVENT:
                self._happen_next(clock)
            elif kind == kernels.DRAWS:
                assert clock is not None
                clock.draw_more()
            elif kind == kernels.ROOM:
                self._make_room()
            elif kind == kernels.OVER:
                return

    def _is_over(self) -> bool:
        """Tell whether nothing more is to be played."""
        return False

    def _happen_next(self, clock: OwnClock | None) -> None:
        """Carry out the next event of those that kernels do not have."""
        time, _, kind, what = heapq.heappop(self.heap)
        self.happen(time, kind, what)
        if clock is not None and kind != "moment":
            at_once = kind == "free" and (self.site.settings.epilog or bool(what[2] and what[4]))
            clock.tell(time, asks=kind != "reservation", at_once=at_once)

    def _prepare(self) -> None:
        """Write what kernels read of the world and of the schedulers, and let there be room."""
        slurm, counts = self.slurm, self.loop.counts
        slurm.sort_running()
        slurm.write_state()
        line, store = slurm.line, slurm.store
        line.forget_odd()
        if not line.odd:
            store.now[at.ODD_UNTIL] = at.FAR
        is_pythons = bool(
            line.odd or slurm.preempts or slurm.reservations or slurm.site.parameters.bf_licenses
        )
        is_pythons = is_pythons or bool(not line.is_valid or store.now[at.RESERVATIONS])
        main = backfill = is_pythons
        if (agent := self.agent) is not None:
            main, backfill = is_pythons or agent.picks, is_pythons or agent.backfills or bool(slurm.ranks)
        counts[kernels.MAIN_BY_PYTHON : kernels.STOPS + 1] = (
            *(main, backfill, not self.leaves_out, self.stops_at_starts),
        )

    def _make_room(self) -> None:
        """Let there be room for a pass and for an end."""
        loop, store = self.loop, self.slurm.store
        self.slurm.rows.make_room()
        loop.make_room(len(store.news), "news_times")
        more = int(loop.counts[kernels.N_EVENTS] + 2 * store.now[at.N_WAITING] + 64)
        loop.make_room(more, "times", "events")

    def _take_news(self) -> None:
        """Take note of what kernels did."""
        slurm, store = self.slurm, self.slurm.store
        if not (count := int(store.now[at.N_NEWS])):
            slurm.take_changes()
            return
        instants, times = store.news[:count, at.NEWS_TIME].tolist(), self.loop.news_times[:count].tolist()
        for news, now, time in zip(slurm.take_news(), instants, times, strict=True):
            job = news.job
            if news.kind == at.STARTED_NEWS:
                self.on_start(job, news.by, time)
            elif news.kind == at.ENDED_NEWS:
                job.exit_code = self.exit_code(job)
                slurm.resume_those_suspended_by(job, now)
                self.on_end(job, job.episode, "", time)
                if self.loop.delay[job.key] < 0:
                    self._complete(job, job.episode, time)
                if slurm.ended:
                    self._carry_out(time)

    def _decide(self, time: float, kind: str) -> Steps:
        """Carry out a pass, some decisions of which may be an agent's."""
        now, slurm, agent = self.now(time), self.slurm, self.agent
        self.instant = now
        if agent is not None and agent.picks and kind in ("default", "full"):
            yield from agent_main_pass(slurm, now, agent, full=kind == "full")
            self._carry_out(time)
        elif agent is not None and agent.backfills and kind == "backfill":
            yield from agent_backfill_pass(slurm, now, agent)
            self._carry_out(time)
        else:
            self.happen(time, kind, None)

    def _writes(self, kind: str, time: float) -> bool:
        """Tell whether a pass wrote to a waiting job's record: its priority, its plan, or why it waits."""
        slurm = self.slurm
        if not slurm.pending:
            return False
        if kind == "backfill":
            return bool(slurm.has_barred) or marks_plans(slurm, self.now(time))
        writes = slurm.has_skipped or slurm.has_barred
        return kind == "prio" or (kind in ("default", "full") and bool(writes))

    def happen(self, time: float, kind: str, what: Any) -> None:
        """Carry out an event or a pass."""
        now, slurm = self.now(time), self.slurm
        if kind == "free":
            job, nodes, is_last, requeues, _ = what
            self._free(job, nodes, is_last, requeues, now)
        elif kind == "default" or kind == "full":
            main_pass(slurm, now, full=kind == "full")
        elif kind == "backfill":
            backfill_pass(slurm, now)
        elif kind == "limits":
            slurm.check_limits(now)
        elif kind == "prio":
            slurm.run_period(now)
        elif kind == "reservation":
            slurm.take_priorities()
            slurm.version += 1
            slurm.line.is_valid = 0
            self._end_reservation(str(what), now)
            slurm.write_rows()
        elif kind != "moment":
            slurm.version += 1
            if kind != "submit":
                slurm.take_priorities()
                slurm.line.is_valid = 0
            self.happen_more(kind, what, time, now)
            if kind != "submit":
                slurm.write_rows()
        if slurm.started or slurm.ended:
            self._carry_out(time)

    def _carry_out(self, time: float) -> None:
        """Give the payloads what the state decided: starts, kills, suspensions."""
        slurm, loop = self.slurm, self.loop
        for job, who in slurm.started:
            self.on_start(job, who, time)
            work = float(loop.work[job.key])
            self.let_run(job, time, work if work >= 0 else float(job.limit))
        for job, how in slurm.ended:
            key = job.key
            if how in ("suspended", "resumed") and not self.counts_pauses(job):
                continue
            if how == "suspended":
                loop.left[key] -= time - loop.since[key]
                loop.token[key] = -1
            elif how == "resumed":
                self.let_run(job, time, float(loop.left[key]))
            elif not how.endswith("waiting"):
                loop.token[key] = -1
                requeues = how.endswith("requeued")
                episode = job.episode - requeues
                self.on_end(job, episode, how, time)
                self._complete(job, episode, time, requeues=requeues, killed=True)
                if requeues:
                    self.expect(job)
            else:
                self.on_end(job, job.episode, how, time)
        slurm.started.clear()
        slurm.ended.clear()

    def let_run(self, job: SlurmJob, time: float, work: float) -> None:
        """Let a job's payload run from an instant on."""
        loop = self.loop
        loop.make_room(int(loop.counts[kernels.N_EVENTS]) + 3, "times", "events")
        _run_now(loop.bundle, job.key, job.run, time, work)

    def _complete(
        self, job: SlurmJob, episode: int, ended: float, *, requeues: bool = False, killed: bool = False
    ) -> None:
        """Let the nodes of an ended job be free; of a killed one, the first, which ran the script, last."""
        freed = self.freed(job, episode, ended, killed=killed)
        first = job.nodes & -job.nodes if killed else job.nodes
        if others := job.nodes & ~first:
            self.push(ended + EARLIER * (freed - ended), "free", (job, others, False, False, killed))
        self.push(freed, "free", (job, first, True, requeues, killed))

    def _free(self, job: SlurmJob, nodes: int, is_last: bool, requeues: bool, now: int) -> None:
        self.slurm.nodes_freed(nodes)
        if not is_last:
            return
        job.completing = False
        if requeues and job.state == PENDING:
            self.slurm.requeued(job, now)

    # --- reservations

    def watch_reservations(self) -> None:
        """Let each reservation that there is end in time."""
        for one in self.slurm.reservations.values():
            key = (one.name, one.end)
            if key not in self.ends_of_reservations:
                self.ends_of_reservations.add(key)
                self.push(one.end - self.epoch + 1.5, "reservation", one.name)

    def _end_reservation(self, name: str, now: int) -> None:
        one = self.slurm.reservations.get(name)
        if one is None or one.end > now:
            return
        for job in self.slurm.pending.values():
            if job.reservation == name:
                job.held, job.priority = True, 0
        del self.slurm.reservations[name]
