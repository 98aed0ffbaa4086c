"""The backfill pass, compiled: jobs are planned in turn; it stops where the caller has to do something."""

from bridge.base.arrays import Ints
from bridge.base.jit import inline, inner, kernel
from bridge.scheduler.slurm import plan_kernels as plan
from bridge.scheduler.slurm.arrays import (
    ASSOC,
    AT,
    AT_BEGIN,
    AVAILABLE,
    BEFORE,
    BF_LICENSES,
    BF_LIMIT,
    BF_MAX_ASSOC,
    BF_MAX_PART,
    BF_MAX_USER,
    BF_MAX_USER_PART,
    BF_MIN_AGE,
    BF_MIN_PRIO,
    BF_PART_RESERVE,
    BF_STARTS,
    BY_BACKFILL,
    CHOSEN,
    COMPLETING,
    COUNTED,
    CPUS_ASKED,
    ELIGIBLE,
    END,
    ENTRY,
    EXCLUDED,
    FAR,
    FREE_NODES,
    GIVING,
    HAS_LICENSES,
    HET,
    IDLE,
    IS_UNIFORM,
    IS_WAITING,
    IS_WHOLE,
    JOB,
    LAST,
    LENGTH,
    MAX_START,
    MOST_FREE,
    N_STARTS,
    NAMES_ONE,
    NO_RESERVE,
    NODES,
    NOW,
    PART,
    PLANNED,
    PREEMPTS,
    RESERVATIONS,
    RESERVED_IN,
    RESOLUTION,
    RESULT,
    RUNNING_RESERVE,
    RUNS,
    SINGLE,
    SIZE_COUNTS,
    SPAN,
    STARTS_THEN,
    TAKEN,
    TASK,
    TRY,
    UP,
    USER,
    VERSION,
    VERSION_THEN,
    SlurmArrays,
)
from bridge.scheduler.slurm.choice_kernels import CPUS, FREE_CPUS, JOBS, MAX_NODES, MIN_NODES, WHOLE
from bridge.scheduler.slurm.limit_kernels import (
    after_nodes,
    after_whole_nodes,
    before_nodes,
    has_after,
    keep_packed,
    settle_weights,
)
from bridge.scheduler.slurm.main_kernels import has_licenses, note_change
from bridge.scheduler.slurm.node_words import count, count_both, meets, ones, put
from bridge.scheduler.slurm.start_kernels import (
    LIMITED,
    PREEMPTION,
    STARTED,
    order_runs,
    start_job,
    try_to_start,
)

#: What the caller does: nothing, all are planned, or the pass is over; take note of a start; let others give
#: way to a job; look at one that has conditions; say with whom it is planned; plan its licences.
DONE, OVER, START, PREEMPT, ODD, SAY_WHO, LICENSED = range(7)
#: What the caller says: go on; the job has started; it was over a limit; it did not start; it is planned
#: again, from another instant on; its licences are free then.
GO_ON, HAS_STARTED, IS_LIMITED, HAS_NOT_STARTED, AGAIN, RESERVES = range(6)
#: What came of a job: nothing; it is planned.
NOTHING, IS_PLANNED = range(2)


@inner
def _occupy(b: SlurmArrays, r: int) -> None:
    """Take the nodes of a running job out of the map until its limit."""
    begin, resolution = b.times[0, 0], b.rules[RESOLUTION]
    end = max(b.runs[r, END] // resolution * resolution, begin + resolution)
    plan.reserve(b.times, b.free, b.sizes, begin, end, b.run_nodes[r])
    b.own[plan.IS_COUNTED] = 0


@inner
def begin(b: SlurmArrays, now: int, length: int) -> None:
    """Begin a pass: in its map of time all nodes are free, unless running jobs count."""
    b.now[STARTS_THEN], b.now[VERSION_THEN], b.now[BF_STARTS] = b.now[N_STARTS], b.now[VERSION], 0
    keep_packed(b, AT_BEGIN)
    order_runs(b)
    b.now[NOW], b.now[LENGTH], b.now[AT], b.now[ENTRY], b.now[SINGLE] = now, length, 0, -1, 0
    b.now[GIVING] = 0
    for w in range(b.masks.shape[1]):
        b.masks[BEFORE, w] = b.masks[COMPLETING, w]
    resolution = b.rules[RESOLUTION]
    b.times[0, 0] = now // resolution * resolution
    b.times[0, 1] = (now + b.rules[SPAN]) // resolution * resolution
    b.free[0, :] = 0
    for n in range(b.site.shape[0]):
        put(b.free[0], n)
    b.sizes[:] = 1
    b.own[:] = 0
    b.own[plan.HORIZON] = FAR
    plan.note_free_nodes(b)
    for p in range(b.parts.shape[0]):
        b.parts[p, COUNTED] = b.parts[p, RESERVED_IN] = 0
    if b.rules[BF_MAX_USER] != 0 or b.rules[BF_MAX_ASSOC] != 0 or b.rules[BF_MAX_USER_PART] != 0:
        b.user_counts[:] = 0
        b.assoc_counts[:] = 0
        b.both_counts[:, :] = 0
    if b.rules[RUNNING_RESERVE] != 0:
        for k in range(b.now[RUNS]):
            if b.runs[b.by_end[k], IS_WHOLE] != 0:
                _occupy(b, b.by_end[k])


@kernel
def begin_backfill(b: SlurmArrays, now: int, length: int) -> None:
    """Begin a pass: in its map of time all nodes are free, unless running jobs count."""
    begin(b, now, length)


@inline
def _has_nodes(b: SlurmArrays, e: int) -> bool:
    """Tell whether enough nodes may be left for a job from now on, by what the map has so far."""
    nodes = b.masks[IDLE if b.need[e, WHOLE] != 0 else FREE_NODES]
    if b.need[e, MIN_NODES] > count_both(nodes, b.part_nodes[b.entries[e, PART]]):
        return False
    there = b.masks[TRY]
    for w in range(there.shape[0]):
        there[w] = nodes[w] & b.masks[UP, w] & ~b.masks[COMPLETING, w]
    if _are_free(b, e, there, 0):
        return True
    plan.change_by(b.own, b.times[0, 1])  # then there may be more
    return False


@inner
def _are_free(b: SlurmArrays, e: int, nodes: Ints, first: int) -> bool:
    """Tell whether enough of some nodes are free for a job from a record of the map on, or from now on."""
    part, excluded, there = b.entries[e, PART], b.entries[e, EXCLUDED], 0
    end = max(b.times[first, 0], b.now[NOW]) + b.entries[e, BF_LIMIT]
    for w in range(nodes.shape[0]):
        word, k = nodes[w] & b.part_nodes[part, w] & ~b.sets[excluded, w], first
        while k < b.sizes[plan.RECORDS] and b.times[k, 0] <= end:
            word &= b.free[k, w]
            k += 1
        there += ones(word)
    return bool(there >= b.need[e, MIN_NODES])


@inline
def _count_free(b: SlurmArrays) -> None:
    """Count how many nodes of each partition are free at once in the map, at most."""
    if b.own[plan.IS_COUNTED] != 0:
        return
    b.own[plan.IS_COUNTED] = 1
    for p in range(b.parts.shape[0]):
        most = 0
        for k in range(b.sizes[plan.RECORDS]):
            most = max(most, count_both(b.free[k], b.part_nodes[p]))
        b.parts[p, MOST_FREE] = most


@inline
def _is_never_free(b: SlurmArrays, e: int) -> bool:
    """Tell whether the map never has enough nodes for a job, whose plan then comes to nothing."""
    _count_free(b)
    return bool(b.need[e, MIN_NODES] > b.parts[b.entries[e, PART], MOST_FREE])


@inline
def _may_be_planned(b: SlurmArrays, e: int) -> bool:
    """Tell whether the map has enough nodes for a job from now on, or from one of its records on."""
    if b.now[RESERVATIONS] > 0:
        return True
    if _is_never_free(b, e):
        return False
    for k in range(b.sizes[plan.RECORDS]):
        if _are_free(b, e, b.masks[UP], k):
            return True
    plan.change_by(b.own, b.times[0, 1])  # then there may be more
    return False


@inline
def _is_plan_read(b: SlurmArrays, e: int, j: int) -> bool:
    """Tell whether a job's size, or a limit, is read from its plan, and may not be what it is without one."""
    if b.need[e, WHOLE] != 0 and b.rules[IS_UNIFORM] != 0:
        least = b.need[e, MIN_NODES]
        is_asked = b.need[e, MAX_NODES] == least and b.jobs[j, CPUS_ASKED] == least * b.site[0, CPUS]
        if is_asked or b.jobs[j, PLANNED] != 0:
            return False
    return bool(b.rules[SIZE_COUNTS] != 0 or has_after(b, e))


@inline
def _counts(b: SlurmArrays, e: int) -> bool:
    """Tell whether a pass may start a job, or its plan is read afterwards."""
    j = b.entries[e, JOB]
    if b.jobs[j, TASK] >= 0 or b.jobs[j, HET] != 0:
        return True
    counts = _has_nodes(b, e) or (_is_plan_read(b, e, j) and _may_be_planned(b, e))
    return bool(counts and not before_nodes(b, e))


@inner
def find_last(b: SlurmArrays, first: int, n: int) -> None:
    """Leave in LAST where the jobs end that a pass may start, or whose plan is read afterwards.

    Those behind it would only be planned, and the map of time is gone after the pass. The map only loses
    nodes while a pass goes on: a job that has too few now may start no more.
    """
    if b.rules[PREEMPTS] != 0:
        b.now[LAST] = n
        return
    k = n
    while k > first and not _counts(b, b.turn[k - 1]):
        k -= 1
    b.now[LAST] = k if k > first else 0


@kernel
def set_last(b: SlurmArrays, first: int, n: int) -> None:
    """Leave in LAST where the jobs end at which a pass looks, see `find_last`."""
    find_last(b, first, n)


@inner
def marks_plans(b: SlurmArrays, n: int) -> bool:
    """Tell whether a pass plans two jobs, or one that would have idle nodes, of so many entries."""
    planned, usable, idle = 0, b.masks[TRY], b.masks[TAKEN]
    plan.leave_free(b, idle, JOBS)
    for k in range(n):
        e = b.turn[k]
        j, part, excluded = b.entries[e, JOB], b.entries[e, PART], b.entries[e, EXCLUDED]
        for w in range(usable.shape[0]):
            usable[w] = b.masks[UP, w] & b.part_nodes[part, w] & ~b.sets[excluded, w]
        if b.jobs[j, IS_WAITING] == 0 or b.need[e, MIN_NODES] > count(usable):
            continue
        if before_nodes(b, e) or after_nodes(b, e, j, b.scratch[1], False):
            continue
        planned += 1
        if planned > 1 or meets(idle, usable):
            return True
    return False


@kernel
def marks(b: SlurmArrays, n: int) -> bool:
    """Tell whether a pass plans two jobs, or one that would have idle nodes, of so many entries."""
    return marks_plans(b, n)


@inline
def _counts_in(b: SlurmArrays, e: int, j: int) -> bool:
    """Count a job in its user, partition and association; False if one had enough in this pass."""
    user, assoc, part = b.jobs[j, USER], b.jobs[j, ASSOC], b.entries[e, PART]
    if b.rules[BF_MAX_USER] != 0:
        if b.user_counts[user] >= b.rules[BF_MAX_USER]:
            return False
        b.user_counts[user] += 1
    if b.rules[BF_MAX_PART] != 0:
        if b.parts[part, COUNTED] >= b.rules[BF_MAX_PART]:
            return False
        b.parts[part, COUNTED] += 1
    if b.rules[BF_MAX_ASSOC] != 0:
        if b.assoc_counts[assoc] >= b.rules[BF_MAX_ASSOC]:
            return False
        b.assoc_counts[assoc] += 1
    if b.rules[BF_MAX_USER_PART] != 0:
        if b.both_counts[user, part] >= b.rules[BF_MAX_USER_PART]:
            return False
        b.both_counts[user, part] += 1
    return True


@inline
def _plans_licenses(b: SlurmArrays, j: int) -> bool:
    return bool(b.rules[BF_LICENSES] != 0 and b.jobs[j, HAS_LICENSES] != 0)


@inline
def _is_skipped(b: SlurmArrays, e: int, j: int) -> bool:
    """Tell whether a job is not planned, for a limit, the pass' own limits, or a licence."""
    if before_nodes(b, e) or not _counts_in(b, e, j):
        return True
    return b.rules[BF_LICENSES] == 0 and not has_licenses(b, j)


@inline
def _is_odd(b: SlurmArrays, j: int) -> bool:
    """Tell whether the caller looks at a job by itself."""
    has_conditions = b.jobs[j, TASK] >= 0 or b.jobs[j, HET] != 0 or b.jobs[j, NAMES_ONE] != 0
    return has_conditions or _plans_licenses(b, j)


@inline
def _is_simple_beyond(b: SlurmArrays, e: int, j: int) -> bool:
    """Tell whether a simple job is beyond a limit on the nodes that are chosen for it."""
    if not has_after(b, e):
        return False
    taken, chosen, cpus = b.scratch[2], b.masks[CHOSEN], b.site[0, CPUS]
    for n in range(taken.shape[0]):
        taken[n] = cpus * ((chosen[n >> 5] >> (n & 31)) & 1)
    return after_whole_nodes(b, e, j, taken)


@inline
def _may_reserve(b: SlurmArrays, e: int, j: int) -> bool:
    """Tell whether a job's plan is reserved, by the rules besides the plan."""
    if b.own[plan.IS_SIMPLE] != 0:
        if _is_simple_beyond(b, e, j):
            return False
    elif after_nodes(b, e, j, b.scratch[2], True):
        return False
    if b.jobs[j, NO_RESERVE] != 0:
        return False
    part = b.entries[e, PART]
    if b.rules[BF_PART_RESERVE] != 0:
        if b.parts[part, RESERVED_IN] >= b.rules[BF_PART_RESERVE]:
            return False
        b.parts[part, RESERVED_IN] += 1
    if b.rules[BF_MIN_PRIO] != 0 and b.priority[e] < b.rules[BF_MIN_PRIO]:
        return False
    return not (b.rules[BF_MIN_AGE] != 0 and b.now[NOW] - b.jobs[j, ELIGIBLE] < b.rules[BF_MIN_AGE])


@inline
def _begin_plan(b: SlurmArrays, e: int) -> None:
    own = b.own
    own[plan.FROM], own[plan.LASTS] = b.now[NOW], b.entries[e, BF_LIMIT]
    own[plan.PLANNED_AT], own[plan.TOTAL], own[plan.RESUMES] = -1, 0, 0
    plan.note_request(b, e)


@inline
def _note_plan(b: SlurmArrays, j: int) -> None:
    """Take note of the CPUs of a job's plan."""
    total = b.own[plan.TOTAL]
    if total != 0 and total != b.jobs[j, PLANNED]:
        b.jobs[j, PLANNED] = total
        b.now[VERSION] += 1
        note_change(b, j)


@inline
def _try(b: SlurmArrays, e: int) -> int:
    """Try to start a job that may start now by its plan."""
    if b.jobs[b.entries[e, JOB], HET] != 0:
        return -1
    nodes = b.masks[AVAILABLE]
    for w in range(nodes.shape[0]):
        nodes[w] = b.masks[NODES, w] & ~b.masks[COMPLETING, w]
    return try_to_start(b, e, nodes)


@inner
def _plan(b: SlurmArrays, e: int) -> int:
    """Plan a job; return what the caller has to do, DONE: nothing."""
    j, own = b.entries[e, JOB], b.own
    while True:
        came = plan.plan_job(b, e)
        _note_plan(b, j)
        if came == plan.START:
            result = _try(b, e)
            settle_weights(b)
            if result == STARTED:
                start_job(b, e, BY_BACKFILL)
                return START
            if result == PREEMPTION:
                return PREEMPT
            if result == LIMITED:
                return DONE
            own[plan.RESUMES] = 1
            continue
        if came == plan.TESTED or came == plan.FULL:
            return OVER
        return LICENSED if came == plan.RESERVE else DONE


@inline
def _reserve(b: SlurmArrays, e: int) -> None:
    if _may_reserve(b, e, b.entries[e, JOB]):
        own = b.own
        plan.reserve(b.times, b.free, b.sizes, own[plan.LOW], own[plan.HIGH], b.masks[CHOSEN])
        own[plan.IS_COUNTED] = 0
        b.now[RESULT] = IS_PLANNED


@inner
def _next(b: SlurmArrays) -> int:
    """Take the next job that is planned; return what the caller has to do first, DONE: nothing."""
    now = b.now
    while now[AT] < now[LAST]:
        find_last(b, now[AT], now[LAST])
        if now[AT] >= now[LAST]:
            break
        e = b.turn[now[AT]]
        j = b.entries[e, JOB]
        now[AT] += 1
        if _is_odd(b, j):
            now[ENTRY] = e
            return ODD
        if b.jobs[j, IS_WAITING] != 0 and not _is_skipped(b, e, j) and not _is_never_free(b, e):
            now[ENTRY] = e
            _begin_plan(b, e)
            return SAY_WHO if b.rules[PREEMPTS] != 0 else DONE
    now[ENTRY] = -1
    return DONE


@kernel
def begin_single(b: SlurmArrays, e: int) -> bool:
    """Begin to plan one job by itself; False: it is not planned."""
    b.now[SINGLE], b.now[ENTRY], b.now[RESULT] = 1, e, NOTHING
    if _is_skipped(b, e, b.entries[e, JOB]):
        return False
    _begin_plan(b, e)
    return True


@kernel
def may_start(b: SlurmArrays, e: int) -> bool:
    """Begin the plan of a job that has enough free nodes, no limit against it, and licences; else False."""
    is_whole, nodes = b.need[e, WHOLE] != 0, b.masks[TRY]
    plan.leave_free(b, nodes, JOBS if is_whole else FREE_CPUS)
    for w in range(nodes.shape[0]):
        nodes[w] &= b.masks[UP, w] & ~b.masks[COMPLETING, w]
    if b.need[e, MIN_NODES] > count_both(nodes, b.part_nodes[b.entries[e, PART]]) or before_nodes(b, e):
        return False
    if not has_licenses(b, b.entries[e, JOB]):
        return False
    _begin_plan(b, e)
    return True


@kernel
def would_start(b: SlurmArrays, e: int) -> bool:
    """Tell whether a job whose plan has begun may start now by it."""
    return bool(plan.plan_job(b, e) == plan.START)


@inner
def _take_start(b: SlurmArrays) -> bool:
    """Take note of the job that has started; tell whether the pass starts no more."""
    now = b.now
    now[BF_STARTS] += 1
    now[ENTRY] = -1
    r = b.by_end[now[RUNS] - 1]
    order_runs(b)
    if b.runs[r, IS_WHOLE] != 0:
        _occupy(b, r)
    plan.note_free_nodes(b)
    if now[SINGLE] == 0:  # fewer nodes are left
        find_last(b, now[AT], now[LAST])
    return bool(b.rules[MAX_START] != 0 and now[BF_STARTS] >= b.rules[MAX_START])


@inner
def go_on(b: SlurmArrays, answer: int) -> int:
    """Go on with the pass, or with one job by itself, until the caller has to do something."""
    now = b.now
    if answer == HAS_STARTED and _take_start(b):
        return OVER
    if answer == AGAIN:
        start = b.own[plan.FROM]
        _begin_plan(b, now[ENTRY])
        b.own[plan.FROM] = start
    elif answer == RESERVES:
        _reserve(b, now[ENTRY])
    elif answer == HAS_NOT_STARTED:
        b.own[plan.RESUMES] = 1
    if answer in (IS_LIMITED, RESERVES):
        now[ENTRY] = -1
    while True:
        if now[ENTRY] < 0:
            if now[SINGLE] != 0:
                return DONE
            came = _next(b)
            if came != DONE or now[ENTRY] < 0:
                return came
        e = now[ENTRY]
        came = _plan(b, e)
        if came == START and now[SINGLE] == 0 and b.rules[PREEMPTS] == 0 and b.rules[BF_LICENSES] == 0:
            if _take_start(b):
                return OVER
            continue
        if came == LICENSED:
            if _plans_licenses(b, b.entries[e, JOB]):
                return LICENSED
            _reserve(b, e)
        elif came != DONE:
            return came
        now[ENTRY] = -1


@kernel
def walk(b: SlurmArrays, answer: int) -> int:
    """Go on with the pass, or with one job by itself, until the caller has to do something."""
    return go_on(b, answer)
