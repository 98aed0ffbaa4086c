"""Whom a blocked head preempts by attained service (`las`) or by remaining area (`hybrid`)."""

from bridge.base.jit import inline, inner
from bridge.scheduler.action_state import PREEMPTED, RUNS, ActionState
from bridge.scheduler.actions import CHECKPOINTABLE, HYBRID, LAS
from bridge.scheduler.amounts import copy_amounts, give, take
from bridge.scheduler.decisions import DECLINE
from bridge.scheduler.lives import enter_queue, stop
from bridge.scheduler.queue import first, remove
from bridge.scheduler.queue_key import level_of
from bridge.scheduler.running_jobs import first_place, fits, job_at, next_place
from bridge.scheduler.service import attained_service
from bridge.scheduler.state import NEVER, SECOND

#: A life lasts so long before it is preempted, and preemptions are looked for at whole minutes. µs.
MINUTE = 60 * SECOND
#: What becomes of a blocked head: it waits; it fits now; an agent must choose.
NO_ROOM, ROOM, ASK_AGENT = 0, 1, 2


@inline
def remaining_area(state: ActionState, b: int, j: int) -> int:
    """Return the node-time that job `j` is believed to need still; at least 1 s long."""
    life = state.lives[b, j]
    left = max(life.est_wait - attained_service(state, b, j), min(life.est_wait, SECOND))
    return int(state.demand[b, j, 0] * left)


@inline
def may_preempt(
    state: ActionState, b: int, head: int, j: int, head_level: int, head_area: int, as_agent: bool
) -> bool:
    """Tell whether the blocked head may preempt running job `j` now: by the rule, or if an agent wants it."""
    life = state.lives[b, j]
    if life.does != RUNS or not life.permits & CHECKPOINTABLE:
        return False
    lasted = state.scalars[b].now - state.jobs[b, j].start
    if lasted < MINUTE:
        return False
    if state.action[0].agent_preempt and as_agent:  # each life brings progress, whatever the agent does
        return bool(lasted >= life.overhead + MINUTE)
    level = level_of(state, attained_service(state, b, j))
    if level > head_level:
        return True
    if state.action[0].kind == LAS or level < head_level or level == 0 or life.urgent:
        return False
    return bool(state.lives[b, head].urgent or 2 * head_area < remaining_area(state, b, j))


@inline
def victim_key(state: ActionState, b: int, j: int) -> int:
    """Return by what job `j` is preempted: the highest goes first."""
    if state.action[0].kind == LAS:
        return level_of(state, attained_service(state, b, j))
    return remaining_area(state, b, j)


@inner
def _list_victims(state: ActionState, b: int, head: int, as_agent: bool) -> int:
    """List whom the head may preempt, with a key each: the highest is the first to go."""
    level = level_of(state, state.lives[b, head].progress)
    area = remaining_area(state, b, head)
    n = 0
    place = first_place(state, b)
    while job_at(state, b, place) >= 0:
        j = job_at(state, b, place)
        if may_preempt(state, b, head, j, level, area, as_agent):
            state.victims[n] = j
            state.victim_keys[n] = victim_key(state, b, j)
            n += 1
        place = next_place(state.run_job[b], place)
    return n


@inline
def goes_first(state: ActionState, b: int, j: int, key: int, other: int, other_key: int) -> bool:
    """Tell whether victim `j` goes before another: by key; under LAS the smaller one; the later start."""
    if key != other_key:
        return key > other_key
    nodes, of_other = state.demand[b, j, 0], state.demand[b, other, 0]
    if state.action[0].kind == LAS and not state.action[0].latest and nodes != of_other:
        return bool(nodes < of_other)
    return bool(state.jobs[b, j].serial > state.jobs[b, other].serial)


@inline
def _is_better(state: ActionState, b: int, m: int, best: int) -> bool:
    """Tell whether the m-th victim goes before another one."""
    keys, victims = state.victim_keys, state.victims
    return goes_first(state, b, victims[m], keys[m], victims[best], keys[best])


@inline
def _suffices(state: ActionState, b: int, head: int, n: int) -> bool:
    """Tell whether the head would fit without the `n` victims; leaves in ``amounts`` what is free then."""
    copy_amounts(state.amounts, state.free[b])
    for k in range(n):
        give(state.amounts, state.demand[b, state.victims[k]])
    return fits(state.demand[b, head], state.amounts)


@inner
def choose_victims(state: ActionState, b: int, head: int, n: int) -> int:
    """Choose of the `n` victims those whose nodes the head needs; return how many, 0: all do not suffice.

    The highest keys go first, until the head fits; of these, those that it does not need stay.
    """
    demand, free = state.demand[b, head], state.amounts
    if not _suffices(state, b, head, n):
        return 0
    copy_amounts(free, state.free[b])
    n_chosen = 0
    while not fits(demand, free):
        best = n_chosen
        for m in range(n_chosen + 1, n):
            if _is_better(state, b, m, best):
                best = m
        j, key = state.victims[best], state.victim_keys[best]
        state.victims[best], state.victim_keys[best] = state.victims[n_chosen], state.victim_keys[n_chosen]
        state.victims[n_chosen], state.victim_keys[n_chosen] = j, key
        give(free, state.demand[b, j])
        n_chosen += 1
    kept = 0
    for k in range(n_chosen):
        j = state.victims[k]
        take(free, state.demand[b, j])
        if not fits(demand, free):
            give(free, state.demand[b, j])
            state.chosen[kept] = j
            kept += 1
    return kept


@inner
def preempt_for_head(state: ActionState, b: int) -> int:
    """Let running jobs give way to the blocked head; return whether it fits now, or an agent must choose."""
    env, rules = state.scalars[b], state.action[0]
    head = env.head
    if rules.kind < LAS or state.acts[b].declined:  # not LAS, HYBRID
        return NO_ROOM
    n = _list_victims(state, b, head, True)
    if rules.agent_preempt:
        if n == 0 or not _suffices(state, b, head, n):
            return NO_ROOM
        env.n_candidates = min(n, state.candidates.shape[1])
        for k in range(env.n_candidates):
            state.candidates[b, k] = state.victims[k]
        return ASK_AGENT
    n = choose_victims(state, b, head, n)
    for k in range(n):
        stop(state, b, state.chosen[k], PREEMPTED)
    return ROOM if n > 0 else NO_ROOM


@inner
def choose_by_rule(state: ActionState, b: int) -> int:
    """Choose the victims that the rule would choose for the head, where an agent does; return how many."""
    head = state.scalars[b].head
    return choose_victims(state, b, head, _list_victims(state, b, head, False))


@inner
def apply_preemption(state: ActionState, b: int, choice: int) -> None:
    """Stop the candidate that the agent has chosen; DECLINE: the head waits."""
    if choice == DECLINE:
        state.acts[b].declined = 1
    else:
        stop(state, b, state.candidates[b, choice], PREEMPTED)


@inner
def next_preemption(state: ActionState, b: int) -> int:
    """Return the whole minute at which the head may preempt one more, or NEVER.

    Until then a pass would change nothing, but where scores change, or a job has outlasted what was believed
    of it: then each minute counts.
    """
    env, rules = state.scalars[b], state.action[0]
    if env.n_waiting == 0 or env.n_running == 0:
        return NEVER
    tick = (env.now // MINUTE + 1) * MINUTE
    if state.switches[0].dynamic_order or rules.guard > 0:
        return int(tick)
    head = first(state, b)
    level = level_of(state, state.lives[b, head].progress)
    soonest = NEVER
    place = first_place(state, b)
    while job_at(state, b, place) >= 0:
        j = job_at(state, b, place)
        job, life = state.jobs[b, j], state.lives[b, j]
        if job.est_end <= env.now:
            return int(tick)
        soonest = min(soonest, job.est_end)  # from then on it outlasts what is believed
        place = next_place(state.run_job[b], place)
        if life.does != RUNS or not life.permits & CHECKPOINTABLE:
            continue
        at = job.start + MINUTE
        if rules.agent_preempt and at + life.overhead > env.now:
            soonest = min(soonest, at + life.overhead)
        own = level_of(state, attained_service(state, b, j))
        if own <= level:
            if own == 2 or (level == 2 and rules.kind == LAS):
                continue
            if rules.kind == LAS or own == 0:  # when it reaches the level above, the head's or its own
                needed = rules.limit if level == 0 or rules.kind == HYBRID else rules.level
                at = max(at, job.start + life.overhead + needed - life.progress)
        if at > env.now:
            soonest = min(soonest, at)
    if soonest == NEVER:
        return NEVER
    return int((soonest + MINUTE - 1) // MINUTE * MINUTE)


@inner
def mark_urgent(state: ActionState, b: int) -> None:
    """Let waiting jobs that have waited for as long as the guard says go ahead of all others."""
    env, guard = state.scalars[b], state.action[0].guard
    n = 0
    for i in range(env.n_blocks):
        block = state.blocks[b, i]
        for k in range(state.size[b, block]):
            j = state.items[b, block, k]
            life = state.lives[b, j]
            if not life.urgent and env.now - state.jobs[b, j].submit - life.occupied >= guard:
                state.victims[n] = j
                n += 1
    for k in range(n):
        remove(state, b, state.victims[k])
        state.lives[b, state.victims[k]].urgent = 1
        enter_queue(state, b, state.victims[k])
