"""The scheduler as the agent uses it: what it learns and what it decides stands in the audit log."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bridge.worlds.slurm.live_scheduler import LiveEvent, LiveScheduler
from bridge.worlds.slurm.report import Journal
from bridge.worlds.slurm.site_jobs import PlacedJob, SiteRequest, SiteStop, StopKind
from bridge.worlds.slurm.site_scheduler import SiteScheduler, decision_record

#: The scheduler of one pool of nodes, or of a site.
AnyScheduler = LiveScheduler | SiteScheduler


class AuditedBook:
    """A scheduler that writes each pass down, with the events before it.

    `open_scheduler`: makes one that knows of nothing yet, for so many nodes. `news`: whether something has
    happened since the last pass; `stops`: jobs that it stopped, and how; `goes_on`: for another one, which a
    pass takes at once; `spared`: see `SiteScheduler`.
    """

    def __init__(self, nodes: int, open_scheduler: Callable[[int], AnyScheduler], journal: Journal) -> None:
        self._book = open_scheduler(nodes)
        self._open_scheduler, self._journal = open_scheduler, journal
        self._out: int | frozenset[str] = -1
        self._events: list[LiveEvent] = []
        self.news = False
        self.stops: Sequence[SiteStop] = ()
        self.spared: Mapping[str, str] = {}
        self.goes_on = False

    def __contains__(self, key: str) -> bool:
        return key in self._book

    def begin(self, nodes: int) -> None:
        """Begin with a scheduler that knows of nothing yet."""
        self._events, self._out = [], -1
        self._book = self._open_scheduler(nodes)
        self._journal.audit.begin()

    def rotate(self, now: float) -> None:
        """Begin the log's file anew where it was moved away; not between an event and its pass."""
        if not self._events and self._journal.audit.is_rotated():
            self._journal.audit.rewrite(now, self._book.snapshot_events())

    def tell(self, what: str, key: str = "", **details: Any) -> None:
        """Let the scheduler know, see `LiveEvent`."""
        event = LiveEvent(what, time.time(), key, details)
        self._events.append(event)
        self._book.apply_event(event)
        self.news = True

    def take_back(self, key: str) -> None:
        """A start that was decided does not come true, and the job does not wait either."""
        self.tell("back", key)
        self.tell("gone", key)

    # Of a site.

    def refusal(self, request: SiteRequest) -> str:
        """Return why the site can never hold a job, empty if it can."""
        assert isinstance(self._book, SiteScheduler)
        return self._book.refusal(request)

    def nodes_of(self, key: str) -> list[str]:
        """Return the nodes that the last pass chose for a job."""
        assert isinstance(self._book, SiteScheduler)
        return self._book.starts[key].nodes

    def placed(self, key: str) -> PlacedJob | None:
        """Return a job that has nodes as it is believed to be; None: it has none."""
        assert isinstance(self._book, SiteScheduler)
        return self._book.placed(key)

    def decide(self, out: int | frozenset[str], now: float) -> list[str]:
        """Return the jobs to be started now, in order.

        `out`: the nodes that none of its jobs can have, of a pool how many.
        """
        self.stops, self.goes_on = (), False
        if out != self._out:
            self._out = out
            self.tell("out", **({"nodes": out} if isinstance(out, int) else {"names": sorted(out)}))
        if now >= self._book.wake_at:
            self.tell("wake")
        if not self.news:
            return []
        events, self._events, self.news = self._events, [], False
        starts = self._book.decide(now)
        self._journal.counts.passes += 1
        more: dict[str, Any] = {}
        if isinstance(self._book, SiteScheduler):
            more = decision_record(self._book)
            self.stops, self.spared = self._book.stops, self._book.spared
        elif self._book.stopped:
            more["stopped"] = self._book.stopped
            self.stops = [SiteStop(key, StopKind.REQUEUE) for key in self._book.stopped]
        self._journal.audit.write_pass(now, events, starts, **more)
        self.goes_on = isinstance(self._book, SiteScheduler) and self._book.goes_on
        if self.goes_on:
            self.tell("wake")
        return starts
