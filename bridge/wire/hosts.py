"""Sets of hosts as intervals of resource ids: on the wire "0-1 5", here ((0, 1), (5, 5))."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import chain

from bridge.base.jsontext import shortened
from bridge.base.ranges import ranges_of

#: Ascending, disjoint, closed intervals of resource ids; neighbours are merged.
Hosts = tuple[tuple[int, int], ...]

#: One blank between intervals, as Batsim reads and writes them; ids fit int64.
_TEXT = re.compile("[0-9]{1,18}(?:-[0-9]{1,18})?(?: [0-9]{1,18}(?:-[0-9]{1,18})?)*")


def intervals(text: str) -> list[tuple[int, int]]:
    """Return the intervals of a text such as ``0-3 7`` as they are written; an empty text has none.

    Nothing is expanded: check the ends first. Raises ValueError: no such text, or an interval runs backwards.
    """
    if not text:
        return []
    if not _TEXT.fullmatch(text):
        raise ValueError(f"{shortened(text)!r} is not a set of host ids such as '0-3 7'")
    ranges = []
    for word in text.split(" "):
        first, dash, last = word.partition("-")
        low = high = int(first)
        if dash and low > (high := int(last)):
            raise ValueError(f"the interval {word!r} runs backwards")
        ranges.append((low, high))
    return ranges


def parse(text: str) -> Hosts:
    """Return the hosts of a text such as ``0-3 7``. Raises ValueError: no such text, or a host twice."""
    ranges = intervals(text)
    if len(ranges) == 1:
        return (ranges[0],)
    ranges.sort()
    last, touching = -2, False
    for low, high in ranges:
        if low <= last:
            raise ValueError(f"host {low} is named twice")
        touching |= low == last + 1
        last = high
    return merged([ranges]) if touching else tuple(ranges)


def mask(hosts: Hosts, most: int) -> int:
    """Return the hosts below `most` as a number: bit k stands for host k."""
    bits = 0
    for low, high in hosts:
        if low < most:
            bits |= (1 << min(high + 1, most)) - (1 << low)
    return bits


def ids_from_mask(bits: int) -> list[int]:
    ids = []
    while bits:
        ids.append((bits & -bits).bit_length() - 1)
        bits &= bits - 1
    return ids


def from_ids(ids: Sequence[int]) -> Hosts:
    return ranges_of(ids)


def text_of(hosts: Hosts) -> str:
    return " ".join([f"{low}-{high}" if high > low else str(low) for low, high in hosts])


def size(hosts: Hosts) -> int:
    return sum(high - low + 1 for low, high in hosts)


def is_normal(hosts: Hosts) -> bool:
    """Return whether the intervals are ascending, disjoint and not adjacent, as `Hosts` requires."""
    before = -2
    for low, high in hosts:
        if not (type(low) is int and type(high) is int and before + 1 < low <= high):
            return False
        before = high
    return True


class HostSet:
    """A set of hosts that changes; every operation costs as many steps as it touches intervals."""

    __slots__ = ("highs", "lows", "size")

    def __init__(self, hosts: Hosts = ()) -> None:
        self.lows = [low for low, _ in hosts]
        self.highs = [high for _, high in hosts]
        self.size = size(hosts)

    def hosts(self) -> Hosts:
        return tuple(zip(self.lows, self.highs, strict=True))

    def overlap(self, hosts: Hosts) -> Hosts:
        lows, highs = self.lows, self.highs
        ranges: list[tuple[int, int]] = []
        for low, high in hosts:
            for k in range(bisect_left(highs, low), bisect_right(lows, high)):
                ranges.append((max(low, lows[k]), min(high, highs[k])))
        return tuple(ranges)

    def add(self, hosts: Iterable[tuple[int, int]]) -> None:
        lows, highs = self.lows, self.highs
        for low, high in hosts:
            # all that touch the interval become one with it
            first, last = bisect_left(highs, low - 1), bisect_right(lows, high + 1)
            if first == last:
                lows.insert(first, low)
                highs.insert(first, high)
                self.size += high - low + 1
                continue
            start, end = min(low, lows[first]), max(high, highs[last - 1])
            overlap = sum(highs[first:last]) - sum(lows[first:last]) + last - first
            lows[first:last], highs[first:last] = [start], [end]
            self.size += end - start + 1 - overlap

    def remove(self, hosts: Hosts) -> None:
        lows, highs = self.lows, self.highs
        for low, high in hosts:
            first, last = bisect_left(highs, low), bisect_right(lows, high)
            touched = list(zip(lows[first:last], highs[first:last], strict=True))
            self.size -= sum(min(high, b) - max(low, a) + 1 for a, b in touched)
            rest = [(a, low - 1) for a, _ in touched[:1] if a < low]
            rest += [(high + 1, b) for _, b in touched[-1:] if b > high]
            lows[first:last] = [a for a, _ in rest]
            highs[first:last] = [b for _, b in rest]

    def take_lowest(self, n: int) -> Hosts:
        """Take out and return the `n` lowest hosts; there must be so many."""
        lows, highs = self.lows, self.highs
        self.size -= n
        taken: list[tuple[int, int]] = []
        k = 0
        while n:
            low, high = lows[k], highs[k]
            length = high - low + 1
            if length > n:
                lows[k] = low + n
                taken.append((low, low + n - 1))
                break
            taken.append((low, high))
            n -= length
            k += 1
        if k:
            del lows[:k], highs[:k]
        return tuple(taken)


def merged(parts: Iterable[Iterable[tuple[int, int]]]) -> Hosts:
    pieces: list[tuple[int, int]] = []
    last = -2
    for low, high in sorted(chain.from_iterable(parts)):
        if low > last + 1:
            pieces.append((low, high))
            last = high
        elif high > last:
            pieces[-1] = (pieces[-1][0], high)
            last = high
    return tuple(pieces)
