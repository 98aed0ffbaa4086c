"""Replaying transcripts: all that were recorded are right, and one with a fault in it is not."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli_commands import run_bridge, run_ok
from fake_batsim import MICRO, DelayJob, FakeBatsim
from fake_batsim5 import Batsim5Around
from hypothesis import given
from hypothesis import strategies as st

from bridge.scheduler.protocol import Policy
from bridge.worlds.batsim.dispatcher import DispatcherConfig
from bridge.worlds.batsim.power_states import PowerPlan
from bridge.worlds.batsim.process import DecisionProcess
from bridge.worlds.batsim.transcript_replay import TranscriptComparison, replay
from bridge.worlds.batsim.transcripts import canonical

FCFS = Policy("fcfs", "none")


def session4(folder: Path, backfill: str = "none") -> list[dict[str, Any]]:
    """Record a session of a fake Batsim 4; returns its lines."""
    process, lines = DecisionProcess(DispatcherConfig(Policy("fcfs", backfill))), []

    def answer(frame: bytes) -> bytes:
        reply = process.reply_to_frame(frame)
        lines.append({"dir": "batsim->sched", "raw": frame.decode()})
        lines.append({"dir": "sched->batsim", "raw": reply.decode()})
        return reply

    jobs = [DelayJob(str(k), k * MICRO, (3 + k) * MICRO, 1 + k % 3, 50 * MICRO) for k in range(6)]
    FakeBatsim(jobs, 4).run(answer)
    return write(folder, lines)


def session5(folder: Path) -> list[dict[str, Any]]:
    around = Batsim5Around(DecisionProcess(DispatcherConfig(FCFS)).reply_to_frame, "hi")
    jobs = [
        DelayJob(str(k), k * MICRO, (3 + k) * MICRO, 1 + k % 3, 50 * MICRO, {"user": k}) for k in range(6)
    ]
    FakeBatsim(jobs, 4).run(around)
    return write(folder, transcript_lines(around))


def transcript_lines(around: Batsim5Around) -> list[dict[str, Any]]:
    init = around.frames[0][4:].decode()
    lines: list[dict[str, Any]] = [
        {"from": "batsim", "frame": {"init_size": len(init), "init_data": init}},
        {"from": "edc", "frame": {"flags": 2, "message": json.loads(around.frames[1][4:])}},
    ]
    for k, frame in enumerate(around.frames[2:]):
        lines.append({"from": "edc" if k % 2 else "batsim", "frame": json.loads(frame)})
    return lines


def test_hosts_that_sleep_are_not_decided_upon(tmp_path: Path) -> None:
    plan = PowerPlan((9.0, 8.0, 1.0, 2.0, 2.0), rest=1, sleeping=2, idle_limit=3 * MICRO)
    around = Batsim5Around(DecisionProcess(DispatcherConfig(FCFS, power=plan), energy=True).reply_to_frame)
    jobs = [DelayJob(str(k), 20 * k * MICRO, 5 * MICRO, 1 + k % 3, None) for k in range(8)]
    FakeBatsim(jobs, 4, energy=True).run(around)
    lines = write(tmp_path, transcript_lines(around))
    assert any("TurnOnOffHostsEvent" in json.dumps(line) for line in lines)
    found = replay(tmp_path, FCFS)
    assert not found.wrong and found.refused == 0


def write(folder: Path, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    folder.mkdir(exist_ok=True)
    name = "transcript.jsonl" if "raw" in lines[0] else "messages.jsonl"
    (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return lines


def again(folder: Path, lines: list[dict[str, Any]]) -> TranscriptComparison:
    write(folder, lines)
    return replay(folder, FCFS)


def test_all_recorded_sessions_are_right(golden: Path) -> None:
    for version, least in (("batsim", 40), ("batsim5", 10)):
        cases = [path for path in sorted((golden / version).iterdir()) if path.is_dir()]
        found = [replay(case, FCFS) for case in cases]
        assert [one.line for one in found if one.wrong] == []
        assert len(found) >= least and sum(one.forced for one in found) > 20


@pytest.mark.parametrize("policy", [("sjf", "easy"), ("lcfs", "none"), ("saf", "conservative")])
def test_other_policies_are_legal_and_the_same_where_there_is_no_choice(
    golden: Path, policy: tuple[str, str]
) -> None:
    cases = [path for path in sorted((golden / "batsim5").iterdir()) if path.is_dir()]
    assert [one.line for one in (replay(case, Policy(*policy)) for case in cases) if one.wrong] == []


@pytest.mark.parametrize("record", [session4, session5])
def test_our_own_sessions(tmp_path: Path, record: Any) -> None:
    lines = record(tmp_path)
    found = replay(tmp_path, FCFS)
    assert not found.wrong and (found.frames, found.different, found.refused) == (len(lines), 0, 0)
    assert found.same == 5


def test_another_policy_decides_otherwise_and_legally(tmp_path: Path) -> None:
    session4(tmp_path, "easy")
    found = replay(tmp_path, Policy("lcfs", "none"))
    assert not found.wrong and found.different > 0


def change(lines: list[dict[str, Any]], kind: str, key: str, value: Any, nth: int = 0) -> None:
    told = [
        event for line in lines for event in line["frame"].get("events", []) if event["event_type"] == kind
    ]
    told[nth]["event"][key] = value


@pytest.mark.parametrize(
    ("kind", "key", "value", "nth", "what"),
    [
        ("JobCompletedEvent", "state", "DONE", 0, "state 'DONE' is unknown"),
        ("JobCompletedEvent", "job_id", "w0!9", 0, "never submitted"),
        ("JobSubmittedEvent", "job_id", "w0!0", 1, "submitted twice"),
        ("JobSubmittedEvent", "submission_time", "0", 0, "'submission_time'"),
        ("ExecuteJobEvent", "job_id", "w0!7", 0, "is unknown"),
        ("ExecuteJobEvent", "allocation", {"host_allocation": "0,1"}, 0, "'executor_placement_type'"),
        ("ExecuteJobEvent", "job_id", "w0!0", 1, "which running"),
    ],
)
def test_a_session_with_a_fault_is_wrong(
    tmp_path: Path, kind: str, key: str, value: Any, nth: int, what: str
) -> None:
    lines = session5(tmp_path)
    change(lines, kind, key, value, nth)
    found = again(tmp_path, lines)
    assert what in found.wrong and "frame" in found.wrong


def test_a_session_that_lacks_a_part(tmp_path: Path) -> None:
    lines = session5(tmp_path)
    assert "breaks off" not in again(tmp_path, lines).line
    for left in (1, 2, 3):
        assert "the session's beginning is missing" in again(tmp_path, lines[left:]).wrong
    found = again(tmp_path, lines[:-2])  # as when Batsim dies
    assert found.wrong == ""
    assert found.line.endswith("; it breaks off: the simulation's end was never told")
    for line in lines:
        events = line["frame"].get("events", [])
        if events and events[0]["event_type"] == "JobSubmittedEvent":
            events.append(events[0])
            break
    assert "submitted twice" in again(tmp_path, lines).wrong


def test_a_job_that_takes_all_hosts_is_forced_to_the_host(tmp_path: Path) -> None:
    around = Batsim5Around(DecisionProcess(DispatcherConfig(FCFS)).reply_to_frame)
    FakeBatsim([DelayJob("a", 0, MICRO, 3, None), DelayJob("b", 5 * MICRO, MICRO, 3, None)], 3).run(around)
    lines = transcript_lines(around)
    assert again(tmp_path, lines).forced == 2
    told = [event for line in lines for event in line["frame"].get("events", [])]
    execute = next(event for event in told if event["event_type"] == "ExecuteJobEvent")
    execute["event"]["allocation"]["host_allocation"] = "0-1"
    found = again(tmp_path, lines)
    assert "on other hosts" in found.wrong


def test_lines_that_are_none_of_a_transcript(tmp_path: Path) -> None:
    for line in (
        "[]",
        "{}",
        '{"from":"batsim"}',
        '{"from":"nobody","frame":{"init_size":0,"init_data":""}}',
        '{"from":"batsim","frame":{"init_size":3,"init_data":"x"}}',
        "x",
    ):
        (tmp_path / "messages.jsonl").write_text(line + "\n")
        assert "line 1" in replay(tmp_path, FCFS).wrong
    (tmp_path / "messages.jsonl").write_text("")
    assert replay(tmp_path, FCFS).line.endswith("nothing was said")
    assert replay(tmp_path / "nowhere", FCFS).wrong


def test_the_normal_form() -> None:
    one = b'{"now":1.0000001,"b":[],"a":{"host_allocation":"0 1 2 5","x":2.50,"rigid":true,"n":null}}'
    two = b'{"a":{"x":2.5,"host_allocation":"0-2 5"},"now":1}\0'
    assert canonical(one) == canonical(two) == b'{"a":{"host_allocation":"0-2 5","x":"2.5"},"now":1}'
    assert canonical(b'{"now":2}') != canonical(b'{"now":2.000001}')


def test_the_command(tmp_path: Path) -> None:
    session4(tmp_path / "four")
    lines = session5(tmp_path / "five")
    words = ("batsim", "replay", tmp_path / "four", tmp_path / "five" / "messages.jsonl")
    assert len(run_ok(*words).splitlines()) == 2
    change(lines, "JobCompletedEvent", "state", "DONE")
    write(tmp_path / "five", lines)
    told = run_bridge(*words, "--policy", "sjf+easy")
    assert told.status == 1
    assert told.out.splitlines()[1].startswith("messages.jsonl: WRONG: ")
    assert run_bridge(*words, "--policy", "tetris").status == 2


@given(st.data())
def test_whatever_stands_in_a_session_is_right_or_wrong(tmp_path_factory: Any, data: st.DataObject) -> None:
    """A value of a recorded session is replaced: the replay says so, or nothing depended on it."""
    folder = tmp_path_factory.mktemp("session")
    lines = session5(folder)
    place: Any = lines
    values = st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.just([]) | st.just({"a": 1})
    while True:
        key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else list(range(len(place)))))
        inner = place[key]
        if not (isinstance(inner, (dict, list)) and inner):
            place[key] = data.draw(values)
            break
        place = inner
    found = again(folder, lines)
    assert "\n" not in found.line
