"""The backfill pass' map of time: which nodes are free when, in records that planned jobs split."""

import numpy as np

from bridge.scheduler.slurm.node_words import words_of
from bridge.scheduler.slurm.plan_kernels import RECORDS, reserve
from bridge.scheduler.slurm.quick import Quick

_reserve = Quick(reserve)
#: Room for so many records at first.
_ROOM = 64


class TimeMap:
    """Records in the order of time.

    Attributes:
        times: [n, 2] begin and end of each.
        free: [n, W] words of the nodes that are free then.
        sizes: how many records there are, and how many there have been, which a limit bounds.
    """

    def __init__(self, now: int, window: int, resolution: int, nodes: int, n_words: int) -> None:
        self.n_words = n_words
        self.times = np.zeros((_ROOM, 2), np.int64)
        self.free = np.zeros((_ROOM, n_words), np.int64)
        self.times[0] = [time // resolution * resolution for time in (now, now + window)]
        self.free[0] = words_of(nodes, n_words)
        self.sizes = np.array([1, 1], np.int64)

    @property
    def begin(self) -> int:
        """When the map begins."""
        return int(self.times[0, 0])

    def make_room(self, reservations: int) -> None:
        """Let there be room for some reservations more."""
        if (missing := int(self.sizes[RECORDS]) + 2 * reservations - len(self.times)) > 0:
            missing = max(missing, len(self.times))
            self.times = np.concatenate((self.times, np.zeros((missing, 2), np.int64)))
            self.free = np.concatenate((self.free, np.zeros((missing, self.n_words), np.int64)))

    def reserve(self, start: int, end: int, nodes: int) -> None:
        """Take nodes out of the map in [start, end)."""
        self.make_room(1)
        _reserve(self.times, self.free, self.sizes, start, end, words_of(nodes, self.n_words))
