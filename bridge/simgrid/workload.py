"""Jobs, and the workloads they come from: a JSON file each, or the decision process."""

import re
from collections import deque
from pathlib import Path
from typing import Any

from bridge.simgrid import jsontext, profiles
from bridge.simgrid.errors import ModelError
from bridge.simgrid.profiles import Profile

NOT_SUBMITTED = "NOT_SUBMITTED"
SUBMITTED = "SUBMITTED"
RUNNING = "RUNNING"
SUCCESS = "COMPLETED_SUCCESSFULLY"
FAILED = "COMPLETED_FAILED"
WALLTIME = "COMPLETED_WALLTIME_REACHED"
KILLED = "COMPLETED_KILLED"
REJECTED = "REJECTED"
COMPLETE = frozenset((SUCCESS, FAILED, WALLTIME, KILLED, REJECTED))

#: Every "id" member of a job's text is renamed, nested ones too: so does Batsim, by this pattern on the text.
_ID = re.compile(r'"id"\s*:\s*(?:"*[^(,|})]*"*)\s*')


class Job:
    """One job and what has become of it. Times are in s, energy in J; -1 where there is none."""

    __slots__ = (
        "actors", "allocation", "energy", "id", "inbox", "kill_requested", "metadata", "name", "profile",
        "ranks", "res", "return_code", "runtime", "start", "state", "subtime", "task", "text", "walltime",
        "workload",
    )  # fmt: skip

    def __init__(self, workload: "Workload", name: str, profile: Profile) -> None:
        self.workload = workload
        self.name = name
        self.id = f"{workload.name}!{name}"
        self.profile = profile
        self.subtime = 0.0
        self.walltime = -1.0
        self.res = 0
        self.ranks: list[int] = []
        self.text = ""
        self.state = NOT_SUBMITTED
        self.start = -1.0
        self.runtime = -1.0
        self.energy = -1.0
        self.return_code = -1
        self.allocation: tuple[int, ...] = ()
        self.kill_requested = False
        self.metadata = ""
        self.inbox: deque[str] = deque()
        self.task: Any = None
        self.actors: list[Any] = []


class Workload:
    """The jobs and profiles that share one name: ``w0`` for the first file, or what the decision process
    says.

    ``profiles`` keeps a name for ever; its value is None once the profile was garbage-collected.
    """

    def __init__(self, name: str, file: str, static: bool) -> None:
        self.name = name
        self.file = file
        self.static = static
        self.nb_res = -1
        self.profiles: dict[str, Profile | None] = {}
        self.jobs: dict[str, Job] = {}
        self.met: set[str] = set()

    def profile(self, name: str, where: str) -> Profile:
        """Return a profile by name, or say that there is none or that it is gone."""
        if name not in self.profiles:
            raise ModelError(
                f"the profile '{name}' does not exist", where=where, remedy=f"Add it to '{self.name}'."
            )
        found = self.profiles[name]
        if found is None:
            raise ModelError(
                f"the profile '{name}' existed but was dropped: no job uses it any more",
                where=where,
                remedy="Register it under a new name, or add --enable-dynamic-jobs --enable-profile-reuse.",
            )
        return found

    def add_profile(self, profile: Profile, where: str) -> None:
        """Add a profile that came while the simulation runs."""
        if profile.name in self.profiles:
            raise ModelError(f"the profile '{profile.name}' already exists in '{self.name}'", where=where)
        profile.steps = [self.profile(name, where) for name in profile.numbers.get("seq", ())]
        self.profiles[profile.name] = profile

    def add_job(self, job: Job, where: str) -> None:
        """Add a job under a name that was never used before."""
        if job.id in self.met:
            raise ModelError(
                f"the job '{job.id}' already exists", where=where, remedy="Give every job its own id."
            )
        self.met.add(job.id)
        self.jobs[job.id] = job

    def job(self, job_id: str, where: str) -> Job:
        """Return a job that is not over yet."""
        found = self.jobs.get(job_id)
        if found is None:
            state = "is over and forgotten" if job_id in self.met else "does not exist"
            raise ModelError(
                f"the job '{job_id}' {state}", where=where, remedy="Decide about live jobs only."
            )
        return found

    def forget(self, job_id: str, collect_profiles: bool) -> None:
        """Drop a job that is over and, if asked to, its profile with all that it is composed of."""
        job = self.jobs.pop(job_id, None)
        if job is not None and collect_profiles:
            self._drop(job.profile.name)

    def _drop(self, name: str) -> None:
        profile = self.profiles[name]
        if profile is not None:
            for step in profile.steps:
                self._drop(step.name)
            self.profiles[name] = None


def load(name: str, path: str) -> Workload:
    """Read a workload file.

    Raises:
        ModelError: naming the file and the job or profile that is wrong.
    """
    try:
        document = jsontext.loads(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise ModelError(
            f"cannot be read: {error}", where=path, remedy="Give -w a Batsim JSON workload."
        ) from None
    if not isinstance(document, dict):
        raise ModelError(
            "is not a JSON object", where=path, remedy="A workload has nb_res, jobs and profiles."
        )
    workload = Workload(name, str(Path(path).absolute()), static=True)
    nb_res = document.get("nb_res")
    if type(nb_res) is not int or nb_res <= 0:
        raise ModelError("'nb_res' is missing or not a positive integer", where=path)
    workload.nb_res = nb_res
    described, listed = document.get("profiles"), document.get("jobs")
    if not isinstance(described, dict):
        raise ModelError("'profiles' is missing or not an object", where=path)
    if not isinstance(listed, list):
        raise ModelError("'jobs' is missing or not an array", where=path)
    for key, description in described.items():
        workload.profiles[key] = profiles.from_json(key, description, path, Path(workload.file).parent)
    for description in listed:
        workload.add_job(job_from_json(description, workload, path), path)
    for profile in workload.profiles.values():
        assert profile is not None
        profile.steps = [
            workload.profile(n, f"{path}: profile '{profile.name}'") for n in profile.numbers.get("seq", ())
        ]
    _refuse_circles(workload, path)
    _drop_unreferenced(workload)
    return workload


def job_from_json(description: Any, workload: Workload, where: str) -> Job:
    """Read and check one job.

    Raises:
        ModelError: naming the job and the field that is wrong.
    """
    if not isinstance(description, dict):
        raise ModelError("a job is not an object", where=where)
    name = description.get("id")
    if type(name) is not str and type(name) is not int:
        raise ModelError("a job has no 'id' that is a string or an integer", where=where)
    name = _job_name(str(name), workload, where)
    place = f"{where}: job '{workload.name}!{name}'"
    profile_name = description.get("profile")
    if not isinstance(profile_name, str):
        raise ModelError("'profile' is missing or not a string", where=place)
    job = Job(workload, name, workload.profile(profile_name, place))
    subtime: Any = description.get("subtime")
    walltime: Any = description.get("walltime", -1)
    res = description.get("res")
    if not profiles.is_number(subtime):
        raise ModelError("'subtime' is missing or not a number", where=place)
    if not profiles.is_number(walltime) or (walltime != -1 and walltime <= 0):
        raise ModelError(
            f"'walltime' is {walltime}", where=place, remedy="It is a positive number, or -1 for none."
        )
    if type(res) is not int or res < 0:
        raise ModelError("'res' is missing or not a non-negative integer", where=place)
    job.subtime, job.walltime, job.res = float(subtime), float(walltime), res
    job.ranks = _ranks(description.get("smpi_ranks_to_hosts_mapping", []), res, place)
    if job.profile.kind == "parallel" and len(job.profile.numbers["cpu"]) != res:
        raise ModelError(
            f"asks for {res} machines, its profile '{profile_name}' is for another number", where=place
        )
    job.text = _with_full_id(description, job.id, place)
    return job


def _job_name(text: str, workload: Workload, where: str) -> str:
    if workload.name not in text:
        if "!" in text:
            raise ModelError(
                f"the job id '{text}' has a '!'", where=where, remedy="Only WORKLOAD!JOB may have one."
            )
        return text
    parts = re.split("!+", text)
    if len(parts) != 2 or parts[0] != workload.name:
        raise ModelError(
            f"the job id '{text}' holds '{workload.name}', the workload, but is not '{workload.name}!JOB'",
            where=where,
            remedy="Batsim reads such an id as WORKLOAD!JOB and stops; rename the job.",
        )
    return parts[1]


def _ranks(mapping: Any, res: int, place: str) -> list[int]:
    if not isinstance(mapping, list) or not all(type(rank) is int and 0 <= rank < res for rank in mapping):
        raise ModelError(
            f"'smpi_ranks_to_hosts_mapping' is not an array of integers in 0..{res - 1}", where=place
        )
    return mapping


def _with_full_id(description: dict[str, Any], full: str, place: str) -> str:
    text = jsontext.dumps({**description, "id": full})
    if text.count('"id"') == 1:
        return text
    text = _ID.sub(lambda _: f'"id":{jsontext.dumps(full)}', jsontext.dumps(description))
    try:
        jsontext.loads_message(text)
    except ValueError:
        raise ModelError(
            "has an 'id' in which a bracket, comma or bar stands", where=place, remedy="Rename it."
        ) from None
    return text


def _refuse_circles(workload: Workload, path: str) -> None:
    done: set[str] = set()

    def visit(profile: Profile, above: tuple[str, ...]) -> None:
        if profile.name in above:
            circle = " -> ".join((*above, profile.name))
            raise ModelError(f"profiles are composed in a circle: {circle}", where=path)
        if profile.name not in done:
            for step in profile.steps:
                visit(step, (*above, profile.name))
            done.add(profile.name)

    for profile in workload.profiles.values():
        assert profile is not None
        visit(profile, ())


def _drop_unreferenced(workload: Workload) -> None:
    # A profile lives as long as a job or a living composed profile refers to it. Batsim passes once over a
    # hash table that runs, for small workloads, from the last profile to the first.
    uses: dict[str, int] = {}
    for job in workload.jobs.values():
        uses[job.profile.name] = uses.get(job.profile.name, 0) + 1
    for profile in workload.profiles.values():
        for step in profile.steps if profile else ():
            uses[step.name] = uses.get(step.name, 0) + 1
    for name in reversed(list(workload.profiles)):
        profile = workload.profiles[name]
        if profile is not None and not uses.get(name):
            for step in profile.steps:
                uses[step.name] -= 1
            workload.profiles[name] = None
