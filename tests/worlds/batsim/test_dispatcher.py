"""The decision process on small machines, with hand-computed schedules; the peer is a fake Batsim."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_batsim import MICRO, DelayJob, FakeBatsim

from bridge.base.errors import BridgeError
from bridge.scheduler import core
from bridge.scheduler.protocol import Policy
from bridge.scheduler.session import JobEstimates, Session
from bridge.wire import events as ev
from bridge.worlds.batsim.dispatcher import Dispatcher, DispatcherConfig
from bridge.worlds.batsim.estimates import (
    LONGEST,
    EstimateLookup,
    WorkloadFacts,
    estimate_requested,
    number_of,
)
from bridge.worlds.batsim.process import DecisionProcess
from bridge.worlds.batsim.profiles import storage_labels
from bridge.worlds.batsim.result import ExitReason


def jobs(*rows: tuple[str, int, int, int, int | None], **more: Any) -> list[DelayJob]:
    """Return jobs of (name, submit, run, hosts, walltime) in seconds."""
    return [
        DelayJob(name, submit * MICRO, run * MICRO, res, None if wall is None else wall * MICRO, dict(more))
        for name, submit, run, res, wall in rows
    ]


def play(
    made: list[DelayJob], hosts: int, setup: DispatcherConfig | None = None, **options: Any
) -> tuple[FakeBatsim, DecisionProcess]:
    """Let a strict decision process decide for a fake Batsim."""
    process = DecisionProcess(setup or DispatcherConfig(), strict=True)
    return FakeBatsim(made, hosts, **options).run(process.reply_to_frame), process


# Four hosts: 1 runs on three until 10 (believed), 2 needs all, 3 fits beside 1 and ends in time, 4 would not.
EASY = jobs(("1", 0, 8, 3, 10), ("2", 1, 5, 4, 5), ("3", 1, 4, 1, 9), ("4", 2, 9, 1, 9))


def test_easy_backfilling() -> None:
    fake, process = play(EASY, 4)
    assert fake.start_times == {"1": 0, "2": 8, "3": 1, "4": 13}
    result = process.result()
    assert result.outcome is ExitReason.ENDED and result.missing == []
    rows = {row["job_id"]: row for row in result.as_dict()["jobs"]}
    assert rows["w0!3"] == {
        "job_id": "w0!3", "submit": 1.0, "nodes": 1, "state": "COMPLETED_SUCCESSFULLY",
        "start": 1.0, "finish": 5.0, "hosts": "3", "start_kind": "backfilled", "overtook": "w0!2", "why": "",
    }  # fmt: skip
    assert rows["w0!2"]["start_kind"] == "head" and rows["w0!2"]["hosts"] == "0-3"


@pytest.mark.parametrize(
    ("order", "backfill", "expected"),
    [
        ("fcfs", "none", {"1": 0, "2": 8, "3": 13, "4": 13}),
        ("sjf", "none", {"1": 0, "2": 8, "3": 13, "4": 13}),
        ("lcfs", "none", {"1": 0, "4": 2, "2": 11, "3": 16}),
        ("fcfs", "conservative", {"1": 0, "3": 1, "2": 8, "4": 13}),
    ],
)
def test_other_policies(order: str, backfill: str, expected: dict[str, float]) -> None:
    fake, _ = play(EASY, 4, DispatcherConfig(Policy(order, backfill)))
    assert fake.start_times == expected


def test_submissions_of_one_message_are_ordered_by_number() -> None:
    made = jobs(("10", 0, 5, 1, 5), ("9", 0, 5, 1, 5), ("x", 0, 5, 1, 5))  # as text, 10 precedes 9
    fake, _ = play(made, 1)
    assert fake.start_times == {"9": 0, "10": 5, "x": 10}


def test_jobs_that_can_never_run_are_rejected_by_name_and_resource() -> None:
    made = jobs(("1", 0, 5, 5, 9), ("2", 0, 5, 0, 9), ("3", 0, 5, 2, 9), bb=40)
    made[2].more = {"bb": 41}
    made.append(DelayJob("4", 0, 5 * MICRO, 4, 9 * MICRO, {"bb": 40}))
    fake, process = play(made, 4, DispatcherConfig(resources={"bb": 40}))
    assert fake.rejected == ["1", "2", "3"] and fake.start_times == {"4": 0}
    assert [job.why for job in process.result().jobs] == [
        "asks for 5 nodes, the machine has 4",
        "asks for 0 nodes",
        "asks for 41 bb, the machine has 40",
        "",
    ]
    assert process.result().counts() == {
        "submitted": 4, "missing": 0, "rejected": 3, "COMPLETED_SUCCESSFULLY": 1,
    }  # fmt: skip
    assert process.result().outcome is ExitReason.ENDED


def test_further_resources_are_scheduled() -> None:
    made = jobs(("1", 0, 5, 1, 5), ("2", 0, 5, 1, 5), ("3", 0, 5, 1, 5))
    for job, amount in zip(made, (60, 50, 40), strict=True):
        job.more = {"burst_buffer": amount}
    fake, _ = play(made, 4, DispatcherConfig(Policy("fcfs", "easy"), resources={"burst_buffer": 100}))
    assert fake.start_times == {"1": 0, "2": 5, "3": 0}
    with pytest.raises(BridgeError, match=r"job w0!1: its burst_buffer is 0\.5"):
        made[0].more = {"burst_buffer": 0.5}
        play(made, 4, DispatcherConfig(resources={"burst_buffer": 100}))


def test_a_job_without_walltime_is_believed_to_last() -> None:
    fake, _ = play(
        jobs(("1", 0, 8, 3, None), ("2", 1, 5, 4, 5), ("3", 1, 90, 1, 99), ("4", 1, 5, 1, None)), 4
    )
    assert fake.start_times == {
        "1": 0,
        "2": 91,
        "3": 1,
        "4": 96,
    }  # 4 would delay 2 if it lasted longer than 1
    job = ev.JobSubmitted(0, "w0!1", 1, 0, None, "p")
    assert estimate_requested(job).order == LONGEST == 365 * 86_400 * MICRO
    assert estimate_requested(replace(job, walltime=LONGEST + 1)).order == LONGEST
    assert estimate_requested(replace(job, walltime=7, fields={"req_time": 3})).running == 3 * MICRO
    assert estimate_requested(replace(job, walltime=7, fields={"req_time": -1})).running == 7
    with pytest.raises(BridgeError, match="req_time"):
        estimate_requested(replace(job, fields={"req_time": "long"}))


def test_walltimes_end_jobs() -> None:
    fake, process = play(jobs(("1", 0, 9, 1, 9), ("2", 0, 9, 1, 4)), 1)
    assert fake.start_times == {"1": 0, "2": 9}
    assert process.result().counts() == {"submitted": 2, "missing": 0, "COMPLETED_WALLTIME_REACHED": 2}


def test_a_machine_that_leaves_and_comes_back() -> None:
    events = [
        (2 * MICRO, {"type": "event_machine_unavailable", "resources": "1-3"}),
        (20 * MICRO, {"type": "event_machine_available", "resources": "1-2"}),
        (30 * MICRO, {"type": "event_machine_available", "resources": "3"}),
    ]
    made = jobs(("1", 0, 5, 2, 9), ("2", 3, 5, 1, 9), ("3", 4, 5, 3, 9), ("4", 6, 8, 1, 9))
    fake, process = play(made, 4, DispatcherConfig(Policy("fcfs", "none")), events=events)
    # 1 runs on 0-1; at 3 nothing is free; at 5 host 0 is, but 1 stays out; 3 needs three: 0, 1, 2 at 20
    assert fake.start_times == {"1": 0, "2": 5, "3": 20, "4": 25}
    assert process.result().outcome is ExitReason.ENDED


def test_machines_that_never_come_back_leave_jobs_missing() -> None:
    events = [(2 * MICRO, {"type": "event_machine_unavailable", "resources": "0"})]
    fake, process = play(jobs(("1", 0, 5, 1, 9), ("2", 3, 5, 2, 9)), 2, events=events)
    assert fake.deadlocked
    result = process.result()
    assert result.outcome is ExitReason.INCOMPLETE
    assert "1 job is missing (1 never started): w0!2" in result.explain()
    assert result.starts == {"w0!1": 0}


def test_registration_is_declared_finished() -> None:
    fake, process = play(EASY, 4, dynamic=True)
    assert not fake.deadlocked and process.result().outcome is ExitReason.ENDED
    assert [d["type"] for d in fake.decisions[:1]] == ["NOTIFY"]


def test_an_inspector_is_woken_and_stale_calls_start_no_pass() -> None:
    asked: list[tuple[float, int]] = []

    def reject_early(session: Session, kind: int) -> int:
        assert kind == core.INSPECT
        asked.append((session.now / MICRO, int(session.state.scalars.head[0])))
        return core.DECLINE if session.now < 8 * MICRO else 0

    policy = Policy("fcfs", "none", agent=frozenset({"inspect"}), retry_after=5.0)
    made = jobs(("1", 0, 5, 1, 5), ("2", 3, 5, 1, 5))
    fake, process = play(made, 2, DispatcherConfig(policy, decider=reject_early))
    # at 0 rejected, call at 5; at 3 the queue is asked anew, call at 8; the call at 5 is stale
    assert asked == [(0, 0), (3, 0), (8, 0), (8, 1)]
    assert fake.start_times == {"1": 8, "2": 8}
    assert [call["timestamp"] for call in fake.decisions_of("CALL_ME_LATER")] == [5, 8]
    assert process.dispatcher.passes == 4  # at 0, 3, 8, and for both completions at 13
    assert [*fake.state.values()] == ["COMPLETED_WALLTIME_REACHED"] * 2


def test_storage_labels_are_resolved_or_the_job_is_rejected() -> None:
    profiles = {
        "read": {"type": "parallel_homogeneous_pfs", "bytes_to_read": 1},
        "stage": {"type": "data_staging", "nb_bytes": 1, "from": "pfs", "to": "bb"},
        "all": {"type": "composed", "repeat": 2, "seq": ["stage", "read", "old"]},
        "old": {"type": "parallel_homogeneous_pfs", "host": "scratch", "bytes_to_write": 1},
        "plain": {"type": "delay", "delay": 1},
    }
    assert storage_labels(profiles["all"], profiles.get) == ["pfs", "bb", "scratch"]
    made = jobs(*((name, 0, 5, 1, 9) for name in profiles))
    for job in made:
        job.more = {"profile": job.name}
    fake, process = play(made, 8, storage=["bb", "pfs"], profiles=profiles)
    assert sorted(fake.rejected) == ["all", "old"]
    assert "uses the storage 'scratch'" in process.dispatcher.jobs["w0!old"].why
    mappings = {told["job_id"]: told.get("storage_mapping") for told in fake.decisions_of("EXECUTE_JOB")}
    assert mappings == {"w0!plain": None, "w0!read": {"pfs": 9}, "w0!stage": {"pfs": 9, "bb": 8}}
    fake, _ = play(
        made, 8, DispatcherConfig(storage={"scratch": "bb"}), storage=["bb", "pfs"], profiles=profiles
    )
    assert fake.rejected == []
    with pytest.raises(BridgeError, match="storage scratch=tape"):
        play(made, 8, DispatcherConfig(storage={"scratch": "tape"}), storage=["bb", "pfs"], profiles=profiles)


def test_orders_that_know_the_workload_need_it() -> None:
    with pytest.raises(BridgeError, match=r"'slurm': uses t_max, fairshare, partition"):
        Dispatcher(DispatcherConfig(Policy("slurm")))
    Dispatcher(DispatcherConfig(Policy("slurm"), facts=WorkloadFacts(longest=9.0)))
    facts = WorkloadFacts(9.0, {"7": 0, "8": 1}, (0.25, 0.75), {"2": 0.5})
    job = ev.JobSubmitted(0, "w0!1", 1, 0, None, "p", {"user": 8, "queue": 2})
    assert (facts.user(job), facts.partition(job)) == (1, 0.5)
    assert (facts.user(replace(job, fields={})), facts.partition(replace(job, fields={}))) == (0, 0.0)


def test_recorded_lengths() -> None:
    assert [number_of(name) for name in ("w0!0042", "w1!x", "7", "w0!٣")] == [42, None, 7, None]
    lengths = EstimateLookup({42: JobEstimates.same(5)})
    job = ev.JobSubmitted(0, "w0!0042", 1, 0, None, "p")
    assert lengths(job) == JobEstimates.same(5)
    with pytest.raises(BridgeError, match="job w0!43"):
        lengths(replace(job, job_id="w0!43"))


def test_setups_that_cannot_work_are_refused_at_once() -> None:
    with pytest.raises(BridgeError, match="no agent"):
        DecisionProcess(DispatcherConfig(Policy(agent=frozenset({"pick"}))))
    with pytest.raises(BridgeError, match="unknown backfilling"):
        DecisionProcess(DispatcherConfig(Policy(backfill="lots")))


def message(now: int, *events: str) -> bytes:
    text = ",".join(f'{{"timestamp":{now},{event}}}' for event in events)
    return f'{{"now":{now},"events":[{text}]}}'.encode()


BEGIN = (
    '"type":"SIMULATION_BEGINS","data":{"nb_compute_resources":1,"compute_resources":[{"id":0,"name":"a"}]}'
)
SUBMIT = '"type":"JOB_SUBMITTED","data":{"job_id":"w0!1","job":{"res":1,"subtime":0,"profile":"p"}}'
DONE = (
    '"type":"JOB_COMPLETED","data":{"job_id":"w0!1","job_state":"COMPLETED_FAILED","return_code":3,'
    '"alloc":"0"}'
)


@pytest.mark.parametrize(
    ("frames", "what", "where"),
    [
        ([message(0, SUBMIT)], "not SIMULATION_BEGINS", "message 1, time 0.000000 s"),
        ([message(0)], "not SIMULATION_BEGINS", "message 1, time 0.000000 s"),
        ([message(0, BEGIN), message(0, SUBMIT, SUBMIT)], "twice", "message 2, time 0.000000 s, job w0!1"),
        ([message(0, BEGIN), message(0, DONE)], "never submitted", "message 2, time 0.000000 s, job w0!1"),
        ([message(0, BEGIN), message(5, SUBMIT), message(4, DONE)], "backwards", "message 3, time 4"),
        ([message(0, BEGIN), message(6, BEGIN)], "second simulation", "message 2"),
        ([message(0, BEGIN), message(5, SUBMIT), message(6, BEGIN)], "second simulation", "message 3"),
        ([message(0, BEGIN), b"{"], "no JSON", "message 2"),
    ],
)  # fmt: skip
def test_messages_that_make_no_sense_are_named(frames: list[bytes], what: str, where: str) -> None:
    process = DecisionProcess(DispatcherConfig())
    with pytest.raises(BridgeError) as error:
        for frame in frames:
            process.reply_to_frame(frame)
    assert what in error.value.what and error.value.where.startswith(where)


def test_a_failed_job_frees_its_hosts() -> None:
    process = DecisionProcess(DispatcherConfig(), strict=True)
    process.reply_to_frame(message(0, BEGIN))
    assert b'"EXECUTE_JOB"' in process.reply_to_frame(message(0, SUBMIT))
    again = SUBMIT.replace("w0!1", "w0!2")
    assert b'"w0!2","alloc":"0"' in process.reply_to_frame(message(3, DONE, again))
    assert process.result().counts()["COMPLETED_FAILED"] == 1


def test_a_refused_start_is_taken_back() -> None:
    dispatcher = Dispatcher(DispatcherConfig())
    begin = ev.SimulationBegins(0, (ev.HostInfo(0, "a"),))
    dispatcher.decide(ev.Message(0, (begin,)))
    first, second = (ev.JobSubmitted(0, f"w0!{k}", 1, 0, None, "p") for k in (1, 2))
    [start] = dispatcher.decide(ev.Message(0, (first,)))
    dispatcher.on_refused(start, "for a test")
    assert dispatcher.jobs["w0!1"].state == "lost"
    [start] = dispatcher.decide(ev.Message(1, (second,)))
    assert start == ev.ExecuteJob(1, "w0!2", ((0, 0),))


def test_the_summary_file(tmp_path: Path) -> None:
    _, process = play(EASY, 4)
    path = tmp_path / "decisions.json"
    process.result().write(path)
    content = json.loads(path.read_text())
    assert content == json.loads(json.dumps(process.result().as_dict()))
    assert content["outcome"] == "ended" and content["counts"]["submitted"] == 4
    assert content["locality"]["starts"] == 4 and content["now"] == 22.0
    empty = DecisionProcess(DispatcherConfig()).result()
    empty.write(path)
    assert json.loads(path.read_text())["jobs"] == [] and empty.outcome is ExitReason.INCOMPLETE
    assert list(tmp_path.iterdir()) == [path]
