"""What a calendar adds to the reasons of jobs: holds, reservations, partitions down, cancellations."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from bridge.scheduler.state import NEVER
from bridge.scheduler.timed_state import (
    CANCEL,
    HOLD,
    LIMIT,
    PARTITION_STATE,
    PARTITION_UP,
    RELEASE,
)
from bridge.worlds.fast.cluster_calendar import Calendar

#: When something begins and ends, microseconds.
Span = tuple[int, int]


def spans_of(is_on: bool, changes: Iterable[tuple[int, bool]]) -> list[Span]:
    """Return when something is on that is so at first, or not, and changes at some times."""
    spans: list[Span] = []
    since = 0 if is_on else NEVER
    for time, on in (*changes, (NEVER, False)):
        if on:
            since = min(since, time)
        elif since < NEVER:
            spans.append((since, time))
            since = NEVER
    return [(begin, end) for begin, end in spans if begin < end]


def overlay(
    base: Sequence[tuple[int, int]], layers: Sequence[tuple[Span, int]], stop: int
) -> Iterator[tuple[int, int]]:
    """Yield times and codes of a history over which layers lie; of several the first one counts."""
    begin = base[0][0]
    edges = {edge for span, _ in layers for edge in span if begin < edge}
    for time in sorted(edges | {time for time, _ in base}):
        if time >= stop:
            return
        below = [code for since, code in base if since <= time][-1]
        yield time, next((code for (since, end), code in layers if since <= time < end), below)


class CalendarReasons:
    """What a calendar says of an episode's jobs, which are its rows from `first` on."""

    def __init__(self, calendar: Calendar, first: int) -> None:
        self._calendar, self._first = calendar, first
        self._events: dict[tuple[int, int], list[tuple[int, int]]] = {}
        events = calendar.events[
            np.isin(calendar.events.kind, (CANCEL, HOLD, RELEASE, PARTITION_STATE, LIMIT))
        ]
        for row in events:
            self._events.setdefault((int(row.kind), int(row.which)), []).append(
                (int(row.time), int(row.value))
            )

    def _of_job(self, kind: int, j: int) -> list[int]:
        place = self._first + j
        if self._calendar.places is not None:
            place = int(self._calendar.places[place])
        return [time for time, _ in self._events.get((kind, place), ())]

    def held(self, j: int) -> list[Span]:
        """Return when job `j` is held by its user."""
        changes = [(time, True) for time in self._of_job(HOLD, j)]
        changes += [(time, False) for time in self._of_job(RELEASE, j)]
        return spans_of(bool(self._calendar.jobs.is_held[self._first + j]), sorted(changes))

    def outside_reservation(self, j: int) -> list[Span]:
        """Return when the reservation of job `j`, if it has one, has not begun, or is over."""
        v = int(self._calendar.jobs.reservation[self._first + j])
        if v < 0:
            return []
        own = self._calendar.static["reservations"][v]
        return [(0, int(own.begin)), (int(own.end), NEVER)]

    def down(self, p: int) -> list[Span]:
        """Return when partition `p` starts no jobs."""
        at_first = int(self._calendar.static["first_partition_states"][p]) != PARTITION_UP
        changes = self._events.get((PARTITION_STATE, p), ())
        return spans_of(at_first, [(time, state != PARTITION_UP) for time, state in changes])

    def cancelled_at(self, j: int, submit: int, start: int, never_at: int) -> int:
        """Return when the calendar cancelled job `j`, or NEVER."""
        times = [time for time in self._of_job(CANCEL, j) if time >= submit]
        if start >= 0 or not times or never_at > times[0] or never_at < 0:
            return NEVER
        return times[0]

    def limits(self, counter: int) -> list[tuple[int, int]]:
        """Return when the limit of a counter changes, and to what."""
        return self._events.get((LIMIT, counter), [])
