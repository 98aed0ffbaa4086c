"""The availability profile of conservative backfilling: free amounts as a step function of time.

A profile is its steps' times [P], ascending, and what is free from each on [R, P].
"""

import numpy as np

from bridge.base.arrays import Array
from bridge.base.jit import inline, inner
from bridge.scheduler.reservation import behind_overrun, next_release
from bridge.scheduler.running_jobs import first_from, first_place
from bridge.scheduler.state import LATEST, NEVER, State

#: Signs of a change: give amounts back, take them. Of each number of Python's, Numba would compile a copy.
GIVE, TAKE = np.int64(1), np.int64(-1)


@inline
def build(state: State, b: int, times: Array, free: Array) -> int:
    """Write the profile of the running jobs, from now on, and return its number of steps.

    The first step is `now`; a running job believed to end exactly now makes a second step of the same
    time (its finish has not been seen yet).
    """
    amounts = state.amounts
    resources = amounts.shape[0]
    times[0] = state.scalars[b].now
    for r in range(resources):
        amounts[r] = state.free[b, r]
        free[r, 0] = amounts[r]
    steps = 1
    place = behind_overrun(state, b)
    late = place != first_place(state, b)
    while True:
        end, place, late = next_release(state, b, place, late, amounts)
        if end == NEVER:
            return steps
        times[steps] = end
        for r in range(resources):
            free[r, steps] = amounts[r]
        steps += 1


@inline
def _fits_at(free: Array, k: int, demand: Array) -> bool:
    for r in range(free.shape[0]):  # noqa: SIM110  (compiled: a plain loop)
        if demand[r] > free[r, k]:
            return False
    return True


@inline
def fits_from(times: Array, free: Array, steps: int, demand: Array, k: int, length: int) -> int:
    """Return -1 if the demand fits from step `k` on for `length`, else the first step where it does not."""
    end = times[k] + length
    first = demand[0]
    for m in range(k, steps):
        if times[m] >= end:
            return -1
        if first > free[0, m]:
            return m
        for r in range(1, free.shape[0]):
            if demand[r] > free[r, m]:
                return m
    return -1


@inline
def fits_now(state: State, b: int, j: int, steps: int) -> bool:
    """Tell whether job `j` could start now, by the profile."""
    demand, length = state.demand[b, j], state.jobs[b, j].est_wait
    return (
        _fits_at(state.p_free, 0, demand)
        and fits_from(state.p_time, state.p_free, steps, demand, 0, length) < 0
    )


@inline
def first_hole(times: Array, free: Array, steps: int, demand: Array, length: int, k: int, before: int) -> int:
    """Return the first step from which the demand fits for `length`, or -1 (nodes out of service).

    Only steps from step `k` on are looked at, and only those before the time `before`.
    """
    first = demand[0]
    while k < steps and times[k] < before:
        if first > free[0, k]:  # most often
            k += 1
            continue
        blocked = fits_from(times, free, steps, demand, k, length)
        if blocked < 0:
            return k
        k = blocked + 1
    return -1


@inline
def _open_step(times: Array, free: Array, steps: int, k: int, time: int) -> int:
    """Make a step of a time at place `k`, as free as the one before it; return the new number of steps."""
    for i in range(steps, k, -1):
        times[i] = times[i - 1]
        free[0, i] = free[0, i - 1]
    times[k] = time
    free[0, k] = free[0, k - 1]
    for r in range(1, free.shape[0]):
        for i in range(steps, k - 1, -1):
            free[r, i] = free[r, i - 1]
    return steps + 1


@inline
def _close_step(times: Array, free: Array, steps: int, k: int) -> int:
    """Drop step `k` if it is as free as the one before it; return the new number of steps.

    One that begins no later stays: jobs past their estimates, and a finish that has not been seen yet.
    """
    if k == 0 or k == steps or times[k] <= times[k - 1]:
        return steps
    for r in range(free.shape[0]):
        if free[r, k] != free[r, k - 1]:
            return steps
    shift(times, free, k + 1, steps, 1)
    return steps - 1


@inline
def shift(times: Array, free: Array, k: int, steps: int, by: int) -> None:
    """Move the steps from place `k` on forward by so many places."""
    for i in range(k, steps):
        times[i - by] = times[i]
        free[0, i - by] = free[0, i]
    for r in range(1, free.shape[0]):
        for i in range(k, steps):
            free[r, i - by] = free[r, i]


@inline
def copy(times: Array, free: Array, to_times: Array, to_free: Array, steps: int) -> None:
    for i in range(steps):
        to_times[i] = times[i]
    for r in range(free.shape[0]):
        for i in range(steps):
            to_free[r, i] = free[r, i]


@inner
def change(times: Array, free: Array, steps: int, k: int, until: int, amounts: Array, sign: np.int64) -> int:
    """Give amounts back to a profile from step `k` on until a time or NEVER, or take them out.

    At both ends, a step that no longer differs from the one before is dropped. Returns the new number of
    steps.
    """
    m = k
    while m < steps and times[m] < until:
        free[0, m] += sign * amounts[0]
        for r in range(1, free.shape[0]):
            free[r, m] += sign * amounts[r]
        m += 1
    if m < steps and times[m] == until:
        steps = _close_step(times, free, steps, m)
    elif until != NEVER:
        steps = _open_step(times, free, steps, m, until)
        for r in range(free.shape[0]):
            free[r, m] -= sign * amounts[r]
    return _close_step(times, free, steps, k)


@inner
def change_at(
    times: Array, free: Array, steps: int, time: int, until: int, amounts: Array, sign: np.int64
) -> int:
    """Do as `change`, from a time on that may lie within a step."""
    k = first_from(times, 0, steps, time)
    if k == steps or times[k] != time:
        steps = _open_step(times, free, steps, k, time)
    return change(times, free, steps, k, until, amounts, sign)


@inline
def book(times: Array, free: Array, steps: int, demand: Array, k: int, length: int) -> int:
    """Take the demand out of a profile from step `k` on for `length`; return the new number of steps."""
    return change(times, free, steps, k, min(times[k] + length, LATEST), demand, TAKE)
