"""What the scheduler knows of a live machine, and the starts that it decides on.

Everything enters as plain events with the time at which the agent learnt them, so that the same events give
the same decisions again, later and elsewhere (`bridge.worlds.slurm.audit`).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from bridge.base.errors import BridgeError
from bridge.scheduler import core
from bridge.scheduler import protocol as rules
from bridge.scheduler.action_session import ActionSession
from bridge.scheduler.actions import RESTARTABLE
from bridge.scheduler.session import JobEstimates, Session
from bridge.scheduler.state import NEVER
from bridge.wire.times import MICRO

#: A job without a limit is believed to last this long, and no job longer (s): a year.
LONGEST = 365 * 86_400


class LivePolicy(Protocol):
    """Who decides: what `bridge.commands.event` makes of a policy's name.

    The decider answers what the policy leaves to an agent, which is shown `window` candidates at most.
    """

    @property
    def policy(self) -> rules.Policy: ...
    @property
    def protocol(self) -> rules.Protocol: ...
    @property
    def decider(self) -> Callable[[Session, int], int] | None: ...
    @property
    def window(self) -> int: ...


@dataclass(frozen=True)
class LiveEvent:
    """One change of the queue or the nodes, as an event for the scheduler.

    Attributes:
        time: when, seconds since 1970.
        kind: ``wait`` (a job may be started), ``gone`` (a waiting one is no more), ``run`` (one runs that was
            not started by this book), ``end``, ``back`` (a start did not come true: it waits again), ``on``
            (a stop did not come true: it runs on), ``out`` (so many nodes are neither free nor used by the
            book's jobs), ``wake`` (the time of `LiveScheduler.wake_at` has come).
        details: of ``wait``: id, nodes, length, user, submit, and permits (it may be killed and requeued); of
            ``run``: start, and of a life with a limit: limit, speculative; of ``on``: start; of ``out``:
            nodes.
    """

    kind: str
    time: float
    job: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


class _Waiting(NamedTuple):
    """A job as it joins the queue; times in µs."""

    number: int
    demand: list[int]
    lengths: JobEstimates
    since: int
    permits: int


class LiveScheduler:
    """The scheduler core, fed by events; `decided` counts starts.

    Where the policy has a rule of action, `stopped` are the jobs that the last pass has stopped. They do not
    wait before Slurm says so.

    `nodes`: of the machine, in service or not. `origin`: seconds since 1970 that count as time 0, as the
    first submission of a log does.
    """

    def __init__(self, nodes: int, deciding: LivePolicy, origin: float) -> None:
        if deciding.policy.agent and deciding.decider is None:
            raise BridgeError("has no agent to decide", where=", ".join(sorted(deciding.policy.agent)))
        self._origin = origin
        self._decider = deciding.decider
        kind = ActionSession if deciding.policy.action else Session
        self._session: Session = kind(
            (nodes,), deciding.policy, deciding.protocol, window=deciding.window, resources=("nodes",)
        )
        self._index: dict[str, int] = {}
        self._keys: list[str] = []
        self._jobs: dict[str, _Waiting] = {}
        self._before: dict[str, _Waiting] = {}  # of the jobs that were stopped last
        self.stopped: list[str] = []
        self._running: set[str] = set()
        self._out = 0
        self.decided = 0

    @classmethod
    def warm_up(cls, deciding: LivePolicy) -> None:
        """Compile or load everything that a pass needs: the first one on a machine takes half a minute."""
        book = cls(4, deciding, 0.0)
        details = {"nodes": 2, "length": 60, "user": "", "submit": 0}
        for k in range(3):
            book.apply_event(LiveEvent("wait", 1.0, str(k), {**details, "id": k + 1}))
        book.apply_event(LiveEvent("run", 1.0, "0", {"start": 0.5}))
        for job in book.decide(2.0):
            book.apply_event(LiveEvent("back", 2.0, job))
        book.apply_event(LiveEvent("end", 3.0, "0"))
        book.apply_event(LiveEvent("gone", 3.0, "1"))

    @property
    def n_jobs_ever(self) -> int:
        """How many jobs the scheduler remembers, ended ones among them."""
        return self._session.n_jobs

    def __contains__(self, job: str) -> bool:
        return job in self._index

    @property
    def wake_at(self) -> float:
        """When it wants to decide again though nothing happens: seconds since 1970, or infinity."""
        wake = self._session.wake_at
        return math.inf if wake == NEVER else self._seconds(wake)

    def apply_event(self, event: LiveEvent) -> None:
        """Take note of an event; BridgeError names the job of which it contradicts what is known."""
        self._at(event.time)
        kind, job = event.kind, event.job
        if kind in ("out", "wake"):
            self._out = int(event.details.get("nodes", self._out))
            return
        is_tracked = job in self._index
        if is_tracked == (kind in ("wait", "on")):
            raise BridgeError("is known already" if is_tracked else "is not known", where=f"{kind} {job}")
        if job in self._running and kind in ("gone", "run"):
            raise BridgeError("runs already", where=f"{kind} {job}")
        if kind == "wait":
            self._wait(job, event.details)
        elif kind == "gone":
            self._session.withdraw(self._forget(job))
        elif kind == "end":
            self._end(job)
        elif kind == "run":
            self._adopt(job, event.details)
        elif kind == "on":
            if job not in self._before:
                raise BridgeError("was not stopped", where=f"job {job}")
            self._submit(job, self._before.pop(job)._replace(permits=0))
            self._adopt(job, event.details)
        elif kind == "back":
            again = self._jobs[job]
            self._end(job)
            self._submit(job, again)
        else:
            raise BridgeError(f"is no event: {kind!r}", where=f"job {job}")

    def decide(self, now: float) -> list[str]:
        """Return the jobs to be started now, in order: one pass of the scheduler."""
        self._at(now)
        if self._session.outgrown(len(self._index)):
            self._compact()
        session = self._session
        session.set_out_of_service((self._out,))
        session.begin()
        while (kind := session.advance()) != core.NOTHING:
            assert self._decider is not None
            session.answer(self._decider(session, kind))
        if isinstance(session, ActionSession):
            self._collect_stops(session)
        starts = [self._keys[j] for j in session.starts() if self._keys[j] not in self._before]
        self._running.update(starts)
        self.decided += len(starts)
        return starts

    def snapshot_events(self) -> list[LiveEvent]:
        """Return the events that rebuild this scheduler's jobs, running jobs and unavailable nodes.

        What the scheduler has noted while it decided is not in it: rejections, and who has locked the queue.
        """
        jobs, now = self._session.state.jobs, self._seconds(self._session.now)
        events = [LiveEvent("out", now, details={"nodes": self._out})]
        for key, (number, demand, lengths, since, permits) in self._jobs.items():
            details = {"id": number, "nodes": demand[0], "user": "", "submit": self._seconds(since)}
            details |= {"permits": permits} if permits else {}
            events.append(LiveEvent("wait", now, key, {**details, "length": lengths.order / MICRO}))
        for key in sorted(self._running, key=lambda key: int(jobs.serial[0, self._index[key]])):
            j = self._index[key]
            run: dict[str, Any] = {"start": self._seconds(int(jobs.start[0, j]))}
            if isinstance(self._session, ActionSession) and (limit := self._session.limit_of(j)) < NEVER:
                run |= {"limit": self._seconds(limit), "speculative": self._session.is_speculative(j)}
            events.append(LiveEvent("run", now, key, run))
        return events

    def _collect_stops(self, session: ActionSession) -> None:
        """Let the jobs that a pass has stopped neither wait nor run, also where it has started them anew."""
        self._before = {}
        started = {*session.peek_starts()}
        stops = dict.fromkeys(session.stops())
        self.stopped = [self._keys[j] for j in stops]
        for j in stops:
            key = self._keys[j]
            self._before[key] = self._jobs[key]
            self._running.remove(key)
            (session.finish if j in started else session.withdraw)(self._forget(key))

    def _adopt(self, job: str, details: Mapping[str, Any]) -> None:
        """Let a waiting job run since a time, perhaps with a limit."""
        j, start = self._index[job], self._micro(details["start"])
        if "limit" in details and isinstance(self._session, ActionSession):
            limit = self._micro(details["limit"])
            self._session.adopt_limited(j, start, limit, speculative=bool(details.get("speculative")))
        else:
            self._session.adopt(j, start)
        self._running.add(job)

    def _compact(self) -> None:
        """Forget the jobs that are no more: after years of work it is as small as a new one."""
        self._keys = sorted(self._index, key=self._index.__getitem__)
        self._session.compact([self._index[key] for key in self._keys])
        self._index = {key: k for k, key in enumerate(self._keys)}

    def _at(self, now: float) -> None:
        self._session.now = max(self._session.now, self._micro(now))

    def _micro(self, seconds: float) -> int:
        return round((seconds - self._origin) * MICRO)

    def _seconds(self, micro: int) -> float:
        return micro / MICRO + self._origin

    def _wait(self, job: str, details: Mapping[str, Any]) -> None:
        length = round(min(float(details["length"]), LONGEST) * MICRO)
        since = self._micro(details["submit"])
        lengths = JobEstimates.same(max(length, MICRO))
        permits = RESTARTABLE if details.get("permits") else 0
        demand = [int(details["nodes"])]
        self._submit(job, _Waiting(int(details["id"]), demand, lengths, since, permits))

    def _submit(self, job: str, waiting: "_Waiting") -> None:
        number, demand, lengths, since, permits = waiting
        session = self._session
        more = {"permits": permits} if isinstance(session, ActionSession) else {}
        self._index[job] = session.submit(number, demand, lengths, submitted=since, **more)
        self._keys.append(job)
        self._jobs[job] = waiting

    def _forget(self, job: str) -> int:
        del self._jobs[job]
        return self._index.pop(job)

    def _end(self, job: str) -> None:
        if job not in self._running:
            raise BridgeError("has not been started", where=f"job {job}")
        self._running.remove(job)
        self._session.finish(self._forget(job))
