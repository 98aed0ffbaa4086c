"""The backfill pass' plans, compiled: jobs in turn, the map of time, the forecast by growing batches.

Sets are words, see `node_words`; `book`, `site`, `need`, `weights` as in `choice_kernels`.
"""

from typing import NamedTuple

from bridge.base.arrays import Ints
from bridge.base.jit import inline, inner, kernel
from bridge.scheduler.slurm.choice_kernels import (
    FREE_CPUS,
    FREE_GRES,
    FREE_MEMORY,
    JOBS,
    MIN_NODES,
    choose_nodes,
)
from bridge.scheduler.slurm.node_words import copy, count, meets, put, within

#: Windows are aligned to this, and begin so long, s; a batch ends at so many jobs.
WINDOW, MOST = 30, 200
#: Answers of a forecast that are no job: it fits now, it fits if others give way, it never fits.
FITS, PREEMPTS, NEVER = -1, -2, -3
#: What came of a plan: no time was there; it may start now; too many tests; beyond the window; the map is
#: full; it would overlap itself; reserve it.
NONE, START, TESTED, BEYOND, FULL, OVERLAPS, RESERVE = range(7)
#: Places of a pass' parameters, and of what it keeps between two calls.
NOW, SPAN, RESOLUTION, MAP_SIZE, MOST_TESTS, SCALE, LATE = range(7)
#: HORIZON: before it a pass decides the same, if nothing but the time changes.
WHICH, FROM, LATER, BEGIN, LIMIT, TESTS, LOW, HIGH, TOTAL, PLANNED_AT, RESUMES, HORIZON, OWN_SIZE = range(13)
#: Places of the map's sizes: records that there are, and how many there have been.
RECORDS, EVER = range(2)


class Running(NamedTuple):
    """Running jobs in the order of their ends: ends [R], nodes [R, W], rows [A, 3] from ``first[r]`` on.

    `gres` [R, G] is of each of a job's nodes; `left` are those that do not give way, `victims` those that do.
    """

    ends: Ints
    nodes: Ints
    first: Ints
    rows: Ints
    gres: Ints
    left: Ints
    victims: Ints


class Requests(NamedTuple):
    """Jobs in turn: what each asks for.

    Attributes:
        needs: [n, ·] see `choice_kernels`.
        times: [n, 2] from when on it is planned, and its time limit.
        base, required: [n, W] nodes that it may use, and that it must have.
        first: [n + 1] where the sets of each begin in `sets` [·, W]: of one of them are its nodes.
        stops: [n] whether the caller reserves its plan, or does not.
        totals: [n] CPUs of its plan, 0: none; written.
    """

    needs: Ints
    times: Ints
    base: Ints
    required: Ints
    first: Ints
    sets: Ints
    stops: Ints
    totals: Ints


class Booked(NamedTuple):
    """Advance reservations: `times` [V, 2], `nodes` [V, W] of those that take nodes; `ends` of all."""

    times: Ints
    nodes: Ints
    ends: Ints


@inline
def _remove(book: Ints, running: Running, r: int) -> None:
    """Take a running job off the nodes' book."""
    for k in range(running.first[r], running.first[r + 1]):
        n = running.rows[k, 0]
        book[n, FREE_CPUS] += running.rows[k, 1]
        book[n, FREE_MEMORY] += running.rows[k, 2]
        book[n, JOBS] -= 1
        for g in range(running.gres.shape[1]):
            book[n, FREE_GRES + g] += running.gres[r, g]


@inner
def forecast(
    book: Ints,
    future: Ints,
    site: Ints,
    weights: Ints,
    need: Ints,
    nodes: Ints,
    admissible: Ints,
    required: Ints,
    running: Running,
    scale: int,
    scratch: Ints,
    left: Ints,
) -> int:
    """Return after the end of which running job a job can start on some nodes, or one of the answers above.

    ``scratch[1]`` holds its CPUs on each node then. `admissible` are those of the nodes that it may use.
    """
    if choose_nodes(book, site, weights, need, admissible, required, scratch, left):
        return FITS
    for n in range(book.shape[0]):
        copy(future[n], book[n])
    if running.victims.shape[0]:
        for v in range(running.victims.shape[0]):
            _remove(future, running, running.victims[v])
        if choose_nodes(future, site, weights, need, admissible, required, scratch, left):
            return PREEMPTS
    n_left, window, k, barrier = running.left.shape[0], WINDOW, 0, 0
    while k < n_left:
        last, removed = -1, 0
        while k < n_left and (
            last >= 0 or k == 0 or running.ends[running.left[k]] <= barrier + window or removed < 0
        ):
            r = running.left[k]
            k += 1
            if not meets(running.nodes[r], nodes):  # no look at the next one's end
                if last < 0:
                    removed = min(removed, 0) - 1
                continue
            if barrier == 0:
                barrier = running.ends[r] + WINDOW - running.ends[r] % WINDOW
            _remove(future, running, r)
            last, removed = r, max(removed, 0) + 1
            if removed > MOST or (k < n_left and running.ends[running.left[k]] > barrier + window):
                break
        if last >= 0 and choose_nodes(future, site, weights, need, admissible, required, scratch, left):
            return int(last)
        window = window + scale if scale > 0 else 2 * window
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
def _change_by(own: Ints, time: int) -> None:
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
            _change_by(own, times[k, 1])
            break
    for k in range(n):
        if times[k, 0] > start + limit and (later == 0 or not within(nodes, free[k])):
            _change_by(own, times[k, 0] - limit)
            break


@inner
def _note_reservation(of_pass: Ints, own: Ints, begin: int, limit: int) -> None:
    """Take note of when a plan's place in the map changes: the map's end moves, and begins are rounded."""
    resolution, span = of_pass[RESOLUTION], of_pass[SPAN]
    end = (of_pass[NOW] + span) // resolution * resolution
    if own[HIGH] >= end:
        _change_by(own, own[HIGH] + resolution - span)
    if own[LOW] >= end:
        _change_by(own, own[LOW] + resolution - span)
    if begin <= of_pass[NOW] or limit < resolution:
        _change_by(own, 0)


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
def _reserve(times: Ints, free: Ints, sizes: Ints, start: int, end: int, nodes: Ints) -> None:
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


@kernel
def reserve(times: Ints, free: Ints, sizes: Ints, start: int, end: int, nodes: Ints) -> None:
    """Take nodes out of the map in [start, end), and join the first two neighbours that offer the same."""
    _reserve(times, free, sizes, start, end, nodes)


@inner
def _leave_booked(booked: Booked, start: int, end: int, nodes: Ints) -> bool:
    """Take away nodes that reservations have in [start, end); tell whether there were some."""
    is_less = False
    for v in range(booked.times.shape[0]):
        if booked.times[v, 1] > start and booked.times[v, 0] < end and meets(booked.nodes[v], nodes):
            is_less = True
            for w in range(nodes.shape[0]):
                nodes[w] &= ~booked.nodes[v, w]
    return is_less


@inner
def _overlaps(times: Ints, free: Ints, n: int, low: int, high: int, nodes: Ints) -> bool:
    overlaps = False
    for k in range(n):
        if times[k, 1] > low and times[k, 0] < high and not within(nodes, free[k]):
            overlaps = True
    return overlaps


@inner
def _best_forecast(
    book: Ints,
    future: Ints,
    site: Ints,
    weights: Ints,
    need: Ints,
    nodes: Ints,
    alternatives: Ints,
    required: Ints,
    running: Running,
    of_pass: Ints,
    own: Ints,
    scratch: Ints,
    left: Ints,
) -> int:
    """Return when a job can start by its best alternative, -1: never; its CPUs then are in ``scratch[2]``."""
    best = -1
    now = of_pass[NOW]
    for a in range(alternatives.shape[0]):
        admissible = left[3:]
        for w in range(nodes.shape[0]):
            admissible[w] = nodes[w] & alternatives[a, w]
        last = forecast(
            book,
            future,
            site,
            weights,
            need,
            nodes,
            admissible,
            required,
            running,
            of_pass[SCALE],
            scratch,
            left,
        )
        if last == NEVER:
            continue
        begin = now
        if last >= 0:
            begin = running.ends[last]
            if begin <= now:
                _change_by(own, begin + of_pass[LATE])
                begin = max(begin + of_pass[LATE], now + 1)
            else:
                _change_by(own, begin)
        if best < 0 or begin < best:
            best = begin
            copy(scratch[2], scratch[1])
    return int(best)


@inner
def _plan_job(
    of_pass: Ints,
    own: Ints,
    times: Ints,
    free: Ints,
    sizes: Ints,
    book: Ints,
    future: Ints,
    site: Ints,
    weights: Ints,
    need: Ints,
    base: Ints,
    alternatives: Ints,
    required: Ints,
    completing: Ints,
    running: Running,
    booked: Booked,
    nodes: Ints,
    chosen: Ints,
    scratch: Ints,
    left: Ints,
) -> int:
    """Plan one job from ``own[FROM]`` on; `nodes` are what it may use, `chosen` what it would have."""
    now, resolution, limit = of_pass[NOW], of_pass[RESOLUTION], own[LIMIT]
    while True:
        if own[RESUMES] == 0:
            start = own[FROM]
            copy(nodes, base)
            is_less = _leave_booked(booked, start, start + limit, nodes)
            later = _free(times, free, sizes[RECORDS], start, start + limit, nodes)
            if start <= now:
                _note_free(times, free, sizes[RECORDS], start, limit, nodes, later, own)
            if is_less:
                end = 0
                for v in range(booked.ends.shape[0]):
                    if booked.ends[v] > start and (end == 0 or booked.ends[v] < end):
                        end = booked.ends[v]
                if end > 0:
                    end = (end + resolution - 1) // resolution * resolution + 1
                    if later == 0 or end < later:
                        later = end
            own[LATER] = later
            if count(nodes) < need[MIN_NODES] or not within(required, nodes):
                if later <= start:
                    return NONE
                own[FROM] = later
                continue
            if own[TESTS] > of_pass[MOST_TESTS]:
                return TESTED
            own[TESTS] += 1
            begin = _best_forecast(
                book,
                future,
                site,
                weights,
                need,
                nodes,
                alternatives,
                required,
                running,
                of_pass,
                own,
                scratch,
                left,
            )
            if begin < 0:
                if later <= start:
                    return NONE
                own[FROM] = later
                continue
            begin = max(begin, start)
            chosen[:] = 0
            own[TOTAL] = 0
            for n in range(site.shape[0]):
                if scratch[2, n] > 0:
                    put(chosen, n)
                    own[TOTAL] += scratch[2, n]
            if begin <= now and meets(chosen, completing):
                begin = now + 1
                own[LATER] = 0
                _change_by(own, 0)
            own[BEGIN] = begin
            if begin <= now:
                return START
            _change_by(own, begin)
        own[RESUMES] = 0
        begin = own[BEGIN]
        if own[LATER] > 0 and begin > own[LATER]:
            own[FROM] = own[LATER]
            continue
        own[PLANNED_AT] = begin
        if begin > now + of_pass[SPAN]:
            _change_by(own, begin - of_pass[SPAN])
            return BEYOND
        if sizes[EVER] >= of_pass[MAP_SIZE]:
            return FULL
        own[LOW] = begin // resolution * resolution
        own[HIGH] = max((begin + limit) // resolution * resolution, own[LOW] + resolution)
        _note_reservation(of_pass, own, begin, limit)
        if not _overlaps(
            times, free, sizes[RECORDS], own[LOW], (begin + limit) // resolution * resolution, chosen
        ):
            return RESERVE
        if begin <= own[FROM]:
            return OVERLAPS
        own[FROM] = begin


@kernel
def plan_jobs(
    of_pass: Ints,
    own: Ints,
    times: Ints,
    free: Ints,
    sizes: Ints,
    book: Ints,
    future: Ints,
    site: Ints,
    weights: Ints,
    requests: Requests,
    completing: Ints,
    running: Running,
    booked: Booked,
    nodes: Ints,
    chosen: Ints,
    scratch: Ints,
    left: Ints,
) -> int:
    """Plan and reserve jobs from ``own[WHICH]`` on, until the caller has to do something.

    After START the caller tries; if that fails it calls again with ``own[RESUMES]``. NONE: all are planned.
    """
    while own[WHICH] < requests.times.shape[0]:
        k = own[WHICH]
        if own[RESUMES] == 0:
            own[FROM], own[LIMIT] = requests.times[k, 0], requests.times[k, 1]
            own[PLANNED_AT], own[TOTAL] = -1, 0
        came = _plan_job(
            of_pass,
            own,
            times,
            free,
            sizes,
            book,
            future,
            site,
            weights,
            requests.needs[k],
            requests.base[k],
            requests.sets[requests.first[k] : requests.first[k + 1]],
            requests.required[k],
            completing,
            running,
            booked,
            nodes,
            chosen,
            scratch,
            left,
        )
        requests.totals[k] = own[TOTAL]
        if came in (START, TESTED, FULL) or (came == RESERVE and requests.stops[k] != 0):
            return int(came)
        if came == RESERVE:
            _reserve(times, free, sizes, own[LOW], own[HIGH], chosen)
        own[WHICH] = k + 1
    return NONE
