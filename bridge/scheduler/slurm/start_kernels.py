"""An attempt to start a job, compiled: reservations, nodes, limits; and what a start and an end count."""

from bridge.base.arrays import Ints
from bridge.base.jit import inline, inner, kernel
from bridge.scheduler.slurm.arrays import (
    ASSOC_ROW,
    CLASS,
    CLOSES,
    COULD,
    END,
    EXCLUDED,
    FIRST_ROW,
    FIRST_SET,
    FITS,
    FITS_NOT,
    ID,
    IS_FLEX,
    IS_MAINT,
    IS_RESERVED,
    IS_RUNNING,
    IS_WHOLE,
    JOB,
    LAST_ROW,
    LAST_SET,
    LIMIT,
    NOW,
    OPENS,
    OWN,
    PART,
    PLACED,
    POOL,
    PREEMPTING_UNTIL,
    PREEMPTS,
    REQUIRED,
    RESERVATIONS,
    RUN_ASSOC,
    RUN_CLASS,
    RUN_ID,
    RUN_TASK,
    RUNS,
    RUNS_BY_ID,
    SERIAL,
    SINCE,
    TAKEN,
    TASK,
    TRY,
    UNKNOWN,
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
from bridge.scheduler.slurm.limit_kernels import (
    after_nodes,
    count_job,
    memory_on,
    prefer_own_nodes,
    take_amounts,
)
from bridge.scheduler.slurm.node_words import count, has, meets, put

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
    """Try to start a job on some nodes: ``scratch[1]`` holds its CPUs on each if it starts."""
    is_placed = find_nodes(b, e, nodes)
    if not is_placed and wants_preemption(b, e):
        return PREEMPTION
    return judge(b, e, is_placed)


@kernel
def try_now(b: SlurmArrays, e: int, nodes: Ints) -> int:
    """Try to start a job on some nodes."""
    return try_to_start(b, e, nodes)


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


@kernel
def start_job(b: SlurmArrays, e: int, r: int, serial: int, start: int, end: int) -> None:
    """Let a job run with the CPUs of ``scratch[1]``, in the row `r`; `placed` has its nodes then."""
    j, taken = b.entries[e, JOB], b.scratch[1]
    take_amounts(b, e, j, taken)
    nodes = b.run_nodes[r]
    nodes[:] = 0
    first = at = b.now[POOL]
    for n in range(taken.shape[0]):
        if taken[n] > 0:
            put(nodes, n)
            b.pool[at, 0], b.pool[at, 1], b.pool[at, 2] = n, taken[n], memory_on(b, e, n, taken[n])
            for k in range(3):
                b.placed[at - first, k] = b.pool[at, k]
            at += 1
    b.now[POOL], b.now[PLACED] = at, at - first
    b.runs[r, END], b.runs[r, SERIAL], b.runs[r, IS_RUNNING] = end, serial, 1
    b.runs[r, FIRST_ROW], b.runs[r, LAST_ROW] = first, at
    b.runs[r, RUN_CLASS], b.runs[r, IS_WHOLE] = b.entries[e, CLASS], b.need[e, WHOLE]
    for k in range(b.amounts.shape[0]):
        b.run_amounts[r, k] = b.amounts[k]
    _use(b, r, 1, True)
    count_job(b, b.entries[e, CLASS], b.run_amounts[r], b.pool, first, at, 1)
    b.runs[r, SINCE], b.runs[r, RUN_ID], b.runs[r, RUN_TASK] = start, b.jobs[j, ID], b.jobs[j, TASK]
    b.runs[r, RUN_ASSOC] = b.jobs[j, ASSOC_ROW]
    b.by_end[b.now[RUNS]] = b.by_id[b.now[RUNS_BY_ID]] = r
    b.now[RUNS] += 1
    b.now[RUNS_BY_ID] += 1


@kernel
def end_job(b: SlurmArrays, r: int, uses: bool) -> None:
    """Let a job run no more; `uses`: it was not suspended."""
    if uses:
        _use(b, r, -1, True)
    first, last = b.runs[r, FIRST_ROW], b.runs[r, LAST_ROW]
    count_job(b, b.runs[r, RUN_CLASS], b.run_amounts[r], b.pool, first, last, -1)


@kernel
def pause_job(b: SlurmArrays, r: int, sign: int) -> None:
    """Take from a job what a suspended one has not (-1), or give it back (1): all but its memory."""
    _use(b, r, sign, False)


@kernel
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
