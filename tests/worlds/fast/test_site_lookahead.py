"""The order `lookahead` on a cluster."""

import random

import pandas as pd

from bridge.cluster.description import Cluster, NodeGroup, Partition
from bridge.scheduler.protocol import Policy, protocol
from bridge.scheduler.state import SECOND
from bridge.workload.rules import LOAD_RULES
from bridge.workload.select import Jobs, select
from bridge.workload.table import SWF_COLUMNS, Workload
from bridge.worlds.fast.episode import prepare
from bridge.worlds.fast.replay import replay

RULE = LOAD_RULES["standard"]
POLICY = Policy("lookahead(saf, T=600, margin=0, deviations=4)")
Rows = list[tuple[int, int, int, int]]


def jobs_of(rows: Rows, cluster: Cluster | None, partitions: list[str] | None = None) -> Jobs:
    table = [
        dict.fromkeys(SWF_COLUMNS, -1)
        | {"job_id": k + 1, "submit": submit, "run": run, "req_time": request, "status": 1}
        | ({"req_procs": n, "procs": n} if cluster is None else {"nodes": n})
        | ({} if partitions is None else {"partition_name": partitions[k]})
        for k, (submit, run, request, n) in enumerate(rows)
    ]
    return select(Workload("case", pd.DataFrame(table), {"nodes": 8}), RULE, cluster=cluster, rebase=False)


def starts(jobs: Jobs, policy: Policy = POLICY) -> list[float]:
    scenario = prepare(jobs, protocol("standard"), policy, "requested", RULE)
    return [start / SECOND for start in replay(scenario).start.tolist()]


def draw_rows(seed: int, n: int) -> Rows:
    rng, now, rows = random.Random(seed), 0, []
    for _ in range(n):
        now += rng.choice([0, 1, 20, 60])
        run = rng.randint(5, 999)  # equal costs of different plans are rare
        rows.append((now, run, run + rng.choice([0, 0, rng.randint(1, 999)]), rng.choice([1, 2, 3, 5, 8])))
    return rows


def site(**changes: object) -> Cluster:
    nodes = (NodeGroup(name="n", count=8),)
    return Cluster(nodes=nodes, partitions=(Partition(name="work"),), **changes)  # type: ignore[arg-type]


def test_on_one_group_of_nodes_it_is_that_of_a_pool() -> None:
    differs = 0
    for seed in range(6):
        rows = draw_rows(seed, 25)
        expected = starts(jobs_of(rows, None))
        assert starts(jobs_of(rows, site())) == expected, seed
        differs += expected != starts(jobs_of(rows, None), Policy("saf", "easy"))
    assert differs > 2


def test_it_holds_a_short_job_back_for_the_nodes_that_it_needs() -> None:
    """Two partitions share nodes; a long job that would take them all waits for a short one."""
    nodes = (NodeGroup(name="a", count=2), NodeGroup(name="b", count=2))
    cluster = Cluster(nodes=nodes, partitions=(Partition(name="all"), Partition(name="b", nodes=("b",))))
    rows = [(0, 10, 10, 2), (1, 1000, 1000, 3), (1, 20, 20, 2)]
    jobs = jobs_of(rows, cluster, ["b", "all", "b"])
    assert starts(jobs, Policy("fcfs", "easy")) == [0, 10, 1010]
    assert starts(jobs, Policy("lookahead(fcfs, T=600, margin=0)", "easy")) == [0, 30, 10]
