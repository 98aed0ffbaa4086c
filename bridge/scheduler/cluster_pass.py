"""A pass on a cluster: eligible jobs in queue order start or become their partition's head; then backfilling.

The counterpart of the passes in `bridge.scheduler.core` for `ClusterState`, called through it.
"""

from bridge.base.arrays import Array
from bridge.base.jit import inline, inner, kernel
from bridge.scheduler.action_state import COMPLETED
from bridge.scheduler.calendar import (
    begin_timed,
    forget_firsts,
    has_firsts,
    lives_full,
    next_due,
    next_first,
    note_end,
)
from bridge.scheduler.cluster_state import GONE_CANCELLED, NOT_HELD, ClusterState
from bridge.scheduler.decisions import (
    BACKFILL,
    BOOK,
    INSPECT,
    NOTHING,
    PHASE_BACKFILL,
    PHASE_IDLE,
    PHASE_INSPECT,
    PHASE_PICK,
    PHASE_TRY,
    PICK,
    SCORE,
)
from bridge.scheduler.eligibility import (
    count_end,
    enter,
    is_eligible,
    keeps_blocked,
    lane_is_exhausted,
    leave,
    release_due,
)
from bridge.scheduler.heads import (
    charge_heads,
    choose_now,
    demand_key,
    fits_beside_heads,
    make_head,
    may_fit,
    note_head,
    partition_of_head,
    reserve_heads,
)
from bridge.scheduler.lanes import (
    first_in_lane,
    list_lanes,
    next_in_lane,
    rearrange_lanes,
    remove_from_lane,
    sort_lanes,
)
from bridge.scheduler.names import CONSERVATIVE, EASY, FILLER, NO_BACKFILL
from bridge.scheduler.node_actions import begin_actions, end_actions, group, next_action
from bridge.scheduler.node_lives import leave_running, rest, settle
from bridge.scheduler.node_starts import start_on_chosen
from bridge.scheduler.placement import release_allocation
from bridge.scheduler.preemption import GONE, preempt
from bridge.scheduler.queue import BY_ALT, BY_ORDER, precedes, size_class, sort_jobs, stands_before
from bridge.scheduler.state import (
    HOW_BACKFILLED,
    NEVER,
    SECOND,
    STARTED_AS_HEAD,
)
from bridge.scheduler.timed_jobs import stood
from bridge.scheduler.timed_nodes import set_bars


@inner
def cluster_submit(state: ClusterState, b: int, j: int) -> None:
    """Job `j` (its records filled in) is submitted."""
    job = state.jobs[b, j]
    job.size_class = size_class(state.shapes[state.node_jobs[b, j].shape_number].room)
    enter(state, b, j)


@inner
def cluster_finish(state: ClusterState, b: int, j: int) -> None:
    env, job = state.scalars[b], state.jobs[b, j]
    settle(state, b, j, COMPLETED)
    note_end(state, b, j)
    leave_running(state, b, j)
    release_allocation(state, b, j)
    rest(state, b, j)
    job.end = env.now
    count_end(state, b, j)
    if state.switches[0].uses_fairshare:
        used = job.n * ((env.now - job.start - stood(state, b, j)) / SECOND)
        state.usage[b, job.user] += used
        env.used_total += used


@inner
def cluster_withdraw(state: ClusterState, b: int, j: int) -> None:
    if state.node_jobs[b, j].held == NOT_HELD:
        remove_from_lane(state, b, j)
        head = state.heads[b, state.lanes[state.node_jobs[b, j].lane].partition]
        if head.job == j:
            head.job = -1
    leave(state, b, j, GONE_CANCELLED)


@inner
def cluster_begin_pass(state: ClusterState, b: int) -> None:
    """Open a pass: all events of this instant have been told."""
    env, more = state.scalars[b], state.node_scalars[b]
    begin_actions(state, b)
    release_due(state, b)
    env.phase = PHASE_PICK
    env.is_sorted = 0
    env.wake_at = NEVER
    env.head = -1
    env.is_reserved = 0
    if env.now < more.closed_until:
        env.phase = PHASE_IDLE
        env.wake_at = more.closed_until
        return
    if more.blocked_since == 1 + more.releases and keeps_blocked(state):
        more.n_reserved = 0
        more.n_profile = 0
        env.phase = PHASE_IDLE
        return
    more.blocked_since = 0
    more.pass_number += 1
    more.n_heads = 0
    more.n_reserved = 0
    more.n_profile = 0
    more.n_live = -1
    more.next_locked = 0
    for p in range(state.heads.shape[1]):
        head = state.heads[b, p]
        state.locked[b, p] = head.job if state.switches[0].head_locked and head.n >= 0 else -1
        head.job = -1
        head.n = 0
    begin_timed(state, b)


@inline
def cluster_next_wake(state: ClusterState, b: int) -> int:
    """Return when a job may become eligible next, or the scheduler wants to be woken; NEVER: neither."""
    wake = state.scalars[b].wake_at
    if state.node_scalars[b].n_timers > 0:
        wake = min(wake, state.timers[b, 0].time)
    return int(min(wake, next_due(state, b), next_action(state, b)))


@inner
def cluster_is_due(state: ClusterState, b: int) -> bool:
    """Tell whether a job becomes eligible now, or the scheduler wanted to be woken."""
    if has_firsts(state, b):
        return True
    wake = min(state.scalars[b].wake_at, next_action(state, b))
    return bool(release_due(state, b) > 0 or wake <= state.scalars[b].now)


@inline
def cluster_must_pause(state: ClusterState, b: int) -> bool:
    """Tell whether the allocations of one more pass might find no place in the log."""
    size = state.log_class.shape[1]
    if lives_full(state, b) or state.node_scalars[b].overflow:
        return True
    return bool(size > 0 and state.node_scalars[b].n_log > size - state.entry_class.shape[1])


@inline
def _has_head(state: ClusterState, b: int, g: int) -> bool:
    """Tell whether the jobs of a lane wait behind a blocked one; under `filler` none does."""
    if state.switches[0].backfill == FILLER:
        return False
    return bool(state.heads[b, state.lanes[g].partition].job >= 0)


@inline
def _look_at(state: ClusterState, b: int, g: int, j: int) -> None:
    """Let job `j` be the next that the pass looks at in a lane; -1: there is none."""
    lane = state.lane_states[b, g]
    lane.cursor = j
    if j >= 0:
        lane.score, lane.tie = state.jobs[b, j].score, state.jobs[b, j].tie


@inline
def _stands_before(state: ClusterState, b: int, g: int, other: int) -> bool:
    """Tell whether the next job of lane `g` precedes that of another one, see `queue.precedes`."""
    first, second = state.lane_states[b, g], state.lane_states[b, other]
    if first.score != second.score:
        return bool(first.score > second.score)
    if first.tie != second.tie:
        return bool(first.tie < second.tie)
    return bool(first.cursor < second.cursor)


@inner
def _list_live_lanes(state: ClusterState, b: int) -> None:
    """List the lanes of which a job may be eligible, each at its first job."""
    more = state.node_scalars[b]
    n = 0
    for i in range(more.n_active):
        g = state.active[b, i]
        if not lane_is_exhausted(state, b, g):
            _look_at(state, b, g, first_in_lane(state, b, g))
            state.live[b, n] = g
            n += 1
    more.n_live = n
    more.live_serial = state.scalars[b].serial


@inner
def _next_eligible(state: ClusterState, b: int) -> int:
    """Return the next eligible job of a partition without head, in queue order, or -1; go on behind it."""
    more = state.node_scalars[b]
    live = state.live[b]
    while True:
        best, best_lane, k = -1, -1, 0
        while k < more.n_live:
            g = live[k]
            j = state.lane_states[b, g].cursor
            if j < 0 or _has_head(state, b, g):
                more.n_live -= 1
                live[k] = live[more.n_live]
                continue
            if best < 0 or _stands_before(state, b, g, best_lane):
                best, best_lane = j, g
            k += 1
        if best < 0:
            return -1
        if state.scalars[b].serial != more.live_serial and lane_is_exhausted(state, b, best_lane):
            state.lane_states[b, best_lane].cursor = -1
            continue
        _look_at(state, b, best_lane, next_in_lane(state, b, best))
        if is_eligible(state, b, best):
            return int(best)


@inner
def _start_on_nodes(state: ClusterState, b: int, j: int, n: int, how: int, past: int) -> None:
    """Start job `j` now on the `n` classes that were chosen for it."""
    charge_heads(state, b, j, n)
    state.node_scalars[b].n_profile = 0
    start_on_chosen(state, b, j, n, how, past)


@inner
def _close(state: ClusterState, b: int, j: int) -> None:
    """End the pass, because the start of job `j` takes time: until then there is no other."""
    env = state.scalars[b]
    until = env.now + state.switches[0].start_gap
    state.jobs[b, j].start = until
    state.node_scalars[b].closed_until = until
    forget_firsts(state, b)
    env.wake_at = until
    env.phase = PHASE_IDLE


@inner
def _strike(state: ClusterState, b: int, j: int) -> None:
    """Job `j` is blocked and nobody backfills: its partition's nodes are out for the rest of the pass."""
    more = state.node_scalars[b]
    p = state.lanes[state.node_jobs[b, j].lane].partition
    state.heads[b, p].job = j
    note_head(state, b, j)
    for i in range(state.partition_first[p], state.partition_first[p + 1]):
        state.struck[b, state.partition_classes[i]] = more.pass_number


@inline
def _blocked_before(state: ClusterState, b: int, j: int) -> int:
    """Return the first job of the partition of job `j` that was blocked in this pass, or -1."""
    return int(state.heads[b, state.lanes[state.node_jobs[b, j].lane].partition].job)


@inner
def _note_blocked(state: ClusterState, b: int, j: int) -> None:
    """Job `j` is the first blocked one of its partition, and nothing is reserved for it."""
    state.heads[b, state.lanes[state.node_jobs[b, j].lane].partition].job = j
    note_head(state, b, j)


@inner
def cluster_reject(state: ClusterState, b: int) -> None:
    """The inspected pick is rejected: its partition is put aside for the rest of the pass, without a head."""
    env = state.scalars[b]
    head = state.heads[b, state.lanes[state.node_jobs[b, env.head].lane].partition]
    head.job, head.n = env.head, -1
    env.phase = PHASE_PICK
    env.head = -1


@inline
def _waits_in_lane(state: ClusterState, b: int, j: int) -> bool:
    return bool(state.jobs[b, j].start < 0 and state.node_jobs[b, j].held == NOT_HELD)


@inner
def _next_locked(state: ClusterState, b: int) -> int:
    """Return the next head that an earlier pass has left, by partition, and only resources hold; or -1."""
    more = state.node_scalars[b]
    while more.next_locked < state.locked.shape[1]:
        j, head = state.locked[b, more.next_locked], state.heads[b, more.next_locked].job
        more.next_locked += 1
        if j >= 0 and head < 0 and _waits_in_lane(state, b, j) and is_eligible(state, b, j):
            return int(j)
    return -1


@inner
def _keep_locked(state: ClusterState, b: int, j: int) -> None:
    """The pass stops for job `j`: it is the head, and those that were not looked at stay heads."""
    for p in range(state.node_scalars[b].next_locked, state.locked.shape[1]):
        if state.heads[b, p].job < 0:
            state.heads[b, p].job = state.locked[b, p]
    state.heads[b, state.lanes[state.node_jobs[b, j].lane].partition].job = j


@inner
def _first_of_partition(state: ClusterState, b: int, p: int) -> int:
    """Return the first eligible job of a partition in queue order; there is one."""
    best = -1
    for i in range(state.node_scalars[b].n_active):
        g = state.active[b, i]
        if state.lanes[g].partition == p and not lane_is_exhausted(state, b, g):
            j = first_in_lane(state, b, g)
            while j >= 0 and not is_eligible(state, b, j):
                j = next_in_lane(state, b, j)
            if j >= 0 and (best < 0 or precedes(state.jobs[b], j, best)):
                best = j
    return int(best)


@inner
def _list_pickable(state: ClusterState, b: int) -> int:
    """List the candidates of a PICK: eligible jobs of partitions without head, the first in queue order."""
    env, more = state.scalars[b], state.node_scalars[b]
    _list_live_lanes(state, b)
    window = state.candidates.shape[1]
    n = 0
    while n < window:
        j = _next_eligible(state, b)
        if j < 0:
            break
        state.candidates[b, n] = j
        n += 1
    more.n_live = -1
    env.n_candidates = n
    return n


@inline
def _first_block_within(state: ClusterState, b: int, block: int, room: int) -> int:
    """Return the first of a lane's blocks from this one on that may have a job of so few cores, or -1."""
    while block >= 0 and state.min_nodes[b, block] > room:
        block = state.next_block[b, block]
    return block


@inner
def _gather(state: ClusterState, b: int, out: Array, guard: bool, listing: int) -> int:
    """List the eligible jobs that may start behind the heads, in no order; return how many.

    For a decision (`listing`) those that fit now; else also those that might when others have started: so
    many tasks on so many nodes are dealt out greedily, and may fit where less is free.
    """
    more = state.node_scalars[b]
    more.may_fit_later = 0
    n = 0
    looked_at, fitted = -1, False
    for i in range(more.n_active):
        g = state.active[b, i]
        p = state.lanes[g].partition
        head, room = state.heads[b, p], state.room[b, p]
        block = _first_block_within(state, b, state.lane_states[b, g].head, room)
        if block < 0 or head.n < 0 or lane_is_exhausted(state, b, g):
            continue
        while block >= 0:
            least = NEVER
            for k in range(state.size[b, block]):
                j = state.items[b, block, k]
                shape = state.node_jobs[b, j].shape_number
                of = state.shapes[shape]
                least = min(least, of.room)
                if of.room > room or j == head.job or state.no_fit[b, shape] == more.releases:
                    continue
                if not is_eligible(state, b, j):
                    continue
                if of.nodes > 0 and of.tasks > 0 and listing == 0:
                    fits = may_fit(state, b, shape)  # what fits is not known before its turn
                elif guard:
                    fits = _fits(state, b, j, guard) >= 0
                else:
                    key = demand_key(state, b, j)
                    if key < 0 or key != looked_at:
                        looked_at, fitted = key, _fits(state, b, j, guard) >= 0
                    fits = fitted
                if fits:
                    out[n] = j
                    n += 1
                elif of.nodes > 0 and of.tasks > 0 and may_fit(state, b, shape):
                    more.may_fit_later = 1
            state.min_nodes[b, block] = least
            block = _first_block_within(state, b, state.next_block[b, block], room)
    return n


@inner
def _backfill_all(state: ClusterState, b: int) -> None:
    """Backfill in queue order, or in the candidates' own order."""
    env = state.scalars[b]
    which = state.scratch[2]
    n = _gather(state, b, which, True, 0)
    by = BY_ALT if state.switches[0].own_candidate_order else BY_ORDER
    sort_jobs(state.jobs[b], which, state.scratch[3], n, by)
    for k in range(n):
        j = which[k]
        if is_eligible(state, b, j):
            chosen = fits_beside_heads(state, b, j, False)
            if chosen >= 0:
                p = state.lanes[state.node_jobs[b, j].lane].partition
                _start_on_nodes(state, b, j, chosen, HOW_BACKFILLED, state.heads[b, p].job)
    env.n_candidates = 0


@inner
def _list_cluster_candidates(state: ClusterState, b: int) -> None:
    """List the candidates of a BACKFILL."""
    env = state.scalars[b]
    which = state.scratch[2]
    n = _gather(state, b, which, state.switches[0].guard > 0, 1)
    by = BY_ALT if state.switches[0].own_candidate_order else BY_ORDER
    sort_jobs(state.jobs[b], which, state.scratch[3], n, by)
    n = min(n, state.candidates.shape[1])
    for k in range(n):
        state.candidates[b, k] = which[k]
    env.n_candidates = n
    if n > 0:
        reserve_heads(state, b)
        env.head = _head_beside(state, b, state.candidates[b, 0])


@inner
def _are_heads_blocked(state: ClusterState, b: int) -> bool:
    """Tell whether all heads stay heads, for nothing but free nodes is missing, as long as no job ends."""
    for k in range(state.node_scalars[b].n_heads):
        j = state.heads[b, state.head_order[b, k]].job
        if choose_now(state, b, state.node_jobs[b, j].shape_number) >= 0 or not is_eligible(state, b, j):
            return False
    return True


@inner
def cluster_advance(state: ClusterState, b: int) -> int:
    """Carry the open pass on until an agent must answer (its kind) or the pass is over (NOTHING)."""
    env, more = state.scalars[b], state.node_scalars[b]
    rules = state.switches[0]
    while True:
        if env.phase == PHASE_IDLE:
            return NOTHING
        if env.phase == PHASE_PICK:
            if env.n_waiting == 0:
                forget_firsts(state, b)
                env.phase = PHASE_IDLE
                end_actions(state, b)
                return NOTHING
            if rules.dynamic_order and not env.is_sorted:
                if rules.scored_outside:
                    return SCORE
                sort_lanes(state, b)
                env.is_sorted = 1
            if rules.backfill == CONSERVATIVE:
                forget_firsts(state, b)
                return BOOK
            env.head = next_first(state, b)  # it was accepted when others gave way to it
            if env.head < 0 and rules.head_locked:
                env.head = _next_locked(state, b)
            if env.head >= 0:
                env.phase = PHASE_TRY
                continue
            if rules.agent_pick:
                if _list_pickable(state, b) > 0:
                    return PICK
            else:
                if more.n_live < 0:
                    _list_live_lanes(state, b)
                env.head = _next_eligible(state, b)
            if env.head < 0:
                env.phase = PHASE_BACKFILL
                env.n_candidates = -1
            else:
                env.accepted = 0
                env.phase = PHASE_INSPECT
        if env.phase == PHASE_INSPECT:
            if (
                rules.agent_inspect
                and not env.accepted
                and state.jobs[b, env.head].rejects < rules.max_rejects
            ):
                return INSPECT
            env.phase = PHASE_TRY
        if env.phase == PHASE_TRY:
            j = env.head
            env.head = -1
            env.phase = PHASE_PICK
            strikes = rules.backfill == NO_BACKFILL
            chosen = fits_beside_heads(state, b, j, strikes)
            if chosen < 0 and rules.head_first:
                j = _first_of_partition(state, b, state.lanes[state.node_jobs[b, j].lane].partition)
                chosen = fits_beside_heads(state, b, j, strikes)
            first_blocked = _blocked_before(state, b, j) if rules.backfill == FILLER else -1
            if chosen >= 0:
                how = STARTED_AS_HEAD if first_blocked < 0 else HOW_BACKFILLED
                _start_on_nodes(state, b, j, chosen, how, first_blocked)
                if rules.start_gap > 0:
                    _close(state, b, j)
                    return NOTHING
            elif first_blocked >= 0:
                continue
            elif preempt(state, b, j, strikes) == GONE:
                note_head(state, b, j)
                if rules.head_locked:
                    _keep_locked(state, b, j)
                env.phase = PHASE_IDLE
                return NOTHING
            elif strikes:
                _strike(state, b, j)
            elif rules.backfill == FILLER:
                _note_blocked(state, b, j)
            else:
                make_head(state, b, j)
            continue
        if env.phase == PHASE_BACKFILL:
            if rules.backfill == EASY and more.n_heads > 0:
                if rules.agent_backfill:
                    if env.n_candidates < 0:
                        _list_cluster_candidates(state, b)
                    if env.n_candidates > 0:
                        return BACKFILL
                    if keeps_blocked(state) and _are_heads_blocked(state, b):
                        more.blocked_since = 1 + more.releases
                else:
                    _backfill_all(state, b)
            env.phase = PHASE_IDLE
            env.head = -1
            env.is_reserved = 0
            end_actions(state, b)
            return NOTHING


@inner
def _add_later(state: ClusterState, b: int, started: int, kept: int) -> int:
    """Add to `kept` candidates the jobs behind job `started` that fit since then; return how many."""
    which, jobs = state.scratch[2], state.jobs[b]
    n = _gather(state, b, which, state.switches[0].guard > 0, 1)
    by = BY_ALT if state.switches[0].own_candidate_order else BY_ORDER
    for k in range(n):
        is_new = stands_before(jobs, started, which[k], by)
        for i in range(kept):
            if state.candidates[b, i] == which[k]:
                is_new = False
        if is_new and kept < state.candidates.shape[1]:
            state.candidates[b, kept] = which[k]
            kept += 1
    for k in range(kept):
        which[k] = state.candidates[b, k]
    sort_jobs(jobs, which, state.scratch[3], kept, by)
    for k in range(kept):
        state.candidates[b, k] = which[k]
    return kept


@inner
def cluster_backfill_choice(state: ClusterState, b: int, choice: int) -> None:
    """Start a candidate; the others are the next candidates where they still may start."""
    env, more = state.scalars[b], state.node_scalars[b]
    guard = state.switches[0].guard > 0
    n, kept, started = env.n_candidates, 0, state.candidates[b, choice]
    for k in range(n):
        j = state.candidates[b, k]
        if k == choice:
            chosen = _fits(state, b, j, guard)
            p = state.lanes[state.node_jobs[b, j].lane].partition
            _start_on_nodes(state, b, j, chosen, HOW_BACKFILLED, state.heads[b, p].job)
    looked_at, fits = -1, False
    for k in range(n):
        j = state.candidates[b, k]
        if k == choice:
            continue
        key = -1 if guard else demand_key(state, b, j)
        if key >= 0 and key == looked_at and not fits:
            continue
        if not is_eligible(state, b, j):
            continue
        if key < 0 or key != looked_at:
            looked_at, fits = key, _fits(state, b, j, guard) >= 0
        if fits:
            state.candidates[b, kept] = j
            kept += 1
    if more.may_fit_later:
        kept = _add_later(state, b, started, kept)
    env.n_candidates = kept if n < state.candidates.shape[1] else -1
    more.n_caps = 0
    if kept > 0:
        env.head = _head_beside(state, b, state.candidates[b, 0])


@inline
def _head_beside(state: ClusterState, b: int, j: int) -> int:
    """Return the head that job `j` waits behind, see `partition_of_head`."""
    return int(state.heads[b, partition_of_head(state, b, j)].job)


@inner
def _fits(state: ClusterState, b: int, j: int, guard: bool) -> int:
    """Choose classes for a candidate; return how many, or -1."""
    if guard:
        return fits_beside_heads(state, b, j, False)
    set_bars(state, b, j, state.scalars[b].now)
    return choose_now(state, b, state.node_jobs[b, j].shape_number)


@inner
def cluster_sort_by_scores(state: ClusterState, b: int) -> None:
    """Bring the lanes into the order of the scores that Python has written to the waiting jobs."""
    flat = state.scratch[0]
    n = list_lanes(state, b, flat)
    group(state, b, flat, n)
    rearrange_lanes(state, b, flat, n)
    state.scalars[b].is_sorted = 1


@kernel
def list_waiting_on_nodes(state: ClusterState, b: int, out: Array) -> None:
    """Write the waiting jobs of all lanes to `out`, in no order."""
    list_lanes(state, b, out)


@inner
def cluster_list_in_order(state: ClusterState, b: int, out: Array) -> int:
    """Write the eligible waiting jobs in queue order to `out` and return how many they are."""
    n = list_lanes(state, b, out)
    sort_jobs(state.jobs[b], out, state.scratch[1], n, BY_ORDER)
    return n
