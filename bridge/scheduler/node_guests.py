"""Guests on a cluster: jobs that were never tried run for a while on what suspended jobs lend of their nodes.

A host lends of each node its cores, of the memory that it has there what it does not keep while it is
suspended, and no GPU. A guest takes nothing that is free. `select` chooses its nodes from what is lent.
"""

from bridge.base.arrays import Array
from bridge.base.jit import inline, inner
from bridge.scheduler.acting_state import ActingNodes
from bridge.scheduler.cluster_state import ALL_OF_IT, UNCOUNTED
from bridge.scheduler.eligibility import count_start, is_eligible, lane_is_exhausted
from bridge.scheduler.hosts import is_larger, is_smaller, list_hosts, suspend_hosts
from bridge.scheduler.lanes import list_lanes, remove_from_lane
from bridge.scheduler.lives import begin_visit
from bridge.scheduler.placement import allocate_chosen, select, tasks_on_empty_node, units_available
from bridge.scheduler.queue import BY_ORDER, sort_jobs
from bridge.scheduler.timed_nodes import is_barred, returns, set_bars, taken_amount

_CORES, _MEMORY, _GPUS = 0, 1, 2
#: Parts of a job's memory that `memory_kept` counts.
ALL_MEMORY = 1000


@inline
def may_start_now(state: ActingNodes, b: int, j: int) -> bool:
    """Tell whether nothing but resources holds waiting job `j`."""
    return not lane_is_exhausted(state, b, state.node_jobs[b, j].lane) and is_eligible(state, b, j)


@inner
def _memory_of(state: ActingNodes, shape: int, c: int, tasks: int) -> int:
    """Return the memory that a demand asks for of a node of class `c` where it has so many tasks."""
    full, memory = state.node_amounts[c, _MEMORY], state.vectors[shape, _MEMORY]
    if memory == ALL_OF_IT:
        return int(full)
    return int(min(memory * max(tasks, 1), full))


@inline
def _most_tasks(state: ActingNodes, shape: int, c: int) -> int:
    """Return how many tasks of a demand a whole node of class `c` may have; 1: it knows no tasks."""
    return tasks_on_empty_node(state, shape, c) if state.shapes[shape].tasks > 0 else 1


@inner
def _memory_left(state: ActingNodes, b: int, h: int, entry: int) -> int:
    """Return the memory of a node without what host `h` keeps of it."""
    c, shape = state.entry_class[b, entry], state.node_jobs[b, h].shape_number
    tasks = state.entry_units[b, entry]
    if state.classes[c].counted or state.shapes[shape].whole:
        tasks = _most_tasks(state, shape, c)
    kept = _memory_of(state, shape, c, tasks) * state.lives[b, h].memory_kept
    return int(state.node_amounts[c, _MEMORY] - (kept + ALL_MEMORY - 1) // ALL_MEMORY)


@inner
def _lends_node(state: ActingNodes, b: int, h: int, entry: int, shape: int) -> bool:
    """Tell whether host `h` lends a whole node to a demand."""
    c = state.entry_class[b, entry]
    if not state.classes[c].counted and not state.shapes[state.node_jobs[b, h].shape_number].whole:
        return False
    for r in range(_GPUS, state.vectors.shape[1]):
        if state.vectors[shape, r] > 0:
            return False
    if state.node_amounts[c, _MEMORY] >= UNCOUNTED:
        return True
    return _memory_of(state, shape, c, _most_tasks(state, shape, c)) <= _memory_left(state, b, h, entry)


@inner
def _lend_of_node(state: ActingNodes, b: int, h: int, entry: int, shape: int, sign: int) -> bool:
    """Add to ``idle_base`` what host `h` lends of a node to a demand, or take it away; tell if it does."""
    base, c = state.idle_base, state.entry_class[b, entry]
    admits = state.admits[state.shapes[shape].admits, c]
    if not admits or is_barred(state, b, c) or not returns(state, b, entry):
        return False
    if state.classes[c].counted:
        lends = _lends_node(state, b, h, entry, shape)
        base[c, 0] += sign if lends else 0
        return lends
    if state.shapes[shape].whole:
        lends = _lends_node(state, b, h, entry, shape)
        for r in range(base.shape[1]):
            base[c, r] += sign * state.node_amounts[c, r] if lends else 0
        return lends
    own, units = state.node_jobs[b, h].shape_number, state.entry_units[b, entry]
    full = state.node_amounts[c, _MEMORY]
    base[c, _CORES] += sign * taken_amount(state, own, c, units, _CORES)
    memory = full
    if full < UNCOUNTED:
        memory = taken_amount(state, own, c, units, _MEMORY) - full + _memory_left(state, b, h, entry)
    base[c, _MEMORY] += sign * memory
    return True


@inner
def _lend(state: ActingNodes, b: int, h: int, shape: int, sign: int) -> int:
    """Add to ``idle_base`` what host `h` lends to a demand, or take it away; return of how many nodes."""
    n = 0
    entry = state.node_jobs[b, h].allocation
    while entry >= 0:
        n += _lend_of_node(state, b, h, entry, shape, sign)
        entry = state.entry_next[b, entry]
    return n


@inline
def _select_lent(state: ActingNodes, b: int, shape: int) -> int:
    return select(state, b, shape, state.idle_base, False)


@inner
def _holds_alone(state: ActingNodes, b: int, h: int, shape: int) -> bool:
    """Tell whether on enough nodes host `h` lends, as ``idle_base`` says, what a demand needs of one."""
    n, entry = 0, state.node_jobs[b, h].allocation
    while entry >= 0:
        c = state.entry_class[b, entry]
        if state.classes[c].counted or units_available(state, b, shape, c, state.idle_base) > 0:
            n += 1
        entry = state.entry_next[b, entry]
    return bool(n >= max(state.shapes[shape].nodes, 1))


@inner
def _choose_one(state: ActingNodes, b: int, shape: int, n: int) -> int:
    """Return the smallest of `n` hosts, in order of their size, that suffices, or -1."""
    nodes = state.shapes[shape].nodes
    for k in range(n):
        h = state.victims[k]
        own = state.shapes[state.node_jobs[b, h].shape_number].nodes
        if own > 0 and own < nodes:
            continue
        lends = _lend(state, b, h, shape, 1) >= max(nodes, 1)
        suffices = lends and _holds_alone(state, b, h, shape) and _select_lent(state, b, shape) >= 0
        _lend(state, b, h, shape, -1)
        if suffices:
            return int(h)
    return -1


@inner
def _choose_several(state: ActingNodes, b: int, shape: int, n: int) -> int:
    """Choose of `n` hosts the largest ones until they suffice, but none that is not needed; return how many.

    They stand in ``chosen``, and what they lend in ``idle_base``; 0: all do not suffice.
    """
    chosen, m = state.chosen, 0
    for k in range(n):
        h = state.victims[k]
        if _lend(state, b, h, shape, 1) > 0:
            place = m
            m += 1
            while place > 0 and is_larger(state, b, h, chosen[place - 1]):
                chosen[place] = chosen[place - 1]
                place -= 1
            chosen[place] = h
    suffices = m > 0 and _select_lent(state, b, shape) >= 0
    for k in range(m):
        _lend(state, b, chosen[k], shape, -1)
    if not suffices:
        return 0
    m = 0
    while _select_lent(state, b, shape) < 0:
        _lend(state, b, chosen[m], shape, 1)
        m += 1
    kept = 0
    for k in range(m):
        _lend(state, b, chosen[k], shape, -1)
        if _select_lent(state, b, shape) < 0:
            _lend(state, b, chosen[k], shape, 1)
            chosen[kept] = chosen[k]
            kept += 1
    return kept


@inner
def _mark_lent(state: ActingNodes, b: int, shape: int, n: int) -> None:
    """Mark the nodes that hosts ``chosen[:n]`` lend to a demand, and let nothing be in ``idle_base``."""
    mark = state.mark[0] + 1
    for k in range(n):
        entry = state.node_jobs[b, state.chosen[k]].allocation
        while entry >= 0:
            if _lend_of_node(state, b, state.chosen[k], entry, shape, -1):
                state.node_mark[state.entry_node[b, entry]] = mark
            entry = state.entry_next[b, entry]
    state.mark[0] = mark  # it is no bar of a reservation


@inner
def _visit(state: ActingNodes, b: int, j: int, n: int) -> bool:
    """Let waiting job `j` be a guest of some of `n` hosts if these suffice; tell whether it is one."""
    shape = state.node_jobs[b, j].shape_number
    state.node_scalars[b].n_caps = 0
    set_bars(state, b, j, state.scalars[b].now)
    one, n_chosen = _choose_one(state, b, shape, n), 1
    if one >= 0:
        state.chosen[0] = one
        _lend(state, b, one, shape, 1)
    else:
        n_chosen = _choose_several(state, b, shape, n)
    if n_chosen == 0:
        return False
    n_classes = _select_lent(state, b, shape)
    _mark_lent(state, b, shape, n_chosen)
    remove_from_lane(state, b, j)
    begin_visit(state, b, j)
    suspend_hosts(state, b, j, n_chosen)
    allocate_chosen(state, b, j, n_classes)
    count_start(state, b, j)
    return True


@inner
def _list_by_size(state: ActingNodes, b: int) -> int:
    """List the hosts, the smallest first; return how many."""
    n = list_hosts(state, b)
    for m in range(1, n):
        h, k = state.victims[m], m
        while k > 0 and is_smaller(state, b, h, state.victims[k - 1]):
            state.victims[k] = state.victims[k - 1]
            k -= 1
        state.victims[k] = h
    return n


@inline
def _clear(base: Array) -> None:
    for c in range(base.shape[0]):
        for r in range(base.shape[1]):
            base[c, r] = 0


@inner
def admit_guests(state: ActingNodes, b: int) -> None:
    """Let eligible jobs that were never tried, in queue order, be guests of running jobs."""
    which = state.scratch[2]
    n_hosts = _list_by_size(state, b)
    if n_hosts == 0:
        return
    _clear(state.idle_base)
    n = list_lanes(state, b, which)
    sort_jobs(state.jobs[b], which, state.scratch[1], n, BY_ORDER)
    state.mark[0] += 1
    look = state.mark[0]  # who has no hosts has none when there are fewer
    for k in range(n):
        j = which[k]
        shape = state.node_jobs[b, j].shape_number
        may_visit = n_hosts > 0 and state.lives[b, j].may_try and state.no_host[shape] != look
        if not may_visit or not may_start_now(state, b, j):
            continue
        if _visit(state, b, j, n_hosts):
            n_hosts = _list_by_size(state, b)
        elif state.reservations.shape[0] == 0:  # else it depends on how long the job lasts
            state.no_host[shape] = look
