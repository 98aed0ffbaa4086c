"""Batsim 4's JSON (measured on 4.2.1): tolerant of key order and further fields, strict on meaning."""

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, NoReturn

from bridge.batsim.events import (
    CallMeLater,
    Decision,
    EnergyAnswer,
    Event,
    ExecuteJob,
    FinishRegistration,
    JobCompleted,
    JobKilled,
    JobMessage,
    JobSubmitted,
    KillJob,
    MachineAvailability,
    Message,
    Notification,
    PlatformQuery,
    QueryEnergy,
    RegisterJob,
    RegisterProfile,
    RejectJob,
    Reply,
    RequestedCall,
    Resource,
    ResourceStateChanged,
    SetJobMetadata,
    SetPowerState,
    SimulationBegins,
    SimulationEnds,
    TellJob,
)
from bridge.errors import BridgeError
from bridge.wire import hosts, times

#: How a job can have ended.
JOB_STATES = frozenset(
    {"COMPLETED_SUCCESSFULLY", "COMPLETED_FAILED", "COMPLETED_WALLTIME_REACHED", "COMPLETED_KILLED"}
)
_AVAILABILITY = {"event_machine_available": True, "event_machine_unavailable": False}


class _MalformedError(Exception):
    """What is wrong within one event; the caller knows the event's place."""


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


_loads = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_constant).decode


class Batsim4:
    """The codec of Batsim 4."""

    def greet(self, frame: bytes) -> None:
        """Batsim 4 has no handshake."""

    def decode(self, frame: bytes, number: int) -> Message:
        """See `Codec.decode`."""
        place = ""
        try:
            try:
                document = _loads(frame.decode())
            except (ValueError, RecursionError) as error:
                raise _MalformedError(f"is no JSON text ({error})") from None
            if type(document) is not dict:
                raise _MalformedError("is no JSON object")
            now = _time(document, "now")
            given = document.get("events")
            if type(given) is not list:
                raise _MalformedError("'events' is missing or no array")
            events = []
            for k, event in enumerate(given):
                place = f", events[{k}]"
                if type(event) is not dict:
                    raise _MalformedError("is no object")
                kind = event.get("type")
                decode = _EVENTS.get(kind) if type(kind) is str else None
                if decode is None:
                    raise _MalformedError(f"the type {kind!r} is unknown")
                place = f", events[{k}] ({kind})"
                time = _time(event, "timestamp")
                if time > now:
                    raise _MalformedError("'timestamp' is later than the message's 'now'")
                data = event.get("data", _EMPTY)
                if type(data) is not dict:
                    raise _MalformedError("'data' is no object")
                events.append(decode(time, data))
        except _MalformedError as fault:
            raise BridgeError(
                str(fault),
                where=f"message {number}{place}",
                remedy="Is the other side Batsim 4 (or a stand-in), and of a version that is supported?",
            ) from None
        return Message(now, tuple(events))

    def encode(self, reply: Reply) -> bytes:
        """See `Codec.encode`."""
        if not reply.decisions:
            return f'{{"now":{times.text_of(reply.now)},"events":[]}}'.encode()
        text = ",".join([_wrapped(decision) for decision in reply.decisions])
        return f'{{"now":{times.text_of(reply.now)},"events":[{text}]}}'.encode()


_EMPTY: dict[str, Any] = {}


def _time(data: dict[str, Any], key: str) -> int:
    try:
        time = times.micro(data[key])
    except KeyError:
        raise _MalformedError(f"'{key}' is missing") from None
    except ValueError as error:
        raise _MalformedError(f"'{key}': {error}") from None
    if time < 0:
        raise _MalformedError(f"'{key}' is negative")
    return time


def _text(data: dict[str, Any], key: str) -> str:
    value = data.get(key)
    if type(value) is not str:
        raise _MalformedError(f"'{key}' is missing or no string")
    return value


def _whole(data: dict[str, Any], key: str) -> int:
    value = data.get(key)
    if type(value) is not int:
        raise _MalformedError(f"'{key}' is missing or no whole number")
    return value


def _flag(data: dict[str, Any], key: str, default: bool) -> bool:
    value = data.get(key, default)
    if type(value) is not bool:
        raise _MalformedError(f"'{key}' is neither true nor false")
    return value


def _object(data: dict[str, Any], key: str, default: dict[str, Any] | None = None) -> dict[str, Any]:
    value = data.get(key, default)
    if type(value) is not dict:
        raise _MalformedError(f"'{key}' is missing or no object")
    return value


def _hosts(data: dict[str, Any], key: str) -> hosts.Hosts:
    try:
        return hosts.parse(_text(data, key))
    except ValueError as error:
        raise _MalformedError(f"'{key}': {error}") from None


def _resources(data: dict[str, Any], key: str, count: str, first: int) -> tuple[Resource, ...]:
    given = data.get(key)
    if type(given) is not list:
        raise _MalformedError(f"'{key}' is missing or no array")
    if len(given) != _whole(data, count):
        raise _MalformedError(f"'{count}' is {data[count]}, but '{key}' has {len(given)} entries")
    found = []
    for k, one in enumerate(given):
        if type(one) is not dict or one.get("id") != first + k:
            raise _MalformedError(f"{key}[{k}] is no object with the id {first + k}")
        properties = _object(one, "properties", {})
        words = {str(name): str(value) for name, value in properties.items()}
        found.append(Resource(first + k, _text(one, "name"), str(one.get("state", "idle")), words))
    return tuple(found)


def _begins(time: int, data: dict[str, Any]) -> SimulationBegins:
    compute = _resources(data, "compute_resources", "nb_compute_resources", 0)
    storage: tuple[Resource, ...] = ()
    if "storage_resources" in data:
        storage = _resources(data, "storage_resources", "nb_storage_resources", len(compute))
    if not compute:
        raise _MalformedError("the machine has no compute host")
    config = _object(data, "config", {})
    if _flag(config, "redis-enabled", False):
        raise _MalformedError(
            "job data travel through Redis, which is not supported: start Batsim without --enable-redis"
        )
    profiles = _object(data, "profiles", {})
    for workload, known in profiles.items():
        if type(known) is not dict or not all(type(profile) is dict for profile in known.values()):
            raise _MalformedError(f"the profiles of {workload!r} are no objects")
    return SimulationBegins(
        time,
        compute,
        storage,
        compute_sharing=_flag(data, "allow_compute_sharing", False),
        storage_sharing=_flag(data, "allow_storage_sharing", True),
        dynamic_jobs=_flag(config, "dynamic-jobs-enabled", False),
        acknowledges=_flag(config, "dynamic-jobs-acknowledged", False),
        profile_reuse=_flag(config, "profile-reuse-enabled", False),
        config=str(config.get("sched-config", "")),
        workloads={str(name): str(path) for name, path in _object(data, "workloads", {}).items()},
        profiles=profiles,
    )


def _submitted(time: int, data: dict[str, Any]) -> JobSubmitted:
    profile = data.get("profile")
    if profile is not None and type(profile) is not dict:
        raise _MalformedError("'profile' is no object")
    return _job(time, _text(data, "job_id"), _object(data, "job"), profile)


def _job(time: int, job_id: str, job: dict[str, Any], profile: dict[str, Any] | None) -> JobSubmitted:
    own = job.get("id", job_id)
    if own != job_id and own != job_id.partition("!")[2]:
        raise _MalformedError(f"'job_id' is {job_id!r}, but the job's own id {own!r}")
    walltime = None
    if "walltime" in job:
        try:
            walltime = times.micro(job["walltime"])
        except ValueError as error:
            raise _MalformedError(f"job {job_id!r}: 'walltime': {error}") from None
        if walltime <= 0:  # Batsim's -1
            walltime = None
    res, submit = _whole(job, "res"), _time(job, "subtime")
    return JobSubmitted(time, job_id, res, submit, walltime, _text(job, "profile"), job, profile)


def job_submitted(
    time: int, job_id: str, job: Mapping[str, Any], profile: Mapping[str, Any] | None
) -> JobSubmitted:
    """Return a job's JSON object, parsed by whomever, as an event.

    Raises:
        BridgeError: a field is missing or senseless.
    """
    try:
        return _job(time, job_id, dict(job), dict(profile) if profile is not None else None)
    except _MalformedError as fault:
        raise BridgeError(str(fault), where=f"job {job_id}") from None


def _completed(time: int, data: dict[str, Any]) -> JobCompleted:
    state = _text(data, "job_state")
    if state not in JOB_STATES:
        raise _MalformedError(f"the job state {state!r} is unknown")
    return JobCompleted(
        time, _text(data, "job_id"), state, _whole(data, "return_code"), _hosts(data, "alloc")
    )


def _killed(time: int, data: dict[str, Any]) -> JobKilled:
    ids = data.get("job_ids")
    if type(ids) is not list or not all(type(job_id) is str for job_id in ids):
        raise _MalformedError("'job_ids' is missing or no array of strings")
    return JobKilled(time, tuple(ids), _object(data, "job_progress", {}))


def _state_changed(time: int, data: dict[str, Any]) -> ResourceStateChanged:
    state = _text(data, "state")
    if not state.isdecimal():
        raise _MalformedError(f"'state' is {state!r}, not the number of a power state")
    return ResourceStateChanged(time, _hosts(data, "resources"), int(state))


def _notify(time: int, data: dict[str, Any]) -> MachineAvailability | Notification:
    kind = _text(data, "type")
    if kind in _AVAILABILITY:
        return MachineAvailability(time, _hosts(data, "resources"), _AVAILABILITY[kind])
    return Notification(time, kind, data)


def _answer(time: int, data: dict[str, Any]) -> EnergyAnswer:
    joules = data.get("consumed_energy")
    if type(joules) is not int and not isinstance(joules, Decimal):
        raise _MalformedError("'consumed_energy' is missing or no number")
    return EnergyAnswer(time, float(joules))


_EVENTS: dict[str, Callable[[int, dict[str, Any]], Event]] = {
    "SIMULATION_BEGINS": _begins,
    "JOB_SUBMITTED": _submitted,
    "JOB_COMPLETED": _completed,
    "JOB_KILLED": _killed,
    "RESOURCE_STATE_CHANGED": _state_changed,
    "REQUESTED_CALL": lambda time, _: RequestedCall(time),
    "NOTIFY": _notify,
    "ANSWER": _answer,
    "FROM_JOB_MSG": lambda time, data: JobMessage(time, _text(data, "job_id"), data.get("msg")),
    "QUERY": lambda time, data: PlatformQuery(time, _object(data, "requests")),
    "SIMULATION_ENDS": lambda time, _: SimulationEnds(time),
}


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):  # copied from a message
        return int(value) if value == value.to_integral_value() else float(value)
    raise TypeError(f"{type(value).__name__} cannot travel as JSON")


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)


def _execute(decision: ExecuteJob) -> str:
    text = f'"job_id":{encode_basestring(decision.job_id)},"alloc":"{hosts.text_of(decision.hosts)}"'
    if decision.mapping is not None:
        text += f',"mapping":{_dump({str(rank): str(place) for rank, place in decision.mapping.items()})}'
    if decision.storage_mapping is not None:
        text += f',"storage_mapping":{_dump(dict(decision.storage_mapping))}'
    return text


def _register_job(decision: RegisterJob) -> str:
    job = dict(decision.fields) | {"id": decision.job_id, "res": decision.res, "profile": decision.profile}
    seconds = f',"subtime":{times.text_of(decision.time)}'
    if decision.walltime is not None:
        seconds += f',"walltime":{times.text_of(decision.walltime)}'
    for name in ("subtime", "walltime"):
        job.pop(name, None)
    return f'"job_id":{encode_basestring(decision.job_id)},"job":{_dump(job)[:-1]}{seconds}}}'


def _register_profile(decision: RegisterProfile) -> str:
    return (
        f'"workload_name":{encode_basestring(decision.workload)},"profile_name":{encode_basestring(decision.name)},'
        f'"profile":{_dump(dict(decision.profile))}'
    )


def _finish(decision: FinishRegistration) -> str:
    return f'"type":"{"registration_finished" if decision.finished else "continue_registration"}"'


_DECISIONS: dict[type, tuple[str, Callable[[Any], str]]] = {
    ExecuteJob: ("EXECUTE_JOB", _execute),
    KillJob: ("KILL_JOB", lambda d: f'"job_ids":{_dump(list(d.job_ids))}'),
    RejectJob: ("REJECT_JOB", lambda d: f'"job_id":{encode_basestring(d.job_id)}'),
    CallMeLater: ("CALL_ME_LATER", lambda d: f'"timestamp":{times.text_of(d.at)}'),
    RegisterProfile: ("REGISTER_PROFILE", _register_profile),
    RegisterJob: ("REGISTER_JOB", _register_job),
    FinishRegistration: ("NOTIFY", _finish),
    SetPowerState: (
        "SET_RESOURCE_STATE",
        lambda d: f'"resources":"{hosts.text_of(d.hosts)}","state":"{d.pstate}"',
    ),
    QueryEnergy: ("QUERY", lambda _: '"requests":{"consumed_energy":{}}'),
    SetJobMetadata: (
        "SET_JOB_METADATA",
        lambda d: f'"job_id":{encode_basestring(d.job_id)},"metadata":{encode_basestring(d.text)}',
    ),
    TellJob: (
        "TO_JOB_MSG",
        lambda d: f'"job_id":{encode_basestring(d.job_id)},"msg":{encode_basestring(d.text)}',
    ),
}


def _wrapped(decision: Decision) -> str:
    kind, data = _DECISIONS[type(decision)]
    return f'{{"timestamp":{times.text_of(decision.time)},"type":"{kind}","data":{{{data(decision)}}}}}'
