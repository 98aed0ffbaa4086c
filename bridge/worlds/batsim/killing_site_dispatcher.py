"""The dispatcher on a cluster whose running jobs may be stopped: nodes fail, jobs are preempted.

The scheduler decides in one message all that an instant brings, the second pass behind a preemption, too.
The platform carries it out in several messages of that instant: see `KillingDispatcher`.
"""

from dataclasses import dataclass
from typing import Any

from bridge.scheduler.session import JobEstimates
from bridge.scheduler.timed_session import TimedSession
from bridge.wire import events as ev
from bridge.wire.hosts import Hosts, HostSet
from bridge.worlds.batsim.attempts import refuse_unrepeatable
from bridge.worlds.batsim.dispatcher import DispatcherConfig
from bridge.worlds.batsim.jobs import DispatchedJob
from bridge.worlds.batsim.killing_dispatcher import UNREGISTERED, KillingDispatcher, Life, RepeatableJob
from bridge.worlds.batsim.site_dispatcher import SiteDispatcher


@dataclass(slots=True)
class NodeLife(Life):
    """A life on nodes; `episode`: which run of its job it is, from 0, of those that the scheduler counts."""

    episode: int = 0


class KillingSiteDispatcher(KillingDispatcher, SiteDispatcher):
    """See `KillingDispatcher` and `SiteDispatcher`.

    A life that is stopped in the instant in which it starts never begins on the platform.
    """

    session: TimedSession

    def __init__(self, setup: DispatcherConfig) -> None:
        super().__init__(setup)
        self._rejected: list[tuple[Life, str]] = []  # to be rejected, once the platform knows them

    def _begin_registration(self, begin: ev.SimulationBegins) -> None:
        if self._site.repeats_jobs:
            super()._begin_registration(begin)
        else:
            SiteDispatcher._begin_registration(self, begin)

    def _enqueue(
        self, event: ev.JobSubmitted, number: int, demand: list[int], lengths: JobEstimates, **facts: Any
    ) -> int:
        assert self._begin_event is not None
        if self._site.repeats_jobs:
            refuse_unrepeatable(event, self._profiles, self._begin_event)
        self._note_repeatable(event)
        return super()._enqueue(event, number, demand, lengths, **facts)

    def _new_job(self, event: ev.JobSubmitted) -> Life:
        job = RepeatableJob(event)
        job.lives.append(NodeLife(event.job_id, event.submit, event.res, job=job))
        return job.current

    # Stops.

    def _note_stops(self) -> None:
        self._stop((one.job, 0 if one.waits_again else None) for one in self.session.stops())

    def _on_end_at_start(self, life: Life) -> None:
        self._give_up(life, "is stopped in the instant in which it starts")

    def _on_killed(self, life: Life) -> None:
        super()._on_killed(life)
        if life.job.current is life:
            self._unfinished -= 1

    def _register(self, job: RepeatableJob) -> None:
        for life, why in self._rejected:
            if life is job.current and life.state == UNREGISTERED:
                life.state, life.why = "rejected", why
                self._unfinished -= 1
        super()._register(job)

    def _give_up(self, job: DispatchedJob, why: str) -> None:
        """Reject a job that will never start (again): at once, or when the platform knows of its life."""
        assert isinstance(job, Life)
        job.by_rule = True
        self._index[job.index] = None
        if job.state == "waiting":
            self._reject(job, why)
            self._unfinished -= 1
        else:
            self._rejected.append((job, why))

    def _carry_out(self) -> None:
        super()._carry_out()
        rejected, self._rejected = self._rejected, []
        for life, why in rejected:
            if life.state != "rejected":
                self._give_up(life, why)

    # Hosts.

    def _find_hosts(self, life: DispatchedJob) -> bool:
        assert isinstance(life, NodeLife)
        life.episode = self.session.episode(life.index)
        return not any(_overlap(life.hosts, other.hosts) for other in self._dying)


def _overlap(hosts: Hosts, others: Hosts) -> bool:
    return bool(HostSet(hosts).overlap(others))
