"""Jobs, the workloads they come from (a JSON file each, or the decision process), and external events."""

import re
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.base import jsontext
from bridge.base.errors import BridgeError, add_location
from bridge.wire import json_numbers
from bridge.wire.fields import Fields, read_json
from bridge.wire.hosts import Hosts
from bridge.wire.profile_names import of_workload
from bridge.worlds.simgrid import profile_types
from bridge.worlds.simgrid.options import read_text
from bridge.worlds.simgrid.profile_types import Profile

NOT_SUBMITTED, SUBMITTED, RUNNING, REJECTED = "NOT_SUBMITTED", "SUBMITTED", "RUNNING", "REJECTED"
SUCCESS, FAILED = "COMPLETED_SUCCESSFULLY", "COMPLETED_FAILED"
WALLTIME, KILLED = "COMPLETED_WALLTIME_REACHED", "COMPLETED_KILLED"
COMPLETE = (SUCCESS, FAILED, WALLTIME, KILLED, REJECTED)

#: Every "id" member of a job's text is renamed, nested ones too: so does Batsim, by this pattern on the text.
_ID = re.compile(r'"id"\s*:\s*(?:"*[^(,|})]*"*)\s*')


@dataclass(slots=True, eq=False)
class Job:
    """One job and its outcome. Times are in s, energy in J; -1 where there is none."""

    workload: "SimulatedWorkload"
    name: str
    profile: Profile
    subtime: float = 0.0
    walltime: float = -1.0
    n_hosts: int = 0
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
    #: How far it is: :class:`bridge.worlds.simgrid.execution.ProfileStep`.
    task: Any = None
    actors: list[Any] = field(default_factory=list)
    #: See :mod:`bridge.worlds.simgrid.failures`.
    guards: list[Any] = field(default_factory=list)
    #: The id by which the decision process knows it.
    id: str = field(init=False)

    def __post_init__(self) -> None:
        self.id = f"{self.workload.name}!{self.name}"


@dataclass(slots=True, eq=False)
class SimulatedWorkload:
    """The jobs and profiles of one workload: ``w0`` of the first file, or the decision process's."""

    name: str
    file: str = "dynamic"
    nb_res: int = -1
    #: Keeps a name for ever; the value is None once the profile was garbage-collected.
    profiles: dict[str, Profile | None] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    met: set[str] = field(default_factory=set)

    def profile(self, name: str) -> Profile:
        if name not in self.profiles:
            raise BridgeError(f"the profile '{name}' does not exist", remedy=f"Add it to '{self.name}'.")
        profile = self.profiles[name]
        if profile is None:
            remedy = "Register it under a new name, or add --enable-dynamic-jobs --enable-profile-reuse."
            what = f"the profile '{name}' existed but was dropped: no job uses it any more"
            raise BridgeError(what, remedy=remedy)
        return profile

    def add_profile(self, profile: Profile) -> None:
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
        job = self.jobs.get(job_id)
        if job is None:
            state = "is over and forgotten" if job_id in self.met else "does not exist"
            raise BridgeError(f"the job '{job_id}' {state}", remedy="Decide about live jobs only.")
        return job

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


def load(name: str, path: str) -> SimulatedWorkload:
    """Read a workload file; a BridgeError names it, and the job or profile that is wrong."""
    workload = SimulatedWorkload(name, str(Path(path).absolute()))
    with add_location(path):
        try:
            document = read_json(Path(path).read_bytes())
        except OSError as error:
            raise BridgeError(f"cannot be read: {error}", remedy="Give -w a Batsim JSON workload.") from None
        workload.nb_res = document.integer("nb_res")
        if workload.nb_res <= 0:
            raise BridgeError("'nb_res' is not positive")
        document.mapping("profiles"), document.array("jobs")
        content = of_workload(document.values)
        described, listed = content["profiles"], content["jobs"]
        for key, description in described.items():
            workload.profiles[key] = profile_types.from_json(key, description, Path(workload.file).parent)
        for description in listed:
            workload.add_job(job_from_json(description, workload))
        for key in described:
            _compose(workload, key, ())
    _drop_unreferenced(workload)
    return workload


def job_from_json(description: Any, workload: SimulatedWorkload) -> Job:
    """Read and check one job; a BridgeError names it, and the field that is wrong."""
    job_fields = Fields(description, "a job is")
    name = description.get("id")
    if type(name) is not str and type(name) is not int:
        raise BridgeError("a job has no 'id' that is a string or an integer")
    name = _job_name(str(name), workload)
    with add_location(f"job '{workload.name}!{name}'"):
        job = Job(workload, name, workload.profile(job_fields.text("profile")))
        job.subtime, job.walltime = job_fields.number("subtime"), job_fields.number("walltime", -1)
        if job.walltime != -1 and job.walltime <= 0:
            remedy = "It is a positive number, or -1 for none."
            raise BridgeError(f"'walltime' is {job.walltime:g}", remedy=remedy)
        job.n_hosts = job_fields.integer("res")
        if job.n_hosts < 0:
            raise BridgeError(f"'res' is {job.n_hosts}, less than 0")
        key = "smpi_ranks_to_hosts_mapping"
        job.ranks = job_fields.array(key, [])
        if not all(type(rank) is int and 0 <= rank < job.n_hosts for rank in job.ranks):
            raise BridgeError(f"'{key}' is not an array of integers in 0..{job.n_hosts - 1}")
        if job.profile.kind == "parallel" and len(job.profile.numbers["cpu"]) != job.n_hosts:
            what = f"asks for {job.n_hosts} machines, its profile '{job.profile.name}' is for another number"
            raise BridgeError(what)
        job.text = _with_full_id(description, job.id)
    return job


def _job_name(text: str, workload: SimulatedWorkload) -> str:
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
    text = json_numbers.dumps({**description, "id": full})
    if text.count('"id"') == 1:
        return text
    text = _ID.sub(lambda _: f'"id":{json_numbers.dumps(full)}', json_numbers.dumps(description))
    try:
        jsontext.loads(text)
    except ValueError:
        what = "has an 'id' in which a bracket, comma or bar stands"
        raise BridgeError(what, remedy="Rename it.") from None
    return text


def _compose(workload: SimulatedWorkload, name: str, above: tuple[str, ...]) -> None:
    """Give a profile and all below it their steps, the innermost first."""
    if name in above:
        raise BridgeError(f"profiles are composed in a circle: {' -> '.join((*above, name))}")
    with add_location(f"profile '{above[-1]}'" if above else ""):
        profile = workload.profile(name)
    steps = profile.numbers.get("seq", ())
    if steps and not profile.steps:
        if len(above) == profile_types.MOST_LEVELS:
            raise BridgeError(f"profiles are composed in more than {len(above)} levels")
        for step in steps:
            _compose(workload, step, (*above, name))
        profile.compose([workload.profile(step) for step in steps])


def _drop_unreferenced(workload: SimulatedWorkload) -> None:
    # A profile lives as long as a job or a living composed profile refers to it. Batsim passes once over a
    # hash table that runs, for small workloads, from the last profile to the first.
    uses = Counter(job.profile.name for job in workload.jobs.values())
    for kept_profile in filter(None, workload.profiles.values()):
        uses.update(step.name for step in kept_profile.steps)
    for name in reversed(list(workload.profiles)):
        profile = workload.profiles[name]
        if profile is not None and not uses[name]:
            for step in profile.steps:
                uses[step.name] -= 1
            workload.profiles[name] = None


HOST_AVAILABLE = "machine_available"
HOST_UNAVAILABLE = "machine_unavailable"


@dataclass(frozen=True, slots=True)
class ExternalEvent:
    """An external event: its kind, its date (s), the machines that come or go, or else its JSON text."""

    kind: str
    time: float
    machines: Hosts
    text: str


def load_events(path: str, forward_unknown: bool) -> list[ExternalEvent]:
    """Read an events file, one JSON object a line, in the order in which they occur; errors name the line."""
    events = []
    for number, line in enumerate(read_text(path, "Give --events a file.").split("\n"), 1):
        if line:
            with add_location(f"{path}:{number}"):
                events.append(_event(read_json(line), forward_unknown))
    # Same-date events are sorted by kind, as in Batsim.
    return sorted(
        events, key=lambda event: (event.time, (HOST_AVAILABLE, HOST_UNAVAILABLE, "other").index(event.kind))
    )


def _event(event_fields: Fields, forward_unknown: bool) -> ExternalEvent:
    kind, time = event_fields.text("type"), event_fields.amount("timestamp")
    if kind in (HOST_AVAILABLE, HOST_UNAVAILABLE):
        return ExternalEvent(kind, time, event_fields.hosts("resources"), "")
    if not forward_unknown:
        raise BridgeError(f"the type '{kind}' is unknown", remedy="Add --forward-unknown-events.")
    return ExternalEvent("other", time, (), json_numbers.dumps(event_fields.values))
