"""The line of waiting jobs in the order of a pass, kept between passes."""

from bisect import bisect
from collections.abc import Iterable
from operator import lt

from bridge.scheduler.slurm.eligible import Entry, partition_reason
from bridge.scheduler.slurm.jobs import PENDING, SlurmJob
from bridge.scheduler.slurm.order import Key, sort_key
from bridge.scheduler.slurm.site import Site


def is_plain(job: SlurmJob, now: int) -> bool:
    """Tell whether from now on nothing but limits and nodes, or an event, decides when a job may start."""
    has_conditions = job.dependencies or job.singleton or job.task >= 0 or job.array_most or job.reservation
    return bool(not has_conditions and job.eligible and job.begin <= now and job.requeued_until <= now)


#: What of a line holds: all; all, and priorities are new, in the same order; nothing.
_VALID, _KEPT, _INVALID = range(3)


class PassLine:
    """Jobs that a pass may look at, each in each of its partitions.

    Attributes:
        entries: in the order of a pass.
        odd: jobs among them that each pass has to ask whether they may start, by key.
        has_gone: some of the entries' jobs wait no more.
        changes: how often the entries, or their order, changed.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self.entries: list[Entry] = []
        self.odd: dict[int, SlurmJob] = {}
        self._state = _VALID
        self.has_gone = False
        self.changes = 0
        self._keys: list[Key] = []
        self._count = 0

    @property
    def is_valid(self) -> bool:
        """False after new priorities, or an event that may change the order, or who is in the line."""
        return self._state == _VALID

    @is_valid.setter
    def is_valid(self, value: bool) -> None:
        self._state = _VALID if value else _INVALID

    @property
    def is_kept(self) -> bool:
        """Tell whether the line would be the same if it were made anew."""
        return self._state != _INVALID and not self.has_gone

    def see_new_priorities(self) -> None:
        """Take note of new priorities."""
        if self._state == _INVALID or self.odd or self.has_gone:
            self._state = _INVALID
            return
        keys = [(*sort_key(entry), key[-1]) for entry, key in zip(self.entries, self._keys, strict=True)]
        is_same = all(map(lt, keys, keys[1:]))
        self._state = _KEPT if is_same else _INVALID
        if is_same:
            self._keys = keys

    def is_seen(self) -> None:
        """Take note that a pass saw the line, and did nothing."""
        if self._state == _KEPT:
            self._state = _VALID

    def _keyed(self, job: SlurmJob, now: int) -> Iterable[tuple[Key, Entry]]:
        """Yield a job's places in the line."""
        if not is_plain(job, now):
            self.odd[job.key] = job
        elif job.held or job.never or job.priority == 0:
            return
        self._count += 1
        for part in job.parts:
            if not partition_reason(self.site, job, part):
                entry = (job, part)
                yield (*sort_key(entry), self._count), entry

    def add(self, job: SlurmJob, now: int) -> None:
        """Take a job in."""
        self.changes += 1
        if self._state != _INVALID:
            for key, entry in self._keyed(job, now):
                place = bisect(self._keys, key)
                self._keys.insert(place, key)
                self.entries.insert(place, entry)

    def refresh(self, pending: Iterable[SlurmJob], now: int) -> None:
        """Bring the line up to date."""
        if self._state == _INVALID:
            self.odd = {}
            both = [keyed for job in pending for keyed in self._keyed(job, now)]
            both.sort(key=_first)
            before, self.entries = self.entries, [entry for _, entry in both]
            self._keys = [key for key, _ in both]
            self.changes += before != self.entries
            self.has_gone = False
        elif self.has_gone:
            kept = [entry[0].state == PENDING for entry in self.entries]
            self._keys = [key for key, is_kept in zip(self._keys, kept, strict=True) if is_kept]
            self.entries = [entry for entry, is_kept in zip(self.entries, kept, strict=True) if is_kept]
            self.odd = {key: job for key, job in self.odd.items() if job.state == PENDING}
            self.changes += 1
            self.has_gone = False
        self._state = _VALID


def _first(keyed: tuple[Key, Entry]) -> Key:
    return keyed[0]
