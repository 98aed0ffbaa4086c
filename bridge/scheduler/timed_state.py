"""The state of a scheduler of a cluster that changes in time: `ClusterState`, and what a calendar needs.

A calendar, advance reservations and preemption need to know which node of a counted class a job has, may end
lives early, and let jobs wait again. Kernels are compiled for this type only where a cluster has such things.

Axes beside those of `ClusterState`: N nodes, V events, VN nodes of events, AR advance reservations, LN nodes
of lives that the world has not collected, LI such lives.
"""

from collections import namedtuple
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from bridge.base.arrays import Array, Records
from bridge.scheduler.cluster_state import ClusterFields, ClusterState
from bridge.scheduler.state import State, list_sizes, zeros

#: What a job does: FUTURE (not submitted), WAITING, RUNNING, SUSPENDED, or it is OVER.
FUTURE, WAITING, RUNNING, SUSPENDED, OVER = 0, 1, 2, 3, 4
#: How a life ended: by itself, by a preemption or a failure; the last two let the job wait again.
ENDED, PREEMPTED, NODE_FAILED, PREEMPTED_REQUEUED, FAILED_REQUEUED = 0, 1, 2, 3, 4
#: No end: a time for which a life was suspended.
STOOD = 5
#: What becomes of preempted jobs.
MODE_OFF, MODE_REQUEUE, MODE_CANCEL, MODE_SUSPEND = 0, 1, 2, 3
#: Kinds of events.
NODES_DOWN, NODES_DRAIN, NODES_UP, PARTITION_STATE, LIMIT, CANCEL, HOLD, RELEASE, MOMENT = range(9)
#: States of a partition.
PARTITION_UP, PARTITION_DOWN, PARTITION_CLOSED = 0, 1, 2

#: What the scheduler knows of a job beside `NODE_JOB`. Times are -1 where there is none.
TIMED_JOB = np.dtype(
    [
        ("first_eligible", "i8"),
        ("first_start", "i8"),
        ("stood", "i8"),  # how long this life was suspended
        ("suspended_at", "i8"),
        ("grace_end", "i8"),
        ("grace", "i8"),
        ("exempt", "i8"),
        ("reservation", "i4"),  # its own, or -1
        ("tier", "i4"),
        ("priority", "i4"),  # of its QOS
        ("qos", "i4"),  # row and column of `preempts`
        ("mode", "i4"),  # MODE_*
        ("may_requeue", "i4"),
        ("episode", "i4"),
        ("preemptor", "i4"),  # for whom it is in grace
        ("is_held", "i4"),  # by its user, until a release
        ("doing", "i4"),  # FUTURE, …
        ("outcome", "i4"),  # of its last life
    ],
    align=True,
)
#: An event of the calendar: of nodes ``event_nodes[first:last]``, or of the partition, counter, job `which`.
EVENT = np.dtype(
    [("time", "i8"), ("value", "i8"), ("kind", "i4"), ("which", "i4"), ("first", "i4"), ("last", "i4")],
    align=True,
)
RESERVATION = np.dtype([(name, "i8") for name in ("announced", "begin", "end")])
#: A life that is over, or a time for which it was suspended; its nodes are ``life_nodes[first:last]``. What
#: it did that is ``kept`` is not lost.
LIFE = np.dtype(
    [
        *((name, "i8") for name in ("start", "end", "eligible", "stood", "serial")),
        *((name, "i4") for name in ("job", "episode", "outcome", "first", "last")),
        ("spare", "i4"),
        ("kept", "i8"),
    ],
    align=True,
)
TIMED_SCALARS = np.dtype(
    [
        ("next_event", "i4"),
        ("n_firsts", "i4"),
        ("n_suspended", "i4"),
        ("n_graces", "i4"),
        ("n_lives", "i4"),
        ("n_life_nodes", "i4"),
        ("cut", "i4"),  # running jobs have stopped: their completions are not to come
    ],
    align=True,
)
#: Who preempts whom, and how long a job waits that a failure lets wait again.
TIMED_SWITCHES = np.dtype([(name, "i8") for name in ("by_tier", "by_qos", "requeue_delay", "logs_lives")])


class TimedFields(NamedTuple):
    """What `TimedState` has beside the fields of `ClusterState`."""

    timed_switches: Annotated[Records, TIMED_SWITCHES, 1]
    class_first: Annotated[Array, "i4", "C1"]  # nodes of a class: `first[c]:first[c + 1]` of
    class_nodes: Annotated[Array, "i4", "N"]
    node_class: Annotated[Array, "i4", "N"]
    first_states: Annotated[Array, "i1", "N"]  # 1: no job can start there
    first_partition_states: Annotated[Array, "i1", "P"]
    events: Annotated[Records, EVENT, "B", "V"]
    event_nodes: Annotated[Array, "i4", "VN"]
    reservations: Annotated[Records, RESERVATION, "AR"]
    is_reserved: Annotated[Array, "i1", "AR", "C"]
    preempts: Annotated[Array, "i1", "Y", "Y"]  # by QOS
    inactive_reason: Annotated[Array, "i4", 1]
    # what changes
    timed_scalars: Annotated[Records, TIMED_SCALARS, "B"]
    timed_jobs: Annotated[Records, TIMED_JOB, "B", "L"]
    node_is_out: Annotated[Array, "i1", "B", "N"]
    in_service: Annotated[Array, "i8", "B", "C"]  # nodes of a class that are not out
    partition_states: Annotated[Array, "i1", "B", "P"]
    limits: Annotated[Array, "i8", "B", "GK"]
    held_amounts: Annotated[Array, "i8", "B", "C", "R"]  # of single nodes: what jobs have, whatever its state
    node_holder: Annotated[Array, "i4", "B", "N"]  # of counted classes: the running job, or -1
    entry_node: Annotated[Array, "i4", "B", "E"]  # each node that a job has is an entry of its own
    firsts: Annotated[Array, "i4", "B", "L"]  # jobs that the next pass takes first
    suspended: Annotated[Array, "i4", "B", "L"]  # in the order in which they were suspended
    life_log: Annotated[Records, LIFE, "B", "LI"]
    life_nodes: Annotated[Array, "i4", "B", "LN"]
    life_units: Annotated[Array, "i8", "B", "LN"]
    # scratch
    mark: Annotated[Array, "i8", 1]  # the present number in `barred` and `node_mark`
    barred: Annotated[Array, "i8", "C"]
    node_mark: Annotated[Array, "i8", "N"]
    victims: Annotated[Array, "i4", "L"]


if TYPE_CHECKING:

    class TimedState(ClusterState):
        """Everything that a scheduler of such a cluster knows."""

else:
    _Joined = namedtuple("_Joined", (*State._fields, *ClusterFields._fields, *TimedFields._fields))

    class TimedState(_Joined, ClusterState):
        """Everything that a scheduler of such a cluster knows: three named tuples' fields as one."""


def allocate_timed(
    batch: int, length: int, sizes: Mapping[str, int], *, window: int = 128, users: int = 1
) -> TimedState:
    """Return the empty state of B schedulers of up to L jobs each, on a cluster of these `sizes`."""
    from bridge.scheduler.cluster_state import allocate_cluster

    length = max(length, 1)
    base: Any = allocate_cluster(batch, length, sizes, window=window, users=users)
    own = {"B": batch, **list_sizes(length), **sizes}
    make: Any = TimedState
    state: TimedState = make(*base, *zeros(TimedFields, own))
    return state
