"""Nodes that count as free although somebody speculates there: which are idle, and who has to leave."""

from bridge.base.jit import by_type, inline, inner
from bridge.scheduler.acting_state import ActingNodes
from bridge.scheduler.actions import SPECULATIVE
from bridge.scheduler.cluster_state import ClusterState
from bridge.scheduler.placement import amount_taken, select, select_now


@inline
def is_lacking(state: ActingNodes, b: int, shape: int, c: int, units: int) -> bool:
    """Tell whether speculating jobs have some of what a demand takes of class `c`."""
    for r in range(state.on_idle.shape[2]):
        held = state.on_idle[b, c, r]
        if held > 0 and state.free_node[b, c, r] - held < amount_taken(state, shape, c, units, r):
            return True
    return False


@inner
def last_on(state: ActingNodes, b: int, c: int) -> int:
    """Return the job that was the last to start to speculate on class `c`; there is one."""
    k = state.acts[b].n_limited - 1
    while True:
        entry = state.node_jobs[b, state.limited[b, k]].allocation
        while entry >= 0:
            if state.entry_class[b, entry] == c:
                return int(state.limited[b, k])
            entry = state.entry_next[b, entry]
        k -= 1


@inner
def list_idle(state: ActingNodes, b: int) -> None:
    """Write to ``idle_base`` what is free without what speculating jobs have of it."""
    base = state.idle_base
    for c in range(base.shape[0]):
        for r in range(base.shape[1]):
            base[c, r] = state.free_node[b, c, r] - state.on_idle[b, c, r]


@inline
def _select_free(state: ClusterState, b: int, shape: int, strikes: bool, first: int) -> int:
    return select_now(state, b, shape, strikes, first)


@inner
def _select_idle_first(state: ActingNodes, b: int, shape: int, strikes: bool, first: int) -> int:
    n = select_now(state, b, shape, strikes, first)
    if n < 0 or state.action[0].kind != SPECULATIVE or state.acts[b].n_limited == 0:
        return n
    list_idle(state, b)
    n = select(state, b, shape, state.idle_base, strikes)
    return n if n >= 0 else select_now(state, b, shape, strikes, first)


#: Choose classes from what is free now, as `select_now`; rather those where nobody speculates.
select_to_start = by_type(_select_free, _select_idle_first, ActingNodes)
