"""Conservative backfilling on a cluster: every eligible job, in queue order, is booked at its first hole.

A profile holds what is free of each class from a time on, by believed ends and by the bookings so far: steps
that are linked in order of time. Only where something gets free, or an advance reservation ends, a job's hole
may begin. Jobs behind the last one that might start now need no booking.
"""

from bridge.base.jit import by_type, inline, inner, kernel
from bridge.scheduler.cluster_state import ClusterState
from bridge.scheduler.decisions import PHASE_IDLE
from bridge.scheduler.eligibility import is_eligible, lane_is_exhausted
from bridge.scheduler.heads import may_fit, note_head
from bridge.scheduler.lanes import list_lanes
from bridge.scheduler.node_actions import end_actions
from bridge.scheduler.node_starts import start_on_chosen
from bridge.scheduler.placement import change_base, potential, select
from bridge.scheduler.queue import BY_ORDER, sort_jobs
from bridge.scheduler.running_jobs import first_place, next_place
from bridge.scheduler.state import HOW_BACKFILLED, NEVER, SECOND, STARTED_AS_HEAD
from bridge.scheduler.timed_nodes import next_moment, returns, set_bars
from bridge.scheduler.timed_state import TimedState

_NONE = -1


@inline
def _add_step(state: ClusterState, b: int, before: int, time: int) -> int:
    """Add a step behind another one, in which the same is free; return its number."""
    more = state.node_scalars[b]
    k = more.n_steps
    more.n_steps += 1
    state.steps[k].time, state.steps[k].is_candidate = time, 0
    state.steps[k].next = state.steps[before].next
    state.steps[before].next = k
    for c in range(state.step_free.shape[1]):
        for r in range(state.step_free.shape[2]):
            state.step_free[k, c, r] = state.step_free[before, c, r]
    return int(k)


@inner
def _step_at(state: ClusterState, b: int, k: int, time: int) -> int:
    """Return the step that begins at a time, which is added if there is none; `k`: one not behind it."""
    while True:
        behind = state.steps[k].next
        if behind < 0 or state.steps[behind].time > time:
            break
        k = behind
    return int(k) if state.steps[k].time == time else _add_step(state, b, k, time)


@inner
def _release_at(state: ClusterState, b: int, k: int, j: int) -> None:
    """Let what running job `j` has be free in a step, which is the last one."""
    entry, shape = state.node_jobs[b, j].allocation, state.node_jobs[b, j].shape_number
    while entry >= 0:
        if returns(state, b, entry):
            c, units = state.entry_class[b, entry], state.entry_units[b, entry]
            change_base(state, state.step_free[k], shape, c, units, 1)
        entry = state.entry_next[b, entry]


@inner
def _build_steps(state: ClusterState, b: int) -> None:
    """Build the profile from what is free and the believed ends of running jobs."""
    now, first = state.scalars[b].now, state.steps[0]
    first.time, first.next, first.is_candidate = now, _NONE, 1
    for c in range(state.step_free.shape[1]):
        for r in range(state.step_free.shape[2]):
            state.step_free[0, c, r] = state.free_node[b, c, r]
    state.node_scalars[b].n_steps = 1
    ends, which = state.run_end[b], state.run_job[b]
    late = place = first_place(state, b)
    while ends[place] <= now:  # past their estimates: they end in a second
        place = next_place(which, place)
    behind, k = place, 0
    while late != behind or ends[place] < NEVER:
        end = ends[place]
        is_late = late != behind and now + SECOND <= end
        if is_late:
            end = now + SECOND
        if state.steps[k].time != end:
            k = _add_step(state, b, k, end)
            state.steps[k].is_candidate = 1
        if is_late:
            while late != behind:
                _release_at(state, b, k, which[late])
                late = next_place(which, late)
        else:
            _release_at(state, b, k, which[place])
            place = next_place(which, place)
    moment = next_moment(state, b, now)
    while moment < NEVER and state.node_scalars[b].n_steps < state.steps.shape[0]:
        state.steps[_step_at(state, b, 0, moment)].is_candidate = 1
        moment = next_moment(state, b, moment)


@inner
def _may_fit_at(state: ClusterState, b: int, shape: int, k: int) -> bool:
    """Tell whether enough is free for a demand in a step, wherever its nodes are."""
    row, has = state.shapes[shape], 0
    need = max(row.nodes, row.tasks)
    for i in range(row.first, row.last):
        has += potential(state, b, shape, state.set_classes[i], state.step_free[k])
        if has >= need:
            return True
    return False


@inner
def _fits_from(state: ClusterState, b: int, j: int, k: int) -> int:
    """Choose classes for job `j` from step `k` on, for as long as it is believed to run; -1: none."""
    shape, base = state.node_jobs[b, j].shape_number, state.work_free
    row, time = state.shapes[shape], state.steps[k].time
    end = time + state.jobs[b, j].est_wait
    first = True
    while k >= 0 and (first or state.steps[k].time < end):
        if not _may_fit_at(state, b, shape, k):
            return _NONE
        for i in range(row.first, row.last):
            c = state.set_classes[i]
            for r in range(base.shape[1]):
                amount = state.step_free[k, c, r]
                base[c, r] = amount if first else min(base[c, r], amount)
        first = False
        k = state.steps[k].next
    set_bars(state, b, j, time)
    return select(state, b, shape, base, False)


@inline
def _has_none(_state: ClusterState, _b: int, _j: int) -> bool:
    return False


@inline
def _has_own(state: TimedState, b: int, j: int) -> bool:
    return bool(state.timed_jobs[b, j].reservation >= 0)


_has_reservation = by_type(_has_none, _has_own, TimedState)


@inner
def _first_hole(state: ClusterState, b: int, j: int) -> int:
    """Return the step at which job `j` has its first hole, with what is chosen for it; -1: it has none."""
    hole, length = state.holes[state.node_jobs[b, j].shape_number], state.jobs[b, j].est_wait
    row = state.shapes[state.node_jobs[b, j].shape_number]
    alike = not (row.nodes > 0 and row.tasks > 0) and not _has_reservation(state, b, j)
    since = 0
    if alike and hole.look == state.node_scalars[b].pass_number and length >= hole.length:
        since = hole.time  # one like it, no longer, has no hole before
    k = 0
    while k >= 0:
        is_possible = state.steps[k].is_candidate > 0 and state.steps[k].time >= since
        if is_possible and _fits_from(state, b, j, k) >= 0:
            break
        k = state.steps[k].next
    if alike:
        hole.look, hole.length = state.node_scalars[b].pass_number, length
        hole.time = state.steps[k].time if k >= 0 else NEVER
    return int(k)


@inner
def _book(state: ClusterState, b: int, j: int, k: int, n: int, length: int) -> None:
    """Take what was chosen for job `j` out of the profile from step `k` on."""
    shape, end = state.node_jobs[b, j].shape_number, state.steps[k].time + length
    last = _step_at(state, b, k, end)
    state.steps[last].is_candidate = 1
    while k != last:
        for i in range(n):
            c, units = state.chosen_classes[i], state.chosen_units[i]
            change_base(state, state.step_free[k], shape, c, units, -1)
        k = state.steps[k].next


@inline
def _may_start(state: ClusterState, b: int, j: int) -> bool:
    return not lane_is_exhausted(state, b, state.node_jobs[b, j].lane) and is_eligible(state, b, j)


@kernel
def book_in_order(state: ClusterState, b: int) -> None:
    """Carry a pass out: book each eligible job in queue order at its first hole; a hole now is a start."""
    _book_all(state, b)
    end_actions(state, b)


@inner
def _book_all(state: ClusterState, b: int) -> None:
    env, more, which = state.scalars[b], state.node_scalars[b], state.scratch[2]
    n = list_lanes(state, b, which)
    sort_jobs(state.jobs[b], which, state.scratch[1], n, BY_ORDER)
    env.phase = PHASE_IDLE
    env.head = -1
    while n > 0 and not (
        may_fit(state, b, state.node_jobs[b, which[n - 1]].shape_number)
        and _may_start(state, b, which[n - 1])
    ):
        n -= 1
    blocked = -1
    if n > 0:
        if env.n_running + 2 > state.steps.shape[0]:
            more.overflow = 1
            return
        _build_steps(state, b)
    for i in range(n):
        j = which[i]
        if not _may_start(state, b, j):
            continue
        if more.n_steps + 2 > state.steps.shape[0]:
            more.overflow = 1
            return
        k = _first_hole(state, b, j)
        if k == 0:
            chosen = _fits_from(state, b, j, 0)
            _book(state, b, j, 0, chosen, state.jobs[b, j].est_run)
            start_on_chosen(state, b, j, chosen, HOW_BACKFILLED if blocked >= 0 else STARTED_AS_HEAD, blocked)
            continue
        if blocked < 0:
            blocked = j
            note_head(state, b, j)
            if state.jobs[b, j].reserved < 0 and k > 0:
                state.jobs[b, j].reserved = state.steps[k].time
        if k > 0:
            _book(state, b, j, k, _fits_from(state, b, j, k), state.jobs[b, j].est_wait)
