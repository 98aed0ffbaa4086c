"""A scheduler behind the wire: jobs and hosts of one simulation, followed message by message.

The event scheduler (`bridge.worlds.batsim.dispatcher`) and the time-stepped pool
(`bridge.pool.batsim_dispatcher`) say what they make of a submission, a completion, a wake-up, and what they
decide once a message has been applied.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic

from bridge.base.errors import BridgeError
from bridge.base.jsontext import shortened
from bridge.wire import events as ev
from bridge.wire import hosts
from bridge.wire.times import MICRO
from bridge.worlds.batsim.estimates import number_of
from bridge.worlds.batsim.jobs import DispatchedJobs, J
from bridge.worlds.batsim.machine_view import Locality, MachineView
from bridge.worlds.batsim.placement import FirstFit, PlacementFactory
from bridge.worlds.batsim.profiles import JobProfiles
from bridge.worlds.batsim.site import SiteRules

#: What Batsim notifies after the last submission.
ALL_SUBMITTED = "no_more_static_job_to_submit"


@dataclass(frozen=True, kw_only=True)
class PlacementConfig:
    """Where jobs go, whoever schedules them; `storage`: label -> host, where the label is not its name."""

    placement: PlacementFactory = FirstFit
    placement_name: str = "first-fit"
    storage: Mapping[str, str] = field(default_factory=dict)


def by_submission(
    event: ev.JobSubmitted, numbering: Callable[[str], int | None] = number_of
) -> tuple[int, bool, int, str]:
    """Sort by (submit, id), ids that are numbers as numbers, as the fast world does."""
    number = numbering(event.job_id)
    return event.submit, number is None, number or 0, event.job_id


class WireScheduler(ABC, Generic[J]):
    """Base class of schedulers behind the wire; it tracks jobs and hosts of one simulation.

    `jobs`: all, by id, in order of submission, of which several may be attempts at one job; `submitted`: how
    many jobs that is.
    """

    registers = False
    rules: SiteRules | None = None  # of nodes that jobs share, once the simulation has begun

    _machine: MachineView  # this and the rest are there once the simulation has begun
    _profiles: JobProfiles

    def __init__(self, placing: PlacementConfig) -> None:
        self._placing = placing
        self.jobs = DispatchedJobs[J]()
        self.submitted = 0
        self.passes = 0
        self.ended = False
        self._begin_event: ev.SimulationBegins | None = None
        self._unfinished = 0
        self._more_jobs = True
        # of one message:
        self._now = 0
        self._decisions: list[ev.Decision] = []

    @property
    def locality(self) -> Locality:
        return self._machine.locality if self._begin_event else Locality(self._placing.placement_name)

    def decide(self, message: ev.Message) -> list[ev.Decision]:
        """Apply a message and return what to do, in order; BridgeError: it contradicts earlier ones."""
        self._now, self._decisions = message.now, []
        fresh = self._begin_event is None
        if fresh:
            self._begin(self._follow(message))
        for event in message.events:
            kind = type(event)
            if kind is ev.JobCompleted:
                self._complete(event)  # type: ignore[arg-type]
            elif kind is ev.JobSubmitted:
                self._submit(event)  # type: ignore[arg-type]
            elif kind is ev.RequestedCall:
                self._on_wake_up()
            elif isinstance(event, ev.Notification):
                self._more_jobs &= event.kind != ALL_SUBMITTED
            elif kind is ev.SimulationEnds:
                self.ended = True
            elif kind is not ev.SimulationBegins:
                self._on_other_event(event)
            elif not fresh:
                what = "a second simulation begins on this socket"
                raise BridgeError(what, remedy="One process, one simulation.")
        self._make_decisions()
        return self._decisions

    def _follow(self, message: ev.Message) -> ev.SimulationBegins:
        begin = message.events[0] if message.events else None
        if not isinstance(begin, ev.SimulationBegins):
            remedy = "Was another decision process on this socket before? Start the simulation anew."
            raise BridgeError("the first message is not SIMULATION_BEGINS", remedy=remedy)
        placing, names = self._placing, [host.name for host in begin.compute]
        self._profiles = JobProfiles(begin, placing.storage)
        self._machine = self._view(names)
        self._begin_event = begin
        return begin

    def _view(self, names: list[str]) -> MachineView:
        return MachineView(names, self._placing.placement, self._placing.placement_name)

    # What a scheduler makes of it.

    @abstractmethod
    def _begin(self, begin: ev.SimulationBegins) -> None:
        """The simulation has begun."""

    @abstractmethod
    def _submit(self, event: ev.JobSubmitted) -> None:
        """A job was submitted."""

    @abstractmethod
    def _complete(self, event: ev.JobCompleted) -> None:
        """A job is over."""

    @abstractmethod
    def _on_wake_up(self) -> None:
        """A wake-up that was asked for has come."""

    def _on_other_event(self, event: ev.Event) -> None:
        """Something else has happened."""

    @abstractmethod
    def _make_decisions(self) -> None:
        """All events of a message are known: add what is to be done."""

    @abstractmethod
    def on_refused(self, decision: ev.Decision, why: str) -> None:
        """Take a decision back that was not allowed: a job whose start it was is lost."""

    @abstractmethod
    def report_fields(self, job: J) -> dict[str, Any]:
        """Return further fields of the job for the result file."""

    # What it says of hosts and jobs.

    def _say(self, kind: Callable[..., ev.Decision], *what: object) -> None:
        self._decisions.append(kind(self._now, *what))

    def _add(self, job: J) -> None:
        if job.job_id in self.jobs:
            raise BridgeError("was submitted twice", where=f"job {job.job_id}")
        self.jobs[job.job_id] = job
        self.submitted += 1

    def _reject(self, job: J, why: str) -> None:
        job.state, job.why = "rejected", why
        self._say(ev.RejectJob, job.job_id)

    def _execute(self, job: J) -> None:
        job.start, job.state = self._now, "running"
        self._say(ev.ExecuteJob, job.job_id, job.hosts, job.mapping, job.storage)

    def _finish(self, event: ev.JobCompleted, *states: str) -> tuple[J, str]:
        """Take note of a completion; returns the job and the state that it was in, one of the given ones."""
        job = self.jobs.get(event.job_id)
        if job is None or job.state not in states:
            what = "completed, but " + (f"is {job.state} here" if job else "was never submitted")
            raise BridgeError(what, where=f"job {event.job_id}, time {event.time / MICRO:.6f} s")
        if event.hosts and event.hosts != job.hosts:
            ended, runs = hosts.text_of(event.hosts), hosts.text_of(job.hosts)
            what = f"completed on hosts {shortened(ended)}, but runs on {shortened(runs)} here"
            remedy = "Is another decision process at work besides this one?"
            place = f"job {event.job_id}, time {event.time / MICRO:.6f} s"
            raise BridgeError(what, where=place, remedy=remedy)
        was = job.state
        job.finish, job.state = event.time, event.state
        self._machine.release(job.hosts)
        return job, was

    def _lose(self, decision: ev.ExecuteJob | ev.RegisterJob, why: str) -> None:
        """A start or a registration was not allowed: the job is lost, its hosts are free."""
        job = self.jobs[decision.job_id]
        if isinstance(decision, ev.ExecuteJob):
            self._machine.release(job.hosts)
        job.state, job.why, job.start = "lost", why, -1
