"""The dispatcher of a scheduler that stops jobs: they are killed, and run again as new jobs.

What is decided at one instant takes several messages of that instant: a kill is confirmed, the job's next
life is registered, and announced where the platform does so; then what needs the hosts, or is that life,
starts. No pass is made for such messages.
"""

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bridge.wire import events as ev
from bridge.worlds.batsim.attempts import KILLING, REGISTERED, refuse_static, register_attempt
from bridge.worlds.batsim.dispatcher import Dispatcher, DispatcherConfig
from bridge.worlds.batsim.jobs import DispatchedJob

#: The platform says that a kill was carried out; the job's next life is not registered yet.
KILLED, UNREGISTERED = "COMPLETED_KILLED", "unregistered"


@dataclass(slots=True)
class Life(DispatchedJob):
    """One life of a job, as a job of the platform.

    Attributes:
        number: of the job's lives, from 1.
        longer: how much longer than the whole job it lasts: its overhead without the progress of earlier
            lives, µs.
        speculative: it began on idle nodes that count as free.
    """

    number: int = 1
    longer: int = 0
    speculative: bool = False
    job: "RepeatableJob" = field(default=None, repr=False)  # type: ignore[assignment]


@dataclass(slots=True, eq=False)
class RepeatableJob:
    """A job as it was submitted, and its lives, the present one last."""

    event: ev.JobSubmitted
    lives: list[Life] = field(default_factory=list)

    @property
    def current(self) -> Life:
        """The life that waits or runs, or was the last."""
        return self.lives[-1]

    def add_life(self, longer: int) -> Life:
        """Add the next life, which is not registered yet."""
        last = self.current
        life = type(last)("", last.submit, last.n_hosts, last.index, state=UNREGISTERED, job=self)
        life.storage, life.number, life.longer = last.storage, last.number + 1, longer
        self.lives.append(life)
        return life


class KillingDispatcher(Dispatcher):
    """A `Dispatcher` whose scheduler stops jobs; `repeatable_jobs`: in order of submission."""

    registers = True

    def __init__(self, setup: DispatcherConfig) -> None:
        super().__init__(setup)
        self.repeatable_jobs: list[RepeatableJob] = []
        self._registering = False
        self._dying: list[Life] = []  # killed, which the platform has not confirmed

    def _begin_registration(self, begin: ev.SimulationBegins) -> None:
        refuse_static(begin)
        self._registering = True

    def _make_decisions(self) -> None:
        super()._make_decisions()
        if self._registering and not self.ended and not self._more_jobs and not self._unfinished:
            self._registering = False
            self._say(ev.FinishRegistration)

    # Jobs.

    def _submit(self, event: ev.JobSubmitted) -> None:
        life = self.jobs.get(event.job_id)
        if life is not None and life.state == REGISTERED:  # our own, announced
            life.state = "waiting"
            return
        super()._submit(event)

    def _new_job(self, event: ev.JobSubmitted) -> Life:
        job = RepeatableJob(event)
        job.lives.append(Life(event.job_id, event.submit, event.res, job=job))
        return job.current

    def _note_repeatable(self, event: ev.JobSubmitted) -> None:
        """Count a job that goes to the scheduler among those that may be killed."""
        life = self.jobs[event.job_id]
        assert isinstance(life, Life)
        self.repeatable_jobs.append(life.job)

    def _complete(self, event: ev.JobCompleted) -> None:
        life, was = self._finish(event, "running", KILLING)
        assert isinstance(life, Life)
        if was != KILLING:
            self._release(life, event.time)
        elif event.state == KILLED:
            self._on_killed(life)  # JOB_KILLED follows
            return
        else:  # it ends in the instant in which it is killed: the end counts
            self._on_killed(life)
            if life.job.current is not life:
                self._drop(life.job)
        self._opens = True

    def _stop(self, stops: Iterable[tuple[int, int | None]]) -> None:
        """Kill the present lives of jobs; with each, how much longer its next life lasts, or None."""
        ids = []
        for j, longer in stops:
            life = self._index[j]
            assert isinstance(life, Life)
            if life.state != "running":  # it has not really begun, if it was started at all
                self._take_back(life)
                if longer is None:
                    self._on_end_at_start(life)
                continue
            life.state = KILLING
            ids.append(life.job_id)
            self._dying.append(life)
            self._index[j] = None if longer is None else life.job.add_life(longer)
        if ids:
            self._say(ev.KillJob, tuple(ids))

    def _on_end_at_start(self, life: Life) -> None:
        """A job is over, whose last life was stopped in the instant in which it starts."""

    def _on_killed(self, life: Life) -> None:
        """A life that was to be killed is over."""
        self._dying = [other for other in self._dying if other is not life]

    def _release(self, job: DispatchedJob, now: int) -> None:  # noqa: ARG002
        self.session.finish(job.index)
        self._index[job.index] = None
        self._unfinished -= 1

    def _drop(self, job: RepeatableJob) -> None:
        """The job is over, though the scheduler lets its next life wait, or has started it."""
        life = job.lives.pop() if job.current.state == UNREGISTERED else job.current
        if self._take_back(life):
            self.session.finish(life.index)
        else:
            self.session.withdraw(life.index)
        self._index[life.index] = None
        self._unfinished -= 1

    def _take_back(self, life: DispatchedJob) -> bool:
        """Forget that the scheduler has started a life, if it was not executed yet; tell whether it had."""
        n = len(self._granted)
        self._granted = [other for other in self._granted if other is not life]
        return len(self._granted) < n

    def _on_other_event(self, event: ev.Event) -> None:
        if isinstance(event, ev.JobKilled):
            for job_id in event.job_ids:
                life = self.jobs.get(job_id)
                if isinstance(life, Life) and life.state == KILLED:
                    self._register(life.job)
        super()._on_other_event(event)

    def _register(self, job: RepeatableJob) -> None:
        assert self._begin_event is not None
        life = job.current
        if life.state != UNREGISTERED:
            return
        history = {"attempt": life.number, "again": job.event.job_id}
        life.job_id, decisions = register_attempt(
            self._now, job.event, life.number, self._profiles, history, life.longer
        )
        life.state = REGISTERED if self._begin_event.acknowledges else "waiting"
        self.jobs[life.job_id] = life
        self._decisions += decisions

    def _carry_out(self) -> None:
        """Start what the scheduler has started, as far as hosts are free and lives are registered."""
        granted, self._granted = self._granted, []
        for life in granted:
            if life.state == "waiting" and self._find_hosts(life):
                self._execute(life)
            else:
                self._granted.append(life)

    @abstractmethod
    def _find_hosts(self, life: DispatchedJob) -> bool:
        """Give a life that was started its hosts, if they are free by now on the platform."""

    def on_refused(self, decision: ev.Decision, why: str) -> None:
        """See `WireScheduler.on_refused`; a job that cannot be registered again is lost as well.

        A job that was not killed runs on, until its end.
        """
        if isinstance(decision, ev.RegisterJob) and decision.job_id in self.jobs:
            self._lose(decision, why)
            life = self.jobs[decision.job_id]
            assert isinstance(life, Life)
            self._drop(life.job)
        else:
            super().on_refused(decision, why)

    def report_fields(self, job: DispatchedJob) -> dict[str, Any]:
        fields = super().report_fields(job)
        if not isinstance(job, Life):  # it was rejected
            return fields
        return {**fields, "again": job.job.event.job_id if job.number > 1 else "", "attempt": job.number}
