"""When jobs arrive of which some follow others: known for a follower as soon as its leader has started."""

import heapq

import numpy as np

from bridge.scheduler.state import NEVER
from bridge.workload.select import Jobs


class Arrivals:
    """The arrivals to come of the jobs ``first:last``, by their places among them.

    A leader that is not among them has ended before: its followers arrive as logged.

    Attributes:
        submit: [last - first] microseconds; a follower's is right once it has arrived.
    """

    def __init__(self, jobs: Jobs, first: int, last: int) -> None:
        assert jobs.follows is not None and jobs.think is not None
        follows, self._think = jobs.follows[first:last] - first, jobs.think[first:last]
        self.submit = jobs.submit[first:last].copy()
        follow = follows >= 0  # a later one than these cannot be: only who arrives can be waited for
        follow &= follows < last - first
        self._followers: dict[int, list[int]] = {}
        for job in np.flatnonzero(follow).tolist():
            self._followers.setdefault(int(follows[job]), []).append(job)
        free = np.flatnonzero(~follow)
        self._coming = sorted(zip(self.submit[free].tolist(), free.tolist(), strict=True))

    @property
    def next(self) -> int:
        """When the next job arrives, as far as is known; NEVER if none does."""
        return self._coming[0][0] if self._coming else NEVER

    def take(self) -> int:
        """Return the next job, which arrives."""
        return heapq.heappop(self._coming)[1]

    def started(self, leader: int, end: int) -> None:
        """Note that a job has started that will end then: its followers' arrivals are known."""
        for job in self._followers.pop(leader, ()):
            think = int(self._think[job])
            self.submit[job] = end + think if think >= 0 else max(end, int(self.submit[job]))
            heapq.heappush(self._coming, (int(self.submit[job]), job))
