"""Preemption: a job that does not fit takes the place of running jobs of a lower tier or QOS."""

from bridge.base.jit import by_type, inline, inner
from bridge.scheduler.acting_state import ActingNodes
from bridge.scheduler.action_state import PREEMPTED as STOPPED
from bridge.scheduler.actions import LAS
from bridge.scheduler.calendar import is_awaiting, stop_on_nodes, stop_victim
from bridge.scheduler.cluster_state import ClusterState
from bridge.scheduler.heads import reserve_heads, set_caps
from bridge.scheduler.placement import select
from bridge.scheduler.preemption_rules import goes_first, may_preempt, remaining_area, victim_key
from bridge.scheduler.queue_key import level_of
from bridge.scheduler.running_jobs import add_running, first_place, job_at, next_place, remove_running
from bridge.scheduler.state import SECOND
from bridge.scheduler.timed_nodes import change_by_victim, is_barred, set_bars
from bridge.scheduler.timed_state import MODE_OFF, TimedState

#: What a job that does not fit has brought about: nothing; victims are in grace; they are gone, and the next
#: pass, at this instant, takes the job first.
NOBODY, IN_GRACE, GONE = 0, 1, 2


@inner
def _ranks_below(state: TimedState, b: int, v: int, j: int) -> bool:
    """Tell whether job `j` may preempt job `v`, by tier or by QOS."""
    rules, below, above = state.timed_switches[0], state.timed_jobs[b, v], state.timed_jobs[b, j]
    if rules.by_tier and below.tier < above.tier:
        return True
    level = not rules.by_tier or below.tier == above.tier
    return bool(rules.by_qos and level and state.preempts[above.qos, below.qos])


@inner
def _is_victim(state: TimedState, b: int, v: int, j: int) -> bool:
    of, now = state.timed_jobs[b, v], state.scalars[b].now
    if of.mode == MODE_OFF or of.grace_end >= 0 or now - state.jobs[b, v].start < of.exempt:
        return False
    return _ranks_below(state, b, v, j) and _reaches(state, b, v, j)


@inline
def _goes_before(state: TimedState, b: int, v: int, other: int) -> bool:
    """Tell whether job `v` is preempted rather than another."""
    one, two = state.timed_jobs[b, v], state.timed_jobs[b, other]
    if one.tier != two.tier:
        return bool(one.tier < two.tier)
    if one.priority != two.priority:
        return bool(one.priority < two.priority)
    if state.jobs[b, v].start != state.jobs[b, other].start:
        return bool(state.jobs[b, v].start > state.jobs[b, other].start)
    return v > other


@inline
def _reaches(state: TimedState, b: int, v: int, j: int) -> bool:
    """Tell whether job `v` has nodes that are admissible to job `j`, of the last `set_bars`."""
    admits = state.shapes[state.node_jobs[b, j].shape_number].admits
    entry = state.node_jobs[b, v].allocation
    while entry >= 0:
        c = state.entry_class[b, entry]
        if state.admits[admits, c] and not is_barred(state, b, c):
            return True
        entry = state.entry_next[b, entry]
    return False


@inner
def _list_victims(state: TimedState, b: int, j: int) -> int:
    """List the jobs that may be preempted for job `j`, in their order; return how many."""
    n, place = 0, first_place(state, b)
    while job_at(state, b, place) >= 0:
        v = job_at(state, b, place)
        if _is_victim(state, b, v, j):
            k = n
            n += 1
            while k > 0 and _goes_before(state, b, v, state.victims[k - 1]):
                state.victims[k] = state.victims[k - 1]
                k -= 1
            state.victims[k] = v
        place = next_place(state.run_job[b], place)
    return n


@inner
def _without(state: TimedState, b: int, v: int, sign: int) -> None:
    """Let what is available be as if job `v` did not run (`sign` 1), or as if it did (-1)."""
    change_by_victim(state, b, state.work_free, v, sign)
    end, now = state.jobs[b, v].est_end, state.scalars[b].now
    if end <= now:
        end = now + SECOND
    for k in range(state.node_scalars[b].n_caps):
        p = state.caps[b, k]
        if end > state.heads[b, p].shadow:
            change_by_victim(state, b, state.head_extra[b, p], v, sign)


@inner
def _choose_victims(state: TimedState, b: int, j: int, n: int, strikes: bool) -> int:
    """Let ``victims`` begin with those whose end lets job `j` start, -1: one not needed; return how many."""
    shape, base = state.node_jobs[b, j].shape_number, state.work_free
    for c in range(base.shape[0]):
        for r in range(base.shape[1]):
            base[c, r] = state.free_node[b, c, r]
    m, suffices = 0, False
    while m < n and not suffices:
        _without(state, b, state.victims[m], 1)
        m += 1
        suffices = select(state, b, shape, base, strikes) >= 0
    if not suffices:
        for k in range(m):
            _without(state, b, state.victims[k], -1)
        return 0
    for k in range(m):
        v = state.victims[k]
        _without(state, b, v, -1)
        if select(state, b, shape, base, strikes) >= 0:
            state.victims[k] = -1
        else:
            _without(state, b, v, 1)
    for k in range(m):
        if state.victims[k] >= 0:
            _without(state, b, state.victims[k], -1)
    return m


@inner
def _choose_among(state: TimedState, b: int, j: int, n: int, strikes: bool) -> int:
    """Do as `_choose_victims`, beside the heads; what they have reserved will have to be looked at anew."""
    if n == 0:
        return 0
    now = state.scalars[b].now
    if not strikes:
        reserve_heads(state, b)
        set_caps(state, b, j, now)
    set_bars(state, b, j, now)
    n = _choose_victims(state, b, j, n, strikes)
    state.node_scalars[b].n_caps = 0
    if n > 0:
        state.node_scalars[b].n_profile = 0
    return n


@inner
def _give_grace(state: TimedState, b: int, v: int, j: int) -> None:
    """Let job `v` end in favour of job `j` when its grace is over."""
    env, job, of = state.scalars[b], state.jobs[b, v], state.timed_jobs[b, v]
    of.grace_end = env.now + of.grace
    of.preemptor = j
    state.timed_scalars[b].n_graces += 1
    if job.est_end > of.grace_end:
        remove_running(state, b, v)
        job.est_end = of.grace_end
        job.serial = env.serial
        env.serial += 1
        add_running(state, b, v)


@inline
def _preempt_nobody(_state: ClusterState, _b: int, _j: int, _strikes: bool) -> int:
    return NOBODY


@inner
def _preempt(state: TimedState, b: int, j: int, strikes: bool) -> int:
    rules = state.timed_switches[0]
    if not (rules.by_tier or rules.by_qos) or is_awaiting(state, b, j):
        return NOBODY
    set_bars(state, b, j, state.scalars[b].now)
    n = _choose_among(state, b, j, _list_victims(state, b, j), strikes)
    if n == 0:
        return NOBODY
    waits = False
    for k in range(n):
        if state.victims[k] >= 0 and state.timed_jobs[b, state.victims[k]].grace > 0:
            waits = True
    if waits:
        for k in range(n):
            if state.victims[k] >= 0:
                _give_grace(state, b, state.victims[k], j)
        return IN_GRACE
    state.timed_scalars[b].n_firsts = 0
    for k in range(n):
        if state.victims[k] >= 0:
            stop_victim(state, b, state.victims[k])
    _go_first(state, b, j)
    return GONE


@inline
def _go_first(state: TimedState, b: int, j: int) -> None:
    """Let job `j` be the next that a pass takes."""
    more = state.timed_scalars[b]
    state.firsts[b, more.n_firsts] = j
    more.n_firsts += 1


@inner
def _list_by_rule(state: ActingNodes, b: int, j: int) -> int:
    """List the jobs that give way to job `j` by the rule of action, in its order; return how many."""
    level, area = level_of(state, state.lives[b, j].progress), remaining_area(state, b, j)
    n, place = 0, first_place(state, b)
    while job_at(state, b, place) >= 0:
        v = job_at(state, b, place)
        is_going = state.timed_jobs[b, v].grace_end >= 0
        if not is_going and may_preempt(state, b, j, v, level, area, True) and _reaches(state, b, v, j):
            key, k = victim_key(state, b, v), n
            n += 1
            while k > 0 and goes_first(state, b, v, key, state.victims[k - 1], state.victim_keys[k - 1]):
                state.victims[k], state.victim_keys[k] = state.victims[k - 1], state.victim_keys[k - 1]
                k -= 1
            state.victims[k], state.victim_keys[k] = v, key
        place = next_place(state.run_job[b], place)
    return n


@inner
def _preempt_by_rule(state: ActingNodes, b: int, j: int, strikes: bool) -> int:
    outcome = _preempt(state, b, j, strikes)
    if outcome != NOBODY or state.action[0].kind < LAS or is_awaiting(state, b, j):  # not LAS, HYBRID
        return outcome
    set_bars(state, b, j, state.scalars[b].now)
    n = _choose_among(state, b, j, _list_by_rule(state, b, j), strikes)
    if n == 0:
        return NOBODY
    state.timed_scalars[b].n_firsts = 0
    for k in range(n):
        if state.victims[k] >= 0:
            stop_on_nodes(state, b, state.victims[k], STOPPED)
    _go_first(state, b, j)
    return GONE


#: Stop running jobs in favour of job `j`, which does not fit; NOBODY, IN_GRACE or GONE.
preempt = by_type(by_type(_preempt_nobody, _preempt, TimedState), _preempt_by_rule, ActingNodes)
