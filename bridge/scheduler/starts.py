"""What a start changes in the records, whatever the job starts on."""

from bridge.base.jit import inline, inner
from bridge.scheduler.queue import drop_job
from bridge.scheduler.running_jobs import add_running
from bridge.scheduler.state import State

#: Beside HOW_BACKFILLED, ``how`` of a job: on idle nodes that count as free; on a suspended job's nodes.
HOW_SPECULATIVE, HOW_GUEST = 3, 4


@inline
def note_start(state: State, b: int, j: int) -> None:
    """Let the world know that job `j` runs from now on."""
    env = state.scalars[b]
    state.started[b, env.n_started] = j
    env.n_started += 1


@inner
def forget_start(state: State, b: int, j: int) -> None:
    """Let the world not hear that job `j` runs: it stops again at this instant."""
    env = state.scalars[b]
    env.n_started = drop_job(state.started[b], env.n_started, j)


@inline
def announce_start(state: State, b: int, j: int, how: int, past: int) -> None:
    """Note that job `j` starts now, and let the world know."""
    env = state.scalars[b]
    job = state.jobs[b, j]
    job.start = env.now
    job.est_end = env.now + job.est_run
    job.how = how
    job.past = past
    job.serial = env.serial
    env.serial += 1
    note_start(state, b, j)


@inline
def record_start(state: State, b: int, j: int, how: int, past: int) -> None:
    """Make job `j` run from now on; it has left the queue, and has its resources."""
    announce_start(state, b, j, how, past)
    add_running(state, b, j)
