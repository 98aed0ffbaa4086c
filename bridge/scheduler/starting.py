"""How a job starts, whoever decided it."""

from bridge.base.jit import by_type, inline
from bridge.scheduler.action_state import ActionState
from bridge.scheduler.amounts import take
from bridge.scheduler.lives import start_life
from bridge.scheduler.queue import remove
from bridge.scheduler.starts import record_start
from bridge.scheduler.state import State


@inline
def _start_pooled(state: State, b: int, j: int, how: int, past: int) -> None:
    remove(state, b, j)
    take(state.free[b], state.demand[b, j])
    record_start(state, b, j, how, past)


#: Start waiting job `j` now.
_start = by_type(_start_pooled, start_life, ActionState)
