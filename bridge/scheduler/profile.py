"""The availability profile of conservative backfilling: free amounts as a step function of time."""

from bridge.jit import inline
from bridge.scheduler.running import fits, next_release, overrun
from bridge.scheduler.state import LATEST, NEVER, Array, State


@inline
def build(state: State, b: int) -> int:
    """Write the profile of the running jobs, from now on, and return its number of steps.

    The first step is `now`; a running job believed to end exactly now makes a second step of the same
    time (its finish has not been seen yet).
    """
    times = state.p_time
    free = state.p_free
    amounts = state.amounts
    resources = amounts.shape[0]
    times[0] = state.env[b].now
    for r in range(resources):
        amounts[r] = state.free[b, r]
        free[0, r] = amounts[r]
    steps = 1
    late = overrun(state, b)
    i = late
    while True:
        end, i, late = next_release(state, b, i, late, amounts)
        if end == NEVER:
            return steps
        times[steps] = end
        for r in range(resources):
            free[steps, r] = amounts[r]
        steps += 1


@inline
def fits_from(times: Array, free: Array, steps: int, demand: Array, k: int, length: int) -> int:
    """Return -1 if the demand fits from step `k` on for `length`, else the first step where it does not."""
    end = times[k] + length
    while k < steps and times[k] < end:
        if not fits(demand, free[k]):
            return k
        k += 1
    return -1


@inline
def fits_now(state: State, b: int, j: int, steps: int) -> bool:
    """Tell whether job `j` could start now, by the profile."""
    demand, length = state.demand[b, j], state.jobs[b, j].est_wait
    return (
        fits(demand, state.p_free[0]) and fits_from(state.p_time, state.p_free, steps, demand, 0, length) < 0
    )


@inline
def first_hole(times: Array, free: Array, steps: int, demand: Array, length: int, k: int, before: int) -> int:
    """Return the first step from which the demand fits for `length`, or -1 (nodes out of service).

    Only steps from step `k` on are looked at, and only those before the time `before`.
    """
    while k < steps and times[k] < before:
        blocked = fits_from(times, free, steps, demand, k, length)
        if blocked < 0:
            return k
        k = blocked + 1
    return -1


@inline
def book(times: Array, free: Array, steps: int, demand: Array, k: int, length: int) -> int:
    """Take the demand out of a profile from step `k` on for `length`; return the new number of steps."""
    resources = free.shape[1]
    end = min(times[k] + length, LATEST)
    m = k
    while m < steps and times[m] < end:
        m += 1
    if m == steps or times[m] != end:
        for i in range(steps, m, -1):
            times[i] = times[i - 1]
            for r in range(resources):
                free[i, r] = free[i - 1, r]
        times[m] = end
        for r in range(resources):
            free[m, r] = free[m - 1, r]
        steps += 1
    for i in range(k, m):
        for r in range(resources):
            free[i, r] -= demand[r]
    return steps


@inline
def step_at(times: Array, steps: int, time: int) -> int:
    """Return the first step that does not begin before a time."""
    low, high = 0, steps
    while low < high:
        middle = (low + high) // 2
        if times[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low
