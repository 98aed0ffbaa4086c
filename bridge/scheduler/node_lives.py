"""What a rule of action adds to the lives of jobs on the nodes of a cluster; without one, each hook is empty.

How a life begins and ends there is the cluster's, see `bridge.scheduler.calendar`; what it has brought, what
its next one costs, and what is believed of that are the same as on the pool, see `bridge.scheduler.lives`.
"""

from bridge.base.jit import by_type, inline, inner
from bridge.scheduler.acting_state import ActingNodes
from bridge.scheduler.action_state import COMPLETED, PREEMPTED, SPECULATES, VISITS, WAITS
from bridge.scheduler.cluster_state import ClusterState
from bridge.scheduler.hosts import let_hosts_return, log_last_suspension
from bridge.scheduler.lives import believe_rest, lift_limit, note_beliefs, settle_life
from bridge.scheduler.running_jobs import remove_running
from bridge.scheduler.service import attained_service
from bridge.scheduler.starts import forget_start
from bridge.scheduler.state import State
from bridge.scheduler.stood_log import write_stood
from bridge.scheduler.timed_state import TimedState


@inline
def _nothing(_state: ClusterState, _b: int, _j: int) -> None:
    pass


#: Job `j` is submitted: keep what is believed of a whole run of it.
note_submission = by_type(_nothing, note_beliefs, ActingNodes)
#: Job `j` comes to its lane: let what is believed of it be what is left of it.
expect = by_type(_nothing, believe_rest, ActingNodes)


@inline
def _nothing_ends(_state: ClusterState, _b: int, _j: int, _ended: int) -> None:
    pass


@inner
def _settle(state: ActingNodes, b: int, j: int, ended: int) -> None:
    acts, job, life, now = state.acts[b], state.jobs[b, j], state.lives[b, j], state.scalars[b].now
    lasted = now - job.start
    if life.suspended > 0 and life.works_from > now:  # it was not back from its guest yet
        life.suspended -= life.works_from - now
        life.lost -= life.works_from - now
    acts.stood = min(life.overhead, lasted) + life.suspended
    acts.kept = attained_service(state, b, j) - life.progress if ended == PREEMPTED else 0
    lift_limit(state, b, j)
    if life.overhead > 0:
        write_stood(state, b, j, job.start, job.start + min(life.overhead, lasted))
    log_last_suspension(state, b, j)
    settle_life(state, b, j, ended)
    if ended != COMPLETED:
        forget_start(state, b, j)


#: The life of job `j` ends now (as a code of `bridge.scheduler.action_state` says): count what it brought.
settle = by_type(_nothing_ends, _settle, ActingNodes)


@inline
def _leave_running(state: State, b: int, j: int) -> None:
    remove_running(state, b, j)


@inline
def _leave_nodes(state: ActingNodes, b: int, j: int) -> None:
    if state.lives[b, j].does == VISITS:
        let_hosts_return(state, b, j)
    elif state.lives[b, j].does != SPECULATES:
        remove_running(state, b, j)


#: Job `j` runs no more; whoever speculates or is a guest counts as one that does not run.
leave_running = by_type(_leave_running, _leave_nodes, ActingNodes)


@inline
def _rest(state: ActingNodes, b: int, j: int) -> None:
    state.lives[b, j].does = WAITS


#: Job `j` has left its nodes.
rest = by_type(_nothing, _rest, ActingNodes)


@inline
def _zero(_state: TimedState, _b: int) -> int:
    return 0


@inline
def _stood_of_rule(state: ActingNodes, b: int) -> int:
    return int(state.acts[b].stood)


@inline
def _kept_of_rule(state: ActingNodes, b: int) -> int:
    return int(state.acts[b].kept)


#: How long the life that was settled last did not work by the rule, and what it did that is kept.
stood_by_rule = by_type(_zero, _stood_of_rule, ActingNodes)
kept_by_rule = by_type(_zero, _kept_of_rule, ActingNodes)
