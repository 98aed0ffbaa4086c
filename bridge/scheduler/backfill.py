"""Backfilling: what starts behind a blocked head, by EASY, by conservative backfilling, or as an agent says.

EASY's rule itself is `bridge.scheduler.reservation.may_backfill`.
"""

from bridge.base.jit import inline, inner
from bridge.scheduler.amounts import take
from bridge.scheduler.bookings import (
    earliest_possible_hole,
    forget_holes,
    keep_booking,
    note_no_hole,
    reuse_bookings,
    started,
)
from bridge.scheduler.profile import book, build, first_hole, fits_now
from bridge.scheduler.queue import (
    BY_ALT,
    list_in_order,
    may_backfill_from,
    may_fit,
    recompute_bounds,
    size_class,
    sort_jobs,
)
from bridge.scheduler.reservation import ends_before_shadow, may_backfill
from bridge.scheduler.running_jobs import first_from, first_place, fits
from bridge.scheduler.score import evaluate
from bridge.scheduler.starting import _start
from bridge.scheduler.state import HOW_BACKFILLED, NEVER, State


@inner
def _any_waiting_fits(state: State, b: int) -> bool:
    for i in range(state.scalars[b].n_blocks):
        block = state.blocks[b, i]
        if may_fit(state, b, block, state.free[b, 0]):
            least = NEVER
            for k in range(state.size[b, block]):
                j = state.items[b, block, k]
                if fits(state.demand[b, j], state.free[b]):
                    return True
                least = min(least, state.demand[b, j, 0])
            state.min_nodes[b, block] = least
    return False


@inline
def _backfill_one(state: State, b: int, j: int) -> None:
    """Start candidate `j` behind the blocked head."""
    if not ends_before_shadow(state, b, j):
        take(state.extra[b], state.demand[b, j])
    _start(state, b, j, HOW_BACKFILLED, state.scalars[b].head)


@inner
def _backfill_one_call(state: State, b: int, j: int) -> None:
    """`_backfill_one` for callers that are not worth a copy of it."""
    _backfill_one(state, b, j)


@inline
def _easy(state: State, b: int) -> None:
    """EASY backfilling in queue order."""
    env = state.scalars[b]
    room = env.shadow - env.now - state.switches[0].strict
    copy = state.scratch[2]
    i = 0
    while i < env.n_blocks and state.free[b, 0] > 0:
        block = state.blocks[b, i]
        nodes = state.free[b, 0]
        extra = state.extra[b, 0] if state.switches[0].extra_nodes else -1
        if may_backfill_from(state, b, block, nodes, extra, size_class(nodes), room):
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
                if not state.switches[0].dynamic_order:
                    recompute_bounds(state, b, block)
            else:
                i -= before - env.n_blocks  # merged blocks moved unread jobs forward by at most as many
                if i < 0:
                    i = -1
        i += 1


@inner
def _easy_reordered(state: State, b: int) -> None:
    """EASY backfilling over candidates in an order of their own, as they stood when it began."""
    env = state.scalars[b]
    rules = state.switches[0]
    which = state.scratch[2]
    n = list_in_order(state, b, which)
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
            _backfill_one_call(state, b, j)
            k += rules.skip_next
        k += 1


@inner
def _easy_by_score_bounds(state: State, b: int) -> None:
    """EASY backfilling under an order whose scores only grow: possible candidates alone are scored."""
    env = state.scalars[b]
    which = state.scratch[2]
    room = env.shadow - env.now - state.switches[0].strict
    nodes = state.free[b, 0]
    extra = state.extra[b, 0] if state.switches[0].extra_nodes else -1
    n = 0
    for i in range(env.n_blocks):
        block = state.blocks[b, i]
        if nodes > 0 and may_backfill_from(state, b, block, nodes, extra, size_class(nodes), room):
            before = n
            for k in range(state.size[b, block]):
                j = state.items[b, block, k]
                if j != env.head and may_backfill(state, b, j):
                    which[n] = j
                    n += 1
            if n == before:
                recompute_bounds(state, b, block)
    if n > 1:
        evaluate(state, b, state.program, which, n)
        for k in range(n):
            state.jobs[b, which[k]].alt = state.stack[0, k]
        sort_jobs(state.jobs[b], which, state.scratch[3], n, BY_ALT)
    for k in range(n):
        if may_backfill(state, b, which[k]):
            _backfill_one_call(state, b, which[k])


@inline
def _is_candidate(state: State, b: int, j: int) -> bool:
    """Tell whether an agent may backfill job `j`: it fits now; under a guard only if EASY would allow it."""
    if state.switches[0].guard:
        return may_backfill(state, b, j)
    return fits(state.demand[b, j], state.free[b])


@inner
def _list_backfillable(state: State, b: int) -> None:
    """List the candidates of a BACKFILL."""
    env = state.scalars[b]
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
            state.min_nodes[b, block] = least
    if state.switches[0].own_candidate_order:
        sort_jobs(state.jobs[b], which, state.scratch[3], n, BY_ALT)
    n = min(n, state.candidates.shape[1])
    for k in range(n):
        state.candidates[b, k] = which[k]
    env.n_candidates = n


@inline
def _backfill_candidate(state: State, b: int, choice: int) -> None:
    """Start a candidate. Starts only take away, so the others are the next candidates if they were all."""
    env = state.scalars[b]
    _backfill_one(state, b, state.candidates[b, choice])
    n = env.n_candidates
    kept = 0
    for k in range(n):
        j = state.candidates[b, k]
        if k != choice and _is_candidate(state, b, j):
            state.candidates[b, kept] = j
            kept += 1
    env.n_candidates = kept if n < state.candidates.shape[1] else -1


@inner
def _backfill_lone(state: State, b: int) -> None:
    """Let EASY's rule decide about the only candidate, in the agent's place."""
    j = state.candidates[b, 0]
    if may_backfill(state, b, j):
        _backfill_one(state, b, j)
    state.scalars[b].n_candidates = 0


@inner
def _list_bookable(state: State, b: int) -> None:
    """Begin conservative backfilling: list the waiting jobs in queue order, and build the profile."""
    env = state.scalars[b]
    which = state.scratch[2]
    env.n_picks = 0
    env.booked = 0
    env.last_bookable = -1
    env.keeps = 0
    if not _any_waiting_fits(state, b):
        return
    n = list_in_order(state, b, which)
    if env.head >= 0:  # an agent's pick is booked before the others
        k = 0
        while which[k] != env.head:
            k += 1
        for i in range(k, 0, -1):
            which[i] = which[i - 1]
        which[0] = env.head
    env.last_bookable = n - 1
    # jobs past their estimates, where those stand as logged, end before now
    end = NEVER if state.switches[0].clamp_overrun else state.run_end[b, first_place(state, b)]
    env.in_order = end >= env.now
    # not under an order that changes, as bookings then do; nor among many schedulers: memory is shared
    is_alone = state.scalars.shape[0] == 1
    env.keeps = (
        is_alone
        and end > env.now
        and n > state.switches[0].keep_above
        and not state.switches[0].dynamic_order
    )
    forget_holes(state, b)
    if env.keeps:
        reuse_bookings(state, b, n)
    else:
        env.n_kept = 0
        env.profile_steps = build(state, b, state.p_time, state.p_free)


@inner
def _book_in_order(state: State, b: int) -> bool:
    """Book every waiting job at its first hole, in queue order; return whether that is done.

    Bookings only take away, so the walk stops behind the last job that could still start now. If ``env.work``
    was used up before, the next call goes on.
    """
    env = state.scalars[b]
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
        earliest = earliest_possible_hole(state, b, job.slot, state.demand[b, j, 0], job.est_wait)
        if earliest == before:  # most often: like the one before it
            first_step = max(hole - 1, 0)
        else:
            first_step = first_from(state.p_time, 0, steps, earliest) if earliest >= 0 else 0
        hole = first_hole(
            state.p_time, state.p_free, steps, state.demand[b, j], job.est_wait, first_step, NEVER
        )
        k += 1
        check = False
        if env.keeps:
            keep_booking(state, b, j, state.p_time[hole] if hole >= 0 else NEVER)
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
