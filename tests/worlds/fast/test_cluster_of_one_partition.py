"""One partition of whole nodes and no rules: each job of real logs starts as on the pool."""

from pathlib import Path

import numpy as np
import pytest

from bridge.workload.catalogue import read_log
from bridge.worlds.fast.replay import Schedule, replay
from bridge.worlds.fast.scheduler_config import SchedulerConfig

ORDERS = ("fcfs", "sjf", "wfp3", "saf")
#: The logs, and how many of their first jobs are booked under conservative backfilling (None: all).
LOGS: dict[str, int | None] = {
    "CEA-Curie-2011-2.1-cln.swf.gz": 20_000,
    "CTC-SP2-1996-3.1-cln.swf.gz": None,
    "HPC2N-2002-2.2-cln.swf.gz": 20_000,
    "LLNL-Atlas-2006-2.1-cln.swf.gz": None,
    "SDSC-DS-2004-2.1-cln.swf.gz": None,
    "SDSC-SP2-1998-4.2-cln.swf.gz": None,
    "lublin_256.swf.gz": None,
    "lublin_256_new2.swf.gz": None,
    "theta_2022.swf.gz": None,
}


def starts_of_both(
    log: Path, folder: Path, order: str, backfill: str, first: int | None = None
) -> list[Schedule]:
    """Return the log's schedules on the pool, and on as many nodes of one partition."""
    pool = SchedulerConfig(order=order, backfill=backfill, first=first)
    jobs = pool.select(read_log(str(log)))
    site = folder / "site.toml"
    site.write_text(
        f'[[nodes]]\ncount = {jobs.capacity[0]}\n[[partitions]]\nname = "all"\nexclusive = true\n'
    )
    cluster = SchedulerConfig(order=order, backfill=backfill, first=first, cluster=str(site))
    on_nodes = cluster.select(read_log(str(log)))
    assert on_nodes.id.tolist() == jobs.id.tolist()
    return [replay(setup.build_scenario(selected)) for setup, selected in ((pool, jobs), (cluster, on_nodes))]


def assert_same(log: Path, folder: Path, order: str, backfill: str, first: int | None = None) -> None:
    pool, cluster = starts_of_both(log, folder, order, backfill, first)
    assert np.array_equal(pool.start, cluster.start)
    assert np.array_equal(pool.end, cluster.end)


@pytest.mark.parametrize(("order", "backfill"), [("fcfs", "easy"), ("wfp3", "none"), ("sjf", "conservative")])
def test_a_short_log(traces: Path, tmp_path: Path, order: str, backfill: str) -> None:
    assert_same(traces / "lublin_256.swf.gz", tmp_path, order, backfill, first=1_000)


@pytest.mark.slow
@pytest.mark.parametrize("backfill", ["none", "easy"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("log", LOGS)
def test_every_log(traces: Path, tmp_path: Path, log: str, order: str, backfill: str) -> None:
    assert_same(traces / log, tmp_path, order, backfill)


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("log", LOGS)
def test_every_log_booked(traces: Path, tmp_path: Path, log: str, order: str) -> None:
    assert_same(traces / log, tmp_path, order, "conservative", LOGS[log])
