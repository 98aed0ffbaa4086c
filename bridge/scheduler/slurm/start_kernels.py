"""An attempt to start a job, compiled: reservations, nodes, limits; and what a start and an end count."""

from bridge.base.arrays import Ints
from bridge.base.jit import inline, inner, kernel
from bridge.scheduler.slurm.arrays import (
    ASSOC_ROW,
    BEGAN,
    BY_NEITHER,
    CLASS,
    CLOSES,
    COMPLETING,
    COULD,
    COUNTED_IN,
    COUNTS_MINUTES,
    DUE,
    END,
    ENDED_NEWS,
    EXCLUDED,
    FAR,
    FIRST_ROW,
    FIRST_SET,
    FITS,
    FITS_NOT,
    FREED_NEWS,
    HAS_GONE,
    ID,
    IS_FLEX,
    IS_MAINT,
    IS_RESERVED,
    IS_RUNNING,
    IS_WAITING,
    IS_WHOLE,
    JOB,
    JOB_KEY,
    KEEPS_USAGE,
    LAST_ROW,
    LAST_SET,
    LASTS_LONG,
    LIMIT,
    LIMITS_DUE,
    N_ENDS,
    N_FREE_RUNS,
    N_NEWS,
    N_ORDERINGS,
    N_PAUSED,
    N_RUNNING,
    N_STARTS,
    N_WAITING,
    NEWS_BY,
    NEWS_ENTRY,
    NEWS_KIND,
    NEWS_RUN,
    NEWS_TIME,
    NOW,
    OPENS,
    OVER_TIME,
    OWN,
    PART,
    PAUSED,
    POOL,
    PREEMPTING_UNTIL,
    PREEMPTS,
    PREFERRING,
    REQUIRED,
    RESERVATIONS,
    RESV_OVER_RUN,
    RUN_ASSOC,
    RUN_CLASS,
    RUN_ID,
    RUN_KEY,
    RUN_LIMIT,
    RUN_TASK,
    RUNS,
    RUNS_BY_ID,
    SERIAL,
    SINCE,
    STARTED_NEWS,
    SUBMIT_CLASS,
    TAKEN,
    TASK,
    TRY,
    UNKNOWN,
    VERSION,
    SlurmArrays,
)
from bridge.scheduler.slurm.choice_kernels import (
    FREE_CPUS,
    FREE_GRES,
    FREE_MEMORY,
    JOBS,
    MIN_NODES,
    WHOLE,
    choose_nodes,
)
from bridge.scheduler.slurm.fair_tree import ShareArrays
from bridge.scheduler.slurm.limit_kernels import (
    FIRST_TALLY,
    LAST_TALLY,
    after_nodes,
    count_job,
    count_submitted,
    is_beyond_anyhow,
    memory_on,
    prefer_own_nodes,
    settle_weights,
    take_amounts,
)
from bridge.scheduler.slurm.node_words import count, has, meets, put
from bridge.scheduler.slurm.usage_kernels import end_usage

#: What an attempt to start a job comes to; PREEMPTION: others may have to give way.
STARTED, BUSY, LIMITED, RESERVED, IMPOSSIBLE, PREEMPTION = range(6)
#: Nodes outside a flexible reservation are so much less wanted.
_OUTSIDE = 1 << 40


@inline
def takes_nodes(b: SlurmArrays, v: int, own: int) -> bool:
    """Tell whether an advance reservation takes nodes from a job with one of its own (-1: without)."""
    return v != own and not (own >= 0 and b.booked[own, IS_MAINT] != 0 and b.booked[v, IS_MAINT] != 0)


@inline
def leave_booked(b: SlurmArrays, own: int, start: int, end: int, nodes: Ints) -> bool:
    """Take away nodes that reservations have in [start, end); tell whether there were some."""
    is_less = False
    for v in range(b.now[RESERVATIONS]):
        if not takes_nodes(b, v, own) or b.booked[v, CLOSES] <= start or b.booked[v, OPENS] >= end:
            continue
        if meets(b.booked_nodes[v], nodes):
            is_less = True
            for w in range(nodes.shape[0]):
                nodes[w] &= ~b.booked_nodes[v, w]
    return is_less


@inline
def leave_own(b: SlurmArrays, own: int, nodes: Ints) -> None:
    """Leave the nodes of a job's own reservation, if it may not use others."""
    if own >= 0 and b.booked[own, IS_FLEX] == 0:
        for w in range(nodes.shape[0]):
            nodes[w] &= b.booked_nodes[own, w]


@inner
def choose_by_alternatives(b: SlurmArrays, e: int, book: Ints, weights: Ints, nodes: Ints) -> bool:
    """Choose nodes for a job by the first of its sets that fits; ``scratch[1]`` holds its CPUs on each."""
    there = b.masks[TAKEN]
    for a in range(b.entries[e, FIRST_SET], b.entries[e, LAST_SET]):
        for w in range(nodes.shape[0]):
            there[w] = nodes[w] & b.sets[a, w]
        if count(there) < b.need[e, MIN_NODES]:
            continue
        required = b.sets[b.entries[e, REQUIRED]]
        if choose_nodes(book, b.site, weights, b.need[e], there, required, b.scratch, b.room):
            return True
    return False


@inline
def _prefer_inside(b: SlurmArrays, own: int) -> None:
    """Leave in `inside` the weights with which a job tries the nodes of its flexible reservation first."""
    for n in range(b.weights.shape[0]):
        b.inside[n] = b.weights[n] + (0 if has(b.booked_nodes[own], n) else _OUTSIDE)


@inner
def find_nodes(b: SlurmArrays, e: int, nodes: Ints) -> bool:
    """Choose nodes for a job among some: ``scratch[1]``; ``masks[TRY]`` are those that it may use."""
    j = b.entries[e, JOB]
    own, now = b.jobs[j, OWN], b.now[NOW]
    prefer_own_nodes(b, e)
    usable, part, excluded = b.masks[TRY], b.entries[e, PART], b.entries[e, EXCLUDED]
    for w in range(usable.shape[0]):
        usable[w] = nodes[w] & b.part_nodes[part, w] & ~b.sets[excluded, w]
    b.now[IS_RESERVED] = 0
    if b.now[RESERVATIONS] > 0:
        leave_own(b, own, usable)
        b.now[IS_RESERVED] = int(leave_booked(b, own, now, now + b.entries[e, LIMIT], usable))
    if own >= 0 and b.booked[own, IS_FLEX] != 0:
        _prefer_inside(b, own)
        return choose_by_alternatives(b, e, b.book, b.inside, usable)
    return choose_by_alternatives(b, e, b.book, b.weights, usable)


@inline
def wants_preemption(b: SlurmArrays, e: int) -> bool:
    """Tell whether others may have to give way to a job that found no nodes."""
    return bool(b.rules[PREEMPTS] != 0 and b.jobs[b.entries[e, JOB], PREEMPTING_UNTIL] < b.now[NOW])


@inner
def _could_ever(b: SlurmArrays, e: int) -> bool:
    """Tell whether a job fits the nodes of its partition when they are empty."""
    if b.entries[e, COULD] == UNKNOWN:
        nodes, part, excluded = b.masks[TRY], b.entries[e, PART], b.entries[e, EXCLUDED]
        for w in range(nodes.shape[0]):
            nodes[w] = b.part_nodes[part, w] & ~b.sets[excluded, w]
        fits = choose_by_alternatives(b, e, b.empty, b.weights, nodes)
        b.entries[e, COULD] = FITS if fits else FITS_NOT
    return bool(b.entries[e, COULD] == FITS)


@inner
def judge(b: SlurmArrays, e: int, is_placed: bool) -> int:
    """Return what an attempt comes to, once nodes are chosen, or there are none."""
    if after_nodes(b, e, b.entries[e, JOB], b.scratch[1], is_placed):
        return LIMITED
    if is_placed:
        return STARTED
    if b.now[IS_RESERVED] != 0 and not choose_by_alternatives(b, e, b.empty, b.weights, b.masks[TRY]):
        return RESERVED
    return BUSY if _could_ever(b, e) else IMPOSSIBLE


@inner
def try_to_start(b: SlurmArrays, e: int, nodes: Ints) -> int:
    """Try to start a job on some nodes: ``scratch[1]`` holds its CPUs on each if it starts.

    The caller settles the weights before they are read again.
    """
    if is_beyond_anyhow(b, e):
        b.now[PREFERRING] = e + 1
        return LIMITED
    is_placed = find_nodes(b, e, nodes)
    if not is_placed and wants_preemption(b, e):
        return PREEMPTION
    return judge(b, e, is_placed)


@kernel
def try_now(b: SlurmArrays, e: int, nodes: Ints) -> int:
    """Try to start a job on some nodes."""
    result = try_to_start(b, e, nodes)
    settle_weights(b)
    return result


@kernel
def judge_now(b: SlurmArrays, e: int, is_placed: bool) -> int:
    """Return what an attempt comes to, once others give way."""
    return judge(b, e, is_placed)


@kernel
def could_ever(b: SlurmArrays, e: int) -> bool:
    """Tell whether a job fits the nodes of its partition when they are empty."""
    return _could_ever(b, e)


# --- starts and ends


@inline
def _use(b: SlurmArrays, r: int, sign: int, memory: bool) -> None:
    """Give a running job its resources (sign 1), or take them back (-1)."""
    for k in range(b.runs[r, FIRST_ROW], b.runs[r, LAST_ROW]):
        n = b.pool[k, 0]
        b.book[n, FREE_CPUS] -= sign * b.pool[k, 1]
        if memory:
            b.book[n, FREE_MEMORY] -= sign * b.pool[k, 2]
        b.book[n, JOBS] += sign
        for g in range(b.run_gres.shape[1]):
            b.book[n, FREE_GRES + g] -= sign * b.run_gres[r, g]


@inline
def _note(b: SlurmArrays, kind: int, e: int, r: int, by: int) -> None:
    """Take note of what happened, for Python."""
    k = b.now[N_NEWS]
    b.news[k, NEWS_KIND], b.news[k, NEWS_ENTRY], b.news[k, NEWS_RUN] = kind, e, r
    b.news[k, NEWS_TIME], b.news[k, NEWS_BY] = b.now[NOW], by
    b.now[N_NEWS] = k + 1


@inline
def _count_minutes(b: SlurmArrays, r: int, sign: int, lasted: int) -> None:
    """Count what a running job may use until its limit (sign 1), or no more, but what it used (-1)."""
    c = b.runs[r, RUN_CLASS]
    for m in range(b.classes[c, FIRST_TALLY], b.classes[c, LAST_TALLY]):
        t = b.members[m]
        for k in range(b.run_amounts.shape[1]):
            b.reserved[t, k] += sign * b.run_amounts[r, k] * b.runs[r, LASTS_LONG]
            b.seconds[t, k] += b.run_amounts[r, k] * lasted


@inline
def _place(b: SlurmArrays, e: int, r: int) -> None:
    """Give a job that starts its nodes, with the CPUs of ``scratch[1]``, and what it uses on them."""
    j, taken, nodes = b.entries[e, JOB], b.scratch[1], b.run_nodes[r]
    take_amounts(b, e, j, taken)
    nodes[:] = 0
    first = at = b.now[POOL]
    for n in range(taken.shape[0]):
        if taken[n] > 0:
            put(nodes, n)
            b.pool[at, 0], b.pool[at, 1], b.pool[at, 2] = n, taken[n], memory_on(b, e, n, taken[n])
            at += 1
    b.now[POOL] = at
    b.runs[r, FIRST_ROW], b.runs[r, LAST_ROW] = first, at
    for k in range(b.amounts.shape[0]):
        b.run_amounts[r, k] = b.amounts[k]
    for g in range(b.run_gres.shape[1]):
        b.run_gres[r, g] = b.job_gres[j, g]
    for k in range(b.free_licenses.shape[0]):
        b.run_licenses[r, k] = b.licenses[j, k]
        b.free_licenses[k] -= b.licenses[j, k]
    _use(b, r, 1, True)
    count_job(b, b.entries[e, CLASS], b.run_amounts[r], b.pool, first, at, 1)


@inner
def start_job(b: SlurmArrays, e: int, by: int) -> int:
    """Let a job run from NOW on with the CPUs of ``scratch[1]``; return its row. There is room for it."""
    now, j, limit = b.now, b.entries[e, JOB], b.entries[e, RUN_LIMIT]
    now[N_FREE_RUNS] -= 1
    r, start, own = b.free_runs[now[N_FREE_RUNS]], now[NOW], b.jobs[j, OWN]
    _place(b, e, r)
    due = start + limit + b.rules[OVER_TIME]
    if own >= 0 and b.booked[own, IS_FLEX] == 0:
        due = min(due, b.booked[own, CLOSES] + b.rules[RESV_OVER_RUN])
    row = b.runs[r]
    row[END], row[SERIAL], row[IS_RUNNING], row[DUE] = start + limit, now[N_STARTS], 1, due
    row[RUN_CLASS], row[IS_WHOLE], row[COUNTED_IN] = (
        b.entries[e, CLASS],
        b.need[e, WHOLE],
        b.jobs[j, SUBMIT_CLASS],
    )
    row[SINCE], row[BEGAN], row[LASTS_LONG], row[PAUSED] = start, start, limit, 0
    row[RUN_ID], row[RUN_TASK], row[RUN_KEY] = b.jobs[j, ID], b.jobs[j, TASK], b.jobs[j, JOB_KEY]
    row[RUN_ASSOC], b.run_factors[r] = b.jobs[j, ASSOC_ROW], b.job_factors[j]
    if b.rules[COUNTS_MINUTES] != 0:
        _count_minutes(b, r, 1, 0)
    b.by_end[now[RUNS]] = b.by_id[now[RUNS_BY_ID]] = r
    now[RUNS] += 1
    now[RUNS_BY_ID] += 1
    b.jobs[j, IS_WAITING] = 0
    now[HAS_GONE] = 1
    now[N_WAITING] -= 1
    now[N_RUNNING] += 1
    now[N_STARTS] += 1
    now[VERSION] += 1
    now[LIMITS_DUE] = min(now[LIMITS_DUE], due)
    _note(b, STARTED_NEWS, e, r, by)
    return int(r)


@kernel
def start_now(b: SlurmArrays, e: int, by: int) -> None:
    """Let a job run from NOW on with the CPUs of ``scratch[1]``."""
    start_job(b, e, by)


@inner
def end_job(b: SlurmArrays, tree: ShareArrays, r: int) -> None:
    """Let a job run no more; its nodes complete until they are free."""
    now, time = b.now, b.now[NOW]
    now[VERSION] += 1
    now[N_ENDS] += 1
    if b.runs[r, IS_RUNNING] == 1:
        _use(b, r, -1, True)
    else:
        now[N_PAUSED] -= 1
    first, last = b.runs[r, FIRST_ROW], b.runs[r, LAST_ROW]
    count_job(b, b.runs[r, RUN_CLASS], b.run_amounts[r], b.pool, first, last, -1)
    for k in range(b.free_licenses.shape[0]):
        b.free_licenses[k] += b.run_licenses[r, k]
    if b.rules[KEEPS_USAGE] != 0:
        end_usage(b, tree, r, time)
    if b.rules[COUNTS_MINUTES] != 0:
        _count_minutes(b, r, -1, max(time - b.runs[r, BEGAN] - b.runs[r, PAUSED], 0))
    count_submitted(b, b.runs[r, COUNTED_IN], -1)
    for k in range(first, last):
        b.completing[b.pool[k, 0]] += 1
        put(b.masks[COMPLETING], b.pool[k, 0])
    b.runs[r, IS_RUNNING] = 0
    now[N_RUNNING] -= 1
    _note(b, ENDED_NEWS, -1, r, BY_NEITHER)


@kernel
def end_now(b: SlurmArrays, tree: ShareArrays, r: int) -> None:
    """Let a job run no more; its nodes complete until they are free."""
    end_job(b, tree, r)


@inline
def _free_node(b: SlurmArrays, n: int) -> None:
    b.completing[n] = max(b.completing[n] - 1, 0)
    if b.completing[n] == 0:
        b.masks[COMPLETING, n >> 5] &= ~(1 << (n & 31))


@inline
def free_job(b: SlurmArrays, r: int) -> None:
    """Let all nodes of a job that ended be free."""
    b.now[VERSION] += 1
    for k in range(b.runs[r, FIRST_ROW], b.runs[r, LAST_ROW]):
        _free_node(b, b.pool[k, 0])
    _note(b, FREED_NEWS, -1, r, BY_NEITHER)


@kernel
def free_nodes(b: SlurmArrays, nodes: Ints) -> None:
    """Let some nodes of jobs that ended be free."""
    b.now[VERSION] += 1
    for n in range(b.completing.shape[0]):
        if has(nodes, n):
            _free_node(b, n)


@kernel
def pause_job(b: SlurmArrays, r: int, sign: int) -> None:
    """Take from a job what a suspended one has not (-1), or give it back (1): all but its memory."""
    _use(b, r, sign, False)
    b.now[N_PAUSED] -= sign


@inner
def order_runs(b: SlurmArrays) -> None:
    """Leave in `by_end` the jobs that run, in the order of their ends; equal ones in that of their starts."""
    count = 0
    for k in range(b.now[RUNS]):
        r = b.by_end[k]
        if b.runs[r, IS_RUNNING] != 1:
            continue
        n, end, serial = count, b.runs[r, END], b.runs[r, SERIAL]
        while n > 0 and (
            b.ends[n - 1] > end or (b.ends[n - 1] == end and b.runs[b.by_end[n - 1], SERIAL] > serial)
        ):
            b.by_end[n], b.ends[n] = b.by_end[n - 1], b.ends[n - 1]
            n -= 1
        b.by_end[n], b.ends[n] = r, end
        count += 1
    b.now[RUNS] = count
    count = 0
    for k in range(b.now[RUNS_BY_ID]):
        if b.runs[b.by_id[k], IS_RUNNING] != 0:
            b.by_id[count] = b.by_id[k]
            count += 1
    b.now[RUNS_BY_ID] = count
    b.now[N_ORDERINGS] += 1


@kernel
def order_runs_now(b: SlurmArrays) -> None:
    """Leave in `by_end` the jobs that run, in the order of their ends; equal ones in that of their starts."""
    order_runs(b)


@inline
def ends_a_job(b: SlurmArrays, time: int) -> bool:
    """Tell whether a check of limits ends a job; if not, take note of before when none will."""
    if time < b.now[LIMITS_DUE]:
        return False
    due = FAR
    for k in range(b.now[RUNS_BY_ID]):
        r = b.by_id[k]
        if b.runs[r, IS_RUNNING] == 1:
            if b.runs[r, DUE] <= time:
                return True
            due = min(due, b.runs[r, DUE])
    b.now[LIMITS_DUE] = due
    return False
