"""Attempts at a job: the first is the platform's own; after each kill another one is registered.

A dynamic job's id must be new to Batsim for ever, jobs of static workloads still to come included, so that
attempts live in a workload of their own. Batsim forgets a profile with the last job that uses it (unless told
``--enable-profile-reuse``), so that each attempt brings a copy of its profile, under a name of its own.

Not so for composed profiles: Batsim 4.2.1 knows the parts of those alone that it has read from a file, and
dies of a segmentation fault as soon as a job starts with a registered one. An attempt at such a job stays in
the job's workload, with the profile itself, which Batsim must therefore be told to keep.
"""

from collections.abc import Mapping
from typing import Any

from bridge.base.errors import BridgeError
from bridge.wire import events as ev
from bridge.wire.events import FieldMap
from bridge.wire.times import MICRO, micro
from bridge.worlds.batsim import profiles
from bridge.worlds.batsim.profiles import JobProfiles
from bridge.worlds.batsim.referee import AGAIN

#: Batsim's options: without the first nothing can be killed and run again, without the second a profile is
#: gone with the last job that uses it.
DYNAMIC, REUSE = "--enable-dynamic-jobs", "--enable-profile-reuse"
#: States of an attempt between waiting and running, or running and over.
REGISTERED, KILLING = "registered", "being killed"
#: The type of the only profile whose length can be changed.
DELAY = "delay"


def refuse_static(begin: ev.SimulationBegins) -> None:
    """Raise BridgeError if no job can be registered, or composed profiles would be gone after a kill."""
    if not begin.dynamic_jobs:
        what = "the policy kills jobs, which can only run again as dynamic jobs, and "
        remedy = f"Start the platform program with {DYNAMIC}."
        raise BridgeError(f"{what}{DYNAMIC} is missing", where="SIMULATION_BEGINS", remedy=remedy)
    all_profiles = (profile for profiles in begin.profiles.values() for profile in profiles.values())
    if any(profile.get("type") == "composed" for profile in all_profiles):
        refuse_forgotten(begin, "SIMULATION_BEGINS")


def refuse_forgotten(begin: ev.SimulationBegins, where: str) -> None:
    """Raise BridgeError if composed profiles would be gone when a killed job is to run again."""
    if not begin.profile_reuse:
        what = f"the policy kills jobs, and composed profiles cannot be used again: {REUSE} is missing"
        remedy = f"Start the platform program with {DYNAMIC} {REUSE}."
        raise BridgeError(what, where=where, remedy=remedy)


def refuse_unrepeatable(
    event: ev.JobSubmitted, its_profiles: JobProfiles, begin: ev.SimulationBegins
) -> None:
    """Raise BridgeError for a job that could not run again after a kill."""
    where = f"job {event.job_id}"
    profile = its_profiles.get(event.job_id.partition("!")[0], event.profile)
    if not profile:
        what = f"its profile {event.profile!r} is not known, so that it could not run again after a kill"
        remedy = "Start the platform program with --forward-profiles-on-submission."
        raise BridgeError(what, where=where, remedy=remedy)
    if profile.get("type") == "composed":  # which is used again as it is
        refuse_forgotten(begin, where)
    elif wrong := profiles.find_fault(profile):
        what = f"its profile {event.profile!r} could not be registered again after a kill: {wrong}"
        remedy = "Use another profile, or a policy that does not kill."
        raise BridgeError(what, where=where, remedy=remedy)


def register_attempt(
    now: int,
    first: ev.JobSubmitted,
    number: int,
    its_profiles: JobProfiles,
    history: Mapping[str, Any],
    longer: int = 0,
) -> tuple[str, list[ev.Decision]]:
    """Return the id of a job's attempt of this number, and the decisions that register it at `now` (µs).

    `first`: the job as it was submitted; `its_profiles`: those of the simulation, the job's among them;
    `history`: further fields. `longer`: how much longer than the job it lasts, and may last, µs; only a delay
    can.
    """
    workload, _, name = first.job_id.partition("!")
    registered: list[ev.Decision] = []
    if its_profiles.composed(workload, first.profile):
        job_id, profile = f"{first.job_id}{AGAIN}{number}", first.profile
    else:
        own, profile = f"{workload}_again", f"{name}_{number}:{first.profile}"
        job_id = f"{own}!{name}_{number}"
        copy = _lasting(its_profiles.get(workload, first.profile), longer)
        registered.append(ev.RegisterProfile(now, own, profile, copy))
    walltime = None if first.walltime is None else first.walltime + longer
    fields = {**first.fields, **history}
    return job_id, [*registered, ev.RegisterJob(now, job_id, first.res, walltime, profile, fields)]


def _lasting(profile: FieldMap, longer: int) -> FieldMap:
    """Return a profile that lasts so much longer, µs."""
    if not longer:
        return profile
    length = micro(profile[DELAY]) + longer
    return {**profile, DELAY: length // MICRO if length % MICRO == 0 else length / MICRO}
