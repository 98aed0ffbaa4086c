"""The central test: with delay profiles, a policy starts every job at the same time in both worlds."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from detailed import needs_simgrid, starts_on_fake, starts_on_model

from bridge.scheduler.names import BACKFILLS, ORDERS
from bridge.scheduler.protocol import Policy
from bridge.scheduler.state import SECOND
from bridge.workload.table import Workload
from bridge.worlds.batsim.dispatcher import DispatcherConfig
from bridge.worlds.batsim.estimates import WorkloadFacts
from bridge.worlds.batsim.process import DecisionProcess
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import replay
from bridge.worlds.fast.scheduler_config import SchedulerConfig as Replay

Log = Callable[[str], Workload]
SDSC, THETA = "SDSC-SP2-1998-4.2-cln", "theta_2022"


def prepared(workload: Workload, order: str, backfill: str, first: int, candidates: str = "") -> Scenario:
    fast = Replay(order, backfill, candidates, first=first)
    return fast.build_scenario(fast.select(workload))


def setup_for(fast: Scenario) -> DispatcherConfig:
    """Return the same policy for the detailed world, with what the fast world knows of the workload."""
    facts = WorkloadFacts(
        longest=float(fast.estimate.order.max()) / SECOND,
        users={str(user): int(number) for user, number in zip(fast.jobs.user, fast.users, strict=True)},
        shares=fast.share.tolist(),
        queues={str(queue): float(p) for queue, p in zip(fast.jobs.queue, fast.partition, strict=True)},
    )
    policy = fast.compiled.policy
    return DispatcherConfig(Policy(policy.order, policy.backfill, policy.candidate_order), facts=facts)


def compare(fast: Scenario, got: list[int]) -> None:
    """Assert that every job started when the fast world starts it."""
    differ = np.flatnonzero(np.array(got) != replay(fast).start)
    assert len(differ) == 0, f"{len(differ)} differ, first job {fast.jobs.id[differ[0]]}"


def deciding(fast: Scenario) -> DecisionProcess:
    return DecisionProcess(setup_for(fast), strict=True)


def on_fake(fast: Scenario) -> None:
    compare(fast, starts_on_fake(deciding(fast), fast.jobs))


def on_model(fast: Scenario, folder: Path) -> None:
    compare(fast, starts_on_model(folder, deciding(fast), fast.jobs))


EVERY = [(order, backfill) for order in ORDERS for backfill in BACKFILLS]
SOME = [("fcfs", "easy"), ("wfp3", "conservative"), ("slurm", "easy"), ("sjf", "none")]


@pytest.mark.parametrize(("order", "backfill"), EVERY)
def test_a_scripted_peer_with_every_policy(bundled: Workload, order: str, backfill: str) -> None:
    on_fake(prepared(bundled, order, backfill, 400))


def test_a_scripted_peer_with_expressions_and_candidate_orders(bundled: Workload) -> None:
    on_fake(prepared(bundled, "(w/t)**2*n", "easy", 400, "sjf"))


@needs_simgrid
@pytest.mark.parametrize(("order", "backfill"), SOME)
def test_the_embedded_model(bundled: Workload, tmp_path: Path, order: str, backfill: str) -> None:
    on_model(prepared(bundled, order, backfill, 500), tmp_path)


@pytest.mark.slow
@needs_simgrid
@pytest.mark.parametrize("name", [SDSC, THETA])
@pytest.mark.parametrize(("order", "backfill"), EVERY)
def test_the_embedded_model_on_real_logs(
    log: Log, tmp_path: Path, name: str, order: str, backfill: str
) -> None:
    on_model(prepared(log(name), order, backfill, 2000), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [SDSC, THETA])
@pytest.mark.parametrize(("order", "backfill"), EVERY)
def test_a_scripted_peer_on_real_logs(log: Log, name: str, order: str, backfill: str) -> None:
    on_fake(prepared(log(name), order, backfill, 2000))


REPLAYS = [
    (SDSC, "sdsc_fcfs_easy_20000.csv.gz", 20_000),
    pytest.param(THETA, "theta_fcfs_easy_10000.csv.gz", 10_000, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("name", "file", "total"), REPLAYS)
def test_batsims_own_starts(log: Log, golden: Path, name: str, file: str, total: int) -> None:
    batsim = pd.read_csv(golden / "batsim-replay" / file).set_index("job_id")["start"]
    fast = prepared(log(name), "fcfs", "easy", total)
    got = np.array(starts_on_fake(deciding(fast), fast.jobs))
    want = batsim.loc[fast.jobs.id].to_numpy() * SECOND
    assert len(got) == len(batsim) == total
    assert int((got != want).sum()) == 0
