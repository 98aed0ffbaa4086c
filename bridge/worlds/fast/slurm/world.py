"""The world of Slurm's schedulers: it moves time, ends jobs, frees nodes and lets the passes come."""

import abc
import heapq
import itertools
from dataclasses import dataclass
from typing import Any

from bridge.scheduler.slurm.agent_passes import (
    AgentDecisions,
    Steps,
    agent_backfill_pass,
    agent_main_pass,
)
from bridge.scheduler.slurm.backfill_pass import backfill_idle_until, backfill_pass
from bridge.scheduler.slurm.controller import Controller
from bridge.scheduler.slurm.jobs import PENDING, RUNNING, SUSPENDED, SlurmJob
from bridge.scheduler.slurm.main_pass import main_idle_until, main_pass
from bridge.scheduler.slurm.marks import marks_plans
from bridge.scheduler.slurm.site import Site
from bridge.worlds.fast.slurm.own_clock import Idle, OwnClock

#: The other nodes of a killed job are free after so much of the time that its first one takes.
EARLIER = 0.6
#: With the own clock jobs that wait are given up when nothing has happened for so long, s.
PATIENCE = 2 * 86_400.0
_FAR = float("inf")


@dataclass
class _Run:
    """One job's payload: s of work left, and since when it runs."""

    left: float
    since: float
    token: int


class SlurmWorld(abc.ABC):
    """Plays jobs on a site; instants are s of a clock whose 0 is `epoch`, in s since 1970."""

    #: What of the passes an agent decides, and the whole second of the pass in which it does.
    agent: AgentDecisions | None = None
    instant = 0

    def __init__(self, site: Site, slurm: Controller, epoch: int) -> None:
        self.site, self.slurm, self.epoch = site, slurm, epoch
        self.runs: dict[int, _Run] = {}
        self.heap: list[tuple[float, int, int, str, Any]] = []
        self.counter = itertools.count()
        self.ends_of_reservations: set[tuple[str, int]] = set()
        self.has_marked = False  # the last backfill pass wrote to records

    # --- what a world knows of its jobs

    @abc.abstractmethod
    def work_of(self, job: SlurmJob) -> float:
        """Return how long a job runs if nobody ends it, s."""

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

    # --- events

    def push(self, time: float, kind: str, what: object, rank: int = 0) -> None:
        """Let something happen at an instant; of one instant, passes come last."""
        heapq.heappush(self.heap, (time, rank, next(self.counter), kind, what))

    def now(self, time: float) -> int:
        """Return the whole second of an instant, since 1970."""
        return int(self.epoch + time // 1)

    def play_freely(self, clock: OwnClock) -> None:
        """Let passes come by Slurm's own rules, until nothing can happen any more; no agent decides."""
        for _ in self.steps(clock):
            raise AssertionError("nobody answers")

    def steps(self, clock: OwnClock) -> Steps:
        """Let passes come by Slurm's own rules, up to each decision of an agent, until the end."""
        epilog = self.site.settings.epilog
        while self.heap or self._may_go_on(clock):
            event = self.heap[0][0] if self.heap else _FAR
            due = clock.next(event, self._idle() if self.heap else Idle())
            if due is not None:
                before = self.slurm.n_starts
                if self.agent is None:
                    self.happen(*due, None)
                else:
                    yield from self._decide(*due)
                started = self.slurm.n_starts > before
                changed = self._writes(due[1], due[0])
                clock.passed(*due, started=started, changed=changed)
                if due[1] == "backfill":
                    self.has_marked = changed
                continue
            time, _, _, kind, what = heapq.heappop(self.heap)
            self.happen(time, kind, what)
            if kind != "moment":
                at_once = kind == "free" and (epilog or bool(what[2] and what[4]))
                asks = kind not in ("end", "reservation")  # an end asks when its nodes answered
                clock.tell(time, asks=asks, at_once=at_once)

    def _decide(self, time: float, kind: str) -> Steps:
        """Carry out a pass, decisions of which are an agent's."""
        assert self.agent is not None
        now, slurm = self.now(time), self.slurm
        self.instant = now
        if self.agent.picks and kind in ("default", "full"):
            yield from agent_main_pass(slurm, now, self.agent, full=kind == "full")
            self._carry_out(time)
        elif self.agent.backfills and kind == "backfill":
            yield from agent_backfill_pass(slurm, now, self.agent)
            self._carry_out(time)
        else:
            self.happen(time, kind, None)

    def _writes(self, kind: str, time: float) -> bool:
        """Tell whether a pass wrote to a waiting job's record: its priority, its plan, or why it waits."""
        slurm = self.slurm
        if not slurm.pending:
            return False
        if kind == "backfill":
            return slurm.has_barred or marks_plans(slurm, self.now(time))
        return kind == "prio" or (kind in ("default", "full") and self._main_writes())

    def _main_writes(self) -> bool:
        """Tell whether the last main pass wrote why a job waits."""
        return self.slurm.has_skipped or self.slurm.has_barred

    def _idle(self) -> Idle:
        """Return until when passes do nothing but write why jobs wait; full ones may not even do that."""
        slurm, epoch = self.slurm, self.epoch
        full, writes = main_idle_until(slurm, full=True) - epoch, bool(slurm.pending) and self._main_writes()
        return Idle(
            slurm.limits_due - epoch,
            full,
            main_idle_until(slurm, full=False) - epoch,
            backfill_idle_until(slurm) - epoch,
            -epoch if writes else full,
            writes,
            bool(slurm.pending) and self.has_marked,
        )

    def _may_go_on(self, clock: OwnClock) -> bool:
        return bool(self.slurm.running) or (bool(self.slurm.pending) and clock.idle < PATIENCE)

    def happen(self, time: float, kind: str, what: Any) -> None:
        """Carry out an event or a pass."""
        now, slurm = self.now(time), self.slurm
        if kind == "end":
            job, token = what
            self._end(job, token, time)
        elif kind == "free":
            job, nodes, is_last, requeues, _ = what
            self._free(job, nodes, is_last, requeues, now)
        elif kind == "default" or kind == "full":
            main_pass(slurm, now, full=kind == "full")
        elif kind == "backfill":
            backfill_pass(slurm, now)
        elif kind == "limits":
            slurm.check_limits(now)
        elif kind == "prio":
            slurm.priorities.run_period(slurm.pending.values(), slurm.running.values(), now)
            slurm.line.see_new_priorities()
        elif kind == "reservation":
            slurm.version += 1
            slurm.line.is_valid = False
            self._end_reservation(str(what), now)
            slurm.write_rows()
        elif kind != "moment":
            slurm.version += 1
            slurm.line.is_valid = slurm.line.is_valid and kind == "submit"
            self.happen_more(kind, what, time, now)
            if kind != "submit":
                slurm.write_rows()
        if slurm.started or slurm.ended:
            self._carry_out(time)

    def _carry_out(self, time: float) -> None:
        """Give the payloads what the state decided: starts, kills, suspensions."""
        slurm = self.slurm
        for job, who in slurm.started:
            self.on_start(job, who, time)
            self._run(job, time, self.work_of(job))
        for job, how in slurm.ended:
            run = self.runs.get(job.key)
            if how in ("suspended", "resumed") and not self.counts_pauses(job):
                continue
            if how == "suspended" and run is not None:
                run.left -= time - run.since
                run.token += 1
            elif how == "resumed" and run is not None:
                self._run(job, time, run.left)
            elif not how.endswith("waiting"):
                self.runs.pop(job.key, None)
                requeues = how.endswith("requeued")
                episode = job.episode - requeues
                self.on_end(job, episode, how, time)
                self._complete(job, episode, time, requeues=requeues, killed=True)
            else:
                self.on_end(job, job.episode, how, time)
        slurm.started.clear()
        slurm.ended.clear()

    def _run(self, job: SlurmJob, time: float, work: float) -> None:
        token = self.runs[job.key].token + 1 if job.key in self.runs else next(self.counter)
        self.runs[job.key] = _Run(work, time, token)
        self.push(time + work, "end", (job, token))

    def _end(self, job: SlurmJob, token: int, time: float) -> None:
        run = self.runs.get(job.key)
        if run is None or run.token != token or job.state not in (RUNNING, SUSPENDED):
            return
        del self.runs[job.key]
        self.slurm.finish(job, self.now(time), self.exit_code(job))
        self.on_end(job, job.episode, "", time)
        self._complete(job, job.episode, time)

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
