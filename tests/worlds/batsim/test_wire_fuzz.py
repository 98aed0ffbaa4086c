"""Whatever stands in a message, the decision process answers it or gives one clear error, and soon."""

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest
from batsim4_accepts import check
from fake_batsim import MICRO, DelayJob, FakeBatsim
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bridge.base.errors import BridgeError
from bridge.pool.batsim_dispatcher import PoolDispatcher, PoolDispatcherConfig
from bridge.pool.heuristics import heuristic_actions
from bridge.pool.settings import PoolConfig
from bridge.scheduler.protocol import Policy
from bridge.workload.job_power import PowerLevels
from bridge.worlds.batsim.dispatcher import DispatcherConfig
from bridge.worlds.batsim.estimates import estimate_requested
from bridge.worlds.batsim.power_states import PowerPlan
from bridge.worlds.batsim.process import DecisionProcess

#: Values that no Batsim sends, as they would stand in a message; every one ended a reader somewhere.
NASTY = [
    "1e9999", "-1e9999", "1e99999999999999999999999", "1e-99999999999999999999999", "1e308", "1e13", "1e400",
    "1" + 400 * "0", 5000 * "1", "9223372036854775807", "9223372036854775808", "18446744073709551616",
    "92233720368547", "92000000001", "0.0000000000000000000000001", "-0.0", "-1", "2147483648",
    '"\\ud800"', '"\\udfff\\ud800"', '"\\u0000"', '"é"', '""', '"0-999999999999"', '"0-9223372036854775807"',
    f'"{5000 * "1"}"', '"0-"', '"-3"', '"4 4"', '"w0!"', '"!"', '"w0!1"', '"w0!99999999999999999999"',
    5000 * "[" + 5000 * "]", 90 * "[" + 90 * "]", 5000 * '{"a":' + "1" + 5000 * "}", "[", "{", "nul",
    "NaN", "Infinity", "null", "true", "false", "[]", "{}", "[[]]",
    '["stage"]', '["wait","io","stage"]', '{"a":1}', "[1e400]", "0", "1", "2.5",
    "[1, 2]", '["w0!1"]',
]  # fmt: skip
HERE = "@@here@@"


def job(k: int, more: dict[str, Any]) -> DelayJob:
    return DelayJob(str(k), 2 * k * MICRO, (3 + k % 4) * MICRO, 1 + k % 3, (9 + k) * MICRO, more)


def event_process() -> DecisionProcess:
    """Return what decides with a further resource and estimates in the jobs."""
    return DecisionProcess(
        DispatcherConfig(Policy("sjf", "easy"), resources={"bb": 100}, estimator=estimate_requested),
        energy=True,
    )


def power_process() -> DecisionProcess:
    """Return what switches hosts off and on, and gives each job its power."""
    watts, levels = (9.0, 8.0, 1.0, 2.0, 2.0), PowerLevels((8, 9), 8)
    plan = PowerPlan(watts, rest=1, levels=levels, states=(1, 0), sleeping=2, idle_limit=2 * MICRO)
    setup = DispatcherConfig(Policy("fcfs", "conservative"), resources={"power": 34}, power=plan)
    return DecisionProcess(setup, energy=True)


def pool_process() -> DecisionProcess:
    """Return what decides in steps, kills, and registers jobs again."""
    pool = PoolConfig(units=4, slots=2, kill_slots=2, horizon=40, last_step=60)
    return DecisionProcess(
        PoolDispatcher(PoolDispatcherConfig(heuristic_actions("saf"), pool, "rule")), energy=True
    )


def event_peer() -> FakeBatsim:
    downs = [
        (5 * MICRO, {"type": "event_machine_unavailable", "resources": "0 2"}),
        (8 * MICRO, {"type": "event_machine_available", "resources": "0-2"}),
    ]
    more = {"bb": 40, "req_time": 30, "user": 3, "queue": 1}
    jobs = [job(k, more) for k in range(6)]
    return FakeBatsim(jobs, 4, events=downs, energy=True, profiles=profiles(jobs), storage=["pfs", "bb"])


def profiles(jobs: list[DelayJob]) -> dict[str, Any]:
    own = {f"delay{one.run}": {"type": "composed", "repeat": 1, "seq": ["wait", "stage"]} for one in jobs}
    parts = {
        "wait": {"type": "delay", "delay": 3, "ret": 0},
        "stage": {"type": "composed", "seq": ["io", "move"]},
    }
    io = {"type": "parallel_homogeneous_pfs", "storage": "pfs", "bytes_to_read": 1, "bytes_to_write": 2}
    return (
        own | parts | {"io": io, "move": {"type": "data_staging", "nb_bytes": 3, "from": "pfs", "to": "bb"}}
    )


def power_peer() -> FakeBatsim:
    return FakeBatsim([job(5 * k, {"power": 20}) for k in range(4)], 4, energy=True)


def pool_peer() -> FakeBatsim:
    step = 300 * MICRO
    jobs = [
        DelayJob(str(k), k * step, (3 + k) * step - MICRO, 2, None, {"believed": 2, "beliefs": [2, 2, 30]})
        for k in range(3)
    ]
    return FakeBatsim(jobs, 4, dynamic=True, acknowledges=True, energy=True)


SESSIONS: dict[str, tuple[Callable[[], DecisionProcess], Callable[[], FakeBatsim]]] = {
    "event": (event_process, event_peer),
    "power": (power_process, power_peer),
    "pool": (pool_process, pool_peer),
}


@lru_cache
def frames(session: str) -> list[Any]:
    """Return the messages of a simulation in which nothing is wrong."""
    make, peer = SESSIONS[session]
    process, said = make(), []

    def answer(frame: bytes) -> bytes:
        said.append(json.loads(frame))
        return process.reply_to_frame(frame)

    peer().run(answer)
    assert not process.result().missing
    return said


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        found += places(child, (*path, key))
    return found


def spoilt(message: Any, path: tuple[Any, ...], nasty: str, *, key: bool) -> bytes:
    """Return a message with something else at a place, or with its key renamed."""
    copy = inner = json.loads(json.dumps(message))
    for step in path[:-1]:
        inner = inner[step]
    if key and isinstance(inner, dict):
        inner[HERE] = inner.pop(path[-1])
        nasty = nasty if nasty.startswith('"') else '"x"'
    else:
        inner[path[-1]] = HERE
    return json.dumps(copy).replace(f'"{HERE}"', nasty).encode()


@pytest.mark.parametrize("session", SESSIONS)
def test_a_whole_session_in_which_one_thing_is_wrong(session: str) -> None:
    said = frames(session)

    @settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data(), st.sampled_from(NASTY), st.booleans())
    def check(data: st.DataObject, nasty: str, key: bool) -> None:
        k = data.draw(st.integers(0, len(said) - 1))
        path = data.draw(st.sampled_from(places(said[k])))
        survives(session, k, spoilt(said[k], path, nasty, key=key))

    check()


def survives(session: str, k: int, frame: bytes) -> None:
    """Send all messages, one of them spoilt; every answer is one, until there is a clear error."""
    said, process = frames(session), SESSIONS[session][0]()
    sent = [json.dumps(message).encode() for message in said[:k]] + [frame]
    sent += [json.dumps(message).encode() for message in said[k + 1 :]]
    for number, text in enumerate(sent, 1):
        try:
            reply = process.reply_to_frame(text)
        except BridgeError as error:
            assert error.where.startswith(f"message {number}") and "\n" not in error.what
            assert len(str(error)) < 2000
            break
        check(json.loads(reply))
    json.dumps(process.result().as_dict(), ensure_ascii=False).encode()


@example(b'{"now":1e9999,"events":[]}')
@example(b'{"now":1e99999999999999999999999,"events":[]}')
@example(b'{"now":' + 5000 * b"1" + b',"events":[]}')
@example(b'{"now":1' + 400 * b"0" + b',"events":[]}')
@example(b'{"now":0,"events":' + 5000 * b"[" + 5000 * b"]" + b"}")
@example(b"[" * 1_000_000)
@example(b'{"now":0,"events":[{"timestamp":0,"type":"\\ud800","data":{}}]}')
@example('{"now":0}'.encode("utf-16"))
@given(st.binary(max_size=300))
def test_whatever_comes_first(frame: bytes) -> None:
    with pytest.raises(BridgeError) as error:
        event_process().reply_to_frame(frame)
    assert error.value.where.startswith("message 1") and len(str(error.value)) < 1000
    str(error.value).encode()


@pytest.mark.parametrize("field", ["subtime", "walltime", "req_time"])
@pytest.mark.parametrize("value", ["92000000001", "9223372036855", "1e13", "1e300", "9.3e12"])
def test_times_that_no_clock_holds_are_refused_by_job_and_field(field: str, value: str) -> None:
    begin, submitted = frames("event")[:2]
    process = event_process()
    process.reply_to_frame(json.dumps(begin).encode())
    path = ("events", 0, "data", "job", field)
    frame = spoilt(submitted, path, value, key=False)
    with pytest.raises(BridgeError) as error:
        process.reply_to_frame(frame)
    assert field in error.value.what and "job w0!0" in error.value.where


def test_hosts_that_are_not_there_are_not_counted_one_by_one() -> None:
    begin = frames("event")[0]
    process = event_process()
    process.reply_to_frame(json.dumps(begin).encode())
    for k, kind in enumerate(("event_machine_unavailable", "event_machine_available"), 1):
        event = {"timestamp": k, "type": "NOTIFY", "data": {"type": kind, "resources": "2-999999999999999"}}
        process.reply_to_frame(json.dumps({"now": k, "events": [event]}).encode())
    changed = {"resources": "0-999999999999999", "state": "2"}
    event = {"timestamp": 3, "type": "RESOURCE_STATE_CHANGED", "data": changed}
    process.reply_to_frame(json.dumps({"now": 3, "events": [event]}).encode())


def test_a_time_that_jumps_does_not_keep_the_pool_busy_for_ever() -> None:
    said, process = frames("pool"), pool_process()
    with pytest.raises(BridgeError, match="comes only now"):
        for message in said:
            calls = [event for event in message["events"] if event["type"] == "REQUESTED_CALL"]
            later = {**message, "now": 9e10} if calls else message
            process.reply_to_frame(json.dumps(later).encode())


@pytest.mark.parametrize("value", ["9223372036854775808", "1e308", "-1", "1.5", "true", '"3"'])
def test_amounts_that_are_none_are_refused_by_job_and_field(value: str) -> None:
    process = power_process()
    with pytest.raises(BridgeError) as error:
        for message in frames("power"):
            event = message["events"][0]
            path = ("events", 0, "data", "job", "power")
            spoil = event["type"] == "JOB_SUBMITTED"
            process.reply_to_frame(
                spoilt(message, path, value, key=False) if spoil else json.dumps(message).encode()
            )
    assert "its power is" in error.value.what and "job w0!" in error.value.where
