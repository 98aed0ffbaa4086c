"""Heads of partitions: each blocked head has a shadow time, nodes reserved for it then, and extra amounts.

What a job may take is bounded by the extra amounts of every head that it would outlast. Reservations are
computed when they are needed first: where nobody else fits, nobody asks for them.
"""

from bridge.base.arrays import Array
from bridge.base.jit import by_type, inline, inner
from bridge.scheduler.cluster_state import ClusterState
from bridge.scheduler.idle_nodes import select_to_start
from bridge.scheduler.placement import (
    change_base,
    potential,
    potential_now,
    select,
    select_now,
    tasks_on_empty_node,
)
from bridge.scheduler.reservation import behind_overrun
from bridge.scheduler.running_jobs import first_place, next_place
from bridge.scheduler.state import NEVER, SECOND
from bridge.scheduler.timed_nodes import next_moment, returns, set_bars
from bridge.scheduler.timed_state import TimedState

#: Heads that a number of `demand_key_beside_heads` has a bit for.
_MOST_BITS = 30


@inner
def set_caps(state: ClusterState, b: int, j: int, time: int) -> None:
    """Let ``caps`` be the heads whose shadow times lie within job `j` if it starts at a time."""
    more = state.node_scalars[b]
    more.n_caps = 0
    end = time + state.jobs[b, j].est_wait
    for k in range(more.n_reserved):
        p = state.head_order[b, k]
        if time < state.heads[b, p].shadow < end:
            state.caps[b, more.n_caps] = p
            more.n_caps += 1


@inner
def _change_by_heads(state: ClusterState, b: int, base: Array, time: int, sign: int) -> None:
    """Take what is reserved for heads at a time out of some amounts (`sign` -1), or give it back."""
    for k in range(state.node_scalars[b].n_reserved):
        p = state.head_order[b, k]
        head = state.heads[b, p]
        if head.shadow <= time < head.until:
            shape = state.node_jobs[b, head.job].shape_number
            for i in range(head.n):
                change_base(state, base, shape, state.head_classes[b, p, i], state.head_units[b, p, i], sign)


@inner
def _next_head_end(state: ClusterState, b: int, time: int) -> int:
    """Return the first end of a head's, or an advance reservation after a time, or NEVER."""
    end = NEVER
    for k in range(state.node_scalars[b].n_reserved):
        until = state.heads[b, state.head_order[b, k]].until
        if until > time:
            end = min(end, until)
    return int(min(end, next_moment(state, b, time)))


@inner
def _give_back(state: ClusterState, b: int, base: Array, shape: int, j: int) -> int:
    """Give back to some amounts what running job `j` has; return how much more of a demand fits since."""
    of, entry = state.node_jobs[b, j].shape_number, state.node_jobs[b, j].allocation
    admits, tasks = state.shapes[shape].admits, state.shapes[shape].tasks
    more = 0
    while entry >= 0:
        c, units = state.entry_class[b, entry], state.entry_units[b, entry]
        if not returns(state, b, entry):
            pass
        elif state.classes[c].counted and tasks == 0:
            base[c, 0] += units
            more += units if state.admits[admits, c] else 0
        elif state.admits[admits, c]:
            before = potential(state, b, shape, c, base)
            change_base(state, base, of, c, units, 1)
            if before == 0 or tasks > 0:  # a node holds a vector or not
                more += potential(state, b, shape, c, base) - before
        else:
            change_base(state, base, of, c, units, 1)
        entry = state.entry_next[b, entry]
    return int(more)


@inner
def _keep_reservation(state: ClusterState, b: int, p: int, time: int, chosen: int) -> None:
    """Note what was chosen for the head of partition `p` at a time; `work_free` is what is available then."""
    more, head, base = state.node_scalars[b], state.heads[b, p], state.work_free
    j = head.job
    shape = state.node_jobs[b, j].shape_number
    head.shadow = time
    head.n = max(chosen, 0)
    head.until = NEVER if time == NEVER else time + state.jobs[b, j].est_wait
    if state.jobs[b, j].reserved < 0:
        state.jobs[b, j].reserved = time
    for i in range(head.n):
        c, units = state.chosen_classes[i], state.chosen_units[i]
        state.head_classes[b, p, i], state.head_units[b, p, i] = c, units
        change_base(state, base, shape, c, units, -1)
    extra = state.head_extra[b, p]
    for c in range(base.shape[0]):
        for r in range(base.shape[1]):
            extra[c, r] = base[c, r]
    for k in range(more.n_reserved):
        g = state.head_order[b, k]
        if time < state.heads[b, g].shadow < head.until:
            for i in range(head.n):
                c, units = state.head_classes[b, p, i], state.head_units[b, p, i]
                change_base(state, state.head_extra[b, g], shape, c, units, -1)
    more.n_reserved += 1


@inner
def _reserve(state: ClusterState, b: int, p: int) -> None:
    """Reserve for the head of partition `p`: the first time at which it fits, and what it gets there."""
    env, more, head = state.scalars[b], state.node_scalars[b], state.heads[b, p]
    j = head.job
    shape = state.node_jobs[b, j].shape_number
    row, base = state.shapes[shape], state.work_free
    for c in range(base.shape[0]):
        for r in range(base.shape[1]):
            base[c, r] = state.free_node[b, c, r]
    more.n_caps = 0
    need = max(row.nodes, row.tasks)
    has = potential_now(state, b, shape, NEVER)
    ends, which = state.run_end[b], state.run_job[b]
    late, behind = first_place(state, b), behind_overrun(state, b)
    place = behind
    time = env.now
    chosen = -1
    while chosen < 0:
        end = _next_head_end(state, b, time)
        if late != behind:
            end = min(end, env.now + SECOND)
        time = min(end, ends[place])
        if time == NEVER:
            break
        while late != behind and env.now + SECOND <= time:
            has += _give_back(state, b, base, shape, which[late])
            late = next_place(which, late)
        while ends[place] <= time:
            has += _give_back(state, b, base, shape, which[place])
            place = next_place(which, place)
        if has >= need:
            set_caps(state, b, j, time)
            set_bars(state, b, j, time)
            _change_by_heads(state, b, base, time, -1)
            chosen = select(state, b, shape, base, False)
            if chosen < 0:
                _change_by_heads(state, b, base, time, 1)
            more.n_caps = 0
    _keep_reservation(state, b, p, time, chosen)


@inner
def _extend_profile(state: ClusterState, b: int) -> bool:
    """Add the next believed end to the profile of this pass; False if there is none."""
    env, more = state.scalars[b], state.node_scalars[b]
    ends, which = state.run_end[b], state.run_job[b]
    k = more.n_profile
    if k == 0:
        state.profile_time[0] = env.now
        for c in range(state.profile_nodes.shape[1]):
            state.profile_nodes[0, c] = state.free_node[b, c, 0]
        more.profile_place = behind_overrun(state, b)
        more.profile_late = more.profile_place != first_place(state, b)
        more.n_profile = 1
        return True
    end = ends[more.profile_place]
    is_late = more.profile_late > 0 and env.now + SECOND <= end
    if is_late:
        end = env.now + SECOND
    if end == NEVER:
        return False
    nodes = state.profile_nodes[k]
    for c in range(nodes.shape[0]):
        nodes[c] = state.profile_nodes[k - 1, c]
    state.profile_time[k] = end
    if is_late:
        more.profile_late = 0
        place = first_place(state, b)
        while ends[place] <= env.now:
            _release_nodes(state, b, nodes, which[place])
            place = next_place(which, place)
    while ends[more.profile_place] == end:
        _release_nodes(state, b, nodes, which[more.profile_place])
        more.profile_place = next_place(which, more.profile_place)
    more.n_profile = k + 1
    return True


@inline
def _release_nodes(state: ClusterState, b: int, nodes: Array, j: int) -> None:
    """Add the nodes of running job `j` to numbers of free nodes [C]."""
    entry = state.node_jobs[b, j].allocation
    while entry >= 0:
        if returns(state, b, entry):
            nodes[state.entry_class[b, entry]] += state.entry_units[b, entry]
        entry = state.entry_next[b, entry]


@inner
def _has_enough(state: ClusterState, shape: int, k: int) -> bool:
    """Tell whether step `k` of the profile has as many nodes, or tasks, as a demand needs at least."""
    row = state.shapes[shape]
    has = 0
    for i in range(row.first, row.last):
        c = state.set_classes[i]
        nodes = state.profile_nodes[k, c]
        has += nodes if row.tasks == 0 or nodes <= 0 else nodes * tasks_on_empty_node(state, shape, c)
    return bool(has >= max(row.nodes, row.tasks))


@inner
def _list_reserved(state: ClusterState, b: int, time: int) -> int:
    """Write to ``reserved_nodes`` what heads have at a time; return until when that holds."""
    nodes, change = state.reserved_nodes, NEVER
    for c in range(nodes.shape[0]):
        nodes[c] = 0
    for k in range(state.node_scalars[b].n_reserved):
        p = state.head_order[b, k]
        head = state.heads[b, p]
        if time < head.shadow:
            change = min(change, head.shadow)
        elif time < head.until:
            change = min(change, head.until)
            for i in range(head.n):
                nodes[state.head_classes[b, p, i]] += state.head_units[b, p, i]
    return int(change)


@inner
def _has_enough_beside(state: ClusterState, shape: int, k: int) -> bool:
    """Tell whether step `k` of the profile has nodes enough beside the reserved ones; yes of any tasks."""
    row = state.shapes[shape]
    if row.tasks > 0:
        return True
    has = 0
    for i in range(row.first, row.last):
        c = state.set_classes[i]
        has += max(state.profile_nodes[k, c] - state.reserved_nodes[c], 0)
    return bool(has >= row.nodes)


@inner
def _reserve_counted(state: ClusterState, b: int, p: int) -> None:
    """Do as `_reserve` where no node is shared: by the profile that all heads of a pass have in common."""
    more, j = state.node_scalars[b], state.heads[b, p].job
    shape, base = state.node_jobs[b, j].shape_number, state.work_free
    if more.n_profile == 0:
        _extend_profile(state, b)
    there = True
    while there and not _has_enough(state, shape, more.n_profile - 1):
        there = _extend_profile(state, b)
    low, high = 0, more.n_profile - 1
    while low < high:  # what is free only grows
        middle = (low + high) // 2
        if _has_enough(state, shape, middle):
            high = middle
        else:
            low = middle + 1
    time = state.profile_time[low] if there else NEVER
    chosen, end, change = -1, time, time
    while time != NEVER:
        if time >= change:
            change = _list_reserved(state, b, time)
        if time > state.scalars[b].now and _has_enough_beside(state, shape, low):
            for c in range(base.shape[0]):
                base[c, 0] = state.profile_nodes[low, c] - state.reserved_nodes[c]
            set_caps(state, b, j, time)
            set_bars(state, b, j, time)
            chosen = select(state, b, shape, base, False)
            more.n_caps = 0
            if chosen >= 0:
                break
        if time >= end:
            end = _next_head_end(state, b, time)
        behind = NEVER
        if low + 1 < more.n_profile or _extend_profile(state, b):
            behind = state.profile_time[low + 1]
        time = min(end, behind)
        if time == behind:
            low += 1
    _keep_reservation(state, b, p, time, chosen)


@inner
def reserve_heads(state: ClusterState, b: int) -> None:
    """Compute the reservations of all heads that have none yet, in the order in which they became heads."""
    more = state.node_scalars[b]
    while more.n_reserved < more.n_heads:
        if state.node_switches[0].all_counted:
            _reserve_counted(state, b, state.head_order[b, more.n_reserved])
        else:
            _reserve(state, b, state.head_order[b, more.n_reserved])


@inline
def note_head(state: ClusterState, b: int, j: int) -> None:
    """Note since when job `j` is its partition's head."""
    if state.node_jobs[b, j].head_at < 0:
        state.node_jobs[b, j].head_at = state.scalars[b].now


@inline
def open_head(state: ClusterState, b: int, j: int) -> None:
    """Give job `j` the head slot of its partition."""
    more = state.node_scalars[b]
    p = state.lanes[state.node_jobs[b, j].lane].partition
    state.heads[b, p].job = j
    state.head_order[b, more.n_heads] = p
    more.n_heads += 1


@inner
def make_head(state: ClusterState, b: int, j: int) -> None:
    """Let blocked job `j` be its partition's head; its first shadow time is computed at once."""
    open_head(state, b, j)
    note_head(state, b, j)
    if state.jobs[b, j].reserved < 0:
        reserve_heads(state, b)


@inner
def charge_heads(state: ClusterState, b: int, j: int, n: int) -> None:
    """Take what was chosen for job `j`, which starts now, from the extra amounts of heads it outlasts."""
    shape = state.node_jobs[b, j].shape_number
    end = state.scalars[b].now + state.jobs[b, j].est_wait
    for k in range(state.node_scalars[b].n_reserved):
        p = state.head_order[b, k]
        if state.heads[b, p].shadow < end:
            for i in range(n):
                change_base(
                    state,
                    state.head_extra[b, p],
                    shape,
                    state.chosen_classes[i],
                    state.chosen_units[i],
                    -1,
                )


@inner
def may_fit(state: ClusterState, b: int, shape: int) -> bool:
    """Tell whether enough is free for a demand, wherever its nodes are; it stays false until a release.

    Of all demands but those of nodes and tasks, whose tasks are dealt out greedily, this is what `select`
    tells; there it may be true in vain.
    """
    row, releases = state.shapes[shape], state.node_scalars[b].releases
    if state.no_fit[b, shape] == releases:
        return False
    need = max(row.nodes, row.tasks)
    if potential_now(state, b, shape, need) >= need:
        return True
    state.no_fit[b, shape] = releases
    return False


@inline
def _note_fit_of_class(state: ClusterState, b: int, shape: int) -> None:
    row = state.shapes[shape]
    if row.nodes > 0 and row.tasks > 0:
        may_fit(state, b, shape)
    else:
        state.no_fit[b, shape] = state.node_scalars[b].releases


@inline
def _note_fit_in_time(state: ClusterState, b: int, shape: int) -> None:
    may_fit(state, b, shape)


#: Note, for the next time, that a demand does not fit now; some classes may be barred for a time only.
_note_no_fit = by_type(_note_fit_of_class, _note_fit_in_time, TimedState)


@inner
def choose_now(state: ClusterState, b: int, shape: int) -> int:
    """Choose classes for a demand from what is free, whatever is reserved; return how many, or -1."""
    if state.no_fit[b, shape] == state.node_scalars[b].releases:
        return -1
    state.node_scalars[b].n_caps = 0
    n = select_now(state, b, shape, False, state.shapes[shape].first)
    if n < 0:
        _note_no_fit(state, b, shape)
    return n


@inner
def fits_beside_heads(state: ClusterState, b: int, j: int, strikes: bool) -> int:
    """Choose classes for job `j` now; return how many, or -1 if it does not fit beside the heads."""
    more = state.node_scalars[b]
    shape = state.node_jobs[b, j].shape_number
    if not may_fit(state, b, shape):
        return -1
    first = more.first_fit
    if more.n_heads > 0 and not strikes:
        reserve_heads(state, b)
        set_caps(state, b, j, state.scalars[b].now)
    set_bars(state, b, j, state.scalars[b].now)
    n = select_to_start(state, b, shape, strikes, first)
    more.n_caps = 0
    return n


@inline
def _same_demand(state: ClusterState, b: int, j: int) -> int:
    return int(state.node_jobs[b, j].shape_number)


@inline
def _unlike(_state: ClusterState, _b: int, _j: int) -> int:
    return -1


#: A number that jobs have in common which fit alike now, whatever is reserved; -1: of a job like no other.
demand_key = by_type(_same_demand, _unlike, TimedState)


@inline
def demand_key_beside_heads(state: ClusterState, b: int, j: int) -> int:
    """Return such a number of jobs that fit alike beside the heads, all of which have their reservations."""
    key, more = demand_key(state, b, j), state.node_scalars[b]
    if key < 0 or more.n_reserved > _MOST_BITS:
        return -1
    now, end = state.scalars[b].now, state.scalars[b].now + state.jobs[b, j].est_wait
    for k in range(more.n_reserved):
        outlasts = now < state.heads[b, state.head_order[b, k]].shadow < end
        key = 2 * key + (1 if outlasts else 0)
    return int(key)


@inline
def partition_of_head(state: ClusterState, b: int, j: int) -> int:
    """Return the partition whose head features of job `j` speak of: its own, else the first; -1: no head."""
    if state.node_scalars[b].n_heads == 0:
        return -1
    p = state.lanes[state.node_jobs[b, j].lane].partition
    return int(p if state.heads[b, p].job >= 0 and state.heads[b, p].n >= 0 else state.head_order[b, 0])
