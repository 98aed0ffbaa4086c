"""Jobs, the workloads they come from (a JSON file each, or the decision process), and external events."""

import re
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.dialects.profile_names import of_workload
from bridge.errors import BridgeError, placed
from bridge.simgrid import profile_types
from bridge.simgrid.options import read_text
from bridge.simgrid.profile_types import Profile
from bridge.wire import jsontext
from bridge.wire.fields import Fields, read_json
from bridge.wire.hosts import Hosts

NOT_SUBMITTED, SUBMITTED, RUNNING, REJECTED = "NOT_SUBMITTED", "SUBMITTED", "RUNNING", "REJECTED"
SUCCESS, FAILED = "COMPLETED_SUCCESSFULLY", "COMPLETED_FAILED"
WALLTIME, KILLED = "COMPLETED_WALLTIME_REACHED", "COMPLETED_KILLED"
COMPLETE = (SUCCESS, FAILED, WALLTIME, KILLED, REJECTED)

#: Every "id" member of a job's text is renamed, nested ones too: so does Batsim, by this pattern on the text.
_ID = re.compile(r'"id"\s*:\s*(?:"*[^(,|})]*"*)\s*')


@dataclass(slots=True, eq=False)
class Job:
    """One job and what has become of it. Times are in s, energy in J; -1 where there is none."""

    workload: "Workload"
    name: str
    profile: Profile
    subtime: float = 0.0
    walltime: float = -1.0
    res: int = 0
    ranks: list[int] = field(default_factory=list)
    text: str = ""
    state: str = NOT_SUBMITTED
    start: float = -1.0
    runtime: float = -1.0
    energy: float = -1.0
    return_code: int = -1
    allocation: tuple[int, ...] = ()
    kill_requested: bool = False
    metadata: str = ""
    inbox: deque[str] = field(default_factory=deque)
    #: How far it is: :class:`bridge.simgrid.execution.Step`.
    task: Any = None
    actors: list[Any] = field(default_factory=list)
    #: See :mod:`bridge.simgrid.failures`.
    guards: list[Any] = field(default_factory=list)
    #: The id by which the decision process knows it.
    id: str = field(init=False)

    def __post_init__(self) -> None:
        self.id = f"{self.workload.name}!{self.name}"


@dataclass(slots=True, eq=False)
class Workload:
    """The jobs and profiles of one name: ``w0`` for the first file, or what the decision process says."""

    name: str
    file: str = "dynamic"
    nb_res: int = -1
    #: Keeps a name for ever; the value is None once the profile was garbage-collected.
    profiles: dict[str, Profile | None] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    met: set[str] = field(default_factory=set)

    def profile(self, name: str) -> Profile:
        """Return a profile by name, or say that there is none or that it is gone."""
        if name not in self.profiles:
            raise BridgeError(f"the profile '{name}' does not exist", remedy=f"Add it to '{self.name}'.")
        found = self.profiles[name]
        if found is None:
            remedy = "Register it under a new name, or add --enable-dynamic-jobs --enable-profile-reuse."
            what = f"the profile '{name}' existed but was dropped: no job uses it any more"
            raise BridgeError(what, remedy=remedy)
        return found

    def add_profile(self, profile: Profile) -> None:
        """Add a profile that came while the simulation runs."""
        if profile.name in self.profiles:
            raise BridgeError(f"the profile '{profile.name}' already exists in '{self.name}'")
        profile.compose([self.profile(name) for name in profile.numbers.get("seq", ())])
        self.profiles[profile.name] = profile

    def add_job(self, job: Job) -> None:
        """Add a job under a name that was never used before."""
        if job.id in self.met:
            raise BridgeError(f"the job '{job.id}' already exists", remedy="Give every job its own id.")
        self.met.add(job.id)
        self.jobs[job.id] = job

    def job(self, job_id: str) -> Job:
        """Return a job that is not over yet."""
        found = self.jobs.get(job_id)
        if found is None:
            state = "is over and forgotten" if job_id in self.met else "does not exist"
            raise BridgeError(f"the job '{job_id}' {state}", remedy="Decide about live jobs only.")
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
    """Read a workload file; a BridgeError names it, and the job or profile that is wrong."""
    workload = Workload(name, str(Path(path).absolute()))
    with placed(path):
        try:
            given = read_json(Path(path).read_bytes())
        except OSError as error:
            raise BridgeError(f"cannot be read: {error}", remedy="Give -w a Batsim JSON workload.") from None
        workload.nb_res = given.integer("nb_res")
        if workload.nb_res <= 0:
            raise BridgeError("'nb_res' is not positive")
        given.mapping("profiles"), given.array("jobs")
        content = of_workload(given.given)
        described, listed = content["profiles"], content["jobs"]
        for key, description in described.items():
            workload.profiles[key] = profile_types.from_json(key, description, Path(workload.file).parent)
        for description in listed:
            workload.add_job(job_from_json(description, workload))
        for key in described:
            _compose(workload, key, ())
    _drop_unreferenced(workload)
    return workload


def job_from_json(description: Any, workload: Workload) -> Job:
    """Read and check one job; a BridgeError names it, and the field that is wrong."""
    given = Fields(description, "a job is")
    name = description.get("id")
    if type(name) is not str and type(name) is not int:
        raise BridgeError("a job has no 'id' that is a string or an integer")
    name = _job_name(str(name), workload)
    with placed(f"job '{workload.name}!{name}'"):
        job = Job(workload, name, workload.profile(given.text("profile")))
        job.subtime, job.walltime = given.number("subtime"), given.number("walltime", -1)
        if job.walltime != -1 and job.walltime <= 0:
            remedy = "It is a positive number, or -1 for none."
            raise BridgeError(f"'walltime' is {job.walltime:g}", remedy=remedy)
        job.res = given.integer("res")
        if job.res < 0:
            raise BridgeError(f"'res' is {job.res}, less than 0")
        key = "smpi_ranks_to_hosts_mapping"
        job.ranks = given.array(key, [])
        if not all(type(rank) is int and 0 <= rank < job.res for rank in job.ranks):
            raise BridgeError(f"'{key}' is not an array of integers in 0..{job.res - 1}")
        if job.profile.kind == "parallel" and len(job.profile.numbers["cpu"]) != job.res:
            what = f"asks for {job.res} machines, its profile '{job.profile.name}' is for another number"
            raise BridgeError(what)
        job.text = _with_full_id(description, job.id)
    return job


def _job_name(text: str, workload: Workload) -> str:
    if workload.name not in text:
        if "!" in text:
            raise BridgeError(f"the job id '{text}' has a '!'", remedy="Only WORKLOAD!JOB may have one.")
        return text
    parts = re.split("!+", text)
    if len(parts) != 2 or parts[0] != workload.name:
        what = f"the job id '{text}' holds '{workload.name}', the workload, but is not '{workload.name}!JOB'"
        raise BridgeError(what, remedy="Batsim reads such an id as WORKLOAD!JOB and stops; rename the job.")
    return parts[1]


def _with_full_id(description: dict[str, Any], full: str) -> str:
    text = jsontext.dumps({**description, "id": full})
    if text.count('"id"') == 1:
        return text
    text = _ID.sub(lambda _: f'"id":{jsontext.dumps(full)}', jsontext.dumps(description))
    try:
        jsontext.loads(text)
    except ValueError:
        what = "has an 'id' in which a bracket, comma or bar stands"
        raise BridgeError(what, remedy="Rename it.") from None
    return text


def _compose(workload: Workload, name: str, above: tuple[str, ...]) -> None:
    """Give a profile and all below it their steps, the innermost first."""
    if name in above:
        raise BridgeError(f"profiles are composed in a circle: {' -> '.join((*above, name))}")
    with placed(f"profile '{above[-1]}'" if above else ""):
        profile = workload.profile(name)
    steps = profile.numbers.get("seq", ())
    if steps and not profile.steps:
        if len(above) == profile_types.MOST_LEVELS:
            raise BridgeError(f"profiles are composed in more than {len(above)} levels")
        for step in steps:
            _compose(workload, step, (*above, name))
        profile.compose([workload.profile(step) for step in steps])


def _drop_unreferenced(workload: Workload) -> None:
    # A profile lives as long as a job or a living composed profile refers to it. Batsim passes once over a
    # hash table that runs, for small workloads, from the last profile to the first.
    uses = Counter(job.profile.name for job in workload.jobs.values())
    for known in filter(None, workload.profiles.values()):
        uses.update(step.name for step in known.steps)
    for name in reversed(list(workload.profiles)):
        profile = workload.profiles[name]
        if profile is not None and not uses[name]:
            for step in profile.steps:
                uses[step.name] -= 1
            workload.profiles[name] = None


BACK = "machine_available"
LOST = "machine_unavailable"


@dataclass(frozen=True, slots=True)
class Event:
    """An external event: its kind, its date (s), the machines that come or go, or else its JSON text."""

    kind: str
    time: float
    machines: Hosts
    text: str


def load_events(path: str, forward_unknown: bool) -> list[Event]:
    """Read an events file, one JSON object a line, in the order in which they occur; errors name the line."""
    events = []
    for number, line in enumerate(read_text(path, "Give --events a file.").split("\n"), 1):
        if line:
            with placed(f"{path}:{number}"):
                events.append(_event(read_json(line), forward_unknown))
    # Same-date events are sorted by kind, as in Batsim.
    return sorted(events, key=lambda event: (event.time, (BACK, LOST, "other").index(event.kind)))


def _event(given: Fields, forward_unknown: bool) -> Event:
    kind, time = given.text("type"), given.amount("timestamp")
    if kind in (BACK, LOST):
        return Event(kind, time, given.hosts("resources"), "")
    if not forward_unknown:
        raise BridgeError(f"the type '{kind}' is unknown", remedy="Add --forward-unknown-events.")
    return Event("other", time, (), jsontext.dumps(given.given))
