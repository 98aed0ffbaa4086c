"""What Batsim 5.0.0-rc2 survives of a reply, and simulates as it is meant: written from what was seen of it.

It shares no line with the code under test. Whether hosts are free, and whether a job gets as many as it asks
for, is asserted by the fake Batsim that the reply ends at.
"""

import json
from typing import Any

import batsim4_accepts

#: Fields of each decision: those it must have, and those it may have.
_FIELDS: dict[str, tuple[set[str], set[str]]] = {
    "ExecuteJobEvent": ({"job_id", "allocation"}, {"profile_allocation_override", "storage_placement"}),
    "RejectJobEvent": ({"job_id"}, set()),
    "KillJobsEvent": ({"job_ids"}, set()),
    "CallMeLaterEvent": ({"call_me_later_id", "when_type", "when"}, set()),
    "RegisterProfileEvent": ({"profile"}, set()),
    "RegisterJobEvent": ({"job_id", "job"}, set()),
    "FinishRegistrationEvent": (set(), set()),
    "ChangeHostsPStateEvent": ({"host_ids", "pstate"}, set()),
    "TurnOnOffHostsEvent": ({"host_ids", "state"}, set()),
    "CreateProbeEvent": (
        {"probe_id", "metrics", "resources_type", "resources"}
        | {"measurement_triggering_policy_type", "measurement_triggering_policy"}
        | {"data_accumulation_strategy_type", "data_accumulation_strategy"}
        | {"resources_aggregation_function_type", "resources_aggregation_function"}
        | {"emission_filtering_policy_type", "emission_filtering_policy"}
        | {"temporal_aggregation_function_type", "temporal_aggregation_function"},
        set(),
    ),
    "StopProbeEvent": ({"probe_id"}, set()),
}
_FEATURES = {
    "dynamic_registration", "profile_reuse", "acknowledge_dynamic_jobs", "forward_profiles_on_job_submission",
    "forward_profiles_on_jobs_killed", "forward_profiles_on_simulation_begins",
}  # fmt: skip


def hello(frame: bytes) -> set[str]:
    """Assert that the answer to the first frame is a hello in JSON; return the features that it asks for."""
    assert frame[:4] == b"\2\0\0\0"
    message = json.loads(frame[4:])
    assert set(message) == {"now", "events"} and len(message["events"]) == 1
    event = message["events"][0]
    assert set(event) == {"timestamp", "event_type", "event"} and event["event_type"] == "EDCHelloEvent"
    data = event["event"]
    for name in ("batprotocol_version", "decision_component_name", "decision_component_version"):
        assert type(data.pop(name)) is str
    assert data.pop("decision_component_commit") is not None  # "" will do, null is a segmentation fault
    features = data.pop("requested_simulation_features")
    assert data in ({}, {"scheduling_constraints": {}})
    assert set(features) <= _FEATURES and all(type(value) is bool for value in features.values())
    return {name for name, value in features.items() if value}


def check(frame: bytes, now: float) -> None:
    """Assert that Batsim 5 survives a reply to a message of this time, and takes it as it is meant."""
    reply = json.loads(frame)
    assert set(reply) == {"now", "events"}
    assert reply["now"] >= now, "a time of the past is taken as now"
    times = [event["timestamp"] for event in reply["events"]]
    assert times == sorted(times) and all(time <= reply["now"] for time in times)
    for event in reply["events"]:
        assert set(event) == {"timestamp", "event_type", "event"}
        kind, data = event["event_type"], event["event"]
        must, may = _FIELDS[kind]
        assert must <= set(data) <= must | may, f"{kind}: {sorted(data)}"
        if kind in _RULES:
            _RULES[kind](data, reply["now"])


def _full(name: object) -> None:
    assert type(name) is str and name.count("!") == 1 and all(name.split("!")), name


def _execute(data: dict[str, Any], _: float) -> None:
    _full(data["job_id"])
    allocation = data["allocation"]
    assert set(allocation) == {"host_allocation", "executor_placement_type", "executor_placement"}
    batsim4_accepts._hosts(
        allocation["host_allocation"]
    )  # intervals with a blank between them: "0,1" is read as 0
    kind, placement = allocation["executor_placement_type"], allocation["executor_placement"]
    if kind == "CustomExecutorToHostMapping":
        assert set(placement) == {"mapping"} and all(type(k) is int and k >= 0 for k in placement["mapping"])
    else:
        assert kind == "PredefinedExecutorPlacementStrategyWrapper"
        assert placement == {"strategy": "SpreadOverHostsFirst"}
    for one in data.get("storage_placement", []):
        assert set(one) == {"storage_name", "host_id"} and type(one["host_id"]) is int


def _call(data: dict[str, Any], now: float) -> None:
    assert data["when_type"] == "OneShot" and set(data["when"]) == {"time", "time_unit"}
    count, unit = data["when"]["time"], data["when"]["time_unit"]
    assert type(count) is int and 0 < count < 1 << 64 and unit in ("Second", "Millisecond")
    assert count * {"Second": 1, "Millisecond": 0.001}[unit] > now, "a call in the past"


def _kill(data: dict[str, Any], _: float) -> None:
    assert data["job_ids"]
    for job_id in data["job_ids"]:
        _full(job_id)


def _register_profile(data: dict[str, Any], _: float) -> None:
    profile = data["profile"]
    assert (
        {"id", "profile_type", "profile"} <= set(profile) <= {"id", "profile_type", "profile", "extra_data"}
    )
    _full(profile["id"])
    assert profile["profile_type"] != "DelayProfile" or profile["profile"]["delay"] > 0


def _register_job(data: dict[str, Any], _: float) -> None:
    _full(data["job_id"])
    job = data["job"]
    assert {"resource_request", "profile_id"} <= set(job)
    assert set(job) <= {"resource_request", "profile_id", "walltime", "extra_data"}
    _full(job["profile_id"])
    assert type(job["resource_request"]) is int and job["resource_request"] > 0
    assert job.get("walltime", 1) > 0 and type(job.get("extra_data", "")) is str


def _power(data: dict[str, Any], _: float) -> None:
    batsim4_accepts._hosts(data["host_ids"])
    assert type(data.get("pstate", data.get("state"))) is int


_RULES = {
    "ExecuteJobEvent": _execute,
    "CallMeLaterEvent": _call,
    "KillJobsEvent": _kill,
    "RegisterProfileEvent": _register_profile,
    "RegisterJobEvent": _register_job,
    "ChangeHostsPStateEvent": _power,
    "TurnOnOffHostsEvent": _power,
}
