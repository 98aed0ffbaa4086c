"""The scheduler's state machine: events in, a pass of decisions, starts out.

A world calls `submit`, `finish` and `wake` for what happened at one instant (or one event), then
`begin`, then `advance` until it returns NOTHING; when `advance` returns another kind, an agent must
`answer` first (SCORE: Python must `rank`; PAUSE: call again). Started jobs stand in
``started[b, :n_started]`` until the world collects them.
"""

from bridge.arrays import Array
from bridge.jit import hot, inline, inner, kernel
from bridge.scheduler.bookings import (
    follow_kept,
    forget_holes,
    keep,
    no_hole_before,
    note_no_hole,
    started,
)
from bridge.scheduler.leader import foresee, leader
from bridge.scheduler.names import CONSERVATIVE, EASY
from bridge.scheduler.profile import book, build, first_hole, fits_now
from bridge.scheduler.queue import (
    BY_ALT,
    first,
    flatten,
    insert,
    loose,
    may_fit,
    rearrange,
    remove,
    size_class,
    sort,
    sort_jobs,
    tighten,
)
from bridge.scheduler.running import (
    add_running,
    first_from,
    fits,
    in_time,
    may_backfill,
    remove_running,
    reserve,
)
from bridge.scheduler.score import evaluate
from bridge.scheduler.state import HOW_BACKFILLED, HOW_HEAD, NEVER, SECOND, SHAPES, State

#: Kinds of decision that `advance` returns.
NOTHING, PICK, INSPECT, BACKFILL = 0, 1, 2, 3
#: Beside them: an order in Python must score the waiting jobs; ``env.work`` is used up, for a look at Ctrl-C.
SCORE, PAUSE = 4, -2
#: The answer "none of them": do not pick, reject, stop backfilling.
DECLINE = -1

_IDLE, _PICK, _INSPECT, _TRY, _BACKFILL, _BOOK = 0, 1, 2, 3, 4, 5


@hot
def submit(state: State, b: int, j: int) -> None:
    """Job `j` (its record filled in) joins the queue. Jobs are numbered in order of submission."""
    which = state.scratch[0]
    which[0] = j
    job = state.jobs[b, j]
    job.size_class = size_class(state.demand[b, j, 0])
    job.slot = (57 * state.demand[b, j, 0] + job.est_wait // SECOND) % SHAPES
    if not state.rules[0].dynamic_order:
        evaluate(state, b, state.program, which, 1)
        job.score = state.stack[0, 0]
    elif state.rules[0].growing_order:
        foresee(state, b, which, 1)
    if state.rules[0].own_candidate_order:
        evaluate(state, b, state.alt_program, which, 1)
        job.alt = state.stack[0, 0]
    insert(state, b, j)


@hot
def finish(state: State, b: int, j: int) -> None:
    """Job `j` has ended now: its resources are free."""
    env = state.env[b]
    job = state.jobs[b, j]
    remove_running(state, b, j)
    for r in range(state.capacity.shape[0]):
        state.free[b, r] += state.demand[b, j, r]
    job.end = env.now
    if state.rules[0].uses_fairshare:
        used = job.n * ((env.now - job.start) / SECOND)
        state.usage[b, job.user] += used
        env.used_total += used


@kernel
def withdraw(state: State, b: int, j: int) -> None:
    """Waiting job `j` leaves the queue without having run; a lock on it is released."""
    env = state.env[b]
    remove(state, b, j)
    if env.head == j:
        env.head = -1
        env.is_reserved = 0


@kernel
def adopt(state: State, b: int, j: int, start: int) -> None:
    """Waiting job `j` has been running since `start`; a lock on it is released."""
    withdraw(state, b, j)
    env = state.env[b]
    job = state.jobs[b, j]
    for r in range(state.capacity.shape[0]):
        state.free[b, r] -= state.demand[b, j, r]
    job.start = start
    job.est_end = start + job.est_run
    job.serial = env.serial
    env.serial += 1
    add_running(state, b, j)


@hot
def begin(state: State, b: int) -> None:
    """Open a pass: all events that it may know of have been told."""
    env = state.env[b]
    env.phase = _PICK
    env.is_sorted = 0
    env.wake_at = NEVER


@inline
def _start(state: State, b: int, j: int, how: int, past: int) -> None:
    """Start waiting job `j` now."""
    env = state.env[b]
    job = state.jobs[b, j]
    remove(state, b, j)
    for r in range(state.capacity.shape[0]):
        state.free[b, r] -= state.demand[b, j, r]
    job.start = env.now
    job.est_end = env.now + job.est_run
    job.how = how
    job.past = past
    job.serial = env.serial
    env.serial += 1
    add_running(state, b, j)
    state.started[b, env.n_started] = j
    env.n_started += 1


@inner
def _renumber_running(state: State, b: int) -> None:
    """Serve jobs that end together by believed end, as one who sorts the running list does."""
    env = state.env[b]
    for k in range(env.n_running):
        state.jobs[b, state.run_job[b, k]].serial = env.serial
        env.serial += 1
    env.renumbered = 1


@inline
def _end_pass(state: State, b: int) -> None:
    """Close the pass; without a head lock the next one picks afresh."""
    env = state.env[b]
    env.phase = _IDLE
    if not state.rules[0].head_locked:
        env.head = -1
        env.is_reserved = 0


@inline
def _backfill_one(state: State, b: int, j: int) -> None:
    """Start candidate `j` behind the blocked head."""
    if not in_time(state, b, j):
        for r in range(state.capacity.shape[0]):
            state.extra[b, r] -= state.demand[b, j, r]
    _start(state, b, j, HOW_BACKFILLED, state.env[b].head)


@inline
def _easy(state: State, b: int) -> None:
    """EASY backfilling in queue order."""
    env = state.env[b]
    room = env.shadow - env.now - state.rules[0].strict
    copy = state.scratch[2]
    i = 0
    while i < env.n_blocks and state.free[b, 0] > 0:
        block = state.blocks[b, i]
        nodes = state.free[b, 0]
        extra = state.extra[b, 0] if state.rules[0].extra_nodes else -1
        if loose(state, b, block, nodes, extra, size_class(nodes), room):
            before = env.n_blocks
            started = env.n_started
            n = state.size[b, block]
            for k in range(n):  # a start takes its job out of the block
                copy[k] = state.items[b, block, k]
            for k in range(n):
                j = copy[k]
                if j != env.head and may_backfill(state, b, j):
                    _backfill_one(state, b, j)
            if env.n_started == started:
                if not state.rules[0].dynamic_order:
                    tighten(state, b, block)
            else:
                i -= before - env.n_blocks  # merged blocks moved unread jobs forward by at most as many
                if i < 0:
                    i = -1
        i += 1


@inner
def _backfill_rarely(state: State, b: int, j: int) -> None:
    """`_backfill_one` for callers that are not worth a copy of it."""
    _backfill_one(state, b, j)


@inner
def _easy_reordered(state: State, b: int) -> None:
    """EASY backfilling over candidates in an order of their own, as they stood when it began."""
    env = state.env[b]
    rules = state.rules[0]
    which = state.scratch[2]
    n = flatten(state, b, which)
    if not rules.skip_next:  # who does not fit now never will in this pass
        kept = 0
        for k in range(n):
            if which[k] != env.head and may_backfill(state, b, which[k]):
                which[kept] = which[k]
                kept += 1
        n = kept
    if rules.own_candidate_order:
        sort_jobs(state.jobs[b], which, state.scratch[3], n, BY_ALT)
    k = 0
    while k < n:
        j = which[k]
        if j != env.head and may_backfill(state, b, j):
            _backfill_rarely(state, b, j)
            k += rules.skip_next
        k += 1


@inner
def _easy_growing(state: State, b: int) -> None:
    """EASY backfilling under an order whose scores only grow: possible candidates alone are scored."""
    env = state.env[b]
    which = state.scratch[2]
    room = env.shadow - env.now - state.rules[0].strict
    nodes = state.free[b, 0]
    extra = state.extra[b, 0] if state.rules[0].extra_nodes else -1
    n = 0
    for i in range(env.n_blocks):
        block = state.blocks[b, i]
        if nodes > 0 and loose(state, b, block, nodes, extra, size_class(nodes), room):
            before = n
            for k in range(state.size[b, block]):
                j = state.items[b, block, k]
                if j != env.head and may_backfill(state, b, j):
                    which[n] = j
                    n += 1
            if n == before:
                tighten(state, b, block)
    if n > 1:
        evaluate(state, b, state.program, which, n)
        for k in range(n):
            state.jobs[b, which[k]].alt = state.stack[0, k]
        sort_jobs(state.jobs[b], which, state.scratch[3], n, BY_ALT)
    for k in range(n):
        if may_backfill(state, b, which[k]):
            _backfill_rarely(state, b, which[k])


@inner
def _anybody_fits(state: State, b: int) -> bool:
    """Tell whether any waiting job fits now."""
    for i in range(state.env[b].n_blocks):
        block = state.blocks[b, i]
        if may_fit(state, b, block, state.free[b, 0]):
            least = NEVER
            for k in range(state.size[b, block]):
                j = state.items[b, block, k]
                if fits(state.demand[b, j], state.free[b]):
                    return True
                least = min(least, state.demand[b, j, 0])
            state.least[b, block] = least
    return False


@inner
def _list_bookable(state: State, b: int) -> None:
    """Begin conservative backfilling: list the waiting jobs in queue order, and build the profile."""
    env = state.env[b]
    which = state.scratch[2]
    env.n_picks = 0
    env.booked = 0
    env.last_bookable = -1
    env.keeps = 0
    if not _anybody_fits(state, b):
        return
    n = flatten(state, b, which)
    if env.head >= 0:  # an agent's pick is booked before the others
        k = 0
        while which[k] != env.head:
            k += 1
        for i in range(k, 0, -1):
            which[i] = which[i - 1]
        which[0] = env.head
    env.last_bookable = n - 1
    # jobs past their estimates, where those stand as logged, end before now
    end = NEVER if state.rules[0].clamp_overrun or env.n_running == 0 else state.run_end[b, 0]
    env.in_order = end >= env.now
    # not under an order that changes, as bookings then do; nor among many schedulers: memory is shared
    is_alone = state.env.shape[0] == 1
    env.keeps = (
        is_alone and end > env.now and n > state.rules[0].keep_above and not state.rules[0].dynamic_order
    )
    forget_holes(state, b)
    if env.keeps:
        follow_kept(state, b, n)
    else:
        env.n_kept = 0
        env.profile_steps = build(state, b, state.p_time, state.p_free)


@inner
def _book_all(state: State, b: int) -> bool:
    """Conservative backfilling: every waiting job is booked at its first hole, in queue order.

    Bookings only take away, so the walk stops behind the last job that could still start now.

    Returns:
        Whether it is done; if ``env.work`` was used up before, the next call goes on.
    """
    env = state.env[b]
    which = state.scratch[2]
    picks = state.scratch[3]
    steps = env.profile_steps
    last = env.last_bookable
    n_picks = env.n_picks
    k = env.booked
    work = env.work if env.work > 0 else NEVER
    check = True  # it is not known whether the last can still start
    hole, before = 0, NEVER  # where the job before found its hole
    while True:
        if work <= 0:
            env.profile_steps, env.last_bookable, env.n_picks, env.booked = steps, last, n_picks, k
            return False
        work -= int(steps)  # as plain Python a small NumPy integer would overflow
        while check and last >= k and not fits_now(state, b, which[last], steps):
            last -= 1
        if last < k:
            break
        j = which[k]
        job = state.jobs[b, j]
        earliest = no_hole_before(state, b, job.slot, state.demand[b, j, 0], job.est_wait)
        if earliest == before:  # most often: like the one before it
            first_step = max(hole - 1, 0)
        else:
            first_step = first_from(state.p_time, steps, earliest) if earliest >= 0 else 0
        hole = first_hole(
            state.p_time, state.p_free, steps, state.demand[b, j], job.est_wait, first_step, NEVER
        )
        k += 1
        check = False
        if env.keeps:
            keep(state, b, j, state.p_time[hole] if hole >= 0 else NEVER)
        before = state.p_time[hole] if hole >= 0 else NEVER
        if hole < 0:
            continue
        if env.in_order:
            note_no_hole(state, b, j, before)
        check = before - env.now < state.jobs[b, which[last]].est_wait
        if job.reserved < 0:
            job.reserved = before
        if hole == 0:
            picks[n_picks] = j
            n_picks += 1
        steps = book(state.p_time, state.p_free, steps, state.demand[b, j], hole, job.est_wait)
    if env.work > 0:
        env.work = max(work, 1)
    env.profile_steps = steps
    if env.keeps and n_picks > 0:
        started(state, b, picks, n_picks)
    for k in range(n_picks):
        _start(state, b, picks[k], HOW_BACKFILLED, env.head)
    return True


@inline
def _list_waiting(state: State, b: int) -> None:
    """Candidates of a PICK: the first waiting jobs in queue order."""
    env = state.env[b]
    window = state.candidates.shape[1]
    n = 0
    for i in range(env.n_blocks):
        block = state.blocks[b, i]
        for k in range(state.size[b, block]):
            if n == window:
                break
            state.candidates[b, n] = state.items[b, block, k]
            n += 1
    env.n_candidates = n


@inline
def _is_candidate(state: State, b: int, j: int) -> bool:
    """Tell whether an agent may backfill job `j`: it fits now; under a guard only if EASY would allow it."""
    if state.rules[0].guard:
        return may_backfill(state, b, j)
    return fits(state.demand[b, j], state.free[b])


@inner
def _list_backfillable(state: State, b: int) -> None:
    """List the candidates of a BACKFILL."""
    env = state.env[b]
    which = state.scratch[2]
    n = 0
    for i in range(env.n_blocks):
        block = state.blocks[b, i]
        if may_fit(state, b, block, state.free[b, 0]):
            least = NEVER
            for k in range(state.size[b, block]):
                j = state.items[b, block, k]
                if j != env.head and _is_candidate(state, b, j):
                    which[n] = j
                    n += 1
                least = min(least, state.demand[b, j, 0])
            state.least[b, block] = least
    if state.rules[0].own_candidate_order:
        sort_jobs(state.jobs[b], which, state.scratch[3], n, BY_ALT)
    n = min(n, state.candidates.shape[1])
    for k in range(n):
        state.candidates[b, k] = which[k]
    env.n_candidates = n


@inline
def _backfill_candidate(state: State, b: int, choice: int) -> None:
    """Start a candidate. Starts only take away, so the others are the next candidates if they were all."""
    env = state.env[b]
    _backfill_one(state, b, state.candidates[b, choice])
    n = env.n_candidates
    kept = 0
    for k in range(n):
        j = state.candidates[b, k]
        if k != choice and _is_candidate(state, b, j):
            state.candidates[b, kept] = j
            kept += 1
    env.n_candidates = kept if n < state.candidates.shape[1] else -1


@hot
def advance(state: State, b: int) -> int:
    """Carry the open pass on until an agent must answer (its kind) or the pass is over (NOTHING)."""
    env = state.env[b]
    rules = state.rules[0]
    while True:
        if env.phase == _IDLE:
            return NOTHING
        if env.phase == _PICK:
            if env.n_waiting == 0:
                env.head = -1
                _end_pass(state, b)
                return NOTHING
            if rules.dynamic_order and not rules.growing_order and not env.is_sorted:
                if rules.scored_outside:
                    return SCORE
                sort(state, b)
                env.is_sorted = 1
            if env.head >= 0:  # locked since an earlier pass
                env.phase = _TRY
            elif rules.agent_pick:
                _list_waiting(state, b)
                return PICK
            else:
                env.head = leader(state, b) if rules.growing_order else first(state, b)
                env.accepted = 0
                env.phase = _INSPECT
        if env.phase == _INSPECT:
            if (
                rules.agent_inspect
                and not env.accepted
                and state.jobs[b, env.head].rejects < rules.max_rejects
            ):
                return INSPECT
            env.phase = _TRY
        if env.phase == _TRY:
            if fits(state.demand[b, env.head], state.free[b]):
                j = env.head
                env.head = -1
                env.is_reserved = 0
                _start(state, b, j, HOW_HEAD, -1)
                env.phase = _PICK
                continue
            if rules.head_first and env.head != first(state, b):
                env.head = first(state, b)
                env.is_reserved = 0
                continue
            env.phase = _BACKFILL
            env.n_candidates = -1  # not listed yet
            if rules.backfill == EASY and not (env.is_reserved and rules.reserve_once):
                # where nobody else fits, nobody asks for a reservation; the first one is kept
                if rules.head_locked or state.jobs[b, env.head].reserved < 0 or _anybody_fits(state, b):
                    reserve(state, b, env.head)
                if rules.resort_running:
                    _renumber_running(state, b)
                env.is_reserved = 1
            if rules.backfill == CONSERVATIVE:
                _list_bookable(state, b)
                env.phase = _BOOK
        if env.phase == _BOOK:
            if not _book_all(state, b):
                return PAUSE
            _end_pass(state, b)
            return NOTHING
        if env.phase == _BACKFILL:
            if rules.backfill == EASY:
                if rules.agent_backfill:
                    if env.n_candidates < 0:
                        _list_backfillable(state, b)
                    if env.n_candidates > 0:
                        return BACKFILL
                elif rules.own_candidate_order or rules.skip_next:
                    _easy_reordered(state, b)
                elif rules.growing_order:
                    _easy_growing(state, b)
                else:
                    _easy(state, b)
            _end_pass(state, b)
            return NOTHING


@hot
def follow(state: State, b: int, told: Array, n: int) -> int:
    """Apply what has happened at an instant, open a pass and `advance` it: one call from Python for all.

    Args:
        state, b: the scheduler.
        told: [≥ n] in order: j, job `j` was submitted; -1 - j, it has finished.
        n: how many.
    """
    for k in range(n):
        if told[k] >= 0:
            submit(state, b, told[k])
        else:
            finish(state, b, -1 - told[k])
    begin(state, b)
    return advance(state, b)


@kernel
def rank(state: State, b: int) -> None:
    """Bring the queue into the order of the scores that Python has written to the waiting jobs."""
    flatten(state, b, state.scratch[0])
    rearrange(state, b)
    state.env[b].is_sorted = 1


@hot
def answer(state: State, b: int, choice: int) -> None:
    """Answer the decision that `advance` returned.

    Args:
        choice: PICK, BACKFILL: a place in ``candidates[b, :n_candidates]``, or DECLINE. INSPECT: DECLINE
            rejects (the scheduler asks to be woken after `retry_after`), anything else accepts.
    """
    env = state.env[b]
    if env.phase == _PICK:
        if choice == DECLINE:
            _end_pass(state, b)
        else:
            env.head = state.candidates[b, choice]
            env.accepted = 0
            env.phase = _INSPECT
    elif env.phase == _INSPECT:
        env.inspections += 1
        if choice == DECLINE:
            env.rejections += 1
            state.jobs[b, env.head].rejects += 1
            env.head = -1
            env.wake_at = env.now + state.rules[0].retry_after
            _end_pass(state, b)
        else:
            env.accepted = 1
    elif env.phase == _BACKFILL:
        if choice == DECLINE:
            _end_pass(state, b)
        else:
            _backfill_candidate(state, b, choice)
