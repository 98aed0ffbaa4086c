"""The codec against every recorded message of the real Batsim 4.2.1, and against malformed ones."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from any_json import JSON
from hypothesis import given
from hypothesis import strategies as st

from bridge.base.errors import BridgeError
from bridge.wire import events as ev
from bridge.wire.batsim4 import Batsim4, job_submitted
from bridge.wire.dialects import codec
from bridge.wire.times import micro
from bridge.worlds.batsim.transcripts import canonical

CODEC = codec("batsim4")
BEGIN = ev.SimulationBegins


def decode(text: str) -> ev.Message:
    return CODEC.decode(text.encode(), 7)


def one(kind: str, data: str) -> ev.Event:
    return decode(f'{{"now":9.0,"events":[{{"timestamp":8.5,"type":"{kind}","data":{data}}}]}}').events[0]


def recorded(golden: Path, direction: str) -> list[tuple[str, str]]:
    found = []
    for case in sorted((golden / "batsim").iterdir()):
        for line in (case / "transcript.jsonl").read_text().splitlines():
            record = json.loads(line)
            if record["dir"].startswith(direction):
                found.append((case.name, record["raw"]))
    assert len(found) > 300
    return found


def exact(raw: str) -> Any:
    """Parse JSON without rounding a number."""
    return json.loads(raw, parse_float=Decimal)


def test_every_recorded_message_is_understood_in_full(golden: Path) -> None:
    for case, raw in recorded(golden, "batsim"):
        message, wire = CODEC.decode(raw.encode(), 1), exact(raw)
        assert message.now == micro(wire["now"]), case
        assert canonical(CODEC.encode_message(message)) == canonical(raw.encode()), case
        for event, spelled in zip(message.events, wire["events"], strict=True):
            assert event.time == micro(spelled["timestamp"])
            data = spelled["data"]
            if isinstance(event, BEGIN):
                assert len(event.compute) == data["nb_compute_resources"]
                assert event.compute[-1].name == data["compute_resources"][-1]["name"]
                assert event.dynamic_jobs == data["config"]["dynamic-jobs-enabled"]
            elif isinstance(event, ev.JobSubmitted):
                job = data["job"]
                expected = (job["res"], job["profile"], micro(job["subtime"]))
                assert (event.res, event.profile, event.submit) == expected
                assert event.walltime == (micro(job["walltime"]) if "walltime" in job else None)
            elif isinstance(event, ev.JobCompleted):
                assert (event.job_id, event.state) == (data["job_id"], data["job_state"])


def test_every_recorded_decision_is_written_back_exactly(golden: Path) -> None:
    written = 0
    for case, raw in recorded(golden, "sched"):
        reply = CODEC.decode_reply(raw.encode(), 1)
        assert canonical(CODEC.encode(reply)) == canonical(raw.encode()), case
        written += len(reply.decisions)
    assert written > 250


def test_the_text_of_a_reply() -> None:
    reply = ev.Reply(
        10_750_000,
        (
            ev.ExecuteJob(10_500_000, "w0!é", ((0, 3), (7, 7))),
            ev.CallMeLater(10_750_000, 3_000_000_000_001),
            ev.RegisterJob(10_750_000, "d!a", 2, 1_500_000, "p", {"burst_buffer": Decimal("8.000000")}),
        ),
    )
    assert CODEC.encode(reply).decode() == (
        '{"now":10.750000,"events":['
        '{"timestamp":10.500000,"type":"EXECUTE_JOB","data":{"job_id":"w0!é","alloc":"0-3 7"}},'
        '{"timestamp":10.750000,"type":"CALL_ME_LATER","data":{"timestamp":3000000.000001}},'
        '{"timestamp":10.750000,"type":"REGISTER_JOB","data":{"job_id":"d!a","job":{"burst_buffer":8,"id":"d!a",'
        '"res":2,"profile":"p","subtime":10.750000,"walltime":1.500000}}}]}'
    )
    assert CODEC.encode(ev.Reply(0)) == b'{"now":0.000000,"events":[]}'


def test_key_order_and_further_fields_do_not_matter() -> None:
    event = one(
        "JOB_COMPLETED",
        '{"new":[1],"alloc":"5 0-1","return_code":2,"job_state":"COMPLETED_FAILED","job_id":"w0!a"}',
    )
    assert event == ev.JobCompleted(8_500_000, "w0!a", "COMPLETED_FAILED", 2, ((0, 1), (5, 5)))


def test_walltimes_and_numbers() -> None:
    def job(fields: str) -> ev.JobSubmitted:
        text = f'{{"job_id":"w0!1","job":{{"res":2,"profile":"p","subtime":0.000001{fields}}}}}'
        event = one("JOB_SUBMITTED", text)
        assert isinstance(event, ev.JobSubmitted)
        return event

    assert job("").walltime is None
    assert job(',"walltime":-1').walltime is None
    assert job(',"walltime":-1.000000').walltime is None
    assert job(',"walltime":3').walltime == 3_000_000
    assert job(',"walltime":0.1').walltime == 100_000
    assert job("").submit == 1
    assert job(',"big":12345678901234567890').fields["big"] == 12345678901234567890
    assert job(',"bb":2.500000').fields["bb"] == Decimal("2.5")


JOB = '{"job_id":"w0!1","job":{"res":2,"profile":"p","subtime":0}}'


@pytest.mark.parametrize(
    ("frame", "what", "where"),
    [
        (b"\xff", "is no JSON text", "message 7"),
        (b'{"now":1,"events":[', "is no JSON text", "message 7"),
        (b'{"now":NaN,"events":[]}', "NaN", "message 7"),
        (b"[" * 100_000, "is no JSON text", "message 7"),
        (b"[]", "is no JSON object", "message 7"),
        (b'{"events":[]}', "'now' is missing", "message 7"),
        (b'{"now":"1","events":[]}', "not a number", "message 7"),
        (b'{"now":true,"events":[]}', "not a number", "message 7"),
        (b'{"now":1e99,"events":[]}', "is not a time", "message 7"),
        (b'{"now":-1,"events":[]}', "negative", "message 7"),
        (b'{"now":1}', "'events' is missing", "message 7"),
        (b'{"now":1,"events":[3]}', "is no object", "message 7, events[0]"),
        (
            b'{"now":1,"events":[{"timestamp":1,"type":"JobCompletedEvent"}]}',
            "'JobCompletedEvent' is unknown",
            "message 7, events[0]",
        ),
        (b'{"now":1,"events":[{"timestamp":1,"type":[]}]}', "is unknown", "message 7, events[0]"),
        (
            b'{"now":1,"events":[{"timestamp":2,"type":"REQUESTED_CALL","data":{}}]}',
            "later than",
            "message 7, events[0] (REQUESTED_CALL)",
        ),
        (
            b'{"now":1,"events":[{"timestamp":1,"type":"REQUESTED_CALL"},'
            b'{"timestamp":1,"type":"JOB_SUBMITTED","data":[]}]}',
            "'data' is no object",
            "message 7, events[1] (JOB_SUBMITTED)",
        ),
    ],
)
def test_malformed_frames_are_named(frame: bytes, what: str, where: str) -> None:
    with pytest.raises(BridgeError) as error:
        CODEC.decode(frame, 7)
    assert what in error.value.what and error.value.where == where


@pytest.mark.parametrize(
    ("kind", "data", "what"),
    [
        ("JOB_SUBMITTED", JOB.replace("2", "2.0"), "'res' is missing or no whole number"),
        ("JOB_SUBMITTED", JOB.replace('"res":2', '"res":true'), "'res'"),
        ("JOB_SUBMITTED", JOB.replace('"subtime":0', '"subtime":"0"'), "'subtime'"),
        ("JOB_SUBMITTED", JOB.replace('"res"', '"id":"w0!2","res"'), "own id 'w0!2'"),
        ("JOB_SUBMITTED", JOB.replace('"profile":"p"', '"profile":3'), "'profile'"),
        ("JOB_SUBMITTED", '{"job_id":"w0!1"}', "'job' is missing"),
        ("JOB_COMPLETED", '{"job_id":"a","job_state":"DONE","return_code":0,"alloc":"0"}', "state 'DONE'"),
        (
            "JOB_COMPLETED",
            '{"job_id":"a","job_state":"COMPLETED_KILLED","return_code":0,"alloc":"3-1"}',
            "backwards",
        ),
        (
            "JOB_COMPLETED",
            '{"job_id":"a","job_state":"COMPLETED_KILLED","return_code":0,"alloc":"0-2 1"}',
            "twice",
        ),
        ("JOB_KILLED", '{"job_ids":"a","job_progress":{}}', "'job_ids'"),
        ("RESOURCE_STATE_CHANGED", '{"resources":"0","state":"on"}', "'state' is 'on'"),
        ("NOTIFY", '{"type":"event_machine_available","resources":7}', "'resources'"),
        ("ANSWER", "{}", "'consumed_energy'"),
        ("SIMULATION_BEGINS", "{}", "'compute_resources'"),
        ("SIMULATION_BEGINS", '{"nb_compute_resources":0,"compute_resources":[]}', "no compute host"),
        ("SIMULATION_BEGINS", '{"nb_compute_resources":1,"compute_resources":[{"id":1,"name":"a"}]}', "id 0"),
        (
            "SIMULATION_BEGINS",
            '{"nb_compute_resources":2,"compute_resources":[{"id":0,"name":"a"}]}',
            "has 1 entries",
        ),
        ("SIMULATION_BEGINS", '{"nb_compute_resources":1,"compute_resources":[{"id":0,"name":"a"}],'
                              '"config":{"redis-enabled":true}}', "Redis"),
    ],
)  # fmt: skip
def test_senseless_events_are_named(kind: str, data: str, what: str) -> None:
    with pytest.raises(BridgeError, match="events\\[0\\]") as error:
        one(kind, data)
    assert what in error.value.what


def test_a_begin_of_few_words() -> None:
    event = one("SIMULATION_BEGINS", '{"nb_compute_resources":1,"compute_resources":[{"id":0,"name":"a"}]}')
    assert event == BEGIN(8_500_000, (ev.HostInfo(0, "a"),))


def test_jobs_that_another_library_parsed() -> None:
    job = {"id": "w0!1", "subtime": 161.000001, "walltime": 0.1, "res": 2, "profile": "p"}
    event = job_submitted(5, "w0!1", job, None)
    assert (event.submit, event.walltime) == (161_000_001, 100_000)
    with pytest.raises(BridgeError, match="job w0!1"):
        job_submitted(5, "w0!1", {**job, "res": "2"}, None)


def test_unknown_dialects_are_refused() -> None:
    with pytest.raises(BridgeError, match="batsim4"):
        codec("batsim6")
    assert Batsim4().greet(b"") is None


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_whatever_comes_is_a_message_or_a_named_error(frame: bytes) -> None:
    try:
        CODEC.decode(frame, 3)
    except BridgeError as error:
        assert error.where.startswith("message 3")


# fmt: off
KINDS = ["JOB_SUBMITTED", "JOB_COMPLETED", "JOB_KILLED", "RESOURCE_STATE_CHANGED", "NOTIFY", "ANSWER",
         "QUERY", "FROM_JOB_MSG", "SIMULATION_BEGINS", "REQUESTED_CALL", "SIMULATION_ENDS"]
FIELDS = ["job_id", "job", "job_state", "return_code", "alloc", "job_ids", "job_progress", "resources",
          "state", "type", "compute_resources", "nb_compute_resources", "config", "profiles"]
# fmt: on


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_whatever_an_event_holds_is_understood_or_a_named_error(kind: str, data: dict[str, Any]) -> None:
    event = {"timestamp": 1, "type": kind, "data": data}
    try:
        CODEC.decode(json.dumps({"now": 1, "events": [event]}).encode(), 3)
    except BridgeError as error:
        assert error.where.startswith(f"message 3, events[0] ({kind})")


#: Values as they may stand in a message of one event, most of them as Batsim writes them.
TEXTS = st.sampled_from(['"w0!1"', '"w0!1 a~"', '""', '"w0\\u00211"', '"é"', '"a\\"b"', "1"])
TIMES = st.sampled_from(
    ["0.000000", "12.500000", "9999999999.999999", "012.500000", "12.5", "12", "1e3", "-1.0"]
)
_WHOLE = '{"subtime":2,"res":4,"profile":"p"}'
JOBS = st.sampled_from(
    [
        *(_WHOLE, _WHOLE.replace("2", "-2"), _WHOLE.replace('"p"', '"p}{","x":1.5'), "{}", "{,}"),
        '{"id":"w0!1","subtime":2,"res":4,"profile":"p","walltime":3.5}',
        _WHOLE.replace("}", ',"more":{"a":[1]}}'),
        *(_WHOLE.replace("}", f',"x":{value}}}') for value in ("nul", "1e400", '"\\ud800"')),
    ]
)
STATES = st.sampled_from(["COMPLETED_SUCCESSFULLY", "COMPLETED_FAILED", "COMPLETED", "completed"])
CODES = st.sampled_from(["0", "-1", "7", "-0", "01", "1.0", "99999999999", "null"])
ALLOCS = st.sampled_from(["0-3 7", "", "3 3", "7-3", "0 - 3", " 1", "a", "-1", "99999999999999999999"])


@given(TIMES, TIMES, TEXTS, JOBS, STATES, CODES, ALLOCS, st.sampled_from(["", " "]))
def test_an_event_that_comes_alone_is_read_as_any_other(
    now: str, at: str, job_id: str, job: str, state: str, code: str, alloc: str, blank: str
) -> None:
    for clock in (now, at):
        for kind, more in (
            ("SUBMITTED", f'"job":{job}'),
            ("COMPLETED", f'"job_state":"{state}","return_code":{code},"alloc":"{alloc}"'),
        ):
            event = f'{{"timestamp":{clock},"type":"JOB_{kind}","data":{{"job_id":{job_id},{more}}}}}'
            frame = f'{{"now":{now},"events":[{event}]}}{blank}'.encode()
            read: list[object] = []
            for decode_ in (CODEC.decode, super(Batsim4, CODEC).decode):
                try:
                    message = decode_(frame, 7)
                    read.append((message, [type(event) for event in message.events]))
                except BridgeError as error:
                    read.append(str(error))
            assert read[0] == read[1], frame
