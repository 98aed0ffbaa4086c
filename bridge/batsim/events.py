"""What is said on the wire, typed: events that the platform sends, decisions that are sent back.

All times are int microseconds. These types know nothing of how Batsim 4 or 5 spells them: see `codec`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bridge.wire.hosts import Hosts

#: A JSON object whose fractions are `decimal.Decimal`, so that nothing is rounded unseen.
Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Resource:
    """One host as the platform describes it: compute hosts first, in the order of their names as text."""

    id: int
    name: str
    state: str = "idle"
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Event:
    """Something has happened."""

    time: int


@dataclass(frozen=True, slots=True)
class SimulationBegins(Event):
    """The machine and the rules that the platform was started with.

    Attributes:
        profiles: workload name -> profile name -> profile, those that some job uses.
    """

    compute: tuple[Resource, ...]
    storage: tuple[Resource, ...] = ()
    compute_sharing: bool = False
    storage_sharing: bool = True
    dynamic_jobs: bool = False
    acknowledges: bool = False
    profile_reuse: bool = False
    config: str = ""
    workloads: Mapping[str, str] = field(default_factory=dict)
    profiles: Mapping[str, Mapping[str, Fields]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobSubmitted(Event):
    """A job asks for `res` hosts. `walltime` is None where it has none; `fields` are all of the job's."""

    job_id: str
    res: int
    submit: int
    walltime: int | None
    profile: str
    fields: Fields = field(default_factory=dict)
    profile_fields: Fields | None = None


@dataclass(frozen=True, slots=True)
class JobCompleted(Event):
    """A job is over, however it ended; its hosts are free."""

    job_id: str
    state: str
    return_code: int
    hosts: Hosts


@dataclass(frozen=True, slots=True)
class JobKilled(Event):
    """A kill was carried out; a JobCompleted for each job that still ran came before."""

    job_ids: tuple[str, ...]
    progress: Fields


@dataclass(frozen=True, slots=True)
class ResourceStateChanged(Event):
    """Hosts have reached a power state."""

    hosts: Hosts
    pstate: int


@dataclass(frozen=True, slots=True)
class MachineAvailability(Event):
    """Hosts have gone (`available` false) or have come back."""

    hosts: Hosts
    available: bool


@dataclass(frozen=True, slots=True)
class RequestedCall(Event):
    """A requested wake-up."""


@dataclass(frozen=True, slots=True)
class Notification(Event):
    """Any other note: no more static jobs or external events, or an unknown event that was forwarded."""

    kind: str
    fields: Fields


@dataclass(frozen=True, slots=True)
class EnergyAnswer(Event):
    """The answer to `QueryEnergy`, in joules."""

    joules: float


@dataclass(frozen=True, slots=True)
class JobMessage(Event):
    """A running job speaks."""

    job_id: str
    message: object


@dataclass(frozen=True, slots=True)
class PlatformQuery(Event):
    """The platform asks for something (``estimate_waiting_time``); Batsim 4 does nothing with an answer."""

    requests: Fields


@dataclass(frozen=True, slots=True)
class SimulationEnds(Event):
    """All is over; sent alone."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the platform: what happened up to `now`, in its order."""

    now: int
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """Something shall happen."""

    time: int


@dataclass(frozen=True, slots=True)
class ExecuteJob(Decision):
    """Start a job on hosts; at most one of the mappings.

    Attributes:
        mapping: rank -> index within the allocation; its length then stands for the number of hosts.
        storage_mapping: label in the profile -> id of a storage host.
    """

    job_id: str
    hosts: Hosts
    mapping: Mapping[int, int] | None = None
    storage_mapping: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class KillJob(Decision):
    """Kill running jobs."""

    job_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RejectJob(Decision):
    """A waiting job shall never run."""

    job_id: str


@dataclass(frozen=True, slots=True)
class CallMeLater(Decision):
    """Ask for a wake-up at `at`."""

    at: int


@dataclass(frozen=True, slots=True)
class RegisterProfile(Decision):
    """Add a profile to a workload, which may be new."""

    workload: str
    name: str
    profile: Fields


@dataclass(frozen=True, slots=True)
class RegisterJob(Decision):
    """Submit a job of one's own; `profile` is a name in the job's workload, `walltime` may be None."""

    job_id: str
    res: int
    walltime: int | None
    profile: str
    fields: Fields = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FinishRegistration(Decision):
    """No more jobs will be registered, or (`finished` false) some will after all."""

    finished: bool = True


@dataclass(frozen=True, slots=True)
class SetPowerState(Decision):
    """Bring hosts to a power state."""

    hosts: Hosts
    pstate: int


@dataclass(frozen=True, slots=True)
class QueryEnergy(Decision):
    """Ask for the energy consumed so far."""


@dataclass(frozen=True, slots=True)
class SetJobMetadata(Decision):
    """A text for the job's row in the platform's jobs table."""

    job_id: str
    text: str


@dataclass(frozen=True, slots=True)
class TellJob(Decision):
    """Speak to a running job."""

    job_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one message. `now` later than the message's says that deciding took simulated time."""

    now: int
    decisions: tuple[Decision, ...] = ()
