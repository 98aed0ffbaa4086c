"""Sleeping actors of the ordered queue, and when the next of them wakes up.

Two ways to keep time. By remainder is SimGrid's: each sleep keeps what is left of it and loses the time that
passes, so rounding errors add up exactly as they do there. By date keeps when each ends: no rounding errors,
and cheap for many.
"""

import heapq
from bisect import bisect_left
from collections.abc import Callable

#: SimGrid's surf/precision, s: what is shorter is over.
PRECISION_S = 1e-9
NEVER = float("inf")

End = tuple[int, Callable[[], None]]


class SleepsByRemainder:
    """Sleeps as SimGrid counts them down.

    ``add`` begins one (s), whose ``end`` is called by who moves time; numbers must grow. ``drop`` forgets one
    if it is not over. ``next`` is the time (s) until the next one is over, NEVER if there is none. ``move``
    lets a time (s) pass, at most that, and returns the date and what is over.
    """

    def __init__(self) -> None:
        self._left: list[float] = []
        self._numbers: list[int] = []
        self._ends: list[Callable[[], None]] = []
        self._least = NEVER

    def add(self, now: float, seconds: float, number: int, end: Callable[[], None]) -> None:  # noqa: ARG002
        self._left.append(seconds)
        self._numbers.append(number)
        self._ends.append(end)
        self._least = min(self._least, seconds)

    def drop(self, number: int) -> None:
        i = bisect_left(self._numbers, number)
        if i < len(self._numbers) and self._numbers[i] == number:
            del self._left[i], self._numbers[i], self._ends[i]
            self._least = min(self._left, default=NEVER)

    def next(self, now: float) -> float:  # noqa: ARG002
        return self._least

    def move(self, now: float, span: float) -> tuple[float, list[End]]:
        now += span
        ends: list[End] = []
        if self._least - span == self._least:
            return now, ends  # too short a time to change the least, hence any
        left = self._left = [value - span for value in self._left]
        self._least = min(left, default=NEVER)
        while self._least < PRECISION_S:
            i = left.index(self._least)
            ends.append((self._numbers[i], self._ends[i]))
            del left[i], self._numbers[i], self._ends[i]
            self._least = min(left, default=NEVER)
        return now, ends


class SleepsByDate:
    """Sleeps that end at dates; the same methods."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int]] = []
        self._ends: dict[int, Callable[[], None]] = {}

    def add(self, now: float, seconds: float, number: int, end: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (now + seconds, number))
        self._ends[number] = end

    def drop(self, number: int) -> None:
        self._ends.pop(number, None)

    def next(self, now: float) -> float:
        while self._heap and self._heap[0][1] not in self._ends:
            heapq.heappop(self._heap)
        return max(self._heap[0][0] - now, 0.0) if self._heap else NEVER

    def move(self, now: float, span: float) -> tuple[float, list[End]]:
        now = self._heap[0][0] if span == self.next(now) else now + span
        ends: list[End] = []
        while self._heap and self._heap[0][0] - now < PRECISION_S:
            number = heapq.heappop(self._heap)[1]
            end = self._ends.pop(number, None)
            if end is not None:
                ends.append((number, end))
        return now, ends


Sleeps = SleepsByRemainder | SleepsByDate
