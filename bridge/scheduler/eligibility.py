"""What holds a job back besides resources: times, other jobs, limits. Held jobs wait outside the lanes.

A job comes to its lane when hold, begin time and dependencies allow it; from then on its wait counts. Limits
are counters, tested when the job's turn comes: a lane whose jobs are all above a limit is put aside whole.
"""

from bridge.base.jit import by_type, inline, inner
from bridge.scheduler.cluster_state import (
    AFTER,
    AFTER_ANY,
    AFTER_OK,
    COUNT_RUNNING,
    COUNT_SUBMITTED,
    COUNT_TIME,
    GONE_CANCELLED,
    GONE_REFUSED,
    HELD_BY_JOBS,
    HELD_FOR_EVER,
    HELD_UNTIL,
    NOT_GONE,
    NOT_HELD,
    SINGLETON,
    TIME_UNIT,
    ClusterState,
)
from bridge.scheduler.heads import choose_now
from bridge.scheduler.lanes import insert_in_lane
from bridge.scheduler.names import EASY
from bridge.scheduler.node_lives import expect, note_submission
from bridge.scheduler.queue import precedes
from bridge.scheduler.queue_key import set_key
from bridge.scheduler.score import evaluate
from bridge.scheduler.state import NEVER
from bridge.scheduler.timed_jobs import (
    first_start,
    is_user_held,
    lane_is_down,
    limit_of,
    may_start,
    note_eligible,
    note_gone,
    note_start,
    note_submitted,
    refuse_if_closed,
    stood,
)
from bridge.scheduler.timed_state import TimedState

#: Of one condition, or all of a job's: met, not yet, never.
_MET, _OPEN, _IMPOSSIBLE = 0, 1, 2


@inner
def push_timer(state: ClusterState, b: int, time: int, j: int) -> None:
    """Note that job `j` may become eligible at a time."""
    heap, k = state.timers[b], state.node_scalars[b].n_timers
    state.node_scalars[b].n_timers += 1
    while k > 0:
        parent = (k - 1) // 2
        if heap[parent].time <= time:
            break
        heap[k].time, heap[k].job = heap[parent].time, heap[parent].job
        k = parent
    heap[k].time, heap[k].job = time, j


@inner
def _pop_timer(state: ClusterState, b: int) -> int:
    """Drop the earliest timer and return its job."""
    heap = state.timers[b]
    j = heap[0].job
    state.node_scalars[b].n_timers -= 1
    n = state.node_scalars[b].n_timers
    time, job = heap[n].time, heap[n].job
    k = 0
    while True:
        child = 2 * k + 1
        if child >= n:
            break
        if child + 1 < n and heap[child + 1].time < heap[child].time:
            child += 1
        if heap[child].time >= time:
            break
        heap[k].time, heap[k].job = heap[child].time, heap[child].job
        k = child
    heap[k].time, heap[k].job = time, job
    return int(j)


@inner
def _singleton_waits(state: ClusterState, b: int, j: int) -> bool:
    """Tell whether a job of the same user and name runs, or an earlier one has not ended."""
    g = state.node_jobs[b, j].group
    if state.group_running[b, g] > 0:
        return True
    k = state.group_pending[b, g]
    last = state.group_first[b, g + 1]
    while k < last:
        i = state.group_members[b, k]
        if state.jobs[b, i].end < 0 and state.node_jobs[b, i].gone == NOT_GONE:
            break
        k += 1
    state.group_pending[b, g] = k
    return bool(state.group_members[b, k] < j)


@inline
def _started_or_left(state: ClusterState, b: int, j: int) -> int:
    """Return since when `after` job `j` counts: its start, or when it was cancelled; -1: not yet."""
    start = first_start(state, b, j)
    if start < 0 and state.node_jobs[b, j].gone == GONE_CANCELLED:
        return int(state.node_jobs[b, j].never_at)
    return int(start)


@inline
def _of_condition(state: ClusterState, b: int, j: int, k: int) -> int:
    """Return whether one condition of job `j` is met."""
    condition = state.conditions[b, k]
    if condition.kind == SINGLETON:
        return _OPEN if _singleton_waits(state, b, j) else _MET
    parent = condition.parent
    if parent < 0:
        return _MET
    gone = state.node_jobs[b, parent].gone
    if gone == GONE_REFUSED:
        return _MET
    job = state.jobs[b, parent]
    if condition.kind == AFTER:
        since = _started_or_left(state, b, parent)
        return _MET if since >= 0 and state.scalars[b].now >= since + condition.delay else _OPEN
    if job.end < 0 and gone == NOT_GONE:
        return _OPEN
    if condition.kind == AFTER_ANY:
        return _MET
    succeeded = gone == NOT_GONE and state.node_jobs[b, parent].succeeds
    return _MET if bool(succeeded) == (condition.kind == AFTER_OK) else _IMPOSSIBLE


@inline
def _counts(state: ClusterState, b: int, k: int) -> bool:
    """Tell whether the parent of a condition is there: not one that was refused, or is unknown."""
    parent = state.conditions[b, k].parent
    return bool(parent >= 0 and state.node_jobs[b, parent].gone != GONE_REFUSED)


@inner
def _of_conditions(state: ClusterState, b: int, j: int) -> int:
    """Return whether the conditions of job `j` are met: all, or of `any_is_enough` those of one part.

    Of an array as a parent for `afternotok` one task is enough, when all have ended; refused ones are none.
    """
    job = state.node_jobs[b, j]
    whole = _IMPOSSIBLE if job.any_is_enough else _MET
    k = job.first_condition
    while k < job.last_condition:
        part = state.conditions[b, k].part
        kind = state.conditions[b, k].kind
        met = opened = failed = 0
        while k < job.last_condition and state.conditions[b, k].part == part:
            result = _of_condition(state, b, j, k)
            met += result == _MET and _counts(state, b, k)
            opened += result == _OPEN
            failed += result == _IMPOSSIBLE
            k += 1
        result = _MET
        if opened > 0:
            result = _OPEN
        elif failed > 0 and (kind <= AFTER_OK or met == 0):
            result = _IMPOSSIBLE
        if kind == AFTER_OK and failed > 0:
            result = _IMPOSSIBLE
        whole = min(whole, result) if job.any_is_enough else max(whole, result)
    return whole


@inner
def _count(state: ClusterState, b: int, j: int, kind: int, sign: int) -> None:
    """Change the counters of one kind by what job `j` counts."""
    lane = state.lanes[state.node_jobs[b, j].lane]
    for k in range(lane.first, lane.last):
        of = state.counted[k]
        if of.kind == kind:
            state.counter_used[b, of.counter] += sign * state.quantity[b, j, of.quantity]


@inner
def _count_time(state: ClusterState, b: int, j: int, length: int, sign: int) -> None:
    """Change the counters of amounts x time by what job `j` counts in a length."""
    lane = state.lanes[state.node_jobs[b, j].lane]
    for k in range(lane.first, lane.last):
        of = state.counted[k]
        if of.kind == COUNT_TIME:
            amount = (length // TIME_UNIT) * state.quantity[b, j, of.quantity]
            state.counter_used[b, of.counter] += sign * amount


@inner
def limit_reached(state: ClusterState, b: int, j: int, kind: int) -> int:
    """Return the first of the counters of job `j`'s lane that it would bring above its limit, or -1.

    `kind`: COUNT_SUBMITTED, or COUNT_RUNNING, with which those of time are tested.
    """
    lane = state.lanes[state.node_jobs[b, j].lane]
    for k in range(lane.first, lane.last):
        of = state.counted[k]
        if of.tested and (of.kind == COUNT_SUBMITTED) == (kind == COUNT_SUBMITTED):
            amount = state.quantity[b, j, of.quantity]
            if of.kind == COUNT_TIME:
                amount *= state.jobs[b, j].est_wait // TIME_UNIT
            if state.counter_used[b, of.counter] + amount > limit_of(state, b, k):
                return k
    return -1


@inner
def lane_is_exhausted(state: ClusterState, b: int, g: int) -> bool:
    """Tell whether certainly no job of a lane may start: its partition is down, or a limit is reached."""
    lane = state.lanes[g]
    if lane_is_down(state, b, g):
        return True
    for k in range(lane.first, lane.last):
        of = state.counted[k]
        if (
            of.tested
            and of.kind == COUNT_RUNNING
            and state.counter_used[b, of.counter] + state.lane_least[g, of.quantity] > limit_of(state, b, k)
        ):
            return True
    return False


@inner
def is_eligible(state: ClusterState, b: int, j: int) -> bool:
    """Tell whether only resources hold job `j`, which is in its lane."""
    if state.node_jobs[b, j].is_singleton and _of_conditions(state, b, j) != _MET:
        return False  # of the same user and name, another one has started since
    if not may_start(state, b, j):
        return False
    return limit_reached(state, b, j, COUNT_RUNNING) < 0


@inline
def _hold(state: ClusterState, b: int, j: int, kind: int) -> None:
    """Let submitted job `j` wait for something else from now on: one of HELD_*, or NOT_HELD."""
    state.held_jobs[b, state.node_jobs[b, j].held] -= 1
    state.held_jobs[b, kind] += 1
    state.node_jobs[b, j].held = kind


@inner
def _enter_lane(state: ClusterState, b: int, j: int) -> None:
    """Job `j` is eligible from now on: hold, begin time and dependencies allow it."""
    job, more = state.jobs[b, j], state.node_scalars[b]
    of = state.node_jobs[b, j]
    job.submit = state.scalars[b].now
    more.n_released += 1
    note_eligible(state, b, j)
    if of.for_ever > 0:
        _hold(state, b, j, HELD_FOR_EVER)
        return
    _hold(state, b, j, NOT_HELD)
    more.n_held -= 1
    which = state.scratch[0]
    which[0] = j
    expect(state, b, j)
    if not state.switches[0].dynamic_order:
        evaluate(state, b, state.program, which, 1)
        set_key(state, b, j, state.stack[0, 0])
    if state.switches[0].own_candidate_order:
        evaluate(state, b, state.alt_program, which, 1)
        job.alt = state.stack[0, 0]
    insert_in_lane(state, b, j)
    if more.blocked_since > 0 and not _is_blocked_too(state, b, j):
        more.blocked_since = 0


@inline
def _keeps_blocked(state: ClusterState) -> bool:
    rules = state.switches[0]
    if rules.backfill != EASY or rules.agent_backfill == 0 or rules.guard > 0:
        return False
    return not (
        rules.agent_pick > 0
        or rules.agent_inspect > 0
        or rules.dynamic_order > 0
        or rules.head_locked > 0
        or rules.head_first > 0
        or rules.start_gap > 0
    )


@inline
def _changes_with_time(_state: ClusterState) -> bool:
    return False


#: Whether jobs that no free node holds change nothing until a job ends: no pass need look at them. A guarded
#: backfilling depends on the reservations, too, and what a calendar does may come at any time.
keeps_blocked = by_type(_keeps_blocked, _changes_with_time, TimedState)


@inline
def _cannot_start_either(state: ClusterState, b: int, j: int) -> bool:
    """Tell whether job `j`, new in its lane, cannot start either, and is not the head of its partition."""
    head = state.heads[b, state.lanes[state.node_jobs[b, j].lane].partition]
    if head.job < 0 or head.n < 0 or not precedes(state.jobs[b], head.job, j):
        return False
    shape = state.node_jobs[b, j].shape_number
    return not is_eligible(state, b, j) or choose_now(state, b, shape) < 0


@inline
def _fits_perhaps(_state: ClusterState, _b: int, _j: int) -> bool:
    return False


_is_blocked_too = by_type(_cannot_start_either, _fits_perhaps, TimedState)  # there no pass is left out


@inner
def consider(state: ClusterState, b: int, j: int) -> None:
    """Let job `j`, which is submitted and held, into its lane if nothing holds it any more."""
    job = state.node_jobs[b, j]
    if job.held == NOT_HELD or job.held == HELD_FOR_EVER:
        return
    if is_user_held(state, b, j):
        return
    if job.begin > state.scalars[b].now:
        _hold(state, b, j, HELD_UNTIL)
        return
    _hold(state, b, j, HELD_BY_JOBS)
    if job.first_condition < job.last_condition:
        result = _of_conditions(state, b, j)
        if result == _IMPOSSIBLE and job.never_at < 0:
            job.never_at = state.scalars[b].now
        if result == _IMPOSSIBLE and state.node_switches[0].kills_invalid:
            leave(state, b, j, GONE_CANCELLED)
        if result != _MET:
            return
    _enter_lane(state, b, j)


@inner
def enter(state: ClusterState, b: int, j: int) -> None:
    """Job `j` is submitted: it is refused, held, or comes to its lane."""
    job, more = state.node_jobs[b, j], state.node_scalars[b]
    note_submission(state, b, j)
    note_submitted(state, b, j)
    refuse_if_closed(state, b, j)
    beyond = limit_reached(state, b, j, COUNT_SUBMITTED)
    if job.refuse == 0 and beyond >= 0:
        job.refuse = 1 + state.counted[beyond].reason
    if job.refuse > 0:
        more.blocked_since = 0  # of a singleton it was the one before
        job.gone = GONE_REFUSED
        job.held = HELD_FOR_EVER
        note_gone(state, b, j)
        tell_children(state, b, j)
        return
    _count(state, b, j, COUNT_SUBMITTED, 1)
    _hold(state, b, j, HELD_BY_JOBS)
    more.n_held += 1
    if job.begin > state.scalars[b].now:
        _hold(state, b, j, HELD_UNTIL)
        if job.begin < NEVER:
            push_timer(state, b, job.begin, j)
    for k in range(job.first_condition, job.last_condition):
        condition = state.conditions[b, k]
        if condition.kind == AFTER and condition.parent >= 0:
            since = _started_or_left(state, b, condition.parent)
            if since >= 0 and since + condition.delay > state.scalars[b].now:
                push_timer(state, b, since + condition.delay, j)
    if state.node_switches[0].kills_invalid and job.first_condition < job.last_condition:
        push_timer(state, b, state.scalars[b].now, j)  # cancelled after all submissions, which count it
    else:
        consider(state, b, j)


@inner
def leave(state: ClusterState, b: int, j: int, gone: int) -> None:
    """Job `j` leaves without having run; it is in no lane any more."""
    job = state.node_jobs[b, j]
    state.node_scalars[b].blocked_since = 0
    if job.held != NOT_HELD:
        state.node_scalars[b].n_held -= 1
    job.gone = gone
    _hold(state, b, j, NOT_HELD)
    job.held = HELD_FOR_EVER
    note_gone(state, b, j)
    if job.never_at < 0:
        job.never_at = state.scalars[b].now
    _count(state, b, j, COUNT_SUBMITTED, -1)
    tell_children(state, b, j)
    _tell_followers(state, b, j)
    tell_group(state, b, j)


@inner
def tell_children(state: ClusterState, b: int, j: int) -> None:
    """Job `j` has ended or left: look at the jobs that wait for it at the end of this instant's events."""
    job = state.node_jobs[b, j]
    for k in range(job.first_child, job.last_child):
        child = state.children[b, k]
        if state.node_jobs[b, child].held == HELD_BY_JOBS:
            push_timer(state, b, state.scalars[b].now, child)


@inner
def _tell_followers(state: ClusterState, b: int, j: int) -> None:
    """Job `j` has started, or was cancelled: let time run for those that wait for that."""
    job = state.node_jobs[b, j]
    for k in range(job.first_child, job.last_child):
        child = state.children[b, k]
        of = state.node_jobs[b, child]
        if of.held == HELD_BY_JOBS or of.held == HELD_UNTIL:
            for i in range(of.first_condition, of.last_condition):
                condition = state.conditions[b, i]
                if condition.parent == j and condition.kind == AFTER:
                    push_timer(state, b, state.scalars[b].now + condition.delay, child)


@inner
def tell_group(state: ClusterState, b: int, j: int) -> None:
    """A job of a group has ended or left: look at those of the group that wait for all others."""
    g = state.node_jobs[b, j].group
    if g < 0:
        return
    for k in range(state.group_pending[b, g], state.group_first[b, g + 1]):
        i = state.group_members[b, k]
        if state.node_jobs[b, i].held == HELD_BY_JOBS and state.node_jobs[b, i].is_singleton:
            push_timer(state, b, state.scalars[b].now, i)
            return  # the others wait for this one


@inner
def count_start(state: ClusterState, b: int, j: int) -> None:
    """Job `j` starts: count it, and let time run for those that wait for its start."""
    job = state.node_jobs[b, j]
    note_start(state, b, j)
    _count(state, b, j, COUNT_RUNNING, 1)
    _count_time(state, b, j, state.jobs[b, j].est_wait, 1)
    if job.group >= 0:
        state.group_running[b, job.group] += 1
    _tell_followers(state, b, j)


@inner
def count_stop(state: ClusterState, b: int, j: int) -> None:
    """Job `j`, which ran, has stopped now: it counts no more as one that runs."""
    job, of = state.jobs[b, j], state.node_jobs[b, j]
    _count(state, b, j, COUNT_RUNNING, -1)
    _count_time(state, b, j, job.est_wait, -1)
    _count_time(state, b, j, state.scalars[b].now - job.start - stood(state, b, j), 1)
    if of.group >= 0:
        state.group_running[b, of.group] -= 1
    tell_group(state, b, j)


@inner
def count_end(state: ClusterState, b: int, j: int) -> None:
    _count(state, b, j, COUNT_SUBMITTED, -1)
    count_stop(state, b, j)
    tell_children(state, b, j)


@inner
def wait_again(state: ClusterState, b: int, j: int, delay: int) -> None:
    """Job `j`, which ran and has stopped, waits again: for a time, or for resources at once."""
    job, now = state.node_jobs[b, j], state.scalars[b].now
    state.node_scalars[b].n_held += 1
    job.held = HELD_UNTIL
    if delay > 0:
        job.begin = max(job.begin, now + delay)
        push_timer(state, b, now + delay, j)
    else:
        _enter_lane(state, b, j)


@inner
def release_due(state: ClusterState, b: int) -> int:
    """Look at all jobs whose times have come; return how many became eligible since the last pass."""
    more = state.node_scalars[b]
    while more.n_timers > 0 and state.timers[b, 0].time <= state.scalars[b].now:
        consider(state, b, _pop_timer(state, b))
    n = more.n_released
    more.n_released = 0
    return int(n)
