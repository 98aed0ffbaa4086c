"""Attempts at a job of the pool, in steps; see `bridge.worlds.batsim.attempts`."""

import json
from dataclasses import dataclass, field
from typing import Any

from bridge.wire import events as ev
from bridge.worlds.batsim.attempts import REGISTERED, register_attempt
from bridge.worlds.batsim.jobs import DispatchedJob
from bridge.worlds.batsim.profiles import JobProfiles


@dataclass(slots=True)
class Attempt(DispatchedJob):
    """One attempt at a job; steps are -1 until they are known.

    Attributes:
        end_step: the step in which it was killed, or the first that knew of its end.
        belief: how many steps it was believed to run in total when it was killed.
        progress: how far the platform says it was when it was killed, as Batsim puts it.
    """

    number: int = 1
    start_step: int = -1
    end_step: int = -1
    belief: int = -1
    progress: Any = None

    @property
    def ran(self) -> int:
        """How many steps it has run, if it is over."""
        return self.end_step - self.start_step


@dataclass(slots=True, eq=False)
class PoolJob:
    """A job of the pool, and the attempts at it, the current one last."""

    event: ev.JobSubmitted
    attempts: list[Attempt] = field(default_factory=list)
    over: bool = False

    @property
    def current(self) -> Attempt:
        """The attempt that waits or runs, or was the last."""
        return self.attempts[-1]

    @property
    def killed(self) -> list[Attempt]:
        """The attempts that were killed and followed by another one, or will be."""
        return self.attempts[:-1]

    def register_next_attempt(self, now: int, profiles: JobProfiles, acknowledges: bool) -> list[ev.Decision]:
        """Add the next attempt at `now` (µs); return the decisions that register it, with the job's history.

        `profiles`: the profiles, the job's among them. `acknowledges`: the platform will announce it as it
        does any job.
        """
        last, first = self.current, self.event
        number = last.number + 1
        history = {
            "attempt": number,
            "again": first.job_id,
            "kills": number - 1,
            "lost": sum(attempt.ran for attempt in self.attempts),
            "believed": last.belief,
            "progress": last.progress,
        }
        job_id, registered = register_attempt(now, first, number, profiles, history)
        state = REGISTERED if acknowledges else "waiting"
        attempt = Attempt(job_id, last.submit, last.n_hosts, last.index, state=state, number=number)
        attempt.storage = last.storage
        self.attempts.append(attempt)
        return registered


def plain(value: Any) -> Any:
    """Return a JSON value whose fractions are floats."""
    return json.loads(json.dumps(value, default=float))
