"""What an agent knows of a live site, and the starts that its policy decides on: nodes and all.

The counterpart of `LiveScheduler` for partitions whose nodes differ or are shared. It enters as plain events,
too, and each pass decides anew from what they leave.
"""

import math
from collections.abc import Mapping
from typing import Any

from bridge.base.errors import BridgeError
from bridge.cluster.clusterfile import cluster_tables
from bridge.cluster.description import Cluster, NodeGroup, Partition
from bridge.config import from_tables
from bridge.worlds.slurm.live_scheduler import LONGEST, LiveEvent
from bridge.worlds.slurm.site_jobs import (
    NodePart,
    PendingJob,
    PlacedJob,
    SitePass,
    SiteQueue,
    SiteRequest,
    SiteStart,
)


def record_of_wait(job: PendingJob) -> dict[str, Any]:
    """Return the details of the event by which a job joins the queue."""
    record = {
        "id": job.number,
        "nodes": job.request.nodes,
        "submit": job.submit,
        "length": job.length,
        "user": "",
        "request": job.request.as_record(),
    }
    if job.rejects or job.is_head:
        record |= {"rejects": job.rejects, "is_head": job.is_head}
    return record


def record_of_run(job: PlacedJob) -> dict[str, Any]:
    """Return the details of the event by which a job has nodes."""
    record: dict[str, Any] = {"start": job.start, "length": job.length}
    record["parts"] = [part.as_record() for part in job.parts]
    if job.licenses:
        record["licenses"] = job.licenses
    if job.array >= 0:
        record |= {"array": job.array, "array_limit": job.array_limit}
    return record


def starts_record(starts: Mapping[str, SiteStart]) -> dict[str, Any]:
    """Return what the jobs that a pass has started take of their nodes, by key."""
    return {key: [part.as_record() for part in start.parts] for key, start in starts.items()}


class SiteScheduler:
    """The waiting and running jobs of a site; `starts`: those that the last pass has decided on, by key."""

    def __init__(self, decide: SitePass) -> None:
        self._pass = decide
        self._cluster: Cluster | None = None
        self._out: frozenset[str] = frozenset()
        self._waiting: dict[str, PendingJob] = {}
        self._running: dict[str, PlacedJob] = {}
        self._requests: dict[str, PendingJob] = {}  # of the running jobs that have waited here
        self._refusals: dict[SiteRequest, str] = {}
        self._now = 0.0
        self._wanted_at = math.inf
        self.starts: dict[str, SiteStart] = {}
        self.stopped: list[str] = []
        self.decided = 0

    @classmethod
    def warm_up(cls, decide: SitePass) -> None:
        """Compile or load everything that a pass needs, with and without an advance reservation."""
        cluster = Cluster(
            nodes=(NodeGroup(count=3, cores=2),), partitions=(Partition(name="p", exclusive=False),)
        )
        plain = cluster_tables(cluster)
        reserved = [{"name": "r", "start": 50, "end": 60, "nodes": ["n0"]}]
        for document in (plain, plain | {"reservations": reserved}):
            book = cls(decide)
            book.apply_event(LiveEvent("site", 1.0, "", {"cluster": document}))
            part = NodePart(("n0",), cores=2)
            book.apply_event(LiveEvent("run", 1.0, "0", record_of_run(PlacedJob("0", 1.0, 9.0, (part,)))))
            for k, nodes in enumerate((3, 1)):
                job = PendingJob(str(k + 1), k + 1, 1.0, 5.0, SiteRequest("p", nodes, cores=2))
                book.apply_event(LiveEvent("wait", 1.0, job.key, record_of_wait(job)))
            book.decide(2.0)

    def __contains__(self, job: str) -> bool:
        return job in self._waiting or job in self._running

    @property
    def wake_at(self) -> float:
        """When a reservation begins or ends, or the policy wants a pass: s since 1970, or infinity."""
        reservations = self._cluster.reservations if self._cluster is not None else ()
        times = [float(time) for row in reservations for time in (row.start, row.end)]
        return min((time for time in (*times, self._wanted_at) if time > self._now), default=math.inf)

    def refusal(self, request: SiteRequest) -> str:
        """Return why the site can never hold a job, empty if it can."""
        if request not in self._refusals:
            assert self._cluster is not None
            self._refusals[request] = self._pass.refusal(self._cluster, request)
        return self._refusals[request]

    def parts_of(self, job: str) -> tuple[NodePart, ...]:
        """Return what a running job is believed to have; nothing of one that does not run."""
        return self._running[job].parts if job in self._running else ()

    def apply_event(self, event: LiveEvent) -> None:
        """Take note of an event; BridgeError names the job of which it contradicts what is known."""
        kind, job = event.kind, event.job
        if kind == "site":
            self._cluster = from_tables(Cluster, event.details["cluster"], "the site")
            self._refusals.clear()
        elif kind == "out":
            self._out = frozenset(map(str, event.details["names"]))
        elif kind == "wait":
            if job in self:
                raise BridgeError("is known already", where=f"wait {job}")
            self._waiting[job] = _waiting(job, event.details)
        elif kind == "run":
            if job in self._waiting:
                self._requests[job] = self._waiting.pop(job)
            self._running[job] = _running(job, event.details)
        elif kind != "wake":
            self._leave(kind, job)

    def _leave(self, kind: str, job: str) -> None:
        """A job leaves the queue (``gone``), ends (``end``), or waits again (``back``)."""
        if kind not in ("gone", "end", "back"):
            raise BridgeError(f"is no event of a site: {kind!r}", where=f"job {job}")
        if job not in (self._waiting if kind == "gone" else self._running):
            raise BridgeError("does not wait" if kind == "gone" else "does not run", where=f"{kind} {job}")
        if kind == "gone":
            del self._waiting[job]
            return
        del self._running[job]
        waited = self._requests.pop(job, None)
        if kind == "back" and waited is not None:
            self._waiting[job] = waited

    def decide(self, now: float) -> list[str]:
        """Return the jobs to be started now, in order; `starts` has their nodes."""
        self._now = max(now, self._now)
        self.starts = {}
        if self._cluster is None:
            return []
        waiting = [job for job in self._waiting.values() if not self.refusal(job.request)]
        running = list(self._running.values())
        queue = SiteQueue(self._cluster, self._out, waiting, running, now)
        starts, left, self._wanted_at = self._pass.decide(queue)
        for start in starts:
            self._start(start, now)
        self._waiting |= {job.key: job for job in left}
        self.decided += len(self.starts)
        return list(self.starts)

    def replace_starts(self, parts: Mapping[str, Any], now: float) -> None:
        """Let the last pass have started these jobs, as `starts_record` has them, in place of its own."""
        for key in self.starts:
            self._leave("back", key)
        self.starts = {}
        for key, records in parts.items():
            if key not in self._waiting:
                raise BridgeError("does not wait", where=f"job {key}")
            self._start(SiteStart(key, tuple(map(NodePart.from_record, records))), now)

    def _start(self, start: SiteStart, now: float) -> None:
        job = self._waiting.pop(start.key)
        self._requests[start.key], self.starts[start.key] = job, start
        request = job.request
        more = (request.licenses, request.array, request.array_limit)
        self._running[start.key] = PlacedJob(start.key, now, job.length, start.parts, *more)

    def snapshot_events(self) -> list[LiveEvent]:
        """Return the events that rebuild this scheduler."""
        now = self._now
        events = [LiveEvent("out", now, details={"names": sorted(self._out)})]
        if self._cluster is not None:
            events.insert(0, LiveEvent("site", now, details={"cluster": cluster_tables(self._cluster)}))
        for job in self._requests.values():
            events.append(LiveEvent("wait", now, job.key, record_of_wait(job)))
        events += [LiveEvent("run", now, job.key, record_of_run(job)) for job in self._running.values()]
        events += [LiveEvent("wait", now, job.key, record_of_wait(job)) for job in self._waiting.values()]
        return events


def _waiting(key: str, details: Mapping[str, Any]) -> PendingJob:
    length = min(max(float(details["length"]), 1.0), float(LONGEST))
    request = SiteRequest.from_record(details["request"])
    rejects, is_head = int(details.get("rejects", 0)), bool(details.get("is_head", False))
    return PendingJob(key, int(details["id"]), float(details["submit"]), length, request, rejects, is_head)


def _running(key: str, details: Mapping[str, Any]) -> PlacedJob:
    parts = tuple(NodePart.from_record(record) for record in details["parts"])
    length = min(max(float(details["length"]), 1.0), float(LONGEST))
    array, array_limit = int(details.get("array", -1)), int(details.get("array_limit", 0))
    licenses = str(details.get("licenses", ""))
    return PlacedJob(key, float(details["start"]), length, parts, licenses, array, array_limit)
