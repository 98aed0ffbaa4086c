"""Batsim 4's JSON (measured on 4.2.1): tolerant of key order and further fields, strict on meaning."""

import re
from collections.abc import Mapping
from typing import Any

from bridge.base import jsontext
from bridge.base.errors import BridgeError
from bridge.wire import events as ev
from bridge.wire import hosts, times
from bridge.wire.json_codec import (
    HOSTS,
    JOB_STATE,
    JOB_STATES,
    NUMBER,
    OBJECT,
    PSTATE,
    TEXT,
    TEXTS,
    TIME,
    WHOLE,
    CodecRow,
    CodecTable,
    FieldCodec,
    JsonCodec,
    MalformedError,
    Object,
    flag,
    members,
    obj,
    optional,
    passthrough_reader,
    read_int64,
    resources,
    seconds,
    text,
    text_of,
    time,
    unread_fields,
    write_host,
)

_AVAILABILITY = {"event_machine_available": True, "event_machine_unavailable": False}
#: Fields of SIMULATION_BEGINS that are ours; further ones of its config are carried along.
_BEGIN_FIELDS = frozenset(
    {"nb_resources", "nb_compute_resources", "nb_storage_resources", "allow_compute_sharing"}
    | {"allow_storage_sharing", "compute_resources", "storage_resources", "workloads", "profiles"}
)
#: Events that only travel on.
_NOTES = ("FROM_JOB_MSG", "QUERY")


#: A message of one event of a job as Batsim writes it, which most messages are; texts without an escape.
_ID = r'"job_id":"([ !#-[\]-~]*)"'
_ALONE = re.compile(
    r'\{"now":((?:0|[1-9][0-9]{0,9})\.[0-9]{6}),"events":\[\{"timestamp":\1,"type":"JOB_(?:'
    rf'SUBMITTED","data":\{{{_ID},"job":(\{{[^][{{}}]*\}})|COMPLETED","data":\{{{_ID},"job_state":"([A-Z_]+)",'
    r'"return_code":(0|-?[1-9][0-9]{0,8}),"alloc":"([0-9 -]*)")\}\}\]\}'
)


# Events that need more than a row.


def _properties(one: Object) -> dict[str, str]:
    return {name: str(value) for name, value in obj(one, "properties", {}).items()}


def _begins(at: int, data: Object) -> ev.SimulationBegins:
    compute = resources(data, "compute_resources", "nb_compute_resources", 0, _properties)
    storage: tuple[ev.HostInfo, ...] = ()
    if "storage_resources" in data:
        storage = resources(data, "storage_resources", "nb_storage_resources", len(compute), _properties)
    if not compute:
        raise MalformedError("the machine has no compute host")
    config = obj(data, "config", {})
    if flag(config, "redis-enabled", False):
        what = "job data travel through Redis, which is not supported: "
        raise MalformedError(f"{what}start Batsim without --enable-redis")
    profiles = obj(data, "profiles", {})
    for workload, profiles_of_one in profiles.items():
        if type(profiles_of_one) is not dict or not all(
            type(profile) is dict for profile in profiles_of_one.values()
        ):
            raise MalformedError(f"the profiles of {workload!r} are no objects")
    return ev.SimulationBegins(
        at,
        compute,
        storage,
        compute_sharing=flag(data, "allow_compute_sharing", False),
        storage_sharing=flag(data, "allow_storage_sharing", True),
        dynamic_jobs=flag(config, "dynamic-jobs-enabled", False),
        acknowledges=flag(config, "dynamic-jobs-acknowledged", False),
        profile_reuse=flag(config, "profile-reuse-enabled", False),
        config=str(config.get("sched-config", "")),
        workloads={name: str(path) for name, path in obj(data, "workloads", {}).items()},
        profiles=profiles,
        extra_fields=unread_fields(data, _BEGIN_FIELDS),
    )


def _write_begin(event: ev.SimulationBegins) -> tuple[str, str]:
    more = dict(event.extra_fields or {})
    config_fields = dict(more.pop("config", {}))
    config = {
        "dynamic-jobs-enabled": event.dynamic_jobs,
        "dynamic-jobs-acknowledged": event.acknowledges,
        "profile-reuse-enabled": event.profile_reuse,
        "sched-config": event.config,
    }
    config = config_fields | {name: value for name, value in config.items() if value or name in config_fields}
    data = {
        "nb_resources": len(event.compute) + len(event.storage),
        "nb_compute_resources": len(event.compute),
        "nb_storage_resources": len(event.storage),
        "allow_compute_sharing": event.compute_sharing,
        "allow_storage_sharing": event.storage_sharing,
        "config": config,
        "compute_resources": [write_host(one, one.properties) for one in event.compute],
        "storage_resources": [write_host(one, one.properties) for one in event.storage],
        "workloads": event.workloads,
        "profiles": event.profiles,
    }
    return "SIMULATION_BEGINS", members(data | more)


def _submitted(at: int, data: Object) -> ev.JobSubmitted:
    profile = data.get("profile")
    if profile is not None and type(profile) is not dict:
        raise MalformedError("'profile' is no object")
    more = unread_fields(data, {"job_id", "job", "profile"})
    return _job(at, text(data, "job_id"), obj(data, "job"), profile, more)


def _job(
    at: int, job_id: str, job: Object, profile: Object | None, more: Object | None = None
) -> ev.JobSubmitted:
    own = job.get("id", job_id)
    if own != job_id and own != job_id.partition("!")[2]:
        raise MalformedError(f"'job_id' is {job_id!r}, but the job's own id {own!r}")
    walltime = seconds(job, "walltime") if "walltime" in job else 0
    res, submit = read_int64(job, "res"), time(job, "subtime")
    limit = walltime if walltime > 0 else None  # Batsim's -1
    return ev.JobSubmitted(
        at, job_id, res, submit, limit, text(job, "profile"), job, profile, extra_fields=more
    )


def job_submitted(
    at: int, job_id: str, job: Mapping[str, Any], profile: Mapping[str, Any] | None
) -> ev.JobSubmitted:
    """Return a job's JSON object, parsed by whomever, as an event; BridgeError: a field is senseless."""
    try:
        return _job(at, job_id, dict(job), dict(profile) if profile is not None else None)
    except MalformedError as fault:
        raise BridgeError(str(fault), where=f"job {job_id}") from None


def _job_told(_write_job: ev.JobSubmitted) -> tuple[str, str]:
    data = {"job_id": _write_job.job_id, "job": _write_job.fields, **(_write_job.extra_fields or {})}
    data |= {} if _write_job.profile_fields is None else {"profile": _write_job.profile_fields}
    return "JOB_SUBMITTED", members(data)


def _note(at: int, data: Object) -> ev.Event:
    kind = text(data, "type")
    if kind in _AVAILABILITY:
        more = unread_fields(data, {"type", "resources"})
        return ev.MachineAvailability(
            at, HOSTS.read(data, "resources"), _AVAILABILITY[kind], extra_fields=more
        )
    return ev.Notification(at, kind, data)


def _availability(event: ev.MachineAvailability) -> tuple[str, str]:
    kind = next(kind for kind, available in _AVAILABILITY.items() if available == event.available)
    fields = {"type": kind, "resources": hosts.text_of(event.hosts)}
    return "NOTIFY", members(fields | dict(event.extra_fields or {}))


# Decisions that need more than a row.


def _registered(at: int, data: Object) -> ev.RegisterJob:
    job = obj(data, "job")
    walltime = seconds(job, "walltime") if "walltime" in job else None
    extra = unread_fields(job, {"id", "res", "walltime", "profile", "subtime"}) or {}
    return ev.RegisterJob(
        at, text(data, "job_id"), read_int64(job, "res"), walltime, text(job, "profile"), extra
    )


def _register_job(decision: ev.RegisterJob) -> tuple[str, str]:
    fields = unread_fields(dict(decision.fields), {"subtime", "walltime"}) or {}
    job = fields | {"id": decision.job_id, "res": decision.res, "profile": decision.profile}
    when = f',"subtime":{times.text_of(decision.time)}'
    if decision.walltime is not None:
        when += f',"walltime":{times.text_of(decision.walltime)}'
    return "REGISTER_JOB", f'"job_id":{text_of(decision.job_id)},"job":{text_of(job)[:-1]}{when}}}'


def _decided_note(at: int, data: Object) -> ev.Decision:
    finished = data == {"type": "registration_finished"}
    return ev.FinishRegistration(at) if finished else ev.OpaqueDecision(at, "NOTIFY", data)


def _query(at: int, data: Object) -> ev.Decision:
    energy = obj(data, "requests") == {"consumed_energy": {}}
    return ev.QueryEnergy(at) if energy else ev.OpaqueDecision(at, "QUERY", data)


def _ranks(data: Object, key: str) -> dict[int, int]:
    try:
        return {int(rank): int(place) for rank, place in obj(data, key).items()}
    except (TypeError, ValueError):
        raise MalformedError(f"'{key}' is no mapping of ranks") from None


_RANKS = FieldCodec(_ranks, lambda ranks: text_of({str(rank): str(place) for rank, place in ranks.items()}))


def _alone(frame: bytes) -> ev.Message | None:
    """Return a message as `_ALONE` has it, in half the time; None: any other, or one with something wrong."""
    match = _ALONE.fullmatch(frame.decode("ascii")) if frame.isascii() else None
    if match is None:
        return None
    clock, job_id, job, ended, state, code, alloc = match.groups()
    now = int(clock.replace(".", ""))
    try:
        if job is not None:
            return ev.Message(now, (_job(now, job_id, jsontext.loads(job, exact=True), None),))
        if state in JOB_STATES:
            return ev.Message(now, (ev.JobCompleted(now, ended, state, int(code), hosts.parse(alloc)),))
    except (MalformedError, ValueError):
        pass
    return None


class Batsim4(JsonCodec):
    name = "Batsim 4"

    def decode(self, frame: bytes, number: int) -> ev.Message:
        return _alone(frame) or super().decode(frame, number)

    events = CodecTable(
        (
            CodecRow("JOB_COMPLETED", ev.JobCompleted,
                job_id=TEXT, job_state=JOB_STATE, return_code=WHOLE, alloc=HOSTS),
            CodecRow("JOB_KILLED", ev.JobKilled,
                job_ids=TEXTS, job_progress=FieldCodec(lambda data, key: obj(data, key, {}))),
            CodecRow("RESOURCE_STATE_CHANGED", ev.ResourceStateChanged, resources=HOSTS, state=PSTATE),
            CodecRow("REQUESTED_CALL", ev.RequestedCall),
            CodecRow("ANSWER", ev.EnergyAnswer, consumed_energy=NUMBER),
            CodecRow("SIMULATION_ENDS", ev.SimulationEnds),
        ),
        read={"SIMULATION_BEGINS": _begins, "JOB_SUBMITTED": _submitted, "NOTIFY": _note}
        | {name: passthrough_reader(ev.Notification, name) for name in _NOTES},
        write={
            ev.SimulationBegins: _write_begin,
            ev.JobSubmitted: _job_told,
            ev.MachineAvailability: _availability,
            ev.Notification: lambda event: (
                event.kind if event.kind in _NOTES else "NOTIFY", members(event.fields)
            ),
        },
    )  # fmt: skip
    decisions = CodecTable(
        (
            CodecRow("EXECUTE_JOB", ev.ExecuteJob,
                job_id=TEXT, alloc=HOSTS, mapping=optional(_RANKS), storage_mapping=optional(OBJECT)),
            CodecRow("KILL_JOB", ev.KillJob, job_ids=TEXTS),
            CodecRow("REJECT_JOB", ev.RejectJob, job_id=TEXT),
            CodecRow("CALL_ME_LATER", ev.CallMeLater, timestamp=TIME),
            CodecRow("REGISTER_PROFILE", ev.RegisterProfile,
                workload_name=TEXT, profile_name=TEXT, profile=OBJECT),
            CodecRow("SET_RESOURCE_STATE", ev.SetPowerState, resources=HOSTS, state=PSTATE),
        ),
        read={"REGISTER_JOB": _registered, "NOTIFY": _decided_note, "QUERY": _query},
        write={
            ev.RegisterJob: _register_job,
            ev.FinishRegistration: lambda _: ("NOTIFY", '"type":"registration_finished"'),
            ev.QueryEnergy: lambda _: ("QUERY", '"requests":{"consumed_energy":{}}'),
        },
        foreign=("CHANGE_JOB_STATE", "SET_JOB_METADATA", "TO_JOB_MSG"),
    )  # fmt: skip
