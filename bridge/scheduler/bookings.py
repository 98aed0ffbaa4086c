"""Bookings that conservative backfilling keeps from one pass to the next, instead of booking all jobs again.

Booking every waiting job at its first hole, in queue order, gives the same holes as before for as long as
nothing has changed for the jobs so far: what is free without bookings is the same, or more only until some
time at which no job so far has a hole that it did not have. So a pass compares what is free with what was
free, follows the kept bookings to the first job that moves, and books afresh from there on. Time alone moves
nobody: a first hole stays the first until it is reached.

The profile before any job follows from what is free and from the bookings' starts and ends, kept in order of
time.
"""

from bridge.jit import inline, inner
from bridge.scheduler.profile import book, first_hole, fits_from, fits_now, step_at
from bridge.scheduler.queue import size_class
from bridge.scheduler.running import fits
from bridge.scheduler.state import CLASSES, LATEST, NEVER, Array, State

#: A pass that had to compute so many profiles books afresh.
_MOST_PROFILES = 64


@inline
def _differs_until(state: State, b: int, steps: int) -> tuple[int, int]:
    """Return until when more is free than was at the last pass, and until when less is; now: at no time.

    Both without bookings. What holds for no time at all (a finish that has not been seen yet) does not count.
    """
    env = state.env[b]
    last, was_last = steps - 1, env.n_base - 1
    i = 1 if last > 0 and state.p_time[1] == env.now else 0
    m = 0
    more = less = env.now
    while True:
        time = state.p_time[i]
        while m < was_last and state.was_time[m + 1] <= max(time, env.now):
            m += 1
        time = min(
            state.p_time[i + 1] if i < last else NEVER, state.was_time[m + 1] if m < was_last else NEVER
        )
        for r in range(state.p_free.shape[1]):
            if state.p_free[i, r] < state.was_free[m, r]:
                less = time
            if state.p_free[i, r] > state.was_free[m, r]:
                more = time
        if time == NEVER:
            return more, less
        if i < last and state.p_time[i + 1] == time:
            i += 1
        else:
            m += 1


@inline
def no_hole_before(state: State, b: int, j: int) -> int:
    """Return a time before which job `j` certainly has no hole, by what smaller and shorter jobs found."""
    c = state.jobs[b, j].size_class
    return int(state.no_hole[c, 1]) if state.no_hole[c, 0] <= state.jobs[b, j].est_wait else -1


@inline
def forget_holes(state: State) -> None:
    """Begin a pass, of which nothing is known yet."""
    for c in range(CLASSES):
        state.no_hole[c, 0] = NEVER
        state.no_hole[c, 1] = -1


@inline
def note_no_hole(state: State, b: int, j: int, until: int) -> None:
    """Note that job `j` has no hole before a time: nor have larger and longer ones after it in this pass."""
    for r in range(1, state.capacity.shape[0]):
        if state.demand[b, j, r] > 0:
            return
    nodes = state.demand[b, j, 0]
    length = state.jobs[b, j].est_wait
    for c in range(size_class(nodes - 1) + 1 if nodes > 0 else 0, CLASSES):
        known = state.no_hole[c]
        if known[1] > until or (known[1] == until and known[0] <= length):
            return
        known[0] = length
        known[1] = until


@inner
def _profile_before(state: State, b: int, k: int, until: int) -> int:
    """Write the profile before the kept booking in place `k`, and return its number of steps.

    From `until` on all is said to be free that ever will be, which is never too little.
    """
    env = state.env[b]
    times, free = state.p_time, state.p_free
    was_time, was_free = state.was_time, state.was_free
    taken = state.amounts
    resources = taken.shape[0]
    for r in range(resources):
        taken[r] = 0
        free[0, r] = was_free[0, r]
    times[0] = env.now
    nodes = 0  # taken of the first resource
    steps = 1
    i = 1  # steps without bookings, so far
    n = env.n_changes
    n_base = env.n_base
    for e in range(n + 1):
        time = max(state.changes[e].time, env.now) if e < n else until
        time = min(time, until)
        while i < n_base and (
            was_time[i] < time or (was_time[i] == time and time > env.now and time < until)
        ):
            times[steps] = was_time[i]
            free[steps, 0] = was_free[i, 0] - nodes
            for r in range(1, resources):
                free[steps, r] = was_free[i, r] - taken[r]
            steps += 1
            i += 1
        if time == until:
            break
        change = state.changes[e]
        counts = int(change.place < k)  # no branch: it is as good as random
        steps += counts & int(times[steps - 1] != time)
        times[steps - 1] = time if counts else times[steps - 1]
        j = change.job
        sign = counts * change.sign
        nodes += sign * state.demand[b, j, 0]
        free[steps - 1, 0] = was_free[i - 1, 0] - nodes
        for r in range(1, resources):
            taken[r] += sign * state.demand[b, j, r]
            free[steps - 1, r] = was_free[i - 1, r] - taken[r]
    if until < NEVER:
        times[steps] = until
        for r in range(resources):
            free[steps, r] = was_free[n_base - 1, r]
        steps += 1
    return steps


@inline
def _copy_change(state: State, target: int, source: int) -> None:
    one, other = state.changes[target], state.changes[source]
    one.time, one.place, one.job, one.sign = other.time, other.place, other.job, other.sign


@inner
def _cut(state: State, b: int, k: int) -> None:
    """Forget the bookings from place `k` on."""
    env = state.env[b]
    env.n_kept = k
    n = 0
    for e in range(env.n_changes):
        if state.changes[e].place < k:
            _copy_change(state, n, e)
            n += 1
    env.n_changes = n


@inline
def keep(state: State, b: int, j: int, time: int) -> None:
    """Keep the booking of job `j`, the next in queue order, from `time` on; NEVER if it has none."""
    env = state.env[b]
    k = env.n_kept
    state.kept[k].job = j
    state.kept[k].time = time
    env.n_kept = k + 1
    if time != NEVER:
        for sign in (1, -1):
            change = state.changes[env.n_changes + env.n_new]
            change.time = time if sign > 0 else min(time + state.jobs[b, j].est_wait, LATEST)
            change.place, change.job, change.sign = k, j, sign
            env.n_new += 1


@inner
def settle(state: State, b: int) -> None:
    """Bring the starts and ends of the pass's bookings in order of time: Shell's sort, then a merge."""
    env = state.env[b]
    old, new = env.n_changes, env.n_new
    n = old + new
    spare = n  # behind all: what is moved, then a copy of the new
    gap = 1
    while gap < new:
        gap = 3 * gap + 1
    while gap > 0:
        for e in range(old + gap, n):
            time = state.changes[e].time
            i = e
            if state.changes[i - gap].time > time:
                _copy_change(state, spare, e)
                while i >= old + gap and state.changes[i - gap].time > time:
                    _copy_change(state, i, i - gap)
                    i -= gap
                _copy_change(state, i, spare)
        gap //= 3
    for e in range(new):
        _copy_change(state, spare + e, old + e)
    i, e, target = old - 1, new - 1, n - 1
    while e >= 0:
        if i >= 0 and state.changes[i].time > state.changes[spare + e].time:
            _copy_change(state, target, i)
            i -= 1
        else:
            _copy_change(state, target, spare + e)
            e -= 1
        target -= 1
    env.n_changes = n
    env.n_new = 0


@inner
def started(state: State, b: int, picks: Array, n: int) -> None:
    """Take the bookings of `n` jobs that start now, in queue order, as what is not free."""
    env = state.env[b]
    for i in range(n):
        j = picks[i]
        length = state.jobs[b, j].est_wait
        env.n_base = book(state.was_time, state.was_free, env.n_base, state.demand[b, j], 0, length)
    k = i = 0
    for m in range(env.n_kept):
        if i < n and state.kept[m].job == picks[i]:
            state.kept[m].place = -1
            i += 1
        else:
            state.kept[k].job = state.kept[m].job
            state.kept[k].time = state.kept[m].time
            state.kept[m].place = k
            k += 1
    e = 0
    for m in range(env.n_changes):
        place = state.kept[state.changes[m].place].place
        if place >= 0:
            _copy_change(state, e, m)
            state.changes[e].place = place
            e += 1
    env.n_kept = k
    env.n_changes = e


@inline
def _compare(state: State, b: int, steps: int) -> tuple[int, int]:
    """Return `_differs_until` if bookings are kept; what is free now takes the place of what was."""
    env = state.env[b]
    more = less = NEVER
    if env.n_kept > 0 and env.now >= env.kept_at:
        more, less = _differs_until(state, b, steps)
    env.kept_at = env.now
    env.n_base = steps
    for i in range(steps):
        state.was_time[i] = state.p_time[i]
        for r in range(state.p_free.shape[1]):
            state.was_free[i, r] = state.p_free[i, r]
    return more, less


@inline
def _stands(state: State, b: int, j: int, time: int, steps: int) -> bool:
    """Tell whether job `j` can still begin at a time, by the profile before it."""
    step = step_at(state.p_time, steps, time)
    if step == steps or state.p_time[step] != time:
        return False
    return (
        fits_from(state.p_time, state.p_free, steps, state.demand[b, j], step, state.jobs[b, j].est_wait) < 0
    )


@inline
def _find_last(state: State, b: int, n: int, counted: int) -> None:
    """Find the last job without a booking that may start now, and write the profile that books from there on.

    The present profile counts the first `counted` bookings, -1: not in all its length.
    """
    env = state.env[b]
    which = state.scratch[2]
    k = env.booked
    steps = env.profile_steps
    last = n - 1
    while last >= k and not fits(state.demand[b, which[last]], state.p_free[0]):
        last -= 1
    if last >= k and counted != k:
        longest = 0
        for i in range(k, last + 1):
            longest = max(longest, state.jobs[b, which[i]].est_wait)
        steps = _profile_before(state, b, k, env.now + longest)
        while last >= k and not fits_now(state, b, which[last], steps):
            last -= 1
        if last >= k:
            steps = _profile_before(state, b, k, NEVER)
    env.profile_steps = steps
    env.last_bookable = last


@inner
def follow_kept(state: State, b: int, n: int) -> None:
    """Follow the kept bookings to the first job that moves; the profile is then the one before that job.

    The `n` waiting jobs stand in ``scratch[2]`` in queue order, the profile without bookings is built. Sets
    ``env.booked``, how many jobs keep their bookings; those of them that start now are listed as picks.
    """
    env = state.env[b]
    which = state.scratch[2]
    times, free = state.p_time, state.p_free
    more, less = _compare(state, b, env.profile_steps)
    forget_holes(state)
    known = min(env.n_kept, n) if less < NEVER else 0
    if known == 0:
        env.n_kept = env.n_changes = 0
    env.n_new = 0
    profiles = 0
    counted = 0  # kept bookings that the profile counts
    k = 0
    while k < known and which[k] == state.kept[k].job:
        j = which[k]
        demand, length = state.demand[b, j], state.jobs[b, j].est_wait
        time = state.kept[k].time
        limit = min(more, time)  # a hole that it did not have begins before this
        if time > env.now and time >= less:
            if limit <= env.now or no_hole_before(state, b, j) >= limit:
                k += 1
                continue
            if first_hole(times, free, env.profile_steps, demand, length, 0, limit) < 0:
                note_no_hole(state, b, j, limit)
                k += 1
                continue
        if counted < k:
            profiles += 1
            if profiles > _MOST_PROFILES:
                break
            env.profile_steps = _profile_before(state, b, k, time + length if time < LATEST else NEVER)
            counted = k
        if first_hole(times, free, env.profile_steps, demand, length, 0, time) >= 0:
            break
        if time < less or time <= env.now:
            if not _stands(state, b, j, time, env.profile_steps):
                break
            if time == env.now:
                state.scratch[3, env.n_picks] = j
                env.n_picks += 1
        note_no_hole(state, b, j, limit)
        k += 1
    if k < env.n_kept:
        _cut(state, b, k)
    env.booked = k
    _find_last(state, b, n, counted if profiles == 0 else -1)
