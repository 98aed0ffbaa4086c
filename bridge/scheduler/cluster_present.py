"""The present of a cluster: some jobs run on nodes of their own since earlier, others wait."""

from bridge.base.arrays import Array
from bridge.base.jit import by_type, inline, inner, kernel
from bridge.scheduler import core
from bridge.scheduler.cluster_state import ClusterState
from bridge.scheduler.eligibility import count_start
from bridge.scheduler.placement import allocate_chosen
from bridge.scheduler.running_jobs import add_running
from bridge.scheduler.timed_nodes import hold_entry
from bridge.scheduler.timed_state import SUSPENDED, TimedState


@inline
def _stand_anywhere(_state: ClusterState, _b: int, _j: int, _nodes: Array, _last: int) -> None:
    pass


@inner
def _stand_on(state: TimedState, b: int, j: int, nodes: Array, last: int) -> None:
    """Let the entries of job `j` be of its own nodes; `last`: behind them in `nodes`, in their order."""
    entry = state.node_jobs[b, j].allocation
    while entry >= 0:
        if state.classes[state.entry_class[b, entry]].counted:
            state.node_holder[b, state.entry_node[b, entry]] = -1
        entry = state.entry_next[b, entry]
    entry, k = state.node_jobs[b, j].allocation, last
    while entry >= 0:  # the last comes first
        k -= 1
        if state.classes[state.entry_class[b, entry]].counted:
            state.entry_node[b, entry] = nodes[k]
            state.node_holder[b, nodes[k]] = j
        entry = state.entry_next[b, entry]


#: Where nodes of a class are told apart: let running job `j` have those that it has.
_place_on = by_type(_stand_anywhere, _stand_on, TimedState)


@inline
def _never(_state: ClusterState, _b: int, _j: int, _since: int) -> None:
    pass


@inner
def _stand_still(state: TimedState, b: int, j: int, since: int) -> None:
    more, of = state.timed_scalars[b], state.timed_jobs[b, j]
    entry = state.node_jobs[b, j].allocation
    while entry >= 0:
        hold_entry(state, b, j, entry, -1, 1)
        entry = state.entry_next[b, entry]
    of.doing = SUSPENDED
    of.suspended_at = since
    state.suspended[b, more.n_suspended] = j
    more.n_suspended += 1


#: Let job `j`, which has nodes and does not count as running, be suspended since a time.
_suspend_since = by_type(_never, _stand_still, TimedState)


@kernel
def load_present(
    state: ClusterState,
    start: Array,
    first: Array,
    classes: Array,
    units: Array,
    first_node: Array,
    nodes: Array,
    suspended: Array,
    n_jobs: int,
    now: int,
) -> None:
    """Let the first jobs of scheduler 0 run, and the others wait since their submissions.

    Args:
        state: none of its jobs is submitted.
        start: [n] when each of the first n jobs has started, in any order.
        first: [n + 1] what job j has are `classes` and `units` from ``first[j]`` to ``first[j + 1]``: of a
            counted class nodes, else demands of the job.
        classes, units: see `first`.
        first_node: [n + 1] the nodes of job j are `nodes` from ``first_node[j]`` on, by `classes`.
        nodes: see `first_node`.
        suspended: [n] since when each is suspended, in ascending order of these; -1: it runs.
        n_jobs: the jobs that run or wait.
        now: microseconds.
    """
    env = state.scalars[0]
    n_running = start.shape[0]
    for j in range(n_running):
        n = first[j + 1] - first[j]
        for k in range(n):
            state.chosen_classes[k] = classes[first[j] + k]
            state.chosen_units[k] = units[first[j] + k]
        job = state.jobs[0, j]
        job.start = start[j]
        job.est_end = job.start + job.est_run
        job.serial = env.serial
        env.serial += 1
        allocate_chosen(state, 0, j, n)
        _place_on(state, 0, j, nodes, first_node[j + 1])
        count_start(state, 0, j)
        if suspended[j] < 0:
            add_running(state, 0, j)
        else:
            _suspend_since(state, 0, j, suspended[j])
    for j in range(n_running, n_jobs):
        env.now = max(env.now, state.jobs[0, j].submit)
        core.submit(state, 0, j)
    env.now = now
