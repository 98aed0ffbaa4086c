"""Attempts at a job: the first is the platform's own; after each kill another one is registered.

A dynamic job's id must be new to Batsim for ever, jobs of static workloads still to come included, so that
attempts live in a workload of their own. Batsim forgets a profile with the last job that uses it (unless told
``--enable-profile-reuse``), so that each attempt brings a copy of its profile, under a name of its own.

Not so for composed profiles: Batsim 4.2.1 knows the parts of those alone that it has read from a file, and
dies of a segmentation fault as soon as a job starts with a registered one. An attempt at such a job stays in
the job's workload, with the profile itself, which Batsim must therefore be told to keep.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from bridge.wire import events as ev
from bridge.worlds.batsim.jobs import DispatchedJob
from bridge.worlds.batsim.profiles import JobProfiles
from bridge.worlds.batsim.referee import AGAIN

#: Batsim's option without which a profile is gone with the last job that uses it.
REUSE = "--enable-profile-reuse"
#: States of an attempt between waiting and running, or running and over.
REGISTERED, KILLING = "registered", "being killed"


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
        workload, _, name = first.job_id.partition("!")
        number = last.number + 1
        if profiles.composed(workload, first.profile):
            job_id, profile = f"{first.job_id}{AGAIN}{number}", first.profile
            registered: list[ev.Decision] = []
        else:
            own, profile = f"{workload}_again", f"{name}_{number}:{first.profile}"
            job_id = f"{own}!{name}_{number}"
            registered = [ev.RegisterProfile(now, own, profile, profiles.get(workload, first.profile))]
        history = {
            "attempt": number,
            "again": first.job_id,
            "kills": number - 1,
            "lost": sum(attempt.ran for attempt in self.attempts),
            "believed": last.belief,
            "progress": last.progress,
        }
        state = REGISTERED if acknowledges else "waiting"
        attempt = Attempt(job_id, last.submit, last.n_hosts, last.index, state=state, number=number)
        attempt.storage = last.storage
        self.attempts.append(attempt)
        fields = {**first.fields, **history}
        return [*registered, ev.RegisterJob(now, job_id, first.res, first.walltime, profile, fields)]


def plain(value: Any) -> Any:
    """Return a JSON value whose fractions are floats."""
    return json.loads(json.dumps(value, default=float))
