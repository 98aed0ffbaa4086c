"""The time-stepped pool's state machine: events of a step in, one decision at a time, bookings out.

A world waits until the phase is STEP, then tells what the step brought: `begin`, `finish` for every job
that has ended, `settle`, `submit` for every arrival, `close`. Then the phase is TICK: a policy must
`answer`, again and again, until time has to move. Source: RLSchert (2021), with the order of the authors'
code. Jobs are numbered in order of submission. A world that is not ours does the same with B = 1, starts
what is `due`, and writes what it knows of a running job's length to ``beliefs[b, j, steps run:]``.
"""

from bridge.base.arrays import Array
from bridge.base.jit import hot, inline, inner, kernel
from bridge.pool.booking import (
    add,
    arrive,
    believed_now,
    book,
    book_ready,
    cancel_future_bookings,
    leave,
    requeue_killed,
    shift,
    unbook,
)
from bridge.pool.state import LONGEST_SILENCE, PoolState

#: The kind of decision: pick, kill or wait at a time step.
TICK = 4
#: Phases: an answer is wanted (0, so that a fresh state begins with it); time must move; the episode is over.
ASKING, STEP, OVER = 0, 1, 2
#: What `answer` has done: nothing (no such action), time moves, a job was booked, a job was killed.
REFUSED, MOVED, BOOKED, KILLED = -1, 0, 1, 2


@inline
def reward(state: PoolState, b: int) -> float:
    """Return the reward of a step: -Σ 1 / L over all jobs in the system, L their believed length; or minus
    their number; or a weighted sum of both.

    Source: RLSchert, Equations 9 and 10, with the believed total length where the paper says remaining.
    """
    env = state.env[b]
    weight = state.pool[0].weight
    many = float(env.n_booked + env.n_ready + env.n_waiting + env.tail - env.head)
    if weight == 1.0:
        return -many
    jobs = state.jobs[b]
    total = 0.0
    last = state.beliefs.shape[2] - 1
    for k in range(env.n_booked):
        j = state.booked[b, k]
        total += 1.0 / state.beliefs[b, j, min(max(env.now - jobs[j].start, 0), last)]
    for k in range(env.n_ready):
        total += 1.0 / jobs[state.ready[b, k]].believed
    for k in range(env.n_waiting):
        total += 1.0 / jobs[state.waiting[b, k]].believed
    for k in range(env.head, env.tail):
        total += 1.0 / jobs[state.backlog[b, k]].believed
    return -total if weight == 0.0 else -((1.0 - weight) * total + weight * many)


@inner
def _kill(state: PoolState, b: int, j: int) -> None:
    """Stop running job `j`; it waits again, believed to be as long as it was last, and starts from zero."""
    env = state.env[b]
    job = state.jobs[b, j]
    used = env.now - job.start
    belief = believed_now(state, b, j)
    if env.n_kills < state.kills.shape[1]:
        record = state.kills[b, env.n_kills]
        record.job, record.start, record.end = j, job.start, env.now
        record.believed, record.belief = job.believed, belief
    env.n_kills += 1
    job.kills += 1
    job.lost += used
    unbook(state, b, j)
    job.start = -1
    job.until = -1
    job.believed = belief
    requeue_killed(state, b, j)
    cancel_future_bookings(state, b)


@kernel
def apply_action(state: PoolState, b: int, action: int) -> int:
    """Carry out a decision of pool `b`, whose phase must be ASKING; returns MOVED, BOOKED or KILLED.

    Action 0 … slots - 1 selects a waiting job, slots (or -1, decline) none, from slots + 1 on kills a running
    job. What cannot be done (an empty slot, no room within the horizon, a selection while jobs are ready)
    moves time on, as none does. REFUSED, with nothing done, if there is no such action.
    """
    env = state.env[b]
    pool = state.pool[0]
    if action < -1 or action > pool.slots + pool.kill_slots:
        return REFUSED
    env.reward = 0.0
    if action > pool.slots:
        j = state.running[b, action - pool.slots - 1]
        if j >= 0:
            _kill(state, b, j)
            return KILLED
    elif (
        0 <= action < min(pool.slots, env.n_waiting)
        and env.n_ready == 0
        and book(state, b, state.waiting[b, action])
    ):
        leave(state, b, action)
        return BOOKED
    env.phase = STEP
    return MOVED


@kernel
def legal(state: PoolState, b: int, out: Array) -> None:
    """Write to `out` [slots + 1 + kill_slots] which actions do something; none is always legal."""
    slots = state.pool[0].slots
    for k in range(slots):
        out[k] = k < state.env[b].n_waiting
    out[slots] = True
    for k in range(state.running.shape[1]):
        out[slots + 1 + k] = state.running[b, k] >= 0


@kernel
def list_starting(state: PoolState, b: int, out: Array) -> int:
    """Write the jobs whose booking begins now to `out` [L], for a world that starts them; return how many.

    Ask when the phase is STEP: until then they may be sent back or killed.
    """
    env = state.env[b]
    n = 0
    for k in range(env.n_booked):
        if state.jobs[b, state.booked[b, k]].start == env.now:
            out[n] = state.booked[b, k]
            n += 1
    return n


@hot
def begin_step(state: PoolState, b: int) -> None:
    """Move pool `b` to the next step. Jobs booked from the last step on have started."""
    env = state.env[b]
    env.now += 1
    shift(state, b)
    env.disturbed = 0


@hot
def finish(state: PoolState, b: int, j: int) -> None:
    env = state.env[b]
    job = state.jobs[b, j]
    if job.until > env.now:
        env.disturbed = 1
    unbook(state, b, j)
    job.end = env.now
    env.n_finished += 1


@inline
def _extend(state: PoolState, b: int) -> None:
    """Jobs that have outlived their booking get one step more; the profile may become negative."""
    env = state.env[b]
    for k in range(env.n_booked):
        job = state.jobs[b, state.booked[b, k]]
        if job.until <= env.now:
            add(state.free[b], 0, 1, -job.units)
            job.until = env.now + 1
            env.disturbed = 1


@inline
def _estimate_again(state: PoolState, b: int) -> None:
    env = state.env[b]
    free = state.free[b]
    for k in range(env.n_booked):
        j = state.booked[b, k]
        job = state.jobs[b, j]
        if job.start >= env.now:
            continue
        used = env.now - job.start
        i = min(used, state.beliefs.shape[2] - 1)
        belief = max(state.beliefs[b, j, i], used + 1)
        state.beliefs[b, j, i] = belief
        until = job.start + belief
        if until < job.until:
            add(free, until - env.now, job.until - env.now, job.units)
        elif until > job.until:
            add(free, job.until - env.now, until - env.now, -job.units)
        else:
            continue
        job.until = until
        env.disturbed = 1


@inline
def _show_running(state: PoolState, b: int) -> None:
    """Running jobs take the first free kill slots, in order of booking."""
    env = state.env[b]
    running = state.running[b]
    place = 0
    for k in range(env.n_booked):
        j = state.booked[b, k]
        job = state.jobs[b, j]
        if job.start >= env.now or job.place >= 0:
            continue
        while place < running.shape[0] and running[place] >= 0:
            place += 1
        if place == running.shape[0]:
            return
        running[place] = j
        job.place = place


@hot
def reestimate_and_rebook(state: PoolState, b: int) -> None:
    """All that have ended are known: re-estimate who runs, and book anew who had to give way."""
    _extend(state, b)
    _estimate_again(state, b)
    if state.env[b].disturbed:
        cancel_future_bookings(state, b)
    _show_running(state, b)
    book_ready(state, b)
    state.env[b].silence = min(state.env[b].silence + 1, LONGEST_SILENCE)


@hot
def submit(state: PoolState, b: int, j: int) -> bool:
    """Job `j` (its record and beliefs filled in) arrives; False if the backlog is full: it is rejected."""
    env = state.env[b]
    env.silence = 0
    env.n_submitted += 1
    if arrive(state, b, j):
        return True
    env.n_rejected += 1
    return False


@hot
def end_step(state: PoolState, b: int) -> None:
    """The step is complete: the reward is known, and a decision is wanted."""
    env = state.env[b]
    env.reward = reward(state, b)
    env.phase = ASKING


@inline
def is_empty(state: PoolState, b: int) -> bool:
    env = state.env[b]
    return bool(env.n_booked + env.n_ready + env.n_waiting + env.tail - env.head == 0)
