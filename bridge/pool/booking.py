"""Where a pool's jobs stand: units free in each of the next H steps, bookings in them, and who waits.

Bookings are made at the earliest step that fits, freed, and sent back to the ready queue when disturbed.
Waiting jobs are those that a policy may see, by number, and the backlog behind them.
"""

from bridge.base.arrays import Array
from bridge.base.jit import inline
from bridge.pool.state import PoolState


@inline
def shift(state: PoolState, b: int) -> None:
    """Move on by one step; the new last step is free."""
    free = state.free[b]
    last = free.shape[0] - 1
    for h in range(last):
        free[h] = free[h + 1]
    free[last] = state.pool[0].units


@inline
def add(free: Array, first: int, last: int, units: int) -> None:
    """Add `units` to steps `first` … `last` - 1, as far as they lie within the horizon."""
    for h in range(max(first, 0), min(last, free.shape[0])):
        free[h] += units


@inline
def earliest(free: Array, units: int, length: int) -> int:
    """Return the first t in [0, H - length) such that `units` are free in `length` steps from t, or -1."""
    together = 0
    for h in range(free.shape[0] - 1):
        together = together + 1 if free[h] >= units else 0
        if together == length:
            return h - length + 1
    return -1


@inline
def fits_now(free: Array, units: int, length: int) -> bool:
    """Tell whether `units` are free in the next `length` steps."""
    last = min(length, free.shape[0])
    h = 0
    while h < last and free[h] >= units:
        h += 1
    return bool(h == last)


@inline
def drop(queue: Array, n: int, k: int) -> None:
    """Take place `k` out of a queue of `n`; the others keep their order."""
    for i in range(k, n - 1):
        queue[i] = queue[i + 1]


@inline
def believed_now(state: PoolState, b: int, j: int) -> int:
    """Return how long running job `j` is believed to be after the steps that it has run."""
    used = state.env[b].now - state.jobs[b, j].start
    return int(state.beliefs[b, j, min(used, state.beliefs.shape[2] - 1)])


@inline
def clamp_to_truth(state: PoolState, b: int, j: int) -> None:
    """Replace beliefs of job `j` by the submit-time belief where that is nearer to the true length.

    An oracle (the authors' code has it, the paper not): no real scheduler knows the true length.
    """
    job = state.jobs[b, j]
    if job.clamped == job.believed:
        return
    series = state.beliefs[b, j]
    error = abs(job.believed - job.length)
    for i in range(series.shape[0]):
        if abs(series[i] - job.length) > error:
            series[i] = job.believed
    job.clamped = job.believed


@inline
def _paint(state: PoolState, b: int, j: int) -> None:
    """Give job `j` a colour that no booked job has (none, 0, if there are more such jobs than colours)."""
    env = state.env[b]
    if env.n_colours > 0:
        env.n_colours -= 1
        state.jobs[b, j].colour = state.colours[b, env.n_colours]


@inline
def _bleach(state: PoolState, b: int, j: int) -> None:
    env = state.env[b]
    job = state.jobs[b, j]
    if job.colour > 0:
        state.colours[b, env.n_colours] = job.colour
        env.n_colours += 1
        job.colour = 0


@inline
def book(state: PoolState, b: int, j: int) -> bool:
    """Book job `j` at the earliest step where it fits for its believed length; False if there is none."""
    env = state.env[b]
    job = state.jobs[b, j]
    at = earliest(state.free[b], job.units, job.believed)
    if at < 0:
        return False
    if state.pool[0].oracle_clamp:
        clamp_to_truth(state, b, j)
    add(state.free[b], at, at + job.believed, -job.units)
    job.start = env.now + at
    job.until = job.start + job.believed
    _paint(state, b, j)
    state.booked[b, env.n_booked] = j
    env.n_booked += 1
    return True


@inline
def unbook(state: PoolState, b: int, j: int) -> None:
    """Job `j`, which has run, ends or is killed: its booking and its kill slot are free."""
    env = state.env[b]
    job = state.jobs[b, j]
    add(state.free[b], job.start - env.now, job.until - env.now, job.units)
    _bleach(state, b, j)
    if job.place >= 0:
        state.running[b, job.place] = -1
        job.place = -1
    booked = state.booked[b]
    for k in range(env.n_booked):
        if booked[k] == j:
            drop(booked, env.n_booked, k)
            env.n_booked -= 1
            return


@inline
def cancel_future_bookings(state: PoolState, b: int) -> None:
    """Free every booking that has not begun; its jobs become ready, in order of booking."""
    env = state.env[b]
    free = state.free[b]
    for h in range(free.shape[0]):  # only jobs that run are left, few of many
        free[h] = state.pool[0].units
    kept = 0
    for k in range(env.n_booked):
        j = state.booked[b, k]
        job = state.jobs[b, j]
        if job.start < env.now:
            add(free, 0, job.until - env.now, -job.units)
            state.booked[b, kept] = j
            kept += 1
        else:
            _bleach(state, b, j)
            state.ready[b, env.n_ready] = j
            env.n_ready += 1
    env.n_booked = kept


@inline
def book_ready(state: PoolState, b: int) -> None:
    """Book ready jobs anew by their last start, in order; the first that does not fit stops all."""
    env = state.env[b]
    ready = state.ready[b]
    for k in range(1, env.n_ready):  # stable: equal starts keep their order
        j = ready[k]
        i = k
        while i > 0 and state.jobs[b, ready[i - 1]].start > state.jobs[b, j].start:
            ready[i] = ready[i - 1]
            i -= 1
        ready[i] = j
    done = 0
    while done < env.n_ready and book(state, b, ready[done]):
        done += 1
    for k in range(done, env.n_ready):
        ready[k - done] = ready[k]
    env.n_ready -= done


@inline
def requeue_killed(state: PoolState, b: int, j: int) -> None:
    """Insert job `j` by its number. If all slots are taken, the job with the highest number is hidden."""
    env = state.env[b]
    waiting = state.waiting[b]
    k = env.n_waiting
    while k > 0 and waiting[k - 1] > j:
        waiting[k] = waiting[k - 1]
        k -= 1
    waiting[k] = j
    env.n_waiting += 1


@inline
def arrive(state: PoolState, b: int, j: int) -> bool:
    """Job `j` takes an empty slot, else a place in the backlog; False if that is full."""
    env = state.env[b]
    pool = state.pool[0]
    if env.n_waiting < pool.slots:
        requeue_killed(state, b, j)
    elif env.tail - env.head < pool.backlog:
        state.backlog[b, env.tail] = j
        env.tail += 1
    else:
        return False
    return True


@inline
def leave(state: PoolState, b: int, k: int) -> None:
    """The job in slot `k` leaves; an empty slot is filled from the backlog's head."""
    env = state.env[b]
    drop(state.waiting[b], env.n_waiting, k)
    env.n_waiting -= 1
    if env.n_waiting < state.pool[0].slots and env.head < env.tail:
        requeue_killed(state, b, state.backlog[b, env.head])
        env.head += 1
