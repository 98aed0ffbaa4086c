"""Rules of action on the nodes of a cluster: one exclusive partition is the pool, life for life."""

import os
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cluster_on_bridge import build_scenario
from cluster_reference.acting import play_acting
from cluster_reference.case_text import format_case
from cluster_reference.generate import PARTS, draw_case
from cluster_reference.shrink import shrink

from bridge.base.errors import BridgeError
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


#: Outcomes of lives as the reference calls them, by their codes.
OUTCOMES = ("ENDED", "PREEMPTED", "NODE_FAIL", "PREEMPTED_REQUEUED", "REQUEUED")
ACTIONS = ("speculative", "speculative", "trial", "trial", "las", "hybrid", "hybrid guarded")


def draw_acting_case(seed: int, *, parts: Sequence[str] = PARTS) -> dict[str, Any]:
    """Draw a case with a rule of action; under rules that preempt by the minute, time is longer."""
    rng = random.Random(seed)
    kind, _, guarded = ACTIONS[seed % len(ACTIONS)].partition(" ")
    books = ("conservative",) if kind in ("speculative", "trial") else ()
    case = draw_case(seed, parts=parts, backfills=("none", "easy", "easy", *books))
    scale = rng.choice([20, 60]) if kind in ("las", "hybrid") else 1
    for job in case["jobs"]:
        for name in ("submit", "run", "request", "estimate", "begin", "hold_until"):
            if name in job:
                job[name] *= scale
        if rng.random() < 0.3:
            job["permits"] = False
    for partition in case["partitions"].values():
        for name in ("max_time", "grace", "exempt"):
            if name in partition:
                partition[name] *= scale
        if partition.get("preempt") == "suspend":
            partition["preempt"] = "requeue"
    for entry in case.get("calendar", ()):
        for name in ("time", "begin", "end", "announced"):
            if name in entry:
                entry[name] *= scale
    limit = rng.choice([3, 5, 10]) * scale
    case["action"] = {"kind": kind, "limit": limit, "level": limit * rng.choice([2, 4])}
    case["action"] |= {"restart": rng.choice([0, 1, 4]), "resume": rng.choice([0, 1, 60])}
    case["action"]["guard"] = rng.choice([5, 20]) * scale if guarded else 0
    return case


def action_text(action: Mapping[str, Any]) -> str:
    kind, costs = action["kind"], f"restart={action['restart']}"
    if kind in ("las", "hybrid"):
        costs = f"resume={action['resume']}" + (f",guard={action['guard']}" if action["guard"] else "")
    level = f",{action['level']}" if kind == "las" else ""
    return f"{kind}({action['limit']}{level},{costs})"


def lives_of_case(case: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return all lives: job, start, end, nodes, how it ended."""
    scenario = build_scenario(case, action=action_text(case["action"]))
    schedule = replay(scenario)
    assert schedule.node_lives is not None
    rows, nodes = schedule.node_lives.records, schedule.node_lives.nodes
    numbers = scenario.jobs.id.astype(int) - 1
    return sorted(
        (int(numbers[row.job]), row.start // SECOND, row.end // SECOND,
         sorted(nodes[row.first:row.last].tolist()), OUTCOMES[row.outcome])
        for row in rows
    )  # fmt: skip


def expected_lives(case: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    lives = play_acting(case)["lives"]
    own = {"COMPLETED", "FAILED", "TIMEOUT"}
    return sorted(
        (life["job"], life["start"], life["end"], life["nodes"],
         "ENDED" if life["outcome"] in own else life["outcome"])
        for life in lives
    )  # fmt: skip


def compare_case(case: dict[str, Any]) -> None:
    """Compare a case; a difference is shown on the smallest case that has one, ready to be pasted."""

    def differs(smaller: dict[str, Any]) -> bool:
        try:
            return lives_of_case(smaller) != expected_lives(smaller)
        except BridgeError:
            return False

    if lives_of_case(case) != expected_lives(case):
        small = shrink(case, differs)
        print(format_case(small))
        assert lives_of_case(small) == expected_lives(small)


def test_random_clusters() -> None:
    for seed in range(150):
        compare_case(draw_acting_case(300_000 + seed))
