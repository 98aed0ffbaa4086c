"""The lives of jobs under a rule of action: starts, stops, suspensions, and the way back to the queue."""

from bridge.base.jit import inline, inner
from bridge.scheduler.action_state import (
    COMPLETED,
    KILLED,
    PREEMPTED,
    RUNS,
    SPECULATES,
    VISITS,
    WAITS,
    ActionState,
)
from bridge.scheduler.actions import LAS, SPECULATIVE, TRIAL
from bridge.scheduler.amounts import copy_amounts, give, take
from bridge.scheduler.hosts import let_hosts_return, note_stop, suspend_hosts
from bridge.scheduler.queue import insert, remove, size_class
from bridge.scheduler.queue_key import set_key
from bridge.scheduler.running_jobs import remove_running
from bridge.scheduler.score import evaluate
from bridge.scheduler.service import attained_service
from bridge.scheduler.starts import HOW_GUEST, HOW_SPECULATIVE, announce_start, record_start
from bridge.scheduler.state import NEVER, SECOND, SHAPES


@inline
def believe_rest(state: ActionState, b: int, j: int) -> None:
    """Let what is believed of waiting job `j` be what is left of it, or what its trial lasts."""
    job, life = state.jobs[b, j], state.lives[b, j]
    job.est_wait = max(life.est_wait - life.progress, min(life.est_wait, SECOND)) + life.overhead
    job.est_run = max(life.est_run - life.progress, min(life.est_run, SECOND)) + life.overhead
    if state.action[0].kind != LAS:  # levels know what was served already
        job.t = max(life.t - life.progress / SECOND, min(life.t, 1.0))
    if state.action[0].kind == TRIAL and life.may_try:
        job.est_wait = min(job.est_wait, state.action[0].limit)
        job.est_run = min(job.est_run, state.action[0].limit)


@inline
def enter_queue(state: ActionState, b: int, j: int) -> None:
    """Put job `j` into the queue, or back into it, with what is believed of what is left of it."""
    which = state.scratch[0]
    job = state.jobs[b, j]
    believe_rest(state, b, j)
    job.slot = (57 * state.demand[b, j, 0] + job.est_wait // SECOND) % SHAPES
    which[0] = j
    if not state.switches[0].dynamic_order:
        evaluate(state, b, state.program, which, 1)
        set_key(state, b, j, state.stack[0, 0])
    if state.switches[0].own_candidate_order:
        evaluate(state, b, state.alt_program, which, 1)
        job.alt = state.stack[0, 0]
    state.scalars[b].is_sorted = 0
    insert(state, b, j)


@inline
def note_beliefs(state: ActionState, b: int, j: int) -> None:
    """Keep what is believed of a whole run of job `j`, which is submitted, and whether it can be tried."""
    job, life = state.jobs[b, j], state.lives[b, j]
    life.est_wait, life.est_run, life.t, life.tie = job.est_wait, job.est_run, job.t, job.tie
    life.may_try = state.action[0].kind <= 3 and life.permits & 1  # SPECULATIVE, TRIAL, GUEST
    state.acts[b].n_to_try += life.may_try


@inner
def submit_with_lives(state: ActionState, b: int, j: int) -> None:
    """Job `j` (its record filled in) joins the queue."""
    state.jobs[b, j].size_class = size_class(state.demand[b, j, 0])
    note_beliefs(state, b, j)
    enter_queue(state, b, j)


@inline
def give_up_trying(state: ActionState, b: int, j: int) -> None:
    """Job `j` starts: nobody tries it any more."""
    if state.lives[b, j].may_try:
        state.lives[b, j].may_try = 0
        state.acts[b].n_to_try -= 1


@inner
def withdraw_with_lives(state: ActionState, b: int, j: int) -> None:
    """Waiting job `j` leaves the queue: nobody tries it, and a lock on it is released."""
    env = state.scalars[b]
    give_up_trying(state, b, j)
    remove(state, b, j)
    if env.head == j:
        env.head = -1
        env.is_reserved = 0


@inner
def adopt_life(state: ActionState, b: int, j: int) -> None:
    """Job `j` was made to run from outside, on nodes of its own."""
    life = state.lives[b, j]
    life.does = RUNS
    life.first_start = state.jobs[b, j].start
    if state.action[0].kind == SPECULATIVE:
        take(state.idle[b], state.demand[b, j])


@inner
def recount_idle(state: ActionState, b: int) -> None:
    """What is free has changed from outside: idle is what speculating jobs leave of it."""
    acts = state.acts[b]
    copy_amounts(state.idle[b], state.free[b])
    for k in range(acts.n_limited):
        if state.lives[b, state.limited[b, k]].does == SPECULATES:
            take(state.idle[b], state.demand[b, state.limited[b, k]])


@inline
def limit_life(state: ActionState, b: int, j: int, until: int) -> None:
    """Let job `j`, which starts, be stopped at a time."""
    acts = state.acts[b]
    state.lives[b, j].limit_at = until
    state.limited[b, acts.n_limited] = j
    acts.n_limited += 1


@inline
def lift_limit(state: ActionState, b: int, j: int) -> None:
    """Let the life of job `j` have no limit any more."""
    acts, limited = state.acts[b], state.limited[b]
    if state.lives[b, j].limit_at == NEVER:
        return
    state.lives[b, j].limit_at = NEVER
    k = 0
    while limited[k] != j:
        k += 1
    acts.n_limited -= 1
    for m in range(k, acts.n_limited):
        limited[m] = limited[m + 1]


@inline
def open_life(state: ActionState, b: int, j: int) -> bool:
    """Let job `j`, which has left the queue, run on nodes of its own; tell whether for a limited time."""
    env, job, life = state.scalars[b], state.jobs[b, j], state.lives[b, j]
    is_tried = state.action[0].kind == TRIAL and life.may_try
    give_up_trying(state, b, j)
    if is_tried and env.n_waiting == 0:  # nobody else waits: no limit
        job.est_run, is_tried = life.est_run, False
    state.acts[b].declined = 0
    life.does = RUNS
    if life.first_start < 0:
        life.first_start = env.now
    return bool(is_tried)


@inner
def start_life(state: ActionState, b: int, j: int, how: int, past: int) -> None:
    """Start waiting job `j` now; if it needs their nodes, the last started speculating jobs end."""
    remove(state, b, j)
    take(state.free[b], state.demand[b, j])
    is_tried = open_life(state, b, j)
    record_start(state, b, j, how, past)
    if is_tried:
        limit_life(state, b, j, state.scalars[b].now + state.action[0].limit)
    if state.action[0].kind == SPECULATIVE:
        take(state.idle[b], state.demand[b, j])
        while _lacks(state, b):
            acts = state.acts[b]
            last = state.limited[b, acts.n_limited - 1]
            end_life(state, b, last, KILLED)
            state.back[b, acts.n_back] = last  # blocks of the queue must not move in a pass
            acts.n_back += 1


@inline
def _lacks(state: ActionState, b: int) -> bool:
    """Tell whether speculating jobs hold what was taken."""
    for r in range(state.idle.shape[1]):  # noqa: SIM110  (compiled: a plain loop)
        if state.idle[b, r] < 0:
            return True
    return False


@inner
def speculate(state: ActionState, b: int, j: int, until: int) -> None:
    """Start waiting job `j` on idle nodes, which count as free; it is stopped at a time."""
    env, life = state.scalars[b], state.lives[b, j]
    remove(state, b, j)
    give_up_trying(state, b, j)
    take(state.idle[b], state.demand[b, j])
    life.does = SPECULATES
    if life.first_start < 0:
        life.first_start = env.now
    announce_start(state, b, j, HOW_SPECULATIVE, env.head)
    limit_life(state, b, j, until)


@inner
def visit(state: ActionState, b: int, j: int, n_hosts: int) -> None:
    """Start waiting job `j` on the nodes of running jobs ``chosen[:n_hosts]``, which are suspended."""
    remove(state, b, j)
    begin_visit(state, b, j)
    suspend_hosts(state, b, j, n_hosts)


@inline
def begin_visit(state: ActionState, b: int, j: int) -> None:
    """Let job `j`, which has left the queue, start as a guest."""
    env, life = state.scalars[b], state.lives[b, j]
    give_up_trying(state, b, j)
    life.does = VISITS
    if life.first_start < 0:
        life.first_start = env.now
    announce_start(state, b, j, HOW_GUEST, env.head)
    limit_life(state, b, j, env.now + state.action[0].limit)


@inline
def life_end(state: ActionState, b: int, j: int) -> int:
    """Return when the present life of job `j` completes its run, if nothing stops it."""
    job, life = state.jobs[b, j], state.lives[b, j]
    return int(job.start + life.overhead + life.suspended + job.run - life.progress)


@inline
def settle_life(state: ActionState, b: int, j: int, ended: int) -> None:
    """Count what a life of job `j` that ends now has taken, and what of it is kept for the next one."""
    job, life, rules = state.jobs[b, j], state.lives[b, j], state.action[0]
    lasted, attained = state.scalars[b].now - job.start, attained_service(state, b, j)
    if life.does != VISITS:
        life.occupied += lasted
    if ended == COMPLETED:
        life.lost += lasted - (job.run - life.progress) - life.suspended
        return
    if ended == PREEMPTED:
        life.lost += lasted - (attained - life.progress) - life.suspended
        life.progress = attained
        life.overhead = rules.resume + life.resume_more
    else:
        life.lost += lasted - life.suspended
        life.overhead = rules.restart + life.restart_more if ended == KILLED else 0
    life.stops += 1
    life.suspended = 0


@inner
def end_life(state: ActionState, b: int, j: int, ended: int) -> None:
    """Take job `j` off its nodes now: it has completed, or is stopped and does not wait yet."""
    env, acts = state.scalars[b], state.acts[b]
    job, life = state.jobs[b, j], state.lives[b, j]
    lift_limit(state, b, j)
    if life.does == RUNS:
        remove_running(state, b, j)
        give(state.free[b], state.demand[b, j])
    if life.does == RUNS or life.does == SPECULATES:
        if state.action[0].kind == SPECULATIVE:
            give(state.idle[b], state.demand[b, j])
    else:
        let_hosts_return(state, b, j)
    if state.switches[0].uses_fairshare:
        used = job.n * ((env.now - job.start) / SECOND)
        state.usage[b, job.user] += used
        env.used_total += used
    settle_life(state, b, j, ended)
    life.does = WAITS
    if acts.keeps_log:
        entry = state.life_log[b, acts.n_log]
        entry.start, entry.end, entry.job, entry.how, entry.ended = job.start, env.now, j, job.how, ended
        acts.n_log += 1
    if ended == COMPLETED:
        job.end = env.now
        return
    job.start = -1
    note_stop(state, b, j)


@inner
def stop(state: ActionState, b: int, j: int, ended: int) -> None:
    """Stop running job `j`, which waits again."""
    end_life(state, b, j, ended)
    enter_queue(state, b, j)


@inner
def finish_with_lives(state: ActionState, b: int, j: int) -> None:
    end_life(state, b, j, COMPLETED)
