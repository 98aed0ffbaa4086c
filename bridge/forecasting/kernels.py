"""The kernels of a fork: a batch of two episodes, the present as it is, and the future that is played."""

from bridge.base.arrays import Array
from bridge.base.jit import inline, kernel
from bridge.scheduler import core
from bridge.scheduler.amounts import copy_amounts, take
from bridge.scheduler.core import begin_pass
from bridge.scheduler.running_jobs import add_running, copy_running
from bridge.scheduler.state import State
from bridge.worlds.fast.world import DONE, WorldState, push_completion, run_until_decision

#: Episodes of the batch.
PRESENT, FUTURE = 0, 1
#: Where a future's play stands, beside the kinds of the world: it is not begun.
FRESH = -9


@kernel
def load_present_jobs(state: State, n: int, n_running: int) -> None:
    """Make the jobs of the present run and wait."""
    for j in range(n_running):
        job = state.jobs[PRESENT, j]
        take(state.free[0], state.demand[0, j])
        job.est_end = job.start + job.est_run
        state.jobs[1, j].est_end = job.est_end
        job.serial = j
        state.jobs[1, j].serial = j
        add_running(state, 0, j)
    state.scalars[PRESENT].serial = n_running
    for j in range(n_running, n):
        core.submit(state, 0, j)
        copy, job = state.jobs[1, j], state.jobs[PRESENT, j]
        copy.score = job.score
        copy.alt = job.alt
        copy.size_class = job.size_class
        copy.slot = job.slot


@inline
def _restart(state: State, memory: WorldState, runs: Array, n_running: int, settled: bool) -> None:
    """Bring the future back to the present, with other run times."""
    present = state.scalars[PRESENT]
    n = runs.shape[0]
    state.scalars[1] = state.scalars[PRESENT]
    state.scalars[1].foreseen = 0  # bounds of scores are not copied
    copy_amounts(state.free[1], state.free[0])
    for u in range(state.usage.shape[1]):
        state.usage[1, u] = state.usage[0, u]
    for i in range(state.blocks.shape[1]):
        state.blocks[1, i] = state.blocks[0, i]
    for i in range(present.n_blocks):
        block = state.blocks[0, i]
        size = state.size[0, block]
        state.size[1, block] = size
        state.min_nodes[1, block] = state.min_nodes[0, block]
        for c in range(state.min_estimate.shape[2]):
            state.min_estimate[1, block, c] = state.min_estimate[0, block, c]
        for k in range(size):
            state.items[1, block, k] = state.items[0, block, k]
    copy_running(state, PRESENT, FUTURE)
    clock = memory.clock[1]
    clock.arrived = clock.last = n
    clock.pending = 0
    clock.open = 0
    for j in range(n):
        job = state.jobs[1, j]
        job.run = runs[j]
        if j < n_running:
            push_completion(memory, 1, job.start + job.run, job.serial, j)
        else:
            job.start = -1
            job.reserved = -1
            job.rejects = 0
    if not settled:
        begin_pass(state, 1)
        clock.open = 1


@kernel
def play_futures(
    state: State,
    memory: WorldState,
    runs: Array,
    starts: Array,
    wanted: Array,
    n_running: int,
    settled: bool,
    future: int,
    kind: int,
    passes: int,
) -> tuple[int, int]:
    """Play the futures from one on, each from where it stands.

    Returns the one that needs Python before it can go on, or their number; and the kind that it needs.
    """
    n = runs.shape[1]
    while future < runs.shape[0]:
        if kind == FRESH:
            _restart(state, memory, runs[future], n_running, settled)
        n_started = 0
        while True:
            while n_started < wanted.shape[0] and state.jobs[1, wanted[n_started]].start >= 0:
                n_started += 1
            if n_started == wanted.shape[0]:
                break
            kind = run_until_decision(state, memory, 1, 1)
            passes -= 1
            if kind < core.PAUSE or kind == DONE:
                break
            if kind != core.PAUSE or state.scalars[1].bad_score >= 0 or passes <= 0:
                return future, kind
        for j in range(n_running, n):
            if state.jobs[1, j].start >= 0:
                starts[future, j] = state.jobs[1, j].start
        kind = FRESH
        future += 1
    return future, kind
