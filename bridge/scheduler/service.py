"""How long jobs have run by now, and what orders believe is left of them."""

from bridge.base.jit import by_type, inline
from bridge.scheduler.acting_state import ActingNodes
from bridge.scheduler.action_state import SUSPENDED, WAITS, ActionState
from bridge.scheduler.state import SECOND, State


@inline
def attained_service(state: ActionState, b: int, j: int) -> int:
    """Return how much of its run job `j` has done by now, in its earlier lives and this one."""
    job, life = state.jobs[b, j], state.lives[b, j]
    if life.does == WAITS:
        return int(life.progress)
    until = life.suspended_at if life.does == SUSPENDED else state.scalars[b].now
    return int(life.progress + max(until - job.start - life.overhead - life.suspended, 0))


@inline
def _served(state: State, b: int, j: int) -> float:
    """Return for how long job `j` has run by now, seconds; under a rule of action: what of it is kept."""
    job = state.jobs[b, j]
    return float((state.scalars[b].now - job.start) / SECOND) if job.start >= 0 else 0.0


@inline
def _served_in_lives(state: ActionState, b: int, j: int) -> float:
    return float(attained_service(state, b, j) / SECOND)


@inline
def _believed(state: State, b: int, j: int) -> float:
    """Return what orders believe of the whole of job `j`, seconds."""
    return float(state.jobs[b, j].t)


@inline
def _believed_in_lives(state: ActionState, b: int, j: int) -> float:
    return float(state.lives[b, j].t)


served_seconds = by_type(by_type(_served, _served_in_lives, ActionState), _served_in_lives, ActingNodes)
_whole = by_type(by_type(_believed, _believed_in_lives, ActionState), _believed_in_lives, ActingNodes)


@inline
def rest_seconds(state: State, b: int, j: int) -> float:
    """Return what orders believe is left of job `j`, seconds; 1 s at least of one that is longer."""
    whole = _whole(state, b, j)
    return float(max(whole - served_seconds(state, b, j), min(whole, 1.0)))
