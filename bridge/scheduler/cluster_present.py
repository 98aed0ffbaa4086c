"""The present of a cluster: some jobs run on nodes of their own since earlier, others wait."""

from bridge.base.arrays import Array
from bridge.base.jit import kernel
from bridge.scheduler import core
from bridge.scheduler.cluster_state import ClusterState
from bridge.scheduler.eligibility import count_start
from bridge.scheduler.placement import allocate_chosen
from bridge.scheduler.running_jobs import add_running


@kernel
def load_present(
    state: ClusterState, start: Array, first: Array, classes: Array, units: Array, n_jobs: int, now: int
) -> None:
    """Let the first jobs of scheduler 0 run, and the others wait since their submissions.

    Args:
        state: none of its jobs is submitted.
        start: [n] when each of the first n jobs has started, in any order.
        first: [n + 1] what job j has are `classes` and `units` from ``first[j]`` to ``first[j + 1]``: of a
            counted class nodes, else demands of the job.
        classes, units: see `first`.
        n_jobs: the jobs that run or wait.
        now: microseconds.
    """
    env = state.scalars[0]
    n_running = start.shape[0]
    for j in range(n_running):
        n = first[j + 1] - first[j]
        for k in range(n):
            state.chosen_classes[k] = classes[first[j] + k]
            state.chosen_units[k] = units[first[j] + k]
        job = state.jobs[0, j]
        job.start = start[j]
        job.est_end = job.start + job.est_run
        job.serial = env.serial
        env.serial += 1
        allocate_chosen(state, 0, j, n)
        add_running(state, 0, j)
        count_start(state, 0, j)
    for j in range(n_running, n_jobs):
        env.now = max(env.now, state.jobs[0, j].submit)
        core.submit(state, 0, j)
    env.now = now
