"""What features and rules see of a scheduler on a cluster: heads by partition, nodes, who waits for what.

The counterparts of `bridge.scheduler.score.prepare_variable` and of EASY's rule for `ClusterState`.
"""

from bridge.base.arrays import Array
from bridge.base.jit import by_type, inline, inner
from bridge.scheduler.cluster_pass import cluster_list_in_order
from bridge.scheduler.cluster_state import (
    HELD_BY_JOBS,
    HELD_FOR_EVER,
    HELD_UNTIL,
    UNCOUNTED,
    ClusterState,
)
from bridge.scheduler.eligibility import is_eligible, lane_is_exhausted
from bridge.scheduler.heads import (
    choose_now,
    demand_key,
    demand_key_beside_heads,
    fits_beside_heads,
    partition_of_head,
    reserve_heads,
)
from bridge.scheduler.placement import amount_taken
from bridge.scheduler.running_jobs import first_place, job_at, next_place
from bridge.scheduler.score import Op, estimated_remaining, prepare_variable
from bridge.scheduler.state import STACK
from bridge.scheduler.timed_nodes import is_barred, set_bars
from bridge.scheduler.timed_state import TimedState


@inline
def _fits_now(state: ClusterState, b: int, j: int) -> bool:
    """Tell whether job `j` fits in what is free, whatever is reserved for heads."""
    set_bars(state, b, j, state.scalars[b].now)
    return bool(choose_now(state, b, state.node_jobs[b, j].shape_number) >= 0)


@inner
def cluster_may_backfill(state: ClusterState, b: int, j: int) -> bool:
    """EASY's rule on a cluster: job `j` fits now, beside all heads."""
    reserve_heads(state, b)
    return bool(fits_beside_heads(state, b, j, False) >= 0)


@inner
def _is_head(state: ClusterState, b: int, j: int) -> bool:
    return bool(state.heads[b, state.lanes[state.node_jobs[b, j].lane].partition].job == j)


@inner
def _sum_over_waiting(state: ClusterState, b: int, op: int, r: int) -> float:
    """Return a sum over the jobs in lanes, and for LOAD and GOAL over the running ones."""
    own, total = 0.0, 0.0
    for i in range(state.node_scalars[b].n_active):
        block = state.lane_states[b, state.active[b, i]].head
        while block >= 0:
            for k in range(state.size[b, block]):
                j = state.items[b, block, k]
                job = state.jobs[b, j]
                if op == Op.COST:
                    total += 1.0 / max(job.t, 10.0)
                elif op == Op.LOAD:
                    total += 1.0 / max(job.t, 1.0)
                elif op == Op.GOAL:
                    total += job.n * (job.est_wait / 1e6)
                elif (
                    j != state.scalars[b].head
                    and not _is_head(state, b, j)
                    and is_eligible(state, b, j)
                    and _fits_now(state, b, j)
                ):
                    total += 1.0
            block = state.next_block[b, block]
    if op == Op.LOAD or op == Op.GOAL:
        place = first_place(state, b)
        while job_at(state, b, place) >= 0:
            job = state.jobs[b, job_at(state, b, place)]
            if op == Op.LOAD:
                total += 1.0 / max(job.t, 1.0)
            else:
                total += job.n * max(estimated_remaining(state, b, job_at(state, b, place)), 0.0)
            place = next_place(state.run_job[b], place)
    own = total if r == 0 else 0.0
    if op == Op.GOAL:  # nodes are the only resource that jobs demand of the whole machine
        return own / total if total > 0.0 else 1.0
    return total


@inner
def _of_site(state: ClusterState, b: int, op: int, r: int) -> float:
    """Return a variable that is the same for every job."""
    if op == Op.BACKFILLABLE and state.switches[0].backfill == 0:
        return 0.0
    if op == Op.WAITING_BEGIN:
        return float(state.held_jobs[b, HELD_UNTIL])
    if op == Op.WAITING_DEPENDENCY:
        return float(state.held_jobs[b, HELD_BY_JOBS])
    if op == Op.WAITING_NEVER:
        return float(state.held_jobs[b, HELD_FOR_EVER])
    if op == Op.WAITING_LIMIT:
        n = 0
        for i in range(state.node_scalars[b].n_active):
            if lane_is_exhausted(state, b, state.active[b, i]):
                n += state.lane_states[b, state.active[b, i]].n
        return float(n)
    return _sum_over_waiting(state, b, op, r)


@inner
def _extra_nodes(state: ClusterState, b: int, p: int) -> int:
    """Return how many whole nodes of partition `p` are extra beside the reservation of its head."""
    extra = 0
    for i in range(state.partition_first[p], state.partition_first[p + 1]):
        c = state.partition_classes[i]
        if state.classes[c].counted:
            extra += state.head_extra[b, p, c, 0]
        else:
            whole = 1
            for r in range(state.head_extra.shape[3]):
                if state.head_extra[b, p, c, r] < state.node_amounts[c, r]:
                    whole = 0
            extra += whole
    return max(extra, 0)


@inner
def _write_of_heads(state: ClusterState, b: int, op: int, out: Array, which: Array, n: int) -> None:
    """Write what features say of heads: of each job, its partition's, else the first; 0 without one."""
    reserve_heads(state, b)
    if op == Op.EXTRA:
        for k in range(state.node_scalars[b].n_heads):
            p = state.head_order[b, k]
            state.of_partition[p] = _extra_nodes(state, b, p)
    for i in range(n):
        p = partition_of_head(state, b, which[i])
        if p < 0:
            out[i] = 0.0
            continue
        head = state.jobs[b, state.heads[b, p].job]
        if op == Op.GAP:
            out[i] = (state.heads[b, p].shadow - state.scalars[b].now) / 1e6
        elif op == Op.EXTRA:
            out[i] = float(state.of_partition[p])
        elif op == Op.HEAD_W:
            out[i] = (state.scalars[b].now - head.submit) / 1e6
        elif op == Op.HEAD_T:
            out[i] = head.t
        else:
            out[i] = head.n


@inner
def _count_by_partition(state: ClusterState, b: int) -> None:
    """Count in ``of_partition`` the jobs in lanes."""
    for p in range(state.of_partition.shape[0]):
        state.of_partition[p] = 0
    for i in range(state.node_scalars[b].n_active):
        g = state.active[b, i]
        state.of_partition[state.lanes[g].partition] += state.lane_states[b, g].n


@inner
def _count_by_account(state: ClusterState, b: int) -> None:
    """Count in ``of_account`` the cores that accounts use now."""
    for a in range(state.of_account.shape[0]):
        state.of_account[a] = 0
    place = first_place(state, b)
    while job_at(state, b, place) >= 0:
        job = state.node_jobs[b, job_at(state, b, place)]
        place = next_place(state.run_job[b], place)
        entry = job.allocation
        while entry >= 0 and job.account >= 0:
            c, units = state.entry_class[b, entry], state.entry_units[b, entry]
            cores = amount_taken(state, job.shape_number, c, units, 0)
            state.of_account[job.account] += (
                cores * state.node_amounts[c, 0] if state.classes[c].counted else cores
            )
            entry = state.entry_next[b, entry]


# ---- what is there: all that is up at first; of a cluster that changes in time, what is in service now -----
@inner
def _cores_at_first(state: ClusterState, _b: int) -> int:
    cores = 0
    for c in range(state.classes.shape[0]):
        of_one = state.node_amounts[c, 0]
        cores += (
            state.class_capacity[c, 0] * of_one if state.classes[c].counted else state.class_capacity[c, 0]
        )
    return max(cores, 1)


@inner
def _cores_in_service(state: TimedState, b: int) -> int:
    cores = 0
    for c in range(state.classes.shape[0]):
        cores += state.in_service[b, c] * state.node_amounts[c, 0]
    return max(cores, 1)


#: The cores of the cluster, at least 1.
_cores_of_cluster = by_type(_cores_at_first, _cores_in_service, TimedState)


@inline
def _of_partition_at_first(state: ClusterState, _b: int, p: int) -> int:
    return int(max(state.partition_cores[p], 1))


@inner
def _of_partition_in_service(state: TimedState, b: int, p: int) -> int:
    cores = 0
    for i in range(state.partition_first[p], state.partition_first[p + 1]):
        c = state.partition_classes[i]
        cores += state.in_service[b, c] * state.node_amounts[c, 0]
    return max(cores, 1)


#: The cores of partition `p`, at least 1.
_cores_of_partition = by_type(_of_partition_at_first, _of_partition_in_service, TimedState)


@inline
def _admissible_at_first(state: ClusterState, b: int, j: int) -> float:
    return float(state.admissible_share[state.node_jobs[b, j].shape_number])


@inner
def _admissible_in_service(state: TimedState, b: int, j: int) -> float:
    set_bars(state, b, j, state.scalars[b].now)
    row, own, total = state.shapes[state.node_jobs[b, j].shape_number], 0, 0
    for i in range(row.first, row.last):
        c = state.set_classes[i]
        own += 0 if is_barred(state, b, c) else state.in_service[b, c]
    for c in range(state.classes.shape[0]):
        total += state.in_service[b, c]
    return own / max(total, 1)


#: The share of the nodes that may take job `j`, and that no advance reservation keeps from it now.
_admissible = by_type(_admissible_at_first, _admissible_in_service, TimedState)


@inner
def _asked_of_node(state: ClusterState, shape: int, r: int) -> float:
    """Return amount `r` that a demand asks of a node, or for a task, as a share of the largest node's."""
    amount, most = state.vectors[shape, r], state.largest_node[r]
    if (r == 0 and state.shapes[shape].whole) or amount < 0:
        return 1.0
    return amount / most if 0 < most < UNCOUNTED else 0.0


@inner
def _most_free(state: ClusterState, b: int, j: int, r: int) -> float:
    """Return the most of amount `r` that is free on a node that may take job `j`, likewise."""
    most, largest = 0, state.largest_node[r]
    if largest >= UNCOUNTED:
        return 1.0
    shape = state.node_jobs[b, j].shape_number
    set_bars(state, b, j, state.scalars[b].now)
    for i in range(state.shapes[shape].first, state.shapes[shape].last):
        c = state.set_classes[i]
        if is_barred(state, b, c):
            free = 0
        elif state.classes[c].counted:
            free = state.node_amounts[c, r] if state.free_node[b, c, 0] > 0 else 0
        else:
            free = state.free_node[b, c, r]
        most = max(most, free)
    return most / largest if largest > 0 else 0.0


@inner
def _write_of_cluster(state: ClusterState, b: int, op: int, r: int, out: Array, which: Array, n: int) -> None:
    """Write what only jobs on a cluster have."""
    if op == Op.PARTITION_WAITING:
        _count_by_partition(state, b)
    elif op == Op.ACCOUNT_USED:
        _count_by_account(state, b)
    cores = _cores_of_cluster(state, b) if op == Op.ACCOUNT_USED else 1
    for i in range(n):
        job = state.node_jobs[b, which[i]]
        p = state.lanes[job.lane].partition
        if op == Op.ADMISSIBLE:
            out[i] = _admissible(state, b, which[i])
        elif op == Op.PARTITION_FREE:
            out[i] = state.room[b, p] / _cores_of_partition(state, b, p)
        elif op == Op.PARTITION_WAITING:
            out[i] = float(state.of_partition[p])
        elif op == Op.ACCOUNT_USED:
            out[i] = state.of_account[job.account] / cores if job.account >= 0 else 0.0
        elif op == Op.QOS_PRIORITY:
            out[i] = state.qos_priority[job.qos] if job.qos >= 0 else 0.0
        elif op == Op.IN_PARTITION:
            out[i] = 1.0 if p == r else 0.0
        elif op == Op.IN_QOS:
            out[i] = 1.0 if job.qos == r else 0.0
        elif op == Op.PER_NODE:
            out[i] = _asked_of_node(state, job.shape_number, r)
        else:
            out[i] = _most_free(state, b, which[i], r)


@inner
def _write_safe(state: ClusterState, b: int, out: Array, which: Array, n: int) -> None:
    """Write whether jobs fit beside all heads; neighbours with one demand are looked at once."""
    looked_at, may = -1, 0.0
    for i in range(n):
        if state.node_scalars[b].n_heads == 0 or _is_head(state, b, which[i]):
            out[i] = 0.0
            continue
        reserve_heads(state, b)
        key = demand_key_beside_heads(state, b, which[i])
        if key < 0 or key != looked_at:
            looked_at = key
            may = 1.0 if fits_beside_heads(state, b, which[i], False) >= 0 else 0.0
        out[i] = may


@inner
def _write_fits(state: ClusterState, b: int, out: Array, which: Array, n: int) -> None:
    """Write whether jobs fit now, whatever is reserved; neighbours with one demand are looked at once."""
    looked_at, fits = -1, 0.0
    for i in range(n):
        key = demand_key(state, b, which[i])
        if key < 0 or key != looked_at:
            looked_at = key
            fits = 1.0 if _fits_now(state, b, which[i]) else 0.0
        out[i] = fits


@inner
def cluster_prepare_variable(
    state: ClusterState, b: int, op: int, r: int, place: int, which: Array, n: int
) -> None:
    """Write variable `op` for jobs ``which[:n]`` where programs look, see `prepare_variable`."""
    out = state.stack[STACK + place]
    if op == Op.FITS:
        _write_fits(state, b, out, which, n)
    elif op == Op.SAFE:
        _write_safe(state, b, out, which, n)
    elif op == Op.GAP or op == Op.EXTRA or Op.HEAD_W <= op <= Op.HEAD_N:
        _write_of_heads(state, b, op, out, which, n)
    elif (op == Op.COST or op == Op.BACKFILLABLE or op == Op.LOAD or op == Op.GOAL) or (
        Op.WAITING_BEGIN <= op <= Op.WAITING_NEVER
    ):
        value = _of_site(state, b, op, r)
        for i in range(n):
            out[i] = value
    elif op >= Op.ADMISSIBLE:
        _write_of_cluster(state, b, op, r, out, which, n)
    else:
        prepare_variable(state, b, op, r, place, which, n)


@inner
def cluster_list_queued(state: ClusterState, b: int, most: int, out: Array) -> int:
    """List the first waiting jobs in queue order but the head that a decision is about; return how many."""
    which = state.scratch[2]
    total = cluster_list_in_order(state, b, which)
    n = 0
    for k in range(total):
        if n < most and which[k] != state.scalars[b].head:
            out[n] = which[k]
            n += 1
    return n


@inline
def cluster_subject(state: ClusterState, b: int) -> int:
    """Return the job whose head numbers of the machine speak of: the head, else the first candidate."""
    head = state.scalars[b].head
    return int(head if head >= 0 else state.candidates[b, 0])
