"""Batsim 4's JSON (measured on 4.2.1): tolerant of key order and further fields, strict on meaning.

Two tables say how each event is read and each decision is written; `bridge.batsim.events` has the types.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from decimal import Decimal
from typing import Any, TypeVar

from bridge.batsim import events as ev
from bridge.batsim.events import Decision, Event, Message, Reply
from bridge.errors import BridgeError
from bridge.wire import hosts, jsontext, times

#: How a job can have ended.
JOB_STATES = frozenset(
    {"COMPLETED_SUCCESSFULLY", "COMPLETED_FAILED", "COMPLETED_WALLTIME_REACHED", "COMPLETED_KILLED"}
)
_AVAILABILITY = {"event_machine_available": True, "event_machine_unavailable": False}
_INT64 = 1 << 63
#: Digits of the number of a power state, at most.
_DIGITS = 9

#: Characters of what an error shows of a message.
_MOST = 300

_T = TypeVar("_T")
_Object = dict[str, Any]


class _MalformedError(Exception):
    """What is wrong within one event; the caller knows the event's place."""


class Batsim4:
    """The codec of Batsim 4."""

    def greet(self, frame: bytes) -> None:
        """Batsim 4 has no handshake."""

    def decode(self, frame: bytes, number: int) -> Message:
        """See `Codec.decode`."""
        place = ""
        try:
            try:
                document = jsontext.loads(frame.decode(), exact=True)
            except ValueError as error:
                raise _MalformedError(f"is no JSON text ({error})") from None
            if type(document) is not dict:
                raise _MalformedError("is no JSON object")
            now = _time(document, "now")
            events = []
            for k, event in enumerate(_array(document, "events")):
                place = f", events[{k}]"
                if type(event) is not dict:
                    raise _MalformedError("is no object")
                kind = event.get("type")
                read = _EVENTS.get(kind) if type(kind) is str else None
                if read is None:
                    raise _MalformedError(f"the type {kind!r} is unknown")
                place = f", events[{k}] ({kind})"
                time = _time(event, "timestamp")
                if time > now:
                    raise _MalformedError("'timestamp' is later than the message's 'now'")
                data = _object(event, "data", {})
                if type(data.get("job_id")) is str:
                    place += f", job {data['job_id']}"
                events.append(read(time, data))
        except _MalformedError as fault:
            raise BridgeError(
                jsontext.shortened(str(fault), _MOST),
                where=f"message {number}{jsontext.shortened(place, _MOST)}",
                remedy="Is the other side Batsim 4 (or a stand-in), and of a version that is supported?",
            ) from None
        return Message(now, tuple(events))

    def encode(self, reply: Reply) -> bytes:
        """See `Codec.encode`."""
        text = ",".join([_wrapped(decision) for decision in reply.decisions])
        return f'{{"now":{times.text_of(reply.now)},"events":[{text}]}}'.encode()


# How one field is read: (object, key) -> value.


def _typed(kind: type[_T], name: str) -> Callable[..., _T]:
    """Return a reader of fields of one type; a third argument stands in for a missing one."""

    def read(data: _Object, key: str, default: _T | None = None) -> _T:
        value = data.get(key, default)
        if type(value) is not kind:
            raise _MalformedError(f"'{key}' is {'missing or ' if default is None else ''}no {name}")
        return value

    return read


_text = _typed(str, "string")
_flag = _typed(bool, "truth value")
_object: Callable[..., _Object] = _typed(dict, "object")
_array: Callable[..., list[Any]] = _typed(list, "array")
_integer = _typed(int, "whole number")


def _whole(data: _Object, key: str) -> int:
    value = _integer(data, key)
    if not -_INT64 <= value < _INT64:
        raise _MalformedError(f"'{key}' does not fit into 64 bits")
    return value


def _seconds(data: _Object, key: str) -> int:
    try:
        return times.micro(data[key])
    except KeyError:
        raise _MalformedError(f"'{key}' is missing") from None
    except ValueError as error:
        raise _MalformedError(f"'{key}': {error}") from None


def _time(data: _Object, key: str) -> int:
    time = _seconds(data, key)
    if time < 0:
        raise _MalformedError(f"'{key}' is negative")
    return time


def _hosts(data: _Object, key: str) -> hosts.Hosts:
    try:
        return hosts.parse(_text(data, key))
    except ValueError as error:
        raise _MalformedError(f"'{key}': {error}") from None


def _job_state(data: _Object, key: str) -> str:
    state = _text(data, key)
    if state not in JOB_STATES:
        raise _MalformedError(f"the job state {state!r} is unknown")
    return state


def _power_state(data: _Object, key: str) -> int:
    state = _text(data, key)
    if not (state.isascii() and state.isdigit() and len(state) <= _DIGITS):
        raise _MalformedError(f"'{key}' is {state!r}, not the number of a power state")
    return int(state)


def _texts(data: _Object, key: str) -> tuple[str, ...]:
    texts = _array(data, key)
    if not all(type(text) is str for text in texts):
        raise _MalformedError(f"'{key}' is no array of strings")
    return tuple(texts)


def _joules(data: _Object, key: str) -> float:
    joules = data.get(key)
    if type(joules) is not int and not isinstance(joules, Decimal):
        raise _MalformedError(f"'{key}' is missing or no number")
    return float(joules)


# How one event is read: (time, data) -> event.


def _reads(kind: type[Event], **readers: Callable[[_Object, str], object]) -> Callable[[int, _Object], Event]:
    """Return what reads an event from fields that are in the order of the type's own."""

    def read(time: int, data: _Object) -> Event:
        return kind(time, *[read(data, key) for key, read in readers.items()])

    return read


def _resources(data: _Object, key: str, count: str, first: int) -> tuple[ev.Resource, ...]:
    given = _array(data, key)
    if len(given) != _whole(data, count):
        raise _MalformedError(f"'{count}' is {data[count]}, but '{key}' has {len(given)} entries")
    found = []
    for k, one in enumerate(given):
        if type(one) is not dict or one.get("id") != first + k:
            raise _MalformedError(f"{key}[{k}] is no object with the id {first + k}")
        words = {name: str(value) for name, value in _object(one, "properties", {}).items()}
        found.append(ev.Resource(first + k, _text(one, "name"), str(one.get("state", "idle")), words))
    return tuple(found)


def _begins(time: int, data: _Object) -> ev.SimulationBegins:
    compute = _resources(data, "compute_resources", "nb_compute_resources", 0)
    storage: tuple[ev.Resource, ...] = ()
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
    return ev.SimulationBegins(
        time,
        compute,
        storage,
        compute_sharing=_flag(data, "allow_compute_sharing", False),
        storage_sharing=_flag(data, "allow_storage_sharing", True),
        dynamic_jobs=_flag(config, "dynamic-jobs-enabled", False),
        acknowledges=_flag(config, "dynamic-jobs-acknowledged", False),
        profile_reuse=_flag(config, "profile-reuse-enabled", False),
        config=str(config.get("sched-config", "")),
        workloads={name: str(path) for name, path in _object(data, "workloads", {}).items()},
        profiles=profiles,
    )


def _submitted(time: int, data: _Object) -> ev.JobSubmitted:
    profile = data.get("profile")
    if profile is not None and type(profile) is not dict:
        raise _MalformedError("'profile' is no object")
    return _job(time, _text(data, "job_id"), _object(data, "job"), profile)


def _job(time: int, job_id: str, job: _Object, profile: _Object | None) -> ev.JobSubmitted:
    own = job.get("id", job_id)
    if own != job_id and own != job_id.partition("!")[2]:
        raise _MalformedError(f"'job_id' is {job_id!r}, but the job's own id {own!r}")
    walltime = _seconds(job, "walltime") if "walltime" in job else 0
    res, submit = _whole(job, "res"), _time(job, "subtime")
    known = walltime if walltime > 0 else None  # Batsim's -1
    return ev.JobSubmitted(time, job_id, res, submit, known, _text(job, "profile"), job, profile)


def job_submitted(
    time: int, job_id: str, job: Mapping[str, Any], profile: Mapping[str, Any] | None
) -> ev.JobSubmitted:
    """Return a job's JSON object, parsed by whomever, as an event.

    Raises:
        BridgeError: a field is missing or senseless.
    """
    try:
        return _job(time, job_id, dict(job), dict(profile) if profile is not None else None)
    except _MalformedError as fault:
        raise BridgeError(str(fault), where=f"job {job_id}") from None


def _notify(time: int, data: _Object) -> Event:
    kind = _text(data, "type")
    if kind in _AVAILABILITY:
        return ev.MachineAvailability(time, _hosts(data, "resources"), _AVAILABILITY[kind])
    return ev.Notification(time, kind, data)


_EVENTS: dict[str, Callable[[int, _Object], Event]] = {
    "SIMULATION_BEGINS": _begins,
    "JOB_SUBMITTED": _submitted,
    "JOB_COMPLETED": _reads(
        ev.JobCompleted, job_id=_text, job_state=_job_state, return_code=_whole, alloc=_hosts
    ),
    "JOB_KILLED": _reads(ev.JobKilled, job_ids=_texts, job_progress=lambda data, key: _object(data, key, {})),
    "RESOURCE_STATE_CHANGED": _reads(ev.ResourceStateChanged, resources=_hosts, state=_power_state),
    "REQUESTED_CALL": _reads(ev.RequestedCall),
    "NOTIFY": _notify,
    "ANSWER": _reads(ev.EnergyAnswer, consumed_energy=_joules),
    "FROM_JOB_MSG": _reads(ev.JobMessage, job_id=_text, msg=dict.get),
    "QUERY": _reads(ev.PlatformQuery, requests=_object),
    "SIMULATION_ENDS": _reads(ev.SimulationEnds),
}


# How one field is written: value -> text.


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):  # copied from a message
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot travel as JSON")


_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain).encode


def is_json(value: object) -> bool:
    """Tell whether a value can stand in a decision: what is copied from messages can, and what is like it."""
    try:
        jsontext.loads(_json(value))
    except (TypeError, ValueError, ArithmeticError, RecursionError):
        return False
    return True


def _quoted(value: object) -> str:
    return _json(str(value))


def _alloc(some: hosts.Hosts) -> str:
    return f'"{hosts.text_of(some)}"'


def _ranks(mapping: Mapping[int, int]) -> str:
    return _json({str(rank): str(place) for rank, place in mapping.items()})


def _registration(finished: bool) -> str:
    return '"registration_finished"' if finished else '"continue_registration"'


# How the data of one decision are written: by its fields, in their order (None is left out), or as a whole.


def _register_job(decision: ev.RegisterJob) -> str:
    job = dict(decision.fields) | {"id": decision.job_id, "res": decision.res, "profile": decision.profile}
    seconds = f',"subtime":{times.text_of(decision.time)}'
    if decision.walltime is not None:
        seconds += f',"walltime":{times.text_of(decision.walltime)}'
    for name in ("subtime", "walltime"):
        job.pop(name, None)
    return f'"job_id":{_json(decision.job_id)},"job":{_json(job)[:-1]}{seconds}}}'


def _query_energy(_: ev.QueryEnergy) -> str:
    return '"requests":{"consumed_energy":{}}'


_Writers = dict[str, Callable[[Any], str]]
_DECISIONS: dict[type[Decision], tuple[str, _Writers | Callable[[Any], str]]] = {
    ev.ExecuteJob: (
        "EXECUTE_JOB",
        {"job_id": _json, "alloc": _alloc, "mapping": _ranks, "storage_mapping": _json},
    ),
    ev.KillJob: ("KILL_JOB", {"job_ids": _json}),
    ev.RejectJob: ("REJECT_JOB", {"job_id": _json}),
    ev.CallMeLater: ("CALL_ME_LATER", {"timestamp": times.text_of}),
    ev.RegisterProfile: (
        "REGISTER_PROFILE",
        {"workload_name": _json, "profile_name": _json, "profile": _json},
    ),
    ev.RegisterJob: ("REGISTER_JOB", _register_job),
    ev.FinishRegistration: ("NOTIFY", {"type": _registration}),
    ev.SetPowerState: ("SET_RESOURCE_STATE", {"resources": _alloc, "state": _quoted}),
    ev.QueryEnergy: ("QUERY", _query_energy),
    ev.SetJobMetadata: ("SET_JOB_METADATA", {"job_id": _json, "metadata": _json}),
    ev.TellJob: ("TO_JOB_MSG", {"job_id": _json, "msg": _json}),
}
_FIELDS = {kind: [one.name for one in fields(kind)][1:] for kind in _DECISIONS}


def _wrapped(decision: Decision) -> str:
    kind, write = _DECISIONS[type(decision)]
    if isinstance(write, dict):
        values = [getattr(decision, name) for name in _FIELDS[type(decision)]]
        pairs = zip(write.items(), values, strict=True)
        data = ",".join([f'"{key}":{text(value)}' for (key, text), value in pairs if value is not None])
    else:
        data = write(decision)
    return f'{{"timestamp":{times.text_of(decision.time)},"type":"{kind}","data":{{{data}}}}}'
