"""What is said on the wire, typed: events that the platform sends, decisions that are sent back.

All times are int microseconds. These types know nothing of how Batsim 4 or 5 spells them: see `codec`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, dataclass_transform

from bridge.wire.hosts import Hosts

#: A JSON object whose fractions are `decimal.Decimal`, so that nothing is rounded unseen.
FieldMap = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HostInfo:
    """One host as the platform describes it (`extra_fields`: as its dialect has it): compute hosts first."""

    id: int
    name: str
    state: str = "idle"
    properties: Mapping[str, str] = field(default_factory=dict)
    extra_fields: FieldMap | None = field(default=None, compare=False)


@dataclass_transform(field_specifiers=(field,))
@dataclass(unsafe_hash=True)
class WireItem:
    """Base class of events and decisions; every kind is a dataclass.

    Nobody changes them; they are not frozen, since that takes twice as long to make one.

    Attributes:
        extra_fields: what the dialect says of it that has no meaning here, as it came; None: nothing.
    """

    time: int
    extra_fields: FieldMap | None = field(default=None, kw_only=True, compare=False, repr=False)

    def __init_subclass__(cls) -> None:
        dataclass(unsafe_hash=True)(cls)


class Event(WireItem):
    """Something has happened."""


class SimulationBegins(Event):
    """The machine and the rules that the platform was started with.

    Attributes:
        profiles: workload name -> profile name -> profile, as Batsim 4 has them; those that some job uses.
        crashing_profile_types: types of profiles with which no job must start, since the platform would not
            survive it.
    """

    compute: tuple[HostInfo, ...]
    storage: tuple[HostInfo, ...] = ()
    compute_sharing: bool = False
    storage_sharing: bool = True
    dynamic_jobs: bool = False
    acknowledges: bool = False
    profile_reuse: bool = False
    config: str = ""
    workloads: Mapping[str, str] = field(default_factory=dict)
    profiles: Mapping[str, Mapping[str, FieldMap]] = field(default_factory=dict)
    crashing_profile_types: frozenset[str] = frozenset()


class JobSubmitted(Event):
    """A job asks for `res` hosts. `walltime` is None where it has none; `fields` are all of the job's."""

    job_id: str
    res: int
    submit: int
    walltime: int | None
    profile: str
    fields: FieldMap = field(default_factory=dict)
    profile_fields: FieldMap | None = None


class JobCompleted(Event):
    """A job is over, however it ended; its hosts are free. Batsim 5 does not repeat which."""

    job_id: str
    state: str
    return_code: int
    hosts: Hosts = ()


class JobKilled(Event):
    job_ids: tuple[str, ...]
    progress: FieldMap


class ResourceStateChanged(Event):
    """Hosts have reached a power state; `switched`: by falling asleep or waking up (Batsim 5 only)."""

    hosts: Hosts
    pstate: int
    switched: bool = False


class MachineAvailability(Event):
    hosts: Hosts
    available: bool


class RequestedCall(Event):
    """A requested wake-up."""


class Notification(Event):
    """An event without effect on the schedule: no more static jobs or external events, or unknown kinds."""

    kind: str
    fields: FieldMap


class EnergyAnswer(Event):
    joules: float


class SimulationEnds(Event):
    """All is over; sent alone."""


@dataclass(slots=True)
class Message:
    """One message of the platform: what happened up to `now`, in its order."""

    now: int
    events: tuple[Event, ...]


class Decision(WireItem):
    """Something shall happen."""


class Hello(Decision):
    """Handshake: name of the scheduler, and the features that it needs (Batsim 5; 4 has options)."""

    name: str
    version: str
    features: frozenset[str]


class OpaqueDecision(Decision):
    """A decision of other schedulers, in its dialect's form; `bridge` never sends one."""

    kind: str
    fields: FieldMap


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


class KillJob(Decision):
    job_ids: tuple[str, ...]


class RejectJob(Decision):
    """A waiting job shall never run."""

    job_id: str


class CallMeLater(Decision):
    at: int


class RegisterProfile(Decision):
    workload: str
    name: str
    profile: FieldMap


class RegisterJob(Decision):
    """Submit a job of one's own; `profile` is a name in the job's workload, `walltime` may be None."""

    job_id: str
    res: int
    walltime: int | None
    profile: str
    fields: FieldMap = field(default_factory=dict)


class FinishRegistration(Decision):
    """No more jobs will be registered."""


class SetPowerState(Decision):
    """Bring hosts to a power state."""

    hosts: Hosts
    pstate: int


class QueryEnergy(Decision):
    """Ask for the energy consumed so far."""


@dataclass(slots=True)
class Reply:
    """The answer to one message. `now` later than the message's says that deciding took simulated time."""

    now: int
    decisions: tuple[Decision, ...] = ()
