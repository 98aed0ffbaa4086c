"""The present of live partitions on their own nodes: what runs where, and what waiting jobs ask for."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.cluster.description import AdvanceReservation, Cluster, NodeGroup, Partition
from bridge.cluster.node_table import build_node_table
from bridge.experiment.live_pass import ClusterPass
from bridge.experiment.loaded_site import LoadedSite
from bridge.forecasting.fork import policy_of
from bridge.forecasting.starts import forecast
from bridge.forecasting.state import OWN_SCHEDULERS, MachineState, SitePresent, SlurmPresent
from bridge.forecasting.statefile import FORMAT, VERSION, state_of
from bridge.scheduler.protocol import PROTOCOLS
from bridge.serve.observer import PartitionObserver, PartitionState, RunTimeModel
from bridge.worlds.fast import world
from bridge.worlds.slurm.client import Client, QueueEntry, is_held_by_us, walltime_from_comment
from bridge.worlds.slurm.job_text import RefusedError, array_of, parts_of, request_of
from bridge.worlds.slurm.jobs import HAS_NODES
from bridge.worlds.slurm.own_jobs import read_jobs
from bridge.worlds.slurm.own_site import OwnQueue, read_own_site
from bridge.worlds.slurm.site_jobs import NodePart, PendingJob, PlacedJob, SiteQueue, SiteRequest
from bridge.worlds.slurm.site_reading import SiteReader, require_partitions

_SHOW_JOBS = ("scontrol", "-d", "-o", "show", "job")
#: Of a job that was not submitted: behind all others that come at the same time.
_LAST = 1 << 40


@dataclass(frozen=True)
class LiveSite:
    """A site at one time; jobs with what a state's document says of them.

    `idle`: names of the nodes that are free, in order. `partition`: where a further job would go.
    """

    passes: ClusterPass
    cluster: Cluster
    out: frozenset[str]
    running: tuple[tuple[PlacedJob, dict[str, Any]], ...]
    waiting: tuple[tuple[PendingJob, dict[str, Any]], ...]
    idle: tuple[str, ...]
    partition: str
    policy: str
    beliefs: RunTimeModel
    now: float

    @property
    def names(self) -> Sequence[str]:
        return build_node_table(self.cluster).names

    def document(self) -> dict[str, Any]:
        """Return the site as a state's document, whose nodes are counted alone."""
        waiting = sorted(self.waiting, key=lambda pair: (pair[0].submit, pair[0].number, pair[0].key))
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "now": self.now,
            "policy": self.policy,
            "capacity": {"nodes": len(self.names)},
            "free": {"nodes": len(self.idle)},
            "running": [{**job} for _, job in self.running],
            "waiting": [{**job} for _, job in waiting],
        }
        self.beliefs.into(document)
        return document

    def state(self) -> MachineState:
        """Return the state of which futures are played, on the site's nodes."""
        document = self.document()
        used = sum(job["demand"]["nodes"] for job in document["running"])
        document["free"] = {"nodes": len(self.names) - used}  # jobs may share nodes
        state = state_of(document, "Slurm")
        if not self.waiting:
            return state
        jobs = [job for job, _ in self.waiting], [job for job, _ in self.running]
        loaded = self.passes.load(SiteQueue(self.cluster, self.out, *jobs, self.now), for_futures=True)
        return replace(state, site=self._present(loaded))

    def _present(self, loaded: LoadedSite) -> SitePresent:
        n, first = len(loaded.pieces), dict[str, int]()
        for k, (job, _) in enumerate(loaded.pieces):
            first.setdefault(job.key, k)
        place = {job.key: k for k, (job, _) in enumerate(self.running)}
        others = [k for k, (job, _) in enumerate(loaded.pieces) if first[job.key] != k]
        memory = world.allocate(1, len(loaded.scenario.jobs))
        memory.heap[0].job[:n] = np.arange(n)
        memory.clock[0].pending = n
        records = [first[job.key] for job, _ in self.running]
        records += range(n, n + len(loaded.waiting))
        busy = [name for name in self.names if name not in self.idle]
        return SitePresent(
            loaded.scenario,
            loaded.state,
            memory,
            np.array(records, np.int64),
            len(loaded.scenario.jobs),
            on_changed_cluster=lambda change: self._changed(change(self.cluster)).state(),
            on_submitted=lambda *job: self.with_job(*job).state(),
            nodes=(*self.idle, *busy),
            others=(tuple(others), tuple(place[loaded.pieces[k][0].key] for k in others)),
        )

    def _changed(self, cluster: Cluster) -> "LiveSite":
        """Return the site with a cluster whose calendar has changed now: nodes are drained, or come up."""
        out, table = set(self.out), build_node_table(cluster)
        coming: set[str] = set()
        for event in cluster.calendar:
            names = {table.names[n] for n in table.indices(event.nodes)[0].tolist()}
            if event.event == "up":
                coming |= {event.nodes[0]}
                out -= names
            else:
                out |= names
        groups = tuple(
            replace(group, state="up") if group.name in coming else group for group in cluster.nodes
        )
        idle = tuple(name for name in self.idle if name not in out)
        return replace(
            self, cluster=replace(cluster, nodes=groups, calendar=()), out=frozenset(out), idle=idle
        )

    def with_job(self, nodes: int, walltime: float, user: str, name: str) -> "LiveSite":
        """Return the site with a further job that waits for whole nodes."""
        request = SiteRequest(self.partition, nodes, exclusive=True)
        if why := self.passes.refusal(self.cluster, request):
            raise BridgeError(why, where=f"a job on {counted(nodes, 'node')} of partition {self.partition!r}")
        job = PendingJob(name, _LAST + len(self.waiting), self.now, walltime, request)
        document = {"id": name, "submit": self.now, "user": user, "request": walltime}
        return replace(self, waiting=(*self.waiting, (job, document | {"demand": {"nodes": nodes}})))


@dataclass(frozen=True)
class SiteState(PartitionState):
    """See `PartitionState`; futures are played on the nodes of `site`."""

    site: LiveSite
    own: OwnQueue | None = None

    def machine_state(self) -> MachineState:
        state = self.site.state()
        return state if self.own is None else replace(state, own=self._own_present(self.own))

    def _own_present(self, queue: OwnQueue) -> SlurmPresent:
        def submitted(nodes: int, walltime: float, user: str, name: str) -> MachineState:
            more, site = queue.copy(), self.site
            more.submit(name, nodes, walltime, user, site.partition, int(site.now))
            return replace(self, site=site.with_job(nodes, walltime, user, name), own=more).machine_state()

        return SlurmPresent(queue.controller, submitted)


class SiteObserver(PartitionObserver):
    """See `PartitionObserver`: partitions with their nodes, which may differ and be shared, and overlap.

    Jobs of other partitions count where they have nodes or licences of the site. `own`: Slurm's own
    schedulers decide. Raises BridgeError: they cannot be played.
    """

    _details = True

    def __init__(
        self,
        client: Client,
        partition: str,
        policy: str = "fcfs+easy",
        beliefs: RunTimeModel | None = None,
        *,
        own: bool = False,
    ) -> None:
        super().__init__(client, partition, policy, beliefs)
        self._own = read_own_site(client) if own else None
        self._passes = ClusterPass(policy_of(policy), PROTOCOLS["standard"])
        self._partitions = require_partitions(partition)
        self._reader = SiteReader(client, self._partitions)
        self._texts: dict[str, tuple[QueueEntry, str]] = {}

    def warm_up(self) -> None:
        """See `PartitionObserver.warm_up`: with and without an advance reservation, some minutes at first."""
        group, partition = NodeGroup(count=2, cores=2), Partition(name="p", exclusive=False)
        coming = AdvanceReservation(name="r", start=50, end=60, nodes=("n0",))
        placed = PlacedJob("1", 1.0, 9.0, (NodePart(("n0",), cores=2),))
        pending = PendingJob("2", 2, 2.0, 9.0, SiteRequest("p", 2, cores=2))
        document = {"submit": 1, "user": "", "request": 9, "demand": {"nodes": 1}}
        for reservations in ((), (coming,)):
            cluster = Cluster(nodes=(group,), partitions=(partition,), reservations=reservations)
            site = LiveSite(
                self._passes, cluster, frozenset(), ((placed, {**document, "id": "1", "start": 1}),),
                ((pending, {**document, "id": "2"}),), ("n1",), "p", self.policy, self._beliefs, 3.0,
            )  # fmt: skip
            forecast(site.state(), futures=2)

    def read(self) -> SiteState:
        """See `PartitionObserver.read`."""
        client, reader = self.client, self._reader
        nodes = client.nodes(self.partition)
        everything = client.queue()
        reader.read()
        now = float(int(time.time()))  # changes of a cluster come at whole seconds
        keys = {row.key for row in everything}
        self._texts = {key: text for key, text in self._texts.items() if key in keys}
        rows = tuple(row for row in everything if {*self._partitions} & {*row.partition.split(",")})
        running, waiting, not_forecast = [], [], {}
        for row in everything:
            runs = row.state in HAS_NODES and row.state != "COMPLETING" and row.start >= 0
            if runs and (row.names & reader.names or row.licenses):
                running.append(self._placed(row, now))
        for row in rows:
            if row.state in HAS_NODES:
                continue
            pending = self._held_back(row, now) or self._pending(row, now)
            if isinstance(pending, str):
                not_forecast[row.label] = pending
            else:
                waiting.append(pending)
        occupied = frozenset().union(*(row.names for row in everything if row.state in HAS_NODES))
        out = reader.unusable(nodes, occupied)
        idle = tuple(name for name in build_node_table(reader.cluster).names if name not in out | occupied)
        site = LiveSite(
            self._passes, reader.cluster, out, tuple(running), tuple(waiting), idle, self._partitions[0],
            self.policy, self._beliefs, now,
        )  # fmt: skip
        held = [row for row in rows if row.state not in HAS_NODES and row.priority == 0]
        if self._own is None or any(self._show(row)[0] for row in held):  # an agent decides, not Slurm
            return SiteState(site.document(), rows, not_forecast, site)
        queue = OwnQueue.of(self._own, read_jobs(client.call(*_SHOW_JOBS)))
        queue.leave_out_unmodelled()
        try:
            queue.controller()
        except BridgeError as error:
            remedy = "Name a policy: --policy fcfs+easy."
            what = f"Slurm's own schedulers cannot be played: {error.what}"
            raise BridgeError(what, where=error.where, remedy=remedy) from error
        return SiteState(site.document() | {"policy": OWN_SCHEDULERS}, rows, not_forecast, site, queue)

    def _placed(self, row: QueueEntry, now: float) -> tuple[PlacedJob, dict[str, Any]]:
        job, text = self._job(row, now), self._text(row)
        start = float(min(max(row.start, row.submit), now))
        placed = PlacedJob(
            row.key, start, job["request"], parts_of(text, row.names), row.licenses, *array_of(text)
        )
        nodes = max(len(row.names & self._reader.names), 1)
        return placed, job | {"start": start, "demand": {"nodes": nodes}}

    def _pending(self, row: QueueEntry, now: float) -> tuple[PendingJob, dict[str, Any]] | str:
        """Return a waiting job, or why it has no forecast."""
        try:
            request = request_of(row, self._text(row), self._reader.threads)
        except RefusedError as error:
            return str(error)
        if why := self._passes.refusal(self._reader.cluster, request):
            return why
        job = self._job(row, now)
        pending = PendingJob(row.key, row.raw, job["submit"], job["request"], request)
        nodes = min(max(row.nodes, 1), len(self._reader.names))
        return pending, job | {"demand": {"nodes": nodes}}

    def _text(self, row: QueueEntry) -> str:
        """Return what scontrol says of a job, read again when its row has changed."""
        if row.key not in self._texts or self._texts[row.key][0] != row:
            self._texts[row.key] = row, self._control(f"show job {row.label}")
        return self._texts[row.key][1]

    def _show(self, row: QueueEntry) -> tuple[bool, float | None]:
        text = self._text(row)
        return is_held_by_us(text), walltime_from_comment(text.rpartition(" Comment=")[2])
