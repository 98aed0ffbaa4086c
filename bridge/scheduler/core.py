"""The scheduler's state machine: events in, a pass of decisions, starts out.

A world calls `submit`, `finish` and `wake` for what happened at one instant (or one event), then
`begin`, then `advance` until it returns NOTHING; when `advance` returns another kind, an agent must
`answer` first (SCORE: Python must `rank`; PAUSE: call again). Started jobs stand in
``started[b, :n_started]`` until the world collects them.
"""

from bridge.base.arrays import Array
from bridge.base.jit import by_type, hot, inline, inner, kernel
from bridge.scheduler.action_pass import (
    apply_trial,
    begin_pass_with_lives,
    end_pass_with_lives,
    is_pass_over,
    kind_behind_pass,
    must_collect_lives,
    next_wake_with_lives,
    sort_groups_by_scores,
)
from bridge.scheduler.action_state import ActionState
from bridge.scheduler.amounts import copy_amounts, give, take
from bridge.scheduler.backfill import (
    _any_waiting_fits,
    _backfill_candidate,
    _backfill_lone,
    _book_in_order,
    _easy,
    _easy_by_score_bounds,
    _easy_reordered,
    _list_backfillable,
    _list_bookable,
)
from bridge.scheduler.cluster_pass import (
    cluster_advance,
    cluster_backfill_choice,
    cluster_begin_pass,
    cluster_finish,
    cluster_is_due,
    cluster_must_pause,
    cluster_next_wake,
    cluster_reject,
    cluster_sort_by_scores,
    cluster_submit,
    cluster_withdraw,
)
from bridge.scheduler.cluster_state import ClusterState
from bridge.scheduler.decisions import (
    BACKFILL,
    DECLINE,
    INSPECT,
    NOTHING,
    PAUSE,
    PHASE_BACKFILL,
    PHASE_BOOK,
    PHASE_IDLE,
    PHASE_INSPECT,
    PHASE_PICK,
    PHASE_TRIAL,
    PHASE_TRY,
    PICK,
    PREEMPT,
    SCORE,
)
from bridge.scheduler.growing_scores import bound_scores, find_highest_score
from bridge.scheduler.lives import (
    adopt_life,
    finish_with_lives,
    recount_idle,
    submit_with_lives,
    withdraw_with_lives,
)
from bridge.scheduler.names import CONSERVATIVE, CONSERVATIVE_KEEPS, EASY, FILLER
from bridge.scheduler.preemption_rules import ASK_AGENT, NO_ROOM, ROOM, apply_preemption, preempt_for_head
from bridge.scheduler.promises import list_promises, move_promises
from bridge.scheduler.queue import first, insert, list_in_order, rearrange, remove, size_class, sort
from bridge.scheduler.reservation import reserve_head
from bridge.scheduler.running_jobs import add_running, first_place, fits, job_at, next_place, remove_running
from bridge.scheduler.score import evaluate
from bridge.scheduler.starting import _start
from bridge.scheduler.state import NEVER, SECOND, SHAPES, STARTED_AS_HEAD, State

__all__ = [  # who drives the machine finds the kinds of decision here, too
    "BACKFILL",
    "DECLINE",
    "INSPECT",
    "NOTHING",
    "PAUSE",
    "PICK",
    "SCORE",
    "advance",
    "apply_choice",
    "apply_events",
    "begin_pass",
    "due_now",
    "finish",
    "is_due",
    "mark_running",
    "must_pause",
    "next_wake",
    "set_out_of_service",
    "sort_by_scores",
    "submit",
    "wake_time",
    "withdraw",
]


@inline
def _submit_pooled(state: State, b: int, j: int) -> None:
    which = state.scratch[0]
    which[0] = j
    job = state.jobs[b, j]
    job.size_class = size_class(state.demand[b, j, 0])
    job.slot = (57 * state.demand[b, j, 0] + job.est_wait // SECOND) % SHAPES
    if not state.switches[0].dynamic_order:
        evaluate(state, b, state.program, which, 1)
        job.score = state.stack[0, 0]
    elif state.switches[0].growing_order:
        bound_scores(state, b, which, 1)
    if state.switches[0].own_candidate_order:
        evaluate(state, b, state.alt_program, which, 1)
        job.alt = state.stack[0, 0]
    insert(state, b, j)


_submit = by_type(by_type(_submit_pooled, submit_with_lives, ActionState), cluster_submit, ClusterState)


@hot
def submit(state: State, b: int, j: int) -> None:
    """Job `j` (its record filled in) joins the queue. Jobs are numbered in order of submission."""
    _submit(state, b, j)


@inline
def _finish_pooled(state: State, b: int, j: int) -> None:
    env = state.scalars[b]
    job = state.jobs[b, j]
    remove_running(state, b, j)
    give(state.free[b], state.demand[b, j])
    job.end = env.now
    if state.switches[0].uses_fairshare:
        used = job.n * ((env.now - job.start) / SECOND)
        state.usage[b, job.user] += used
        env.used_total += used


_finish = by_type(by_type(_finish_pooled, finish_with_lives, ActionState), cluster_finish, ClusterState)


@hot
def finish(state: State, b: int, j: int) -> None:
    """Job `j` has ended now: its resources are free."""
    _finish(state, b, j)


@inline
def _withdraw_pooled(state: State, b: int, j: int) -> None:
    env = state.scalars[b]
    remove(state, b, j)
    if env.head == j:
        env.head = -1
        env.is_reserved = 0


_withdraw = by_type(
    by_type(_withdraw_pooled, withdraw_with_lives, ActionState), cluster_withdraw, ClusterState
)


@kernel
def withdraw(state: State, b: int, j: int) -> None:
    """Waiting job `j` leaves the queue without having run; a lock on it is released."""
    _withdraw(state, b, j)


@inline
def _adopted_pooled(_state: State, _b: int, _j: int) -> None:
    return


#: A job was made to run from outside.
_adopted = by_type(_adopted_pooled, adopt_life, ActionState)


@kernel
def mark_running(state: State, b: int, j: int, start: int) -> None:
    """Waiting job `j` has been running since `start`; a lock on it is released."""
    withdraw(state, b, j)
    env = state.scalars[b]
    job = state.jobs[b, j]
    take(state.free[b], state.demand[b, j])
    job.start = start
    job.est_end = start + job.est_run
    job.serial = env.serial
    env.serial += 1
    add_running(state, b, j)
    _adopted(state, b, j)


@inline
def _free_changed_pooled(_state: State, _b: int) -> None:
    return


#: What is free was set anew.
_free_changed = by_type(_free_changed_pooled, recount_idle, ActionState)


@kernel
def set_out_of_service(state: State, b: int, amounts: Array) -> None:
    """Set how much of each resource is neither free nor used by a job."""
    free = state.free[b]
    copy_amounts(free, state.capacity)
    take(free, amounts)
    place = first_place(state, b)
    while job_at(state, b, place) >= 0:
        take(free, state.demand[b, job_at(state, b, place)])
        place = next_place(state.run_job[b], place)
    _free_changed(state, b)


@inline
def _begin_pass_pooled(state: State, b: int) -> None:
    env = state.scalars[b]
    env.phase = PHASE_PICK
    env.is_sorted = 0
    env.wake_at = NEVER


_begin_pass = by_type(
    by_type(_begin_pass_pooled, begin_pass_with_lives, ActionState), cluster_begin_pass, ClusterState
)


@hot
def begin_pass(state: State, b: int) -> None:
    """Begin a scheduling pass, after all events of this instant have been applied."""
    _begin_pass(state, b)


@inline
def _next_wake_pooled(state: State, b: int) -> int:
    return int(state.scalars[b].wake_at)


#: When the scheduler wants to be woken next, or a held job may become eligible; NEVER if nothing does.
next_wake = by_type(
    by_type(_next_wake_pooled, next_wake_with_lives, ActionState), cluster_next_wake, ClusterState
)


@inline
def _is_due_pooled(_state: State, _b: int) -> bool:
    return True


#: Whether an instant at which no job ended or came is one of a pass.
is_due = by_type(_is_due_pooled, cluster_is_due, ClusterState)


@kernel
def due_now(state: State, b: int) -> bool:
    """Tell whether a pass is due although no job ended or came; for callers in Python."""
    return is_due(state, b)


@kernel
def wake_time(state: State, b: int) -> int:
    """Return `next_wake`, for callers in Python."""
    return next_wake(state, b)


@inline
def _must_pause_pooled(_state: State, _b: int) -> bool:
    return False


#: Whether the world must collect what was allocated before the next pass.
must_pause = by_type(
    by_type(_must_pause_pooled, must_collect_lives, ActionState), cluster_must_pause, ClusterState
)


@inner
def _resort_running(state: State, b: int) -> None:
    """Order jobs that end at the same time by estimated end, as SchedGym's sorted list does."""
    env = state.scalars[b]
    place = first_place(state, b)
    while job_at(state, b, place) >= 0:
        state.jobs[b, job_at(state, b, place)].serial = env.serial
        env.serial += 1
        place = next_place(state.run_job[b], place)
    env.renumbered = 1


@inner
def _reserve_again(state: State, b: int) -> None:
    """Reserve the blocked head anew, for a job has started behind it."""
    reserve_head(state, b, state.scalars[b].head)
    if state.switches[0].resort_running:
        _resort_running(state, b)


@inline
def _act_at_end_pooled(_state: State, _b: int) -> None:
    return


#: What a rule of action does behind the pass.
_act_at_end = by_type(_act_at_end_pooled, end_pass_with_lives, ActionState)


@inline
def _is_over_pooled(state: State, b: int) -> bool:
    return bool(state.scalars[b].phase == PHASE_IDLE)


#: Whether nothing is left of the pass, but for what waits behind it.
_is_over = by_type(_is_over_pooled, is_pass_over, ActionState)


@inline
def _kind_behind_pooled(_state: State, _b: int) -> int:
    return NOTHING


#: The decision that waits behind the pass, or NOTHING.
_kind_behind = by_type(_kind_behind_pooled, kind_behind_pass, ActionState)


@inline
def _answer_action_pooled(_state: State, _b: int, _choice: int) -> None:
    return


@inline
def _answer_action_lives(state: ActionState, b: int, choice: int) -> None:
    if state.scalars[b].phase == PHASE_TRIAL:
        apply_trial(state, b, choice)
    elif state.scalars[b].phase == PHASE_TRY:
        apply_preemption(state, b, choice)


#: Answer a TRIAL or a PREEMPT.
_answer_action = by_type(_answer_action_pooled, _answer_action_lives, ActionState)


@inline
def _make_room_pooled(_state: State, _b: int) -> int:
    return NO_ROOM


#: Let running jobs give way to the blocked head; whether it fits now, or an agent must choose.
_make_room = by_type(_make_room_pooled, preempt_for_head, ActionState)


@inline
def _end_pass(state: State, b: int) -> None:
    """Close the pass; without a head lock the next one picks afresh."""
    env = state.scalars[b]
    env.phase = PHASE_IDLE
    if not state.switches[0].head_locked:
        env.head = -1
        env.is_reserved = 0
    _act_at_end(state, b)


@inline
def _list_waiting(state: State, b: int) -> None:
    """Candidates of a PICK: the first waiting jobs in queue order."""
    env = state.scalars[b]
    window = state.candidates.shape[1]
    n = 0
    for i in range(env.n_blocks):
        block = state.blocks[b, i]
        for k in range(state.size[b, block]):
            if n == window:
                break
            state.candidates[b, n] = state.items[b, block, k]
            n += 1
    env.n_candidates = n


@inline
def _advance_pooled(state: State, b: int) -> int:
    env = state.scalars[b]
    rules = state.switches[0]
    while True:
        if _is_over(state, b):
            return _kind_behind(state, b)
        if env.phase == PHASE_PICK:
            if env.n_waiting == 0:
                env.head = -1
                _end_pass(state, b)
                return NOTHING
            if rules.dynamic_order and not rules.growing_order and not env.is_sorted:
                if rules.scored_outside:
                    return SCORE
                sort(state, b)
                env.is_sorted = 1
            if rules.backfill == CONSERVATIVE_KEEPS:  # even the first job must leave the others their starts
                list_promises(state, b)
                env.phase = PHASE_BOOK
            elif env.head >= 0:  # locked since an earlier pass
                env.phase = PHASE_TRY
            elif rules.agent_pick:
                _list_waiting(state, b)
                return PICK
            else:
                env.head = find_highest_score(state, b) if rules.growing_order else first(state, b)
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
            if fits(state.demand[b, env.head], state.free[b]):
                j = env.head
                env.head = -1
                env.is_reserved = 0
                _start(state, b, j, STARTED_AS_HEAD, -1)
                env.phase = PHASE_PICK
                continue
            if rules.head_first and env.head != first(state, b):
                env.head = first(state, b)
                env.is_reserved = 0
                continue
            room = _make_room(state, b)
            if room == ASK_AGENT:
                return PREEMPT
            if room == ROOM:
                continue
            env.phase = PHASE_BACKFILL
            env.n_candidates = -1  # not listed yet
            if rules.backfill == EASY and not (env.is_reserved and rules.reserve_once):
                # where nobody else fits, nobody asks for a reservation; the first one is kept
                if rules.head_locked or state.jobs[b, env.head].reserved < 0 or _any_waiting_fits(state, b):
                    reserve_head(state, b, env.head)
                if rules.resort_running:
                    _resort_running(state, b)
                env.is_reserved = 1
            if rules.backfill == FILLER:
                env.shadow = NEVER  # nothing is reserved: each job that fits ends in time
            if rules.backfill == CONSERVATIVE:
                _list_bookable(state, b)
                env.phase = PHASE_BOOK
        if env.phase == PHASE_BOOK:
            if rules.backfill == CONSERVATIVE_KEEPS:
                is_done = move_promises(state, b)
            else:
                is_done = _book_in_order(state, b)
            if not is_done:
                return PAUSE
            _end_pass(state, b)
            return _kind_behind(state, b)
        if env.phase == PHASE_BACKFILL:
            if rules.backfill == EASY or rules.backfill == FILLER:
                if rules.agent_backfill:
                    if env.n_candidates < 0:
                        _list_backfillable(state, b)
                    if env.n_candidates == 1 and rules.lone_by_easy:
                        _backfill_lone(state, b)
                    if env.n_candidates > 0:
                        return BACKFILL
                elif rules.own_candidate_order or rules.skip_next:
                    _easy_reordered(state, b)
                elif rules.growing_order:
                    _easy_by_score_bounds(state, b)
                else:
                    _easy(state, b)
            _end_pass(state, b)
            return _kind_behind(state, b)


_advance = by_type(_advance_pooled, cluster_advance, ClusterState)


@hot
def advance(state: State, b: int) -> int:
    """Carry the open pass on until an agent must answer (its kind) or the pass is over (NOTHING)."""
    return _advance(state, b)


@hot
def apply_events(state: State, b: int, events: Array, n: int) -> int:
    """Apply what has happened at an instant, open a pass and `advance` it: one call from Python for all.

    Args:
        state, b: the scheduler.
        events: [≥ n] in order: j, job `j` was submitted; -1 - j, it has finished.
        n: how many.
    """
    for k in range(n):
        if events[k] >= 0:
            submit(state, b, events[k])
        else:
            finish(state, b, -1 - events[k])
    begin_pass(state, b)
    return advance(state, b)


@inline
def _sort_by_scores_pooled(state: State, b: int) -> None:
    list_in_order(state, b, state.scratch[0])
    rearrange(state, b)
    state.scalars[b].is_sorted = 1


_sort_by_scores = by_type(
    by_type(_sort_by_scores_pooled, sort_groups_by_scores, ActionState), cluster_sort_by_scores, ClusterState
)


@kernel
def sort_by_scores(state: State, b: int) -> None:
    """Bring the queue into the order of the scores that Python has written to the waiting jobs."""
    _sort_by_scores(state, b)


@inline
def _backfill_choice_pooled(state: State, b: int, choice: int) -> None:
    _backfill_candidate(state, b, choice)
    if state.switches[0].reserve_each_pick:
        _reserve_again(state, b)


_backfill_choice = by_type(_backfill_choice_pooled, cluster_backfill_choice, ClusterState)


@inline
def _reject_pooled(state: State, b: int) -> None:
    state.scalars[b].head = -1
    _end_pass(state, b)


_reject = by_type(_reject_pooled, cluster_reject, ClusterState)


@hot
def apply_choice(state: State, b: int, choice: int) -> None:
    """Answer the decision that `advance` returned.

    Args:
        choice: PICK, BACKFILL: a place in ``candidates[b, :n_candidates]``, or DECLINE. INSPECT: DECLINE
            rejects (the scheduler asks to be woken after `retry_after`), anything else accepts.
    """
    env = state.scalars[b]
    if env.phase == PHASE_PICK:
        if choice == DECLINE:
            _end_pass(state, b)
        else:
            env.head = state.candidates[b, choice]
            env.accepted = 0
            env.phase = PHASE_INSPECT
    elif env.phase == PHASE_INSPECT:
        env.inspections += 1
        if choice == DECLINE:
            env.rejections += 1
            state.jobs[b, env.head].rejects += 1
            env.wake_at = env.now + state.switches[0].retry_after
            _reject(state, b)
        else:
            env.accepted = 1
    elif env.phase == PHASE_BACKFILL:
        if choice == DECLINE:
            _end_pass(state, b)
        else:
            _backfill_choice(state, b, choice)
    else:
        _answer_action(state, b, choice)
