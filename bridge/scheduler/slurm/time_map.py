"""The backfill pass' map of time: which nodes are free when, in records that planned jobs split."""

from dataclasses import dataclass


@dataclass(slots=True)
class Record:
    """Nodes that are free in [begin, end)."""

    begin: int
    end: int
    free: int


class TimeMap:
    """Records in the order of time; `count` is how many there have been, which a limit bounds."""

    def __init__(self, now: int, window: int, resolution: int, nodes: int) -> None:
        begin, end = (time // resolution * resolution for time in (now, now + window))
        self.records = [Record(begin, end, nodes)]
        self.count = 1

    def free(self, start: int, end: int, nodes: int) -> tuple[int, int]:
        """Return those of some nodes that are free in [start, end], and when others become free.

        A record that begins exactly at the end counts, too. The second is 0 if there is no such time.
        """
        later = 0
        records = self.records
        for k, record in enumerate(records):
            if record.end <= start:
                continue
            if record.begin <= end:
                nodes &= record.free
            if not later and k + 1 < len(records) and records[k + 1].free & ~nodes:
                later = record.end
            if record.begin > end:
                break
        return nodes, later

    def overlaps(self, start: int, end: int, nodes: int) -> bool:
        """Tell whether some of the nodes are not free in [start, end)."""
        return any(
            record.end > start and record.begin < end and nodes & ~record.free for record in self.records
        )

    def reserve(self, start: int, end: int, nodes: int) -> None:
        """Take nodes out of the map in [start, end)."""
        self._split(start)
        self._split(end)
        for record in self.records:
            if record.begin >= start and record.end <= end:
                record.free &= ~nodes
        self._merge()

    def _split(self, time: int) -> None:
        for k, record in enumerate(self.records):
            if record.begin < time < record.end:
                self.records.insert(k + 1, Record(time, record.end, record.free))
                record.end = time
                self.count += 1
                return

    def _merge(self) -> None:
        """Join the first two neighbours that offer the same nodes."""
        for k in range(len(self.records) - 1):
            here, after = self.records[k], self.records[k + 1]
            if here.free == after.free:
                here.end = after.end
                del self.records[k + 1]
                return
