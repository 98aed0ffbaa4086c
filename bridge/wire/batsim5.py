"""Batsim 5's JSON (measured on 5.0.0-rc2): a handshake, longer names, and numbers of its own.

What Batsim 4 has and 5 has dropped lives in a job's ``extra_data``, a JSON object with the job's further
fields. Times are rounded to microseconds when they are read: Batsim 5 tells up to 2e-8 s too much. A reply at
the time of the message that it answers is given that very number. Wake-ups are whole milliseconds, upwards.
"""

import json
from decimal import Decimal
from typing import Any

from bridge.base import jsontext
from bridge.wire import events as ev
from bridge.wire import hosts, profile_names, times
from bridge.wire.json_codec import (
    HOSTS,
    JOB_STATE,
    NUMBER,
    TEXT,
    TEXTS,
    WHOLE,
    CodecRow,
    CodecTable,
    FieldCodec,
    JsonCodec,
    MalformedError,
    Object,
    array,
    detect_dialect,
    flag,
    members,
    obj,
    objects,
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

#: What the hello can ask for.
DYNAMIC = frozenset({"dynamic_registration", "profile_reuse", "acknowledge_dynamic_jobs"})
ON_SUBMISSION = "forward_profiles_on_job_submission"
AT_BEGIN, ON_KILL = "forward_profiles_on_simulation_begins", "forward_profiles_on_jobs_killed"
FEATURES = DYNAMIC | {ON_SUBMISSION, AT_BEGIN, ON_KILL}
#: Flags of the answer to the first frame: what follows is JSON. (1: FlatBuffers, which are not spoken.)
_JSON = 2
_UINT32 = 1 << 32
_MILLI = 1000
#: The version of the protocol that we claim; it is not checked.
_PROTOCOL = "1.0.0"
#: The version of this decision component.
_VERSION = "1"
_SPREAD_FIRST = "SpreadOverHostsFirst"
_PREDEFINED, _CUSTOM = "PredefinedExecutorPlacementStrategyWrapper", "CustomExecutorToHostMapping"
#: Notes without a content, by what we call them.
_NOTES = {
    "no_more_static_job_to_submit": "AllStaticJobsHaveBeenSubmittedEvent",
    "no_more_external_event_to_occur": "AllStaticExternalEventsHaveBeenInjectedEvent",
    "external_event": "ExternalEventOccurredEvent",
    "probe": "ProbeDataEmittedEvent",
}
#: Decisions that we do not take, or only as the other side of an event (the probe).
_FOREIGN = ("StopCallMeLaterEvent", "ForceSimulationStopEvent", "CreateProbeEvent", "StopProbeEvent")
#: 5.0.0-rc2 aborts where a job stages data: the matrix of its transfer has two values in place of four.
_DEADLY = frozenset({"data_staging"})
#: Texts of external events that are known, see Batsim's documentation.
_AVAILABILITY = {"machine_available": True, "machine_unavailable": False}
_AVAILABILITY |= {f"event_{name}": value for name, value in _AVAILABILITY.items()}
#: What the probes are called that `QueryEnergy` becomes, and their period in seconds.
_PROBE, _PERIOD = "bridge-energy", 1


def _uint32(data: Object, key: str) -> int:
    value = read_int64(data, key)
    if not 0 <= value < _UINT32:
        raise MalformedError(f"'{key}' does not fit into 32 bits")
    return value - _UINT32 if value >= _UINT32 >> 1 else value


_RETURN_CODE = FieldCodec(_uint32, lambda code: str(code % _UINT32))
_STATE_NUMBER = FieldCodec(_uint32, str)


def _job_names(full: str) -> str:
    workload, mark, name = full.partition("!")
    if not (workload and mark and name):
        raise MalformedError(f"the job's id {full!r} is not WORKLOAD!NAME")
    return workload


#: Fields of jobs and profiles that are ours; others are carried along.
_OF_JOB = frozenset({"resource_request", "walltime", "extra_data", "profile_id"})
_OF_PROFILE = frozenset({"id", "profile_type", "profile", "extra_data"})


def _object_in(data: str) -> Object:
    try:
        document: Object = jsontext.loads(data, exact=True) if data.lstrip().startswith("{") else {}
    except ValueError:
        return {}
    return document


def _profile_of(data: Object) -> Object:
    """Read a profile, its own name left out."""
    workload = text(data, "id").partition("!")[0]
    profile = profile_names.of_wire(text(data, "profile_type"), obj(data, "profile"), workload)
    if extra := text(data, "extra_data", ""):
        profile["extra_data"] = extra
    return profile


def _profile_told(name: str, profile: Any) -> Object:
    own = dict(profile)
    extra = own.pop("extra_data", "")
    kind, fields = profile_names.to_wire(own, name.partition("!")[0])
    data = {"id": name, "profile_type": kind, "profile": fields}
    return data | ({"extra_data": extra if isinstance(extra, str) else text_of(extra)} if extra else {})


# Events that need more than a row.


def _properties(one: Object) -> dict[str, str]:
    properties = {}
    for pair in array(one, "properties", []):
        if type(pair) is not dict:
            raise MalformedError("a property is no object")
        properties[text(pair, "key")] = text(pair, "value")
    return properties


def _host_told(one: ev.HostInfo) -> Object:
    words = [{"key": key, "value": value} for key, value in one.properties.items()]
    return write_host(one, words) | {"state": one.state.upper()}


def _submitted(at: int, data: Object) -> ev.JobSubmitted:
    job_id, job = text(data, "job_id"), obj(data, "job")
    workload = _job_names(job_id)
    walltime = seconds(job, "walltime") if job.get("walltime") is not None else 0
    extra_text = text(job, "extra_data", "")
    profile = obj(data, "profile") if data.get("profile") is not None else None
    more = {
        "extra_data": extra_text,
        "job": unread_fields(job, _OF_JOB),
        "profile_extra": unread_fields(profile, _OF_PROFILE) if profile else None,
    }
    return ev.JobSubmitted(
        at,
        job_id,
        read_int64(job, "resource_request"),
        time(data, "submission_time"),
        walltime if walltime > 0 else None,
        profile_names.local(text(job, "profile_id"), workload),
        _object_in(extra_text),
        _profile_of(profile) if profile is not None else None,
        extra_fields=more,
    )


def _full(profile: str, job_id: str) -> str:
    return profile if "!" in profile else f"{job_id.partition('!')[0]}!{profile}"


def _progress(data: Object, key: str) -> Object:
    """Read how far killed jobs were, in Batsim 4's words."""
    progress = {}
    for one in objects(data, key):
        job_id = text(one, "job_id")
        progress[job_id] = _progress_of(obj(one, "wrapper"), _job_names(job_id), 0)
    return progress


def _progress_of(wrapper: Object, workload: str, depth: int) -> Object:
    if depth > jsontext.MOST_LEVELS:
        raise MalformedError("the progress is nested too deeply")
    kind, data = text(wrapper, "kill_progress_type"), obj(wrapper, "kill_progress")
    own = dict(data)
    progress: Object = {"profile_name": profile_names.local(str(own.pop("profile_id", "")), workload)}
    if kind == "KillProgressSequentialProfile" and type(own.get("current_task_progress")) is dict:
        progress["current_task"] = _progress_of(own.pop("current_task_progress"), workload, depth + 1)
    elif kind != "KillProgressAtomicProfile":
        progress["type"] = kind
    return progress | own


def _progress_told(progress: Any) -> str:
    def wrapped(one: Any, workload: str) -> Object:
        own = dict(one)
        data: Object = {"profile_id": f"{workload}!{profile_names.local(own.pop('profile_name'), workload)}"}
        kind = "KillProgressAtomicProfile"
        if "current_task" in own:
            kind, inner = "KillProgressSequentialProfile", own.pop("current_task")
            data["current_task_progress"] = wrapped(inner, workload)
        kind = own.pop("type", kind)
        return {"kill_progress_type": kind, "kill_progress": data | own}

    wrappers = {job: wrapped(one, job.partition("!")[0]) for job, one in progress.items()}
    return text_of([{"job_id": job, "wrapper": wrapper} for job, wrapper in wrappers.items()])


def _external(at: int, data: Object) -> ev.Event:
    """Read an external event; one that says so in the documented words makes hosts leave or come back."""
    inner = obj(data, "external_event")
    external_data = _object_in(text(inner, "data", ""))
    available = _AVAILABILITY.get(str(external_data.get("type")))
    if available is not None:
        return ev.MachineAvailability(
            at, HOSTS.read(external_data, "resources"), available, extra_fields=data
        )
    return ev.Notification(at, "external_event", data)


def _state_told(event: ev.ResourceStateChanged) -> tuple[str, str]:
    name, key = (
        ("HostsTurnedOnOffEvent", "state") if event.switched else ("HostsPStateChangedEvent", "pstate")
    )
    more = f",{members(event.extra_fields)}" if event.extra_fields else ""
    return name, f'"host_ids":{HOSTS.write(event.hosts)},"{key}":{event.pstate}{more}'


# Decisions that need more than a row.


def _executed(at: int, data: Object) -> ev.ExecuteJob:
    allocation = obj(data, "allocation")
    kind, placed = text(allocation, "executor_placement_type"), obj(allocation, "executor_placement")
    mapping = None
    more: Object = unread_fields(data, {"job_id", "allocation", "storage_placement"}) or {}
    if kind in (_CUSTOM, "2"):
        mapping = {rank: _index(place) for rank, place in enumerate(array(placed, "mapping"))}
    elif kind != _PREDEFINED or placed not in ({}, {"strategy": _SPREAD_FIRST}):
        more["placement"] = {"executor_placement_type": kind, "executor_placement": placed}
    stored = objects(data, "storage_placement", [])
    storage = {text(one, "storage_name"): read_int64(one, "host_id") for one in stored}
    placed_hosts = HOSTS.read(allocation, "host_allocation")
    return ev.ExecuteJob(
        at, text(data, "job_id"), placed_hosts, mapping, storage or None, extra_fields=more or None
    )


def _index(place: object) -> int:
    if type(place) is not int or place < 0:
        raise MalformedError("'mapping' holds no places")
    return place


def _execute(decision: ev.ExecuteJob) -> tuple[str, str]:
    kind, placed = _PREDEFINED, Object(strategy=_SPREAD_FIRST)
    if decision.mapping is not None:
        kind, placed = _CUSTOM, {"mapping": [decision.mapping[rank] for rank in sorted(decision.mapping)]}
    more = dict(decision.extra_fields or {})
    placement = more.pop("placement", {"executor_placement_type": kind, "executor_placement": placed})
    allocation = {"host_allocation": hosts.text_of(decision.hosts), **placement}
    data: Object = {"job_id": decision.job_id, "allocation": allocation}
    if decision.storage_mapping is not None:
        data["storage_placement"] = [
            {"storage_name": label, "host_id": host} for label, host in decision.storage_mapping.items()
        ]
    return "ExecuteJobEvent", members(data | more)


_UNITS = {"Second": times.MICRO, "Millisecond": _MILLI}


def _called(at: int, data: Object) -> ev.Decision:
    when = obj(data, "when")
    unit = when.get("time_unit", "Second")
    if text(data, "when_type") != "OneShot":
        return ev.OpaqueDecision(at, "CallMeLaterEvent", data)
    if type(unit) is not str or unit not in _UNITS:
        raise MalformedError(f"the unit of time {unit!r} is unknown")
    more = {"call_me_later_id": text(data, "call_me_later_id"), "time_unit": unit}
    return ev.CallMeLater(at, read_int64(when, "time") * _UNITS[unit], extra_fields=more)


def _registered_profile(at: int, data: Object) -> ev.RegisterProfile:
    profile_data = obj(data, "profile")
    workload, _, name = text(profile_data, "id").partition("!")
    return ev.RegisterProfile(at, workload, name, _profile_of(profile_data))


def _register_profile(decision: ev.RegisterProfile) -> tuple[str, str]:
    name = f"{decision.workload}!{decision.name}"
    return "RegisterProfileEvent", members({"profile": _profile_told(name, decision.profile)})


def _registered_job(at: int, data: Object) -> ev.RegisterJob:
    job_id, job = text(data, "job_id"), obj(data, "job")
    walltime = seconds(job, "walltime") if job.get("walltime") is not None else None
    extra_text = text(job, "extra_data", "")
    profile = profile_names.local(text(job, "profile_id"), _job_names(job_id))
    more = {"extra_data": extra_text, "job": unread_fields(job, _OF_JOB)}
    res, fields = read_int64(job, "resource_request"), _object_in(extra_text)
    return ev.RegisterJob(at, job_id, res, walltime, profile, fields, extra_fields=more)


def _register_job(decision: ev.RegisterJob) -> tuple[str, str]:
    more = dict(decision.extra_fields or {})
    job: Object = {"resource_request": decision.res, "profile_id": _full(decision.profile, decision.job_id)}
    if decision.walltime is not None:
        job["walltime"] = _number(decision.walltime)
    extra = more.get("extra_data", text_of(decision.fields) if decision.fields else "")
    job |= {"extra_data": extra} if extra else {}
    return "RegisterJobEvent", members({"job_id": decision.job_id, "job": job | dict(more.get("job") or {})})


def _hello_told(event: ev.Hello) -> tuple[str, str]:
    data = {
        "batprotocol_version": _PROTOCOL,
        "decision_component_name": event.name,
        "decision_component_version": event.version,
        "decision_component_commit": "",
        "requested_simulation_features": dict.fromkeys(sorted(event.features), True),
        "scheduling_constraints": {},
    }
    return "EDCHelloEvent", members(data | dict(event.extra_fields or {}))


def _number(at: int) -> float | int:
    return at // times.MICRO if at % times.MICRO == 0 else at / times.MICRO


_PROGRESS = FieldCodec(_progress, _progress_told)


class Batsim5(JsonCodec):
    """The codec of Batsim 5, for one simulation; `registers`: jobs will be, so that Batsim must allow it."""

    name = "Batsim 5"
    kind, data = "event_type", "event"

    def __init__(self, registers: bool = False) -> None:
        self.features = frozenset({ON_SUBMISSION}) | (DYNAMIC if registers else frozenset())
        self._init = ""
        self._now: tuple[int, str] = (-1, "")  # the last message's time, and the very number
        self._calls, self._hosts = 0, 0
        self._probes: list[str] = []  # that have not spoken yet
        self._heard: list[str] = []  # that have, and are to be stopped
        self._asleep = hosts.HostSet()
        self._sleeping: frozenset[int] = frozenset()
        self.events = CodecTable(
            (
                CodecRow("JobCompletedEvent", ev.JobCompleted,
                    job_id=TEXT, state=JOB_STATE, return_code=_RETURN_CODE),
                CodecRow("JobsKilledEvent", ev.JobKilled, job_ids=TEXTS, progresses=_PROGRESS),
                CodecRow("RequestedCallEvent", ev.RequestedCall),
                CodecRow("SimulationEndsEvent", ev.SimulationEnds),
                CodecRow(
                    "HostsPStateChangedEvent", ev.ResourceStateChanged, host_ids=HOSTS, pstate=_STATE_NUMBER
                ),
            ),
            read={
                "SimulationBeginsEvent": self._begins,
                "JobSubmittedEvent": _submitted,
                "HostsTurnedOnOffEvent": self._switched,
                **{wire: passthrough_reader(ev.Notification, name) for name, wire in _NOTES.items()},
                "ExternalEventOccurredEvent": _external,
                "ProbeDataEmittedEvent": self._probed,
            },
            write={
                ev.SimulationBegins: self._write_begin,
                ev.JobSubmitted: _job_told,
                ev.ResourceStateChanged: _state_told,
                ev.Notification: lambda event: (_NOTES[event.kind], members(event.fields)),
                ev.MachineAvailability: _availability,
                ev.EnergyAnswer: _reading,
            },
        )  # fmt: skip
        self.decisions = CodecTable(
            (
                CodecRow("KillJobsEvent", ev.KillJob, job_ids=TEXTS),
                CodecRow("RejectJobEvent", ev.RejectJob, job_id=TEXT),
                CodecRow("FinishRegistrationEvent", ev.FinishRegistration),
                CodecRow("ChangeHostsPStateEvent", ev.SetPowerState, host_ids=HOSTS, pstate=WHOLE),
            ),
            read={
                "EDCHelloEvent": self._hello,
                "ExecuteJobEvent": _executed,
                "CallMeLaterEvent": _called,
                "RegisterProfileEvent": _registered_profile,
                "RegisterJobEvent": _registered_job,
                "TurnOnOffHostsEvent": lambda at, data: ev.SetPowerState(
                    at,
                    HOSTS.read(data, "host_ids"),
                    read_int64(data, "state"),
                    extra_fields={"switches": True},
                ),
            },
            write={
                ev.Hello: _hello_told,
                ev.ExecuteJob: _execute,
                ev.CallMeLater: self._call,
                ev.RegisterProfile: _register_profile,
                ev.RegisterJob: _register_job,
                ev.SetPowerState: self._power,
                ev.QueryEnergy: self._query,
            },
            foreign=_FOREIGN,
        )

    # The handshake.

    def greet(self, frame: bytes) -> bytes | None:
        """Answer the first frame: the flags of JSON, and a hello that asks for what will be needed.

        The init text may be a JSON object that switches further features of `FEATURES` on.
        """
        if detect_dialect(frame) != "batsim5":
            return None
        self._init = frame[4:].decode(errors="replace")
        requested = _object_in(self._init)
        self.features |= {name for name in FEATURES if requested.get(name) is True}
        hello = ev.Hello(0, "bridge", _VERSION, self.features)
        return _JSON.to_bytes(4, "little") + self.encode(ev.Reply(0, (hello,)))

    def _hello(self, at: int, data: Object) -> ev.Hello:
        """Read a hello; what it asks for holds from now on."""
        requested = obj(data, "requested_simulation_features")
        if unknown := requested.keys() - FEATURES:
            raise MalformedError(f"the feature {min(unknown)!r} is unknown")
        self.features = frozenset(name for name in requested if flag(requested, name))
        more = unread_fields(data, {"decision_component_name", "decision_component_version"}) or {}
        more["requested_simulation_features"] = requested
        name, version = text(data, "decision_component_name"), text(data, "decision_component_version")
        return ev.Hello(at, name, version, self.features, extra_fields=more)

    def encode(self, reply: ev.Reply) -> bytes:
        """Return a reply as a frame; probes that have spoken are stopped with it."""
        stop = [ev.OpaqueDecision(reply.now, "StopProbeEvent", {"probe_id": name}) for name in self._heard]
        self._heard = []
        return super().encode(ev.Reply(reply.now, (*reply.decisions, *stop)))

    # Numbers.

    def _document(self, frame: bytes) -> Any:
        document = jsontext.loads(frame.rstrip(b"\0").decode(), exact=True)
        if type(document) is dict and type(document.get("now")) in (int, Decimal):
            now_value = document["now"]
            self._now = (
                times.micro(now_value),
                str(now_value) if type(now_value) is int else repr(float(now_value)),
            )
        return document

    def _time_text(self, at: int) -> str:
        return self._now[1] if at == self._now[0] else repr(at / times.MICRO)

    # Events and decisions for which the simulation must be known.

    def _begins(self, at: int, data: Object) -> ev.SimulationBegins:
        compute = resources(data, "computation_hosts", "computation_host_number", 0, _properties)
        storage = resources(data, "storage_hosts", "storage_host_number", len(compute), _properties)
        if not compute:
            raise MalformedError("the machine has no compute host")
        profiles_by_workload: dict[str, dict[str, Object]] = {}
        for profile_data in objects(data, "profiles", []):
            workload, _, name = text(profile_data, "id").partition("!")
            profiles_by_workload.setdefault(workload, {})[name] = _profile_of(profile_data)
        files = objects(data, "workloads", [])
        from bridge.wire.wattages import parse_power_states

        self._hosts = len(compute)
        self._sleeping = frozenset().union(*(parse_power_states(host)[1] for host in compute))
        return ev.SimulationBegins(
            at,
            compute,
            storage,
            dynamic_jobs="dynamic_registration" in self.features,
            acknowledges="acknowledge_dynamic_jobs" in self.features,
            profile_reuse="profile_reuse" in self.features,
            config=self._init,
            workloads={text(one, "name"): text(one, "filename") for one in files},
            profiles=profiles_by_workload,
            crashing_profile_types=_DEADLY,
            extra_fields=unread_fields(data, {"computation_hosts", "storage_hosts", "profiles", "workloads"}),
        )

    def _write_begin(self, event: ev.SimulationBegins) -> tuple[str, str]:
        all_profiles = [(workload, *one) for workload, them in event.profiles.items() for one in them.items()]
        data = {
            "host_number": len(event.compute) + len(event.storage),
            "computation_host_number": len(event.compute),
            "computation_hosts": list(map(_host_told, event.compute)),
            "storage_host_number": len(event.storage),
            "storage_hosts": list(map(_host_told, event.storage)),
            "workloads": [{"name": name, "filename": path} for name, path in event.workloads.items()],
            "profiles": [
                _profile_told(f"{workload}!{name}", profile) for workload, name, profile in all_profiles
            ],
        }
        return "SimulationBeginsEvent", members(data | dict(event.extra_fields or {}))

    def _switched(self, at: int, data: Object) -> ev.ResourceStateChanged:
        there, state = HOSTS.read(data, "host_ids"), _STATE_NUMBER.read(data, "state")
        (self._asleep.add if state in self._sleeping else self._asleep.remove)(there)
        return ev.ResourceStateChanged(
            at, there, state, True, extra_fields=unread_fields(data, {"host_ids", "state"})
        )

    def _power(self, decision: ev.SetPowerState) -> tuple[str, str]:
        """Hosts go to sleep or wake up by one decision, and change their speed by another."""
        switches = (decision.extra_fields or {}).get("switches") or decision.pstate in self._sleeping
        switches = switches or bool(self._asleep.overlap(decision.hosts))
        name, key = ("TurnOnOffHostsEvent", "state") if switches else ("ChangeHostsPStateEvent", "pstate")
        return name, f'"host_ids":{HOSTS.write(decision.hosts)},"{key}":{decision.pstate}'

    def _call(self, decision: ev.CallMeLater) -> tuple[str, str]:
        milliseconds = -(-decision.at // _MILLI)
        more = decision.extra_fields or {}
        whole_seconds = milliseconds % _MILLI == 0 and more.get("time_unit") != "Millisecond"
        count = milliseconds // _MILLI if whole_seconds else milliseconds
        self._calls += 1
        name = more.get("call_me_later_id", f"bridge-{self._calls}")
        when = {"time": count, "time_unit": "Second" if whole_seconds else "Millisecond"}
        return "CallMeLaterEvent", members({"call_me_later_id": name, "when_type": "OneShot", "when": when})

    def _probed(self, at: int, data: Object) -> ev.Event:
        """Read what a probe tells; ours has done its work then."""
        inner = obj(data, "data", {})
        name = data.get("probe_id")
        if name not in self._probes or "data" not in inner:
            return ev.Notification(at, "probe", data)
        self._probes.remove(name)
        self._heard.append(name)
        return ev.EnergyAnswer(at, NUMBER.read(inner, "data"), extra_fields=data)

    def _query(self, _: ev.QueryEnergy) -> tuple[str, str]:
        """Ask by a probe over all hosts, which tells the joules so far after two of its periods."""
        self._calls += 1
        self._probes.append(f"{_PROBE}-{self._calls}")
        hosts_of = {"host_ids": hosts.text_of(((0, self._hosts - 1),))}
        every = {"period": _PERIOD, "offset": 0, "time_unit": "Second", "mode_type": "Infinite", "mode": {}}
        data = {
            "probe_id": self._probes[-1],
            "metrics": "Power",
            "resources_type": "HostResources",
            "resources": hosts_of,
            "measurement_triggering_policy_type": "TemporalTriggerWrapper",
            "measurement_triggering_policy": {"temporal_trigger_type": "Periodic", "temporal_trigger": every},
            "data_accumulation_strategy_type": "ProbeDataAccumulation",
            "data_accumulation_strategy": {"reset_mode_type": "NoReset", "reset_mode": {}},
            "resources_aggregation_function_type": "Sum",
            "resources_aggregation_function": {},
            "temporal_aggregation_function_type": "NoTemporalAggregation",
            "temporal_aggregation_function": {},
            "emission_filtering_policy_type": "NoFiltering",
            "emission_filtering_policy": {},
        }
        return "CreateProbeEvent", members(data)


def _job_told(event: ev.JobSubmitted) -> tuple[str, str]:
    more = dict(event.extra_fields or {})
    job = {
        "resource_request": event.res,
        "walltime": None if event.walltime is None else _number(event.walltime),
        "extra_data": more.get("extra_data", text_of(event.fields) if event.fields else ""),
        "rigid": True,
        "profile_id": _full(event.profile, event.job_id),
    }
    data: Object = {"job_id": event.job_id, "job": job | dict(more.get("job") or {})}
    data["submission_time"] = _number(event.submit)
    if event.profile_fields is not None:
        profile_data = _profile_told(job["profile_id"], event.profile_fields)
        data["profile"] = profile_data | dict(more.get("profile_extra") or {})
    return "JobSubmittedEvent", members(data)


def _reading(event: ev.EnergyAnswer) -> tuple[str, str]:
    probe_data: Object = {"probe_id": f"{_PROBE}-1", "metrics": "Power", "data_type": "AggregatedProbeData"}
    return "ProbeDataEmittedEvent", members(
        event.extra_fields or probe_data | {"data": {"data": event.joules}}
    )


def _availability(event: ev.MachineAvailability) -> tuple[str, str]:
    kind = "machine_available" if event.available else "machine_unavailable"
    inner = {"data": json.dumps({"type": kind, "resources": hosts.text_of(event.hosts)})}
    event_data = {"id": "ee0!0", "external_event_type": "GenericExternalEvent", "external_event": inner}
    return "ExternalEventOccurredEvent", members(event.extra_fields or event_data)
