"""What an agent knows of a live site, and the starts that its policy decides on: nodes and all.

The counterpart of `LiveScheduler` for partitions whose nodes differ or are shared. It enters as plain events,
too, and each pass decides anew from what they leave.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
    SiteStop,
    StopKind,
)

#: What the event of a running job says only where it is not as usual, by the fields of `PlacedJob`.
_OF_PREEMPTION: Mapping[str, Callable[[Any], Any]] = {
    "number": int,
    "partition": str,
    "qos": str,
    "may_requeue": bool,
    "grace_end": float,
    "preemptor": str,
    "suspended": float,
    "stood": float,
}


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
    if job.goes_first:
        record |= {"goes_first": True}
    return record


def record_of_run(job: PlacedJob) -> dict[str, Any]:
    """Return the details of the event by which a job has nodes."""
    record: dict[str, Any] = {"start": job.start, "length": job.length}
    record["parts"] = [part.as_record() for part in job.parts]
    if job.licenses:
        record["licenses"] = job.licenses
    if job.array >= 0:
        record |= {"array": job.array, "array_limit": job.array_limit}
    usual = PlacedJob("", 0.0, 0.0, ())
    for name in _OF_PREEMPTION:
        if (value := getattr(job, name)) != getattr(usual, name):
            record[name] = value
    return record


def starts_record(starts: Mapping[str, SiteStart]) -> dict[str, Any]:
    """Return what the jobs that a pass has started take of their nodes, by key."""
    return {key: [part.as_record() for part in start.parts] for key, start in starts.items()}


def decision_record(book: "SiteScheduler") -> dict[str, Any]:
    """Return what a line of the audit log says of the last pass, beside the jobs that it started."""
    record: dict[str, Any] = {"parts": starts_record(book.starts)} if book.starts else {}
    if book.stops:
        record["stops"] = [stop.as_record() for stop in book.stops]
    return record | ({"firsts": book.firsts} if book.firsts else {})


class SiteScheduler:
    """The waiting and running jobs of a site.

    Attributes:
        starts: the jobs that the last pass has decided on, by key.
        stops: what it has decided on jobs that had nodes, in order. Those that it stopped are not known any
            more until Slurm says that they wait; suspended ones still have nodes.
        spared: jobs that the site's rules would stop, and no pass does, and why.
        goes_on: the last pass has stopped jobs, and the next one comes at once.
    """

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
        self._stopped: dict[
            str, tuple[PlacedJob, PendingJob | None]
        ] = {}  # as they were before the last pass
        self.starts: dict[str, SiteStart] = {}
        self.stops: tuple[SiteStop, ...] = ()
        self.spared: Mapping[str, str] = {}
        self.goes_on, self._resumes = False, True
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
    def firsts(self) -> list[str]:
        """The jobs for which the last pass has stopped others: a pass is to take them first, at once."""
        return [key for key, job in self._waiting.items() if job.goes_first]

    @property
    def wake_at(self) -> float:
        """When a reservation begins or ends, a grace ends, or the policy wants a pass: s since 1970."""
        reservations = self._cluster.reservations if self._cluster is not None else ()
        times = [float(time) for row in reservations for time in (row.start, row.end)]
        times += [job.grace_end for job in self._running.values() if job.grace_end >= 0]
        return min((time for time in (*times, self._wanted_at) if time > self._now), default=math.inf)

    def refusal(self, request: SiteRequest) -> str:
        """Return why the site can never hold a job, empty if it can."""
        if request not in self._refusals:
            assert self._cluster is not None
            self._refusals[request] = self._pass.refusal(self._cluster, request)
        return self._refusals[request]

    def placed(self, job: str) -> PlacedJob | None:
        """Return a job that has nodes as it is believed to be; None: it has none."""
        return self._running.get(job)

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
        self._leave_grace(self._running.pop(job))
        waited = self._requests.pop(job, None)
        if kind == "back" and waited is not None:
            self._waiting[job] = waited

    def _leave_grace(self, job: PlacedJob) -> None:
        """The job for which this one was to be stopped goes first, if it was the last of these."""
        others = (other.preemptor for other in self._running.values() if other.grace_end >= 0)
        if job.grace_end < 0 or job.preemptor in others:
            return
        if job.preemptor in self._waiting:
            self._waiting[job.preemptor] = replace(self._waiting[job.preemptor], goes_first=True)
        else:
            self._resumes = False

    def decide(self, now: float) -> list[str]:
        """Return the jobs to be started now, in order; `starts` has their nodes."""
        self._now = max(now, self._now)
        self.starts, self.stops, self._stopped, self.goes_on = {}, (), {}, False
        if self._cluster is None:
            return []
        waiting = [job for job in self._waiting.values() if not self.refusal(job.request)]
        running = list(self._running.values())
        queue = SiteQueue(self._cluster, self._out, waiting, running, now, self._resumes)
        decision = self._pass.decide(queue)
        self._wanted_at, self.spared = decision.wake_at, decision.spared
        self.goes_on, self._resumes = decision.goes_on, decision.resumes
        for start in decision.starts:
            self._start(start, now)
        self._stop(decision.stops, now)
        self._waiting |= {job.key: job for job in decision.left}
        self.decided += len(self.starts)
        return list(self.starts)

    def replace_decision(
        self, parts: Mapping[str, Any], stops: Sequence[SiteStop], firsts: Sequence[str], now: float
    ) -> None:
        """Let the last pass have decided this, as `starts_record` has the starts, in place of its own."""
        for key in self.starts:
            self._leave("back", key)
        for key, (placed, waited) in self._stopped.items():
            self._running[key] = placed
            if waited is not None:
                self._requests[key] = waited
        waiting = self._waiting.items()
        self._waiting = {key: replace(job, goes_first=key in firsts) for key, job in waiting}
        self.starts, self._stopped = {}, {}
        for key, records in parts.items():
            if key not in self._waiting:
                raise BridgeError("does not wait", where=f"job {key}")
            self._start(SiteStart(key, tuple(map(NodePart.from_record, records))), now)
        for stop in stops:
            if stop.key not in self._running:
                raise BridgeError("does not run", where=f"job {stop.key}")
        self._stop(stops, now)

    def _stop(self, stops: Sequence[SiteStop], now: float) -> None:
        """Jobs are stopped, suspended or in grace, or go on: by a pass."""
        self.stops = tuple(stops)
        for key, kind, grace_end, preemptor in self.stops:
            job = self._running[key]
            if key not in self.starts:
                self._stopped.setdefault(key, (job, self._requests.get(key)))
            if kind is StopKind.GRACE:
                self._running[key] = replace(job, grace_end=grace_end, preemptor=preemptor)
            elif kind is StopKind.SUSPEND:
                self._running[key] = replace(job, suspended=now, grace_end=-1.0, preemptor="")
            elif kind is StopKind.RESUME:
                stood = job.stood + now - job.suspended
                self._running[key] = replace(job, suspended=-1.0, stood=stood)
            else:
                del self._running[key]
                self._requests.pop(key, None)

    def _start(self, start: SiteStart, now: float) -> None:
        job = self._waiting.pop(start.key)
        self._requests[start.key], self.starts[start.key] = job, start
        request = job.request
        self._running[start.key] = PlacedJob(
            start.key,
            now,
            job.length,
            start.parts,
            request.licenses,
            request.array,
            request.array_limit,
            number=job.number,
            partition=start.partition or request.partition,
            qos=request.qos,
            may_requeue=request.may_requeue,
        )

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
    first = bool(details.get("goes_first", False))
    number, submit = int(details["id"]), float(details["submit"])
    return PendingJob(key, number, submit, length, request, rejects, is_head, first)


def _running(key: str, details: Mapping[str, Any]) -> PlacedJob:
    parts = tuple(NodePart.from_record(record) for record in details["parts"])
    length = min(max(float(details["length"]), 1.0), float(LONGEST))
    array, array_limit = int(details.get("array", -1)), int(details.get("array_limit", 0))
    licenses = str(details.get("licenses", ""))
    more = {name: read(details[name]) for name, read in _OF_PREEMPTION.items() if name in details}
    return PlacedJob(key, float(details["start"]), length, parts, licenses, array, array_limit, **more)
