"""A scheduler on a cluster, driven from outside: a session of jobs that are known beforehand.

What jobs ask of nodes, partitions and limits is no part of a submission: it was read from the log. So the
state holds all of its jobs from the start, numbered as in the fast world, and a submission only names one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bridge.base.arrays import Flags, Ints
from bridge.base.errors import BridgeError
from bridge.scheduler import core
from bridge.scheduler.cluster_state import GONE_REFUSED
from bridge.scheduler.compiled import CompiledPolicy
from bridge.scheduler.free_nodes import FreeNodes
from bridge.scheduler.session import JobEstimates, Session
from bridge.scheduler.state import NEVER, SECOND

#: When nodes leave service (True) or come back, µs, in order.
Outages = tuple[tuple[int, bool, Ints], ...]


class NodeDemand(NamedTuple):
    """What a job asks for.

    `n_nodes` (0: as many as its tasks need), `tasks` (0: one vector a node), its vector. `whole`: it takes
    whole nodes. `nodes`: those that it may have.
    """

    n_nodes: int
    tasks: int
    vector: tuple[int, ...]
    whole: bool
    nodes: frozenset[int]


@dataclass(frozen=True)
class SiteJobs:
    """The jobs of a site, and its nodes, as a session has them; amounts are integers.

    Attributes:
        state: of one scheduler whose records hold all jobs, none of them submitted yet.
        compiled: the policy.
        places: number of a job -> its place in the records.
        node_names: [N] by index.
        members, counted, is_up: the nodes by class, see `bridge.scheduler.free_nodes.FreeNodes`.
        resources, amounts: names of a node's amounts [R], and those of each node [N, R].
        shape: [n] the demand of each job, of `demands`.
        outages: when nodes leave service and come back.
        lives: collects lives that are over; None: nothing changes in time.
        repeats_jobs: jobs may be stopped and run again.
        resource_names: of what the machine has for jobs, nodes first.
    """

    state: Any
    compiled: CompiledPolicy
    places: Mapping[int, int]
    node_names: Sequence[str]
    members: Sequence[Ints]
    counted: Flags
    is_up: Flags
    resources: Sequence[str]
    amounts: Ints
    shape: Ints
    demands: Sequence[NodeDemand]
    outages: Outages = ()
    lives: Any = None
    repeats_jobs: bool = False
    resource_names: tuple[str, ...] = ("nodes",)

    @property
    def is_shared(self) -> bool:
        return not bool(self.counted.all())


class ClusterSession(Session):
    """See `bridge.scheduler.session.Session`; `nodes`, `units` tell of a job that has started."""

    def __init__(self, site: SiteJobs) -> None:
        self.site, self.compiled = site, site.compiled
        self.resources = self._names = site.resource_names
        self.n_jobs = site.state.jobs.shape[1]
        self._capacity = tuple(site.state.capacity.tolist())
        self._pending_events: list[int] = []
        self._opening = False
        self._free = FreeNodes(site.members, site.counted, site.is_up)
        self._members_of = site.members
        self._nodes: dict[int, Ints] = {}
        self._units: dict[int, dict[int, int]] = {}
        self._allocated: list[tuple[int, int, int]] = []
        self._submit_times = site.state.jobs.view(np.ndarray)[0]
        self._use(site.state)

    def outgrown(self, left: int) -> bool:  # noqa: ARG002
        """Tell that nothing is forgotten: jobs may depend on those that are over."""
        return False

    def submit(
        self,
        job_id: int,
        demand: Sequence[int],  # noqa: ARG002
        lengths: JobEstimates,  # noqa: ARG002
        *,
        user: int = 0,  # noqa: ARG002
        partition: float = 0.0,  # noqa: ARG002
        submitted: int | None = None,
    ) -> int:
        """Submit a job of the log; all but the time is known of it. BridgeError: the log has no such job."""
        j = self.site.places.get(job_id, -1)
        if j < 0:
            what, remedy = "is not in the log", "Give the log that the simulation plays, with --workload."
            raise BridgeError(what, where=f"job {job_id}", remedy=remedy)
        since = self.now if submitted is None else submitted
        self._submit_times["submit"][j], self._submit_times["s"][j] = since, since / SECOND
        self._pending_events.append(j)
        return j

    def finish(self, j: int) -> None:
        super().finish(j)
        self._free.release(j)
        self._nodes.pop(j, None)
        self._units.pop(j, None)

    def adopt(self, j: int, start: int) -> None:
        """Refuse (BridgeError) a job that somebody else has started: its nodes would not be known."""
        what, remedy = "a job that others have started has no nodes on a cluster yet", "Leave out --cluster."
        raise BridgeError(what, where=f"job {self.state.jobs.id[0, j]}, {start / SECOND:g} s", remedy=remedy)

    def set_out_of_service(self, amounts: Sequence[int]) -> None:
        """Refuse (BridgeError) that hosts leave: a cluster's nodes are up or down from the start."""
        if any(amounts):
            remedy = "Leave out --events and power states, or --cluster."
            raise BridgeError("hosts cannot leave and come back on a cluster yet", remedy=remedy)

    def starts(self) -> list[int]:
        started = super().starts()
        self._note_nodes(started)
        return started

    def _note_nodes(self, started: Sequence[int]) -> None:
        """Note the nodes of jobs that have just started."""
        log: Any = self._state
        n = int(log.node_scalars.n_log[0])
        columns = (log.log_job, log.log_class, log.log_units)
        rows = [*zip(*(column[0, :n].tolist() for column in columns), strict=True)]
        log.node_scalars.n_log[0] = 0
        self._allocated += rows
        entries: dict[int, list[tuple[int, int]]] = {}
        for j, c, units in rows:
            entries.setdefault(j, []).append((c, units))
        for j in started:
            self._nodes[j] = self._free.take(j, entries[j])
            self._units[j] = {
                int(self._members_of[c][0]): u for c, u in entries[j] if not self.site.counted[c]
            }

    def nodes(self, j: int) -> Ints:
        return self._nodes[j]

    def units(self, j: int) -> Mapping[int, int]:
        """Return how many vectors of its demand a started job has on each node that it may share."""
        return self._units[j]

    def allocated(self) -> Ints:
        """Return what was allocated, in the order of the starts: jobs, classes, units, [3, k]."""
        return np.array(self._allocated, np.int64).reshape(-1, 3).T

    def was_refused(self, j: int) -> bool:
        """Tell whether a submitted job was refused by a limit or its partition; all was told."""
        state: Any = self.state
        return bool(state.node_jobs.gone[0, j] == GONE_REFUSED)

    @property
    def wake_at(self) -> int:
        return int(core.wake_time(self.state, 0))

    def is_due(self) -> bool:
        return bool(core.due_now(self.state, 0))

    def is_idle(self) -> bool:
        """Tell whether nothing will ever happen unless jobs are submitted."""
        return bool(self.state.scalars.n_running[0] == 0 and self.wake_at == NEVER)
