"""What kernels read and write of a site's Slurm: arrays by name, and the names of their columns.

Sets of nodes are words, see `node_words`. A job that waits has a row, and a row for each of its partitions:
an entry. N nodes, G generic resources, W words, K resources of limits, P partitions, V advance reservations.
"""

from typing import Any, NamedTuple

import numpy as np

from bridge.base.arrays import Bundle, Floats, Ints

#: `now`: numbers of a pass, and of where it stands.
(
    NOW, FULL, AT, LENGTH, ENTRY, DEPTH, HAS_SKIPPED, HAS_BARRED, IS_PACKED, CHANGED, NEW_PLANS, IS_RESERVED,
    PLACED, RESERVATIONS, RUNS, LAST, SINGLE, POOL, GIVING, STAYING, RESULT, IS_STALE, RUNS_BY_ID, NOW_SIZE,
) = range(24)  # fmt: skip
#: `rules`: numbers of a site that never change.
(
    QUEUE_DEPTH, PARTITION_DEPTH, LIMIT_STOP, BF_LICENSES, BF_MIN_PRIO, BF_MIN_AGE, BF_PART_RESERVE,
    BF_MAX_USER, BF_MAX_PART, BF_MAX_ASSOC, BF_MAX_USER_PART, RUNNING_RESERVE, SAFE, SIZE_COUNTS, IS_UNIFORM,
    PREEMPTS, SPAN, RESOLUTION, MAP_SIZE, MOST_TESTS, SCALE, LATE, RULES_SIZE,
) = range(23)  # fmt: skip
#: `jobs`: a job that waits.
(
    IS_WAITING, SUBMIT, ID, TASK, HET, PLANNED, BLOCKED, CPUS_ASKED, USER, ASSOC, ELIGIBLE, NO_RESERVE, OWN,
    NAMES_ONE, PREEMPTING_UNTIL, MEMORY_EACH, MEMORY_CORE, HAS_LICENSES, IS_CLOSED, ASSOC_ROW, SITE_FACTOR,
    NICE, IS_FROZEN, COUNT, JOB_SIZE,
) = range(25)  # fmt: skip
#: `entries`: one of its partitions.
(
    JOB, PART, TIER, LIMIT, BF_LIMIT, CLASS, COULD, FIRST_SET, LAST_SET, REQUIRED, EXCLUDED, ENTRY_SIZE,
) = range(12)  # fmt: skip
#: COULD: whether the job fits the empty nodes of the partition.
UNKNOWN, FITS, FITS_NOT = range(3)
#: `runs`: a job that has started; IS_RUNNING: 1; 2: it is suspended; SINCE: its usage does not count yet.
(
    END, SERIAL, IS_RUNNING, FIRST_ROW, LAST_ROW, RUN_CLASS, IS_WHOLE, SINCE, RUN_ASSOC, RUN_ID, RUN_TASK,
    RUN_KEY, RUN_SIZE,
) = range(13)  # fmt: skip
#: `masks`: sets of a pass; BEFORE: of COMPLETING those at its begin.
UP, COMPLETING, BEFORE, AVAILABLE, TRY, NODES, CHOSEN, TAKEN, MASKS = range(9)
#: `booked`: an advance reservation.
OPENS, CLOSES, IS_MAINT, IS_FLEX, IS_FAILED, BOOKED_SIZE = range(6)
#: `parts`: a partition in a pass: whether it failed, jobs looked at, counted and reserved.
HAS_FAILED, LOOKED, COUNTED, RESERVED_IN, PART_SIZE = range(5)


class _Fields(NamedTuple):
    """Arrays of a site's state.

    Attributes:
        now: by the names above, as `rules`, `jobs`, `entries`, `runs`, `masks` [MASKS, W], `booked` [V, ·],
            `parts` [P, ·].
        book: [N, FREE_GRES + G] what is free, see `choice_kernels`, as are `empty`, `future`, `site`, `need`
            [·, GRES + G], `scratch`, and `room`, its `left`.
        weights: [N] of nodes in force: `usual` but for limits of nodes, which prefer `packed`; `inside` for a
            flexible reservation.
        part_nodes: [P, W].
        sets: [·, W] of features, and of nodes that are required or excluded.
        priority: of entries.
        per_job, per_node: [·, K] amounts of a job on its least nodes, and on each node; 0: counted otherwise.
        licenses: [·, L] of a job.
        free_licenses: [L].
        line: entries in the order of the queue; `turn`: those at which a pass looks, in its order.
        changed: rows of jobs of which a pass has changed the plan, or has noted that they are blocked.
        placed: [N, 3] node, CPUs and MiB of a job that starts.
        classes, limits, members: see `limit_kernels`, as are `counters`, `used`, `on_nodes`, `seconds` and
            `reserved` of tallies, and `amounts` [K] of the job that is tested.
        booked_nodes: [V, W].
        by_end: running jobs by their ends, as a pass saw them last; `ends` then; `staying` those that stay,
            `giving` those that give way, by their places in it.
        run_nodes, run_gres, run_amounts: [·, W], [·, G], [·, K] of a running job; `pool`: their `placed`.
        own, times, free, sizes: see `plan_kernels`.
        usage, fs, above, factors, terms, run_factors: see `usage_kernels`; `which`: the association at each
            place of the tree that `fair_tree` ranks; `by_id`: running jobs in the order of their ids.
        user_counts, assoc_counts, both_counts: jobs that a backfill pass has counted.
    """

    now: Ints
    rules: Ints
    masks: Ints
    parts: Ints
    part_nodes: Ints
    book: Ints
    empty: Ints
    future: Ints
    site: Ints
    usual: Ints
    weights: Ints
    inside: Ints
    packed: Ints
    scratch: Ints
    room: Ints
    sets: Ints
    jobs: Ints
    per_job: Ints
    per_node: Ints
    licenses: Ints
    free_licenses: Ints
    entries: Ints
    need: Ints
    priority: Floats
    line: Ints
    turn: Ints
    changed: Ints
    placed: Ints
    classes: Ints
    limits: Ints
    members: Ints
    counters: Ints
    used: Ints
    on_nodes: Ints
    seconds: Floats
    reserved: Floats
    amounts: Ints
    booked: Ints
    booked_nodes: Ints
    runs: Ints
    run_nodes: Ints
    run_gres: Ints
    run_amounts: Ints
    pool: Ints
    by_end: Ints
    ends: Ints
    staying: Ints
    giving: Ints
    own: Ints
    times: Ints
    free: Ints
    sizes: Ints
    usage: Floats
    fs: Floats
    above: Ints
    which: Ints
    factors: Floats
    terms: Floats
    run_factors: Floats
    by_id: Ints
    user_counts: Ints
    assoc_counts: Ints
    both_counts: Ints


class SlurmArrays(Bundle, _Fields):
    """All of them, as kernels take them."""


class SlurmStore:
    """The arrays while some of them grow."""

    def __init__(self) -> None:
        self._bundle: SlurmArrays | None = None

    def __getattr__(self, name: str) -> Any:
        """Say that all other attributes are arrays; of those that there are, Python does not ask."""
        raise AttributeError(name)

    def put(self, **arrays: Any) -> None:
        """Put arrays in the place of others."""
        self.__dict__.update({name: np.ascontiguousarray(array) for name, array in arrays.items()})
        self._bundle = None

    def make_room(self, count: int, *names: str) -> None:
        """Let arrays have at least so many rows."""
        for name in names:
            array = getattr(self, name)
            if len(array) < count:
                longer = np.zeros((max(count, 2 * len(array)), *array.shape[1:]), array.dtype)
                longer[: len(array)] = array
                self.put(**{name: longer})

    @property
    def bundle(self) -> SlurmArrays:
        """As kernels take them."""
        if self._bundle is None:
            self._bundle = SlurmArrays(*(getattr(self, name) for name in SlurmArrays._fields))
        return self._bundle
