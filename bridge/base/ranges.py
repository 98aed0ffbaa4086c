"""Ascending numbers as ranges."""

from collections.abc import Iterable


def ranges_of(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return pairs (first, last) of what follows each other without a gap."""
    ranges: list[tuple[int, int]] = []
    for n in numbers:
        if ranges and n == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], n)
        else:
            ranges.append((n, n))
    return tuple(ranges)
