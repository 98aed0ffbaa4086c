"""The scheduler's state: records and plain arrays with a leading batch axis, nothing else.

Axes: B independent schedulers (episodes, or one replay), L jobs each, R resources, ``nodes`` first.
Times are int64 microseconds (`spec: standard protocol`, clock); only orders see seconds, as floats.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, NamedTuple, TypeVar, get_type_hints

import numpy as np

from bridge.base.arrays import Array, Bundle, Records

#: Ticks of the clock in a second.
SECOND = 1_000_000
#: Jobs per block of the waiting queue.
BLOCK = 64
#: Places per block of the running jobs, the last for its link: so many that most machines need one block.
RUN_BLOCK = 256
MOST_IN_BLOCK = RUN_BLOCK - 1
#: What stands behind the running jobs, see `bridge.scheduler.running_jobs`.
LAST_BLOCK = -(1 << 31)
#: Size classes of a block's summary: class of n is its bit length, the last class is open.
CLASSES = 20
#: Deepest stack of an order's program.
STACK = 16
#: Most variables of the machine and the pass that one feature can read, see `bridge.scheduler.score`.
VIEWS = 16

T = TypeVar("T")

#: One job. `submit`…`end` are microseconds; -1 = not yet.
JOB = np.dtype(
    [
        ("submit", "i8"),
        ("run", "i8"),  # what the world will do; the scheduler never reads it
        ("est_wait", "i8"),  # believed length while it waits (head and candidates)
        ("est_run", "i8"),  # believed length while it runs
        ("start", "i8"),
        ("end", "i8"),
        ("est_end", "i8"),  # start + est_run
        ("reserved", "i8"),  # the first shadow time it was given as blocked head
        ("promise", "i8"),  # its planned start while it waits, see `bridge.scheduler.promises`; -1: none yet
        ("id", "i8"),  # the log's id
        ("serial", "i8"),  # its place among jobs that end together
        ("tie", "i8"),  # breaks equal scores before the submission order does; lower first
        ("t", "f8"),  # believed length that orders see, seconds
        ("s", "f8"),  # submit time that orders see, seconds
        ("n", "f8"),  # nodes
        ("p", "f8"),  # partition's share, for multifactor orders
        (
            "score",
            "f8",
        ),  # higher first; of a growing order an upper bound, see `bridge.scheduler.growing_scores`
        ("alt", "f8"),  # score among backfill candidates, if they have an order of their own
        ("past", "i4"),  # the blocked head it overtook, or -1
        ("user", "i4"),  # dense user number
        ("rejects", "i4"),
        ("slot", "i2"),  # its place in ``hole_bounds``
        ("how", "i1"),  # one of HOW_*
        ("size_class", "i1"),
    ],
    align=True,
)

HOW_WAITING, STARTED_AS_HEAD, HOW_BACKFILLED = 0, 1, 2

#: One scheduler's scalars.
SCALARS = np.dtype(
    [
        ("now", "i8"),
        ("shadow", "i8"),  # reservation of the blocked head, valid while `head` >= 0 is blocked
        ("serial", "i8"),  # the next start's
        ("wake_at", "i8"),  # the one pending wake-up, or NEVER
        ("used_total", "f8"),  # node-seconds of finished jobs
        ("phase", "i4"),
        ("head", "i4"),  # job that the pass (or a lock) is about, or -1
        ("accepted", "i4"),  # the inspector let this head pass
        ("n_waiting", "i4"),
        ("n_running", "i4"),
        ("n_blocks", "i4"),
        ("n_run_blocks", "i4"),
        ("first_running", "i4"),  # the place of the running job that ends first
        ("n_started", "i4"),  # starts of this pass that the world has not collected
        ("n_candidates", "i4"),
        ("renumbered", "i4"),  # serials of running jobs have changed
        ("bad_score", "i4"),  # job whose score is not a number, or -1
        ("is_sorted", "i4"),  # the queue is in order for this pass
        ("foreseen", "i8"),  # until when the waiting jobs' bounds of growing scores hold,
        ("ahead", "i8"),  # how long that was when they were computed,
        ("n_scored", "i4"),  # and how many scores were computed since
        ("is_reserved", "i4"),  # shadow and extra hold for `head`
        ("work", "i8"),  # booking steps until the kernel must return to Python; 0 = no limit
        ("booked", "i4"),  # conservative backfilling: jobs booked so far in this pass,
        ("last_bookable", "i4"),  # the last that could still start now,
        ("profile_steps", "i4"),  # the profile's length,
        ("n_picks", "i4"),  # and jobs that will start
        ("in_order", "i4"),  # the profile's times ascend
        ("keeps", "i4"),  # whether bookings are kept for the next pass: how many are,
        ("n_kept", "i4"),  # see `bridge.scheduler.bookings`,
        ("n_base", "i4"),  # the steps of what was free without them,
        ("kept_at", "i8"),  # and the time of the pass
        ("look", "i8"),  # the number of this pass of conservative backfilling
        ("inspections", "i8"),
        ("rejections", "i8"),
    ],
    align=True,
)

#: The switches of a protocol and of one configuration, see `bridge.scheduler.protocol`.
_SWITCHES = (
    *("per_event", "arrivals_first", "persistent_sort", "truncate_wait", "head_locked", "head_first"),
    *("reserve_once", "extra_nodes", "strict", "skip_next", "own_candidate_order", "scored_outside"),
    *("lone_by_easy", "reserve_each_pick", "free_tail", "start_gap", "one_machine"),
    *("clamp_overrun", "resort_running", "backfill", "dynamic_order", "growing_order", "uses_fairshare"),
    *("agent_pick", "agent_inspect", "agent_backfill", "guard", "max_rejects", "retry_after", "keep_above"),
)
SWITCHES = np.dtype([(name, "i8") for name in _SWITCHES])

#: A kept booking, in queue order: from when on, NEVER = there is none; how long; whose; its slot.
KEPT = np.dtype([("time", "i8"), ("length", "i8"), ("job", "i4"), ("slot", "i4")], align=True)
#: Jobs of a shape have no hole before a time, as was found in a pass.
NO_HOLE = np.dtype([(name, "i8") for name in ("look", "nodes", "length", "until")])
#: Places for shapes; those that share one forget each other.
SHAPES = 256

#: One instruction of an order's program.
INSTRUCTION = np.dtype([("op", "i4"), ("arg", "i4"), ("value", "f8")], align=True)

NEVER = np.iinfo(np.int64).max
#: Bookings end here at the latest, however many long ones follow each other; lengths are shorter than this,
#: so that a sum of the two fits int64.
LATEST = 1 << 62


class _Arrays(NamedTuple):
    switches: Annotated[Records, SWITCHES, 1]
    program: Annotated[Records, INSTRUCTION, 1]  # the order; a policy's own replaces it, any length
    alt_program: Annotated[Records, INSTRUCTION, 1]  # the order among backfill candidates, likewise
    capacity: Annotated[Array, "i8", "R"]
    constants: Annotated[Array, "f8", 3]  # longest t, nodes, (spare)
    scalars: Annotated[Records, SCALARS, "B"]
    jobs: Annotated[Records, JOB, "B", "L"]
    demand: Annotated[Array, "i8", "B", "L", "R"]
    free: Annotated[Array, "i8", "B", "R"]
    extra: Annotated[Array, "i8", "B", "R"]  # extra amounts at the shadow time
    blocks: Annotated[Array, "i4", "B", "NB"]  # the waiting queue: block numbers in queue order
    items: Annotated[Array, "i4", "B", "NB", BLOCK]  # job indices
    size: Annotated[Array, "i4", "B", "NB"]  # jobs in each block
    min_nodes: Annotated[Array, "i8", "B", "NB"]  # lower bound of the nodes asked for in a block
    min_estimate: Annotated[Array, "i8", "B", "NB", CLASSES]  # that of est_wait among jobs up to a size class
    score_bound: Annotated[
        Array, "f8", "B", "NB"
    ]  # of a growing order: an upper bound of the scores in a block
    run_blocks: Annotated[Array, "i4", "B", "NR"]  # the running jobs: block numbers in order of believed end
    run_size: Annotated[Array, "i4", "B", "NR"]  # jobs in each block, where there are several
    run_end: Annotated[Array, "i8", "B", "RP"]  # believed ends, ascending in each block
    run_job: Annotated[Array, "i4", "B", "RP"]  # job indices
    started: Annotated[Array, "i4", "B", "L"]  # jobs started and not yet collected by the world
    candidates: Annotated[Array, "i4", "B", "W"]  # what an agent may choose from
    usage: Annotated[Array, "f8", "B", "U"]  # node-seconds per user
    share: Annotated[Array, "f8", "U"]  # each user's assigned share
    stack: Annotated[Array, "f8", STACK + VIEWS, "L"]  # scratch of programs; what features read
    scratch: Annotated[Array, "i4", 4, "L"]  # permutations, picks
    amounts: Annotated[Array, "i8", "R"]  # scratch: free amounts while scanning
    p_time: Annotated[Array, "i8", "P"]  # availability profile: times
    p_free: Annotated[Array, "i8", "R", "P"]  # free amounts from that time on
    kept: Annotated[Records, KEPT, "L"]  # bookings kept for the next pass; of a scheduler that is alone
    previous_time: Annotated[Array, "i8", "P"]  # the profile without bookings at the last pass: times
    was_free: Annotated[Array, "i8", "R", "P"]  # free amounts
    scratch_time: Annotated[Array, "i8", "P"]  # scratch: another profile
    spare_free: Annotated[Array, "i8", "R", "P"]
    hole_bounds: Annotated[Records, NO_HOLE, SHAPES]
    pass_count: Annotated[Array, "i8", 1]  # passes of conservative backfilling so far, of all schedulers


class State(Bundle, _Arrays):
    """Everything a scheduler knows. All arrays, above with type and axes; kernels change them in place."""


def zeros(kind: type[T], sizes: Mapping[str, int]) -> T:
    """Return a named tuple of arrays, all zeros, by its fields' types and axes."""
    arrays = []
    for hint in get_type_hints(kind, include_extras=True).values():
        dtype, *axes = hint.__metadata__
        array = np.zeros([axis if isinstance(axis, int) else sizes[axis] for axis in axes], dtype)
        arrays.append(array.view(np.recarray) if array.dtype.names else array)
    return kind(*arrays)


def copy_into(target: Iterable[Array], source: Iterable[Array]) -> None:
    """Copy arrays into larger ones, from their first elements on."""
    for new, old in zip(target, source, strict=True):
        new[tuple(slice(size) for size in old.shape)] = old


def allocate(batch: int, length: int, resources: int, *, window: int = 128, users: int = 1) -> State:
    """Return an empty state for B schedulers of up to L jobs each, with R resources.

    `window`: W, most candidates shown to an agent at once; `users`: U, for fair share.
    """
    length = max(length, 1)
    sizes = {"B": batch, "R": resources, "W": window, "U": users, "P": 4 * length + 8}
    state = zeros(State, sizes | list_sizes(length))
    state.share[:] = 1.0
    for b in range(batch):
        reset(state, b)
    return state


def list_sizes(length: int) -> dict[str, int]:
    """Return the sizes of the lists of waiting and running jobs, by axis, for up to L jobs."""
    blocks = length // (BLOCK // 4) + 4  # as many as can be in use: neighbours hold > BLOCK / 2
    # one block is enough for few jobs; else, by the same reasoning
    run_blocks = 1 if length <= MOST_IN_BLOCK else length // (MOST_IN_BLOCK // 4) + 4
    places = RUN_BLOCK * run_blocks if run_blocks > 1 else length + 1
    return {"L": length, "NB": blocks, "NR": run_blocks, "RP": places}


def reset(state: State, b: int) -> None:
    """Make scheduler `b` idle, empty and at time 0; what is known of jobs stays."""
    state.scalars[b] = np.zeros((), SCALARS)
    state.scalars.head[b] = -1
    state.scalars.bad_score[b] = -1
    state.scalars.wake_at[b] = NEVER
    state.free[b] = state.capacity
    state.usage[b] = 0.0
    empty_lists(state, slice(b, b + 1))
    unstarted(state.jobs[b])


def empty_lists(state: State, which: slice) -> None:
    """Let no job wait or run in schedulers whose counts are 0: block numbers beyond those in use are free."""
    for order in (state.blocks, state.run_blocks):
        order[which] = np.arange(order.shape[1], dtype=np.int32)
    state.scalars.n_run_blocks[which] = 1
    state.scalars.first_running[which] = 0
    state.run_end[which, 0], state.run_job[which, 0] = NEVER, LAST_BLOCK


def unstarted(jobs: Records) -> None:
    """Make records [n] those of jobs that have not started."""
    for name in ("start", "end", "reserved", "promise", "past"):
        jobs[name] = -1
    jobs["how"], jobs["rejects"] = HOW_WAITING, 0
