"""What a calendar changes of jobs' eligibility; of a cluster without one, what each hook is instead."""

from bridge.base.jit import by_type, inline
from bridge.scheduler.cluster_state import ClusterState
from bridge.scheduler.state import State
from bridge.scheduler.timed_state import (
    FUTURE,
    OVER,
    PARTITION_CLOSED,
    PARTITION_UP,
    RUNNING,
    WAITING,
    TimedState,
)


@inline
def _nothing(_state: ClusterState, _b: int, _j: int) -> None:
    pass


@inline
def _no(_state: ClusterState, _b: int, _j: int) -> bool:
    return False


@inline
def _yes(_state: ClusterState, _b: int, _j: int) -> bool:
    return True


@inline
def _is_user_held(state: TimedState, b: int, j: int) -> bool:
    return bool(state.timed_jobs[b, j].is_held)


#: Whether job `j` is held by its user, until a release.
is_user_held = by_type(_no, _is_user_held, TimedState)


@inline
def _may_start(state: TimedState, b: int, j: int) -> bool:
    job, now = state.timed_jobs[b, j], state.scalars[b].now
    if job.is_held:
        return False
    v = job.reservation
    return v < 0 or bool(state.reservations[v].begin <= now < state.reservations[v].end)


#: Whether job `j`, which is eligible, is not held again, and its reservation has begun.
may_start = by_type(_yes, _may_start, TimedState)


@inline
def _lane_is_down(state: ClusterState, _b: int, g: int) -> bool:
    return bool(state.lanes[g].is_down)


@inline
def _lane_is_down_now(state: TimedState, b: int, g: int) -> bool:
    return bool(state.partition_states[b, state.lanes[g].partition] != PARTITION_UP)


#: Whether the partition of lane `g` is down.
lane_is_down = by_type(_lane_is_down, _lane_is_down_now, TimedState)


@inline
def _limit_of(state: ClusterState, _b: int, k: int) -> int:
    return int(state.counted[k].limit)


@inline
def _limit_now(state: TimedState, b: int, k: int) -> int:
    return int(state.limits[b, k])


#: The limit of the `k`-th of `counted`.
limit_of = by_type(_limit_of, _limit_now, TimedState)


@inline
def _start_of(state: ClusterState, b: int, j: int) -> int:
    return int(state.jobs[b, j].start)


@inline
def _first_start(state: TimedState, b: int, j: int) -> int:
    return int(state.timed_jobs[b, j].first_start)


#: When job `j` started first, or -1.
first_start = by_type(_start_of, _first_start, TimedState)


@inline
def _stood(state: TimedState, b: int, j: int) -> int:
    return int(state.timed_jobs[b, j].stood)


@inline
def _never_stood(_state: State, _b: int, _j: int) -> int:
    return 0


#: How long this life of job `j` was suspended.
stood = by_type(_never_stood, _stood, TimedState)


@inline
def _close_partition(state: TimedState, b: int, j: int) -> None:
    job = state.node_jobs[b, j]
    if state.partition_states[b, state.lanes[job.lane].partition] == PARTITION_CLOSED:
        job.refuse = state.inactive_reason[0]


#: Refuse job `j`, which is submitted, if its partition takes no jobs now.
refuse_if_closed = by_type(_nothing, _close_partition, TimedState)


@inline
def _note_submitted(state: TimedState, b: int, j: int) -> None:
    state.timed_jobs[b, j].doing = WAITING


note_submitted = by_type(_nothing, _note_submitted, TimedState)


@inline
def _note_eligible(state: TimedState, b: int, j: int) -> None:
    if state.timed_jobs[b, j].first_eligible < 0:
        state.timed_jobs[b, j].first_eligible = state.scalars[b].now


note_eligible = by_type(_nothing, _note_eligible, TimedState)


@inline
def _note_start(state: TimedState, b: int, j: int) -> None:
    job = state.timed_jobs[b, j]
    job.doing = RUNNING
    job.stood = 0
    job.grace_end = -1
    if job.first_start < 0:
        job.first_start = state.scalars[b].now


note_start = by_type(_nothing, _note_start, TimedState)


@inline
def _note_gone(state: TimedState, b: int, j: int) -> None:
    if state.timed_jobs[b, j].doing != FUTURE:
        state.timed_jobs[b, j].doing = OVER


note_gone = by_type(_nothing, _note_gone, TimedState)
