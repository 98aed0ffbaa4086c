"""Bookings that conservative backfilling keeps from one pass to the next, instead of booking all jobs again.

Booking every waiting job at its first hole, in queue order, gives the same holes as before for as long as
nothing has changed for the jobs so far: what is free without bookings is the same, or more only until some
time at which no job so far has a hole that it did not have. So a pass compares what is free with what was
free, follows the kept bookings to the first job that moves, and books afresh from there on. Time alone moves
nobody: a first hole stays the first until it is reached.

The profile is kept too: what is free beside all kept bookings. The one before any job follows by giving back
what the bookings from there on take.
"""

import numpy as np

from bridge.base.arrays import Array
from bridge.base.jit import inline, inner
from bridge.scheduler.profile import GIVE, TAKE, build, change_at, copy, first_hole, fits_from, shift
from bridge.scheduler.running_jobs import first_from
from bridge.scheduler.state import LATEST, NEVER, State

#: A pass that had to compute so many profiles books afresh.
_MOST_PROFILES = 64


@inline
def earliest_possible_hole(state: State, b: int, slot: int, nodes: int, length: int) -> int:
    """Return a lower bound of the start of a job (its place in ``no_hole``), by an equal one of this pass."""
    hole = state.hole_bounds[slot]
    if hole.look == state.scalars[b].look and hole.length == length and hole.nodes == nodes:
        return int(hole.until)
    return -1


@inline
def forget_holes(state: State, b: int) -> None:
    """Begin a pass, of which nothing is known yet."""
    state.pass_count[0] += 1
    state.scalars[b].look = state.pass_count[0]


@inline
def note_no_hole(state: State, b: int, j: int, until: int) -> None:
    """Note that job `j` has no hole before a time: nor has another one like it after it in this pass."""
    for r in range(1, state.capacity.shape[0]):
        if state.demand[b, j, r] > 0:
            return
    hole = state.hole_bounds[state.jobs[b, j].slot]
    hole.look, hole.until = state.scalars[b].look, until
    hole.nodes, hole.length = state.demand[b, j, 0], state.jobs[b, j].est_wait


@inline
def _compare(state: State, b: int, steps: int) -> tuple[int, int]:
    """Bring the kept profile up to what is free now: ``spare``, of so many steps, without bookings.

    Returns until when more is free than was at the last pass, and until when less is; now: at no time.
    """
    env = state.scalars[b]
    now = env.now
    times, free = state.p_time, state.p_free
    kept = int(env.profile_steps)
    passed = first_from(times, 0, kept, now)
    if passed == kept or times[passed] > now:
        passed -= 1
    if passed > 0:
        shift(times, free, passed, kept, passed)
        kept -= passed
    times[0] = now
    last, was_last = steps - 1, env.n_base - 1
    i = m = 0
    time = more = less = now
    while True:
        while m < was_last and state.previous_time[m + 1] <= time:
            m += 1
        until = min(
            state.scratch_time[i + 1] if i < last else NEVER,
            state.previous_time[m + 1] if m < was_last else NEVER,
        )
        differs = False
        for r in range(free.shape[0]):
            state.amounts[r] = state.spare_free[r, i] - state.was_free[r, m]
            if state.amounts[r] != 0:
                differs = True
                if state.amounts[r] > 0:
                    more = until
                else:
                    less = until
        if differs:
            kept = change_at(times, free, kept, time, until, state.amounts, GIVE)
        if until == NEVER:
            env.profile_steps = kept
            return more, less
        time = until
        if i < last and state.scratch_time[i + 1] == time:
            i += 1


@inner
def _move(
    state: State, b: int, times: Array, free: Array, steps: int, k: int, sign: np.int64, until: int | np.int64
) -> int:
    """Give back what the kept booking in place `k` takes of a profile, or take it again.

    The profile ends at `until`. Returns its new number of steps.
    """
    one = state.kept[k]
    begin = max(one.time, state.scalars[b].now)
    if begin >= until:
        return steps
    end = min(one.time + one.length, LATEST)
    if end <= begin:
        return steps
    end = end if end < until else NEVER
    return change_at(times, free, steps, begin, end, state.demand[b, one.job], sign)


@inner
def _profile_before(state: State, b: int, k: int, until: int) -> int:
    """Write the profile before the kept booking in place `k` to ``spare``, and return its number of steps.

    From `until` on all is said to be free that ever will be, which is never too little.
    """
    env = state.scalars[b]
    times, free = state.scratch_time, state.spare_free
    steps = first_from(state.p_time, 0, int(env.profile_steps), until)
    copy(state.p_time, state.p_free, times, free, steps)
    for m in range(k, env.n_kept):
        if state.kept[m].time < until:
            steps = _move(state, b, times, free, steps, m, GIVE, until)
    if until < NEVER:
        times[steps] = until
        for r in range(free.shape[0]):
            free[r, steps] = state.was_free[r, env.n_base - 1]
        steps += 1
    return steps


@inner
def _cut(state: State, b: int, k: int) -> None:
    """Forget the bookings from place `k` on; the profile is then the one before the first of them."""
    env = state.scalars[b]
    times, free = state.p_time, state.p_free
    first, last, sign = int(k), int(env.n_kept), GIVE
    steps = int(env.profile_steps)
    if last - first >= first:  # fewer stay than go
        first, last, sign = 0, first, TAKE
        steps = int(env.n_base)
        copy(state.previous_time, state.was_free, times, free, steps)
    for m in range(first, last):
        steps = _move(state, b, times, free, steps, m, sign, np.int64(NEVER))
    env.profile_steps = steps
    env.n_kept = k


@inline
def keep_booking(state: State, b: int, j: int, time: int) -> None:
    """Keep the booking of job `j`, the next in queue order, from `time` on; NEVER if it has none."""
    one = state.kept[state.scalars[b].n_kept]
    job = state.jobs[b, j]
    one.time, one.length, one.job, one.slot = time, job.est_wait, j, job.slot
    state.scalars[b].n_kept += 1


@inner
def started(state: State, b: int, picks: Array, n: int) -> None:
    """Take the bookings of `n` jobs that start now, in queue order, as what is not free."""
    env = state.scalars[b]
    for i in range(n):
        j = picks[i]
        end = min(env.now + state.jobs[b, j].est_wait, LATEST)
        steps = int(env.n_base)
        env.n_base = change_at(
            state.previous_time, state.was_free, steps, env.now, end, state.demand[b, j], TAKE
        )
    k = i = 0
    for m in range(env.n_kept):
        one = state.kept[m]
        if i < n and one.job == picks[i]:
            i += 1
            continue
        if i > 0:
            to = state.kept[k]
            to.time, to.length, to.job, to.slot = one.time, one.length, one.job, one.slot
        k += 1
    env.n_kept = k


@inline
def _is_still_valid(state: State, b: int, j: int, time: int, steps: int) -> bool:
    """Tell whether job `j` can still begin at a time, by the profile before it in ``spare``."""
    step = first_from(state.scratch_time, 0, steps, time)
    if step == steps or state.scratch_time[step] != time:
        return False
    length = state.jobs[b, j].est_wait
    return fits_from(state.scratch_time, state.spare_free, steps, state.demand[b, j], step, length) < 0


@inline
def _may_have_hole(
    times: Array, free: Array, steps: int, demand: Array, length: int, earliest: int, before: int
) -> bool:
    """Tell whether a demand may have a hole in [earliest, before) of a profile that lacks some bookings.

    Where one of those ends, a hole may begin that is no step here: within the step of `earliest`, too.
    """
    step = 0
    if earliest >= 0:
        step = first_from(times, 0, steps, earliest)
        if step > 0 and (step == steps or times[step] > earliest):
            since = earliest - times[step - 1]
            if fits_from(times, free, steps, demand, step - 1, since + length) < 0:
                return True
    return first_hole(times, free, steps, demand, length, step, before) >= 0


@inner
def reuse_bookings(state: State, b: int, n: int) -> None:
    """Follow the kept bookings to the first job that moves; the profile is then the one before that job.

    The `n` waiting jobs stand in ``scratch[2]`` in queue order. Sets ``env.booked``, how many jobs keep their
    bookings; those of them that start now are listed as picks.
    """
    env = state.scalars[b]
    which = state.scratch[2]
    times, free = state.scratch_time, state.spare_free
    steps = build(state, b, times, free)
    more = less = NEVER
    if env.n_kept > 0 and env.now >= env.kept_at:
        more, less = _compare(state, b, steps)
    env.kept_at = env.now
    env.n_base = steps
    copy(times, free, state.previous_time, state.was_free, steps)
    n_kept = min(env.n_kept, n) if less < NEVER else 0
    profiles = 0
    counted = 0  # kept bookings that the profile in spare counts
    k = 0
    while k < n_kept and which[k] == state.kept[k].job:
        j = which[k]
        demand, length = state.demand[b, j], state.kept[k].length
        time = state.kept[k].time
        limit = min(more, time)  # a hole that it did not have begins before this
        if time > env.now and time >= less:
            if limit <= env.now:
                k += 1
                continue
            earliest = earliest_possible_hole(state, b, state.kept[k].slot, demand[0], length)
            if earliest >= limit:
                k += 1
                continue
            if not _may_have_hole(times, free, steps, demand, length, earliest, limit):
                note_no_hole(state, b, j, limit)
                k += 1
                continue
        if counted < k:
            profiles += 1
            if profiles > _MOST_PROFILES:
                break
            steps = _profile_before(state, b, k, time + length if time < LATEST else NEVER)
            counted = k
        if first_hole(times, free, steps, demand, length, 0, time) >= 0:
            break
        if time < less or time <= env.now:
            if not _is_still_valid(state, b, j, time, steps):
                break
            if time == env.now:
                state.scratch[3, env.n_picks] = j
                env.n_picks += 1
        note_no_hole(state, b, j, limit)
        k += 1
    if k < env.n_kept or k == 0:
        _cut(state, b, k)
    env.booked = k
