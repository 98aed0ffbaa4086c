"""Lives that last until a time at most: they end there, on the pool and on nodes."""

from bridge.base.jit import by_type, inner
from bridge.scheduler.acting_state import ActingNodes
from bridge.scheduler.action_state import KILLED, ActionState
from bridge.scheduler.calendar import stop_on_nodes
from bridge.scheduler.lives import stop
from bridge.scheduler.state import NEVER

_stop = by_type(stop, stop_on_nodes, ActingNodes)


@inner
def end_limited_lives(state: ActionState, b: int) -> None:
    """Stop whoever has reached the limit of its life; it waits again."""
    acts = state.acts[b]
    k = 0
    while k < acts.n_limited:
        j = state.limited[b, k]
        if state.lives[b, j].limit_at <= state.scalars[b].now:
            _stop(state, b, j, KILLED)  # the next one takes its place
        else:
            k += 1


@inner
def next_limit(state: ActionState, b: int) -> int:
    """Return when the next life reaches its limit, or NEVER."""
    time = NEVER
    for k in range(state.acts[b].n_limited):
        time = min(time, state.lives[b, state.limited[b, k]].limit_at)
    return int(time)
