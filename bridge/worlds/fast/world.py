"""The fast world: an event loop that replays recorded run times through the scheduler.

It only moves time: arrivals come from the job table, completions from a heap, wake-ups from the
scheduler. Which events share a pass, and who comes first at one instant, is the protocol's.
"""

from typing import NamedTuple

import numpy as np

from bridge.base.arrays import Records
from bridge.base.jit import by_type, hot, inline, inner
from bridge.scheduler.acting_state import ActingNodes
from bridge.scheduler.action_state import SUSPENDED, ActionState
from bridge.scheduler.calendar import apply_due
from bridge.scheduler.core import (
    NOTHING,
    PAUSE,
    advance,
    begin_pass,
    finish,
    is_due,
    must_pause,
    next_wake,
    submit,
)
from bridge.scheduler.lives import life_end
from bridge.scheduler.state import NEVER, State
from bridge.scheduler.timed_jobs import stood
from bridge.scheduler.timed_state import RUNNING, TimedState

#: Kinds that `play` returns beside the scheduler's: the episode is over; jobs wait but nothing will ever
#: happen again; the next job to arrive is not here.
DONE, STUCK, MORE = -1, -3, -4

#: One completion to come. Equal ends are served in the order of the starts.
COMPLETION = np.dtype([("end", "i8"), ("serial", "i8"), ("job", "i8")], align=True)
CLOCK = np.dtype([(name, "i8") for name in ("arrived", "last", "pending", "open", "until", "behind")])


class WorldState(NamedTuple):
    """The world's own memory, beside the scheduler's state."""

    #: CLOCK [B]: jobs arrived so far, jobs here, completions to come, a pass is open, the submission of the
    #: first job that is not here yet, or NEVER, and that of the log's next job behind the episode, or -1.
    clock: Records
    heap: Records  # COMPLETION [B, L]


def allocate(batch: int, length: int) -> WorldState:
    """Return the memory for `batch` worlds of up to `length` jobs."""
    clock = np.zeros(batch, CLOCK).view(np.recarray)
    clock.until, clock.behind = NEVER, -1
    return WorldState(clock, heap=np.zeros((batch, max(length, 1)), COMPLETION).view(np.recarray))


@inline
def _is_behind(heap: Records, k: int, end: int, serial: int) -> bool:
    """Tell whether the completion in place `k` is served after such a one."""
    if heap[k].end != end:
        return bool(heap[k].end > end)
    return bool(heap[k].serial > serial)


@inline
def _copy(heap: Records, k: int, to: int) -> None:
    heap[to].end, heap[to].serial, heap[to].job = heap[k].end, heap[k].serial, heap[k].job


@inline
def _push(heap: Records, n: int, end: int, serial: int, job: int) -> None:
    """Let a completion in at place `n`, behind all others, and rise."""
    while n > 0:
        parent = (n - 1) // 2
        if not _is_behind(heap, parent, end, serial):
            break
        _copy(heap, parent, n)
        n = parent
    heap[n].end, heap[n].serial, heap[n].job = end, serial, job


@inline
def push_completion(world: WorldState, b: int, end: int, serial: int, job: int) -> None:
    """Note a completion to come."""
    _push(world.heap[b], world.clock[b].pending, end, serial, job)
    world.clock[b].pending += 1


@inline
def _pop(heap: Records, n: int) -> None:
    """Drop the earliest of `n` completions."""
    n -= 1
    end, serial, job = heap[n].end, heap[n].serial, heap[n].job
    k = 0
    while True:
        child = 2 * k + 1
        if child >= n:
            break
        if child + 1 < n and _is_behind(heap, child, heap[child + 1].end, heap[child + 1].serial):
            child += 1
        if _is_behind(heap, child, end, serial):
            break
        _copy(heap, child, k)
        k = child
    heap[k].end, heap[k].serial, heap[k].job = end, serial, job


@inner
def _reorder(state: State, world: WorldState, b: int) -> None:
    """Take over new serials and restore the heap."""
    heap = world.heap[b]
    n = world.clock[b].pending
    for k in range(n):
        heap[k].serial = state.jobs[b, heap[k].job].serial
    for k in range(1, n):  # ends are heap-ordered already: lift whoever now precedes its parent
        _push(heap, k, heap[k].end, heap[k].serial, heap[k].job)
    state.scalars[b].renumbered = 0


@inner
def _drop(heap: Records, n: int, job: int) -> bool:
    """Drop a job's completion, which does not come, from `n` of them; tell whether it is there."""
    p = 0
    while p < n and heap[p].job != job:
        p += 1
    if p == n:
        return False
    n -= 1
    end, serial, job = heap[n].end, heap[n].serial, heap[n].job
    k = p
    while True:  # sink
        child = 2 * k + 1
        if child >= n:
            break
        if child + 1 < n and _is_behind(heap, child, heap[child + 1].end, heap[child + 1].serial):
            child += 1
        _copy(heap, child, k)
        k = child
    if k < n:
        _push(heap, k, end, serial, job)  # and rise: to its place, or above the one that was dropped
    return True


@inline
def _drop_stopped_pooled(_state: State, _world: WorldState, _b: int) -> None:
    return


@inline
def _drop_stopped_lives(state: ActionState, world: WorldState, b: int) -> None:
    acts, clock = state.acts[b], world.clock[b]
    for k in range(acts.n_stopped):
        if _drop(world.heap[b], clock.pending, state.stopped[b, k]):
            clock.pending -= 1
    acts.n_stopped = 0


#: Forget the completions of jobs that the scheduler stopped, or suspended.
_drop_stopped = by_type(_drop_stopped_pooled, _drop_stopped_lives, ActionState)


@inline
def _end_pooled(state: State, b: int, j: int) -> int:
    return int(state.jobs[b, j].start + state.jobs[b, j].run + stood(state, b, j))


@inline
def _end_on_nodes(state: ActingNodes, b: int, j: int) -> int:
    return life_end(state, b, j) + stood(state, b, j)


#: When a started job ends, if nothing stops it.
_end_of = by_type(by_type(_end_pooled, life_end, ActionState), _end_on_nodes, ActingNodes)


@inline
def _stands_never(_state: TimedState, _b: int, _j: int) -> bool:
    return False


@inline
def _stands_for_guest(state: ActingNodes, b: int, j: int) -> bool:
    return bool(state.lives[b, j].does == SUSPENDED)


_stands = by_type(_stands_never, _stands_for_guest, ActingNodes)


@inline
def _nobody_stopped(_state: State, _world: WorldState, _b: int) -> None:
    pass


@inner
def _drop_completions(state: TimedState, world: WorldState, b: int) -> None:
    """Forget the completions of jobs that were stopped."""
    if not state.timed_scalars[b].cut:
        return
    state.timed_scalars[b].cut = 0
    heap, n, kept = world.heap[b], world.clock[b].pending, 0
    for k in range(n):
        j = heap[k].job
        works = state.timed_jobs[b, j].doing == RUNNING and not _stands(state, b, j)
        if works and heap[k].end == _end_of(state, b, j):
            _push(heap, kept, heap[k].end, heap[k].serial, j)
            kept += 1
    world.clock[b].pending = kept


_drop_cut = by_type(_nobody_stopped, _drop_completions, TimedState)


@inline
def _collect(state: State, world: WorldState, b: int) -> None:
    """Take the jobs that the scheduler started; each will end after its recorded run time."""
    env = state.scalars[b]
    _drop_stopped(state, world, b)
    for k in range(env.n_started):
        j = state.started[b, k]
        push_completion(world, b, _end_of(state, b, j), state.jobs[b, j].serial, j)
    env.n_started = 0
    if env.renumbered:
        _reorder(state, world, b)


@inline
def _finish_next(state: State, world: WorldState, b: int) -> None:
    clock = world.clock[b]
    j = world.heap[b, 0].job
    _pop(world.heap[b], clock.pending)
    clock.pending -= 1
    finish(state, b, j)


@inline
def _submit_next(state: State, world: WorldState, b: int) -> None:
    clock = world.clock[b]
    submit(state, b, clock.arrived)
    clock.arrived += 1


@inline
def _wake_in_tail(now: int, wake: int, behind: int, pending: int) -> int:
    """Return when a rejected pick is looked at again once all jobs have arrived (SchedInspector's code).

    At once if nothing runs: such a rejection is free. Else in time only where that is before the submission
    `behind` of the log's next job, which is no part of the episode; else at the next completion.
    """
    if pending == 0:
        return now
    return wake if wake < behind else NEVER


@inline
def _as_asked(_state: State, _world: WorldState, _b: int, _arrival: int, wake: int) -> int:
    return wake


@inner
def _when_jobs_are_there(state: TimedState, world: WorldState, b: int, arrival: int, wake: int) -> int:
    clock, more = world.clock[b], state.node_scalars[b]
    if clock.until < NEVER or state.timed_scalars[b].n_firsts > 0:
        return wake
    if clock.arrived == 0 and arrival < NEVER:
        return arrival
    jobs = state.scalars[b].n_waiting + more.n_held + state.timed_scalars[b].n_suspended
    return NEVER if arrival == NEVER and clock.pending == 0 and jobs == 0 else wake


#: When the scheduler is woken next. What a calendar has before the first job comes happens with it, and what
#: it has behind the last job concerns nobody; unless somebody looks at a time.
_wake_for_jobs = by_type(_as_asked, _when_jobs_are_there, TimedState)


@hot
def run_until_decision(state: State, world: WorldState, b: int, events: int) -> int:
    """Run world `b` until an agent must answer, the episode is over, or `events` passes were made.

    Returns PICK, INSPECT, BACKFILL (answer, then call again), SCORE, DONE, PAUSE (call again), MORE or STUCK.
    """
    env = state.scalars[b]
    clock = world.clock[b]
    per_event = state.switches[0].per_event
    arrivals_first = state.switches[0].arrivals_first
    free_tail = state.switches[0].free_tail
    while True:
        if clock.open:
            kind = advance(state, b)
            _collect(state, world, b)
            _drop_cut(state, world, b)
            if kind != NOTHING:
                return kind
            clock.open = 0
            events -= 1
            if events <= 0 or env.bad_score >= 0 or must_pause(state, b):
                return PAUSE
        arrival = state.jobs[b, clock.arrived].submit if clock.arrived < clock.last else NEVER
        end = world.heap[b, 0].end if clock.pending > 0 else NEVER
        wake = _wake_for_jobs(state, world, b, arrival, next_wake(state, b))
        if free_tail and wake < NEVER and clock.arrived >= clock.last:
            wake = _wake_in_tail(env.now, wake, clock.behind, clock.pending)
        now = min(arrival, end, wake)
        if now >= clock.until and clock.until < NEVER:
            return MORE
        if now == NEVER:
            return STUCK if env.n_waiting > 0 else DONE
        env.now = max(env.now, now)
        took = 0  # events of this pass
        if end == now and not (per_event and arrivals_first and arrival == now):
            while clock.pending > 0 and world.heap[b, 0].end == now and not (per_event and took > 0):
                _finish_next(state, world, b)
                took += 1
        if not per_event:
            took += apply_due(state, b)
            _drop_cut(state, world, b)
        if arrival == now:
            while (
                clock.arrived < clock.last
                and state.jobs[b, clock.arrived].submit == now
                and not (per_event and took > 0)
            ):
                _submit_next(state, world, b)
                took += 1
        if took == 0 and not is_due(state, b):
            continue
        begin_pass(state, b)
        clock.open = 1
