"""The time-stepped pool behind the wire: a step every 300 s, answered one second after it has begun.

Step k begins at 300 k s, and its tick comes at 300 k + 1 s, so that all that happened by the step's beginning
is known at it, however long messages take. What messages tell before is collected; at the tick the pool
learns of it, the policy answers, and what is due starts. A job of L whole steps therefore takes 300 L - 1 s:
it ends as a step begins, and is known to have ended in that step's tick.
"""

from dataclasses import dataclass, field
from typing import Any

from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.pool.attempts import Attempt, PoolJob, plain
from bridge.pool.batch import Arrival, LivePool
from bridge.pool.heuristics import PoolActionFunction
from bridge.pool.jobset import MOST_UNITS, STEP_SECONDS
from bridge.pool.settings import PoolConfig
from bridge.scheduler.names import Kill
from bridge.wire import events as ev
from bridge.wire.times import MICRO
from bridge.worlds.batsim.attempts import KILLING, REGISTERED, refuse_static, refuse_unrepeatable
from bridge.worlds.batsim.estimates import Believe, estimate_from_series, number_of
from bridge.worlds.batsim.wire_scheduler import PlacementConfig, WireScheduler, by_submission

#: Length of a step, and how long behind its beginning its tick comes, microseconds.
STEP, LAG = STEP_SECONDS * MICRO, MICRO
#: Steps that a tick may come late; the time of a simulation does not jump.
MOST_LATE = 1000


@dataclass(frozen=True)
class PoolDispatcherConfig(PlacementConfig):
    """Configuration of a pool's dispatcher; a unit of the pool is one host.

    `answer`: the policy; for one simulation only, since it may count its answers.
    """

    answer: PoolActionFunction
    settings: PoolConfig = field(default_factory=PoolConfig)
    kill: Kill = "none"
    believe: Believe = estimate_from_series


class PoolDispatcher(WireScheduler[Attempt]):
    """Runs one live pool: applies messages, and sends its decisions.

    `tickets`: the pool's jobs by their number there. Raises BridgeError: the settings ask for the oracle
    clamp.
    """

    def __init__(self, setup: PoolDispatcherConfig) -> None:
        super().__init__(setup)
        self._setup = setup
        self.registers = setup.kill != "none"
        self.live = LivePool(setup.settings, setup.kill)
        self.tickets: list[PoolJob] = []
        self._next = STEP + LAG  # the tick that is asked for
        self._called = False  # in this message
        self._arrived: list[PoolJob] = []  # since the last tick, as is what follows
        self._finished: list[Attempt] = []
        self._over: set[int] = set()  # numbers of jobs that are over, whether the pool has seen it or not
        self._held: list[PoolJob] = []  # due, but their hosts are not free or they are not registered yet
        self._registering = False
        self._vain = 0

    @property
    def _busy(self) -> bool:
        return self._more_jobs or self._unfinished > 0

    def _begin(self, begin: ev.SimulationBegins) -> None:
        setup = self._setup
        hosts = len(begin.compute)
        if hosts < setup.settings.units:
            what = f"the platform has {hosts:,} compute hosts, the pool {setup.settings.units} units"
            raise BridgeError(what, remedy="Use a larger platform, or a smaller pool (--pool-units).")
        if self.registers:
            refuse_static(begin)
            self._registering = True
        elif begin.dynamic_jobs:
            self._say(ev.FinishRegistration)
        self.live.decide(setup.answer)  # step 0, in which there is no job yet
        self._call()

    def _call(self) -> None:
        self._say(ev.CallMeLater, max(self._next, self._now + 1))

    # What the platform tells.

    def _on_wake_up(self) -> None:
        self._called = True

    def _on_other_event(self, event: ev.Event) -> None:
        if isinstance(event, ev.JobKilled):
            self._register_again(event)
        elif isinstance(event, ev.MachineAvailability):
            what = "hosts leave or come back, but the size of a time-stepped pool is fixed"
            where = f"time {event.time / MICRO:.6f} s"
            raise BridgeError(what, where=where, remedy="Leave out --events.")

    def _make_decisions(self) -> None:
        called, self._called = self._called, False
        if self.ended:
            return
        if called and self._now >= self._next:
            self._tick()
        self._start_held()
        if self._registering and not self._busy:
            self._registering = False
            self._say(ev.FinishRegistration)

    def _submit(self, event: ev.JobSubmitted) -> None:
        """Take note of a job, or reject it for what it asks; or an attempt of ours is announced."""
        job = self.jobs.get(event.job_id)
        if job is not None and job.state == REGISTERED:
            job.state = "waiting"
            return
        attempt = Attempt(event.job_id, event.submit, event.res)
        self._add(attempt)
        most = min(self._setup.settings.units, MOST_UNITS)
        attempt.storage, why = self._profiles.storage_of(event)
        if not why and not 1 <= event.res <= most:
            why = f"asks for {event.res} hosts; a job of this pool has 1 to {most}"
        if why:
            self._reject(attempt, why)
            return
        self._refuse_unfit(event)
        self._arrived.append(PoolJob(event, [attempt]))
        self._unfinished += 1

    def _refuse_unfit(self, event: ev.JobSubmitted) -> None:
        longest, believed = self._setup.settings.horizon - 1, self._setup.believe(event, 0)
        where = f"job {event.job_id}"
        if not 1 <= believed <= longest:
            what = f"is believed to run {believed} steps, but only 1 to {longest} can be booked"
            raise BridgeError(what, where=where, remedy="Leave the job out.")
        if not self.registers:
            return
        assert self._begin_event is not None
        refuse_unrepeatable(event, self._profiles, self._begin_event)

    def _complete(self, event: ev.JobCompleted) -> None:
        attempt, was = self._finish(event, "running", KILLING)
        if was != KILLING or event.state != "COMPLETED_KILLED":
            # of one that ends in the instant in which it is killed, too, the end counts
            self._finished.append(attempt)
            self._close(attempt)

    def _close(self, attempt: Attempt) -> None:
        """A job is over; if the pool believes that it waits, it learns of it when it would start."""
        if attempt.index in self._over:  # its registration and its start were refused
            return
        self.tickets[attempt.index].over = True
        self._over.add(attempt.index)
        self._unfinished -= 1

    def _register_again(self, event: ev.JobKilled) -> None:
        """Kills were carried out: the jobs wait again, as other jobs."""
        assert self._begin_event is not None
        for job_id in event.job_ids:
            attempt = self.jobs.get(job_id)
            if attempt is None or attempt.state != "COMPLETED_KILLED":
                continue
            ticket = self.tickets[attempt.index]
            if ticket.over or ticket.current is not attempt:
                continue
            attempt.progress = plain(event.progress.get(job_id))
            self._decisions += ticket.register_next_attempt(
                self._now, self._profiles, self._begin_event.acknowledges
            )
            self.jobs[ticket.current.job_id] = ticket.current

    # Steps.

    def _tick(self) -> None:
        if self._now - self._next > MOST_LATE * STEP:
            raise BridgeError(f"the wake-up that was asked for at {self._next / MICRO:.6f} s comes only now")
        while self._next <= self._now:  # one, unless the call came late
            self._next += STEP
            self._step()
            if not self._busy:
                return
        self._call()

    def _step(self) -> None:
        """Tell the pool what has happened, let the policy answer, kill, and note what is due."""
        live, believe = self.live, self._setup.believe
        self.passes += 1
        arrived = sorted(self._arrived, key=lambda ticket: by_submission(ticket.event))
        if arrived or self._finished:
            self._vain = 0
        arrivals = []
        for ticket in arrived:
            ticket.current.index = len(self.tickets)
            self.tickets.append(ticket)
            number = number_of(ticket.event.job_id) or len(self.tickets)
            arrivals.append(Arrival(number, ticket.event.res, believe(ticket.event, 0)))
        for j in live.step(self._over, arrivals, lambda j, run: believe(self.tickets[j].event, run)):
            attempt = self.tickets[j].current
            self._reject(
                attempt, f"{counted(self._setup.settings.backlog, 'job waits', 'jobs wait')} already"
            )
            self._close(attempt)
        for attempt in self._finished:
            attempt.end_step = live.now
        self._arrived, self._finished = [], []
        if not self._busy:
            return
        killed = live.decide(self._setup.answer)
        self._count_vain(bool(killed))
        self._kill(killed)
        self._held += [self.tickets[j] for j in live.due() if not self.tickets[j].over]

    def _count_vain(self, killed: bool) -> None:
        """Give up if jobs wait and the policy starts none, or kills again and again: it would not end."""
        self._vain += self._unfinished > 0 and (killed or bool(self.live.idle[0]))
        if self._vain > self._setup.settings.last_step:
            raise BridgeError(
                "the policy lets time pass in vain: "
                f"{counted(self._unfinished, 'job is', 'jobs are')} unfinished, and in "
                f"{counted(self._vain, 'step')} with an empty pool, or with kills, none has come or ended",
                where=f"step {self.live.now}",
                remedy="Train agents without `idle`, and with a limit to `most_kills`.",
            )

    def _kill(self, killed: list[int]) -> None:
        ids = []
        for j in killed:
            ticket = self.tickets[j]
            attempt = ticket.current
            if ticket in self._held:  # it has not really begun
                self._held.remove(ticket)
            elif not ticket.over:
                attempt.state, attempt.end_step = KILLING, self.live.now
                attempt.belief = int(self.live.state.jobs.believed[0, j])
                ids.append(attempt.job_id)
        if ids:
            self._say(ev.KillJob, tuple(ids))

    def _start_held(self) -> None:
        """Start what is due, as far as hosts are free: those of killed jobs are once their end is told."""
        held = []
        for ticket in self._held:
            attempt = ticket.current
            if ticket.over:
                continue
            if attempt.state != "waiting" or attempt.n_hosts > self._machine.free:
                held.append(ticket)
                continue
            attempt.hosts = self._machine.place(attempt.n_hosts)
            attempt.start_step = self.live.now
            self._execute(attempt)
        self._held = held

    def on_refused(self, decision: ev.Decision, why: str) -> None:
        """See `WireScheduler.on_refused`; a job that cannot be registered again is lost as well."""
        if isinstance(decision, ev.KillJob):
            for job_id in decision.job_ids:
                self.jobs[job_id].state = "running"  # it runs on
        elif isinstance(decision, (ev.ExecuteJob, ev.RegisterJob)) and decision.job_id in self.jobs:
            self._lose(decision, why)
            self._close(self.jobs[decision.job_id])

    def report_fields(self, job: Attempt) -> dict[str, Any]:
        first = self.tickets[job.index].event.job_id if job.index >= 0 else job.job_id
        return {
            "again": first if job.number > 1 else "",
            "attempt": job.number,
            "start_step": job.start_step if job.start_step >= 0 else None,
            "end_step": job.end_step if job.end_step >= 0 else None,
            "progress": job.progress,
        }
