"""The jobs of partitions whose nodes differ, or are shared: what each asks for, and what it has on its nodes.

Jobs of other partitions count where they have nodes or licences of the site.
"""

from collections.abc import Sequence, Set
from typing import Any

from bridge.cluster.clusterfile import cluster_tables
from bridge.worlds.slurm.client import QueueEntry
from bridge.worlds.slurm.job_text import RefusedError, placed_of, request_of
from bridge.worlds.slurm.jobs import HAS_NODES, PartitionNodes, Phase, TrackedJob
from bridge.worlds.slurm.site_jobs import NodePart, PendingJob, PlacedJob, StopKind
from bridge.worlds.slurm.site_reading import SiteReader
from bridge.worlds.slurm.site_scheduler import record_of_run, record_of_wait
from bridge.worlds.slurm.tracking import Tracking


class SiteTracking(Tracking):
    """See `Tracking`; the scheduler chooses the nodes."""

    def __init__(self, *args: Any, reader: SiteReader) -> None:
        super().__init__(*args)
        self._reader = reader
        self._sent: object = None  # the site that the scheduler has
        self._others: set[str] = set()
        self._unusable: frozenset[str] = frozenset()
        self._leaving: dict[str, frozenset[str]] = {}  # nodes of jobs that were stopped, by label

    def forget(self) -> None:
        super().forget()
        self._sent, self._others = None, set()

    @property
    def out(self) -> frozenset[str]:
        """The nodes on which no job can start."""
        return self._unusable

    def choose_nodes(self, job: TrackedJob, now: float) -> list[str] | None:  # noqa: ARG002
        """Return the nodes that the scheduler chose; None: jobs that were stopped still have some of them."""
        if job.phase is not Phase.AWAITING:
            job.hosts = frozenset(self._book.nodes_of(job.row.key))
        clear = all(job.hosts.isdisjoint(hosts) for hosts in self._leaving.values())
        return sorted(job.hosts) if clear else None

    @property
    def nodes_coming(self) -> bool:
        return bool(self._leaving)

    def note_stopped(self, job: TrackedJob, now: float) -> None:
        """A running job was requeued or cancelled: it has its nodes until Slurm says otherwise."""
        super().note_stopped(job, now)
        if self._writes:
            self._leaving[job.row.label] = job.hosts

    def run_on(self, job: TrackedJob, now: float, kind: StopKind) -> None:
        is_ours = kind is StopKind.RESUME  # else it would be stopped again and again
        self._tell_run(job.row, now, self._control(f"show job {job.row.label}"), is_ours=is_ours)

    def update(self, rows: Sequence[QueueEntry], machine: PartitionNodes, now: float) -> None:
        if not self._reader.knows_reservations([row for row in rows if self._is_ours(row)]):
            self._reader.read()
        if self._sent is not self._reader.cluster:
            self._sent = self._reader.cluster
            self._book.tell("site", cluster=cluster_tables(self._reader.cluster))
        self._update_others(rows, now)
        present = {row.label for row in rows if row.state in HAS_NODES}
        self._leaving = {label: hosts for label, hosts in self._leaving.items() if label in present}
        super().update(rows, machine, now)
        if not self._writes:
            self._bring_back(now)
        occupied = [row.names for row in rows if row.state in HAS_NODES and row.state != "COMPLETING"]
        pinned = (job.hosts for job in self.jobs.values() if job.phase is Phase.RELEASED)
        self._unusable = self._reader.unusable(machine.nodes, frozenset().union(*occupied, *pinned))

    def _update_others(self, rows: Sequence[QueueEntry], now: float) -> None:
        """Follow the running jobs of other partitions that have something of the site."""
        present: set[str] = set()
        for row in rows:
            if self._is_ours(row) or row.state not in HAS_NODES or row.state == "COMPLETING":
                continue
            if row.licenses or row.names & self._reader.names:
                present.add(row.key)
                if row.key not in self._others:
                    self._heart.beat()
                    self._tell_run(row, now, self._control(f"show job {row.label}"))
        for key in sorted(self._others - present):
            self._book.tell("end", key)
        self._others = present

    def _bring_back(self, now: float) -> None:
        """Jobs that would have been stopped run on, once nothing would be on their nodes."""
        would_run = [job.hosts for job in self.jobs.values() if job.phase is Phase.RELEASED]
        for job in self.jobs.values():
            is_stopped = job.phase is Phase.REQUEUED and job.row.state in HAS_NODES
            if is_stopped and all(job.hosts.isdisjoint(hosts) for hosts in would_run):
                job.phase = Phase.RUNNING
                self._tell_run(job.row, now, self._control(f"show job {job.row.label}"))

    def _tell_run(self, row: QueueEntry, now: float, answer: str, *, is_ours: bool = True) -> None:
        """Let the scheduler know that a job has nodes, unless it believes just that.

        `is_ours`: the agent may stop it, if it is of its partitions.
        """
        job, placed = self.jobs.get(row.key), self._book.placed(row.key)
        length = job.length if job is not None else row.limit
        running = placed_of(row, answer, length, now, is_ours=is_ours and self._is_ours(row))
        if placed is None or _has(placed) != _has(running):
            self._book.tell("run", row.key, **record_of_run(running))

    def _update_job(self, row: QueueEntry, now: float) -> None:
        job, placed = self.jobs.get(row.key), self._book.placed(row.key)
        if self._writes and placed is not None and placed.suspended >= 0 and row.state == "RUNNING":
            self._tell_run(row, now, self._control(f"show job {row.label}"))  # somebody let it go on
        waits = job is not None and job.phase in (Phase.HELD, Phase.BLOCKED) and row.state == "PENDING"
        if job is not None and waits and _asks(job.row) != _asks(row):
            self._drop(row.key)  # somebody has changed what it asks for
        super()._update_job(row, now)

    def _reason_left_to_slurm(self, job: TrackedJob, answer: str) -> str:
        try:
            job.request = request_of(job.row, answer, self._reader.threads)
        except RefusedError as error:
            return str(error)
        return self._book.refusal(job.request)

    def _needs_text(self, row: QueueEntry) -> bool:  # noqa: ARG002
        return True

    def _wait(self, job: TrackedJob) -> None:
        if job.request is None:  # it runs, and has never waited here
            return
        row, length = job.row, min(job.length, 1e9)
        waiting = PendingJob(row.key, row.raw, float(row.submit), length, job.request)
        self._book.tell("wait", row.key, **record_of_wait(waiting))

    def _tell_runs(self, job: TrackedJob, now: float) -> None:
        is_placed = job.phase is Phase.RELEASED and job.row.names == job.hosts
        request = job.request
        if is_placed and request is not None and request.tasks == 0 and "," not in request.partition:
            return  # it has what was decided: only tasks may lie on their nodes in another way
        self._tell_run(job.row, now, self._control(f"show job {job.row.label}"))

    def _give_back(self, running: Set[str], occupied: Set[str]) -> None:  # noqa: ARG002
        """Let only a start of the job itself end what would be: others may share its nodes."""
        super()._give_back(running, frozenset())


def _asks(row: QueueEntry) -> tuple[object, ...]:
    """Return what a job asks for, but for the nodes to which we pin it."""
    return (
        *(row.limit, row.nodes, row.cores, row.memory, row.features, row.gres, row.reservation),
        *(row.licenses, row.excluded, row.partition, row.qos),
    )


def _has(job: PlacedJob) -> tuple[object, ...]:
    """Return what of a job that has nodes counts for a pass, but for its times."""
    by_rules = job.partition, job.qos, job.may_requeue, job.suspended >= 0
    return _by_node(job.parts), by_rules


def _by_node(parts: Sequence[NodePart]) -> dict[str, object]:
    return {
        name: "whole" if part.whole else (part.cores, part.memory, sorted(part.gpus.items()))
        for part in parts
        for name in part.nodes
    }
