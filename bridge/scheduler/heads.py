"""Heads of partitions: each blocked head has a shadow time, nodes reserved for it then, and extra amounts.

What a job may take is bounded by the extra amounts of every head that it would outlast. Reservations are
computed when they are needed first: where nobody else fits, nobody asks for them.
"""

from bridge.base.arrays import Array
from bridge.base.jit import inline, inner
from bridge.scheduler.cluster_state import ClusterState
from bridge.scheduler.placement import change_base, potential, select
from bridge.scheduler.reservation import count_overrun
from bridge.scheduler.state import NEVER, SECOND


@inline
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


@inline
def _change_by_heads(state: ClusterState, b: int, base: Array, time: int, sign: int) -> None:
    """Take what is reserved for heads at a time out of some amounts (`sign` -1), or give it back."""
    for k in range(state.node_scalars[b].n_reserved):
        p = state.head_order[b, k]
        head = state.heads[b, p]
        if head.shadow <= time < head.until:
            shape = state.node_jobs[b, head.job].shape_number
            for i in range(head.n):
                change_base(state, base, shape, state.head_classes[b, p, i], state.head_units[b, p, i], sign)


@inline
def _next_head_end(state: ClusterState, b: int, time: int) -> int:
    """Return the first end of a head's reservation after a time, or NEVER."""
    end = NEVER
    for k in range(state.node_scalars[b].n_reserved):
        until = state.heads[b, state.head_order[b, k]].until
        if until > time:
            end = min(end, until)
    return int(end)


@inner
def _give_back(state: ClusterState, b: int, base: Array, shape: int, j: int) -> int:
    """Give back to some amounts what running job `j` has; return how much more of a demand fits since."""
    of, entry = state.node_jobs[b, j].shape_number, state.node_jobs[b, j].allocation
    admits = state.shapes[shape].admits
    more = 0
    while entry >= 0:
        c, units = state.entry_class[b, entry], state.entry_units[b, entry]
        if state.admits[admits, c]:
            before = potential(state, b, shape, c, base)
            change_base(state, base, of, c, units, 1)
            more += potential(state, b, shape, c, base) - before
        else:
            change_base(state, base, of, c, units, 1)
        entry = state.entry_next[b, entry]
    return int(more)


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
    has = 0
    for i in range(row.first, row.last):
        has += potential(state, b, shape, state.set_classes[i], base)
    n, ends, which = env.n_running, state.run_end[b], state.run_job[b]
    late = count_overrun(state, b)
    i, k = late, 0
    time = env.now
    chosen = -1
    while chosen < 0:
        end = _next_head_end(state, b, time)
        if k < late:
            end = min(end, env.now + SECOND)
        if i < n:
            end = min(end, ends[i])
        time = end
        if time == NEVER:
            break
        while k < late and env.now + SECOND <= time:
            has += _give_back(state, b, base, shape, which[k])
            k += 1
        while i < n and ends[i] <= time:
            has += _give_back(state, b, base, shape, which[i])
            i += 1
        if has >= need:
            set_caps(state, b, j, time)
            _change_by_heads(state, b, base, time, -1)
            chosen = select(state, b, shape, base, False)
            if chosen < 0:
                _change_by_heads(state, b, base, time, 1)
            more.n_caps = 0
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


@inline
def reserve_heads(state: ClusterState, b: int) -> None:
    """Compute the reservations of all heads that have none yet, in the order in which they became heads."""
    more = state.node_scalars[b]
    while more.n_reserved < more.n_heads:
        _reserve(state, b, state.head_order[b, more.n_reserved])


@inner
def make_head(state: ClusterState, b: int, j: int) -> None:
    """Give blocked job `j` the head slot of its partition; its first shadow time is computed at once."""
    more = state.node_scalars[b]
    p = state.lanes[state.node_jobs[b, j].lane].partition
    state.heads[b, p].job = j
    state.head_order[b, more.n_heads] = p
    more.n_heads += 1
    if state.jobs[b, j].reserved < 0:
        reserve_heads(state, b)


@inline
def charge_heads(state: ClusterState, b: int, j: int, n: int) -> None:
    """Take the `n` chosen classes of job `j`, which starts now, from the extra amounts of heads it outlasts."""
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
def fits_beside_heads(state: ClusterState, b: int, j: int, strikes: bool) -> int:
    """Choose classes for job `j` now; return how many, or -1 if it does not fit beside the heads."""
    more = state.node_scalars[b]
    shape = state.node_jobs[b, j].shape_number
    if state.no_fit[b, shape] == more.releases:
        return -1
    more.n_caps = 0
    n = select(state, b, shape, state.free_node[b], strikes)
    if n < 0:
        if not strikes:
            state.no_fit[b, shape] = more.releases
        return n
    if more.n_heads > 0 and not strikes:
        reserve_heads(state, b)
        set_caps(state, b, j, state.scalars[b].now)
        if more.n_caps > 0:
            n = select(state, b, shape, state.free_node[b], strikes)
            more.n_caps = 0
        elif more.n_reserved > 0:  # the reservations have used what was chosen
            n = select(state, b, shape, state.free_node[b], strikes)
    return n
