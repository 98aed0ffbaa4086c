"""The present of a machine: what runs, what waits, what is free, and what is believed about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bridge.base.arrays import Floats, Ints
from bridge.base.errors import BridgeError
from bridge.config import Unsigned
from bridge.scheduler.estimators import RunTimeEstimates
from bridge.scheduler.state import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from bridge.cluster.description import Cluster
    from bridge.scheduler.slurm.controller import Controller
    from bridge.worlds.fast.episode import Scenario
    from bridge.worlds.fast.world import WorldState

#: Times from -END to END, microseconds: sums of a few of them fit int64.
END = 1 << 60
#: Largest amount of a resource.
MOST = 1 << 62
#: What is believed of a run time, by its use, see `bridge.scheduler.estimators.RunTimeEstimates`.
LENGTHS = ("order", "waiting", "running")

#: Who decides, as documents have it, where it is no policy.
OWN_SCHEDULERS = "Slurm's own schedulers"


def micro(seconds: ArrayLike) -> Ints:
    return np.asarray(np.rint(np.asarray(seconds, np.float64) * SECOND), np.int64)


@dataclass(frozen=True)
class FairShareUser:
    """What fair share knows of a user: assigned share of the machine, and node-seconds of ended jobs."""

    share: Unsigned = 1.0
    used: Unsigned = 0.0


@dataclass(frozen=True)
class SitePresent:
    """Where a replay on a cluster stands, between two passes.

    Attributes:
        scenario: what is replayed.
        state, memory: of scheduler and world, one of each; whoever plays on copies them.
        which: [n] the records of the state's jobs.
        arrived: how many jobs were submitted by now.
        origin: µs that its clock is behind the log's.
        on_changed_cluster: returns the state of this time on a cluster that was changed at this time.
        on_submitted: returns it with a job more (nodes, walltime in s, user, name); None: that is not known.
        nodes: names in the order in which nodes are drained that are stated by their number alone.
        others: records of running jobs that are parts of the state's job at these places: they end with it.
    """

    scenario: "Scenario"
    state: Any
    memory: "WorldState"
    which: Ints
    arrived: int
    origin: int = 0
    on_changed_cluster: "Callable[[Callable[[Cluster], Cluster]], MachineState] | None" = None
    on_submitted: "Callable[[int, float, str, str], MachineState] | None" = None
    nodes: tuple[str, ...] = ()
    others: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())


@dataclass(frozen=True)
class SlurmPresent:
    """A real Slurm whose own schedulers decide.

    Attributes:
        build: returns their state, and the names of jobs by their keys.
        on_submitted: returns the state with a job more (nodes, walltime in s, user, name).
    """

    build: "Callable[[], tuple[Controller, dict[int, str]]]"
    on_submitted: "Callable[[int, float, str, str], MachineState]"


@dataclass(frozen=True)
class MachineState:
    """A machine with n jobs, the running ones first, then the waiting ones in order of submission.

    Times are microseconds on one clock, whose zero is anywhere.

    Attributes:
        resources: R names, ``nodes`` first.
        capacity, free: [R]. What is neither free nor used by a running job is out of service, and stays so;
            less than nothing free: so much of what running jobs use goes out of service when they end.
        id: [n] names of the jobs, each once.
        submit, start: [n]; a start of a waiting job is not read.
        request: [n] requested time, at which a job is killed.
        demand: [n, R].
        lengths: what the scheduler believes, each [n]: what it orders, backfills and reserves by.
        n_running: the first so many jobs run.
        user: [n] names in `users`, or others: those have no share.
        users: what fair share knows of them.
        used: node-seconds of all ended jobs, of other users too.
        partition: [n] share of the job's queue in the machine's use, for multifactor orders.
        longest: longest length that orders were told of, for those that use ``t_max``; seconds.
        levels: [Q] ascending, between 0 and 1.
        quantiles: [n, Q] run times that are believed to be exceeded with probability 1 - level; seconds.
            With none (Q = 0) a job is believed to run as long as it requests.
        policy: order and backfilling by name, such as ``fcfs+easy``.
        settled: the scheduler has made its pass at `now`; else the futures begin with one.
        corrections: what forecasts of jobs that have waited so long (seconds) are corrected by, in their own
            scale, one number a level of `bridge.forecasting.corrections.LEVELS`; learnt from earlier
            forecasts.
        site: of a cluster, where its scheduler stands.
        own: of a Slurm, where its own schedulers stand; futures without a policy are theirs.

    Raises:
        BridgeError: parts of it contradict each other; the error names the job.
    """

    now: int
    resources: tuple[str, ...]
    capacity: Ints
    free: Ints
    id: tuple[str, ...]
    submit: Ints
    start: Ints
    request: Ints
    demand: Ints
    lengths: RunTimeEstimates
    n_running: int
    user: tuple[str, ...]
    partition: Floats
    levels: Floats
    quantiles: Floats
    users: Mapping[str, FairShareUser] = field(default_factory=dict)
    used: float = 0.0
    longest: float = 0.0
    policy: str = "fcfs+easy"
    settled: bool = False
    corrections: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    site: SitePresent | None = field(default=None, compare=False)
    own: SlurmPresent | None = field(default=None, compare=False)

    @property
    def decider(self) -> str:
        """The name of what decides in futures without a policy."""
        return self.policy if self.own is None else OWN_SCHEDULERS

    def __post_init__(self) -> None:
        self._check_jobs()
        for r, name in enumerate(self.resources):
            used = sum(map(int, self.demand[: self.n_running, r]))
            if not -used <= self.free[r] <= int(self.capacity[r]) - used:
                what = f"free.{name} cannot be {self.free[r]}: jobs use {used} of {self.capacity[r]}"
                raise BridgeError(
                    what, where="state", remedy="What is free and used is the capacity at most."
                )
        if not (np.diff(self.levels, prepend=0, append=1) > 0).all():
            raise BridgeError("levels must ascend between 0 and 1", where="state")

    def __len__(self) -> int:
        return len(self.id)

    @property
    def waiting(self) -> Ints:
        return np.arange(self.n_running, len(self))

    @property
    def elapsed(self) -> Ints:
        return np.where(np.arange(len(self)) < self.n_running, self.now - self.start, 0)

    def refuse_site(self, subject: str) -> None:
        """Raise BridgeError if it is of a cluster, which `subject` does not know."""
        if self.site is not None:
            what = f"{subject} is of one pool of nodes"
            raise BridgeError(what, where="state of a cluster", remedy="Use the run's folder itself.")

    def index(self, job: str) -> int:
        """Return a job's index by its id; BridgeError: it neither runs nor waits."""
        try:
            return self.id.index(job)
        except ValueError:
            raise BridgeError("neither runs nor waits", where=f"job {job!r}") from None

    def _check_jobs(self) -> None:
        """Refuse the first job that cannot be."""
        if len(set(self.id)) < len(self.id):
            twice = next(name for k, name in enumerate(self.id) if name in self.id[:k])
            raise BridgeError("stands there twice", where=f"job {twice!r}")
        runs = np.arange(len(self)) < self.n_running
        lengths = (self.lengths.order, self.lengths.waiting, self.lengths.running)
        falls = (self.quantiles[:, :1] <= 0).any(axis=1) | (np.diff(self.quantiles, axis=1) < 0).any(axis=1)
        there = ", ".join(f"{n:,} {name}" for name, n in zip(self.resources, self.capacity, strict=True))
        for bad, why in (
            (self.demand[:, 0] <= 0, "asks for no nodes"),
            ((self.demand < 0).any(axis=1), "asks for a negative amount"),
            ((self.demand > self.capacity).any(axis=1), f"asks for more than the machine has ({there})"),
            (self.request <= 0, "its request is not positive"),
            (np.min(lengths, axis=0, initial=END) <= 0, "a believed length is not positive"),
            (np.max(lengths, axis=0, initial=0) > END, "a believed length is too long"),
            (self.request > END, "its request is too long"),
            (self.submit > self.now, "is submitted in the future"),
            (self.submit < -END, "its submission is too long ago"),
            (runs & (self.start > self.now), "starts in the future"),
            (runs & (self.start < self.submit), "starts before its submission"),
            (falls, "its quantiles do not ascend from above 0"),
        ):
            if bad.any():
                raise BridgeError(why, where=f"job {self.id[int(bad.argmax())]!r}")

    def take(self, which: Ints) -> "MachineState":
        """Return the state with some of its jobs, in the order given, running ones first."""
        names = ("submit", "start", "request", "demand", "partition", "quantiles")
        part: dict[str, Any] = {name: getattr(self, name)[which] for name in names}
        part |= {name: tuple(getattr(self, name)[j] for j in which) for name in ("id", "user")}
        believed: dict[str, Any] = {name: getattr(self.lengths, name)[which] for name in LENGTHS}
        lengths = replace(self.lengths, **believed)
        return replace(self, **part, lengths=lengths, n_running=int((which < self.n_running).sum()))
