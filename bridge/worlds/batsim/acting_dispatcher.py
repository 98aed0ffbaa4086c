"""The dispatcher of a rule of action: jobs that the scheduler stops are killed, and run again as new jobs.

What is decided at one instant takes several messages of that instant: a kill is confirmed, the job's next
life is registered, and announced where the platform does so; then what needs the hosts, or is that life,
starts. No pass is made for such messages.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from bridge.base.errors import BridgeError
from bridge.scheduler.action_session import ActionSession
from bridge.scheduler.actions import Action, format_action, parse_action
from bridge.scheduler.session import JobEstimates
from bridge.wire import events as ev
from bridge.worlds.batsim.attempts import (
    DELAY,
    KILLING,
    REGISTERED,
    refuse_static,
    refuse_unrepeatable,
    register_attempt,
)
from bridge.worlds.batsim.dispatcher import Dispatcher, DispatcherConfig
from bridge.worlds.batsim.jobs import DispatchedJob

#: The platform says that a kill was carried out; the job's next life is not registered yet.
_KILLED, _UNREGISTERED = "COMPLETED_KILLED", "unregistered"


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
    job: "ActingJob" = field(default=None, repr=False)  # type: ignore[assignment]


@dataclass(slots=True, eq=False)
class ActingJob:
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
        life = Life("", last.submit, last.n_hosts, last.index, state=_UNREGISTERED, storage=last.storage)
        life.number, life.longer, life.job = last.number + 1, longer, self
        self.lives.append(life)
        return life


class ActingDispatcher(Dispatcher):
    """A `Dispatcher` whose scheduler stops jobs; `acting_jobs`: in order of submission."""

    registers = True
    session: ActionSession
    _session_type = ActionSession

    def __init__(self, setup: DispatcherConfig) -> None:
        super().__init__(setup)
        self._action: Action = parse_action(setup.policy.action)
        self.acting_jobs: list[ActingJob] = []
        self._held: list[ActingJob] = []  # the scheduler has started them
        self._registering = False

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
        job = ActingJob(event)
        job.lives.append(Life(event.job_id, event.submit, event.res, job=job))
        return job.current

    def _enqueue(
        self, event: ev.JobSubmitted, number: int, demand: list[int], lengths: JobEstimates, **facts: Any
    ) -> int:
        permits = self._setup.facts.permitted(event)
        self._refuse_unfit(event)
        life = self.jobs[event.job_id]
        assert isinstance(life, Life)
        self.acting_jobs.append(life.job)
        return self.session.submit(number, demand, lengths, permits=permits, **facts)

    def _refuse_unfit(self, event: ev.JobSubmitted) -> None:
        """Refuse a job whose later lives could not be as the rule has them."""
        assert self._begin_event is not None
        refuse_unrepeatable(event, self._profiles, self._begin_event)
        action = self._action
        keeps = action.needs == "checkpointable"
        kind = self._profiles.get(event.job_id.partition("!")[0], event.profile).get("type")
        if kind != DELAY and (keeps or action.restart > 0):
            why = "keep their progress" if keeps else f"begin with {action.restart:g} s of overhead"
            what = f"its next lives {why}, which a profile of type {kind!r} cannot"
            remedy = "Use the profile delay" + ("." if keeps else ", or the action with restart=0.")
            where = f"job {event.job_id}, action {format_action(action)!r}"
            raise BridgeError(what, where=where, remedy=remedy)

    def _complete(self, event: ev.JobCompleted) -> None:
        job, was = self._finish(event, "running", KILLING)
        assert isinstance(job, Life)
        if was == KILLING and event.state == _KILLED:
            return  # JOB_KILLED follows
        if was == KILLING:  # it ends in the instant in which it is killed: the end counts
            self._drop(job.job)
        else:
            self._release(job, event.time)
        self._opens = True

    def _release(self, job: DispatchedJob, now: int) -> None:  # noqa: ARG002
        self.session.finish(job.index)
        self._index[job.index] = None
        self._unfinished -= 1

    def _drop(self, job: ActingJob) -> None:
        """The job is over, though the scheduler lets its next life wait, or has started it."""
        life = job.lives.pop() if job.current.state == _UNREGISTERED else job.current
        if job in self._held:
            self._held.remove(job)
            self.session.finish(life.index)
        else:
            self.session.withdraw(life.index)
        self._index[life.index] = None
        self._unfinished -= 1

    def _on_other_event(self, event: ev.Event) -> None:
        if isinstance(event, ev.JobKilled):
            for job_id in event.job_ids:
                life = self.jobs.get(job_id)
                if isinstance(life, Life) and life.state == _KILLED:
                    self._register(life.job)
        super()._on_other_event(event)

    def _register(self, job: ActingJob) -> None:
        assert self._begin_event is not None
        life = job.current
        if life.state != _UNREGISTERED:
            return
        history = {"attempt": life.number, "again": job.event.job_id}
        life.job_id, decisions = register_attempt(
            self._now, job.event, life.number, self._profiles, history, life.longer
        )
        life.state = REGISTERED if self._begin_event.acknowledges else "waiting"
        self.jobs[life.job_id] = life
        self._decisions += decisions

    # The pass.

    def _pass(self) -> None:
        self._held += [life.job for life in self._start_jobs() if isinstance(life, Life)]

    def _start_jobs(self) -> Iterator[DispatchedJob]:
        for life in super()._start_jobs():
            assert isinstance(life, Life)
            life.speculative = self.session.is_speculative(life.index)
            yield life

    def _run_pass(self) -> None:
        super()._run_pass()
        ids = []
        for j in self.session.stops():
            life = self._index[j]
            assert isinstance(life, Life)
            if life.state == "running":
                life.state = KILLING
                ids.append(life.job_id)
                overhead, progress = self.session.next_life(j)
                self._index[j] = life.job.add_life(overhead - progress)
            elif life.job in self._held:  # it has not really begun
                self._held.remove(life.job)
        if ids:
            self._say(ev.KillJob, tuple(ids))

    def _carry_out(self) -> None:
        """Start what the scheduler has started, as far as hosts are free and lives are registered."""
        held = []
        for job in self._held:
            life = job.current
            if life.state == "waiting" and life.n_hosts <= self._machine.free:
                life.hosts = self._machine.place(life.n_hosts)
                self._execute(life)
            else:
                held.append(job)
        self._held = held

    def on_refused(self, decision: ev.Decision, why: str) -> None:
        """See `Scheduling.refused`; a job that cannot be registered again is lost as well.

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
        if job.speculative and job.start >= 0:
            fields["start_kind"] = "speculative"
        return {**fields, "again": job.job.event.job_id if job.number > 1 else "", "attempt": job.number}
