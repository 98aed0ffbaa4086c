"""Kernels that write what a decision shows: its rows, and its context (running jobs, the machine)."""

import math

from bridge.base.arrays import Array
from bridge.base.jit import by_type, hot, inline, inner, kernel
from bridge.env.encoder import EncoderPrograms, FeatureProgram
from bridge.scheduler.action_state import ActionState
from bridge.scheduler.action_view import action_prepare_variable
from bridge.scheduler.cluster_state import ClusterState
from bridge.scheduler.cluster_view import (
    cluster_list_queued,
    cluster_may_backfill,
    cluster_prepare_variable,
    cluster_subject,
)
from bridge.scheduler.core import BACKFILL, DECLINE, INSPECT, apply_choice
from bridge.scheduler.decisions import PREEMPT
from bridge.scheduler.reservation import may_backfill
from bridge.scheduler.running_jobs import first_place, job_at, next_place
from bridge.scheduler.score import compute, finite, prepare_variable
from bridge.scheduler.state import STACK, State

_JOBS = 1  # which of the scheduler's scratch rows holds the rows' jobs
#: What floating point may add to a whole number of units.
_ROUNDING = 1e-9

_prepare_variable = by_type(
    by_type(prepare_variable, cluster_prepare_variable, ClusterState), action_prepare_variable, ActionState
)
_may_backfill = by_type(may_backfill, cluster_may_backfill, ClusterState)


@hot
def list_rows(state: State, b: int, kind: int, stop: bool) -> int:
    """List the jobs of a decision's rows in ``scratch[1]`` and return how many there are."""
    which = state.scratch[_JOBS]
    env = state.scalars[b]
    if kind == INSPECT:
        which[0] = env.head
        return 1
    n = env.n_candidates
    for k in range(n):
        which[k] = state.candidates[b, k]
    if stop and (kind == BACKFILL or kind >= PREEMPT):  # PREEMPT, TRIAL
        which[n] = env.head
        n += 1
    return int(n)


@inline
def write(state: State, b: int, program: FeatureProgram, n: int, rows: Array) -> None:
    """Write the features of the ``n`` listed jobs into ``rows[:n]``, float32 [≥ n, F].

    A feature that is no finite number is noted in ``env.bad_score``, as an order's score is.
    """
    which = state.scratch[_JOBS]
    begin = 0
    view = 0
    for f in range(program.ends.shape[0]):
        end = program.ends[f]
        looked = 0
        while program.views[view] < end:
            step = program.code[program.views[view]]
            _prepare_variable(state, b, step.op, step.arg, looked, which, n)
            looked += 1
            view += 1
        position = STACK  # of a feature that is such a variable
        if looked == 0 or end > begin + 1:
            compute(state, b, program.code[begin:end], which, n)
            position = 0
        for k in range(n):
            rows[k, f] = finite(state, b, state.stack[position, k], which[k])
        begin = end


@inner
def _write_rarely(state: State, b: int, program: FeatureProgram, n: int, rows: Array) -> None:
    """`write` for callers that are not worth a copy of it."""
    write(state, b, program, n, rows)


@hot
def encode(state: State, b: int, programs: EncoderPrograms, n: int, rows: Array) -> None:
    """Write the features of the ``n`` listed jobs into ``rows[:n]``, float32 [≥ n, F]."""
    write(state, b, programs.rows, n, rows)


@hot
def key_rows(state: State, b: int, n: int, keys: Array) -> None:
    """Write a number for each of the ``n`` listed jobs that is the same in every world at this decision.

    Of the job's id, how often it was rejected, and how many jobs have started: keys of reproducible draws.
    """
    which = state.scratch[_JOBS]
    for k in range(n):
        job = state.jobs[b, which[k]]
        keys[k] = job.id * 1_000_003 + job.rejects * 7_919 + state.scalars[b].serial * 104_729


@hot
def delays_head(state: State, b: int, kind: int, action: int) -> bool:
    """Tell whether a BACKFILL action starts a job that EASY would not, for it may delay the blocked head."""
    if kind != BACKFILL or not 0 <= action < state.scalars[b].n_candidates:
        return False
    return not _may_backfill(state, b, state.candidates[b, action])


@kernel
def choice_from_action(state: State, b: int, kind: int, action: int) -> int:
    """Return the scheduler's answer for the row of an encoding; INSPECT: action 0 accepts, 1 rejects."""
    if kind == INSPECT:
        return DECLINE if action == 1 else 0
    return action if 0 <= action < state.scalars[b].n_candidates else DECLINE


@hot
def apply_action(state: State, b: int, kind: int, action: int) -> None:
    """Answer a decision by the row of its encoding."""
    apply_choice(state, b, choice_from_action(state, b, kind, action))


@inner
def _before(state: State, b: int, i: int, j: int) -> bool:
    """Tell whether running job `i` is shown before `j`: the larger, then who ends first, the lower id."""
    one, other = state.jobs[b, i], state.jobs[b, j]
    if one.n != other.n:
        return bool(one.n > other.n)
    if one.est_end != other.est_end:
        return bool(one.est_end < other.est_end)
    return bool(one.id < other.id)


@inner
def _largest(state: State, b: int, places: int) -> int:
    """List the largest running jobs, at most `places`, and return how many there are."""
    which = state.scratch[_JOBS]
    n = 0
    place = first_place(state, b)
    while job_at(state, b, place) >= 0:
        j = job_at(state, b, place)
        place = next_place(state.run_job[b], place)
        k = n
        while k > 0 and _before(state, b, j, which[k - 1]):
            k -= 1
        if k == places:
            continue
        n = min(n + 1, places)
        for m in range(n - 1, k, -1):
            which[m] = which[m - 1]
        which[k] = j
    return n


@inner
def _by_unit(state: State, b: int, programs: EncoderPrograms, context: Array) -> int:
    """Write a row per unit of each resource, and return how many numbers that is."""
    which = state.scratch[_JOBS]
    width = programs.empty_row.shape[0]
    at = 0
    for r in range(programs.running_rows.shape[0]):
        units = programs.running_rows[r]
        end = at + units * width
        place = first_place(state, b)
        while job_at(state, b, place) >= 0:
            which[0] = job_at(state, b, place)
            place = next_place(state.run_job[b], place)
            share = state.demand[b, which[0], r] / max(state.capacity[r], 1)
            held = math.ceil(share * units - _ROUNDING)  # bytes times units overflow 64 bits
            first = at
            until = min(at + held * width, end)
            if at < until:
                row = context[at : at + width].reshape((1, width))
                _write_rarely(state, b, programs.running, 1, row)
                at += width
            while at < until:
                context[at] = context[first]
                at += 1
                first += 1
        while at < end:
            for f in range(width):
                context[at + f] = programs.empty_row[f]
            at += width
    return at


@inline
def _list_queued_pooled(state: State, b: int, most: int, which: Array) -> int:
    """List the first waiting jobs but the head, and return how many."""
    n = 0
    for i in range(state.scalars[b].n_blocks):
        block = state.blocks[b, i]
        for k in range(state.size[b, block]):
            j = state.items[b, block, k]
            if n < most and j != state.scalars[b].head:
                which[n] = j
                n += 1
    return n


@inline
def _subject_pooled(_state: State, _b: int) -> int:
    return 0  # whoever that is: the programs read the machine only


_list_queued = by_type(_list_queued_pooled, cluster_list_queued, ClusterState)
_subject = by_type(_subject_pooled, cluster_subject, ClusterState)


@inner
def _write_queued(state: State, b: int, programs: EncoderPrograms, context: Array) -> int:
    which = state.scratch[_JOBS]
    width = programs.queued.ends.shape[0]
    size = programs.queued_rows[0] * width
    n = _list_queued(state, b, programs.queued_rows[0], which)
    _write_rarely(state, b, programs.queued, n, context[:size].reshape((-1, width)))
    for k in range(n * width, size):
        context[k] = 0.0
    return int(size)


@kernel
def write_context(state: State, b: int, programs: EncoderPrograms, context: Array) -> None:
    """Write the context of the waiting decision, float32 [C]; overwrites what `list_rows` has listed."""
    which = state.scratch[_JOBS]
    at = 0
    if programs.running_rows.shape[0] > 0:
        if programs.by_unit[0]:
            at = _by_unit(state, b, programs, context)
        else:
            width = programs.empty_row.shape[0]
            at = programs.running_rows[0] * width
            n = _largest(state, b, programs.running_rows[0])
            rows = context[:at].reshape((programs.running_rows[0], width))
            _write_rarely(state, b, programs.running, n, rows)
            for k in range(n, programs.running_rows[0]):
                for f in range(width):
                    rows[k, f] = programs.empty_row[f]
    if programs.queued_rows[0] > 0:
        at += _write_queued(state, b, programs, context[at:])
    if programs.machine.ends.shape[0] > 0:
        which[0] = _subject(state, b)
        rows = context[at:].reshape((1, programs.machine.ends.shape[0]))
        _write_rarely(state, b, programs.machine, 1, rows)
