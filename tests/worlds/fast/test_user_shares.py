"""The protocol `alea` and the order `user_shares`, against a second implementation, and what they refuse."""

import random
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from bridge.base.errors import BridgeError
from bridge.cluster.description import Cluster, NodeGroup, Partition, SchedulerParameters
from bridge.cluster.limits import Account, Qos, User
from bridge.scheduler.protocol import Policy, protocol
from bridge.scheduler.state import SECOND
from bridge.workload.rules import LOAD_RULES
from bridge.workload.select import select
from bridge.workload.table import SWF_COLUMNS, Workload
from bridge.worlds.fast.episode import Scenario, prepare
from bridge.worlds.fast.replay import replay
from tests.worlds.fast.user_shares_reference import Simulation, Site

POLICY, RULE = Policy("user_shares", "filler"), LOAD_RULES["standard"]


def draw_site(rng: random.Random) -> Site:
    def quota() -> int:
        return rng.choice([4, 6, 8, 12])

    groups = {"g0": quota(), "g1": quota()}
    users = {f"u{k}": (quota(), rng.choice([1, 1, 2, 3]), f"g{k % 2}") for k in range(4)}
    return Site({"large": 7, "small": 3}, {"urgent": quota(), "usual": quota()}, groups, users)


def draw_jobs(rng: random.Random, site: Site, n: int) -> list[tuple[Any, ...]]:
    jobs, now = [], 0
    for _ in range(n):
        now += rng.choice([0, 0, 1, 1, 30, 60, 400])
        run = rng.choice([1, 60, 60, 61, 300, 2000])
        machine = rng.choice(["", "", "large", "small"])
        user = rng.choice([*site.users])
        queue = "urgent" if rng.random() < 0.3 else "usual"
        jobs.append((now, run, rng.choice([1, 1, 2, 3]), run + rng.choice([0, 600]), user, queue, machine))
    return jobs


def cluster_of(site: Site, **changes: Any) -> Cluster:
    return Cluster(
        nodes=tuple(
            NodeGroup(name=name, count=n, features=(name,), weight=k)
            for k, (name, n) in enumerate(site.machines.items())
        ),
        partitions=tuple(
            Partition(name=name, tier=2 - k, qos=name, **changes) for k, name in enumerate(site.queues)
        ),
        qos=tuple(Qos(name=name, grp_tres={"cores": n}) for name, n in site.queues.items()),
        accounts=tuple(Account(name=name, grp_tres={"cores": n}) for name, n in site.groups.items()),
        users=tuple(
            User(name=name, account=group, shares=shares, grp_tres={"cores": n})
            for name, (n, shares, group) in site.users.items()
        ),
        scheduler=SchedulerParameters(limits="all"),
    )


def scenario_of(
    cluster: Cluster, jobs: list[tuple[Any, ...]], name: str = "alea", **columns: Any
) -> Scenario:
    rows = [
        dict.fromkeys(SWF_COLUMNS, -1)
        | {"job_id": k + 1, "submit": submit, "run": run, "req_time": walltime, "nodes": n, "status": 1}
        | {"user_name": user, "partition_name": queue, "constraints": machine}
        for k, (submit, run, n, walltime, user, queue, machine) in enumerate(jobs)
    ]
    workload = Workload("case", pd.DataFrame(rows).assign(**columns), {"nodes": 10})
    rule = LOAD_RULES["standard"]
    return prepare(
        select(workload, rule, rebase=False, cluster=cluster), protocol(name), POLICY, "requested", rule
    )


def starts(scenario: Scenario) -> list[float]:
    return [start / SECOND for start in replay(scenario).start.tolist()]


def test_starts_are_those_of_a_second_implementation() -> None:
    waited = 0
    for seed in range(6):
        rng = random.Random(seed)
        site = draw_site(rng)
        jobs = draw_jobs(rng, site, 60)
        expected = Simulation(site, jobs).simulate()
        assert starts(scenario_of(cluster_of(site), jobs)) == expected, seed
        waited += sum(start > job[0] + 1 for start, job in zip(expected, jobs, strict=True))
    assert waited > 150


def test_usage_decays_every_two_days() -> None:
    rng = random.Random(5)
    site = draw_site(rng)
    jobs = draw_jobs(rng, site, 150)
    jobs = [(submit * 40, run * 40, n, limit * 40, *rest) for submit, run, n, limit, *rest in jobs]
    assert jobs[-1][0] > 2 * 172_800
    assert starts(scenario_of(cluster_of(site), jobs)) == Simulation(site, jobs).simulate()


def test_runs_and_overtaking_of_a_case_by_hand() -> None:
    site = Site({"large": 4}, {"urgent": 9, "usual": 9}, {"g": 9}, {"a": (9, 1, "g"), "b": (9, 1, "g")})
    jobs = [
        (0, 10, 3, 10, "a", "usual", ""),
        (0, 10, 2, 10, "b", "urgent", ""),  # first, though later
        (1, 10, 3, 10, "b", "usual", ""),  # before the first job: b has used less than a by then
        (1, 90, 2, 90, "a", "usual", ""),  # nothing is kept free for the first job
    ]
    schedule = replay(scenario_of(cluster_of(site), jobs))
    assert (schedule.start / SECOND).tolist() == [103.0024, 0.0008, 92.0016, 1.0008]
    assert ((schedule.end - schedule.start) / SECOND).tolist() == [11, 11, 11, 91]


def test_a_quota_of_a_user_holds_beside_that_of_a_queue() -> None:
    site = Site({"large": 8}, {"usual": 8}, {"g": 8}, {"a": (2, 1, "g"), "b": (8, 1, "g")})
    jobs = [(k, 100, 2, 100, "a", "usual", "") for k in range(2)]
    cluster = cluster_of(site)
    assert starts(scenario_of(cluster, jobs, "standard")) == [0, 100]
    override = replace(cluster, scheduler=SchedulerParameters())
    assert starts(scenario_of(override, jobs, "standard")) == [0, 1]


def test_what_the_protocol_refuses() -> None:
    site = Site({"large": 4, "small": 3}, {"usual": 9}, {"g": 9}, {"a": (9, 1, "g")})
    job = (0, 10, 2, 10, "a", "usual", "")
    with pytest.raises(BridgeError, match="no machine has the 5 nodes that it needs"):
        scenario_of(cluster_of(site), [(0, 10, 5, 10, "a", "usual", "")])
    with pytest.raises(BridgeError, match="gives jobs whole nodes, and jobs share nodes"):
        scenario_of(cluster_of(site, exclusive=False), [job])
    with pytest.raises(BridgeError, match="gives nodes to jobs, not tasks"):
        scenario_of(cluster_of(site), [job], nodes=-1, tasks=2)
    log = Workload("w", pd.DataFrame([dict.fromkeys(SWF_COLUMNS, 1)]), {"nodes": 4})
    with pytest.raises(BridgeError, match="needs the nodes of a cluster"):
        prepare(select(log, RULE), protocol("alea"), replace(POLICY, order="fcfs"), "requested", RULE)
    agent, jobs = replace(POLICY, agent=frozenset({"pick"})), scenario_of(cluster_of(site), [job]).jobs
    with pytest.raises(BridgeError, match="knows no agents"):
        prepare(jobs, protocol("alea"), agent, "requested", RULE)
