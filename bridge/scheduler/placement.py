"""Placement on nodes: which classes a job gets, what it takes there, and what comes back when it ends.

`select` is the one rule; every test whether a job fits is a call of it. What is available is a base amount by
class, and the minimum with the extra amounts of some heads (``caps``).
"""

from bridge.base.arrays import Array
from bridge.base.jit import by_type, inline, inner, kernel
from bridge.scheduler.cluster_state import (
    ALL_OF_IT,
    BEST_FIT,
    BY_SET,
    UNCOUNTED,
    ClusterState,
)
from bridge.scheduler.fitting import holds, next_fit, note_change, slot_of_fits
from bridge.scheduler.timed_nodes import allocate_nodes, is_barred, is_empty, release_nodes
from bridge.scheduler.timed_state import TimedState

_NONE = -1


@inline
def amount_taken(state: ClusterState, shape: int, c: int, units: int, r: int) -> int:
    """Return how much of amount `r` a demand takes in class `c`: `units` are nodes, or tasks on the node."""
    if state.classes[c].counted:
        return units if r == 0 else 0
    if state.shapes[shape].whole:
        return int(state.node_amounts[c, r])
    amount = state.vectors[shape, r]
    if amount == ALL_OF_IT:
        amount = state.node_amounts[c, r]
        return int(amount) if amount < UNCOUNTED else 0
    return int(amount * units)


@inline
def _available(state: ClusterState, b: int, base: Array, c: int, r: int) -> int:
    """Return what is available: the base, bounded by the extra amounts of the heads in ``caps``."""
    amount = base[c, r]
    for k in range(state.node_scalars[b].n_caps):
        amount = min(amount, state.head_extra[b, state.caps[b, k], c, r])
    return int(amount)


@inline
def _tasks_in(amount: int, of_one: int, full: int, most: int) -> int:
    """Return how many tasks fit in an amount."""
    if of_one == ALL_OF_IT:
        return most if amount >= full or full >= UNCOUNTED else 0
    if of_one == 0:
        return most
    if amount < of_one:
        return 0
    return 1 if most == 1 else min(most, amount // of_one)  # to divide costs more than all else


@inner
def tasks_on_empty_node(state: ClusterState, shape: int, c: int) -> int:
    """Return how many vectors of a demand an empty node of class `c` holds, as many as it may have there."""
    most = state.shapes[shape].most_tasks
    for r in range(state.vectors.shape[1]):
        full = state.node_amounts[c, r]
        most = _tasks_in(full, state.vectors[shape, r], full, most)
    return int(max(most, 0))


@inner
def units_available(state: ClusterState, b: int, shape: int, c: int, base: Array) -> int:
    """Return how many units of a demand class `c` holds: nodes of a counted class; tasks of a single node.

    Of a demand without tasks a single node holds one unit, or none.
    """
    if state.classes[c].counted:
        return _available(state, b, base, c, 0)
    row = state.shapes[shape]
    if row.whole:
        for r in range(base.shape[1]):
            if _available(state, b, base, c, r) < state.node_amounts[c, r]:
                return 0
        return tasks_on_empty_node(state, shape, c)
    most = row.most_tasks
    for r in range(base.shape[1]):
        of_one = state.vectors[shape, r]
        if of_one != 0:
            most = _tasks_in(_available(state, b, base, c, r), of_one, state.node_amounts[c, r], most)
            if most <= 0:
                return 0
    return int(most)


@inline
def _set_key(state: ClusterState, b: int, shape: int, c: int, base: Array) -> None:
    """Compute by what a class stands in the order of `select`; the smaller, the earlier."""
    keys = state.class_keys[c]
    cores, n_amounts = 0, base.shape[1]
    if state.node_switches[0].key == BEST_FIT:
        for q in range(3):
            keys[q] = 0
        for r in range(n_amounts):
            has = state.node_amounts[c, r] if state.classes[c].counted else _available(state, b, base, c, r)
            of_one = state.vectors[shape, r]
            if of_one == ALL_OF_IT:
                of_one = state.node_amounts[c, r] if state.node_amounts[c, r] < UNCOUNTED else 0
            place = 1 if r == 0 else (2 if r == 1 else 0)  # cores, memory, GPUs
            if r <= 2:  # types of GPUs are in their sum
                keys[place] = has - of_one if state.node_amounts[c, r] < UNCOUNTED else UNCOUNTED
    else:
        cores = state.node_amounts[c, 0] if state.classes[c].counted else _available(state, b, base, c, 0)
        keys[0], keys[1], keys[2] = -cores, 0, 0


@inline
def _is_before(state: ClusterState, c: int, d: int) -> bool:
    """Tell whether class `c` stands before class `d`; classes are numbered by their lowest node."""
    for q in range(3):
        if state.class_keys[c, q] != state.class_keys[d, q]:
            return bool(state.class_keys[c, q] < state.class_keys[d, q])
    return c < d


@inner
def _walk_order(state: ClusterState, b: int, shape: int, base: Array, strikes: bool) -> int:
    """List the classes that hold something of a demand, in the order of `select`; return how many."""
    row = state.shapes[shape]
    order = state.class_order
    n = 0
    for i in range(row.first, row.last):
        c = state.set_classes[i]
        if strikes and state.struck[b, c] == state.node_scalars[b].pass_number:
            continue
        if is_barred(state, b, c):
            continue
        if units_available(state, b, shape, c, base) > 0:
            _set_key(state, b, shape, c, base)
            k = n
            n += 1
            # a heap would do for long sets; these keys are the slow choice of a site
            while k > 0 and _is_before(state, c, order[k - 1]):
                order[k] = order[k - 1]
                k -= 1
            order[k] = c
    return n


@inline
def _gives(units: int, of_one: int, tasks: int, nodes: int, exact: bool) -> tuple[int, int, int]:
    """Return how many of the free nodes of a counted class tasks take, and what tasks and nodes are left."""
    taken = 0
    while units > 0 and tasks > 0 and (nodes > 0 or not exact):
        tasks -= min(of_one, tasks - nodes + 1) if exact else min(of_one, tasks)
        nodes -= 1
        units -= 1
        taken += 1
    return taken, tasks, nodes


@inner
def _choose(
    state: ClusterState, b: int, shape: int, base: Array, strikes: bool, slot: int, first: int
) -> int:
    """Do as `select`; `slot`: where the bits of the classes stand that hold the demand, or -1.

    `first`: the place in the set from which on there is something for the demand.
    """
    row = state.shapes[shape]
    nodes, tasks = row.nodes, row.tasks
    exact = nodes > 0
    if exact and 0 < tasks < nodes:
        return _NONE
    by_set = state.node_switches[0].key == BY_SET
    i, last = first - 1, row.last
    if slot >= 0:
        i = -1
    elif not by_set:
        i, last = -1, _walk_order(state, b, shape, base, strikes)
    n = 0
    while True:
        if slot >= 0:
            i = next_fit(state, b, slot, i + 1)
            if i < 0:
                return _NONE
            c = state.class_at[i]
        else:
            i += 1
            if i >= last:
                return _NONE
            c = state.set_classes[i] if by_set else state.class_order[i]
        if by_set and strikes and state.struck[b, c] == state.node_scalars[b].pass_number:
            continue
        if is_barred(state, b, c):
            continue
        counted = state.classes[c].counted
        if counted:
            units = _available(state, b, base, c, 0)
        elif slot >= 0 and tasks == 0 and state.node_scalars[b].n_caps == 0:
            units = 1
        else:
            units = units_available(state, b, shape, c, base)
        if units <= 0:
            continue
        if tasks == 0:
            if counted and units < nodes and state.switches[0].one_machine > 0:
                continue
            units = min(units, nodes) if counted else 1
            nodes -= units
        elif counted:
            on_one = tasks_on_empty_node(state, shape, c)
            if on_one <= 0:
                continue
            units, tasks, nodes = _gives(units, on_one, tasks, nodes, exact)
        else:
            units = min(units, tasks - nodes + 1) if exact else min(units, tasks)
            tasks -= units
            nodes -= 1
        state.chosen_classes[n] = c
        state.chosen_units[n] = units
        n += 1
        if (exact and nodes == 0) or (not exact and tasks == 0):
            return n if tasks == 0 else _NONE


@inner
def select(state: ClusterState, b: int, shape: int, base: Array, strikes: bool) -> int:
    """Choose classes for a demand: lists them and their units in ``chosen_classes`` and ``chosen_units``.

    Args:
        state, b: the scheduler.
        shape: the demand.
        base: [C, R] what is available, beside the bounds of the heads in ``caps``.
        strikes: leave out the classes that were struck out in this pass.

    Returns:
        How many classes; -1 if the demand does not fit.
    """
    return _choose(state, b, shape, base, strikes, _NONE, state.shapes[shape].first)


@inner
def select_now(state: ClusterState, b: int, shape: int, strikes: bool, first: int) -> int:
    """Choose classes as `select` from what is free now; `first`: no class of the set before it is of use."""
    slot = _NONE
    if state.node_switches[0].keeps_fits:
        slot = slot_of_fits(state, b, shape)
        if state.shapes[shape].tasks == 0 and state.fits[b, slot].n < state.shapes[shape].nodes:
            return _NONE
    return _choose(state, b, shape, state.free_node[b], strikes, slot, first)


@kernel
def select_each(state: ClusterState, base: Array, nodes: Array, amounts: Array) -> None:
    """Write what each shape takes of some amounts: nodes [S], 0 if it does not fit, and amounts [S, R]."""
    for shape in range(state.shapes.shape[0]):
        for k in range(select(state, 0, shape, base, False)):
            c, units = state.chosen_classes[k], state.chosen_units[k]
            count = units if state.classes[c].counted else 1
            nodes[shape] += count
            for r in range(base.shape[1]):
                full = state.node_amounts[c, r]
                if state.classes[c].counted or state.shapes[shape].whole:
                    amounts[shape, r] += count * full if full < UNCOUNTED else 0
                else:
                    amounts[shape, r] += amount_taken(state, shape, c, units, r)


@inner
def potential(state: ClusterState, b: int, shape: int, c: int, base: Array) -> int:
    """Return how much a class adds to what a demand needs at least, beside no head: nodes, or tasks."""
    tasks = state.shapes[shape].tasks
    if state.classes[c].counted:
        nodes = max(base[c, 0], 0)
        return int(nodes if tasks == 0 or nodes == 0 else nodes * tasks_on_empty_node(state, shape, c))
    if tasks > 0:
        return units_available(state, b, shape, c, base)
    return 1 if holds(state, shape, c, base) else 0


@inner
def potential_now(state: ClusterState, b: int, shape: int, need: int) -> int:
    """Return how much all classes add, of what is free now, to what a demand needs, at least `need` of it.

    Notes the first class that adds something (``first_fit``) where no bits are kept.
    """
    row, has = state.shapes[shape], 0
    more, free = state.node_scalars[b], state.free_node[b]
    more.first_fit = row.first
    if not state.node_switches[0].keeps_fits:
        for i in range(row.first, row.last):
            c = state.set_classes[i]
            if row.tasks > 0:
                has += potential(state, b, shape, c, free)
            elif state.classes[c].counted:
                has += max(free[c, 0], 0)
            elif holds(state, shape, c, free):
                has += 1
            if has == 0:
                more.first_fit = i + 1
            elif has >= need:
                break
        return int(has)
    slot = slot_of_fits(state, b, shape)
    if row.tasks == 0:
        return int(state.fits[b, slot].n)
    place = next_fit(state, b, slot, 0)
    while place >= 0 and has < need:
        has += potential(state, b, shape, state.class_at[place], state.free_node[b])
        place = next_fit(state, b, slot, place + 1)
    return int(has)


@inner
def change_free(state: ClusterState, b: int, shape: int, c: int, units: int, sign: int) -> None:
    """Give back what a demand has in class `c`, or take it (`sign` -1)."""
    row = state.classes[c]
    note_change(state, b, c, sign * units if row.counted else 0)
    if row.counted:
        state.free_node[b, c, 0] += sign * units
        state.free[b, 0] += sign * units
        cores = units * state.node_amounts[c, 0]
    else:
        before = is_empty(state, b, c)
        for r in range(state.free_node.shape[2]):
            state.free_node[b, c, r] += sign * amount_taken(state, shape, c, units, r)
        state.free[b, 0] += is_empty(state, b, c) - before
        cores = amount_taken(state, shape, c, units, 0)
    for i in range(row.first_partition, row.last_partition):
        state.room[b, state.class_partitions[i]] += sign * cores


@inner
def change_base(state: ClusterState, base: Array, shape: int, c: int, units: int, sign: int) -> None:
    """Give back to some amounts [C, R] what a demand has in class `c`, or take it (`sign` -1)."""
    if state.classes[c].counted:
        base[c, 0] += sign * units
        return
    for r in range(base.shape[1]):
        base[c, r] += sign * amount_taken(state, shape, c, units, r)


@inner
def _allocate_classes(state: ClusterState, b: int, j: int, n: int) -> None:
    more, job = state.node_scalars[b], state.node_jobs[b, j]
    job.allocation = _NONE
    logs = state.log_class.shape[1] > 0
    for k in range(n):
        c, units = state.chosen_classes[k], state.chosen_units[k]
        change_free(state, b, job.shape_number, c, units, -1)
        if logs:
            state.log_class[b, more.n_log] = c
            state.log_units[b, more.n_log] = units
            state.log_job[b, more.n_log] = j
            more.n_log += 1
    for k in range(n - 1, -1, -1):  # the list is in the order of the choice
        entry = more.free_entry
        more.free_entry = state.entry_next[b, entry]
        state.entry_class[b, entry] = state.chosen_classes[k]
        state.entry_units[b, entry] = state.chosen_units[k]
        state.entry_next[b, entry] = job.allocation
        job.allocation = entry


#: Give job `j` the `n` chosen classes.
allocate_chosen = by_type(_allocate_classes, allocate_nodes, TimedState)


@inner
def _release_classes(state: ClusterState, b: int, j: int) -> None:
    more, job = state.node_scalars[b], state.node_jobs[b, j]
    entry = job.allocation
    while entry >= 0:
        change_free(state, b, job.shape_number, state.entry_class[b, entry], state.entry_units[b, entry], 1)
        behind = state.entry_next[b, entry]
        state.entry_next[b, entry] = more.free_entry
        more.free_entry = entry
        entry = behind
    job.allocation = _NONE
    more.releases += 1


#: Take back what job `j` has.
release_allocation = by_type(_release_classes, release_nodes, TimedState)
