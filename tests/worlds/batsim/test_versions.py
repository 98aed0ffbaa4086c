"""One decision process for both versions of Batsim: what the real ones said, and whole simulations.

What Batsim 5 said is answered as it was recorded, and nothing leaves that it would misread.
"""

import json
from pathlib import Path

import pytest
from fake_batsim import MICRO, DelayJob, FakeBatsim
from fake_batsim5 import Batsim5Around, through5
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_referee import JOBS, harass

from bridge.pool.batsim_dispatcher import PoolDispatcher, PoolDispatcherConfig
from bridge.pool.heuristics import heuristic_actions
from bridge.pool.settings import PoolConfig
from bridge.scheduler.protocol import Policy
from bridge.wire.dialects import codec
from bridge.wire.json_codec import detect_dialect
from bridge.worlds.batsim import transcripts
from bridge.worlds.batsim.dispatcher import DispatcherConfig
from bridge.worlds.batsim.power_states import PowerPlan
from bridge.worlds.batsim.process import DecisionProcess
from bridge.worlds.batsim.result import ExitReason

FCFS = [
    *("call_me_later", "external_events", "fcfs_binary", "fcfs_delay"),
    *("force_stop", "forward_profiles", "ptask", "reject"),
]


@pytest.mark.parametrize("case", FCFS)
def test_the_whole_process_answers_as_the_recorded_decider(golden: Path, case: str) -> None:
    """Starts, rejections and their hosts are the recorded ones, to the byte; other decisions are not ours."""
    process = DecisionProcess(DispatcherConfig(Policy("fcfs", "none")))
    starts = ("ExecuteJobEvent", "RejectJobEvent")
    reply = b""
    for told in transcripts.read(golden / "batsim5" / case).frames:
        if told.platform:
            reply = process.reply_to_frame(told.content)
            continue
        if told.content[4:5] == b"{" and told.content[0] == 2:
            continue  # the hello: ours asks for other features
        recorded = json.loads(told.content)
        recorded["events"] = [event for event in recorded["events"] if event["event_type"] in starts]
        assert transcripts.canonical(reply) == transcripts.canonical(json.dumps(recorded).encode())
    stopped = ExitReason.INCOMPLETE if case == "force_stop" else ExitReason.ENDED
    assert process.result().outcome is stopped


# Whole simulations in which nobody above the codec knows the version.


def run_version(process: DecisionProcess, fake: FakeBatsim, version: int) -> FakeBatsim:
    fake.run(through5(process) if version == 5 else process.reply_to_frame)
    assert not fake.deadlocked and not process.result().missing and not process.referee.refusals
    return fake


@pytest.mark.parametrize("policy", [("fcfs", "none"), ("sjf", "easy"), ("wfp3", "conservative")])
def test_both_versions_get_the_same_schedule(policy: tuple[str, str]) -> None:
    jobs = [DelayJob(f"{k:02d}", k % 7 * MICRO, (3 + k % 5) * MICRO, 1 + k % 6, (9 + k) * MICRO,
                     {"bb": 10 * (k % 4), "req_time": 20 + k}) for k in range(40)]  # fmt: skip
    starts = [
        run_version(
            DecisionProcess(DispatcherConfig(Policy(*policy), resources={"bb": 30})),
            FakeBatsim(jobs, 8),
            version,
        ).starts
        for version in (4, 5)
    ]
    assert starts[0] == starts[1] and len(starts[0]) == 40


def test_hosts_sleep_and_wake_in_both_versions() -> None:
    jobs = [DelayJob(str(k), 20 * k * MICRO, 5 * MICRO, 1 + k % 3, None) for k in range(8)]
    plan = PowerPlan((9.0, 8.0, 1.0, 2.0, 2.0), rest=1, sleeping=2, idle_limit=3 * MICRO)
    starts = []
    for version in (4, 5):
        process = DecisionProcess(DispatcherConfig(Policy("fcfs", "easy"), power=plan), energy=True)
        starts.append(run_version(process, FakeBatsim(jobs, 4, energy=True), version).starts)
    assert starts[0] == starts[1]


def test_the_pool_kills_and_registers_in_both_versions() -> None:
    step = 300 * MICRO
    more = {"believed": 2, "beliefs": [2, 2, 30]}
    jobs = [DelayJob(str(k), k * step, (3 + k) * step - MICRO, 2, None, more) for k in range(3)]
    ends = []
    for version in (4, 5):
        pool = PoolConfig(units=4, slots=2, kill_slots=2, horizon=40, last_step=60)
        process = DecisionProcess(
            PoolDispatcher(PoolDispatcherConfig(heuristic_actions("saf"), pool, "rule"))
        )
        fake = run_version(process, FakeBatsim(jobs, 4, dynamic=True, acknowledges=True), version)
        assert any(job.state == "COMPLETED_KILLED" for job in process.result().jobs)
        ends.append(fake.ends)
    assert ends[0] == ends[1]


def test_storage_is_placed_in_both_versions() -> None:
    """Staging is not started on Batsim 5, which would not survive it."""
    profiles = {
        "delay3000000": {"type": "parallel_homogeneous_pfs", "storage": "pfs", "bytes_to_read": 5},
        "delay4000000": {"type": "data_staging", "nb_bytes": 3, "from": "pfs", "to": "bb"},
    }
    jobs = [DelayJob(str(k), 0, (3 + k) * MICRO, 1, None) for k in range(2)]
    for version in (4, 5):
        fake = FakeBatsim(jobs, 2, profiles=profiles, storage=["pfs", "bb"])
        run_version(DecisionProcess(DispatcherConfig(Policy())), fake, version)
        placed = [
            event["data"]["storage_mapping"] for event in fake.decisions if "storage_mapping" in event["data"]
        ]
        assert placed == [{"pfs": 2}, {"pfs": 2, "bb": 3}][: 2 if version == 4 else 1]
        assert fake.rejected == ([] if version == 4 else ["1"])


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.integers(0, 2**32), st.booleans(), JOBS)
def test_nothing_that_batsim_5_would_misread_leaves_the_process(
    seed: int, energy: bool, jobs: list[DelayJob]
) -> None:
    """More hosts than asked for, busy hosts, calls of the past: 5 accepts them without a word."""
    harass(seed, jobs, through5, dynamic=True, acknowledges=True, energy=energy, reuse=True)


def test_the_whole_session_is_of_one_version() -> None:
    process = DecisionProcess(DispatcherConfig(Policy("fcfs", "easy")))
    around = Batsim5Around(process.reply_to_frame, "hi")
    FakeBatsim([DelayJob(str(k), k * MICRO, 3 * MICRO, 1 + k % 3, 5 * MICRO) for k in range(9)], 4).run(
        around
    )
    assert detect_dialect(around.frames[0]) == "batsim5" and process.result().outcome is ExitReason.ENDED
    assert codec("batsim5").decode(around.frames[2], 1).now == 0
