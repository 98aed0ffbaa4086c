"""The state of a scheduler that places jobs on nodes of a cluster: `State`, and what nodes and rules need.

Axes beside those of `bridge.scheduler.state`: C classes of nodes, R amounts of a node (cores, memory, …),
P partitions, G lanes, K counters, Q quantities of a job that counters count.

A *class* is either counted, many equal nodes that only whole-node jobs reach, whose free amount is the number
of free nodes; or a single node with its free amounts. A *lane* holds the waiting jobs of one partition to
which the same counters apply, in queue order, so that a head or an exhausted limit puts all of them aside at
once. A *shape* is a demand with its admissible classes; jobs with the same demand have the same shape.
"""

from collections import namedtuple
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from bridge.base.arrays import Array, Bundle, Records
from bridge.scheduler.state import State, list_sizes, zeros

#: An amount of a node that nobody counts.
UNCOUNTED = 1 << 50
#: In a shape's vector: all that the node has of it.
ALL_OF_IT = -1
#: Keys by which `select` walks the admissible classes. The first two are the order of the set itself.
BY_SET, BEST_FIT, LEAST_LOADED = 0, 1, 2

#: A class of nodes. `lowest`: the lowest index of its nodes, by which classes are numbered.
CLASS = np.dtype(
    [
        ("counted", "i4"),
        ("first_partition", "i4"),  # of `class_partitions`
        ("last_partition", "i4"),
        ("first_entry", "i4"),
    ],
    align=True,
)
#: A demand. Of `nodes` nodes (0: as many as its tasks need) and `tasks` tasks (0: one vector a node).
SHAPE = np.dtype(
    [
        ("first", "i8"),  # its admissible classes in packing order: of `set_classes`
        ("last", "i8"),
        ("room", "i8"),  # cores that it takes at least
        ("nodes", "i8"),
        ("tasks", "i8"),
        ("most_tasks", "i8"),  # on one node
        ("admits", "i4"),  # row of `admits`
        ("whole", "i4"),  # takes whole empty nodes
    ],
    align=True,
)
#: What the scheduler knows of a job beside `JOB`.
NODE_JOB = np.dtype(
    [
        ("begin", "i8"),  # not before; NEVER: never
        ("head_at", "i8"),  # since when it was its partition's head first, or -1
        ("never_at", "i8"),  # since when its conditions cannot be met any more, or -1
        ("shape_number", "i4"),
        ("lane", "i4"),
        ("held", "i4"),  # one of HELD_*
        ("for_ever", "i4"),  # 1 + the number of the reason for which it never starts, or 0
        ("refuse", "i4"),  # likewise, but it is refused when submitted
        ("block", "i4"),  # where it waits
        ("allocation", "i4"),  # the first of its entries in the pool, or -1
        ("first_condition", "i4"),  # of `conditions`
        ("last_condition", "i4"),
        ("first_child", "i4"),  # of `children`
        ("last_child", "i4"),
        ("any_is_enough", "i4"),
        ("group", "i4"),  # jobs of one user and name, of which a singleton is one; -1: of no such group
        ("is_singleton", "i4"),
        ("succeeds", "i4"),  # its end is a success, for afterok
        ("account", "i4"),  # places among the accounts and QOS that jobs have; -1: none
        ("qos", "i4"),
        ("gone", "i4"),  # it left without having run: GONE_*
    ],
    align=True,
)
#: Why a job is not in its lane: it is not submitted, or is there (NOT_HELD); it waits for a time, for other
#: jobs, or for ever.
NOT_HELD, HELD_UNTIL, HELD_BY_JOBS, HELD_FOR_EVER = 0, 1, 2, 3
NOT_GONE, GONE_REFUSED, GONE_CANCELLED = 0, 1, 2
#: One condition on another job, `parent` (-1: unknown), `delay` µs after its start; conditions of one `part`
#: are met together.
CONDITION = np.dtype([("delay", "i8"), ("parent", "i4"), ("kind", "i4"), ("part", "i4")], align=True)
AFTER, AFTER_ANY, AFTER_OK, AFTER_NOT_OK, SINGLETON = 0, 1, 2, 3, 4
#: A lane's own: its partition, and its counters (`counted`).
LANE = np.dtype([("partition", "i4"), ("first", "i4"), ("last", "i4"), ("is_down", "i4")], align=True)
#: A counter that a lane's jobs change by their quantity while they run, or from submission on.
COUNTED = np.dtype(
    [
        ("counter", "i4"),
        ("quantity", "i4"),
        ("kind", "i4"),  # COUNT_*
        ("tested", "i4"),
        ("reason", "i4"),
        ("limit", "i8"),
    ],
    align=True,
)
COUNT_RUNNING, COUNT_TIME, COUNT_SUBMITTED = 0, 1, 2
#: Amounts x time are counted in milliseconds: years of a large machine fit int64.
TIME_UNIT = 1_000
#: A lane of one scheduler: its first and last block, its jobs, where the pass is in it.
LANE_STATE = np.dtype(
    [
        ("head", "i4"),
        ("tail", "i4"),
        ("n", "i4"),
        ("place", "i4"),  # in `active`
        ("cursor", "i4"),  # the next job that the pass looks at, or -1
        ("tie", "i8"),  # of that one, as its record has them
        ("score", "f8"),
    ],
    align=True,
)
#: A partition's head slot. `n`: entries of what is reserved for it, in `head_classes` and `head_units`; -1:
#: an agent has rejected the job, and the partition is put aside for the rest of the pass.
HEAD = np.dtype(
    [
        ("shadow", "i8"),
        ("until", "i8"),
        ("job", "i4"),
        ("n", "i4"),
    ],
    align=True,
)
#: A time at which a job may become eligible.
TIMER = np.dtype([("time", "i8"), ("job", "i8")], align=True)
#: A step of the profile of conservative backfilling: holes may begin there if it is a candidate.
STEP = np.dtype([("time", "i8"), ("next", "i4"), ("is_candidate", "i4")], align=True)
#: Demands of a shape, of this length at least, have no hole before a time, as was found in a pass.
HOLE = np.dtype([("look", "i8"), ("length", "i8"), ("time", "i8")])
#: One scheduler's further scalars.
NODE_SCALARS = np.dtype(
    [
        ("n_active", "i4"),
        ("n_free_blocks", "i4"),
        ("n_heads", "i4"),
        ("n_reserved", "i4"),  # heads whose reservations are computed
        ("n_timers", "i4"),
        ("n_released", "i4"),  # jobs that became eligible since the last pass
        ("n_live", "i4"),  # lanes that phase 1 still looks at
        ("free_entry", "i4"),  # the allocations' pool: the first free entry
        ("n_log", "i4"),
        ("n_held", "i4"),
        ("n_steps", "i4"),  # of the profile of conservative backfilling
        ("overflow", "i4"),  # it would have had more than there is memory for
        ("inspected", "i4"),
        ("is_phase_two", "i4"),
        ("n_caps", "i4"),
        ("next_locked", "i4"),  # partitions whose locked heads this pass has looked at
        ("n_profile", "i4"),  # steps of the profile of this pass; 0: there is none
        ("profile_place", "i4"),  # the running job that its next step releases
        ("first_fit", "i4"),  # of `set_classes`: the first that held something of the demand looked at last
        ("profile_late", "i4"),  # jobs past their estimates are not released yet
        ("may_fit_later", "i4"),  # a job that is no candidate may be one when others have started
        ("spare", "i4"),
        ("releases", "i8"),  # how often amounts were given back
        ("changes", "i8"),  # how many changes of free amounts `changed` has noted, the newest of which it has
        ("pass_number", "i8"),
        ("live_serial", "i8"),  # how many jobs had started when `live` was listed
        ("blocked_since", "i8"),  # 1 + `releases` since when no waiting job fits, see `keeps_blocked`; or 0
        ("closed_until", "i8"),  # no pass before, where a start takes time
    ],
    align=True,
)
#: What is kept of a shape: `n` nodes hold it, as things were after so many `changes`.
FIT = np.dtype([("of_shape", "i8"), ("changes", "i8"), ("n", "i8")], align=True)
#: `all_counted`: no node is shared, so that free nodes by class are all that there is. `keeps_fits`: which
#: classes hold a shape is kept, see `bridge.scheduler.fitting`.
NODE_SWITCHES = np.dtype(
    [("key", "i4"), ("all_counted", "i4"), ("kills_invalid", "i4"), ("keeps_fits", "i4")], align=True
)


class ClusterFields(NamedTuple):
    """What `ClusterState` has beside the fields of `State`."""

    node_switches: Annotated[Records, NODE_SWITCHES, 1]
    # the cluster
    classes: Annotated[Records, CLASS, "C"]
    node_amounts: Annotated[Array, "i8", "C", "R"]  # of one node of the class, empty
    class_capacity: Annotated[Array, "i8", "C", "R"]  # free at first: nodes (first column), or amounts
    class_partitions: Annotated[Array, "i4", "CP"]
    partition_first: Annotated[Array, "i4", "P1"]  # a partition's classes: `first[p]:first[p + 1]` of
    partition_classes: Annotated[Array, "i4", "PC"]
    class_place: Annotated[Array, "i4", "C"]  # of a class in the packing order of all; and who has a place
    class_at: Annotated[Array, "i4", "C"]
    shapes: Annotated[Records, SHAPE, "S"]
    vectors: Annotated[Array, "i8", "S", "R"]  # amounts of one node, or one task
    set_classes: Annotated[Array, "i4", "SC"]
    admits: Annotated[Array, "i1", "A", "C"]
    lanes: Annotated[Records, LANE, "G"]
    counted: Annotated[Records, COUNTED, "GK"]
    lane_least: Annotated[Array, "i8", "G", "Q"]  # lower bounds of its jobs' quantities
    admissible_share: Annotated[Array, "f8", "S"]  # share of the nodes that may take a shape
    largest_node: Annotated[
        Array, "i8", "R"
    ]  # the most that a node has; UNCOUNTED: of some it is not counted
    partition_cores: Annotated[Array, "i8", "P"]  # of all nodes that are up
    qos_priority: Annotated[Array, "f8", "QO"]  # of the highest, 0 ... 1
    # the jobs
    node_jobs: Annotated[Records, NODE_JOB, "B", "L"]
    quantity: Annotated[Array, "i8", "B", "L", "Q"]
    conditions: Annotated[Records, CONDITION, "B", "CO"]
    children: Annotated[Array, "i4", "B", "CH"]
    group_first: Annotated[Array, "i4", "B", "GR1"]  # members of a group, in order of submission
    group_members: Annotated[Array, "i4", "B", "GM"]
    group_running: Annotated[Array, "i4", "B", "GR"]
    group_pending: Annotated[Array, "i4", "B", "GR"]  # place of the first member that may still run or wait
    # what changes
    node_scalars: Annotated[Records, NODE_SCALARS, "B"]
    free_node: Annotated[Array, "i8", "B", "C", "R"]
    room: Annotated[Array, "i8", "B", "P"]  # free cores of a partition
    struck: Annotated[Array, "i8", "B", "C"]  # the pass in which a blocked job struck the class out
    lane_states: Annotated[Records, LANE_STATE, "B", "G"]
    active: Annotated[Array, "i4", "B", "G"]  # lanes with jobs
    live: Annotated[Array, "i4", "B", "G"]
    next_block: Annotated[Array, "i4", "B", "NB"]
    previous_block: Annotated[Array, "i4", "B", "NB"]
    heads: Annotated[Records, HEAD, "B", "P"]
    head_order: Annotated[Array, "i4", "B", "P"]  # partitions in the order in which they got a head
    head_classes: Annotated[Array, "i4", "B", "P", "C"]
    head_units: Annotated[Array, "i8", "B", "P", "C"]
    head_extra: Annotated[Array, "i8", "B", "P", "C", "R"]
    locked: Annotated[Array, "i4", "B", "P"]  # heads that stay heads until they start, or -1
    held_jobs: Annotated[Array, "i8", "B", 4]  # how many wait for a time, for jobs, for ever: by HELD_*
    caps: Annotated[Array, "i4", "B", "P"]  # heads whose extra amounts bound what a job may take
    counter_used: Annotated[Array, "i8", "B", "K"]
    timers: Annotated[Records, TIMER, "B", "T"]
    no_fit: Annotated[Array, "i8", "B", "S"]  # `releases` at which a shape did not fit what was free
    fits: Annotated[Records, FIT, "B", "F"]
    fit_bits: Annotated[Array, "i8", "B", "F", "FW"]  # 32 a word, by a class's place
    changed: Annotated[Array, "i4", "B", "CL"]  # classes whose free amounts have changed: a ring
    changed_nodes: Annotated[Array, "i4", "B", "CL"]  # of a counted one: by how many nodes
    entry_class: Annotated[Array, "i4", "B", "E"]  # the pool of allocations: sparse lists of class and units
    entry_units: Annotated[Array, "i8", "B", "E"]
    entry_next: Annotated[Array, "i4", "B", "E"]
    log_class: Annotated[Array, "i4", "B", "LG"]  # allocations that the world has not collected
    log_units: Annotated[Array, "i8", "B", "LG"]
    log_job: Annotated[Array, "i4", "B", "LG"]
    # scratch
    chosen_classes: Annotated[Array, "i4", "C1"]  # what `select` chose
    chosen_units: Annotated[Array, "i8", "C1"]
    work_free: Annotated[Array, "i8", "C", "R"]
    profile_time: Annotated[Array, "i8", "PT"]  # free nodes by class from a time on, by believed ends
    profile_nodes: Annotated[Array, "i8", "PT", "C"]
    reserved_nodes: Annotated[Array, "i8", "C"]  # what heads have of them at a time
    steps: Annotated[Records, STEP, "ST"]
    step_free: Annotated[Array, "i8", "ST", "C", "R"]
    holes: Annotated[Records, HOLE, "S"]
    class_keys: Annotated[Array, "i8", "C", 3]
    class_order: Annotated[Array, "i4", "C1"]
    of_partition: Annotated[Array, "i8", "P"]  # what features read, by partition or account
    of_account: Annotated[Array, "i8", "AC"]


if TYPE_CHECKING:

    class ClusterState(State):
        """Everything a scheduler of a cluster knows: the fields of `State`, and those of `ClusterFields`."""

        def __getattr__(self, name: str) -> Any: ...

else:

    class ClusterState(Bundle, namedtuple("_Joined", (*State._fields, *ClusterFields._fields))):
        """Everything a scheduler of a cluster knows: the fields of `State`, and those of `ClusterFields`."""

        #: A quarter of the time to compile, an agent's a tenth; replays are 0.94 to 1.03 times as fast.
        large = True


def allocate_cluster(
    batch: int, length: int, sizes: Mapping[str, int], *, window: int = 128, users: int = 1
) -> ClusterState:
    """Return the empty state of B schedulers of up to L jobs each, on a cluster of these `sizes`."""
    length = max(length, 1)
    own = {"B": batch, **list_sizes(length)}
    own["NB"] += min(sizes["G"], length)  # a lane with few jobs has a block of its own
    pooled = own | {"R": 1, "W": window, "U": users, "P": 8}  # P is the profile's length here
    make: Any = ClusterState
    state: ClusterState = make(*zeros(State, pooled), *zeros(ClusterFields, {**own, **sizes}))
    state.share[:] = 1.0
    return state
