"""The order `multifactor`: every start is that of the highest priority, as a second implementation has it."""

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bridge.base.errors import BridgeError
from bridge.cluster import Account, Cluster, NodeGroup, Partition, PriorityConfig, Qos, User
from bridge.scheduler.protocol import Policy, protocol
from bridge.scheduler.state import SECOND
from bridge.workload.rules import DEFAULT_RULE, LOAD_RULES
from bridge.workload.select import select
from bridge.workload.table import SWF_COLUMNS, Workload
from bridge.worlds.fast.episode import Scenario, prepare
from bridge.worlds.fast.replay import replay, replay_sequences

#: user -> (account, shares of the user); accounts' shares.
USERS = {"ann": ("physics", 2), "bob": ("physics", 1), "cat": ("biology", 1)}
ACCOUNTS = {"physics": 3, "biology": 2}
CORES = 8


def cluster(weights: PriorityConfig) -> Cluster:
    return Cluster(
        nodes=(NodeGroup(name="n", count=2, cores=CORES),),
        partitions=(
            Partition(name="p", nodes=("n",), priority_factor=1),
            Partition(name="q", nodes=("n",), priority_factor=4),
        ),
        qos=(Qos(name="normal", priority=1, usage_factor=0.5), Qos(name="high", priority=2)),
        accounts=tuple(Account(name=name, shares=n) for name, n in ACCOUNTS.items()),
        users=tuple(User(name=name, account=of, shares=n) for name, (of, n) in USERS.items()),
        priority=weights,
    )


def scenario(jobs: list[dict[str, Any]], weights: PriorityConfig) -> Scenario:
    rows = [
        dict.fromkeys(SWF_COLUMNS, -1)
        | {"job_id": j + 1, "nodes": 2, "cores_per_node": 1, "exclusive": 1, "req_time": 500, **job}
        for j, job in enumerate(jobs)
    ]
    rule = LOAD_RULES[DEFAULT_RULE["standard"]]
    log = Workload("log", pd.DataFrame(rows), {"nodes": 2})
    selected = select(log, rule, rebase=False, cluster=cluster(weights))
    return prepare(selected, protocol("standard"), Policy("multifactor", "none"), "requested", rule)


def draw_jobs(seed: int) -> list[dict[str, Any]]:
    rng, time, jobs = random.Random(seed), 0, []
    for _ in range(25):
        time += rng.randint(0, 40)
        user = rng.choice([*USERS])
        jobs.append(
            {
                "submit": time,
                "run": rng.randint(5, 90),
                "user_name": user,
                "account": USERS[user][0],
                "partition_name": rng.choice("pq"),
                "qos_name": rng.choice(["normal", "high"]),
            }
        )
    return jobs


def usage_at(
    time: int,
    jobs: list[dict[str, Any]],
    runs: list[tuple[int, int]],
    weights: PriorityConfig,
    *,
    new: bool = True,
) -> dict[str, float]:
    """Return each user's usage right after the calculation of a time: every piece, decayed since.

    Not `new`: right before what running jobs used is added.
    """
    period, life = weights.calculation_period, weights.half_life
    usage = dict.fromkeys(USERS, 0.0)
    for job, (start, end) in zip(jobs, runs, strict=True):
        cuts = [start, *range((start // period + 1) * period, min(end, time + 1), period)]
        cuts += [end] if end <= time and end != cuts[-1] else []
        for one, two in pairwise(cuts):
            if not new and two == time:
                continue
            periods = time // period - -(-two // period) + (two % period > 0)  # calculations since the piece
            factor = 0.5 if job["qos_name"] == "normal" else 1.0
            worth = 0.5 ** ((two - one) / life) * 0.5 ** (periods * period / life) if life else 1.0
            usage[job["user_name"]] += (two - one) * 2 * CORES * factor * worth
    return usage


def fair_tree_of(usage: dict[str, float]) -> dict[str, float]:
    """Return the users' factors: accounts by shares over usage, then users in them; equal ones share."""

    def levels(members: dict[str, tuple[float, float]]) -> dict[str, float]:
        shares, total = (sum(row[k] for row in members.values()) for k in (0, 1))
        return {
            name: (count / shares) / (used / total) if total and used else float("inf")
            for name, (count, used) in members.items()
        }

    below = {name: [user for user in USERS if USERS[user][0] == name] for name in ACCOUNTS}
    accounts = levels({name: (n, sum(usage[u] for u in below[name])) for name, n in ACCOUNTS.items()})
    order = []
    for level in sorted(set(accounts.values()), reverse=True):
        tied = [name for name in ACCOUNTS if accounts[name] == level]
        own: dict[str, float] = {}
        for name in tied:
            own |= levels({user: (USERS[user][1], usage[user]) for user in below[name]})
        for value in sorted(set(own.values()), reverse=True):
            order.append([user for user in own if own[user] == value])
    factors, rank = {}, len(USERS)
    for group in order:
        factors |= dict.fromkeys(group, rank / len(USERS))
        rank -= len(group)
    return factors


def classic_of(usage: dict[str, float], before: dict[str, float]) -> dict[str, float]:
    """Return 2^(-effective usage / shares) of each user; accounts' usage is that before the calculation."""
    total, factors = sum(usage.values()), {}
    early = sum(before.values())
    for user, (account, count) in USERS.items():
        siblings = [name for name in USERS if USERS[name][0] == account]
        part = count / sum(USERS[name][1] for name in siblings)
        share = ACCOUNTS[account] / sum(ACCOUNTS.values()) * part
        whole = sum(before[name] for name in siblings) / early if early else 0.0
        own = usage[user] / total if total else 0.0
        factors[user] = 2 ** (-(own + (whole - own) * part) / share)
    return factors


def check_starts(seed: int, weights: PriorityConfig) -> None:
    jobs = draw_jobs(seed)
    schedule = replay(scenario(jobs, weights))
    runs = [(int(s) // SECOND, int(e) // SECOND) for s, e in zip(schedule.start, schedule.end, strict=True)]
    period = weights.calculation_period
    for j, (now, _) in enumerate(runs):
        last = now // period * period
        past = [(start, min(end, now)) for start, end in runs]
        past = [(start, end) if start < now else (start, start) for start, end in past]
        usage = usage_at(last, jobs, past, weights)
        factors = fair_tree_of(usage)
        if not weights.fair_tree:
            before = usage_at(last, jobs, past, weights, new=False)
            factors = classic_of(usage, before)
        waiting = [k for k, job in enumerate(jobs) if job["submit"] <= now <= runs[k][0]]
        ranks = {}
        for k in waiting:
            job = jobs[k]
            age = min(1, max(last - job["submit"], 0) / weights.max_age)
            total = weights.age * age + weights.fairshare * factors[job["user_name"]]
            total += weights.job_size * 1.0 + weights.partition * (
                0.25 if job["partition_name"] == "p" else 1
            )
            total += weights.qos * (0.5 if job["qos_name"] == "normal" else 1)
            ranks[k] = (-max(int(total + 1e-9), 1), k)
        assert ranks[j] == min(ranks.values()), (seed, j, now)


AGE = PriorityConfig(age=1000, max_age=200, calculation_period=30)
FAIR = PriorityConfig(fairshare=10_000, age=5, max_age=100, calculation_period=30, half_life=120)
CLASSIC = replace(FAIR, fair_tree=False)
MIXED = PriorityConfig(
    age=100,
    max_age=300,
    fairshare=500,
    partition=80,
    qos=70,
    job_size=9,
    calculation_period=20,
    half_life=0,
)


@pytest.mark.parametrize("weights", [AGE, FAIR, CLASSIC, MIXED])
def test_every_start_is_of_the_highest_priority(weights: PriorityConfig) -> None:
    for seed in range(8):
        check_starts(seed, weights)


def test_a_priority_is_fixed_between_two_calculations() -> None:
    # at 100 job 2 is 60 s old and job 3, of the partition with the higher factor, is new: calculated at 90
    weights = PriorityConfig(age=100, max_age=100, partition=40, calculation_period=90)
    common = {"user_name": "ann", "account": "physics", "run": 100}
    jobs = [
        {**common, "submit": 0, "partition_name": "p"},
        {**common, "submit": 40, "partition_name": "p"},
        {**common, "submit": 50, "partition_name": "q"},
    ]
    # job 2: 50 + 10, job 3: 40 + 40; at 190, calculated at 180, nobody else waits
    assert (replay(scenario(jobs, weights)).start // SECOND).tolist() == [0, 200, 100]
    slow = PriorityConfig(age=100, max_age=100, partition=5, calculation_period=90)
    assert (replay(scenario(jobs, slow)).start // SECOND).tolist() == [0, 100, 200]


def test_each_sequence_begins_without_usage() -> None:
    prepared = scenario(draw_jobs(3), FAIR)
    again = [replay_sequences(prepared, np.array([0, 12, 0]), 12)[k].start.tolist() for k in (0, 2)]
    assert again[0] == again[1]


def test_the_order_needs_a_cluster() -> None:
    rule = LOAD_RULES[DEFAULT_RULE["standard"]]
    row = dict.fromkeys(SWF_COLUMNS, -1) | {"job_id": 1, "submit": 0, "run": 5, "req_procs": 1, "req_time": 9}
    jobs = select(Workload("log", pd.DataFrame([row]), {"nodes": 2}), rule, rebase=False)
    with pytest.raises(BridgeError, match="has the weights of a cluster"):
        prepare(jobs, protocol("standard"), Policy("multifactor", "easy"), "requested", rule)
