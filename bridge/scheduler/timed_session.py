"""A scheduler on a cluster that changes in time, driven from outside: see `ClusterSession`."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bridge.base.arrays import Ints
from bridge.scheduler.calendar import apply_due_now
from bridge.scheduler.cluster_session import ClusterSession, SiteJobs
from bridge.scheduler.cluster_state import GONE_CANCELLED
from bridge.scheduler.timed_state import CANCEL, FAILED_REQUEUED, PREEMPTED, PREEMPTED_REQUEUED, RUNNING


class StoppedLife(NamedTuple):
    """A life of a job that was cut short; `waits_again`: else the job is over."""

    job: int
    waits_again: bool


class TimedSession(ClusterSession):
    """A `ClusterSession` whose nodes fail and return, and whose running jobs may be stopped.

    Of each instant a world first tells which jobs ended; then `apply_due` lets the calendar happen; then come
    submissions, and passes. After each of these two `stops` lists the lives that were cut short.
    """

    def __init__(self, site: SiteJobs) -> None:
        super().__init__(site)
        self._cancels = bool((site.state.events.kind == CANCEL).any())
        self._rejected = np.zeros(self.n_jobs, np.bool_)

    def apply_due(self) -> bool:
        """Let graces end and the calendar's events of this instant happen; tell whether there were any."""
        state: Any = self.state
        return apply_due_now(state, 0) > 0

    def starts(self) -> list[int]:
        """Return the jobs started since the last call, in order; not those that were stopped at once."""
        state: Any = self._state
        return [j for j in super().starts() if state.timed_jobs.doing[0, j] == RUNNING]

    def _note_nodes(self, started: Sequence[int]) -> None:
        for j in started:
            self._nodes[j], self._units[j] = self._read_nodes(j)

    def _read_nodes(self, j: int) -> tuple[Ints, dict[int, int]]:
        """Return the nodes that a job has, and how many vectors of its demand on those that it may share."""
        state: Any = self._state
        nodes: list[int] = []
        units: dict[int, int] = {}
        entry = int(state.node_jobs.allocation[0, j])
        while entry >= 0:
            node = int(state.entry_node[0, entry])
            nodes.append(node)
            if not self.site.counted[state.entry_class[0, entry]]:
                units[node] = int(state.entry_units[0, entry])
            entry = int(state.entry_next[0, entry])
        return np.array(sorted(nodes), np.int64), units

    def stops(self) -> list[StoppedLife]:
        """Return the lives that were cut short since the last call, in order."""
        state: Any = self.state
        log = state.life_log[0, : state.timed_scalars.n_lives[0]]
        cut = log[(log.outcome >= PREEMPTED) & (log.outcome <= FAILED_REQUEUED)]
        stopped = [StoppedLife(int(row.job), bool(row.outcome >= PREEMPTED_REQUEUED)) for row in cut]
        self.site.lives.collect()
        return stopped

    def episode(self, j: int) -> int:
        """Return which run of its job the present life is, from 0."""
        state: Any = self._state
        return int(state.timed_jobs.episode[0, j])

    def cancelled(self) -> list[int]:
        """Return the waiting jobs that the calendar has cancelled since the last call."""
        if not self._cancels:
            return []
        state: Any = self.state
        gone = (state.node_jobs.gone[0] == GONE_CANCELLED) & ~self._rejected
        self._rejected |= gone
        return [int(j) for j in np.flatnonzero(gone)]
