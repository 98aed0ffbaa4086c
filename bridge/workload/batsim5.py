"""Writes workloads of Batsim 5, whose jobs have fewer fields and whose profiles have other names.

Format: Batsim 5's documentation, "Input workload", and what 5.0.0-rc2 makes of it. `bridge.workload.batsim`
reads the files of either version.
"""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bridge.dialects import profiles as names
from bridge.errors import BridgeError
from bridge.workload.batsim import ProfileBuilder, delay_profiles, document, read_batsim, write_document
from bridge.workload.rules import KEEP, Walltime
from bridge.workload.table import Workload

#: Fields that a job has; all others travel in its ``extra_data``.
_FIELDS = frozenset({"id", "subtime", "res", "profile", "walltime"})
#: What Batsim calls the first workload; ids and names that hold it are taken as complete.
_WORKLOAD = "w0"


#: Files of either version are read alike.
read_batsim5 = read_batsim


def write_batsim5(
    workload: Workload, path: str | Path, profiles: ProfileBuilder = delay_profiles, walltime: Walltime = KEEP
) -> None:
    """Write a workload of Batsim 5; see `bridge.workload.batsim.write_batsim`."""
    top, jobs, made = document(workload, profiles, walltime)
    for job in jobs:
        for name in (job["id"], job["profile"]):
            if _WORKLOAD in str(name):
                what = f"the name {str(name)!r} holds {_WORKLOAD!r}, which Batsim 5 takes for the workload's"
                remedy = "Give the job an id of its own, such as a number."
                raise BridgeError(what, where=f"job {job['id']}", remedy=remedy)
    write_document(path, top, list(map(_job, jobs)), _profiles(jobs, made))


def _job(job: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: value for name, value in job.items() if name in _FIELDS}
    more = {name: value for name, value in job.items() if name not in _FIELDS}
    return own | ({"extra_data": more} if more else {})


def _profiles(jobs: list[dict[str, Any]], made: Mapping[str, names.Profile]) -> dict[str, names.Profile]:
    """Return the profiles, each as Batsim 5 has it, or as it gets it right."""
    sizes = _sizes(jobs, made)
    found: dict[str, names.Profile] = {}
    for name, profile in made.items():
        told = names.to_file(profile)
        kind = profile.get("type")
        if told is None or kind == "data_staging":
            why = "dies of a profile" if told else "has no profile"
            what = f"Batsim 5 (5.0.0-rc2) {why} of type {kind!r}"
            raise BridgeError(what, where=f"profile {name!r}", remedy="Use another profile, or Batsim 4.")
        if names.unlike(profile):
            if len(sizes[name]) > 1:
                raise BridgeError(
                    "reads and writes different amounts, which Batsim 5.0.0-rc2 confuses, and is used by "
                    f"jobs of {', '.join(map(str, sorted(sizes[name])))} hosts",
                    where=f"profile {name!r}",
                    remedy="Give jobs of different sizes profiles of their own.",
                )
            told = names.spread(profile, *sizes[name] or {1})
        found[name] = told
    return found


def _sizes(jobs: list[dict[str, Any]], made: Mapping[str, names.Profile]) -> dict[str, set[int]]:
    """Return how many hosts the jobs have that use a profile, by itself or as a part."""
    found: dict[str, set[int]] = defaultdict(set)
    todo = list({(str(job["profile"]), int(job["res"])) for job in jobs})
    while todo:
        name, size = todo.pop()
        if size in found[name]:
            continue
        found[name].add(size)
        todo += [(str(part), size) for part in made.get(name, {}).get("seq", ()) if part in made]
    return found
