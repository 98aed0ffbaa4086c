"""What a rule of action adds to a pass: before it, for its blocked head, and behind it."""

from bridge.base.jit import inline, inner
from bridge.scheduler.action_state import ActionState
from bridge.scheduler.actions import GUEST, LAS, SPECULATIVE
from bridge.scheduler.amounts import copy_amounts, give
from bridge.scheduler.decisions import DECLINE, NOTHING, PHASE_IDLE, PHASE_PICK, PHASE_TRIAL, TRIAL
from bridge.scheduler.hosts import is_larger, is_smaller, list_hosts
from bridge.scheduler.limited_lives import end_limited_lives, next_limit
from bridge.scheduler.lives import enter_queue, speculate, visit
from bridge.scheduler.preemption_rules import mark_urgent, next_preemption
from bridge.scheduler.queue import first, list_in_order, may_fit, rearrange
from bridge.scheduler.queue_key import set_key
from bridge.scheduler.reservation import reserve_head
from bridge.scheduler.running_jobs import fits
from bridge.scheduler.state import NEVER


@inner
def begin_pass_with_lives(state: ActionState, b: int) -> None:
    """Open a pass: lives that have reached their limit end, killed."""
    env = state.scalars[b]
    end_limited_lives(state, b)
    if state.action[0].guard > 0:
        mark_urgent(state, b)
    state.acts[b].declined = 0
    env.phase = PHASE_PICK
    env.is_sorted = 0
    env.wake_at = NEVER


@inner
def end_pass_with_lives(state: ActionState, b: int) -> None:
    """Do what the rule does with what the pass has left; an agent may have to choose what is tried."""
    acts, rules = state.acts[b], state.action[0]
    for k in range(acts.n_back):
        enter_queue(state, b, state.back[b, k])
    acts.n_back = 0
    if acts.n_to_try > 0 and (rules.kind == SPECULATIVE or rules.kind == GUEST):
        if rules.agent_trial:
            if _list_trials(state, b) > 0:
                state.scalars[b].phase = PHASE_TRIAL
                return
        elif rules.kind == SPECULATIVE:
            _speculate_on_idle(state, b)
        else:
            _admit_guests(state, b)
    _close(state, b)


@inner
def _close(state: ActionState, b: int) -> None:
    """The pass is over: see when there will be something to do."""
    env = state.scalars[b]
    env.head = -1
    env.is_reserved = 0
    wake = next_limit(state, b)
    if state.action[0].kind >= LAS:  # LAS, HYBRID
        wake = min(wake, next_preemption(state, b))
    state.acts[b].wake_at = wake


@inner
def _list_trials(state: ActionState, b: int) -> int:
    """List the jobs that can be tried now, the candidates of a TRIAL; return how many there are."""
    env = state.scalars[b]
    which = state.scratch[2]
    env.head = first(state, b)
    reserve_head(state, b, env.head)
    env.is_reserved = 1
    is_guest = state.action[0].kind == GUEST
    n_hosts = list_hosts(state, b) if is_guest else 0
    n = list_in_order(state, b, which)
    env.n_candidates = 0
    for k in range(n):
        j = which[k]
        if env.n_candidates == state.candidates.shape[1]:
            break
        if not state.lives[b, j].may_try:
            continue
        if is_guest:
            can_start = _choose_hosts(state, b, j, n_hosts)[0] > 0
            n_hosts = list_hosts(state, b)  # choosing takes them out of the list
        else:
            can_start = env.shadow > env.now and fits(state.demand[b, j], state.idle[b])
        if can_start:
            state.candidates[b, env.n_candidates] = j
            env.n_candidates += 1
    return int(env.n_candidates)


@inner
def apply_trial(state: ActionState, b: int, choice: int) -> None:
    """Try the candidate that the agent has chosen; DECLINE: nobody else in this pass."""
    env = state.scalars[b]
    if choice != DECLINE:
        j = state.candidates[b, choice]
        if state.action[0].kind == GUEST:
            n_hosts = list_hosts(state, b)
            visit(state, b, j, _choose_hosts(state, b, j, n_hosts)[0])
        else:
            speculate(state, b, j, min(env.shadow, env.now + state.action[0].limit))
        if env.n_waiting > 0 and _list_trials(state, b) > 0:
            return
    env.phase = PHASE_IDLE
    _close(state, b)


@inline
def is_pass_over(state: ActionState, b: int) -> bool:
    """Tell whether the pass waits for nothing but an agent's TRIAL."""
    return bool(state.scalars[b].phase == PHASE_IDLE or state.scalars[b].phase == PHASE_TRIAL)


@inline
def kind_behind_pass(state: ActionState, b: int) -> int:
    """Return the decision that waits behind the pass, or NOTHING."""
    return TRIAL if state.scalars[b].phase == PHASE_TRIAL else NOTHING


@inline
def next_wake_with_lives(state: ActionState, b: int) -> int:
    """Return when the scheduler wants to be woken next; NEVER: not at all."""
    return int(min(state.scalars[b].wake_at, state.acts[b].wake_at))


@inline
def must_collect_lives(state: ActionState, b: int) -> bool:
    """Tell whether the log of lives is so long that the world must read it before the next pass."""
    return bool(state.acts[b].n_log > state.life_log.shape[1] - 2 * state.lives.shape[1])


@inner
def sort_groups_by_scores(state: ActionState, b: int) -> None:
    """Bring the queue into the order of the scores that Python has written, group by group."""
    which = state.scratch[0]
    n = list_in_order(state, b, which)
    for k in range(n):
        set_key(state, b, which[k], state.jobs[b, which[k]].score)
    rearrange(state, b)
    state.scalars[b].is_sorted = 1


@inner
def _speculate_on_idle(state: ActionState, b: int) -> None:
    """Start waiting jobs on idle nodes, in queue order, until the first job's reservation at most."""
    env = state.scalars[b]
    which = state.scratch[2]
    n = 0
    for i in range(env.n_blocks):
        block = state.blocks[b, i]
        if may_fit(state, b, block, state.idle[b, 0]):
            for k in range(state.size[b, block]):
                j = state.items[b, block, k]
                if state.lives[b, j].may_try and fits(state.demand[b, j], state.idle[b]):
                    which[n] = j
                    n += 1
    if n == 0:
        return
    env.head = first(state, b)
    reserve_head(state, b, env.head)
    until = min(env.shadow, env.now + state.action[0].limit)
    for k in range(n):
        if until > env.now and fits(state.demand[b, which[k]], state.idle[b]):
            speculate(state, b, which[k], until)


@inner
def _admit_guests(state: ActionState, b: int) -> None:
    """Let waiting jobs that were never tried, in queue order, be guests of running jobs."""
    which = state.scratch[2]
    n_hosts = list_hosts(state, b)
    if n_hosts == 0:
        return
    n = list_in_order(state, b, which)
    for k in range(n):
        if n_hosts == 0:
            return
        if state.lives[b, which[k]].may_try:
            n_chosen, n_hosts = _choose_hosts(state, b, which[k], n_hosts)
            if n_chosen > 0:
                visit(state, b, which[k], n_chosen)


@inner
def _choose_hosts(state: ActionState, b: int, j: int, n: int) -> tuple[int, int]:
    """Choose the smallest of `n` hosts that suffices, else the largest ones; return how many, and are left.

    Of equal ones the first submitted.
    """
    hosts, demand, sum_ = state.victims, state.demand[b, j], state.amounts
    best = -1
    for k in range(n):
        if fits(demand, state.demand[b, hosts[k]]) and (
            best < 0 or is_smaller(state, b, hosts[k], hosts[best])
        ):
            best = k
    if best >= 0:
        state.chosen[0] = hosts[best]
        hosts[best] = hosts[n - 1]
        return 1, n - 1
    copy_amounts(sum_, demand)
    for r in range(sum_.shape[0]):
        sum_[r] = 0
    for k in range(n):
        give(sum_, state.demand[b, hosts[k]])
    if not fits(demand, sum_):
        return 0, n
    for r in range(sum_.shape[0]):
        sum_[r] = 0
    n_chosen = 0
    while not fits(demand, sum_):
        best = 0
        for k in range(1, n):
            if is_larger(state, b, hosts[k], hosts[best]):
                best = k
        state.chosen[n_chosen] = hosts[best]
        give(sum_, state.demand[b, hosts[best]])
        n_chosen += 1
        n -= 1
        hosts[best] = hosts[n]
    return n_chosen, n
