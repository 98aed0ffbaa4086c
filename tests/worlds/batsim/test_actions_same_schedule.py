"""A rule of action gives each job the same lives on a platform, where a stopped job is killed and cloned."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from detailed import delay_jobs, needs_simgrid, run_on_model
from fake_batsim import FakeBatsim
from small_jobs import make_jobs

from bridge.experiment.prepare import beliefs
from bridge.scheduler.state import SECOND
from bridge.workload.select import Jobs
from bridge.worlds.batsim.acting_dispatcher import ActingDispatcher
from bridge.worlds.batsim.dispatcher import DispatcherConfig
from bridge.worlds.batsim.process import DecisionProcess
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import replay
from bridge.worlds.fast.scheduler_config import SchedulerConfig

ACTIONS = (
    *("speculative(600)", "speculative(60,restart=0)", "trial(300)", "trial(60,restart=7)"),
    *("las(300,3600)", "hybrid(300)", "trial(300,share=0.5)"),
)
#: Compiling takes longer; see `worlds/fast/test_actions_without_compiler.py`.
pytestmark = [] if os.environ.get("NUMBA_DISABLE_JIT") == "1" else [pytest.mark.slow]
Lives = list[tuple[int, int, int, bool]]


def draw_jobs(rng: np.random.Generator, n: int) -> Jobs:
    """Draw jobs of a crowded small machine, many of which end as a trial or a whole minute does."""
    nodes = int(rng.integers(2, 9))
    submit = np.sort(rng.integers(0, 60 * n, n))
    run = np.where(rng.random(n) < 0.5, rng.integers(1, 400, n), rng.integers(1, 8000, n))
    run = np.where(rng.random(n) < 0.2, rng.choice([60, 300, 600], n), run)
    request = run * rng.choice([1, 1, 2, 5], n)
    columns = (submit, run, request, rng.integers(1, nodes + 1, n))
    permits = (rng.random(n) < 0.8).astype(int).tolist()
    return make_jobs(
        np.column_stack(columns).tolist(),
        [nodes],
        users=rng.integers(0, 5, n).tolist(),
        extra={"restartable": permits, "checkpointable": permits},
    )


def scenario(jobs: Jobs, action: str, order: str = "saf", backfill: str = "easy") -> Scenario:
    return SchedulerConfig(order, backfill, action=action).build_scenario(jobs)


def process_of(prepared: Scenario) -> DecisionProcess:
    """Return who decides as the fast world does; the referee refuses what is illegal."""
    estimator, facts = beliefs(prepared)
    setup = DispatcherConfig(prepared.compiled.policy, estimator=estimator, facts=facts)
    return DecisionProcess(setup, strict=True)


def lives_in_fast_world(prepared: Scenario) -> Lives:
    lives = replay(prepared).lives
    assert lives is not None and lives.log is not None
    return sorted(
        (int(job), int(start), int(end), ended == 0) for start, end, job, _, ended in lives.log.tolist()
    )


def lives_on_platform(process: DecisionProcess, jobs: Jobs) -> Lives:
    assert not process.result().missing and process.dispatcher.ended
    decided = process.dispatcher
    assert isinstance(decided, ActingDispatcher)
    place = {number: k for k, number in enumerate(jobs.number.tolist())}
    return sorted(
        (place[int(job.event.job_id.rpartition("!")[2])], life.start, life.finish, life is job.current)
        for job in decided.repeatable_jobs
        for life in job.lives
    )


def on_fake(prepared: Scenario, **options: Any) -> Lives:
    process, jobs = process_of(prepared), prepared.jobs
    FakeBatsim(delay_jobs(jobs), int(jobs.capacity[0]), dynamic=True, **options).run(process.reply_to_frame)
    return lives_on_platform(process, jobs)


def on_model(folder: Path, prepared: Scenario, *options: str) -> Lives:
    process, jobs = process_of(prepared), prepared.jobs
    words = ("--enable-dynamic-jobs", *options)
    result = run_on_model(folder, delay_jobs(jobs), int(jobs.capacity[0]), process, *words)
    assert result.error is None
    return lives_on_platform(process, jobs)


@pytest.mark.parametrize("action", ACTIONS)
def test_a_scripted_peer(action: str) -> None:
    rng = np.random.default_rng([1, ACTIONS.index(action)])
    for k in range(8):
        order, backfill = str(rng.choice(["fcfs", "saf"])), str(rng.choice(["easy", "none", "conservative"]))
        prepared = scenario(draw_jobs(rng, 25), action, order, backfill)
        assert on_fake(prepared, acknowledges=bool(k % 2)) == lives_in_fast_world(prepared)


@needs_simgrid
@pytest.mark.parametrize("action", ACTIONS)
def test_the_embedded_model(tmp_path: Path, action: str) -> None:
    rng = np.random.default_rng([2, ACTIONS.index(action)])
    for k in range(2):
        prepared = scenario(draw_jobs(rng, 40), action)
        acknowledged = ("--acknowledge-dynamic-jobs",) if k % 2 else ()
        assert on_model(tmp_path, prepared, *acknowledged) == lives_in_fast_world(prepared)


def test_an_end_in_the_instant_of_a_kill_counts() -> None:
    # the platform answers a kill with the job's own end
    prepared = scenario(make_jobs([(0, 400, 900, 1), (0, 500, 950, 1)], [1]), "trial(300)")
    process = process_of(prepared)
    fake = FakeBatsim(delay_jobs(prepared.jobs), 1, dynamic=True)
    talk, reply = fake.talk(), None
    frame = next(talk)
    while True:
        reply = process.reply_to_frame(frame.replace(b"COMPLETED_KILLED", b"COMPLETED_SUCCESSFULLY"))
        try:
            frame = talk.send(reply)
        except StopIteration:
            break
    assert lives_on_platform(process, prepared.jobs) == [
        (0, 0, 300 * SECOND, True), (1, 300 * SECOND, 600 * SECOND, True)
    ]  # fmt: skip
