"""Rules of action on the nodes of a cluster: one exclusive partition is the pool, life for life."""

import os
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from action_reference import RULES, Life
from cluster_on_bridge import build_scenario
from cluster_reference.acting import play_acting
from cluster_reference.case_text import format_case
from cluster_reference.generate import PARTS, TIMED_PARTS, draw_case
from cluster_reference.shrink import shrink

from bridge.api import replay as replay_run
from bridge.base.errors import BridgeError
from bridge.cluster import Cluster, NodeGroup
from bridge.cluster.clusterfile import read_cluster_toml
from bridge.forecasting.site_present import SiteReplay
from bridge.judge.action_metrics import compute_action_metrics
from bridge.judge.check import check_schedule
from bridge.scheduler.state import SECOND
from bridge.workload.columns import write_csv
from bridge.workload.rules import DEFAULT_RULE, LOAD_RULES
from bridge.workload.select import Jobs, select
from bridge.workload.table import SWF_COLUMNS, Workload
from bridge.worlds.fast.continued_on_nodes import continue_on_nodes
from bridge.worlds.fast.job_lives import OF_JOB
from bridge.worlds.fast.replay import replay, replay_sequences
from bridge.worlds.fast.scheduler_config import SchedulerConfig

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
    if rng.random() < 0.4:
        for name, costs in TERMS.items():
            table[name] = rng.choice([-1.0, *costs], n)
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
    for name in OF_JOB:
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
    for seed in range(5):
        compare(seed, action)


@pytest.mark.slow
@pytest.mark.parametrize("action", RULES)
def test_one_exclusive_partition_is_the_pool_many_times(action: str) -> None:
    for seed in range(100, 400):
        compare(seed, action)


#: Outcomes of lives as the reference calls them, by their codes.
OUTCOMES = ("ENDED", "PREEMPTED", "NODE_FAIL", "PREEMPTED_REQUEUED", "REQUEUED")
EVERYTHING = (*PARTS, *TIMED_PARTS)
ACTIONS = ("speculative", "trial", "guest", "las", "guest", "hybrid", "hybrid guarded")


#: Costs, and memory that is kept, of jobs, QOS and partitions.
TERMS = {"suspended_memory": (0, 0.5, 0.3)}
TERMS |= {"restart_cost": (0, 7), "host_cost": (1, 2), "resume_cost": (0, 9)}


def draw_acting_case(seed: int, *, parts: Sequence[str] = PARTS) -> dict[str, Any]:
    """Draw a case with a rule of action; under rules that preempt by the minute, time is longer."""
    rng = random.Random(seed)
    kind, _, guarded = ACTIONS[seed % len(ACTIONS)].partition(" ")
    books = ("conservative",) if kind in ("speculative", "trial", "guest") else ()
    case = draw_case(seed, parts=parts, backfills=("none", "easy", "easy", *books))
    scale = rng.choice([20, 60]) if kind in ("las", "hybrid") else 1
    for job in case["jobs"]:
        for name in ("submit", "run", "request", "estimate", "begin", "hold_until"):
            if name in job:
                job[name] *= scale
        if rng.random() < 0.3:
            job["permits"] = False
    for job in case["jobs"][: len(case["jobs"]) // 3] if kind == "guest" else ():  # hosts
        job |= {name: job[name] + 25 for name in ("run", "request", "estimate") if name in job}
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
    limit = rng.choice([1, 1, 2] if kind == "guest" else [3, 5, 10]) * scale
    case["action"] = {"kind": kind, "limit": limit, "level": limit * rng.choice([2, 4])}
    case["action"] |= {"restart": rng.choice([0, 1, 4]), "resume": rng.choice([0, 1, 60])}
    case["action"]["host"] = rng.choice([1, 1, 3])
    for owner in (*case["partitions"].values(), *case.get("qos", {}).values(), *case["jobs"]):
        for name, values in TERMS.items():
            if rng.random() < 0.15:
                owner[name] = rng.choice(values)
    case["action"]["latest"] = kind == "las" and rng.random() < 0.3
    case["action"]["guard"] = rng.choice([5, 20]) * scale if guarded else 0
    return case


def action_text(action: Mapping[str, Any]) -> str:
    kind, costs = action["kind"], f"restart={action['restart']}"
    if kind in ("las", "hybrid"):
        costs = f"resume={action['resume']}" + (f",guard={action['guard']}" if action["guard"] else "")
    costs += f",host={action['host']}" if kind == "guest" else ""
    level = f",{action['level']}" if kind == "las" else ""
    costs += ",latest=1" if action["latest"] else ""
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
    for seed in range(14):
        compare_case(draw_acting_case(300_000 + seed))
        compare_case(draw_acting_case(400_000 + seed, parts=EVERYTHING))


@pytest.mark.slow
@pytest.mark.parametrize("parts", [PARTS, EVERYTHING], ids=["still", "in time"])
def test_many_random_clusters(parts: Sequence[str]) -> None:
    for seed in range(500):
        compare_case(draw_acting_case(500_000 + seed, parts=parts))


#: Job 0 has two nodes until 100; job 1, the head, needs all; job 2 fits on the third, and may have no `a`.
SITE = """
[[nodes]]
name = "a"
nodes = "a1"
[[nodes]]
name = "b"
nodes = "b[1-2]"
[[partitions]]
name = "wide"
nodes = ["a", "b"]
[[partitions]]
name = "small"
nodes = "b"
"""
#: Submit, run, request, nodes, partition.
ROWS = ((0, 100, 100, 2, "wide"), (1, 10, 10, 3, "wide"), (2, 500, 500, 1, "small"))


def site_jobs(
    tmp_path: Path,
    more: str = "",
    *,
    site: str = SITE,
    rows: Sequence[tuple[Any, ...]] = ROWS,
    **columns: Any,
) -> Jobs:
    table = pd.DataFrame(dict.fromkeys(SWF_COLUMNS, np.full(len(rows), -1)))
    table["job_id"], table["status"] = np.arange(1, len(rows) + 1), 1
    table["submit"], table["run"], table["req_time"], nodes, table["partition_name"] = zip(*rows, strict=True)
    table["nodes"] = table["procs"] = table["req_procs"] = nodes
    (tmp_path / "site.toml").write_text(site + more)
    cluster = read_cluster_toml(tmp_path / "site.toml")
    return jobs_of(Workload("site", table.assign(**columns), {"nodes": 3}), cluster)


def lives_of(jobs: Jobs, action: str, **options: Any) -> list[tuple[int, int, int, bool, list[int]]]:
    schedule = replay(SchedulerConfig(action=action, **options).build_scenario(jobs))
    assert schedule.node_lives is not None
    nodes = schedule.node_lives.nodes
    return [
        (int(row.job), int(row.start) // SECOND, int(row.end) // SECOND, int(row.outcome) == 0,
         sorted(nodes[row.first : row.last].tolist()))
        for row in schedule.node_lives.records
    ]  # fmt: skip


def test_a_speculating_job_gives_way_to_the_head_of_another_partition(tmp_path: Path) -> None:
    # job 2 would delay job 1, which is reserved for 100 on all three nodes
    assert lives_of(site_jobs(tmp_path), "speculative(600)") == [
        (0, 0, 100, True, [0, 1]), (2, 2, 100, False, [2]), (1, 100, 110, True, [0, 1, 2]),
        (2, 110, 640, True, [1]),
    ]  # fmt: skip


def test_a_backfilled_job_takes_idle_nodes_first(tmp_path: Path) -> None:
    # job 1 needs all nodes, job 2 speculates on one of the two that are idle; job 3 backfills on the other
    rows = [(0, 100, 100, 1, "wide"), *ROWS[1:], (3, 5, 5, 1, "small")]
    lives = lives_of(site_jobs(tmp_path, rows=rows), "speculative(600)")
    assert lives[0] == (3, 3, 8, True, [2])
    assert (2, 2, 100, False, [1]) in lives


@pytest.mark.parametrize(
    ("more", "columns", "is_stopped"),
    [
        ("", {}, True),
        ("restartable = false\n", {}, False),
        ("restartable = false\n", {"restartable": 1}, True),
        ("restartable = false\n[[qos]]\nname = 'normal'\nrestartable = true\n", {"qos_name": "normal"}, True),
        (
            "restartable = true\n[[qos]]\nname = 'normal'\nrestartable = false\n",
            {"qos_name": "normal"},
            False,
        ),
        ("suspendable = false\n", {}, True),
    ],
)
def test_log_then_qos_then_partition_permit(
    tmp_path: Path, more: str, columns: dict[str, Any], is_stopped: bool
) -> None:
    lives = lives_of(site_jobs(tmp_path, more, **columns), "speculative(600)")
    assert ((2, 2, 100, False, [2]) in lives) == is_stopped


def test_a_warning_says_who_permits(tmp_path: Path) -> None:
    setup = SchedulerConfig(action="trial(300)")
    (note,) = setup.build_scenario(site_jobs(tmp_path)).warnings
    assert note.endswith("as the log has no column restartable, and no partition and no QOS says so")
    assert setup.build_scenario(site_jobs(tmp_path, "restartable = true\n")).warnings == []


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"action": "las(300,3600)", "backfill": "conservative"}, "no head that could preempt"),
        ({"action": "hybrid(300)", "backfill": "conservative"}, "no head that could preempt"),
    ],
)
def test_what_a_rule_is_not_defined_beside_on_nodes_is_refused(
    tmp_path: Path, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(BridgeError, match=why):
        SchedulerConfig(**options).build_scenario(site_jobs(tmp_path))


def test_partitions_that_suspend_are_refused(tmp_path: Path) -> None:
    more = "preempt_mode = 'suspend'\n[scheduler]\npreempt = 'partition'\n"
    with pytest.raises(BridgeError, match="suspends"):
        SchedulerConfig(action="trial(300)").build_scenario(site_jobs(tmp_path, more))


@pytest.mark.parametrize(
    "action", ["speculative(600)", "trial(300)", "guest(60)", "las(300,3600)", "hybrid(300)"]
)
def test_a_run_is_valid_and_a_sequence_is_as_alone(tmp_path: Path, action: str) -> None:
    site_jobs(tmp_path)
    workload, site = crowded_log(), str(tmp_path / "site.toml")
    write_csv(workload, tmp_path / "log.csv")
    with pytest.warns(UserWarning, match="every job counts as"):
        run = replay_run(tmp_path / "log.csv", f"saf+easy+{action}", cluster=site)
    report = check_schedule(run.jobs, run.capacity, workload=workload)
    assert report.ok, report
    assert report.attempts > 0
    jobs = jobs_of(workload, read_cluster_toml(site))
    scenario = SchedulerConfig("saf", action=action).build_scenario(jobs)
    (alone,) = replay_sequences(scenario, np.zeros(1, np.int64), len(jobs))
    assert alone.end.tolist() == replay(scenario).end.tolist()
    metrics = compute_action_metrics(scenario, alone, 0)
    assert alone.lives is not None  # a host that was suspended is one job in the table, and was preempted
    suspended = int(alone.lives.suspensions.sum())
    assert (suspended > 0) == action.startswith("guest")
    assert round(metrics["preemptions"] * len(jobs)) == report.attempts + suspended
    assert run.metrics["action.waste"] == pytest.approx(metrics["waste"])


def crowded_log() -> Workload:
    rng, n = np.random.default_rng(8), 40
    table = pd.DataFrame(dict.fromkeys(SWF_COLUMNS, np.full(n, -1)))
    table["job_id"], table["status"], table["user"] = np.arange(1, n + 1), 1, rng.integers(0, 3, n)
    table["submit"], table["run"] = np.sort(rng.integers(0, 8_000, n)), rng.integers(1, 2_000, n)
    table.loc[0, "submit"] = 0  # as whole minutes count
    table["req_time"] = table["run"] * rng.integers(1, 9, n)
    table["partition_name"] = rng.choice(["wide", "small"], n)
    table["nodes"] = table["procs"] = table["req_procs"] = rng.integers(1, 3, n)
    return Workload("crowded", table, {"nodes": 3})


def test_who_cannot_stop_jobs_on_a_cluster_refuses_the_rule(tmp_path: Path) -> None:
    scenario = SchedulerConfig(action="trial(300)").build_scenario(site_jobs(tmp_path))
    with pytest.raises(BridgeError, match="forecasts cannot stop jobs yet"):
        SiteReplay(scenario)
    jobs, none = scenario.jobs, np.zeros(3, np.bool_)
    with pytest.raises(BridgeError, match="goes on from the record cannot stop jobs yet"):
        continue_on_nodes(jobs, none, jobs.submit, np.zeros(1, np.int64), 3, lambda _: scenario)
