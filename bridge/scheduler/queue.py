"""The waiting queue: jobs in queue order, in blocks that know a lower bound of what they ask for.

The bounds let backfilling pass over blocks without a possible candidate, so that a queue of tens of
thousands of jobs costs no more than its blocks. They are lower bounds only: removals leave them, and
they are tightened whenever a block is read in vain.
"""

import numpy as np

from bridge.base.arrays import Array, Records
from bridge.base.jit import inline, inner, kernel
from bridge.scheduler.block_order import close_block, open_block
from bridge.scheduler.queue_key import set_key
from bridge.scheduler.score import evaluate
from bridge.scheduler.state import BLOCK, CLASSES, NEVER, State


@inline
def size_class(nodes: int) -> int:
    """Return the bit length of `nodes`, at most CLASSES - 1."""
    c = 0
    while nodes > 0 and c < CLASSES - 1:
        nodes >>= 1
        c += 1
    return c


@inline
def precedes(jobs: Records, a: int, b: int) -> bool:
    """Tell whether job `a` stands before `b`: by score, then tie, then submission (the index)."""
    if jobs[a].score != jobs[b].score:
        return bool(jobs[a].score > jobs[b].score)
    if jobs[a].tie != jobs[b].tie:
        return bool(jobs[a].tie < jobs[b].tie)
    return a < b


@inline
def clear_bounds(state: State, b: int, block: int) -> None:
    """Let a block's bounds hold for no job."""
    state.min_nodes[b, block] = NEVER
    for c in range(CLASSES):
        state.min_estimate[b, block, c] = NEVER


@inline
def lower_bounds(state: State, b: int, block: int, j: int, amount: int) -> None:
    """Lower a block's bounds so that they hold for job `j`, which needs at least `amount`."""
    job = state.jobs[b, j]
    if amount < state.min_nodes[b, block]:
        state.min_nodes[b, block] = amount
    for c in range(job.size_class, CLASSES):
        if state.min_estimate[b, block, c] <= job.est_wait:
            break  # the bounds fall with the class
        state.min_estimate[b, block, c] = job.est_wait


@inline
def _bound(state: State, b: int, block: int, j: int) -> None:
    lower_bounds(state, b, block, j, state.demand[b, j, 0])


@inner
def recompute_bounds(state: State, b: int, block: int) -> None:
    clear_bounds(state, b, block)
    for k in range(state.size[b, block]):
        _bound(state, b, block, state.items[b, block, k])


@inline
def _add_block(state: State, b: int, place: int) -> int:
    """Open an empty block at `place` of the block order and return its number."""
    block = open_block(state.blocks[b], state.scalars[b].n_blocks, place)
    state.scalars[b].n_blocks += 1
    state.size[b, block] = 0
    state.score_bound[b, block] = -np.inf
    clear_bounds(state, b, block)
    return block


@inline
def _drop_block(state: State, b: int, place: int) -> None:
    """Give the block at `place` back to the free ones."""
    close_block(state.blocks[b], state.scalars[b].n_blocks, place)
    state.scalars[b].n_blocks -= 1


@inline
def _place_of(state: State, b: int, j: int) -> int:
    """Return the first place in the block order whose last job does not precede `j`."""
    jobs = state.jobs[b]
    low, high = 0, state.scalars[b].n_blocks
    while low < high:
        middle = (low + high) // 2
        block = state.blocks[b, middle]
        if precedes(jobs, state.items[b, block, state.size[b, block] - 1], j):
            low = middle + 1
        else:
            high = middle
    return low


@inline
def _place_by_number(state: State, b: int, j: int) -> int:
    """Return the place of job `j`'s block in a queue in order of submission; any place in another one."""
    low, high = 0, state.scalars[b].n_blocks - 1
    while low < high:
        middle = (low + high) // 2
        block = state.blocks[b, middle]
        if state.items[b, block, state.size[b, block] - 1] < j:
            low = middle + 1
        else:
            high = middle
    return low


@inline
def _find(state: State, b: int, place: int, j: int) -> int:
    """Return the place of job `j` in the block at `place`, or -1."""
    block = state.blocks[b, place]
    for k in range(state.size[b, block]):
        if state.items[b, block, k] == j:
            return k
    return -1


@inline
def insert(state: State, b: int, j: int) -> None:
    """Put job `j` where its score belongs; under a dynamic order at the end, until the next sort."""
    env = state.scalars[b]
    jobs = state.jobs[b]
    dynamic = state.switches[0].dynamic_order
    n_blocks = env.n_blocks
    env.n_waiting += 1
    place = n_blocks if dynamic else _place_of(state, b, j)
    if place == n_blocks:  # behind every other job
        place = n_blocks - 1
        if n_blocks == 0 or state.size[b, state.blocks[b, place]] == BLOCK:
            place = n_blocks
            _add_block(state, b, place)
        block = state.blocks[b, place]
        state.items[b, block, state.size[b, block]] = j
        state.size[b, block] += 1
        _bound(state, b, block, j)
        state.score_bound[b, block] = max(state.score_bound[b, block], jobs[j].score)
        return
    block = state.blocks[b, place]
    if state.size[b, block] == BLOCK:
        upper = _add_block(state, b, place + 1)
        half = BLOCK // 2
        for k in range(half):
            state.items[b, upper, k] = state.items[b, block, half + k]
        state.size[b, upper] = BLOCK - half
        state.size[b, block] = half
        recompute_bounds(state, b, block)
        recompute_bounds(state, b, upper)
        if precedes(jobs, state.items[b, block, half - 1], j):
            block = upper
    row = state.items[b, block]
    k = state.size[b, block]
    while k > 0 and precedes(jobs, j, row[k - 1]):
        row[k] = row[k - 1]
        k -= 1
    row[k] = j
    state.size[b, block] += 1
    _bound(state, b, block, j)


@inner
def _merge_after(state: State, b: int, place: int) -> None:
    """Pour the next block into this one if both are sparse."""
    if place < 0 or place + 1 >= state.scalars[b].n_blocks:
        return
    block = state.blocks[b, place]
    other = state.blocks[b, place + 1]
    n = state.size[b, block]
    m = state.size[b, other]
    if n + m > BLOCK // 2:
        return
    for k in range(m):
        state.items[b, block, n + k] = state.items[b, other, k]
        _bound(state, b, block, state.items[b, other, k])
    state.size[b, block] = n + m
    state.score_bound[b, block] = max(state.score_bound[b, block], state.score_bound[b, other])
    _drop_block(state, b, place + 1)


@inline
def remove(state: State, b: int, j: int) -> None:
    env = state.scalars[b]
    place = 0
    if state.switches[0].growing_order:
        place = _place_by_number(state, b, j)
    elif not state.switches[0].dynamic_order and env.n_blocks > 1:
        place = _place_of(state, b, j)
    k = _find(state, b, place, j)
    while k < 0:
        place = place + 1 if place + 1 < env.n_blocks else 0
        k = _find(state, b, place, j)
    block = state.blocks[b, place]
    row = state.items[b, block]
    n = state.size[b, block] - 1
    for m in range(k, n):
        row[m] = row[m + 1]
    state.size[b, block] = n
    env.n_waiting -= 1
    if n == 0:
        _drop_block(state, b, place)
        _merge_after(state, b, place - 1)
    elif n <= BLOCK // 2:
        _merge_after(state, b, place)
        _merge_after(state, b, place - 1)


@inline
def first(state: State, b: int) -> int:
    """Return the job at the head of the (non-empty) queue."""
    return int(state.items[b, state.blocks[b, 0], 0])


@kernel
def list_in_order(state: State, b: int, out: Array) -> int:
    """Write the queue's jobs in order to `out` and return how many they are."""
    n = 0
    for i in range(state.scalars[b].n_blocks):
        block = state.blocks[b, i]
        for k in range(state.size[b, block]):
            out[n] = state.items[b, block, k]
            n += 1
    return n


#: What a sort goes by: the queue's total order; scores alone, ties as they stand; the candidates' own order.
BY_ORDER, BY_SCORE, BY_ALT = 0, 1, 2


@inline
def stands_before(jobs: Records, a: int, b: int, by: int) -> bool:
    """Tell whether `a` must move before `b`."""
    if by == BY_SCORE:
        return bool(jobs[a].score > jobs[b].score)
    if by == BY_ALT:
        if jobs[a].alt != jobs[b].alt:
            return bool(jobs[a].alt > jobs[b].alt)
        return a < b
    return precedes(jobs, a, b)


@inner
def sort_jobs(jobs: Records, a: Array, spare: Array, n: int, by: int) -> None:
    """Sort ``a[:n]`` stably: a natural merge sort, linear when few jobs changed places."""
    if n <= 24:
        for i in range(1, n):
            j = a[i]
            k = i
            while k > 0 and stands_before(jobs, j, a[k - 1], by):
                a[k] = a[k - 1]
                k -= 1
            a[k] = j
        return
    while True:
        merged = 0
        low = 0
        while low < n:
            middle = low + 1
            while middle < n and not stands_before(jobs, a[middle], a[middle - 1], by):
                middle += 1
            if middle == n:
                break
            high = middle + 1
            while high < n and not stands_before(jobs, a[high], a[high - 1], by):
                high += 1
            for i in range(low, middle):
                spare[i] = a[i]
            i, k, out = low, middle, low
            while i < middle and k < high:
                if stands_before(jobs, a[k], spare[i], by):
                    a[out] = a[k]
                    k += 1
                else:
                    a[out] = spare[i]
                    i += 1
                out += 1
            while i < middle:
                a[out] = spare[i]
                i += 1
                out += 1
            low = high
            merged += 1
        if merged == 0:
            return


@inner
def rearrange(state: State, b: int) -> None:
    """Bring the queue, listed in ``scratch[0]``, into the order of its scores."""
    env = state.scalars[b]
    jobs = state.jobs[b]
    flat = state.scratch[0]
    n = env.n_waiting
    sort_jobs(jobs, flat, state.scratch[1], n, BY_SCORE if state.switches[0].persistent_sort else BY_ORDER)
    k = 0
    for i in range(env.n_blocks):  # the blocks keep their sizes
        block = state.blocks[b, i]
        for m in range(state.size[b, block]):
            state.items[b, block, m] = flat[k]
            k += 1


@inner
def sort(state: State, b: int) -> None:
    """Score every waiting job now and bring the queue into order (dynamic orders only)."""
    flat = state.scratch[0]
    n = list_in_order(state, b, flat)
    evaluate(state, b, state.program, flat, n)
    for i in range(n):
        set_key(state, b, flat[i], state.stack[0, i])
    rearrange(state, b)


@inline
def _is_bounded(state: State) -> bool:
    """Tell whether blocks keep bounds of their jobs: not where sorting moves jobs between them."""
    return bool(not state.switches[0].dynamic_order or state.switches[0].growing_order)


@inline
def may_fit(state: State, b: int, block: int, nodes: int) -> bool:
    """Tell whether a block may hold a job that fits in `nodes`."""
    return bool(not _is_bounded(state) or state.min_nodes[b, block] <= nodes)


@inline
def may_backfill_from(
    state: State, b: int, block: int, nodes: int, extra: int, klass: int, room: int
) -> bool:
    """Tell whether a block may hold a job that fits in `nodes`, and ends in `room` or fits in `extra`."""
    if not may_fit(state, b, block, nodes):
        return False
    least = state.min_nodes[b, block]
    return bool(not _is_bounded(state) or least <= extra or state.min_estimate[b, block, klass] <= room)


def waiting(state: State, b: int = 0) -> Array:
    """Return the waiting jobs' indices in queue order (a copy)."""
    out = np.zeros(int(state.scalars.n_waiting[b]), np.int32)
    list_in_order(state, b, out)
    return out


@inner
def drop_job(jobs: Array, n: int, j: int) -> int:
    """Take job `j` out of ``jobs[:n]``, whose order stays; return how many are left."""
    left = 0
    for k in range(n):
        if jobs[k] != j:
            jobs[left] = jobs[k]
            left += 1
    return left
