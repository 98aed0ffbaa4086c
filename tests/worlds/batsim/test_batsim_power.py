"""Power states in the decision process: per job, DVFS and shutdown, with schedules worked out by hand."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import batsim4_accepts
import pytest
from fake_batsim import MICRO, DelayJob, FakeBatsim

from bridge.base.errors import BridgeError
from bridge.scheduler.protocol import Policy
from bridge.workload.job_power import PowerLevels
from bridge.worlds.batsim.dispatcher import Dispatcher, DispatcherConfig
from bridge.worlds.batsim.power_states import Dvfs, PowerPlan
from bridge.worlds.batsim.process import DecisionProcess

CASE = Path(__file__).parents[1] / "simgrid" / "cases" / "power_per_job_pstates" / "transcript.jsonl"
#: The fake's hosts: two states that compute (9 W, 8 W), one that sleeps, one second from and to it.
WATTS = (9.0, 8.0, 1.0, 2.0, 2.0)
PER_JOB = PowerPlan(WATTS, rest=1, levels=PowerLevels((8, 9), 8), states=(1, 0))
DVFS = PowerPlan(WATTS, rest=1, dvfs=Dvfs(slow=1, fast=0, busy_share=0.5))
SHUTDOWN = PowerPlan(WATTS, sleeping=2, idle_limit=10 * MICRO)


def job(name: str, submit: float, run: float, res: int, **more: Any) -> DelayJob:
    return DelayJob(name, round(submit * MICRO), round(run * MICRO), res, 1000 * MICRO, more)


def play(made: list[DelayJob], hosts: int, setup: DispatcherConfig, **options: Any) -> FakeBatsim:
    process = DecisionProcess(setup, energy=True, strict=True)
    fake = FakeBatsim(made, hosts, energy=True, **options).run(process.reply_to_frame)
    assert not fake.deadlocked and not process.result().missing
    return fake


def switches(fake: FakeBatsim) -> list[tuple[float, str, str]]:
    """Return (time, hosts, state) of every change that was asked for."""
    return [
        (event["timestamp"], event["data"]["resources"], event["data"]["state"])
        for event in fake.decisions
        if event["type"] == "SET_RESOURCE_STATE"
    ]


def test_the_messages_are_those_of_the_recording() -> None:
    """The real Batsim accepted them, and its hosts drew exactly what was asked (100 and 215 W each)."""
    levels = PowerLevels((60, 100, 215), 60)
    plan = PowerPlan((60.0, 100.0, 215.0), levels=levels, states=(0, 1, 2))
    process = DecisionProcess(
        DispatcherConfig(resources={"power": 400}, power=plan), energy=True, strict=True
    )
    replies = []
    for line in map(json.loads, CASE.read_text().splitlines()):
        message = json.loads(line["raw"])
        if line["dir"] == "sched->batsim":
            assert replies.pop() == message["events"]
            continue
        for event in message["events"]:
            if event["type"] == "JOB_SUBMITTED":  # the recording's jobs do not say what they draw
                name = event["data"]["job_id"]
                event["data"]["job"]["power"] = {"w0!1": 80, "w0!2": 2 * 155 - 1}[name]
        reply = json.loads(process.reply_to_frame(json.dumps(message).encode()))
        batsim4_accepts.check(reply)
        replies.append(reply["events"])
    assert process.result().counts()["COMPLETED_SUCCESSFULLY"] == 2


def test_the_core_books_what_hosts_are_set_to() -> None:
    """1 W for two nodes is 0.5 W each: both draw 9 W, and 2 W are booked. Three such jobs do not fit 5 W."""
    made = [job(str(k), 0, 10, 2, power=1) for k in (1, 2, 3)]
    fake = play(made, 6, DispatcherConfig(resources={"power": 5}, power=PER_JOB))
    assert fake.start_times == {"1": 0, "2": 0, "3": 10}
    # all hosts rest in the state of 8 W; hosts that go from job to job in one state are not touched
    assert switches(fake) == [(0, "0-5", "1"), (0, "0-3", "0"), (10, "2-3", "1"), (20, "0-1", "1")]
    assert [told["job_id"] for told in fake.decisions_of("EXECUTE_JOB")] == ["w0!1", "w0!2", "w0!3"]


def test_more_than_a_host_can_draw_is_rejected() -> None:
    made = [job("1", 0, 5, 2, power=3), job("2", 0, 5, 2, power=2)]
    process = DecisionProcess(
        DispatcherConfig(resources={"power": 5}, power=PER_JOB), energy=True, strict=True
    )
    fake = FakeBatsim(made, 2, energy=True).run(process.reply_to_frame)
    assert fake.rejected == ["1"] and fake.start_times == {"2": 0}
    assert process.dispatcher.jobs["w0!1"].why == "asks for 3 power on 2 hosts, which can draw 9 W each"


def test_hosts_that_leave_keep_their_state_until_they_are_back() -> None:
    events = [
        (2 * MICRO, {"type": "event_machine_unavailable", "resources": "0"}),
        (20 * MICRO, {"type": "event_machine_available", "resources": "0"}),
    ]
    made = [job("1", 0, 5, 2, power=2), job("2", 30, 5, 2, power=0)]
    fake = play(made, 2, DispatcherConfig(resources={"power": 2}, power=PER_JOB), events=events)
    assert switches(fake) == [(0, "0-1", "1"), (0, "0-1", "0"), (5, "1", "1"), (20, "0", "1")]
    assert fake.start_times == {"1": 0, "2": 30}


def test_jobs_run_slowly_while_the_machine_is_quiet() -> None:
    made = [
        job("1", 0, 30, 2),  # half of the hosts busy, nobody waits: slow
        job("2", 10, 10, 1),  # three quarters busy: fast
        job("3", 12, 10, 2),  # waits until 20
        job("4", 13, 10, 1),  # backfilled at 13: fast, since 3 waits
        job("5", 40, 10, 1),  # quiet again
    ]
    fake = play(made, 4, DispatcherConfig(Policy("fcfs", "easy"), power=DVFS))
    assert fake.start_times == {"1": 0, "2": 10, "4": 13, "3": 23, "5": 40}
    assert switches(fake) == [
        (0, "0-3", "1"),
        (10, "2", "0"),
        (13, "3", "0"),
        (20, "2", "1"),
        (23, "2", "0"),  # 3 runs on 2-3, of which 3 was fast already
        (33, "2-3", "1"),
    ]


def test_idle_hosts_sleep_and_are_woken_for_a_job() -> None:
    made = [job("1", 0, 5, 2), job("2", 30, 5, 3)]
    fake = play(made, 4, DispatcherConfig(power=SHUTDOWN))
    assert fake.start_times == {"1": 0, "2": 31}  # a second after the scheduler started it
    # nothing is switched off once all is over
    assert switches(fake) == [(10, "2-3", "2"), (15, "0-1", "2"), (30, "0-2", "0")]
    assert [call["timestamp"] for call in fake.decisions_of("CALL_ME_LATER")] == [10, 15]


def test_hosts_that_are_awake_come_first() -> None:
    made = [job("1", 0, 9, 2), job("2", 0, 12, 1), job("3", 20, 5, 1), job("4", 100, 1, 1)]
    fake = play(made, 4, DispatcherConfig(power=SHUTDOWN))
    assert fake.start_times == {"1": 0, "2": 0, "3": 20, "4": 101}
    assert fake.alloc["w0!3"] == "2"  # 3 sleeps since 10, 0 and 1 since 19
    assert switches(fake) == [(10, "3", "2"), (19, "0-1", "2"), (35, "2", "2"), (100, "0", "0")]


def test_a_job_waits_for_hosts_on_their_way_to_sleep() -> None:
    made = [job("1", 0, 5, 2), job("2", 15.5, 5, 4)]
    fake = play(made, 4, DispatcherConfig(power=SHUTDOWN))
    # 2-3 sleep since 11 and are up at 16.5; 0-1 go to sleep from 15 to 16, and are up at 17
    assert switches(fake) == [(10, "2-3", "2"), (15, "0-1", "2"), (15.5, "2-3", "0"), (16, "0-1", "0")]
    assert fake.start_times == {"1": 0, "2": 17}


def test_the_scheduler_counts_sleeping_hosts_as_free() -> None:
    """2 is granted all hosts at 30, though they sleep; 3 cannot overtake it and is believed to follow it."""
    made = [job("1", 0, 5, 2), job("2", 30, 5, 4), job("3", 30, 1, 1)]
    process = DecisionProcess(DispatcherConfig(power=SHUTDOWN), energy=True, strict=True)
    fake = FakeBatsim(made, 4, energy=True).run(process.reply_to_frame)
    assert fake.start_times == {"1": 0, "2": 31, "3": 36}
    session = process.dispatcher.session
    assert session is not None
    assert session.state.jobs.start[0, 1] == 30 * MICRO  # as the scheduler sees it


def test_shutdown_goes_with_dvfs() -> None:
    plan = replace(DVFS, sleeping=2, idle_limit=10 * MICRO)
    fake = play([job("1", 0, 5, 2), job("2", 30, 5, 4)], 4, DispatcherConfig(power=plan))
    # woken into the state that the job runs in: the whole machine is busy with it, so fast
    expected = [(0, "0-3", "1"), (10, "2-3", "2"), (15, "0-1", "2"), (30, "0-3", "0"), (36, "0-3", "1")]
    assert switches(fake) == expected
    assert fake.start_times == {"1": 0, "2": 31}


def test_hosts_that_come_and_go_are_not_switched_off_besides() -> None:
    events = [(2 * MICRO, {"type": "event_machine_unavailable", "resources": "0"})]
    with pytest.raises(BridgeError, match="cannot be switched off and on besides"):
        play([job("1", 0, 5, 1), job("2", 50, 5, 1)], 2, DispatcherConfig(power=SHUTDOWN), events=events)


def test_power_per_job_needs_a_capacity() -> None:
    with pytest.raises(BridgeError, match="power per job is a resource"):
        Dispatcher(DispatcherConfig(power=PER_JOB))
