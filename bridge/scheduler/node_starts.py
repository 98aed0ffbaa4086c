"""How a job starts on the nodes that were chosen for it; jobs that only speculate there make room."""

from bridge.base.jit import by_type, inner
from bridge.scheduler.acting_state import ActingNodes
from bridge.scheduler.action_state import KILLED, SPECULATES
from bridge.scheduler.actions import SPECULATIVE
from bridge.scheduler.calendar import end_run
from bridge.scheduler.cluster_state import ClusterState
from bridge.scheduler.eligibility import count_start
from bridge.scheduler.idle_nodes import is_lacking, last_on
from bridge.scheduler.lanes import remove_from_lane
from bridge.scheduler.lives import give_up_trying, limit_life, open_life
from bridge.scheduler.placement import allocate_chosen
from bridge.scheduler.starts import HOW_SPECULATIVE, announce_start, record_start
from bridge.scheduler.timed_state import PREEMPTED_REQUEUED


@inner
def _start(state: ClusterState, b: int, j: int, n: int, how: int, past: int) -> None:
    remove_from_lane(state, b, j)
    allocate_chosen(state, b, j, n)
    record_start(state, b, j, how, past)
    count_start(state, b, j)


@inner
def _start_with_lives(state: ActingNodes, b: int, j: int, n: int, how: int, past: int) -> None:
    remove_from_lane(state, b, j)
    _evict(state, b, j, n)
    is_tried = open_life(state, b, j)
    allocate_chosen(state, b, j, n)
    record_start(state, b, j, how, past)
    if is_tried:
        limit_life(state, b, j, state.scalars[b].now + state.action[0].limit)
    count_start(state, b, j)


#: Start waiting job `j` now on the `n` classes that were chosen for it.
start_on_chosen = by_type(_start, _start_with_lives, ActingNodes)


@inner
def _evict(state: ActingNodes, b: int, j: int, n: int) -> None:
    """Let jobs that speculate on what was chosen for job `j` end, the last started first."""
    acts, shape = state.acts[b], state.node_jobs[b, j].shape_number
    if state.action[0].kind != SPECULATIVE:
        return
    for k in range(n):
        c, units = state.chosen_classes[k], state.chosen_units[k]
        while acts.n_limited > 0 and is_lacking(state, b, shape, c, units):
            last = last_on(state, b, c)
            end_run(state, b, last, PREEMPTED_REQUEUED, KILLED)
            state.back[b, acts.n_back] = last  # lanes must not change in a pass
            acts.n_back += 1


@inner
def speculate_on_nodes(state: ActingNodes, b: int, j: int, n: int, until: int) -> None:
    """Start waiting job `j` on idle nodes of the `n` classes that were chosen; it is stopped at a time."""
    env, life = state.scalars[b], state.lives[b, j]
    remove_from_lane(state, b, j)
    give_up_trying(state, b, j)
    life.does = SPECULATES
    if life.first_start < 0:
        life.first_start = env.now
    allocate_chosen(state, b, j, n)
    announce_start(state, b, j, HOW_SPECULATIVE, env.head)
    limit_life(state, b, j, until)
    count_start(state, b, j)
