"""The waiting jobs of a cluster's scheduler: a queue for each lane, in linked blocks that know lower bounds.

The bounds, of cores, let backfilling pass over blocks without a possible candidate, as in
`bridge.scheduler.queue`.
"""

from bridge.base.arrays import Array
from bridge.base.jit import inline, inner
from bridge.scheduler.cluster_state import ClusterState
from bridge.scheduler.queue import BY_ORDER, precedes, sort_jobs
from bridge.scheduler.queue_key import set_key
from bridge.scheduler.score import evaluate
from bridge.scheduler.state import BLOCK, NEVER

_NONE = -1


@inline
def room_of(state: ClusterState, b: int, j: int) -> int:
    """Return how many cores job `j` takes at least."""
    return int(state.shapes[state.node_jobs[b, j].shape_number].room)


@inline
def _bound(state: ClusterState, b: int, block: int, j: int) -> None:
    state.min_nodes[b, block] = min(state.min_nodes[b, block], room_of(state, b, j))


@inner
def _recompute_bounds(state: ClusterState, b: int, block: int) -> None:
    state.min_nodes[b, block] = NEVER
    for k in range(state.size[b, block]):
        _bound(state, b, block, state.items[b, block, k])


@inner
def _open_block(state: ClusterState, b: int, g: int, before: int) -> int:
    """Open an empty block of lane `g` behind the block `before` (-1: at the front) and return its number."""
    more = state.node_scalars[b]
    lane = state.lane_states[b, g]
    more.n_free_blocks -= 1
    block = state.blocks[b, more.n_free_blocks]
    behind = state.next_block[b, before] if before >= 0 else lane.head
    state.previous_block[b, block] = before
    state.next_block[b, block] = behind
    if before >= 0:
        state.next_block[b, before] = block
    else:
        lane.head = block
    if behind >= 0:
        state.previous_block[b, behind] = block
    else:
        lane.tail = block
    state.size[b, block] = 0
    state.min_nodes[b, block] = NEVER
    return int(block)


@inner
def _close_block(state: ClusterState, b: int, g: int, block: int) -> None:
    """Give a block of lane `g` back."""
    more = state.node_scalars[b]
    lane = state.lane_states[b, g]
    before, behind = state.previous_block[b, block], state.next_block[b, block]
    if before >= 0:
        state.next_block[b, before] = behind
    else:
        lane.head = behind
    if behind >= 0:
        state.previous_block[b, behind] = before
    else:
        lane.tail = before
    state.blocks[b, more.n_free_blocks] = block
    more.n_free_blocks += 1


@inline
def _activate(state: ClusterState, b: int, g: int) -> None:
    more = state.node_scalars[b]
    state.lane_states[b, g].place = more.n_active
    state.active[b, more.n_active] = g
    more.n_active += 1


@inline
def _deactivate(state: ClusterState, b: int, g: int) -> None:
    more = state.node_scalars[b]
    more.n_active -= 1
    place, last = state.lane_states[b, g].place, state.active[b, more.n_active]
    state.active[b, place] = last
    state.lane_states[b, last].place = place


@inner
def _append(state: ClusterState, b: int, block: int, j: int) -> None:
    state.items[b, block, state.size[b, block]] = j
    state.size[b, block] += 1
    state.node_jobs[b, j].block = block
    _bound(state, b, block, j)


@inner
def append_to_lane(state: ClusterState, b: int, j: int) -> None:
    g = state.node_jobs[b, j].lane
    lane = state.lane_states[b, g]
    if lane.n == 0:
        _activate(state, b, g)
    block = lane.tail
    if block < 0 or state.size[b, block] == BLOCK:
        block = _open_block(state, b, g, block)
    _append(state, b, block, j)
    lane.n += 1
    state.scalars[b].n_waiting += 1


@inner
def insert_in_lane(state: ClusterState, b: int, j: int) -> None:
    """Put job `j` where its score belongs in its lane; at the end under a dynamic order, until a sort."""
    jobs = state.jobs[b]
    g = state.node_jobs[b, j].lane
    lane = state.lane_states[b, g]
    block = lane.tail
    if state.switches[0].dynamic_order or block < 0:
        append_to_lane(state, b, j)
        return
    while state.previous_block[b, block] >= 0 and precedes(jobs, j, state.items[b, block, 0]):
        block = state.previous_block[b, block]
    if state.size[b, block] == BLOCK:
        if block == lane.tail and precedes(jobs, state.items[b, block, BLOCK - 1], j):
            append_to_lane(state, b, j)
            return
        upper = _open_block(state, b, g, block)
        half = BLOCK // 2
        state.size[b, block] = half
        for k in range(half, BLOCK):
            _append(state, b, upper, state.items[b, block, k])
        _recompute_bounds(state, b, block)
        if precedes(jobs, state.items[b, block, half - 1], j):
            block = upper
    row = state.items[b, block]
    k = state.size[b, block]
    while k > 0 and precedes(jobs, j, row[k - 1]):
        row[k] = row[k - 1]
        k -= 1
    row[k] = j
    state.size[b, block] += 1
    state.node_jobs[b, j].block = block
    _bound(state, b, block, j)
    lane.n += 1
    state.scalars[b].n_waiting += 1


@inner
def _merge_lane_blocks(state: ClusterState, b: int, g: int, block: int) -> None:
    """Pour the next block into this one if both are sparse."""
    if block < 0:
        return
    other = state.next_block[b, block]
    if other < 0 or state.size[b, block] + state.size[b, other] > BLOCK // 2:
        return
    for k in range(state.size[b, other]):
        _append(state, b, block, state.items[b, other, k])
    _close_block(state, b, g, other)


@inner
def remove_from_lane(state: ClusterState, b: int, j: int) -> None:
    g, block = state.node_jobs[b, j].lane, state.node_jobs[b, j].block
    lane = state.lane_states[b, g]
    row = state.items[b, block]
    n = state.size[b, block] - 1
    k = 0
    while row[k] != j:
        k += 1
    for m in range(k, n):
        row[m] = row[m + 1]
    state.size[b, block] = n
    lane.n -= 1
    state.scalars[b].n_waiting -= 1
    if n == 0:
        before = state.previous_block[b, block]
        _close_block(state, b, g, block)
        _merge_lane_blocks(state, b, g, before)
    elif n <= BLOCK // 2:
        _merge_lane_blocks(state, b, g, block)
        _merge_lane_blocks(state, b, g, state.previous_block[b, block])
    if lane.n == 0:
        _deactivate(state, b, g)


@inline
def first_in_lane(state: ClusterState, b: int, g: int) -> int:
    """Return the first job of a lane, or -1."""
    block = state.lane_states[b, g].head
    return int(state.items[b, block, 0]) if block >= 0 else _NONE


@inner
def next_in_lane(state: ClusterState, b: int, j: int) -> int:
    """Return the job behind waiting job `j` in its lane, or -1."""
    block = state.node_jobs[b, j].block
    row = state.items[b, block]
    k = 0
    while row[k] != j:
        k += 1
    if k + 1 < state.size[b, block]:
        return int(row[k + 1])
    block = state.next_block[b, block]
    return int(state.items[b, block, 0]) if block >= 0 else _NONE


@inner
def list_lanes(state: ClusterState, b: int, out: Array) -> int:
    """Write all jobs of all lanes to `out`, lane by lane, and return how many they are."""
    n = 0
    for i in range(state.node_scalars[b].n_active):
        block = state.lane_states[b, state.active[b, i]].head
        while block >= 0:
            for k in range(state.size[b, block]):
                out[n] = state.items[b, block, k]
                n += 1
            block = state.next_block[b, block]
    return n


@inner
def rearrange_lanes(state: ClusterState, b: int, flat: Array, n: int) -> None:
    """Bring all lanes into the order of the scores; `flat` lists their jobs."""
    more = state.node_scalars[b]
    sort_jobs(state.jobs[b], flat, state.scratch[1], n, BY_ORDER)
    while more.n_active > 0:
        g = state.active[b, more.n_active - 1]
        lane = state.lane_states[b, g]
        while lane.head >= 0:
            _close_block(state, b, g, lane.head)
        lane.n = 0
        more.n_active -= 1
    state.scalars[b].n_waiting = 0
    for k in range(n):
        append_to_lane(state, b, flat[k])


@inner
def sort_lanes(state: ClusterState, b: int) -> None:
    """Score every waiting job now and bring the lanes into order (dynamic orders only)."""
    flat = state.scratch[0]
    n = list_lanes(state, b, flat)
    evaluate(state, b, state.program, flat, n)
    for i in range(n):
        set_key(state, b, flat[i], state.stack[0, i])
    rearrange_lanes(state, b, flat, n)
