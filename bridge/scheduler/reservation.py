"""What EASY reserves for a blocked head, and whether a job may start before it."""

from bridge.base.arrays import Array
from bridge.base.jit import inline
from bridge.scheduler.amounts import give, take
from bridge.scheduler.running_jobs import fits
from bridge.scheduler.state import NEVER, SECOND, State


@inline
def count_overrun(state: State, b: int) -> int:
    """Return how many running jobs are past their estimate and believed to end one second from now."""
    if not state.switches[0].clamp_overrun:
        return 0
    now = state.scalars[b].now
    n = state.scalars[b].n_running
    k = 0
    while k < n and state.run_end[b, k] <= now:
        k += 1
    return k


@inline
def next_release(state: State, b: int, i: int, late: int, free: Array) -> tuple[int, int, int]:
    """Add to `free` all that is believed to be released at the next believed end.

    `i` is the first running job in time that has not been released; the first `late` places are overrun
    jobs not yet released, believed to end in one second. Returns (time of the release or NEVER, new i, new
    late).
    """
    n = state.scalars[b].n_running
    ends = state.run_end[b]
    which = state.run_job[b]
    soon = state.scalars[b].now + SECOND
    if late > 0 and (i == n or ends[i] >= soon):
        end = soon
        for k in range(late):
            give(free, state.demand[b, which[k]])
        late = 0
    elif i < n:
        end = ends[i]
    else:
        return NEVER, i, late
    while i < n and ends[i] == end:
        give(free, state.demand[b, which[i]])
        i += 1
    return end, i, late


@inline
def reserve_head(state: State, b: int, j: int) -> None:
    """Reserve blocked job `j`: set the shadow time and the extra amounts.

    The shadow time is the first believed end at which it fits, all releases of that instant counted;
    extra is what is free then beyond its demand (Mu'alem & Feitelson 2001, EASY backfilling).
    """
    env = state.scalars[b]
    free = state.extra[b]
    demand = state.demand[b, j]
    for r in range(free.shape[0]):
        free[r] = state.free[b, r]
    late = count_overrun(state, b)
    i = late
    end = env.now
    while not fits(demand, free) and end != NEVER:
        end, i, late = next_release(state, b, i, late, free)
    env.shadow = end
    take(free, demand)
    if state.jobs[b, j].reserved < 0:
        state.jobs[b, j].reserved = end


@inline
def ends_before_shadow(state: State, b: int, j: int) -> bool:
    """Tell whether job `j`, started now, is believed to end before the shadow time."""
    end = state.scalars[b].now + state.jobs[b, j].est_wait
    if state.switches[0].strict:
        return bool(end < state.scalars[b].shadow)
    return bool(end <= state.scalars[b].shadow)


@inline
def may_backfill(state: State, b: int, j: int) -> bool:
    """EASY's rule: it fits now, and ends by the shadow time or fits in the extra amounts."""
    if not fits(state.demand[b, j], state.free[b]):
        return False
    return ends_before_shadow(state, b, j) or (
        bool(state.switches[0].extra_nodes) and fits(state.demand[b, j], state.extra[b])
    )
