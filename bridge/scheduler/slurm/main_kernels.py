"""The main pass' walk, compiled; it stops where the caller has to do something."""

from bridge.base.jit import hot, inline, inner, kernel
from bridge.scheduler.slurm.arrays import (
    AT,
    AVAILABLE,
    BF_LICENSES,
    BF_MIN_AGE,
    BF_MIN_PRIO,
    BLOCKED,
    BY_MAIN,
    CHANGED,
    COMPLETING,
    DEPTH,
    ELIGIBLE,
    ENTRY,
    FULL,
    HAS_BARRED,
    HAS_FAILED,
    HAS_LICENSES,
    HAS_SKIPPED,
    HET,
    IS_CHANGED,
    IS_FAILED,
    IS_WAITING,
    JOB,
    LENGTH,
    LIMIT_STOP,
    LOOKED,
    NAMES_ONE,
    NOW,
    OWN,
    PART,
    PARTITION_DEPTH,
    QUEUE_DEPTH,
    REQUIRED,
    RESERVATIONS,
    TASK,
    UP,
    SlurmArrays,
)
from bridge.scheduler.slurm.choice_kernels import MIN_NODES
from bridge.scheduler.slurm.limit_kernels import before_nodes, settle_weights
from bridge.scheduler.slurm.node_words import count, count_both
from bridge.scheduler.slurm.start_kernels import (
    BUSY,
    LIMITED,
    PREEMPTION,
    RESERVED,
    STARTED,
    start_job,
    try_to_start,
)

#: What the caller does: nothing, the pass is over, at the queue's end or before it; let others give way to a
#: job; say which task of an array is the next one; nothing, for nobody behind could start.
DONE, CUT, PREEMPT, NEXT_TASK, NONE_BEHIND = range(5)
#: Of an attempt: it was none, for a limit or its partition; the job lacks a licence.
_SKIPPED, _LICENSES = -1, -2


@hot
def begin_main(b: SlurmArrays, now: int, full: bool, length: int) -> None:
    """Begin a main pass of so many entries."""
    b.now[NOW], b.now[FULL], b.now[LENGTH], b.now[AT], b.now[DEPTH] = now, int(full), length, 0, 0
    b.now[ENTRY] = -1
    b.now[HAS_SKIPPED] = b.now[HAS_BARRED] = 0
    for w in range(b.masks.shape[1]):
        b.masks[AVAILABLE, w] = b.masks[UP, w] & ~b.masks[COMPLETING, w]
    for p in range(b.parts.shape[0]):
        b.parts[p, HAS_FAILED] = b.parts[p, LOOKED] = 0
    for v in range(b.now[RESERVATIONS]):
        b.booked[v, IS_FAILED] = 0


@inline
def _fail(b: SlurmArrays, p: int) -> None:
    b.parts[p, HAS_FAILED] = 1
    for w in range(b.masks.shape[1]):
        b.masks[AVAILABLE, w] &= ~b.part_nodes[p, w]


@inline
def note_change(b: SlurmArrays, j: int) -> None:
    """Take note for Python that the plan of a job has changed, or since when it is blocked."""
    if b.jobs[j, IS_CHANGED] == 0:
        b.jobs[j, IS_CHANGED] = 1
        b.changed[b.now[CHANGED]] = j
        b.now[CHANGED] += 1


@inline
def has_licenses(b: SlurmArrays, j: int) -> bool:
    """Tell whether the licences of a job are free."""
    if b.jobs[j, HAS_LICENSES] != 0:
        for k in range(b.free_licenses.shape[0]):
            if b.licenses[j, k] > b.free_licenses[k]:
                return False
    return True


@inline
def _block(b: SlurmArrays, e: int) -> None:
    """Close what a job waits for: its reservation, the nodes that it must have, or its partition."""
    j = b.entries[e, JOB]
    own, required = b.jobs[j, OWN], b.sets[b.entries[e, REQUIRED]]
    if own >= 0:
        b.booked[own, IS_FAILED] = 1
        for w in range(b.masks.shape[1]):
            b.masks[AVAILABLE, w] &= ~b.booked_nodes[own, w]
    elif count(required) > 0 and count(required) >= b.need[e, MIN_NODES]:
        for w in range(b.masks.shape[1]):
            b.masks[AVAILABLE, w] &= ~required[w]
    else:
        least = b.rules[BF_MIN_PRIO]  # 0: there is none; an order's scores may be negative
        is_low = least != 0 and b.priority[e] < least
        is_young = b.now[NOW] - b.jobs[j, ELIGIBLE] < b.rules[BF_MIN_AGE]
        if not is_low and not is_young:
            _fail(b, b.entries[e, PART])


@inner
def _try(b: SlurmArrays, e: int) -> int:
    """Try to start one job; return what came of it."""
    j, p = b.entries[e, JOB], b.entries[e, PART]
    if b.jobs[j, HET] != 0:
        _fail(b, p)
        return _SKIPPED
    if before_nodes(b, e):
        if b.rules[LIMIT_STOP] != 0:
            _fail(b, p)
        return _SKIPPED
    own, least = b.jobs[j, OWN], b.need[e, MIN_NODES]
    if own >= 0:
        if least > count(b.booked_nodes[own]):
            return _SKIPPED
    elif count_both(b.masks[AVAILABLE], b.part_nodes[p]) < least:
        _fail(b, p)
        return _SKIPPED
    if not has_licenses(b, j):
        return _LICENSES
    return try_to_start(b, e, b.masks[AVAILABLE])


@inline
def _is_blocked(b: SlurmArrays, e: int) -> bool:
    """Tell whether a job's partition, or its reservation, is closed in this pass."""
    j = b.entries[e, JOB]
    if b.jobs[j, NAMES_ONE] == 0:
        return bool(b.parts[b.entries[e, PART], HAS_FAILED] != 0)
    own = b.jobs[j, OWN]
    return bool(own >= 0 and b.booked[own, IS_FAILED] != 0)


@inner
def _take_note(b: SlurmArrays, e: int, result: int) -> None:
    """Take note of what came of an attempt that started nothing."""
    j = b.entries[e, JOB]
    if result == RESERVED:
        b.now[HAS_BARRED] = 1
    if result == BUSY and b.jobs[j, BLOCKED] == 0:
        b.jobs[j, BLOCKED] = b.now[NOW]
        note_change(b, j)
    if result == BUSY or (result == LIMITED and b.rules[LIMIT_STOP] != 0):
        _block(b, e)


@inner
def go_on(b: SlurmArrays, came: int) -> int:
    """Go on until the caller has to do something; `came`: what came of its attempt, -1: there was none."""
    stop = _go_on(b, came)
    settle_weights(b)
    return stop


@inline
def _go_on(b: SlurmArrays, came: int) -> int:
    now = b.now
    if came >= 0:
        _take_note(b, now[ENTRY], came)
        now[ENTRY] = -1
    while True:
        e = now[ENTRY]
        if e < 0:
            if now[AT] >= now[LENGTH]:
                return DONE
            e = b.turn[now[AT]]
            now[AT] += 1
            now[ENTRY] = e
            if b.jobs[b.entries[e, JOB], IS_WAITING] == 0:
                if b.jobs[b.entries[e, JOB], TASK] >= 0:
                    return NEXT_TASK
                now[ENTRY] = -1
                continue
        if now[FULL] == 0 and now[DEPTH] > b.rules[QUEUE_DEPTH]:
            return CUT
        now[DEPTH] += 1
        if b.rules[PARTITION_DEPTH] > 0:
            b.parts[b.entries[e, PART], LOOKED] += 1
            if b.parts[b.entries[e, PART], LOOKED] > b.rules[PARTITION_DEPTH]:
                now[ENTRY] = -1
                continue
        if _is_blocked(b, e):
            now[HAS_SKIPPED] = 1
            now[ENTRY] = -1
            continue
        result = _try(b, e)
        if result == PREEMPTION:
            return PREEMPT
        if result == STARTED:
            start_job(b, e, BY_MAIN)
            if b.jobs[b.entries[e, JOB], TASK] >= 0:
                return NEXT_TASK
        now[ENTRY] = -1
        if result == _LICENSES and b.rules[BF_LICENSES] != 0:
            return NONE_BEHIND
        if result >= 0:
            _take_note(b, e, result)


@kernel
def walk(b: SlurmArrays, came: int) -> int:
    """Go on until the caller has to do something, see `go_on`."""
    return go_on(b, came)


@kernel
def is_closed(b: SlurmArrays, e: int) -> bool:
    """Tell whether an earlier job of an entry's reservation or partition was blocked."""
    return _is_blocked(b, e)


@kernel
def is_over_limit(b: SlurmArrays, e: int) -> bool:
    """Tell whether a limit keeps a job from being tried at all."""
    return before_nodes(b, e)
