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
    """Sleeps as SimGrid counts them down."""

    def __init__(self) -> None:
        self._left: list[float] = []
        self._numbers: list[int] = []
        self._ends: list[Callable[[], None]] = []
        self._least = NEVER

    def add(self, now: float, seconds: float, number: int, end: Callable[[], None]) -> None:  # noqa: ARG002
        """Begin a sleep (s); ``end`` is called at its end by who moves time. Numbers must grow."""
        self._left.append(seconds)
        self._numbers.append(number)
        self._ends.append(end)
        self._least = min(self._least, seconds)

    def drop(self, number: int) -> None:
        """Forget a sleep, if it is not over."""
        i = bisect_left(self._numbers, number)
        if i < len(self._numbers) and self._numbers[i] == number:
            del self._left[i], self._numbers[i], self._ends[i]
            self._least = min(self._left, default=NEVER)

    def next(self, now: float) -> float:  # noqa: ARG002
        """Return the time (s) until the next one is over; NEVER if there is none."""
        return self._least

    def move(self, now: float, span: float) -> tuple[float, list[End]]:
        """Let ``span`` s pass, at most until the next one is over; return the date and what is over."""
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
    """Sleeps that end at dates."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int]] = []
        self._ends: dict[int, Callable[[], None]] = {}

    def add(self, now: float, seconds: float, number: int, end: Callable[[], None]) -> None:
        """Begin a sleep."""
        heapq.heappush(self._heap, (now + seconds, number))
        self._ends[number] = end

    def drop(self, number: int) -> None:
        """Forget a sleep, if it is not over."""
        self._ends.pop(number, None)

    def next(self, now: float) -> float:
        """Return the time (s) until the next one is over."""
        while self._heap and self._heap[0][1] not in self._ends:
            heapq.heappop(self._heap)
        return max(self._heap[0][0] - now, 0.0) if self._heap else NEVER

    def move(self, now: float, span: float) -> tuple[float, list[End]]:
        """Let time pass; return the date and what is over."""
        now = self._heap[0][0] if span == self.next(now) else now + span
        ends: list[End] = []
        while self._heap and self._heap[0][0] - now < PRECISION_S:
            number = heapq.heappop(self._heap)[1]
            end = self._ends.pop(number, None)
            if end is not None:
                ends.append((number, end))
        return now, ends


Sleeps = SleepsByRemainder | SleepsByDate
