"""The central test: with delay profiles, a policy starts every job at the same time in both worlds."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from detailed import delay_jobs, needs_simgrid, run_on_model
from fake_batsim import FakeBatsim

from bridge.batsim.beliefs import Facts
from bridge.batsim.dispatcher import Setup
from bridge.batsim.process import DecisionProcess
from bridge.fast.episode import Prepared
from bridge.fast.replay import replay
from bridge.fast.setup import Setup as Replay
from bridge.scheduler.names import BACKFILLS, ORDERS
from bridge.scheduler.protocol import Policy
from bridge.scheduler.state import SECOND
from bridge.workload.catalogue import resolve
from bridge.workload.formats import read
from bridge.workload.table import Workload

Log = Callable[[str], Workload]
SDSC, THETA = "SDSC-SP2-1998-4.2-cln", "theta_2022"


@pytest.fixture(scope="session")
def bundled() -> Workload:
    return read(resolve("bundled-128"))


def prepared(workload: Workload, order: str, backfill: str, first: int, candidates: str = "") -> Prepared:
    fast = Replay(order, backfill, candidates, first=first)
    return fast.prepare(fast.select(workload))


def setup_for(fast: Prepared) -> Setup:
    """Return the same policy for the detailed world, with what the fast world knows of the workload."""
    facts = Facts(
        longest=float(fast.estimate.order.max()) / SECOND,
        users={str(user): int(number) for user, number in zip(fast.jobs.user, fast.users, strict=True)},
        shares=fast.share.tolist(),
        queues={str(queue): float(p) for queue, p in zip(fast.jobs.queue, fast.partition, strict=True)},
    )
    policy = fast.compiled.policy
    return Setup(Policy(policy.order, policy.backfill, policy.candidate_order), facts=facts)


def compare(fast: Prepared, starts: dict[str, int]) -> None:
    """Assert that every job started when the fast world starts it."""
    want = replay(fast)
    width = len(str(fast.jobs.id.max()))
    got = np.array([starts[f"{i:0{width}d}"] for i in fast.jobs.id])
    differ = np.flatnonzero(got != want.start)
    assert len(differ) == 0, f"{len(differ)} differ, first job {fast.jobs.id[differ[0]]}"


def on_fake(fast: Prepared) -> None:
    process = DecisionProcess(setup_for(fast), strict=True)
    fake = FakeBatsim(delay_jobs(fast.jobs), int(fast.jobs.capacity[0])).run(process.answer)
    assert not process.result().missing
    compare(fast, fake.starts)


def on_model(fast: Prepared, folder: Path) -> None:
    process = DecisionProcess(setup_for(fast), strict=True)
    result = run_on_model(folder, delay_jobs(fast.jobs), int(fast.jobs.capacity[0]), process)
    assert not result.missing and result.error is None
    compare(fast, {job_id.partition("!")[2]: start for job_id, start in result.starts.items()})


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
    process = DecisionProcess(setup_for(fast), strict=True)
    fake = FakeBatsim(delay_jobs(fast.jobs), int(fast.jobs.capacity[0])).run(process.answer)
    got = np.array([fake.starts[name] for name in sorted(fake.starts)])
    want = batsim.loc[sorted(fast.jobs.id)].to_numpy() * SECOND
    assert len(got) == len(batsim) == total
    assert int((got != want).sum()) == 0
