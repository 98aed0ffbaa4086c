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
class SimulationBegins:
    """The machine and the rules that the platform was started with.

    Attributes:
        profiles: workload name -> profile name -> profile, those that some job uses.
    """

    time: int
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
class JobSubmitted:
    """A job asks for `res` hosts. `walltime` is None where it has none; `fields` are all of the job's."""

    time: int
    job_id: str
    res: int
    submit: int
    walltime: int | None
    profile: str
    fields: Fields = field(default_factory=dict)
    profile_fields: Fields | None = None


@dataclass(frozen=True, slots=True)
class JobCompleted:
    """A job is over, however it ended; its hosts are free."""

    time: int
    job_id: str
    state: str
    return_code: int
    hosts: Hosts


@dataclass(frozen=True, slots=True)
class JobKilled:
    """A kill was carried out; a JobCompleted for each job that still ran came before."""

    time: int
    job_ids: tuple[str, ...]
    progress: Fields


@dataclass(frozen=True, slots=True)
class ResourceStateChanged:
    """Hosts have reached a power state."""

    time: int
    hosts: Hosts
    pstate: int


@dataclass(frozen=True, slots=True)
class MachineAvailability:
    """Hosts have gone (`available` false) or have come back."""

    time: int
    hosts: Hosts
    available: bool


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A requested wake-up."""

    time: int


@dataclass(frozen=True, slots=True)
class Notification:
    """Any other note: no more static jobs or external events, or an unknown event that was forwarded."""

    time: int
    kind: str
    fields: Fields


@dataclass(frozen=True, slots=True)
class EnergyAnswer:
    """The answer to `QueryEnergy`, in joules."""

    time: int
    joules: float


@dataclass(frozen=True, slots=True)
class JobMessage:
    """A running job speaks."""

    time: int
    job_id: str
    message: object


@dataclass(frozen=True, slots=True)
class PlatformQuery:
    """The platform asks for something (``estimate_waiting_time``); Batsim 4 does nothing with an answer."""

    time: int
    requests: Fields


@dataclass(frozen=True, slots=True)
class SimulationEnds:
    """All is over; sent alone."""

    time: int


Event = (
    SimulationBegins
    | JobSubmitted
    | JobCompleted
    | JobKilled
    | ResourceStateChanged
    | MachineAvailability
    | RequestedCall
    | Notification
    | EnergyAnswer
    | JobMessage
    | PlatformQuery
    | SimulationEnds
)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the platform: what happened up to `now`, in its order."""

    now: int
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class ExecuteJob:
    """Start a job on hosts; at most one of the mappings.

    Attributes:
        mapping: rank -> index within the allocation; its length then stands for the number of hosts.
        storage_mapping: label in the profile -> id of a storage host.
    """

    time: int
    job_id: str
    hosts: Hosts
    mapping: Mapping[int, int] | None = None
    storage_mapping: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class KillJob:
    """Kill running jobs."""

    time: int
    job_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RejectJob:
    """A waiting job shall never run."""

    time: int
    job_id: str


@dataclass(frozen=True, slots=True)
class CallMeLater:
    """Ask for a wake-up at `at`."""

    time: int
    at: int


@dataclass(frozen=True, slots=True)
class RegisterProfile:
    """Add a profile to a workload, which may be new."""

    time: int
    workload: str
    name: str
    profile: Fields


@dataclass(frozen=True, slots=True)
class RegisterJob:
    """Submit a job of one's own; `profile` is a name in the job's workload, `walltime` may be None."""

    time: int
    job_id: str
    res: int
    walltime: int | None
    profile: str
    fields: Fields = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FinishRegistration:
    """No more jobs will be registered, or (`finished` false) some will after all."""

    time: int
    finished: bool = True


@dataclass(frozen=True, slots=True)
class SetPowerState:
    """Bring hosts to a power state."""

    time: int
    hosts: Hosts
    pstate: int


@dataclass(frozen=True, slots=True)
class QueryEnergy:
    """Ask for the energy consumed so far."""

    time: int


@dataclass(frozen=True, slots=True)
class SetJobMetadata:
    """A text for the job's row in the platform's jobs table."""

    time: int
    job_id: str
    text: str


@dataclass(frozen=True, slots=True)
class TellJob:
    """Speak to a running job."""

    time: int
    job_id: str
    text: str


Decision = (
    ExecuteJob
    | KillJob
    | RejectJob
    | CallMeLater
    | RegisterProfile
    | RegisterJob
    | FinishRegistration
    | SetPowerState
    | QueryEnergy
    | SetJobMetadata
    | TellJob
)


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one message. `now` later than the message's says that deciding took simulated time."""

    now: int
    decisions: tuple[Decision, ...] = ()
