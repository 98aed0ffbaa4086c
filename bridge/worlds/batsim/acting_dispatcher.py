"""The dispatcher of a rule of action, whose scheduler stops jobs of a pool."""

from collections.abc import Iterator
from typing import Any

from bridge.base.errors import BridgeError
from bridge.scheduler.action_session import ActionSession
from bridge.scheduler.actions import Action, format_action, parse_action
from bridge.scheduler.session import JobEstimates
from bridge.wire import events as ev
from bridge.worlds.batsim.attempts import DELAY, refuse_unrepeatable
from bridge.worlds.batsim.dispatcher import DispatcherConfig
from bridge.worlds.batsim.jobs import DispatchedJob
from bridge.worlds.batsim.killing_dispatcher import KillingDispatcher, Life


class ActingDispatcher(KillingDispatcher):
    """See `KillingDispatcher`: a rule of action decides which jobs are stopped."""

    session: ActionSession
    _session_type = ActionSession

    def __init__(self, setup: DispatcherConfig) -> None:
        super().__init__(setup)
        self._action: Action = parse_action(setup.policy.action)

    # Jobs.

    def _enqueue(
        self, event: ev.JobSubmitted, number: int, demand: list[int], lengths: JobEstimates, **facts: Any
    ) -> int:
        permits = self._setup.facts.permitted(event)
        self._refuse_unfit(event)
        self._note_repeatable(event)
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

    # The pass.

    def _pass(self) -> None:
        self._granted += self._start_jobs()

    def _start_jobs(self) -> Iterator[DispatchedJob]:
        for life in super()._start_jobs():
            assert isinstance(life, Life)
            life.speculative = self.session.is_speculative(life.index)
            yield life

    def _run_pass(self) -> None:
        super()._run_pass()
        self._stop((j, self._longer(j)) for j in self.session.stops())

    def _longer(self, j: int) -> int:
        """Return how much longer than the whole job its next life lasts, µs."""
        overhead, progress = self.session.next_life(j)
        return overhead - progress

    def _find_hosts(self, life: DispatchedJob) -> bool:
        if life.n_hosts > self._machine.free:
            return False
        life.hosts = self._machine.place(life.n_hosts)
        return True

    def report_fields(self, job: DispatchedJob) -> dict[str, Any]:
        fields = super().report_fields(job)
        if isinstance(job, Life) and job.speculative and job.start >= 0:
            fields["start_kind"] = "speculative"
        return fields
