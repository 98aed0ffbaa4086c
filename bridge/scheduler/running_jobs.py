"""Running jobs in order of believed end, equal ends in order of start: blocks, as of the waiting queue.

A block is so many places of ``run_end`` and ``run_job``; behind its last job stands, as an end that never
comes, a link to the next block's first place (`LAST_BLOCK`: there is none). So who walks the running jobs
pays little for the blocks: from `first_place` by `next_place` until `job_at` is negative.
There is at least one block. One that is alone may be empty, and has its size in ``n_running`` only: most
machines never have another, and pay nothing.
"""

import numpy as np

from bridge.base.arrays import Array
from bridge.base.jit import inline, inner, kernel
from bridge.scheduler.block_order import close_block, open_block
from bridge.scheduler.state import LAST_BLOCK, MOST_IN_BLOCK, NEVER, RUN_BLOCK, State


@inline
def fits(demand: Array, free: Array) -> bool:
    if demand[0] > free[0]:  # nodes, most often
        return False
    for r in range(1, free.shape[0]):  # noqa: SIM110  (compiled: a plain loop)
        if demand[r] > free[r]:
            return False
    return True


@inline
def first_from(values: Array, low: int, high: int, value: int) -> int:
    """Return the first place of ascending ``values[low:high]`` that is not below a value, or `high`."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@inline
def first_place(state: State, b: int) -> int:
    """Return the place of the running job that ends first, or of the link behind none."""
    return int(state.scalars[b].first_running)


@inline
def next_place(which: Array, place: int) -> int:
    """Return the place of the job that ends next in ``run_job[b]``, or of the link behind the last."""
    place += 1
    if which[place] < 0 and which[place] != LAST_BLOCK:
        return int(-1 - which[place])
    return place


@inline
def job_at(state: State, b: int, place: int) -> int:
    """Return the running job at a place; negative behind the last."""
    return int(state.run_job[b, place])


@inline
def _link(state: State, b: int, i: int) -> None:
    """Write the link behind the i-th block in order; behind none: where the first block is."""
    next_first = state.run_blocks[b, i + 1] * RUN_BLOCK
    if i < 0:
        state.scalars[b].first_running = next_first
        return
    place = state.run_blocks[b, i] * RUN_BLOCK + state.run_size[b, state.run_blocks[b, i]]
    state.run_end[b, place] = NEVER
    state.run_job[b, place] = -1 - next_first if i + 1 < state.scalars[b].n_run_blocks else LAST_BLOCK


@inline
def _pour(state: State, b: int, block: int, first: int, to: int) -> None:
    """Move a block's jobs from the `first` on behind those of another block."""
    n = state.run_size[b, block]
    at = to * RUN_BLOCK + state.run_size[b, to] - first
    for k in range(first, n):
        state.run_end[b, at + k] = state.run_end[b, block * RUN_BLOCK + k]
        state.run_job[b, at + k] = state.run_job[b, block * RUN_BLOCK + k]
    state.run_size[b, to] += n - first
    state.run_size[b, block] = first


@inner
def _block_for(state: State, b: int, end: int) -> int:
    """Return the block for a new job with this end; it has room."""
    env = state.scalars[b]
    order = state.run_blocks[b]
    if env.n_run_blocks == 1:
        state.run_size[b, order[0]] = env.n_running
    low, high = 0, env.n_run_blocks
    while low < high:  # the first block whose last job ends later
        middle = (low + high) // 2
        block = order[middle]
        if state.run_end[b, block * RUN_BLOCK + state.run_size[b, block] - 1] <= end:
            low = middle + 1
        else:
            high = middle
    behind_all = low == env.n_run_blocks
    i = low - 1 if behind_all else low
    block = order[i]
    if state.run_size[b, block] < MOST_IN_BLOCK:
        return int(block)
    upper = open_block(order, env.n_run_blocks, i + 1)
    env.n_run_blocks += 1
    state.run_size[b, upper] = 0
    if not behind_all:
        _pour(state, b, block, MOST_IN_BLOCK // 2, upper)
    _link(state, b, i)
    _link(state, b, i + 1)
    if behind_all or state.run_end[b, block * RUN_BLOCK + state.run_size[b, block] - 1] <= end:
        return upper
    return int(block)


@inline
def add_running(state: State, b: int, j: int) -> None:
    """Note that job `j` runs until its believed end; equal ends keep the order of the starts."""
    env = state.scalars[b]
    end = state.jobs[b, j].est_end
    first = env.first_running
    size = env.n_running
    if env.n_run_blocks > 1 or size == MOST_IN_BLOCK:
        block = _block_for(state, b, end)
        first = block * RUN_BLOCK
        size = state.run_size[b, block]
        state.run_size[b, block] = size + 1
    ends = state.run_end[b]
    which = state.run_job[b]
    k = first + size + 1  # the link moves, too
    while k > first and ends[k - 1] > end:
        ends[k] = ends[k - 1]
        which[k] = which[k - 1]
        k -= 1
    ends[k] = end
    which[k] = j
    env.n_running += 1


@inline
def _precedes(state: State, b: int, place: int, j: int, end: int) -> bool:
    """Tell whether the job at a place stands before running job `j`, which has this end."""
    if state.run_end[b, place] != end:
        return bool(state.run_end[b, place] < end)
    return bool(state.jobs[b, state.run_job[b, place]].serial < state.jobs[b, j].serial)


@inner
def _block_of(state: State, b: int, j: int, end: int) -> int:
    """Return which of several blocks, in order, holds running job `j`, which has this end."""
    low, high = 0, state.scalars[b].n_run_blocks - 1
    while low < high:
        middle = (low + high) // 2
        block = state.run_blocks[b, middle]
        if _precedes(state, b, block * RUN_BLOCK + state.run_size[b, block] - 1, j, end):
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _among_equals(state: State, b: int, j: int, end: int, low: int, high: int) -> int:
    """Return the place of running job `j`, from `low` to `high`; others there have the same end."""
    while low < high:
        middle = (low + high) // 2
        if _precedes(state, b, middle, j, end):
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _merge_after(state: State, b: int, i: int) -> None:
    """Pour the next block into the i-th if both are sparse."""
    env = state.scalars[b]
    if i < 0 or i + 1 >= env.n_run_blocks:
        return
    block, other = state.run_blocks[b, i], state.run_blocks[b, i + 1]
    if state.run_size[b, block] + state.run_size[b, other] > MOST_IN_BLOCK // 2:
        return
    _pour(state, b, other, 0, block)
    close_block(state.run_blocks[b], env.n_run_blocks, i + 1)
    env.n_run_blocks -= 1
    _link(state, b, i)


@inner
def _thin_out(state: State, b: int, i: int) -> None:
    """Close the i-th of several blocks if it is empty, else merge it with a sparse neighbour."""
    env = state.scalars[b]
    if state.run_size[b, state.run_blocks[b, i]] == 0:
        close_block(state.run_blocks[b], env.n_run_blocks, i)
        env.n_run_blocks -= 1
        _link(state, b, i - 1)
    else:
        _merge_after(state, b, i)
    _merge_after(state, b, i - 1)


@inline
def remove_running(state: State, b: int, j: int) -> None:
    env = state.scalars[b]
    end = state.jobs[b, j].est_end
    i = 0
    first = env.first_running
    n = env.n_running - 1
    if env.n_run_blocks > 1:
        i = _block_of(state, b, j, end)
        first = state.run_blocks[b, i] * RUN_BLOCK
        n = state.run_size[b, state.run_blocks[b, i]] - 1
    ends = state.run_end[b]
    which = state.run_job[b]
    place = first_from(ends, first, first + n, end)
    if which[place] != j:
        place = _among_equals(state, b, j, end, place, first + n)
    for k in range(place, first + n + 1):  # the link moves, too
        ends[k] = ends[k + 1]
        which[k] = which[k + 1]
    env.n_running -= 1
    if env.n_run_blocks > 1:
        state.run_size[b, state.run_blocks[b, i]] = n
        if n <= MOST_IN_BLOCK // 2:
            _thin_out(state, b, i)


@kernel
def list_running(state: State, b: int, out: Array) -> None:
    """Write the running jobs to `out`, by believed end."""
    n = 0
    place = first_place(state, b)
    while job_at(state, b, place) >= 0:
        out[n] = job_at(state, b, place)
        n += 1
        place = next_place(state.run_job[b], place)


@inline
def copy_running(state: State, b: int, to: int) -> None:
    """Make scheduler `to` have the running jobs of `b`; its scalars are those of `b` already."""
    for i in range(state.run_blocks.shape[1]):
        state.run_blocks[to, i] = state.run_blocks[b, i]
    for i in range(state.scalars[b].n_run_blocks):
        block = state.run_blocks[b, i]
        state.run_size[to, block] = state.run_size[b, block]
        place = block * RUN_BLOCK - 1
        job = 0
        while job >= 0:
            place += 1
            job = state.run_job[b, place]
            state.run_end[to, place] = state.run_end[b, place]
            state.run_job[to, place] = job


def running(state: State, b: int = 0) -> Array:
    """Return the running jobs' indices by believed end (a copy)."""
    out = np.zeros(int(state.scalars.n_running[b]), np.int32)
    list_running(state, b, out)
    return out


@kernel
def relist_running(state: State, b: int, jobs: Array) -> None:
    """List the running jobs anew, for believed ends have changed; `jobs` are all of them, by their starts."""
    env = state.scalars[b]
    for i in range(state.run_blocks.shape[1]):
        state.run_blocks[b, i] = i
    env.n_run_blocks, env.first_running, env.n_running = 1, 0, 0
    state.run_end[b, 0], state.run_job[b, 0] = NEVER, LAST_BLOCK
    for k in range(len(jobs)):
        add_running(state, b, jobs[k])


@kernel
def renumber_running(state: State, b: int, new: Array) -> None:
    """Let the list follow jobs whose indices change: `new` by the old ones."""
    which = state.run_job[b]
    place = first_place(state, b)
    while which[place] >= 0:
        which[place] = new[which[place]]
        place = next_place(which, place)
