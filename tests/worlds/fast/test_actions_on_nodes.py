"""Rules of action on the nodes of a cluster: one exclusive partition is the pool, life for life."""

import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bridge.cluster import Cluster, NodeGroup
from bridge.scheduler.state import SECOND
from bridge.workload.rules import DEFAULT_RULE, LOAD_RULES
from bridge.workload.select import Jobs, select
from bridge.workload.table import SWF_COLUMNS, Workload
from bridge.worlds.fast.replay import replay
from bridge.worlds.fast.scheduler_config import SchedulerConfig

RULES = (
    *("speculative(600)", "speculative(60,restart=0)", "trial(300)", "trial(60,restart=7)"),
    *("las(300,3600)", "las(60,600,resume=900)", "hybrid(300)", "hybrid(0)", "hybrid(300,guard=2000)"),
)
#: Job, start, end, completed.
Life = tuple[int, int, int, bool]
pytestmark = [] if os.environ.get("NUMBA_DISABLE_JIT") == "1" else [pytest.mark.slow]


def draw_workload(rng: np.random.Generator) -> Workload:
    """Draw a few jobs on a small machine, crowded, with requests that may be short of the run."""
    n, nodes = int(rng.integers(2, 16)), int(rng.integers(2, 9))
    scale = int(rng.choice([120, 1200, 8000]))
    run = np.where(rng.random(n) < 0.4, rng.integers(1, 400, n), rng.integers(1, scale, n))
    believed = np.maximum(1, run * rng.choice([0.3, 1, 1, 2, 5], n)).astype(int)
    table = pd.DataFrame(dict.fromkeys(SWF_COLUMNS, np.full(n, -1)))
    table["job_id"] = np.arange(1, n + 1)
    table["submit"] = np.sort(rng.integers(0, int(rng.choice([1, 600, 6000])) + 1, n))
    table["run"], table["req_time"], table["p"] = run, np.maximum(believed, run), believed
    table["nodes"] = table["procs"] = table["req_procs"] = rng.integers(1, nodes + 1, n)
    table["status"], table["user"] = 1, rng.integers(0, 3, n)
    bits = (rng.random(n) < rng.choice([0.5, 1.0])).astype(int)
    for name in ("restartable", "suspendable", "checkpointable"):
        table[name] = bits
    return Workload("drawn", table, {"nodes": nodes})


def jobs_of(workload: Workload, cluster: Cluster | None) -> Jobs:
    rule = LOAD_RULES[DEFAULT_RULE["standard"]]
    return select(workload, rule, rebase=False, cluster=cluster)


def lives_on_both(workload: Workload, action: str, order: str, backfill: str) -> list[list[Life]]:
    nodes = int(workload.capacity["nodes"])
    setup = SchedulerConfig(order, backfill, action=action, estimator="predicted(p)")
    pool = replay(setup.build_scenario(jobs_of(workload, None)))
    cluster = replay(setup.build_scenario(jobs_of(workload, Cluster(nodes=(NodeGroup(count=nodes),)))))
    assert pool.lives is not None and pool.lives.log is not None
    assert cluster.lives is not None and cluster.node_lives is not None
    for name in ("first_start", "occupied", "lost", "stops", "progress", "idle"):
        assert getattr(pool.lives, name).tolist() == getattr(cluster.lives, name).tolist(), name
    on_pool = [(job, start, end, ended == 0) for start, end, job, _, ended in pool.lives.log.tolist()]
    rows = cluster.node_lives.records
    on_nodes = [(int(row.job), int(row.start), int(row.end), int(row.outcome) == 0) for row in rows]
    return [sorted(on_pool), sorted(on_nodes)]


def compare(seed: int, action: str) -> None:
    rng = np.random.default_rng([seed, RULES.index(action)])
    workload = draw_workload(rng)
    order = str(rng.choice(["fcfs", "saf", "sjf", "wfp3"]))
    backfill = str(rng.choice(["easy", "easy", "none", "conservative"]))
    if action.startswith(("las", "hybrid")) and backfill == "conservative":
        backfill = "easy"
    pool, nodes = lives_on_both(workload, action, order, backfill)
    assert pool == nodes, f"{seed} {action} {order}+{backfill}"


@pytest.mark.parametrize("action", RULES)
def test_one_exclusive_partition_is_the_pool(action: str) -> None:
    for seed in range(20):
        compare(seed, action)
