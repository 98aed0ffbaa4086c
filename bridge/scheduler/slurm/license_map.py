"""Licences that a backfill pass plans ahead (`bf_licenses`): which are taken when."""

from collections.abc import Mapping


class LicenseMap:
    """Counts of licences, less those of running and of planned jobs; instants in s since 1970."""

    def __init__(self, totals: Mapping[str, int]) -> None:
        self.totals = dict(totals)
        self.taken: list[tuple[int, int, Mapping[str, int]]] = []

    def take(self, begin: int, end: int, counts: Mapping[str, int]) -> None:
        """Let licences be taken in [begin, end)."""
        self.taken.append((begin, end, counts))

    def first_fit(self, start: int, length: int, counts: Mapping[str, int]) -> int:
        """Return from when on, `start` at the earliest, so many are free for so long; a taking that begins
        with the end is in the way, as it is for nodes.
        """
        while (lack := self._lack(start, start + length, counts)) is not None:
            ends = [end for _, end, _ in self.taken if end > lack]
            if not ends:
                return start
            start = min(ends)
        return start

    def _lack(self, start: int, end: int, counts: Mapping[str, int]) -> int | None:
        """Return the first instant at which some are missing."""
        begins = (begin for begin, until, _ in self.taken if start < begin <= end and until > start)
        for time in sorted({start, *begins}):
            for name, count in counts.items():
                used = sum(one.get(name, 0) for begin, until, one in self.taken if begin <= time < until)
                if used + count > self.totals.get(name, 0):
                    return time
        return None
