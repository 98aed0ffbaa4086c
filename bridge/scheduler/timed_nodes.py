"""Nodes one by one: which a job has, which are out of service, which a reservation keeps for others.

Where nothing changes in time, classes count their nodes, and nobody asks which node is which.
"""

from bridge.base.arrays import Array
from bridge.base.jit import by_type, inline, inner
from bridge.scheduler.acting_state import ActingNodes
from bridge.scheduler.action_state import SPECULATES, VISITS
from bridge.scheduler.cluster_state import ALL_OF_IT, UNCOUNTED, ClusterState
from bridge.scheduler.fitting import note_change
from bridge.scheduler.running_jobs import first_place, job_at, next_place
from bridge.scheduler.state import NEVER
from bridge.scheduler.timed_state import MODE_SUSPEND, SUSPENDED, TimedState


# ---- reservations: `set_bars` for a job and a time, then `is_barred` of each class ---------------
@inline
def _no_bars(_state: ClusterState, _b: int, _j: int, _time: int) -> None:
    pass


@inner
def _set_bars(state: TimedState, b: int, j: int, time: int) -> None:
    now = state.scalars[b].now
    own, end = state.timed_jobs[b, j].reservation, time + state.jobs[b, j].est_wait
    state.mark[0] += 1
    for v in range(state.reservations.shape[0]):
        reservation = state.reservations[v]
        if v == own:
            bars = not reservation.begin <= time < reservation.end
        else:
            bars = reservation.announced <= now and time < reservation.end and reservation.begin < end
        if bars:
            for c in range(state.is_reserved.shape[1]):
                if state.is_reserved[v, c]:
                    state.barred[c] = state.mark[0]


#: Keep job `j`, if it started at a time, from nodes that reservations known now have for others.
set_bars = by_type(_no_bars, _set_bars, TimedState)


@inline
def _never_barred(_state: ClusterState, _b: int, _c: int) -> bool:
    return False


@inline
def _is_barred(state: TimedState, _b: int, c: int) -> bool:
    return bool(state.barred[c] == state.mark[0])


#: Whether a reservation keeps the job of the last `set_bars` from class `c`.
is_barred = by_type(_never_barred, _is_barred, TimedState)


@inline
def _no_moment(_state: ClusterState, _b: int, _time: int) -> int:
    return NEVER


@inner
def _next_moment(state: TimedState, b: int, time: int) -> int:
    now, moment = state.scalars[b].now, NEVER
    for v in range(state.reservations.shape[0]):
        reservation = state.reservations[v]
        if reservation.announced <= now and reservation.end > time:
            moment = min(moment, reservation.end)
    if state.timed_scalars[b].n_graces > 0:
        place = first_place(state, b)
        while job_at(state, b, place) >= 0:
            end = state.timed_jobs[b, job_at(state, b, place)].grace_end
            if end > time:
                moment = min(moment, end)
            place = next_place(state.run_job[b], place)
    return int(moment)


#: The first end of a known reservation, or of a grace, after a time.
next_moment = by_type(_no_moment, _next_moment, TimedState)


# ---- nodes of entries ----------------------------------------------------------------------------
@inline
def _always_returns(_state: ClusterState, _b: int, _entry: int) -> bool:
    return True


@inline
def _returns(state: TimedState, b: int, entry: int) -> bool:
    return not state.node_is_out[b, state.entry_node[b, entry]]


#: Whether what an entry of a job has is free when the job ends: its node is in service.
returns = by_type(_always_returns, _returns, TimedState)


@inline
def is_empty(state: ClusterState, b: int, c: int) -> int:
    """Return 1 if nobody has anything of the single node of class `c`, else 0."""
    for r in range(state.free_node.shape[2]):
        if state.free_node[b, c, r] < state.node_amounts[c, r]:
            return 0
    return 1


@inner
def _change_cores(state: TimedState, b: int, c: int, cores: int) -> None:
    row = state.classes[c]
    for i in range(row.first_partition, row.last_partition):
        state.room[b, state.class_partitions[i]] += cores


@inner
def _show_node(state: TimedState, b: int, c: int, node: int) -> None:
    """Let the free amounts of a single node be what its state and its jobs leave."""
    note_change(state, b, c, 0)
    whole, cores = is_empty(state, b, c), state.free_node[b, c, 0]
    for r in range(state.free_node.shape[2]):
        left = state.node_amounts[c, r] - state.held_amounts[b, c, r]
        state.free_node[b, c, r] = 0 if state.node_is_out[b, node] else left
    state.free[b, 0] += is_empty(state, b, c) - whole
    _change_cores(state, b, c, state.free_node[b, c, 0] - cores)


@inline
def _change_count(state: TimedState, b: int, c: int, nodes: int) -> None:
    note_change(state, b, c, nodes)
    state.free_node[b, c, 0] += nodes
    state.free[b, 0] += nodes
    _change_cores(state, b, c, nodes * state.node_amounts[c, 0])


@inline
def taken_amount(state: TimedState, shape: int, c: int, units: int, r: int) -> int:
    """Return how much of amount `r` a demand has on the single node of class `c`."""
    full = state.node_amounts[c, r]
    if state.shapes[shape].whole:
        return int(full)
    amount = state.vectors[shape, r]
    if amount == ALL_OF_IT:
        return int(full) if full < UNCOUNTED else 0
    return int(amount * units)


@inline
def stays_suspended(state: TimedState, c: int, r: int) -> bool:
    """Tell whether a suspended job keeps amount `r` of a single node: all but cores, where it is counted."""
    return bool(r > 0 and state.node_amounts[c, r] < UNCOUNTED)


@inner
def _hold_entry(state: TimedState, b: int, j: int, entry: int, sign: int, part: int) -> None:
    c, node = state.entry_class[b, entry], state.entry_node[b, entry]
    if state.classes[c].counted:
        if part < 2:
            state.node_holder[b, node] = j if sign > 0 else -1
            if not state.node_is_out[b, node]:
                _change_count(state, b, c, -sign)
        return
    shape, units = state.node_jobs[b, j].shape_number, state.entry_units[b, entry]
    for r in range(state.free_node.shape[2]):
        if part == 0 or stays_suspended(state, c, r) == (part == 2):
            state.held_amounts[b, c, r] += sign * taken_amount(state, shape, c, units, r)
    _show_node(state, b, c, node)


@inner
def _hold_on_idle(state: ActingNodes, b: int, j: int, entry: int, sign: int) -> None:
    """Let job `j` have what an entry says of a node that counts as free, or not any more (`sign` -1)."""
    c, node = state.entry_class[b, entry], state.entry_node[b, entry]
    if state.classes[c].counted:
        state.speculator[b, node] = j if sign > 0 else -1
    if not state.node_is_out[b, node]:
        _count_on_idle(state, b, j, entry, sign)


@inline
def _count_on_idle(state: ActingNodes, b: int, j: int, entry: int, sign: int) -> None:
    c, units = state.entry_class[b, entry], state.entry_units[b, entry]
    shape = state.node_jobs[b, j].shape_number
    if state.classes[c].counted:
        state.on_idle[b, c, 0] += sign
        return
    for r in range(state.on_idle.shape[2]):
        state.on_idle[b, c, r] += sign * taken_amount(state, shape, c, units, r)


@inner
def _hold_as_it_runs(state: ActingNodes, b: int, j: int, entry: int, sign: int, part: int) -> None:
    if state.lives[b, j].does == SPECULATES:
        _hold_on_idle(state, b, j, entry, sign)
    elif state.lives[b, j].does != VISITS:  # a guest has what its hosts have
        _hold_entry(state, b, j, entry, sign, part)


#: Let job `j` have what an entry says (`sign` 1), or not any more (-1). `part`: 0 all of it; 1 what a
#: suspended job does not keep; 2 what it keeps.
hold_entry = by_type(_hold_entry, _hold_as_it_runs, ActingNodes)


@inline
def _nobody_on_idle(_state: TimedState, _b: int) -> None:
    pass


@inner
def _recount_on_idle(state: ActingNodes, b: int) -> None:
    for c in range(state.on_idle.shape[1]):
        for r in range(state.on_idle.shape[2]):
            state.on_idle[b, c, r] = 0
    for k in range(state.acts[b].n_limited):
        j = state.limited[b, k]
        entry = state.node_jobs[b, j].allocation
        while entry >= 0 and state.lives[b, j].does == SPECULATES:
            if _returns(state, b, entry):
                _count_on_idle(state, b, j, entry, 1)
            entry = state.entry_next[b, entry]


#: A node has left service or come back: count anew what jobs have of nodes that count as free.
_recount = by_type(_nobody_on_idle, _recount_on_idle, ActingNodes)


@inner
def set_node(state: TimedState, b: int, node: int, is_out: int) -> None:
    """Take a node out of service, or bring it back."""
    if state.node_is_out[b, node] == is_out:
        return
    state.node_is_out[b, node] = is_out
    c = state.node_class[node]
    state.in_service[b, c] += -1 if is_out else 1
    if not state.classes[c].counted:
        _show_node(state, b, c, node)
    elif state.node_holder[b, node] < 0:
        _change_count(state, b, c, -1 if is_out else 1)
    state.node_scalars[b].releases += 1
    _recount(state, b)


@inline
def _is_free_node(state: TimedState, b: int, _j: int, node: int) -> bool:
    return bool(state.node_holder[b, node] < 0 and not state.node_is_out[b, node])


@inline
def _is_idle_or_lent(state: ActingNodes, b: int, j: int, node: int) -> bool:
    if state.lives[b, j].does == VISITS:
        return bool(state.node_mark[node] == state.mark[0])
    return bool(_is_free_node(state, b, j, node) and state.speculator[b, node] < 0)


#: Whether job `j` can start on a node of a counted class: nobody has it, or a host lends it to this guest.
_can_take = by_type(_is_free_node, _is_idle_or_lent, ActingNodes)


@inner
def allocate_nodes(state: TimedState, b: int, j: int, n: int) -> None:
    """Give job `j` the `n` chosen classes: of counted ones their free nodes of lowest index."""
    more, job = state.node_scalars[b], state.node_jobs[b, j]
    job.allocation = -1
    for k in range(n):
        c, units = state.chosen_classes[k], state.chosen_units[k]
        counted = state.classes[c].counted
        at = state.class_first[c]
        left = units if counted else 1
        while left > 0:
            node = state.class_nodes[at]
            if not counted or _can_take(state, b, j, node):
                entry = more.free_entry
                more.free_entry = state.entry_next[b, entry]
                state.entry_class[b, entry] = c
                state.entry_units[b, entry] = 1 if counted else units
                state.entry_node[b, entry] = node
                state.entry_next[b, entry] = job.allocation
                job.allocation = entry
                hold_entry(state, b, j, entry, 1, 0)
                left -= 1
            at += 1


@inner
def release_nodes(state: TimedState, b: int, j: int) -> None:
    """Take back what job `j`, running or suspended, has."""
    more, job = state.node_scalars[b], state.node_jobs[b, j]
    entry = job.allocation
    while entry >= 0:
        hold_entry(state, b, j, entry, -1, 2 if state.timed_jobs[b, j].doing == SUSPENDED else 0)
        behind = state.entry_next[b, entry]
        state.entry_next[b, entry] = more.free_entry
        more.free_entry = entry
        entry = behind
    job.allocation = -1
    more.releases += 1


@inner
def change_by_victim(state: TimedState, b: int, base: Array, v: int, sign: int) -> None:
    """Give back to some amounts [C, R] what preempting job `v` would free, or take it (`sign` -1)."""
    entry, shape = state.node_jobs[b, v].allocation, state.node_jobs[b, v].shape_number
    suspends = state.timed_jobs[b, v].mode == MODE_SUSPEND
    while entry >= 0:
        c = state.entry_class[b, entry]
        if _returns(state, b, entry):
            if state.classes[c].counted:
                base[c, 0] += sign
            else:
                units = state.entry_units[b, entry]
                for r in range(base.shape[1]):
                    if not suspends or not stays_suspended(state, c, r):
                        base[c, r] += sign * taken_amount(state, shape, c, units, r)
        entry = state.entry_next[b, entry]
