"""What a rule of action adds to a pass on a cluster, as `bridge.scheduler.action_pass` does on the pool."""

from bridge.base.arrays import Array
from bridge.base.jit import by_type, inline, inner
from bridge.scheduler.acting_state import ActingNodes
from bridge.scheduler.actions import GUEST, LAS, SPECULATIVE
from bridge.scheduler.calendar import come_back
from bridge.scheduler.cluster_state import ClusterState
from bridge.scheduler.heads import open_head, reserve_heads
from bridge.scheduler.idle_nodes import list_idle
from bridge.scheduler.lanes import insert_in_lane, list_lanes, remove_from_lane, sort_lanes
from bridge.scheduler.limited_lives import end_limited_lives, next_limit
from bridge.scheduler.node_guests import admit_guests, may_start_now
from bridge.scheduler.node_starts import speculate_on_nodes
from bridge.scheduler.placement import select
from bridge.scheduler.preemption_rules import MINUTE
from bridge.scheduler.queue import BY_ORDER, sort_jobs
from bridge.scheduler.queue_key import set_key
from bridge.scheduler.state import NEVER
from bridge.scheduler.timed_nodes import set_bars


@inline
def _nothing(_state: ClusterState, _b: int) -> None:
    pass


@inner
def _begin(state: ActingNodes, b: int) -> None:
    _bring_back(state, b)
    end_limited_lives(state, b)
    if state.action[0].guard > 0:
        _mark_urgent(state, b)


#: Open a pass: lives that have reached their limit end, killed.
begin_actions = by_type(_nothing, _begin, ActingNodes)


@inner
def _bring_back(state: ActingNodes, b: int) -> None:
    """Let jobs that were stopped in the midst of a pass wait again."""
    acts = state.acts[b]
    n = acts.n_back
    for k in range(n):
        come_back(state, b, state.back[b, k])
    acts.n_back = 0
    if n > 0 and state.switches[0].dynamic_order and not state.switches[0].scored_outside:
        sort_lanes(state, b)


@inner
def _mark_urgent(state: ActingNodes, b: int) -> None:
    """Let waiting jobs that have waited for as long as the guard says go ahead of all others."""
    which, now = state.scratch[2], state.scalars[b].now
    n = list_lanes(state, b, which)
    for k in range(n):
        j = which[k]
        life = state.lives[b, j]
        if not life.urgent and now - state.jobs[b, j].submit - life.occupied >= state.action[0].guard:
            remove_from_lane(state, b, j)
            life.urgent = 1
            set_key(state, b, j, state.jobs[b, j].score)
            insert_in_lane(state, b, j)


@inner
def _end(state: ActingNodes, b: int) -> None:
    env, acts, rules = state.scalars[b], state.acts[b], state.action[0]
    _bring_back(state, b)
    if acts.n_to_try > 0 and env.n_waiting > 0:
        if rules.kind == SPECULATIVE:
            _speculate(state, b)
        elif rules.kind == GUEST:
            admit_guests(state, b)
    wake = next_limit(state, b)
    if rules.kind >= LAS and env.n_waiting > 0 and env.n_running > 0:  # LAS, HYBRID
        wake = min(wake, (env.now // MINUTE + 1) * MINUTE)
    acts.wake_at = wake


#: Do what the rule does with what the pass has left.
end_actions = by_type(_nothing, _end, ActingNodes)


@inline
def _ungrouped(_state: ClusterState, _b: int, _which: Array, _n: int) -> None:
    pass


@inner
def _group(state: ActingNodes, b: int, which: Array, n: int) -> None:
    for k in range(n):
        set_key(state, b, which[k], state.jobs[b, which[k]].score)


#: Python has written scores to the `n` waiting jobs: let them stand in their groups.
group = by_type(_ungrouped, _group, ActingNodes)


@inline
def _select_idle(state: ActingNodes, b: int, j: int) -> int:
    """Choose idle nodes for job `j`; return in how many classes, or -1."""
    state.node_scalars[b].n_caps = 0
    set_bars(state, b, j, state.scalars[b].now)
    list_idle(state, b)
    return select(state, b, state.node_jobs[b, j].shape_number, state.idle_base, False)


@inner
def _speculate(state: ActingNodes, b: int) -> None:
    """Start eligible jobs on idle nodes, in queue order, until the first reservation of these at most."""
    env, which = state.scalars[b], state.scratch[2]
    n = list_lanes(state, b, which)
    sort_jobs(state.jobs[b], which, state.scratch[1], n, BY_ORDER)
    n_fit = 0
    for k in range(n):
        j = which[k]
        if state.lives[b, j].may_try and may_start_now(state, b, j) and _select_idle(state, b, j) >= 0:
            state.victims[n_fit] = j
            n_fit += 1
    if n_fit == 0:
        return
    _reserve_first_jobs(state, b, n)
    env.head = which[0]
    for k in range(n_fit):
        j = state.victims[k]
        if may_start_now(state, b, j):
            chosen = _select_idle(state, b, j)
            until = min(_first_reservation(state, b, chosen), env.now + state.action[0].limit)
            if chosen >= 0 and until > env.now:
                speculate_on_nodes(state, b, j, chosen, until)
    env.head = -1


@inner
def _reserve_first_jobs(state: ActingNodes, b: int, n: int) -> None:
    """Let the first eligible job of each partition be its head, of `n` in queue order, and reserve for it."""
    more, which = state.node_scalars[b], state.scratch[2]
    more.n_heads = more.n_reserved = more.n_profile = 0
    for p in range(state.heads.shape[1]):
        state.heads[b, p].job = -1
        state.heads[b, p].n = 0
    for k in range(n):
        p = state.lanes[state.node_jobs[b, which[k]].lane].partition
        if state.heads[b, p].job < 0 and may_start_now(state, b, which[k]):
            open_head(state, b, which[k])
    reserve_heads(state, b)


@inner
def _first_reservation(state: ActingNodes, b: int, chosen: int) -> int:
    """Return the first shadow time of a head that may have one of the chosen classes, or NEVER."""
    time = NEVER
    for k in range(state.node_scalars[b].n_heads):
        head = state.heads[b, state.head_order[b, k]]
        admits = state.shapes[state.node_jobs[b, head.job].shape_number].admits
        for i in range(chosen):
            if state.admits[admits, state.chosen_classes[i]]:
                time = min(time, head.shadow)
    return int(time)


@inline
def _never(_state: ClusterState, _b: int) -> int:
    return NEVER


@inline
def _next_act(state: ActingNodes, b: int) -> int:
    return int(state.acts[b].wake_at)


#: When the rule has something to do next, or NEVER.
next_action = by_type(_never, _next_act, ActingNodes)
