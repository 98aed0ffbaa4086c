"""A scheduler behind the wire: jobs and hosts of one simulation, followed message by message.

The event scheduler (`bridge.batsim.dispatcher`) and the time-stepped pool (`bridge.batsim.ticks`) say what
they make of a submission, a completion, a wake-up, and what they decide once a message has been applied.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from bridge.batsim.beliefs import number_of
from bridge.batsim.events import (
    Decision,
    Event,
    ExecuteJob,
    JobCompleted,
    JobSubmitted,
    Message,
    Notification,
    RegisterJob,
    RejectJob,
    RequestedCall,
    SimulationBegins,
    SimulationEnds,
)
from bridge.batsim.machine_view import Locality, MachineView
from bridge.batsim.placement import Rule
from bridge.batsim.profiles import JobProfiles
from bridge.errors import BridgeError
from bridge.wire.hosts import Hosts
from bridge.wire.times import MICRO

#: What Batsim notifies after the last submission.
ALL_SUBMITTED = "no_more_static_job_to_submit"


@dataclass(slots=True)
class Job:
    """What became of one job; times in microseconds, -1 = not yet.

    Attributes:
        index: its number in the scheduler, -1 if it was rejected.
        start: when it was executed; later than the scheduler started it if hosts had to be woken.
        state: waiting, waking (its hosts are being switched on), running, rejected, lost (its start was not
            allowed), or Batsim's state of a finished job.
        why: why it was rejected or lost.
        level: its level where there is power per job.
    """

    job_id: str
    submit: int
    res: int
    index: int = -1
    start: int = -1
    finish: int = -1
    state: str = "waiting"
    hosts: Hosts = ()
    why: str = ""
    storage: dict[str, int] | None = None
    level: int = 0


J = TypeVar("J", bound=Job)


def by_submission(event: JobSubmitted) -> tuple[int, bool, int, str]:
    """Sort by (submit, id), ids that are numbers as numbers, as the fast world does."""
    number = number_of(event.job_id)
    return event.submit, number is None, number or 0, event.job_id


class Scheduling(ABC, Generic[J]):
    """Whoever decides over a whole simulation, and what it remembers of it.

    Args:
        rule: the placement rule.
        rule_name: its name, for the report.
        storage: storage label -> host name, where the label is not the host's name.

    Attributes:
        jobs: everything ever submitted, by id, in order of submission; attempts at one job are several.
        submitted: how many jobs were submitted; another attempt at a job is no other job.
        passes: how often the scheduler was asked.
        ended: SIMULATION_ENDS has come.
    """

    _machine: MachineView  # this and the rest are there once the simulation has begun
    _profiles: JobProfiles

    def __init__(self, rule: Rule, rule_name: str, storage: Mapping[str, str] | None) -> None:
        self._rule, self._rule_name, self._storage = rule, rule_name, storage
        self.jobs: dict[str, J] = {}
        self.submitted = 0
        self.passes = 0
        self.ended = False
        self._begun: SimulationBegins | None = None
        self._unfinished = 0
        self._more_jobs = True

    @property
    def locality(self) -> Locality:
        """How local the allocations were."""
        return self._machine.locality if self._begun else Locality(self._rule_name)

    def decide(self, message: Message) -> list[Decision]:
        """Apply a message and return what to do about it, in order.

        Raises:
            BridgeError: the message contradicts earlier ones, or the scheduler cannot deal with it.
        """
        decisions: list[Decision] = []
        now, fresh = message.now, self._begun is None
        if fresh:
            self._follow(message)
            self._begin(now, decisions)
        for event in message.events:
            kind = type(event)
            if kind is JobCompleted:
                self._complete(event)  # type: ignore[arg-type]
            elif kind is JobSubmitted:
                self._submit(event, now, decisions)  # type: ignore[arg-type]
            elif kind is RequestedCall:
                self._wake(now)
            elif isinstance(event, Notification):
                self._more_jobs &= event.kind != ALL_SUBMITTED
            elif kind is SimulationEnds:
                self.ended = True
            elif kind is not SimulationBegins:
                self._note(event, now, decisions)
            elif not fresh:
                raise BridgeError(
                    "a second simulation begins on this socket", remedy="One process, one simulation."
                )
        self._act(now, decisions)
        return decisions

    def _follow(self, message: Message) -> None:
        begin = message.events[0] if message.events else None
        if not isinstance(begin, SimulationBegins):
            raise BridgeError(
                "the first message is not SIMULATION_BEGINS",
                remedy="Was another decision process on this socket before? Start the simulation anew.",
            )
        self._profiles = JobProfiles(begin, self._storage or {})
        self._machine = MachineView([host.name for host in begin.compute], self._rule, self._rule_name)
        self._begun = begin

    # What a scheduler makes of it.

    @abstractmethod
    def _begin(self, now: int, decisions: list[Decision]) -> None:
        """The simulation has begun."""

    @abstractmethod
    def _submit(self, event: JobSubmitted, now: int, decisions: list[Decision]) -> None:
        """A job was submitted."""

    @abstractmethod
    def _complete(self, event: JobCompleted) -> None:
        """A job is over."""

    @abstractmethod
    def _wake(self, now: int) -> None:
        """A wake-up that was asked for has come."""

    def _note(self, event: Event, now: int, decisions: list[Decision]) -> None:
        """Something else has happened."""

    @abstractmethod
    def _act(self, now: int, decisions: list[Decision]) -> None:
        """All events of a message are known: add what is to be done."""

    @abstractmethod
    def refused(self, decision: Decision, why: str) -> None:
        """Take a decision back that was not allowed: a job whose start it was is lost."""

    @abstractmethod
    def told(self, job: J) -> dict[str, Any]:
        """Return what is to be said of a job besides."""

    # Jobs.

    def _add(self, job: J) -> None:
        if job.job_id in self.jobs:
            raise BridgeError("was submitted twice", where=f"job {job.job_id}")
        self.jobs[job.job_id] = job
        self.submitted += 1

    def _find_storage(self, event: JobSubmitted, job: J) -> str:
        """Find the storage hosts of a job; returns why it cannot have them, if so."""
        found = self._profiles.storage_of(event)
        if isinstance(found, str):
            return found
        job.storage = found
        return ""

    def _reject(self, job: J, why: str, now: int, decisions: list[Decision]) -> None:
        job.state, job.why = "rejected", why
        decisions.append(RejectJob(now, job.job_id))

    def _execute(self, job: J, now: int, decisions: list[Decision]) -> None:
        job.start, job.state = now, "running"
        decisions.append(ExecuteJob(now, job.job_id, job.hosts, None, job.storage))

    def _finish(self, event: JobCompleted, *states: str) -> tuple[J, str]:
        """Take note of a completion; returns the job and the state that it was in, one of the given ones."""
        job = self.jobs.get(event.job_id)
        if job is None or job.state not in states:
            raise BridgeError(
                "completed, but " + (f"is {job.state} here" if job else "was never submitted"),
                where=f"job {event.job_id}, time {event.time / MICRO:.6f} s",
            )
        was = job.state
        job.finish, job.state = event.time, event.state
        self._machine.release(job.hosts)
        return job, was

    def _lose(self, decision: ExecuteJob | RegisterJob, why: str) -> None:
        """A start or a registration was not allowed: the job is lost, its hosts are free."""
        job = self.jobs[decision.job_id]
        if isinstance(decision, ExecuteJob):
            self._machine.release(job.hosts)
        job.state, job.why, job.start = "lost", why, -1
