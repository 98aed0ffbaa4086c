"""What kernels read and write of a site's Slurm: arrays by name, and the names of their columns.

Sets of nodes are words, see `node_words`. A job that waits has a row, and a row for each of its partitions:
an entry. N nodes, G generic resources, W words, K resources of limits, P partitions, V advance reservations.
"""

from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from bridge.base.arrays import Bundle, Floats, Ints

#: An instant that never comes.
FAR = 1 << 62
#: `now`: numbers of a pass, and of where it stands. PREFERRING: 1 + the entry that will set the weights in
#: force, 0: they are set; N_PAUSED: jobs that are suspended.
(
    NOW, FULL, AT, LENGTH, ENTRY, DEPTH, HAS_SKIPPED, HAS_BARRED, IS_PACKED, CHANGED, IS_RESERVED,
    RESERVATIONS, RUNS, LAST, SINGLE, POOL, GIVING, STAYING, RESULT, IS_STALE, RUNS_BY_ID, BF_STARTS,
    VERSION, N_STARTS, N_LINE, CHANGES, IS_VALID, HAS_GONE, N_WAITING, N_RUNNING, N_ENTRIES, N_NEWS,
    N_FREE_RUNS, N_ORDERINGS, LIMITS_DUE, LAST_PERIOD, IS_FRESH, ODD_UNTIL, STARTS_THEN, VERSION_THEN,
    PASSED_VERSION, PASSED_WHOLE, PASSED_UNTIL, PASSED_CHANGES, PLAN_VERSION, PLAN_UNTIL, PLAN_CHANGES,
    PREFERRING, N_PAUSED, N_ENDS, NOW_SIZE,
) = range(51)  # fmt: skip
#: `rules`: numbers of a site that never change.
(
    QUEUE_DEPTH, PARTITION_DEPTH, LIMIT_STOP, BF_LICENSES, BF_MIN_PRIO, BF_MIN_AGE, BF_PART_RESERVE,
    BF_MAX_USER, BF_MAX_PART, BF_MAX_ASSOC, BF_MAX_USER_PART, RUNNING_RESERVE, SAFE, SIZE_COUNTS, IS_UNIFORM,
    PREEMPTS, SPAN, RESOLUTION, MAP_SIZE, MOST_TESTS, SCALE, LATE, MAX_START, COUNTS_MINUTES, OVER_TIME,
    RESV_OVER_RUN, KEEPS_USAGE, PERIODS, RULES_SIZE,
) = range(29)  # fmt: skip
#: PERIODS: whether priorities are computed in each period, and by whom.
NO_PERIODS, BY_KERNEL, BY_PYTHON = range(3)
#: `jobs`: a job that waits.
(
    IS_WAITING, SUBMIT, ID, TASK, HET, PLANNED, BLOCKED, CPUS_ASKED, USER, ASSOC, ELIGIBLE, NO_RESERVE, OWN,
    NAMES_ONE, PREEMPTING_UNTIL, MEMORY_EACH, MEMORY_CORE, HAS_LICENSES, IS_CLOSED, ASSOC_ROW, SITE_FACTOR,
    NICE, IS_FROZEN, JOB_KEY, SUBMIT_CLASS, COUNT, IS_CHANGED, JOB_SIZE,
) = range(28)  # fmt: skip
#: `entries`: one of its partitions; RUN_LIMIT: its time limit once it runs; BEYOND: 1 + how many jobs had
#: ended when it was beyond a limit on any nodes, 0: it was not. Until another job ends, it still is.
(
    JOB, PART, TIER, LIMIT, BF_LIMIT, CLASS, COULD, FIRST_SET, LAST_SET, REQUIRED, EXCLUDED, RUN_LIMIT,
    BEYOND, ENTRY_SIZE,
) = range(14)  # fmt: skip
#: COULD: whether the job fits the empty nodes of the partition.
UNKNOWN, FITS, FITS_NOT = range(3)
#: `runs`: a job that has started; IS_RUNNING: 1; 2: it is suspended; SINCE: its usage does not count yet;
#: DUE: a check of limits ends it from then on; PAUSED: for how long it was suspended, s.
(
    END, SERIAL, IS_RUNNING, FIRST_ROW, LAST_ROW, RUN_CLASS, IS_WHOLE, SINCE, RUN_ASSOC, RUN_ID, RUN_TASK,
    RUN_KEY, DUE, BEGAN, LASTS_LONG, PAUSED, COUNTED_IN, RUN_SIZE,
) = range(18)  # fmt: skip
#: `news`: what happened that Python has not taken over: to which entry or run, when, by whom.
NEWS_KIND, NEWS_ENTRY, NEWS_RUN, NEWS_TIME, NEWS_BY, NEWS_SIZE = range(6)
STARTED_NEWS, ENDED_NEWS, FREED_NEWS = range(3)
#: Rows of `packed_then`.
BY_LAST_MAIN, BY_LAST_BACKFILL, AT_BEGIN = range(3)
#: Who starts a job: the main pass, the backfill pass, neither.
BY_MAIN, BY_BACKFILL, BY_NEITHER = range(3)
#: `masks`: sets of a pass; BEFORE: of COMPLETING those at its begin; in a backfill pass IDLE, FREE_NODES:
#: nodes without jobs, and with free CPUs; THERE: on which a job might be in a forecast.
UP, COMPLETING, BEFORE, AVAILABLE, TRY, NODES, CHOSEN, TAKEN, IDLE, FREE_NODES, THERE, MASKS = range(12)
#: `booked`: an advance reservation.
OPENS, CLOSES, IS_MAINT, IS_FLEX, IS_FAILED, BOOKED_SIZE = range(6)
#: `parts`: a partition in a pass: whether it failed, jobs looked at, counted and reserved, and how many of
#: its nodes are free at once in the map of time, at most.
HAS_FAILED, LOOKED, COUNTED, RESERVED_IN, MOST_FREE, PART_SIZE = range(6)


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
        licenses, job_gres, job_factors: [·, L], [·, G], [·] of a job: licences, generic resources on each
            node, and by how much its usage counts.
        free_licenses: [L].
        line: entries in the order of the queue; `turn`: those at which a pass looks, in its order.
        changed: rows of jobs of which a pass has changed the plan, or has noted that they are blocked.
        completing: [N] how many jobs are ending on each node.
        packed_then: [3, 1 + W] IS_PACKED and `packed` as the last main pass that changed nothing left them,
            as such a backfill pass did, and at the begin of a backfill pass.
        news: [·, NEWS_SIZE] by the names above.
        classes, limits, members: see `limit_kernels`, as are `counters`, `used`, `on_nodes`, `seconds` and
            `reserved` of tallies, and `amounts` [K] of the job that is tested.
        booked_nodes: [V, W].
        by_end: running jobs by their ends, as a pass saw them last; `ends` then; `staying` those that stay,
            `giving` those that give way, by their places in it.
        run_nodes, run_gres, run_amounts, run_licenses: [·, W], [·, G], [·, K], [·, L] of a running job.
        pool: [·, 3] node, CPUs and MiB of jobs that run; `free_runs`: rows of `runs` that nobody has.
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
    job_gres: Ints
    job_factors: Floats
    free_licenses: Ints
    entries: Ints
    need: Ints
    priority: Floats
    line: Ints
    turn: Ints
    changed: Ints
    completing: Ints
    packed_then: Ints
    news: Ints
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
    run_licenses: Ints
    free_runs: Ints
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


B = TypeVar("B", bound=Bundle)


class ArrayStore(Generic[B]):
    """The arrays of a bundle while some of them grow."""

    def __init__(self, kind: type[B]) -> None:
        self._kind: Any = kind
        self._bundle: B | None = None
        self._changed: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        """Say that all other attributes are arrays; of those that there are, Python does not ask."""
        raise AttributeError(name)

    def put(self, **arrays: Any) -> None:
        """Put arrays in the place of others."""
        self.__dict__.update({name: np.ascontiguousarray(array) for name, array in arrays.items()})
        self._changed |= arrays.keys()

    def make_room(self, count: int, *names: str) -> None:
        """Let arrays have at least so many rows."""
        for name in names:
            array = getattr(self, name)
            if len(array) < count:
                longer = np.zeros((max(count, 2 * len(array)), *array.shape[1:]), array.dtype)
                longer[: len(array)] = array
                self.put(**{name: longer})

    @property
    def bundle(self) -> B:
        """As kernels take them."""
        if self._bundle is None:
            self._bundle = self._kind(*(getattr(self, name) for name in self._kind._fields))
            self._changed.clear()
        elif self._changed:
            self._bundle = self._bundle.with_arrays({name: getattr(self, name) for name in self._changed})
            self._changed.clear()
        return self._bundle


class SlurmStore(ArrayStore[SlurmArrays]):
    """The arrays of a site's state."""

    def __init__(self) -> None:
        super().__init__(SlurmArrays)


class Number:
    """A number of `now` as an attribute of an object that has the store."""

    def __init__(self, place: int) -> None:
        self._place = place

    def __get__(self, owner: Any, _kind: object = None) -> int:
        return int(owner.store.now[self._place])

    def __set__(self, owner: Any, value: int) -> None:
        owner.store.now[self._place] = value
