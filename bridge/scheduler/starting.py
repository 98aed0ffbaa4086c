"""How a job starts, whoever decided it."""

from bridge.base.jit import inline
from bridge.scheduler.amounts import take
from bridge.scheduler.queue import remove
from bridge.scheduler.running_jobs import add_running
from bridge.scheduler.state import State


@inline
def record_start(state: State, b: int, j: int, how: int, past: int) -> None:
    """Make job `j` run from now on; it has left the queue, and has its resources."""
    env = state.scalars[b]
    job = state.jobs[b, j]
    job.start = env.now
    job.est_end = env.now + job.est_run
    job.how = how
    job.past = past
    job.serial = env.serial
    env.serial += 1
    add_running(state, b, j)
    state.started[b, env.n_started] = j
    env.n_started += 1


@inline
def _start(state: State, b: int, j: int, how: int, past: int) -> None:
    """Start waiting job `j` now."""
    remove(state, b, j)
    take(state.free[b], state.demand[b, j])
    record_start(state, b, j, how, past)
