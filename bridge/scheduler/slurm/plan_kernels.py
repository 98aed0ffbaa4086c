"""The backfill pass' plans, compiled: the map of time, the forecast by growing batches.

Sets are words, see `node_words`; arrays are those of `arrays`. The map has records: `times` [·, 2] begin and
end of each, `free` [·, W] the nodes that are free then.
"""

from bridge.base.arrays import Ints
from bridge.base.jit import inline, inner
from bridge.scheduler.slurm.arrays import (
    BEFORE,
    CHOSEN,
    CLOSES,
    EXCLUDED,
    FIRST_ROW,
    FIRST_SET,
    FREE_NODES,
    GIVING,
    IDLE,
    IS_PACKED,
    IS_UNIFORM,
    IS_WHOLE,
    JOB,
    LAST_ROW,
    LAST_SET,
    LATE,
    MAP_SIZE,
    MOST_TESTS,
    N_PAUSED,
    NODES,
    NOW,
    OWN,
    PART,
    REQUIRED,
    RESERVATIONS,
    RESOLUTION,
    RUNS,
    SCALE,
    SPAN,
    STAYING,
    THERE,
    UP,
    SlurmArrays,
)
from bridge.scheduler.slurm.arrays import PREEMPTS as HAS_PREEMPTION
from bridge.scheduler.slurm.choice_kernels import (
    CONTIGUOUS,
    CPUS,
    EACH,
    FREE_CPUS,
    FREE_GRES,
    FREE_MEMORY,
    GRES,
    JOBS,
    MAX_NODES,
    MEMORY_CPU,
    MEMORY_NODE,
    MIN_CPUS,
    MIN_NODES,
    MOST_CPUS,
    NODE_CPUS,
    SPREAD,
    WHOLE,
    choose_nodes,
    take_tightest,
)
from bridge.scheduler.slurm.node_words import copy, count, meets, put, within
from bridge.scheduler.slurm.start_kernels import leave_booked, leave_own

#: Windows are aligned to this, and begin so long, s; a batch ends at so many jobs.
WINDOW, MOST = 30, 200
#: Answers of a forecast that are no job: it fits now, it fits if others give way, it never fits.
FITS, PREEMPTS, NEVER = -1, -2, -3
#: What came of a plan: no time was there; it may start now; too many tests; beyond the window; the map is
#: full; it would overlap itself; reserve it.
NONE, START, TESTED, BEYOND, FULL, OVERLAPS, RESERVE = range(7)
#: `own`: what a pass keeps. HORIZON: before it a pass decides the same, if nothing but the time changes;
#: IS_COUNTED: the partitions' MOST_FREE are those of the map as it is; ARE_EQUAL: nodes differ in nothing but
#: whether a job has them whole; IS_SIMPLE: the job asks for so many whole ones.
(
    FROM, LATER, BEGIN, LASTS, TESTS, LOW, HIGH, TOTAL, PLANNED_AT, RESUMES, HORIZON, IS_COUNTED, ARE_EQUAL,
    IS_SIMPLE, OWN_SIZE,
) = range(15)  # fmt: skip
#: Places of the map's sizes: records that there are, and how many there have been.
RECORDS, EVER = range(2)


@inline
def _remove(b: SlurmArrays, r: int) -> None:
    """Take a running job off the nodes' book of the future."""
    book = b.future
    for k in range(b.runs[r, FIRST_ROW], b.runs[r, LAST_ROW]):
        n = b.pool[k, 0]
        book[n, FREE_CPUS] += b.pool[k, 1]
        book[n, FREE_MEMORY] += b.pool[k, 2]
        book[n, JOBS] -= 1
        for g in range(b.run_gres.shape[1]):
            book[n, FREE_GRES + g] += b.run_gres[r, g]


@inline
def _place(b: SlurmArrays, k: int) -> int:
    """Return the place in `by_end` of one of those that stay, in turn."""
    return int(b.staying[k] if b.now[GIVING] > 0 else k)


@inline
def leave_free(b: SlurmArrays, nodes: Ints, column: int) -> None:
    """Leave in a set the nodes without jobs, or, for another column, those with free CPUs."""
    nodes[:] = 0
    for n in range(b.book.shape[0]):
        value = b.book[n, column]
        if (value == 0) if column == JOBS else (value > 0):
            put(nodes, n)


@inner
def note_free_nodes(b: SlurmArrays) -> None:
    """Take note of which nodes are without jobs, and which have free CPUs."""
    leave_free(b, b.masks[IDLE], JOBS)
    leave_free(b, b.masks[FREE_NODES], FREE_CPUS)
    are_equal = b.rules[IS_UNIFORM] != 0 and b.rules[HAS_PREEMPTION] == 0 and b.now[N_PAUSED] == 0
    for k in range(b.now[RUNS]):
        are_equal = are_equal and b.runs[b.by_end[k], IS_WHOLE] != 0
    for n in range(b.usual.shape[0]):
        are_equal = are_equal and b.usual[n] == b.usual[0]
    b.own[ARE_EQUAL] = int(are_equal)


@inline
def note_request(b: SlurmArrays, e: int) -> None:
    """Take note of whether a job asks for so many whole nodes of equal ones, and for nothing else."""
    need = b.need[e]
    least, cpus = need[MIN_NODES], b.site[0, CPUS]
    is_simple = b.own[ARE_EQUAL] != 0 and need[WHOLE] != 0 and least > 0 and need[MAX_NODES] == least
    is_simple = is_simple and need[CONTIGUOUS] == 0 and need[SPREAD] == 0 and need[MOST_CPUS] < 0
    is_simple = is_simple and need[MEMORY_NODE] == 0 and need[MEMORY_CPU] == 0
    is_simple = is_simple and need[MIN_CPUS] <= least * cpus and max(need[NODE_CPUS], need[EACH]) <= cpus
    is_simple = is_simple and b.entries[e, LAST_SET] - b.entries[e, FIRST_SET] == 1
    is_simple = is_simple and count(b.sets[b.entries[e, REQUIRED]]) == 0
    for g in range(need.shape[0] - GRES):
        is_simple = is_simple and need[GRES + g] == 0
    b.own[IS_SIMPLE] = int(is_simple)


@inner
def _fits(b: SlurmArrays, e: int, book: Ints, admissible: Ints) -> bool:
    required = b.sets[b.entries[e, REQUIRED]]
    return choose_nodes(book, b.site, b.weights, b.need[e], admissible, required, b.scratch, b.room)


@inner
def _write_future(b: SlurmArrays) -> int:
    """Write the nodes' book of the future, without the jobs that give way; return 0: all others are on it."""
    for n in range(b.book.shape[0]):
        b.future[n, FREE_CPUS], b.future[n, FREE_MEMORY] = b.book[n, FREE_CPUS], b.book[n, FREE_MEMORY]
        b.future[n, JOBS] = b.book[n, JOBS]
        for g in range(b.run_gres.shape[1]):
            b.future[n, FREE_GRES + g] = b.book[n, FREE_GRES + g]
    for v in range(b.now[GIVING]):
        _remove(b, b.by_end[b.giving[v]])
    return 0


@inline
def _join(there: Ints, nodes: Ints, admissible: Ints) -> None:
    """Take into a set those of some nodes that are admissible."""
    for w in range(there.shape[0]):
        there[w] |= nodes[w] & admissible[w]


@inner
def forecast(b: SlurmArrays, e: int, nodes: Ints, admissible: Ints) -> int:
    """Return after the end of which running job, by its place, a job can start, or one of the answers above.

    ``scratch[1]`` holds its CPUs on each node then; of a simple job, ``masks[THERE]`` the nodes that are
    free. `admissible` are those of the nodes that it may use.
    """
    there, least, free = b.masks[THERE], b.need[e, MIN_NODES], IDLE if b.need[e, WHOLE] != 0 else FREE_NODES
    if b.rules[HAS_PREEMPTION] != 0:  # some may have given way since the pass began
        note_free_nodes(b)
    for w in range(there.shape[0]):
        there[w] = admissible[w] & b.masks[free, w]
    is_simple = b.own[IS_SIMPLE] != 0
    if count(there) >= least and (is_simple or _fits(b, e, b.book, admissible)):
        return FITS
    done = -1  # of those that stay, so many are off the book of the future; -1: it is not written yet
    if b.now[GIVING] > 0:
        done = _write_future(b)
        for v in range(b.now[GIVING]):
            _join(there, b.run_nodes[b.by_end[b.giving[v]]], admissible)
        if _fits(b, e, b.future, admissible):
            return PREEMPTS
    n_left, window, k, barrier = b.now[STAYING] if b.now[GIVING] > 0 else b.now[RUNS], WINDOW, 0, 0
    while k < n_left:
        last, removed = -1, 0
        while k < n_left and (last >= 0 or k == 0 or b.ends[_place(b, k)] <= barrier + window or removed < 0):
            r = _place(b, k)
            k += 1
            if not meets(b.run_nodes[b.by_end[r]], nodes):  # no look at the next one's end
                if last < 0:
                    removed = min(removed, 0) - 1
                continue
            if barrier == 0:
                barrier = b.ends[r] + WINDOW - b.ends[r] % WINDOW
            _join(there, b.run_nodes[b.by_end[r]], admissible)
            last, removed = r, max(removed, 0) + 1
            if removed > MOST or (k < n_left and b.ends[_place(b, k)] > barrier + window):
                break
        if last >= 0 and count(there) >= least:
            if is_simple:
                return int(last)
            if done < 0:
                done = _write_future(b)
            while done < k:
                r = b.by_end[_place(b, done)]
                if meets(b.run_nodes[r], nodes):
                    _remove(b, r)
                done += 1
            if _fits(b, e, b.future, admissible):
                return int(last)
        window = window + b.rules[SCALE] if b.rules[SCALE] > 0 else 2 * window
    return NEVER


@inner
def _free(times: Ints, free: Ints, n: int, start: int, end: int, nodes: Ints) -> int:
    """Leave those of some nodes that are free in [start, end]; return when others become free, 0: never.

    A record that begins exactly at the end counts, too.
    """
    later = 0
    for k in range(n):
        if times[k, 1] <= start:
            continue
        if times[k, 0] <= end:
            for w in range(nodes.shape[0]):
                nodes[w] &= free[k, w]
        if later == 0 and k + 1 < n and not within(free[k + 1], nodes):
            later = times[k, 1]
        if times[k, 0] > end:
            break
    return int(later)


@inline
def change_by(own: Ints, time: int) -> None:
    """Take note that something may be decided otherwise from an instant on."""
    own[HORIZON] = min(own[HORIZON], time)


@inner
def _note_free(
    times: Ints, free: Ints, n: int, start: int, limit: int, nodes: Ints, later: int, own: Ints
) -> None:
    """Take note of when `_free` says something else of a job that is planned from now on.

    That is when the first record is over, or when the job's end meets a record that takes nodes away, or may
    be the first that offers others.
    """
    for k in range(n):
        if times[k, 1] > start:
            change_by(own, times[k, 1])
            break
    for k in range(n):
        if times[k, 0] > start + limit and (later == 0 or not within(nodes, free[k])):
            change_by(own, times[k, 0] - limit)
            break


@inner
def _note_reservation(b: SlurmArrays, begin: int, limit: int) -> None:
    """Take note of when a plan's place in the map changes: the map's end moves, and begins are rounded."""
    resolution, span, own = b.rules[RESOLUTION], b.rules[SPAN], b.own
    end = (b.now[NOW] + span) // resolution * resolution
    if own[HIGH] >= end:
        change_by(own, own[HIGH] + resolution - span)
    if own[LOW] >= end:
        change_by(own, own[LOW] + resolution - span)
    if begin <= b.now[NOW] or limit < resolution:
        change_by(own, 0)


@inner
def _split(times: Ints, free: Ints, sizes: Ints, time: int) -> None:
    for k in range(sizes[RECORDS]):
        if times[k, 0] < time < times[k, 1]:
            for j in range(sizes[RECORDS], k + 1, -1):
                copy(times[j], times[j - 1])
                copy(free[j], free[j - 1])
            times[k + 1, 0], times[k + 1, 1] = time, times[k, 1]
            copy(free[k + 1], free[k])
            times[k, 1] = time
            sizes[RECORDS] += 1
            sizes[EVER] += 1
            return


@inner
def reserve(times: Ints, free: Ints, sizes: Ints, start: int, end: int, nodes: Ints) -> None:
    _split(times, free, sizes, start)
    _split(times, free, sizes, end)
    for k in range(sizes[RECORDS]):
        if times[k, 0] >= start and times[k, 1] <= end:
            for w in range(nodes.shape[0]):
                free[k, w] &= ~nodes[w]
    for k in range(sizes[RECORDS] - 1):
        is_same = True
        for w in range(nodes.shape[0]):
            is_same = is_same and free[k, w] == free[k + 1, w]
        if is_same:
            times[k, 1] = times[k + 1, 1]
            for j in range(k + 1, sizes[RECORDS] - 1):
                copy(times[j], times[j + 1])
                copy(free[j], free[j + 1])
            sizes[RECORDS] -= 1
            return


@inner
def _overlaps(times: Ints, free: Ints, n: int, low: int, high: int, nodes: Ints) -> bool:
    overlaps = False
    for k in range(n):
        if times[k, 1] > low and times[k, 0] < high and not within(nodes, free[k]):
            overlaps = True
    return overlaps


@inner
def _best_forecast(b: SlurmArrays, e: int, nodes: Ints) -> int:
    """Return when a job can start by its best alternative, -1: never; its CPUs then are in ``scratch[2]``."""
    best, now, own = -1, b.now[NOW], b.own
    for a in range(b.entries[e, FIRST_SET], b.entries[e, LAST_SET]):
        admissible = b.room[3:]
        for w in range(nodes.shape[0]):
            admissible[w] = nodes[w] & b.sets[a, w]
        last = forecast(b, e, nodes, admissible)
        if last == NEVER:
            continue
        begin = now
        if last >= 0:
            begin, late = b.ends[last], b.rules[LATE]
            if begin <= now:
                change_by(own, begin + late)
                begin = max(begin + late, now + 1)
            else:
                change_by(own, begin)
        if best < 0 or begin < best:
            best = begin
            if own[IS_SIMPLE] == 0:
                copy(b.scratch[2], b.scratch[1])
    return int(best)


@inner
def _nodes_from(b: SlurmArrays, e: int, start: int, limit: int) -> None:
    """Leave in ``masks[NODES]`` where a job may be planned at an instant; note when others become free."""
    nodes, own, part = b.masks[NODES], b.jobs[b.entries[e, JOB], OWN], b.entries[e, PART]
    resolution, excluded = b.rules[RESOLUTION], b.entries[e, EXCLUDED]
    for w in range(nodes.shape[0]):
        nodes[w] = b.part_nodes[part, w] & b.masks[UP, w] & ~b.sets[excluded, w]
    is_less = False
    if b.now[RESERVATIONS] > 0:
        leave_own(b, own, nodes)
        is_less = leave_booked(b, own, start, start + limit, nodes)
    later = _free(b.times, b.free, b.sizes[RECORDS], start, start + limit, nodes)
    if start <= b.now[NOW]:
        _note_free(b.times, b.free, b.sizes[RECORDS], start, limit, nodes, later, b.own)
    if is_less:
        end = 0
        for v in range(b.now[RESERVATIONS]):
            if b.booked[v, CLOSES] > start and (end == 0 or b.booked[v, CLOSES] < end):
                end = b.booked[v, CLOSES]
        if end > 0:
            end = (end + resolution - 1) // resolution * resolution + 1
            if later == 0 or end < later:
                later = end
    b.own[LATER] = later


@inline
def _choose_there(b: SlurmArrays, chosen: Ints, least: int) -> None:
    """Choose so many of the nodes that are free for a simple job; first those that the weights prefer."""
    there, preferred = b.masks[THERE], b.room[3:]
    if b.now[IS_PACKED] != 0:
        for w in range(there.shape[0]):
            preferred[w] = there[w] & b.packed[w]
            there[w] &= ~b.packed[w]
        least = take_tightest(preferred, chosen, least)
    take_tightest(there, chosen, least)


@inner
def _begin_of(b: SlurmArrays, e: int) -> int:
    """Return when a job can start on ``masks[NODES]``, -1: never; it would have ``masks[CHOSEN]``."""
    own, now, chosen = b.own, b.now[NOW], b.masks[CHOSEN]
    begin = _best_forecast(b, e, b.masks[NODES])
    if begin < 0:
        return -1
    begin = max(begin, own[FROM])
    chosen[:] = 0
    if own[IS_SIMPLE] != 0:
        _choose_there(b, chosen, b.need[e, MIN_NODES])
        own[TOTAL] = b.need[e, MIN_NODES] * b.site[0, CPUS]
    else:
        own[TOTAL] = 0
        for n in range(b.site.shape[0]):
            if b.scratch[2, n] > 0:
                put(chosen, n)
                own[TOTAL] += b.scratch[2, n]
    if begin <= now and meets(chosen, b.masks[BEFORE]):
        begin = now + 1
        own[LATER] = 0
        change_by(own, 0)
    return int(begin)


@inner
def plan_job(b: SlurmArrays, e: int) -> int:
    """Plan one job from ``own[FROM]`` on; after START, with ``own[RESUMES]``, as one that cannot start."""
    own, now, resolution, limit = b.own, b.now[NOW], b.rules[RESOLUTION], b.own[LASTS]
    nodes, chosen, required = b.masks[NODES], b.masks[CHOSEN], b.sets[b.entries[e, REQUIRED]]
    while True:
        if own[RESUMES] == 0:
            start = own[FROM]
            _nodes_from(b, e, start, limit)
            if count(nodes) < b.need[e, MIN_NODES] or not within(required, nodes):
                if own[LATER] <= start:
                    return NONE
                own[FROM] = own[LATER]
                continue
            if own[TESTS] > b.rules[MOST_TESTS]:
                return TESTED
            own[TESTS] += 1
            begin = _begin_of(b, e)
            if begin < 0:
                if own[LATER] <= start:
                    return NONE
                own[FROM] = own[LATER]
                continue
            own[BEGIN] = begin
            if begin <= now:
                return START
            change_by(own, begin)
        own[RESUMES] = 0
        begin = own[BEGIN]
        if own[LATER] > 0 and begin > own[LATER]:
            own[FROM] = own[LATER]
            continue
        own[PLANNED_AT] = begin
        if begin > now + b.rules[SPAN]:
            change_by(own, begin - b.rules[SPAN])
            return BEYOND
        if b.sizes[EVER] >= b.rules[MAP_SIZE]:
            return FULL
        own[LOW] = begin // resolution * resolution
        own[HIGH] = max((begin + limit) // resolution * resolution, own[LOW] + resolution)
        _note_reservation(b, begin, limit)
        if not _overlaps(
            b.times, b.free, b.sizes[RECORDS], own[LOW], (begin + limit) // resolution * resolution, chosen
        ):
            return RESERVE
        if begin <= own[FROM]:
            return OVERLAPS
        own[FROM] = begin
