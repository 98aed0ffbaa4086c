"""Waiting jobs: those that a policy may see, by number, and the backlog behind them."""

from bridge.jit import inline
from bridge.pool.booking import drop
from bridge.pool.state import State


@inline
def put_back(state: State, b: int, j: int) -> None:
    """Insert job `j` by its number. If all slots are taken, the job with the highest number is hidden."""
    env = state.env[b]
    waiting = state.waiting[b]
    k = env.n_waiting
    while k > 0 and waiting[k - 1] > j:
        waiting[k] = waiting[k - 1]
        k -= 1
    waiting[k] = j
    env.n_waiting += 1


@inline
def arrive(state: State, b: int, j: int) -> bool:
    """Job `j` takes an empty slot, else a place in the backlog; False if that is full."""
    env = state.env[b]
    pool = state.pool[0]
    if env.n_waiting < pool.slots:
        put_back(state, b, j)
    elif env.tail - env.head < pool.backlog:
        state.backlog[b, env.tail] = j
        env.tail += 1
    else:
        return False
    return True


@inline
def leave(state: State, b: int, k: int) -> None:
    """The job in slot `k` leaves; an empty slot is filled from the backlog's head."""
    env = state.env[b]
    drop(state.waiting[b], env.n_waiting, k)
    env.n_waiting -= 1
    if env.n_waiting < state.pool[0].slots and env.head < env.tail:
        put_back(state, b, state.backlog[b, env.head])
        env.head += 1
