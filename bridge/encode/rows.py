"""Kernels that write a decision's rows: which jobs they are about, and their features."""

from bridge.encode.encoder import Programs
from bridge.jit import inner, kernel
from bridge.scheduler.machine import BACKFILL, DECLINE, INSPECT, answer
from bridge.scheduler.running import may_backfill
from bridge.scheduler.score import FIRST_VIEW, LAST_VARIABLE, evaluate, look
from bridge.scheduler.state import Array, Records, State

_JOBS = 1  # which of the scheduler's scratch rows holds the rows' jobs


@kernel
def list_rows(state: State, b: int, kind: int, stop: bool) -> int:
    """List the jobs of a decision's rows in ``scratch[1]`` and return how many there are."""
    which = state.scratch[_JOBS]
    env = state.env[b]
    if kind == INSPECT:
        which[0] = env.head
        return 1
    n = env.n_candidates
    for k in range(n):
        which[k] = state.candidates[b, k]
    if kind == BACKFILL and stop:
        which[n] = env.head
        n += 1
    return int(n)


@inner
def write(state: State, b: int, program: Records, ends: Array, n: int, rows: Array) -> None:
    """Write the features of the ``n`` listed jobs into ``rows[:n]``, float32 [≥ n, F].

    A feature that is no finite number is noted in ``env.bad_score``, as an order's score is.
    """
    which = state.scratch[_JOBS]
    begin = 0
    for f in range(ends.shape[0]):
        looked = 0
        for k in range(begin, ends[f]):
            if FIRST_VIEW <= program[k].op <= LAST_VARIABLE:
                look(state, b, program[k].op, program[k].arg, looked, which, n)
                looked += 1
        evaluate(state, b, program[begin : ends[f]], which, n)
        for k in range(n):
            rows[k, f] = state.stack[0, k]
        begin = ends[f]


@kernel
def encode(state: State, b: int, programs: Programs, n: int, rows: Array) -> None:
    """Write the features of the ``n`` listed jobs into ``rows[:n]``, float32 [≥ n, F]."""
    write(state, b, programs.rows.code, programs.rows.ends, n, rows)


@kernel
def key_rows(state: State, b: int, n: int, keys: Array) -> None:
    """Write a number for each of the ``n`` listed jobs that is the same in every world at this decision.

    Of the job's id, how often it was rejected, and how many jobs have started: keys of reproducible draws.
    """
    which = state.scratch[_JOBS]
    for k in range(n):
        job = state.jobs[b, which[k]]
        keys[k] = job.id * 1_000_003 + job.rejects * 7_919 + state.env[b].serial * 104_729


@inner
def delays_head(state: State, b: int, kind: int, action: int) -> bool:
    """Tell whether a BACKFILL action starts a job that EASY would not, for it may delay the blocked head."""
    if kind != BACKFILL or action >= state.env[b].n_candidates:
        return False
    return not may_backfill(state, b, state.candidates[b, action])


@kernel
def choice_of(state: State, b: int, kind: int, action: int) -> int:
    """Return the scheduler's answer for the row of an encoding; INSPECT: action 0 accepts, 1 rejects."""
    if kind == INSPECT:
        return DECLINE if action == 1 else 0
    return DECLINE if action >= state.env[b].n_candidates else action


@inner
def act(state: State, b: int, kind: int, action: int) -> None:
    """Answer a decision by the row of its encoding."""
    answer(state, b, choice_of(state, b, kind, action))
