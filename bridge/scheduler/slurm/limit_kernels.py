"""Limits of QOS and associations, compiled: tests of a job against counters of what runs.

A job's partition, QOS and association are a class of limits. `classes` [·, 8]: where its rules in `limits`
begin and end, those before nodes are chosen and those after, its tallies in `members`, and those whose nodes
it prefers. `limits` [·, 4]: kind, tally, resource, amount. `counters` [·, 4] of a tally: jobs, jobs that wait
or run, nodes, and its row in `on_nodes` [·, N], jobs on each node (-1: no limit counts them); `used` [·, K];
`seconds` and `reserved` [·, K]: of ended jobs, and what running ones may use.
"""

from bridge.base.arrays import Ints
from bridge.base.jit import inline, inner, kernel
from bridge.scheduler.slurm.arrays import (
    BEYOND,
    CLASS,
    COUNTS_MINUTES,
    CPUS_ASKED,
    IS_PACKED,
    IS_UNIFORM,
    JOB,
    LIMIT,
    MEMORY_CORE,
    MEMORY_EACH,
    N_ENDS,
    N_PAUSED,
    PLANNED,
    PREEMPTS,
    PREFERRING,
    SAFE,
    SlurmArrays,
)
from bridge.scheduler.slurm.choice_kernels import (
    CPUS,
    MAX_NODES,
    MEMORY,
    MEMORY_CPU,
    MEMORY_NODE,
    MIN_NODES,
    UNCOUNTED,
    WHOLE,
)
from bridge.scheduler.slurm.node_words import put

(
    FIRST_BEFORE, LAST_BEFORE, FIRST_AFTER, LAST_AFTER, FIRST_TALLY, LAST_TALLY, FIRST_PACKED, LAST_PACKED,
    CLASS_SIZE,
) = range(9)  # fmt: skip
#: Kinds of rules: running jobs, a job's time, its most and least, amounts in use, nodes in use, minutes.
JOBS_RULE, WALL_RULE, MOST_RULE, LEAST_RULE, USE_RULE, NODES_RULE, MINUTES_RULE = range(7)
KIND, TALLY, RESOURCE, AMOUNT, RULE_SIZE = range(5)
TALLY_JOBS, TALLY_SUBMITTED, TALLY_NODES, NODE_ROW, TALLY_SIZE = range(5)
#: The first resources of limits.
CORES_USED, NODES_USED, MEMORY_USED = range(3)


@inline
def ask_amounts(b: SlurmArrays, e: int, j: int) -> None:
    """Set `amounts` to what a job asks for before nodes are chosen; its CPUs are those of its last plan."""
    amounts = b.amounts
    cpus = b.jobs[j, PLANNED] if b.jobs[j, PLANNED] != 0 else b.jobs[j, CPUS_ASKED]
    for k in range(amounts.shape[0]):
        amounts[k] = b.per_job[j, k]
    least = b.need[e, MIN_NODES]
    amounts[CORES_USED], amounts[NODES_USED] = cpus, least
    each = b.jobs[j, MEMORY_EACH]
    amounts[MEMORY_USED] = each * least if each > 0 else b.jobs[j, MEMORY_CORE] * cpus


@inline
def memory_on(b: SlurmArrays, e: int, n: int, cpus: int) -> int:
    """Return MiB of a job on a node."""
    whole = b.site[n, MEMORY]
    if b.need[e, MEMORY_NODE] > 0:
        return int(b.need[e, MEMORY_NODE])
    if b.need[e, MEMORY_CPU] > 0:
        return int(min(b.need[e, MEMORY_CPU] * cpus, whole))
    return int(whole if whole < UNCOUNTED else 0)


@inline
def take_amounts(b: SlurmArrays, e: int, j: int, taken: Ints) -> None:
    """Set `amounts` to what a job would use with its CPUs on each node."""
    ask_amounts(b, e, j)
    cpus, nodes, memory = 0, 0, 0
    for n in range(taken.shape[0]):
        if taken[n] > 0:
            nodes += 1
            cpus += taken[n]
            memory += memory_on(b, e, n, taken[n])
    amounts = b.amounts
    amounts[CORES_USED], amounts[NODES_USED], amounts[MEMORY_USED] = cpus, nodes, memory
    for k in range(amounts.shape[0]):
        if b.per_node[j, k] > 0:
            amounts[k] = b.per_node[j, k] * nodes


@inline
def _is_beyond(b: SlurmArrays, r: int, limit: int, taken: Ints, is_placed: bool) -> bool:
    kind, tally, k, most = b.limits[r, KIND], b.limits[r, TALLY], b.limits[r, RESOURCE], b.limits[r, AMOUNT]
    if kind == JOBS_RULE:
        return bool(b.counters[tally, TALLY_JOBS] >= most)
    if kind == WALL_RULE:
        return bool(limit > most)
    asks = b.amounts[k]
    if kind == MOST_RULE:
        return bool(asks > most)
    if kind == LEAST_RULE:
        return bool(asks < most)
    if kind == USE_RULE:
        return bool(asks != 0 and b.used[tally, k] + asks > most)
    if kind == NODES_RULE:
        nodes, row = b.counters[tally, TALLY_NODES], b.counters[tally, NODE_ROW]
        if is_placed:
            for n in range(taken.shape[0]):
                if taken[n] > 0 and b.on_nodes[row, n] == 0:
                    nodes += 1
        else:
            nodes += asks
        return bool(nodes > most)
    minutes = int(b.seconds[tally, k] // 60)
    if b.rules[SAFE] == 0:
        return bool(minutes >= most)
    minutes += int(b.reserved[tally, k] // 60) + limit * asks // 60
    return bool(minutes > most)


@inner
def first_beyond(b: SlurmArrays, first: int, last: int, limit: int, taken: Ints, is_placed: bool) -> int:
    """Return the first of some rules that a job with a time limit and `amounts` is beyond; -1: none."""
    for r in range(first, last):
        if _is_beyond(b, r, limit, taken, is_placed):
            return r
    return -1


@kernel
def own_beyond(b: SlurmArrays, first: int, last: int, limit: int) -> int:
    """Return the first of some rules of one job alone that it is beyond, with `amounts`; -1: none."""
    return first_beyond(b, first, last, limit, b.scratch[1], False)


@inline
def before_nodes(b: SlurmArrays, e: int) -> bool:
    """Tell whether a limit keeps a job from being tried at all."""
    c = b.entries[e, CLASS]
    first, last = b.classes[c, FIRST_BEFORE], b.classes[c, LAST_BEFORE]
    return last > first and first_beyond(b, first, last, b.entries[e, LIMIT], b.scratch[1], False) >= 0


@inline
def has_after(b: SlurmArrays, e: int) -> bool:
    """Tell whether a limit is tested after nodes are chosen."""
    c = b.entries[e, CLASS]
    return bool(b.classes[c, LAST_AFTER] > b.classes[c, FIRST_AFTER])


@inner
def after_nodes(b: SlurmArrays, e: int, j: int, taken: Ints, is_placed: bool) -> bool:
    """Tell whether a job would be beyond a limit on nodes that were chosen; else, by what it asks for."""
    if not has_after(b, e):
        return False
    c = b.entries[e, CLASS]
    if is_placed:
        take_amounts(b, e, j, taken)
    else:
        ask_amounts(b, e, j)
    first, last = b.classes[c, FIRST_AFTER], b.classes[c, LAST_AFTER]
    return first_beyond(b, first, last, b.entries[e, LIMIT], taken, is_placed) >= 0


@inline
def _take_whole(b: SlurmArrays, j: int, count: int) -> None:
    """Set `amounts` to what a job would use with whole nodes of as many CPUs, but for its memory."""
    amounts = b.amounts
    amounts[CORES_USED], amounts[NODES_USED] = count * b.site[0, CPUS], count
    for k in range(amounts.shape[0]):
        if b.per_node[j, k] > 0:
            amounts[k] = b.per_node[j, k] * count


@inner
def after_whole_nodes(b: SlurmArrays, e: int, j: int, taken: Ints) -> bool:
    """Tell what `after_nodes` tells of whole nodes with as many CPUs, of which a job gets its least."""
    c = b.entries[e, CLASS]
    first, last = b.classes[c, FIRST_AFTER], b.classes[c, LAST_AFTER]
    for r in range(first, last):
        if b.limits[r, RESOURCE] == MEMORY_USED:  # a node's memory is its own
            return after_nodes(b, e, j, taken, True)
    ask_amounts(b, e, j)
    _take_whole(b, j, b.need[e, MIN_NODES])
    return first_beyond(b, first, last, b.entries[e, LIMIT], taken, True) >= 0


@inner
def is_beyond_anyhow(b: SlurmArrays, e: int) -> bool:
    """Tell whether a job is beyond a limit on whatever nodes it is tried; False: it may depend on them.

    That is so of a job of so many whole nodes, of which all have as many CPUs. They are nodes on which no job
    runs; so, unless some are suspended, no limit counts them yet.
    """
    if b.entries[e, BEYOND] == b.now[N_ENDS] + 1 and b.now[N_PAUSED] == 0:
        return True
    j, least = b.entries[e, JOB], b.need[e, MIN_NODES]
    if not has_after(b, e) or b.need[e, WHOLE] == 0 or b.need[e, MAX_NODES] != least:
        return False
    if b.rules[IS_UNIFORM] == 0 or b.rules[PREEMPTS] != 0 or b.now[N_PAUSED] != 0:
        return False
    if not after_nodes(b, e, j, b.scratch[1], False):
        return False
    _take_whole(b, j, least)
    c = b.entries[e, CLASS]
    for r in range(b.classes[c, FIRST_AFTER], b.classes[c, LAST_AFTER]):
        if b.limits[r, RESOURCE] == MEMORY_USED:  # a node's memory is its own
            continue
        if _is_beyond(b, r, b.entries[e, LIMIT], b.scratch[1], False):
            if b.rules[COUNTS_MINUTES] == 0:
                b.entries[e, BEYOND] = b.now[N_ENDS] + 1
            return True
    return False


@inner
def prefer_own_nodes(b: SlurmArrays, e: int) -> None:
    """Let nodes on which limits of nodes make a job prefer to run have a lower weight than others."""
    c = b.entries[e, CLASS]
    first, last = b.classes[c, FIRST_PACKED], b.classes[c, LAST_PACKED]
    b.now[PREFERRING] = 0
    if first == last and b.now[IS_PACKED] == 0:
        return
    b.now[IS_PACKED] = int(last > first)
    b.packed[:] = 0
    for n in range(b.weights.shape[0]):
        b.weights[n] = b.usual[n]
        if last > first:
            is_own = False
            for m in range(first, last):
                is_own = is_own or b.on_nodes[b.counters[b.members[m], NODE_ROW], n] != 0
            if is_own:
                put(b.packed, n)
            else:
                b.weights[n] += 1


@inline
def settle_weights(b: SlurmArrays) -> None:
    """Let the weights in force be those of the last job that was tried."""
    if b.now[PREFERRING] != 0:
        prefer_own_nodes(b, b.now[PREFERRING] - 1)


@inline
def keep_packed(b: SlurmArrays, row: int) -> None:
    """Leave in a row of `packed_then` which nodes the weights in force prefer."""
    b.packed_then[row, 0] = b.now[IS_PACKED]
    for w in range(b.packed.shape[0]):
        b.packed_then[row, 1 + w] = b.packed[w] if b.now[IS_PACKED] != 0 else 0


@inline
def is_packed_as(b: SlurmArrays, row: int) -> bool:
    """Tell whether the weights in force prefer the nodes of a row of `packed_then`."""
    differs = b.packed_then[row, 0] ^ b.now[IS_PACKED]
    for w in range(b.packed.shape[0]):
        differs |= b.packed_then[row, 1 + w] ^ (b.packed[w] if b.now[IS_PACKED] != 0 else 0)
    return bool(differs == 0)


@inner
def count_job(b: SlurmArrays, c: int, amounts: Ints, rows: Ints, first: int, last: int, sign: int) -> None:
    """Count a job of a class, with amounts, on nodes of some rows, as running (sign 1), or no more (-1)."""
    for m in range(b.classes[c, FIRST_TALLY], b.classes[c, LAST_TALLY]):
        t = b.members[m]
        b.counters[t, TALLY_JOBS] += sign
        for k in range(amounts.shape[0]):
            b.used[t, k] += sign * amounts[k]
        row = b.counters[t, NODE_ROW]
        if row < 0:
            continue
        for r in range(first, last):
            n = rows[r, 0]
            before = b.on_nodes[row, n]
            b.on_nodes[row, n] += sign
            if before == 0:
                b.counters[t, TALLY_NODES] += 1
            elif before + sign == 0:
                b.counters[t, TALLY_NODES] -= 1


@inline
def count_submitted(b: SlurmArrays, c: int, sign: int) -> None:
    """Count a job of a class as one that waits or runs (sign 1), or no more (-1)."""
    for m in range(b.classes[c, FIRST_TALLY], b.classes[c, LAST_TALLY]):
        b.counters[b.members[m], TALLY_SUBMITTED] += sign
