"""Conservative backfilling that keeps its promises: no waiting job's planned start ever moves later.

`conservative` plans all waiting jobs afresh at each pass. When a job ends early, a job at the front may take
the hole behind which another one stood, whose start then moves later. Here each job keeps its planned start.
A pass visits the jobs in queue order, takes the booking of one job out, and books it at its first hole: at
the same time or earlier. A planned start is lost only if a running job outlives its estimate.
"""

from bridge.base.arrays import Array
from bridge.base.jit import inline, inner
from bridge.scheduler.profile import GIVE, TAKE, book, build, change_at, first_hole
from bridge.scheduler.queue import list_in_order
from bridge.scheduler.running_jobs import first_from
from bridge.scheduler.starting import _start
from bridge.scheduler.state import HOW_BACKFILLED, LATEST, NEVER, STARTED_AS_HEAD, State


@inline
def _fits_between(times: Array, free: Array, steps: int, demand: Array, begin: int, end: int) -> bool:
    """Tell whether a demand fits from a time on, which may lie within a step, until another time."""
    k = first_from(times, 0, steps, begin)
    if k == steps or times[k] != begin:
        k -= 1
    while k < steps and times[k] < end:
        for r in range(free.shape[0]):
            if demand[r] > free[r, k]:
                return False
        k += 1
    return True


@inline
def _booked_end(begin: int, length: int) -> int:
    return min(begin + length, LATEST)


@inner
def list_promises(state: State, b: int) -> None:
    """Begin a pass: list the waiting jobs, and build the profile of running jobs and of all valid bookings.

    A booking that no longer fits is dropped: a running job has outlived its estimate.
    """
    env = state.scalars[b]
    which = state.scratch[2]
    times, free = state.p_time, state.p_free
    n = list_in_order(state, b, which)
    steps = build(state, b, times, free)
    for k in range(n):
        j = which[k]
        job = state.jobs[b, j]
        if 0 <= job.promise < NEVER:
            begin = max(job.promise, env.now)
            end = _booked_end(begin, job.est_wait)
            if _fits_between(times, free, steps, state.demand[b, j], begin, end):
                job.promise = begin
                steps = change_at(times, free, steps, begin, end, state.demand[b, j], TAKE)
            else:
                job.promise = NEVER
    env.last_bookable = n - 1
    env.profile_steps = steps
    env.booked = env.n_picks = 0


@inner
def move_promises(state: State, b: int) -> bool:
    """Book each waiting job, in queue order, at its first hole beside all other bookings; start those due.

    Returns:
        Whether it is done; if ``env.work`` was used up before, the next call goes on.
    """
    env = state.scalars[b]
    which, picks = state.scratch[2], state.scratch[3]
    times, free = state.p_time, state.p_free
    steps, k, n_picks = env.profile_steps, env.booked, env.n_picks
    work = env.work if env.work > 0 else NEVER
    while k <= env.last_bookable:
        if work <= 0:
            env.profile_steps, env.booked, env.n_picks = steps, k, n_picks
            return False
        work -= int(steps)
        j = which[k]
        k += 1
        job, demand = state.jobs[b, j], state.demand[b, j]
        if 0 <= job.promise < NEVER:
            end = _booked_end(job.promise, job.est_wait)
            steps = change_at(times, free, steps, job.promise, end, demand, GIVE)
        hole = first_hole(times, free, steps, demand, job.est_wait, 0, NEVER)
        job.promise = times[hole] if hole >= 0 else NEVER
        if hole < 0:
            continue
        if job.reserved < 0:
            job.reserved = job.promise
        if hole == 0:
            picks[n_picks] = j
            n_picks += 1
        steps = book(times, free, steps, demand, hole, job.est_wait)
    if env.work > 0:
        env.work = max(work, 1)
    _start_picks(state, b, n_picks)
    return True


@inner
def _start_picks(state: State, b: int, n_picks: int) -> None:
    """Start the jobs that are due; those behind one that is not due overtake it."""
    env = state.scalars[b]
    which, picks = state.scratch[2], state.scratch[3]
    i = 0
    env.head = -1
    for k in range(env.last_bookable + 1):
        if i == n_picks:
            break
        j = which[k]
        if picks[i] == j:
            i += 1
            _start(state, b, j, STARTED_AS_HEAD if env.head < 0 else HOW_BACKFILLED, env.head)
        elif env.head < 0:
            env.head = j
