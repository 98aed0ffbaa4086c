"""Batsim 5's dialect, kind by kind."""

import json
from dataclasses import replace
from typing import Any

import pytest
from any_json import JSON
from hypothesis import given
from hypothesis import strategies as st

from bridge.base.errors import BridgeError
from bridge.wire import events as ev
from bridge.wire.batsim5 import AT_BEGIN, DYNAMIC, ON_SUBMISSION, Batsim5
from bridge.wire.hosts import parse
from bridge.wire.json_codec import detect_dialect
from bridge.wire.times import MICRO

BEGIN = {
    "host_number": 3, "computation_host_number": 2, "storage_host_number": 1,
    "computation_hosts": [
        {"id": k, "name": f"n{k}", "state": "IDLE", "pstate": 0, "pstate_count": 4, "properties":
         [{"key": "wattage_per_state", "value": "9:9:9,8:8:8,1:1:1,2:2:2,2:2:2"},
          {"key": "sleep_pstates", "value": "2:3:4"}]} for k in range(2)],
    "storage_hosts": [{"id": 2, "name": "pfs", "state": "IDLE", "properties": []}],
    "workloads": [{"name": "w0", "filename": "w.json"}],
    "profiles": [{"id": "w0!d", "profile_type": "DelayProfile", "profile": {"delay": 7.5}}],
}  # fmt: skip


def frame(now: float | int, *events: tuple[str, dict[str, Any]]) -> bytes:
    said = [{"timestamp": now, "event_type": kind, "event": data} for kind, data in events]
    return json.dumps({"now": now, "events": said}).encode() + b"\0"


def one(kind: str, data: dict[str, Any], now: float = 9.0) -> ev.Event:
    return Batsim5().decode(frame(now, (kind, data)), 7).events[0]


def submitted(**job: Any) -> ev.JobSubmitted:
    own = {"resource_request": 2, "walltime": 5.0, "extra_data": "", "profile_id": "w0!d"} | job
    event = one("JobSubmittedEvent", {"job_id": "w0!1", "job": own, "submission_time": 8.5})
    assert isinstance(event, ev.JobSubmitted)
    return event


def encoded(decision: ev.Decision, dialect: Batsim5 | None = None) -> tuple[str, dict[str, Any]]:
    reply = json.loads((dialect or Batsim5()).encode(ev.Reply(decision.time, (decision,))))
    return reply["events"][0]["event_type"], reply["events"][0]["event"]


def test_the_first_frame_tells_the_version() -> None:
    assert detect_dialect(b"\x09\0\0\0hello edc") == detect_dialect(b"\0\0\0\0") == "batsim5"
    assert (
        detect_dialect(b'{"now":0.0,"events":[]}')
        == detect_dialect(b"")
        == detect_dialect(b"\x08\0\0\0hello edc")
        == "batsim4"
    )


def test_the_handshake() -> None:
    dialect = Batsim5()
    assert dialect.greet(frame(0)) is None
    reply = dialect.greet(b"\x09\0\0\0hello edc")
    assert reply is not None and reply[:4] == b"\2\0\0\0"
    hello = Batsim5().decode_reply(reply[4:], 1).decisions[0]
    assert isinstance(hello, ev.Hello) and hello.name == "bridge" and hello.features == {ON_SUBMISSION}
    assert Batsim5(registers=True).features == {ON_SUBMISSION} | DYNAMIC
    asks = json.dumps({AT_BEGIN: True, "dynamic_registration": False, "else": 1}).encode()
    dialect.greet(len(asks).to_bytes(4, "little") + asks)
    assert dialect.features == {ON_SUBMISSION, AT_BEGIN}


# Events.


def test_the_beginning() -> None:
    dialect = Batsim5(registers=True)
    dialect.greet(b"\x02\0\0\0hi")
    begin = dialect.decode(frame(0, ("SimulationBeginsEvent", BEGIN)), 1).events[0]
    assert isinstance(begin, ev.SimulationBegins)
    assert [(host.id, host.name, host.state) for host in (*begin.compute, *begin.storage)] == [
        (0, "n0", "idle"), (1, "n1", "idle"), (2, "pfs", "idle")
    ]  # fmt: skip
    assert begin.compute[1].properties["sleep_pstates"] == "2:3:4"
    assert begin.profiles == {"w0": {"d": {"type": "delay", "delay": 7.5}}}
    assert begin.dynamic_jobs and begin.acknowledges and begin.profile_reuse and begin.config == "hi"
    assert begin.workloads == {"w0": "w.json"} and not begin.compute_sharing


def test_what_the_job_asks_for_besides_is_in_its_extra_data() -> None:
    event = submitted(extra_data='{"burst_buffer": 8, "user": 3}', walltime=None)
    assert event.fields == {"burst_buffer": 8, "user": 3}
    assert (event.res, event.walltime, event.submit, event.profile) == (2, None, 8_500_000, "d")
    assert submitted().walltime == 5_000_000
    for text in ("plain", "{", "[1]", '{"a":' + 200 * "["):
        assert submitted(extra_data=text).fields == {}
    again = encoded(ev.RegisterJob(0, "d!1", 2, 1_500_000, "p", {"burst_buffer": 8}))
    job = {"resource_request": 2, "walltime": 1.5, "profile_id": "d!p", "extra_data": '{"burst_buffer":8}'}
    assert again == ("RegisterJobEvent", {"job_id": "d!1", "job": job})


def test_completions_have_signed_codes_and_no_hosts() -> None:
    data = {"job_id": "w0!1", "state": "COMPLETED_KILLED", "return_code": 4294967294}
    assert one("JobCompletedEvent", data) == ev.JobCompleted(9 * MICRO, "w0!1", "COMPLETED_KILLED", -2)


def test_times_are_rounded_and_given_back_as_they_came() -> None:
    dialect = Batsim5()
    message = dialect.decode(frame(12.50000001, ("RequestedCallEvent", {})), 1)
    assert message.now == message.events[0].time == 12_500_000
    reply = dialect.encode(ev.Reply(12_500_000, (ev.RejectJob(12_500_000, "w0!1"),)))
    assert reply.startswith(b'{"now":12.50000001,"events":[{"timestamp":12.50000001,')
    assert json.loads(dialect.encode(ev.Reply(13_000_000)))["now"] == 13.0


def test_hosts_leave_by_the_documented_text_of_an_external_event() -> None:
    def external(text: str) -> ev.Event:
        inner = {
            "id": "ee0!0",
            "external_event_type": "GenericExternalEvent",
            "external_event": {"data": text},
        }
        return one("ExternalEventOccurredEvent", inner)

    gone = external('{"type": "machine_unavailable", "resources": "0-1"}')
    assert isinstance(gone, ev.MachineAvailability) and (gone.hosts, gone.available) == (((0, 1),), False)
    for text in ("plain", '{"rack": 3}', "[]", "7"):
        note = external(text)
        assert isinstance(note, ev.Notification) and note.kind == "external_event"


PROGRESS = {
    "kill_progress_type": "KillProgressSequentialProfile",
    "kill_progress": {
        "profile_id": "w0!s", "current_repetition": 0, "current_task_index": 1, "current_task_progress": {
            "kill_progress_type": "KillProgressAtomicProfile",
            "kill_progress": {"profile_id": "w0!d", "progress": 0.25}}},
}  # fmt: skip


def test_progress_of_killed_jobs_is_told_as_batsim_4_does() -> None:
    progresses = [{"job_id": "w0!1", "wrapper": PROGRESS}]
    event = one("JobsKilledEvent", {"job_ids": ["w0!1"], "progresses": progresses})
    assert isinstance(event, ev.JobKilled)
    inner = {"profile_name": "d", "progress": 0.25}
    own = {"profile_name": "s", "current_repetition": 0, "current_task_index": 1, "current_task": inner}
    assert event.progress == {"w0!1": own}


@pytest.mark.parametrize(
    ("kind", "data", "what"),
    [
        ("JobCompletedEvent", {"job_id": "w0!1", "state": "DONE", "return_code": 0}, "state 'DONE'"),
        ("JobCompletedEvent", {"job_id": "w0!1", "state": "COMPLETED_FAILED", "return_code": -1}, "32 bits"),
        ("JobSubmittedEvent", {"job_id": "1", "job": {}, "submission_time": 0}, "WORKLOAD!NAME"),
        ("JobSubmittedEvent", {"job_id": "w0!1", "job": {}, "submission_time": 0}, "'resource_request'"),
        ("SimulationBeginsEvent", BEGIN | {"computation_host_number": 3}, "has 2 entries"),
        ("SimulationBeginsEvent", BEGIN | {"profiles": [3]}, "'profiles'"),
        ("HostsTurnedOnOffEvent", {"host_ids": "0,1", "state": 2}, "'host_ids'"),
        ("JobsKilledEvent", {"job_ids": ["w0!1"], "progresses": [{"job_id": "w0!1"}]}, "'wrapper'"),
        ("JOB_COMPLETED", {}, "'JOB_COMPLETED' is unknown"),
    ],
)
def test_senseless_events_are_named(kind: str, data: dict[str, Any], what: str) -> None:
    with pytest.raises(BridgeError, match=r"events\[0\]") as error:
        one(kind, data)
    assert what in error.value.what and "Batsim 5" in error.value.remedy


# Decisions.


def test_starts() -> None:
    plain = {
        "executor_placement_type": "PredefinedExecutorPlacementStrategyWrapper",
        "executor_placement": {"strategy": "SpreadOverHostsFirst"},
    }
    assert encoded(ev.ExecuteJob(0, "w0!1", parse("0-3 7"), None, {"pfs": 9})) == ("ExecuteJobEvent", {
        "job_id": "w0!1", "allocation": {"host_allocation": "0-3 7", **plain},
        "storage_placement": [{"storage_name": "pfs", "host_id": 9}]})  # fmt: skip
    mapped = encoded(ev.ExecuteJob(0, "w0!1", parse("0-1"), {0: 1, 1: 1, 2: 0}))[1]["allocation"]
    assert mapped["executor_placement_type"] == "CustomExecutorToHostMapping"
    assert mapped["executor_placement"] == {"mapping": [1, 1, 0]}


@pytest.mark.parametrize(
    ("at", "count", "unit"),
    [
        (7 * MICRO, 7, "Second"),
        (7_250_000, 7250, "Millisecond"),
        (7_250_001, 7251, "Millisecond"),
        (1, 1, "Millisecond"),
    ],
)
def test_wake_ups_are_whole_numbers_and_never_early(at: int, count: int, unit: str) -> None:
    kind, data = encoded(ev.CallMeLater(0, at))
    assert kind == "CallMeLaterEvent" and data["when_type"] == "OneShot"
    assert data["when"] == {"time": count, "time_unit": unit}


def test_power_states_go_by_two_decisions() -> None:
    dialect = Batsim5()
    dialect.decode(frame(0, ("SimulationBeginsEvent", BEGIN)), 1)
    assert encoded(ev.SetPowerState(0, parse("0"), 1), dialect) == (
        "ChangeHostsPStateEvent", {"host_ids": "0", "pstate": 1})  # fmt: skip
    off = "TurnOnOffHostsEvent"
    assert encoded(ev.SetPowerState(0, parse("0-1"), 2), dialect) == (off, {"host_ids": "0-1", "state": 2})
    asleep = dialect.decode(frame(1, ("HostsTurnedOnOffEvent", {"host_ids": "0-1", "state": 2})), 2).events[0]
    assert asleep == ev.ResourceStateChanged(MICRO, ((0, 1),), 2, True)
    assert encoded(ev.SetPowerState(1, parse("0"), 0), dialect) == (off, {"host_ids": "0", "state": 0})
    dialect.decode(frame(2, ("HostsTurnedOnOffEvent", {"host_ids": "0", "state": 0})), 3)
    assert encoded(ev.SetPowerState(2, parse("0"), 1), dialect)[0] == "ChangeHostsPStateEvent"


def test_energy_is_asked_for_by_a_probe_that_is_stopped_once_it_has_spoken() -> None:
    dialect = Batsim5()
    dialect.decode(frame(0, ("SimulationBeginsEvent", BEGIN)), 1)
    kind, data = encoded(ev.QueryEnergy(0), dialect)
    assert kind == "CreateProbeEvent" and data["resources"] == {"host_ids": "0-1"}
    assert data["metrics"] == "Power" and data["data_accumulation_strategy"]["reset_mode_type"] == "NoReset"
    told = {"probe_id": data["probe_id"], "data_type": "AggregatedProbeData", "data": {"data": 42.5}}
    answer = dialect.decode(frame(2, ("ProbeDataEmittedEvent", told)), 2).events[0]
    assert answer == ev.EnergyAnswer(2 * MICRO, 42.5)
    stop = json.loads(dialect.encode(ev.Reply(2 * MICRO)))["events"]
    assert [(event["event_type"], event["event"]) for event in stop] == [
        ("StopProbeEvent", {"probe_id": data["probe_id"]})
    ]
    assert json.loads(dialect.encode(ev.Reply(2 * MICRO)))["events"] == []


EXAMPLES: dict[str, dict[str, Any]] = {
    "SimulationBeginsEvent": BEGIN,
    "JobSubmittedEvent": {
        "job_id": "w0!1", "submission_time": 0, "profile": {"id": "w0!d", "profile_type": "x", "profile": {}},
        "job": {"resource_request": 1, "walltime": None, "extra_data": "", "profile_id": "w0!d"}},
    "JobCompletedEvent": {"job_id": "w0!1", "state": "COMPLETED_KILLED", "return_code": 0},
    "JobsKilledEvent": {"job_ids": ["w0!1"], "progresses": [{"job_id": "w0!1", "wrapper": PROGRESS}]},
    "ExternalEventOccurredEvent": {"id": "ee0!1", "external_event": {"data": '{"type":"machine_available"}'}},
    "HostsTurnedOnOffEvent": {"host_ids": "0-1", "state": 2},
    "ProbeDataEmittedEvent": {"probe_id": "mine", "data": {"data": 1.5}},
}  # fmt: skip


@given(st.data())
def test_whatever_an_event_holds_is_understood_or_a_named_error(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(EXAMPLES)))
    told = json.loads(json.dumps(EXAMPLES[kind]))
    place: Any = told
    while True:  # replace one value, however deep
        key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else list(range(len(place)))))
        inner = place[key]
        if not (isinstance(inner, (dict, list)) and inner) or data.draw(st.booleans()):
            place[key] = data.draw(JSON)
            break
        place = inner
    dialect = Batsim5()
    try:
        message = dialect.decode(frame(1, (kind, told)), 3)
    except BridgeError as error:
        assert error.where.startswith(f"message 3, events[0] ({kind})")
        return
    again = dialect.decode(dialect.encode_message(message), 3)
    assert replace(again.events[0], extra_fields=None) == replace(message.events[0], extra_fields=None)
