"""A case played again: the world moves time and tells the state of Slurm what happens; passes are clocked."""

import heapq
import itertools
from dataclasses import dataclass, field
from typing import Any

from bridge.cluster.imported import mending
from bridge.cluster.node_groups import format_nodes
from bridge.scheduler.slurm.backfill_pass import backfill_pass
from bridge.scheduler.slurm.controller import Controller
from bridge.scheduler.slurm.jobs import PENDING, RUNNING, SUSPENDED, SlurmJob
from bridge.scheduler.slurm.main_pass import main_pass
from bridge.scheduler.slurm.masks import bits
from bridge.scheduler.slurm.site import Site
from bridge.worlds.fast.slurm.case import FREE_DELAY, KILLED_DELAY, PAYLOAD_DELAY, SlurmCase, runtime_of
from bridge.worlds.fast.slurm.conf import CASE_DEFAULTS, site_of
from bridge.worlds.fast.slurm.operator import Operator
from bridge.worlds.fast.slurm.own_clock import OwnClock
from bridge.worlds.fast.slurm.requests import Names, jobs_of

#: A healthy node that is set DOWN registers again so much later, s (ReturnToService=2).
REGISTRATION_DELAY = 1.2
#: The other nodes of a killed job are free after so much of the time that its first one takes.
EARLIER = 0.6
_FAR = float("inf")
#: With the own clock jobs that wait are given up when nothing has happened for so long, s.
PATIENCE = 2 * 86_400.0


@dataclass(frozen=True, slots=True)
class Start:
    """One start: what `--out` writes."""

    job: str
    episode: int
    start: float
    nodes: str
    by: str


@dataclass
class _Run:
    """One job's payload: s of work left, and since when it runs."""

    left: float
    since: float
    token: int


@dataclass
class SlurmPlayer:
    """Plays one case; `starts` in the order of time."""

    case: SlurmCase
    starts: list[Start] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    clock: str = "recorded"
    seed: int = 0

    def __post_init__(self) -> None:
        case = self.case
        accounting = case.folder / "assoc.txt" if case.has_accounting else None
        self.site: Site = site_of(case.folder / "cluster.conf", accounting, CASE_DEFAULTS)
        self.slurm = Controller(self.site)
        self.names = Names()
        self.operator = Operator(self.slurm, self.names, case.epoch)
        self.labels: dict[int, str] = {}
        self.rows: dict[int, dict[str, str]] = {}
        self.runs: dict[int, _Run] = {}
        self.heap: list[tuple[float, int, int, str, object]] = []
        self.counter = itertools.count()
        self.next_key = 0
        self.ends_of_reservations: set[tuple[str, int]] = set()

    # --- events

    def push(self, time: float, kind: str, what: object, rank: int = 0) -> None:
        """Let something happen at an instant; of one instant, passes come last."""
        heapq.heappush(self.heap, (time, rank, next(self.counter), kind, what))

    def play(self) -> list[Start]:
        """Play the case with one of the clocks; BridgeError names the place of what it cannot be."""
        for time, command in self.case.events:
            self.push(time, "command", command)
        for number, row in enumerate(self.case.jobs, start=2):
            if (submitted_at := self.case.submission(row["job"])) is not None:
                self.push(submitted_at, "submit", (row, number))
        if self.clock == "own":
            self._play_freely()
            return self.starts
        for time, kind in self.case.passes:
            self.push(time, kind, None, 1)
        self._fill_periods()
        while self.heap:
            time, _, _, kind, what = heapq.heappop(self.heap)
            self._happen(time, kind, what)
        return self.starts

    def _play_freely(self) -> None:
        """Let passes come by Slurm's own rules, until nothing can happen any more."""
        settings, parameters = self.site.settings, self.site.parameters
        first = min((event[0] for event in self.heap), default=0.0)
        period = 0 if settings.basic else self.site.cluster.priority.calculation_period
        clock = OwnClock(parameters, first, self.seed, has_backfill=not settings.builtin, period=period)
        while self.heap or self._may_go_on(clock):
            event = self.heap[0][0] if self.heap else _FAR
            time, kind = clock.next()
            if time < event:
                before = len(self.starts)
                self._happen(time, kind, None)
                clock.passed(time, kind, changed=len(self.starts) > before)
                continue
            time, _, _, kind, what = heapq.heappop(self.heap)
            self._happen(time, kind, what)
            clock.tell(time, at_once=kind == "free" and (settings.epilog or bool(what[2] and what[4])))  # type: ignore[index]

    def _may_go_on(self, clock: "OwnClock") -> bool:
        return bool(self.slurm.running) or (bool(self.slurm.pending) and clock.idle < PATIENCE)

    def _fill_periods(self) -> None:
        """Let priorities be computed where that is not recorded, because no job waited."""
        times = [time for time, kind in self.case.passes if kind == "prio"]
        period = float(self.site.cluster.priority.calculation_period)
        if self.site.settings.basic or not self.case.passes:
            return
        first, last = self.case.passes[0][0], self.case.passes[-1][0]
        times = times or [first + period]
        time = times[0] - period
        while time > first:
            self.push(time, "prio", None, 1)
            time -= period
        for before, after in itertools.pairwise([*times, last + period]):
            time = before + period
            while time < after - period / 2:
                self.push(time, "prio", None, 1)
                time += period

    def now(self, time: float) -> int:
        """Return the whole second of an instant, since 1970."""
        return int(self.case.epoch + time // 1)

    def _happen(self, time: float, kind: str, what: Any) -> None:
        now, slurm = self.now(time), self.slurm
        if kind == "submit":
            row, number = what
            self._submit(row, number, now)
        elif kind == "command":
            with mending(str(self.case.folder / "events.csv")):
                self.operator.run(str(what), now)
            self._watch_reservations()
            if slurm.down:
                self.push(time + REGISTRATION_DELAY, "registration", slurm.down)
        elif kind == "end":
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
            slurm.priorities.run_period([*slurm.pending.values(), *slurm.running.values()], now)
        elif kind == "registration":
            slurm.down &= ~what
        elif kind == "reservation":
            self._end_reservation(str(what), now)
        self._carry_out(time)

    def _submit(self, row: dict[str, str], number: int, now: int) -> None:
        with mending(f"{self.case.folder / 'jobs.csv'}:{number}"):
            jobs = jobs_of(row, self.site, self.names, self.case.epoch)
            runtime_of(row)
        for job in jobs:
            if reason := self.slurm.refuses(job):
                self.refused[row["job"]] = reason
                return
            job.key = self.next_key
            self.next_key += 1
            suffix = f"_{job.task}" if job.task >= 0 else f"+{job.het_offset}" if job.het else ""
            self.labels[job.key], self.rows[job.key] = row["job"] + suffix, row
            self.slurm.submit(job, now)

    def _carry_out(self, time: float) -> None:
        """Give the payloads what the state decided: starts, kills, suspensions."""
        slurm = self.slurm
        for job, who in slurm.started:
            nodes = format_nodes(self.site.nodes[n].name for n in bits(job.nodes))
            self.starts.append(Start(self.labels[job.key], job.episode, time, nodes, who))
            self._run(job, time, self.work_of(job))
        for job, how in slurm.ended:
            run = self.runs.get(job.key)
            if how in ("suspended", "resumed") and self.labels[job.key] in self.case.suspended:
                continue  # what is recorded of it has the time in between
            if how == "suspended" and run is not None:
                run.left -= time - run.since
                run.token += 1
            elif how == "resumed" and run is not None:
                self._run(job, time, run.left)
            elif not how.endswith("waiting"):
                self.runs.pop(job.key, None)
                requeues = how.endswith("requeued")
                episode = job.episode - requeues
                self._complete(job, episode, time, requeues=requeues, killed=True)
        slurm.started.clear()
        slurm.ended.clear()

    def _run(self, job: SlurmJob, time: float, work: float) -> None:
        token = self.runs[job.key].token + 1 if job.key in self.runs else next(self.counter)
        self.runs[job.key] = _Run(work, time, token)
        self.push(time + work, "end", (job, token))

    def _recorded(self, job: SlurmJob, episode: int) -> object:
        rows = self.case.recorded.get(self.labels[job.key], [])
        return rows[episode] if episode < len(rows) else None

    def work_of(self, job: SlurmJob) -> float:
        """Return how long a job runs if nobody ends it: as recorded, unless it was ended there."""
        planned, _ = runtime_of(self.rows[job.key])
        label = self.labels[job.key]
        rows = self.case.recorded.get(label, [])
        natural = planned + PAYLOAD_DELAY
        elapsed = rows[job.episode].elapsed if job.episode < len(rows) else None
        if elapsed is None:
            return natural
        was_ended = job.episode + 1 < len(rows) or elapsed < planned - 1
        return max(natural, elapsed + PAYLOAD_DELAY) if was_ended else elapsed

    def _freed(self, job: SlurmJob, episode: int, ended: float, *, killed: bool) -> float:
        rows = self.case.recorded.get(self.labels[job.key], [])
        delay = rows[episode].free_delay if episode < len(rows) else None
        return self.case.freed(ended, (KILLED_DELAY if killed else FREE_DELAY) if delay is None else delay)

    def _end(self, job: SlurmJob, token: int, time: float) -> None:
        run = self.runs.get(job.key)
        if run is None or run.token != token or job.state not in (RUNNING, SUSPENDED):
            return
        del self.runs[job.key]
        _, code = runtime_of(self.rows[job.key])
        self.slurm.finish(job, self.now(time), code)
        self._complete(job, job.episode, time)

    def _complete(
        self, job: SlurmJob, episode: int, ended: float, *, requeues: bool = False, killed: bool = False
    ) -> None:
        """Let the nodes of an ended job be free; of a killed one, the first, which ran the script, last."""
        freed = self._freed(job, episode, ended, killed=killed)
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

    def _watch_reservations(self) -> None:
        for one in self.slurm.reservations.values():
            key = (one.name, one.end)
            if key not in self.ends_of_reservations:
                self.ends_of_reservations.add(key)
                self.push(one.end - self.case.epoch + 1.5, "reservation", one.name)

    def _end_reservation(self, name: str, now: int) -> None:
        one = self.slurm.reservations.get(name)
        if one is None or one.end > now:
            return
        for job in self.slurm.pending.values():
            if job.reservation == name:
                job.held, job.priority = True, 0
        del self.slurm.reservations[name]
