"""Multifactor priorities and fair share, compiled: usage by association, ranks, sums of factors.

`usage`, `fs`, `above` [·]: of an association what it used, its factor, and the one above it, -1: none.
`terms` [·, ·] of an entry: what of its priority does not change. `factors`: by the
names below. `run_factors`: of a running job, by how much its usage counts.
"""

import math

from bridge.base.jit import hot, inline, inner, kernel
from bridge.scheduler.slurm.arrays import (
    ASSOC_ROW,
    COUNTS_MINUTES,
    CPUS_ASKED,
    ELIGIBLE,
    IS_FRESH,
    IS_FROZEN,
    IS_RUNNING,
    IS_STALE,
    IS_WAITING,
    JOB,
    LAST_PERIOD,
    LIMIT,
    N_ENTRIES,
    NICE,
    PLANNED,
    RUN_ASSOC,
    RUN_ID,
    RUN_KEY,
    RUN_TASK,
    RUNS_BY_ID,
    SINCE,
    SITE_FACTOR,
    SlurmArrays,
)
from bridge.scheduler.slurm.choice_kernels import MIN_NODES
from bridge.scheduler.slurm.fair_tree import ShareArrays, rank_tree
from bridge.scheduler.slurm.limit_kernels import CORES_USED

#: `factors`: weights of the age and of fair share, the age that counts most, the half life, and one half; the
#: weight of the size, how it counts, and CPUs of the site.
AGE, FAIR_SHARE, MAX_AGE, HALF_LIFE, HALF, SIZE, RELATIVE, FAVORS_SMALL, ALL_CPUS, FACTORS_SIZE = range(10)


def size_factor(
    relative: bool, small: bool, nodes: int, cpus: int, seconds: float, count: int, every: float
) -> float:
    """Return the size of a job as a part of a site's `count` nodes and `every` core.

    `relative`: to its limit of so many seconds; `small`: small jobs have the larger factor.
    """
    if relative:
        minutes = max(seconds / 60, 1.0)
        amount = max(nodes * every / count, float(cpus)) / minutes
        factor = min(amount / every, 1.0)
        return 1.0 - factor if small else factor
    if small:
        return ((count - nodes) / count + (every - cpus) / every) / 2
    return (nodes / count + cpus / every) / 2


_size_factor = inline(size_factor)


@inline
def _add(b: SlurmArrays, r: int, now: int) -> None:
    """Add what a running job used since it last counted."""
    elapsed = now - b.runs[r, SINCE]
    if elapsed <= 0:
        return
    life = b.factors[HALF_LIFE]
    decay = math.pow(b.factors[HALF], elapsed / life) if life > 0.0 else 1.0
    amount = elapsed * decay * b.run_amounts[r, CORES_USED] * b.run_factors[r]
    a = b.runs[r, RUN_ASSOC]
    while a >= 0:
        b.usage[a] += amount
        a = b.above[a]
    b.runs[r, SINCE] = now


@inline
def _rank(b: SlurmArrays, tree: ShareArrays) -> None:
    """Rank users by usage as it was in the last period, if nobody has yet."""
    if b.now[IS_STALE] == 0:
        return
    b.now[IS_STALE] = 0
    users = 0
    for k in range(b.which.shape[0]):
        tree.usage[k] = b.usage[b.which[k]]
        users += int(tree.is_user[k])
    if users > 0:
        rank_tree(tree, users)
        for k in range(b.which.shape[0]):
            b.fs[b.which[k]] = tree.fs[k]


@inline
def _priority(b: SlurmArrays, e: int, j: int, now: int, share: float) -> float:
    """Return the priority of an entry whose fair share is known."""
    total, eligible, most = 0.0, b.jobs[j, ELIGIBLE], b.factors[MAX_AGE]
    if b.factors[AGE] != 0.0 and eligible != 0 and now > eligible:
        total += b.factors[AGE] * min(1.0, (now - eligible) / most if most > 0.0 else 1.0)
    if b.factors[FAIR_SHARE] != 0.0:
        total += b.factors[FAIR_SHARE] * share
    if b.factors[SIZE] != 0.0:
        cpus = b.jobs[j, PLANNED] if b.jobs[j, PLANNED] != 0 else b.jobs[j, CPUS_ASKED]
        relative, small = b.factors[RELATIVE] != 0.0, b.factors[FAVORS_SMALL] != 0.0
        nodes, limit = b.need[e, MIN_NODES], b.entries[e, LIMIT]
        total += b.factors[SIZE] * _size_factor(
            relative, small, nodes, cpus, limit, b.site.shape[0], b.factors[ALL_CPUS]
        )
    for k in range(b.terms.shape[1]):
        total += b.terms[e, k]
    return float(max(int(total + b.jobs[j, SITE_FACTOR]) - b.jobs[j, NICE], 1))


@inner
def _order(b: SlurmArrays) -> None:
    """Leave in `by_id` the running jobs in the order of their ids."""
    count = 0
    for k in range(b.now[RUNS_BY_ID]):
        r = b.by_id[k]
        if b.runs[r, IS_RUNNING] == 0:
            continue
        n = count
        while n > 0 and _is_before(b, r, b.by_id[n - 1]):
            b.by_id[n] = b.by_id[n - 1]
            n -= 1
        b.by_id[n] = r
        count += 1
    b.now[RUNS_BY_ID] = count


@inline
def _is_before(b: SlurmArrays, r: int, other: int) -> bool:
    order = b.runs[r, RUN_ID] - b.runs[other, RUN_ID]
    if order == 0:
        order = b.runs[r, RUN_TASK] - b.runs[other, RUN_TASK]
    if order == 0:
        order = b.runs[r, RUN_KEY] - b.runs[other, RUN_KEY]
    return bool(order < 0)


@kernel
def decay_usage(b: SlurmArrays, decay: float) -> None:
    """Let usage count for less."""
    for a in range(b.usage.shape[0]):
        b.usage[a] *= decay


@inner
def run_period(b: SlurmArrays, tree: ShareArrays, now: int) -> None:
    """Let usage decay since the last period, add what running jobs used, compute all priorities."""
    life, elapsed = b.factors[HALF_LIFE], now - b.now[LAST_PERIOD] if b.now[LAST_PERIOD] != 0 else 0
    decay = math.pow(b.factors[HALF], elapsed / life) if life > 0.0 else 1.0
    b.now[LAST_PERIOD], b.now[IS_FRESH] = now, 1
    if b.rules[COUNTS_MINUTES] != 0:
        for t in range(b.seconds.shape[0]):
            for k in range(b.seconds.shape[1]):
                b.seconds[t, k] *= decay
    for a in range(b.usage.shape[0]):
        b.usage[a] *= decay
    _order(b)
    for k in range(b.now[RUNS_BY_ID]):
        if b.runs[b.by_id[k], IS_RUNNING] == 1:
            _add(b, b.by_id[k], now)
    b.now[IS_STALE] = 1
    for e in range(b.now[N_ENTRIES]):
        j = b.entries[e, JOB]
        if b.jobs[j, IS_WAITING] != 0 and b.jobs[j, IS_FROZEN] == 0:
            if b.factors[FAIR_SHARE] != 0.0:
                _rank(b, tree)
            b.priority[e] = _priority(b, e, j, now, b.fs[b.jobs[j, ASSOC_ROW]])


@kernel
def rank_now(b: SlurmArrays, tree: ShareArrays) -> None:
    """Rank users by usage as it was in the last period, if nobody has yet."""
    _rank(b, tree)


@kernel
def set_priority(b: SlurmArrays, e: int, now: int) -> None:
    """Compute the priority of an entry by the present factor of its association."""
    j = b.entries[e, JOB]
    b.priority[e] = _priority(b, e, j, now, b.fs[b.jobs[j, ASSOC_ROW]])


@kernel
def add_usage(b: SlurmArrays, r: int, now: int) -> None:
    """Add what a running job used since it last counted."""
    _add(b, r, now)


@hot
def end_usage(b: SlurmArrays, tree: ShareArrays, r: int, now: int) -> None:
    """Add what a job used that runs no more: ranks of the last period are made before."""
    if now > b.runs[r, SINCE]:
        _rank(b, tree)
        _add(b, r, now)
