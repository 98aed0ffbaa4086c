"""The fast world of the time-stepped pool: drawn arrivals, time steps, true lengths, and what is to come."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bridge.base.arrays import Array, Ints, Records
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.base.jit import inline, inner, kernel
from bridge.pool.jobset import JobSet
from bridge.pool.machine import (
    ASKING,
    OVER,
    STEP,
    TICK,
    begin_step,
    end_step,
    finish,
    is_empty,
    reestimate_and_rebook,
    submit,
)
from bridge.pool.settings import PoolConfig
from bridge.pool.state import PoolState, reset
from bridge.pool.state import allocate as allocate_state

#: The kind that `advance` returns when the episode is over.
DONE = -1

#: Numbers of a group of jobs: how many, Σ 1 / length, Σ units * length.
_GROUP = 3
#: Steps ahead in which arrivals are summed up; the last one is as far as there are any.
WINDOWS = (10, 30, 100, 1 << 20)
#: Steps ahead in which free units are summed up.
_AHEAD = (1, 5, 20, 60)
#: Numbers in all: groups that wait, are ready, run or are booked; arrivals in each window; free units; time.
N_CRITIC_FEATURES = _GROUP * (5 + len(WINDOWS)) + len(_AHEAD) + 3

PLAN = np.dtype([("arrived", "i4"), ("jobs", "i4"), ("span", "i4")], align=True)


class PoolWorldState(NamedTuple):
    """The world's own memory, beside the scheduler's state."""

    plan: Records  # PLAN [B]: jobs arrived so far, jobs in the episode, steps in which jobs may arrive


@inner
def _step(state: PoolState, world: PoolWorldState, b: int) -> None:
    """Let one step pass: completions, the scheduler's own work, arrivals, the end."""
    env = state.env[b]
    plan = world.plan[b]
    begin_step(state, b)
    k = 0
    while k < env.n_booked:
        j = state.booked[b, k]
        job = state.jobs[b, j]
        if job.start + job.length <= env.now:
            finish(state, b, j)
        else:
            k += 1
    reestimate_and_rebook(state, b)
    over = env.now > state.pool[0].last_step or (env.now >= plan.span and is_empty(state, b))
    if not over:
        while plan.arrived < plan.jobs and state.jobs[b, plan.arrived].submit == env.now:
            submit(state, b, plan.arrived)
            plan.arrived += 1
    end_step(state, b)
    if over:
        env.phase = OVER


@kernel
def advance(state: PoolState, world: PoolWorldState, b: int) -> int:
    """Run world `b` until an answer is wanted. Returns TICK (answer, then call again) or DONE."""
    env = state.env[b]
    while env.phase == STEP:
        _step(state, world, b)
    return TICK if env.phase == ASKING else DONE


@inline
def _add(out: Array, at: int, units: int, length: int) -> None:
    """Count a job in the group at this place."""
    out[at] += 1.0
    out[at + 1] += 1.0 / length
    out[at + 2] += units * length


@kernel
def critic_features(state: PoolState, world: PoolWorldState, b: int, out: Array) -> None:
    """Write what a critic may know of pool `b`, which is ASKING: [N_CRITIC_FEATURES] of order 1.

    That is the whole pool, hidden jobs too, and the arrivals to come: a baseline may depend on everything
    that an action does not change, and these are most of what makes a return differ from another (H. Mao et
    al., "Variance reduction for reinforcement learning in input-driven environments", ICLR 2019). An agent
    never sees this; true lengths are not in it either.
    """
    env = state.env[b]
    pool = state.pool[0]
    plan = world.plan[b]
    jobs = state.jobs[b]
    out[:] = 0.0
    for k in range(env.n_waiting):
        job = jobs[state.waiting[b, k]]
        _add(out, 0 if k < pool.slots else _GROUP, job.units, job.believed)
    for k in range(env.head, env.tail):
        job = jobs[state.backlog[b, k]]
        _add(out, _GROUP, job.units, job.believed)
    for k in range(env.n_ready):
        job = jobs[state.ready[b, k]]
        _add(out, 2 * _GROUP, job.units, job.believed)
    for k in range(env.n_booked):
        job = jobs[state.booked[b, k]]
        running = job.start < env.now
        _add(out, (3 if running else 4) * _GROUP, job.units, max(job.until - max(job.start, env.now), 1))
    at = 5 * _GROUP
    for j in range(plan.arrived, plan.jobs):
        job = jobs[j]
        for w in range(len(WINDOWS)):
            if job.submit - env.now <= WINDOWS[w]:
                _add(out, at + w * _GROUP, job.units, job.believed)
    for g in range(5 + len(WINDOWS)):
        out[g * _GROUP] /= 20.0
        out[g * _GROUP + 1] /= 4.0
        out[g * _GROUP + 2] /= 50.0 * pool.units
    at += len(WINDOWS) * _GROUP
    free = state.free[b]
    for a in range(len(_AHEAD)):
        steps = min(_AHEAD[a], free.shape[0])
        total = 0.0
        for h in range(steps):
            total += free[h]
        out[at + a] = total / (steps * pool.units)
    at += len(_AHEAD)
    left = max(plan.span - env.now, 0)
    out[at] = left / 200.0
    out[at + 1] = 1.0 if env.n_ready > 0 else 0.0
    out[at + 2] = env.silence / 10.0


@dataclass(frozen=True)
class Sequences:
    """S sequences over T steps.

    Attributes:
        arrivals: [S, T] index of the job that arrives at a step, or -1. What is drawn for step 0 never
            arrives, as in the authors' code.
    """

    jobs: JobSet
    arrivals: Ints

    def __len__(self) -> int:
        return len(self.arrivals)

    def arrivals_of(self, s: int) -> tuple[Ints, Ints]:
        """Return (arrival steps, indices into `jobs`) of the jobs of sequence `s`, in order of arrival."""
        steps = np.flatnonzero(self.arrivals[s, 1:] >= 0) + 1
        return steps, self.arrivals[s, steps]

    def repeat(self, times: int) -> "Sequences":
        return replace(self, arrivals=np.repeat(self.arrivals, times, axis=0)) if times > 1 else self

    @property
    def most(self) -> int:
        return int((self.arrivals[:, 1:] >= 0).sum(axis=1).max())


def draw_sequences(
    jobs: JobSet, seed: int, *, rate: float = 0.7, steps: int = 200, sequences: int = 16
) -> Sequences:
    """Draw sequences with the authors' random calls, so that equal seeds give their sequences.

    For every sequence and step: a job arrives if rand() < rate; then its index among N jobs is randint(0, N).
    The seed is that of NumPy's legacy generator: 314159 is the paper's test set, 42 its training set. `rate`,
    `steps`, `sequences`: job_rate, T (simu_len), S (num_ex). Raises BridgeError: a number out of its range.
    """
    if not 0.0 <= rate <= 1.0:
        raise BridgeError(f"the arrival rate must lie in 0 … 1 jobs per step, not {rate:g}")
    if not 0 <= seed < 2**32:
        raise BridgeError(f"the seed must lie in 0 … {2**32 - 1}, not {seed}")
    if steps < 2 or sequences < 1:
        raise BridgeError(
            f"{counted(sequences, 'sequence')} of {counted(steps, 'step')} hold no job",
            remedy="Use at least 1 and 2.",
        )
    random = np.random.RandomState(seed)  # the published sequences came from this generator
    arrivals = np.full(sequences * steps, -1, np.int64)
    for k in range(len(arrivals)):
        if random.rand() < rate:
            arrivals[k] = random.randint(0, len(jobs))
    return Sequences(jobs, arrivals.reshape(sequences, steps))


def allocate(
    sequences: Sequences, batch: int, settings: PoolConfig, *, most: int = 0
) -> tuple[PoolState, PoolWorldState]:
    """Return the memory for `batch` pools that can play any of the sequences; `load` one into each.

    `most`: jobs of the longest sequence, if others of the same jobs are to be played, too. Raises
    BridgeError: a job cannot run in such a pool.
    """
    sequences.jobs.check(settings)
    most = max(most, sequences.most)
    state = allocate_state(batch, most, sequences.jobs.beliefs.shape[1], settings)
    return state, PoolWorldState(np.zeros(batch, PLAN).view(np.recarray))


def load(state: PoolState, world: PoolWorldState, b: int, sequences: Sequences, s: int) -> None:
    """Put pool `b` at the beginning of sequence `s`: step 0, idle, an answer is wanted."""
    steps, index = sequences.arrivals_of(s)
    jobs, n = sequences.jobs, len(steps)
    records = state.jobs[b, :n]
    for name in ("id", "units", "length", "believed"):
        records[name] = getattr(jobs, name)[index]
    records["submit"] = steps
    state.beliefs[b, :n] = jobs.beliefs[index]
    reset(state, b)
    plan = world.plan[b]
    plan.arrived, plan.jobs, plan.span = 0, n, sequences.arrivals.shape[1]
