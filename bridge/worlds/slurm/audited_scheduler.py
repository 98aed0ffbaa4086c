"""The scheduler as the agent uses it: what it learns and what it decides stands in the audit log."""

import time
from typing import Any

from bridge.worlds.slurm.live_scheduler import LiveEvent, LivePolicy, LiveScheduler
from bridge.worlds.slurm.report import Journal


class AuditedBook:
    """A `LiveScheduler` that writes each pass down, with the events before it.

    `news`: whether something has happened since the last pass; `stops`: jobs that it stopped.
    """

    def __init__(self, nodes: int, deciding: LivePolicy, origin: float, journal: Journal) -> None:
        self._book = LiveScheduler(nodes, deciding, origin)
        self._deciding, self._origin, self._journal = deciding, origin, journal
        self._out = -1
        self._events: list[LiveEvent] = []
        self.news = False
        self.stops: list[str] = []

    def __contains__(self, key: str) -> bool:
        return key in self._book

    def begin(self, nodes: int) -> None:
        """Begin with a scheduler that knows of nothing yet."""
        self._events, self._out = [], -1
        self._book = LiveScheduler(nodes, self._deciding, self._origin)
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

    def decide(self, out: int, now: float) -> list[str]:
        """Return the jobs to be started now, in order; `out`: nodes that none of its jobs can have."""
        self.stops = []
        if out != self._out:
            self._out = out
            self.tell("out", nodes=out)
        if now >= self._book.wake_at:
            self.tell("wake")
        if not self.news:
            return []
        events, self._events, self.news = self._events, [], False
        starts = self._book.decide(now)
        self._journal.counts.passes += 1
        self.stops = self._book.stopped
        more = {"stopped": self.stops} if self.stops else {}
        self._journal.audit.write_pass(now, events, starts, **more)
        return starts
