"""A job as Slurm's schedulers see it: what it asks for, and what became of it."""

from dataclasses import dataclass, field

import numpy as np

from bridge.base.arrays import Ints
from bridge.scheduler.slurm.site import Assoc, SlurmPart

PENDING, RUNNING, SUSPENDED, DONE = range(4)
#: Of a job that has nothing yet; nobody writes to them.
_NO_ROWS, _NO_GRES = np.zeros((0, 3), np.int64), np.zeros(0, np.int64)


@dataclass(slots=True, eq=False, kw_only=True)
class SlurmJob:
    """One job, one task of an array, or one component of a heterogeneous job; times in s.

    Attributes:
        id: of the job, or of its array.
        task: index in its array; -1: it is no array's.
        key: index by which the world knows it.
        limit: requested time; 0: none is stated.
        features: alternatives, each of which a node satisfies by having all of one.
        one_feature: all nodes satisfy the same alternative.
        priority: Slurm's are whole numbers; an order's scores are not.
        cpus: that it has.
        planned: CPUs of its last plan by backfill; 0: none yet.
        node_cpus: CPUs on each of its nodes, exactly; 0: as many as are there.
        blocked_at: when a main pass did not find nodes for it first; 0: never.
        rows: [k, 3] what it has: nodes, CPUs and MiB on each.
        gres_row: [G] its generic resources on each node, in the order of the site's.
        kept_out: partition -> its version, and why the job waits there whatever is free.
        needs: what it asks for as kernels read it, see `bridge.scheduler.slurm.choice`.
        row, run, entries: its rows, see `bridge.scheduler.slurm.rows`: as one that waits, as one that runs,
            and in each partition.
        terms: partition -> what of its priority does not change, see `bridge.scheduler.slurm.priority`.
        could: partition -> whether the job fits its nodes when they are empty.
    """

    id: int
    key: int
    user: str
    assoc: Assoc
    qos: str
    parts: tuple[SlurmPart, ...]
    min_nodes: int
    max_nodes: int
    tasks: int
    cpus_per_task: int = 1
    node_cpus: int = 0
    min_cpus: int = 1
    memory_node: int = 0
    memory_cpu: int = 0
    gres: dict[str, int] = field(default_factory=dict)
    exclusive: bool = False
    limit: int = 0
    min_limit: int = 0
    features: tuple[frozenset[str], ...] = (frozenset(),)
    one_feature: bool = False
    required: int = 0
    excluded: int = 0
    contiguous: bool = False
    licenses: dict[str, int] = field(default_factory=dict)
    reservation: str = ""
    dependencies: tuple[tuple[str, tuple[tuple[int, int], ...]], ...] = ()
    any_dependency: bool = False
    singleton: bool = False
    name: str = ""
    begin: int = 0
    nice: int = 0
    requeue: bool = True
    task: int = -1
    array_most: int = 0
    het: int = 0
    het_offset: int = 0
    site_factor: int = 0
    # what changes
    submit: int = 0
    eligible: int = 0
    priority: float = 0
    priorities: dict[int, int] = field(default_factory=dict)
    held: bool = False
    never: bool = False
    state: int = PENDING
    start: int = 0
    end: int = 0
    part: SlurmPart | None = None
    nodes: int = 0
    cpus: int = 0
    planned: int = 0
    exit_code: int = 0
    ended: int = 0
    cancelled: bool = False
    completing: bool = False
    preempting_until: int = -1
    is_victim: bool = False
    suspended_at: int = 0
    #: Since when and until when it was suspended in this life, s.
    stands: list[tuple[int, int]] = field(default_factory=list)
    suspended_by: set[int] = field(default_factory=set)
    episode: int = 0
    requeued_until: int = 0
    whole: bool = False
    until: int = 0
    blocked_at: int = 0
    rows: Ints = field(default_factory=lambda: _NO_ROWS)
    gres_row: Ints = field(default_factory=lambda: _NO_GRES)
    kept_out: dict[int, tuple[int, str]] = field(default_factory=dict)
    needs: dict[tuple[int, bool], "Ints"] = field(default_factory=dict)
    could: dict[int, bool] = field(default_factory=dict)
    row: int = -1
    run: int = -1
    entries: dict[int, int] = field(default_factory=dict)
    terms: dict[int, tuple[float, ...]] = field(default_factory=dict)

    def forget(self) -> None:
        """Forget what follows from its request, which has changed."""
        self.kept_out, self.could, self.needs, self.terms = {}, {}, {}, {}

    @property
    def alloc(self) -> dict[int, int]:
        """CPUs that it has, by node."""
        return dict(self.rows[:, :2].tolist())

    @property
    def order(self) -> tuple[int, int]:
        """Return by what equal priorities are ordered."""
        return self.id, self.task

    @property
    def suspended(self) -> int:
        """For how long it was suspended in this life, s."""
        return sum(until - since for since, until in self.stands)
