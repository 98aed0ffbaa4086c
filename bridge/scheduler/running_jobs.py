"""Running jobs in order of believed end."""

from bridge.base.arrays import Array
from bridge.base.jit import inline
from bridge.scheduler.state import State


@inline
def fits(demand: Array, free: Array) -> bool:
    """Tell whether a demand fits in free amounts, per resource."""
    if demand[0] > free[0]:  # nodes, most often
        return False
    for r in range(1, free.shape[0]):  # noqa: SIM110  (compiled: a plain loop)
        if demand[r] > free[r]:
            return False
    return True


@inline
def first_from(values: Array, n: int, value: int) -> int:
    """Return the first place of ascending ``values[:n]`` that is not below a value, or n."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@inline
def add_running(state: State, b: int, j: int) -> None:
    """Note that job `j` runs until its believed end; equal ends keep the order of the starts."""
    ends = state.run_end[b]
    which = state.run_job[b]
    end = state.jobs[b, j].est_end
    k = state.scalars[b].n_running
    while k > 0 and ends[k - 1] > end:
        ends[k] = ends[k - 1]
        which[k] = which[k - 1]
        k -= 1
    ends[k] = end
    which[k] = j
    state.scalars[b].n_running += 1


@inline
def find_running(state: State, b: int, j: int) -> int:
    """Return the place of running job `j`."""
    k = first_from(state.run_end[b], state.scalars[b].n_running, state.jobs[b, j].est_end)
    while state.run_job[b, k] != j:
        k += 1
    return k


@inline
def remove_running(state: State, b: int, j: int) -> None:
    """Forget that job `j` runs."""
    ends = state.run_end[b]
    which = state.run_job[b]
    n = state.scalars[b].n_running - 1
    for k in range(find_running(state, b, j), n):
        ends[k] = ends[k + 1]
        which[k] = which[k + 1]
    state.scalars[b].n_running = n
