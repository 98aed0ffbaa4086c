"""What happens to a cluster in time: nodes fail and return, lives are cut short, jobs are cancelled and held.

A life is one run of a job. Whoever is cut short either waits again, as a new life, or is over.
"""

from bridge.base.jit import by_type, inline, inner, kernel
from bridge.scheduler.acting_state import ActingNodes
from bridge.scheduler.action_state import GAVE_WAY, KILLED, SPECULATES, VISITS
from bridge.scheduler.cluster_state import GONE_CANCELLED, HELD_BY_JOBS, HELD_UNTIL, NOT_HELD, ClusterState
from bridge.scheduler.eligibility import (
    count_end,
    count_stop,
    is_eligible,
    leave,
    push_timer,
    wait_again,
)
from bridge.scheduler.lanes import remove_from_lane
from bridge.scheduler.node_lives import kept_by_rule, leave_running, rest, settle, stood_by_rule
from bridge.scheduler.placement import release_allocation
from bridge.scheduler.queue import drop_job, precedes
from bridge.scheduler.running_jobs import add_running, first_place, job_at, next_place, remove_running
from bridge.scheduler.starts import note_start
from bridge.scheduler.state import NEVER, SECOND, State
from bridge.scheduler.stood_log import write_stood
from bridge.scheduler.timed_jobs import lane_is_down
from bridge.scheduler.timed_nodes import hold_entry, set_node
from bridge.scheduler.timed_state import (
    CANCEL,
    ENDED,
    FAILED_REQUEUED,
    HOLD,
    LIMIT,
    MODE_REQUEUE,
    MODE_SUSPEND,
    NODE_FAILED,
    NODES_DOWN,
    NODES_UP,
    OVER,
    PARTITION_STATE,
    PREEMPTED,
    PREEMPTED_REQUEUED,
    RELEASE,
    RUNNING,
    SUSPENDED,
    WAITING,
    TimedState,
)


# ---- lives ---------------------------------------------------------------------------------------
@inner
def _write_life(state: TimedState, b: int, j: int, outcome: int) -> None:
    """Write a life that ends now to the log."""
    more, job, of = state.timed_scalars[b], state.jobs[b, j], state.timed_jobs[b, j]
    life = state.life_log[b, more.n_lives]
    more.n_lives += 1
    life.job, life.episode, life.outcome, life.serial = j, of.episode, outcome, job.serial
    life.start, life.end, life.eligible = job.start, state.scalars[b].now, job.submit
    life.stood, life.kept = of.stood + stood_by_rule(state, b), kept_by_rule(state, b)
    life.first = more.n_life_nodes
    entry = state.node_jobs[b, j].allocation
    while entry >= 0:
        state.life_nodes[b, more.n_life_nodes] = state.entry_node[b, entry]
        state.life_units[b, more.n_life_nodes] = state.entry_units[b, entry]
        more.n_life_nodes += 1
        entry = state.entry_next[b, entry]
    life.last = more.n_life_nodes


@inner
def _add_first(state: TimedState, b: int, j: int) -> None:
    more = state.timed_scalars[b]
    for k in range(more.n_firsts):
        if state.firsts[b, k] == j:
            return
    state.firsts[b, more.n_firsts] = j
    more.n_firsts += 1


@inner
def _leave_grace(state: TimedState, b: int, v: int) -> None:
    """Forget that job `v` is in grace; whom it was for goes first if this was the last such job."""
    of = state.timed_jobs[b, v]
    if of.grace_end < 0:
        return
    of.grace_end = -1
    state.timed_scalars[b].n_graces -= 1
    if not is_awaiting(state, b, of.preemptor):
        _add_first(state, b, of.preemptor)


@inner
def is_awaiting(state: TimedState, b: int, j: int) -> bool:
    """Tell whether running jobs are in grace for job `j`."""
    if state.timed_scalars[b].n_graces > 0:
        place = first_place(state, b)
        while job_at(state, b, place) >= 0:
            of = state.timed_jobs[b, job_at(state, b, place)]
            if of.grace_end >= 0 and of.preemptor == j:
                return True
            place = next_place(state.run_job[b], place)
    return False


@inner
def _close_life(state: TimedState, b: int, j: int, outcome: int) -> None:
    state.timed_jobs[b, j].outcome = outcome
    if state.timed_switches[0].logs_lives:
        _write_life(state, b, j, outcome)
    _leave_grace(state, b, j)


@inline
def _nothing(_state: ClusterState, _b: int, _j: int) -> None:
    pass


@inner
def _note_end(state: TimedState, b: int, j: int) -> None:
    _close_life(state, b, j, ENDED)
    state.timed_jobs[b, j].doing = OVER


#: Running job `j` ends now by itself; it has its nodes yet.
note_end = by_type(_nothing, _note_end, TimedState)


@inner
def _note_stood(state: TimedState, b: int, j: int) -> None:
    """Suspended job `j` goes on now, or is stopped for good: count for how long it stood."""
    of = state.timed_jobs[b, j]
    of.stood += state.scalars[b].now - of.suspended_at
    write_stood(state, b, j, of.suspended_at, state.scalars[b].now)


@inner
def end_run(state: TimedState, b: int, j: int, outcome: int, ended: int) -> None:
    """Running or suspended job `j` is stopped now: it is over, or must wait again, as `cut_life` lets it.

    `ended`: what that means for a rule of action, see `bridge.scheduler.action_state`.
    """
    env, job, of = state.scalars[b], state.jobs[b, j], state.timed_jobs[b, j]
    settle(state, b, j, ended)
    if of.doing == SUSPENDED:
        _note_stood(state, b, j)
        more = state.timed_scalars[b]
        more.n_suspended = drop_job(state.suspended[b], more.n_suspended, j)
    else:
        leave_running(state, b, j)
        state.timed_scalars[b].cut = 1
    _close_life(state, b, j, outcome)
    release_allocation(state, b, j)
    rest(state, b, j)
    if state.switches[0].uses_fairshare:
        used = job.n * ((env.now - job.start - of.stood) / SECOND)
        state.usage[b, job.user] += used
        env.used_total += used
    if outcome >= PREEMPTED_REQUEUED:
        of.episode += 1
        of.doing = WAITING
        count_stop(state, b, j)
        job.start = -1
    else:
        of.doing = OVER
        job.end = env.now
        state.node_jobs[b, j].succeeds = 0
        count_end(state, b, j)


@inner
def come_back(state: TimedState, b: int, j: int) -> None:
    """Job `j`, which a rule of action has stopped, comes back to its lane; its wait goes on."""
    since, n_released = state.jobs[b, j].submit, state.node_scalars[b].n_released
    wait_again(state, b, j, 0)
    state.jobs[b, j].submit = since
    state.node_scalars[b].n_released = n_released


@inner
def stop_on_nodes(state: ActingNodes, b: int, j: int, ended: int) -> None:
    """Stop running job `j`, which waits again; no pass is among its lanes."""
    end_run(state, b, j, PREEMPTED_REQUEUED, ended)
    come_back(state, b, j)


@inner
def _stop_guest(state: ActingNodes, b: int, j: int) -> None:
    if state.lives[b, j].guest >= 0:
        stop_on_nodes(state, b, state.lives[b, j].guest, KILLED)


#: Job `j` loses its nodes: let a guest on them go.
_send_guest_away = by_type(_nothing, _stop_guest, ActingNodes)


@inner
def cut_life(state: TimedState, b: int, j: int, outcome: int) -> None:
    """Running or suspended job `j` is stopped now: it waits again, or is over."""
    _send_guest_away(state, b, j)
    end_run(state, b, j, outcome, GAVE_WAY)
    if outcome >= PREEMPTED_REQUEUED:
        failed = outcome == FAILED_REQUEUED
        wait_again(state, b, j, state.timed_switches[0].requeue_delay if failed else 0)


@inner
def _suspend(state: TimedState, b: int, j: int) -> None:
    """Running job `j` stands from now on; its cores are free."""
    env, more, of = state.scalars[b], state.timed_scalars[b], state.timed_jobs[b, j]
    _leave_grace(state, b, j)
    remove_running(state, b, j)
    more.cut = 1
    entry = state.node_jobs[b, j].allocation
    while entry >= 0:
        hold_entry(state, b, j, entry, -1, 1)
        entry = state.entry_next[b, entry]
    state.node_scalars[b].releases += 1
    of.doing = SUSPENDED
    of.suspended_at = env.now
    k = more.n_suspended
    more.n_suspended += 1
    while k > 0:
        before = state.suspended[b, k - 1]
        if state.timed_jobs[b, before].suspended_at < env.now or before < j:
            break
        state.suspended[b, k] = before
        k -= 1
    state.suspended[b, k] = j


@inner
def _can_resume(state: TimedState, b: int, j: int) -> bool:
    """Tell whether the cores that suspended job `j` had are free, whatever the state of its nodes."""
    entry, shape = state.node_jobs[b, j].allocation, state.node_jobs[b, j].shape_number
    while entry >= 0:
        c = state.entry_class[b, entry]
        if state.classes[c].counted:
            if state.node_holder[b, state.entry_node[b, entry]] >= 0:
                return False
        else:
            cores = state.entry_units[b, entry] * state.vectors[shape, 0]
            if state.shapes[shape].whole:
                cores = state.node_amounts[c, 0]
            if state.node_amounts[c, 0] - state.held_amounts[b, c, 0] < cores:
                return False
        entry = state.entry_next[b, entry]
    return True


@inner
def _resume(state: TimedState, b: int) -> None:
    """Let suspended jobs go on, oldest first, where their cores are free."""
    env, more = state.scalars[b], state.timed_scalars[b]
    n = 0
    for k in range(more.n_suspended):
        j = state.suspended[b, k]
        if not _can_resume(state, b, j):
            state.suspended[b, n] = j
            n += 1
            continue
        job, of = state.jobs[b, j], state.timed_jobs[b, j]
        entry = state.node_jobs[b, j].allocation
        while entry >= 0:
            hold_entry(state, b, j, entry, 1, 1)
            entry = state.entry_next[b, entry]
        of.doing = RUNNING
        _note_stood(state, b, j)
        job.est_end = job.start + job.est_run + of.stood
        job.serial = env.serial
        env.serial += 1
        add_running(state, b, j)
        note_start(state, b, j)
    more.n_suspended = n


@inner
def stop_victim(state: TimedState, b: int, v: int) -> None:
    """Preempt job `v` now, as its partition or QOS says."""
    of = state.timed_jobs[b, v]
    if of.mode == MODE_SUSPEND:
        _suspend(state, b, v)
    elif of.mode == MODE_REQUEUE and of.may_requeue:
        cut_life(state, b, v, PREEMPTED_REQUEUED)
    else:
        cut_life(state, b, v, PREEMPTED)


# ---- events --------------------------------------------------------------------------------------
@inline
def _nobody_beside(_state: TimedState, _b: int) -> int:
    return 0


@inner
def _list_beside(state: ActingNodes, b: int) -> int:
    n = 0
    for k in range(state.acts[b].n_limited):
        j = state.limited[b, k]
        if state.lives[b, j].does == SPECULATES or state.lives[b, j].does == VISITS:
            state.victims[n] = j
            n += 1
    return n


#: List the jobs that have nodes and do not count as running; return how many.
_list_victims_beside = by_type(_nobody_beside, _list_beside, ActingNodes)


@inner
def _kill_on(state: TimedState, b: int, first: int, last: int) -> None:
    """Stop all jobs, guests first, running and suspended, that have one of these nodes of events."""
    more, n = state.timed_scalars[b], _list_victims_beside(state, b)
    state.mark[0] += 1
    for k in range(first, last):
        state.node_mark[state.event_nodes[k]] = state.mark[0]
    place = first_place(state, b)
    while job_at(state, b, place) >= 0:
        state.victims[n] = job_at(state, b, place)
        n += 1
        place = next_place(state.run_job[b], place)
    for k in range(more.n_suspended):
        state.victims[n] = state.suspended[b, k]
        n += 1
    for k in range(n):
        j = state.victims[k]
        entry = state.node_jobs[b, j].allocation
        while entry >= 0:
            if state.node_mark[state.entry_node[b, entry]] == state.mark[0]:
                cut_life(state, b, j, FAILED_REQUEUED if state.timed_jobs[b, j].may_requeue else NODE_FAILED)
                break
            entry = state.entry_next[b, entry]


@inner
def _of_job(state: TimedState, b: int, j: int, kind: int) -> None:
    """Cancel, hold or release job `j`."""
    of, job = state.timed_jobs[b, j], state.node_jobs[b, j]
    if kind == HOLD:
        of.is_held = 1
    elif kind == RELEASE:
        of.is_held = 0
        if of.doing == WAITING and (job.held == HELD_UNTIL or job.held == HELD_BY_JOBS):
            push_timer(state, b, state.scalars[b].now, j)
    elif of.doing == WAITING:
        if job.held == NOT_HELD:
            remove_from_lane(state, b, j)
        leave(state, b, j, GONE_CANCELLED)


@inner
def _apply(state: TimedState, b: int, k: int) -> None:
    """Apply one event of the calendar."""
    event = state.events[b, k]
    if event.kind <= NODES_UP:
        for i in range(event.first, event.last):
            set_node(state, b, state.event_nodes[i], 0 if event.kind == NODES_UP else 1)
        if event.kind == NODES_DOWN:
            _kill_on(state, b, event.first, event.last)
    elif event.kind == PARTITION_STATE:
        state.partition_states[b, event.which] = event.value
    elif event.kind == LIMIT:
        for i in range(state.counted.shape[0]):
            if state.counted[i].counter == event.which:
                state.limits[b, i] = event.value
    elif event.which >= 0 and CANCEL <= event.kind <= RELEASE:
        _of_job(state, b, event.which, event.kind)


@inner
def _end_graces(state: TimedState, b: int) -> int:
    """Stop the jobs whose grace is over, by serial of start; return how many."""
    n, now = 0, state.scalars[b].now
    while state.timed_scalars[b].n_graces > 0:
        v = -1
        place = first_place(state, b)
        while job_at(state, b, place) >= 0:
            j = job_at(state, b, place)
            is_over = 0 <= state.timed_jobs[b, j].grace_end <= now
            if is_over and (v < 0 or state.jobs[b, j].serial < state.jobs[b, v].serial):
                v = j
            place = next_place(state.run_job[b], place)
        if v < 0:
            return n
        stop_victim(state, b, v)
        n += 1
    return n


@inline
def _nothing_due(_state: State, _b: int) -> int:
    return 0


@inner
def _apply_due(state: TimedState, b: int) -> int:
    more, n = state.timed_scalars[b], _end_graces(state, b)
    while more.next_event < state.events.shape[1]:
        if state.events[b, more.next_event].time > state.scalars[b].now:
            break
        more.next_event += 1
        _apply(state, b, more.next_event - 1)
        n += 1
    return n


#: Let graces end and apply the calendar's events of this instant; return how many.
apply_due = by_type(_nothing_due, _apply_due, TimedState)


@kernel
def apply_due_now(state: TimedState, b: int) -> int:
    """Do as `apply_due`; for callers in Python."""
    return apply_due(state, b)


@inline
def _never(_state: ClusterState, _b: int) -> int:
    return NEVER


@inner
def _next_due(state: TimedState, b: int) -> int:
    """Return when graces end, or an event of the calendar comes, or who goes first is looked at."""
    more, time = state.timed_scalars[b], NEVER
    if more.n_firsts > 0:
        return int(state.scalars[b].now)
    if more.next_event < state.events.shape[1]:
        time = state.events[b, more.next_event].time
    if more.n_graces > 0:
        place = first_place(state, b)
        while job_at(state, b, place) >= 0:
            end = state.timed_jobs[b, job_at(state, b, place)].grace_end
            if end >= 0:
                time = min(time, end)
            place = next_place(state.run_job[b], place)
    return int(time)


next_due = by_type(_never, _next_due, TimedState)


# ---- a pass --------------------------------------------------------------------------------------
@inline
def _begin_plain(_state: ClusterState, _b: int) -> None:
    pass


@inner
def _begin_timed(state: TimedState, b: int) -> None:
    if state.timed_scalars[b].n_firsts == 0:
        _resume(state, b)


#: Let suspended jobs go on where a pass begins, unless it takes somebody first.
begin_timed = by_type(_begin_plain, _begin_timed, TimedState)


@inline
def _no_first(_state: ClusterState, _b: int) -> int:
    return -1


@inner
def _next_first(state: TimedState, b: int) -> int:
    more = state.timed_scalars[b]
    while more.n_firsts > 0:
        best, at = -1, 0
        for k in range(more.n_firsts):
            j = state.firsts[b, k]
            if best < 0 or precedes(state.jobs[b], j, best):
                best, at = j, k
        more.n_firsts -= 1
        state.firsts[b, at] = state.firsts[b, more.n_firsts]
        job = state.node_jobs[b, best]
        if state.timed_jobs[b, best].doing == WAITING and job.held == NOT_HELD:
            p = state.lanes[job.lane].partition
            blocked = state.heads[b, p].job >= 0 or lane_is_down(state, b, job.lane)
            if not blocked and is_eligible(state, b, best):
                return int(best)
    return -1


#: The next of those whose victims have gone, which a pass takes first, or -1.
next_first = by_type(_no_first, _next_first, TimedState)


@inline
def _forget_firsts(state: TimedState, b: int) -> None:
    state.timed_scalars[b].n_firsts = 0


forget_firsts = by_type(_begin_plain, _forget_firsts, TimedState)


@inline
def _has_no_firsts(_state: ClusterState, _b: int) -> bool:
    return False


@inline
def _has_firsts(state: TimedState, b: int) -> bool:
    return bool(state.timed_scalars[b].n_firsts > 0)


has_firsts = by_type(_has_no_firsts, _has_firsts, TimedState)


@inline
def _lives_full(state: TimedState, b: int) -> bool:
    more = state.timed_scalars[b]
    if not state.timed_switches[0].logs_lives:
        return False
    most = state.entry_class.shape[1]
    return bool(
        more.n_life_nodes > state.life_nodes.shape[1] - most
        or more.n_lives > state.life_log.shape[1] - 3 * most  # each may have stood, twice, and end
    )


lives_full = by_type(_has_no_firsts, _lives_full, TimedState)
