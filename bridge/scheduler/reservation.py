"""What EASY reserves for a blocked head, and whether a job may start before it."""

from bridge.base.arrays import Array
from bridge.base.jit import inline
from bridge.scheduler.amounts import copy_amounts, give, take
from bridge.scheduler.running_jobs import first_place, fits, next_place
from bridge.scheduler.state import NEVER, SECOND, State


@inline
def behind_overrun(state: State, b: int) -> int:
    """Return the place behind the jobs past their estimate, which are believed to end in one second."""
    place = first_place(state, b)
    if state.switches[0].clamp_overrun:
        now = state.scalars[b].now
        while state.run_end[b, place] <= now:
            place = next_place(state.run_job[b], place)
    return place


@inline
def next_release(state: State, b: int, place: int, late: bool, free: Array) -> tuple[int, int, bool]:
    """Add to `free` all that is believed to be released at the next believed end.

    At `place` is the first running job in time that has not been released; `late`: overrun jobs, which stand
    before and are believed to end in one second, are not yet released. Returns (time of the release or NEVER,
    new place, new late).
    """
    ends = state.run_end[b]
    which = state.run_job[b]
    soon = state.scalars[b].now + SECOND
    end = ends[place]
    if late and end >= soon:
        end = soon
        late = False
        k = first_place(state, b)
        while ends[k] <= state.scalars[b].now:
            give(free, state.demand[b, which[k]])
            k = next_place(which, k)
    if end == NEVER:
        return NEVER, place, late
    while ends[place] == end:
        give(free, state.demand[b, which[place]])
        place = next_place(which, place)
    return end, place, late


@inline
def reserve_head(state: State, b: int, j: int) -> None:
    """Reserve blocked job `j`: set the shadow time and the extra amounts.

    The shadow time is the first believed end at which it fits, all releases of that instant counted;
    extra is what is free then beyond its demand (Mu'alem & Feitelson 2001, EASY backfilling).
    """
    env = state.scalars[b]
    free = state.extra[b]
    demand = state.demand[b, j]
    copy_amounts(free, state.free[b])
    place = behind_overrun(state, b)
    late = place != first_place(state, b)
    end = env.now
    while not fits(demand, free) and end != NEVER:
        end, place, late = next_release(state, b, place, late, free)
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
