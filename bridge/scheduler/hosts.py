"""Jobs that lend their nodes to a guest: who may, which goes first, and how they are suspended and go on."""

from bridge.base.jit import by_type, inline, inner
from bridge.scheduler.acting_state import ActingNodes
from bridge.scheduler.action_state import RUNS, SUSPENDED, ActionState
from bridge.scheduler.actions import SUSPENDABLE
from bridge.scheduler.running_jobs import add_running, first_place, job_at, next_place, remove_running
from bridge.scheduler.service import attained_service
from bridge.scheduler.starts import note_start
from bridge.scheduler.stood_log import write_stood

#: A host has worked so many times as long as it was suspended, the coming guest included.
HOST_FACTOR = 4


@inline
def _may_lend(_state: ActionState, _b: int, _j: int) -> bool:
    return True


@inline
def _is_in_no_grace(state: ActingNodes, b: int, j: int) -> bool:
    return bool(state.timed_jobs[b, j].grace_end < 0)


_is_to_stay = by_type(_may_lend, _is_in_no_grace, ActingNodes)


@inner
def list_hosts(state: ActionState, b: int) -> int:
    """List the running jobs that may be suspended now, by believed end; return how many."""
    now, limit = state.scalars[b].now, state.action[0].limit
    n = 0
    place = first_place(state, b)
    while job_at(state, b, place) >= 0:
        j = job_at(state, b, place)
        life = state.lives[b, j]
        returned = life.does == RUNS and now >= life.works_from and life.permits & SUSPENDABLE
        needed = HOST_FACTOR * (life.suspended + limit)
        if returned and attained_service(state, b, j) >= needed and _is_to_stay(state, b, j):
            state.victims[n] = j
            n += 1
        place = next_place(state.run_job[b], place)
    return n


@inline
def is_smaller(state: ActionState, b: int, j: int, other: int) -> bool:
    """Tell whether host `j` goes before another one where one suffices; of equal ones the first submitted."""
    nodes, others = state.demand[b, j, 0], state.demand[b, other, 0]
    return bool(nodes < others or (nodes == others and j < other))


@inline
def is_larger(state: ActionState, b: int, j: int, other: int) -> bool:
    """Tell whether host `j` goes before another one where several are needed."""
    nodes, others = state.demand[b, j, 0], state.demand[b, other, 0]
    return bool(nodes > others or (nodes == others and j < other))


@inline
def host_cost(state: ActionState, b: int, j: int) -> int:
    """Return how long job `j` needs until it works again behind its guest."""
    return int(state.action[0].host + state.lives[b, j].host_more)


@inline
def _never_in_grace(_state: ActionState, _b: int, _j: int, end: int) -> int:
    return end


@inline
def _within_grace(state: ActingNodes, b: int, j: int, end: int) -> int:
    grace_end = state.timed_jobs[b, j].grace_end
    return int(end if grace_end < 0 else min(end, grace_end))


_bounded = by_type(_never_in_grace, _within_grace, ActingNodes)


@inline
def _move_end(state: ActionState, b: int, j: int, later: int) -> None:
    """Let running job `j` be believed to end so much later than without a guest."""
    env, job = state.scalars[b], state.jobs[b, j]
    remove_running(state, b, j)
    job.est_end = _bounded(state, b, j, job.start + job.est_run + state.lives[b, j].suspended + later)
    job.serial = env.serial  # as among equal ends it is the last
    env.serial += 1
    add_running(state, b, j)


@inline
def note_stop(state: ActionState, b: int, j: int) -> None:
    """Let the world know that job `j` does not go on."""
    acts = state.acts[b]
    state.stopped[b, acts.n_stopped] = j
    acts.n_stopped += 1


@inline
def _note_cut(state: ActingNodes, b: int, _j: int) -> None:
    state.timed_scalars[b].cut = 1


_note_suspension = by_type(note_stop, _note_cut, ActingNodes)


@inline
def _logs_nothing(_state: ActionState, _b: int, _j: int) -> None:
    pass


@inner
def _log_last(state: ActingNodes, b: int, j: int) -> None:
    life = state.lives[b, j]
    if life.suspended > 0:
        write_stood(state, b, j, life.suspended_at, min(life.works_from, state.scalars[b].now))


#: Job `j` is suspended again, or its life ends: what its last suspension took is over.
log_last_suspension = by_type(_logs_nothing, _log_last, ActingNodes)


@inner
def suspend_hosts(state: ActionState, b: int, guest: int, n: int) -> None:
    """Let running jobs ``chosen[:n]`` stand for a guest."""
    env, rules = state.scalars[b], state.action[0]
    for k in range(n):
        h = state.chosen[k]
        host = state.lives[b, h]
        log_last_suspension(state, b, h)
        host.does = SUSPENDED
        host.guest = guest
        host.suspended_at = env.now
        host.suspensions += 1
        _move_end(state, b, h, rules.limit + host_cost(state, b, h))
        _note_suspension(state, b, h)


@inner
def let_hosts_return(state: ActionState, b: int, guest: int) -> None:
    """The guest has gone: its hosts go on after a while."""
    env, n = state.scalars[b], 0
    place = first_place(state, b)
    while job_at(state, b, place) >= 0:
        if state.lives[b, job_at(state, b, place)].guest == guest:
            state.chosen[n] = job_at(state, b, place)
            n += 1
        place = next_place(state.run_job[b], place)
    for k in range(n):
        h = state.chosen[k]
        host = state.lives[b, h]
        cost = host_cost(state, b, h)
        host.suspended += env.now - host.suspended_at + cost
        host.lost += cost
        host.works_from = env.now + cost
        host.guest = -1
        host.does = RUNS
        _move_end(state, b, h, 0)
        note_start(state, b, h)
