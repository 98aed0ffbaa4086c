"""The fast world of the time-stepped pool: time steps, planned arrivals, true lengths."""

from typing import NamedTuple

import numpy as np

from bridge.jit import inner, kernel
from bridge.pool.machine import (
    ASKING,
    OVER,
    STEP,
    TICK,
    answer,
    begin,
    close,
    finish,
    is_empty,
    settle,
    submit,
)
from bridge.pool.state import Array, Records, State

#: The kind that `advance` returns when the episode is over.
DONE = -1

PLAN = np.dtype([("arrived", "i4"), ("jobs", "i4"), ("span", "i4")], align=True)


class World(NamedTuple):
    """The world's own memory, beside the scheduler's state."""

    plan: Records  # PLAN [B]: jobs arrived so far, jobs in the episode, steps in which jobs may arrive


def allocate(batch: int) -> World:
    """Return the memory for `batch` worlds."""
    return World(np.zeros(batch, PLAN).view(np.recarray))


@inner
def _step(state: State, world: World, b: int) -> None:
    """Let one step pass: completions, the scheduler's own work, arrivals, the end."""
    env = state.env[b]
    plan = world.plan[b]
    begin(state, b)
    k = 0
    while k < env.n_booked:
        j = state.booked[b, k]
        job = state.jobs[b, j]
        if job.start + job.length <= env.now:
            finish(state, b, j)
        else:
            k += 1
    settle(state, b)
    over = env.now > state.pool[0].last_step or (env.now >= plan.span and is_empty(state, b))
    if not over:
        while plan.arrived < plan.jobs and state.jobs[b, plan.arrived].submit == env.now:
            submit(state, b, plan.arrived)
            plan.arrived += 1
    close(state, b)
    if over:
        env.phase = OVER


@kernel
def advance(state: State, world: World, b: int) -> int:
    """Run world `b` until an answer is wanted. Returns TICK (answer, then call again) or DONE."""
    env = state.env[b]
    while env.phase == STEP:
        _step(state, world, b)
    return TICK if env.phase == ASKING else DONE


@kernel
def advance_all(state: State, world: World, kinds: Array) -> None:
    """Run every world until an answer is wanted; kinds [B] gets TICK or DONE."""
    for b in range(kinds.shape[0]):
        kinds[b] = advance(state, world, b)


@kernel
def step_all(state: State, world: World, actions: Array, rewards: Array, kinds: Array) -> int:
    """Answer in every world that asks, and run it until the next answer is wanted.

    Args:
        actions: [B], as `machine.answer` takes them; those of worlds that are over are not read.
        rewards: [B] gets the reward of the answer (0 where the world is over).
        kinds: [B] gets TICK or DONE.

    Returns:
        The number of the first world that refused its action, all before it being answered; or -1.
    """
    for b in range(kinds.shape[0]):
        rewards[b] = 0.0
        if state.env[b].phase == ASKING:
            if answer(state, b, actions[b]) < 0:
                return b
            kinds[b] = advance(state, world, b)
            rewards[b] = state.env[b].reward
        else:
            kinds[b] = advance(state, world, b)
    return -1
