"""Running jobs that are believed to take other lengths as they go on, and when their beliefs change."""

import heapq

import numpy as np

from bridge.base.errors import BridgeError
from bridge.scheduler.names import CONSERVATIVE, CONSERVATIVE_KEEPS
from bridge.scheduler.protocol import Protocol
from bridge.scheduler.running_jobs import relist_running
from bridge.scheduler.state import NEVER, State
from bridge.workload.running_beliefs import RunningBeliefs


class Reestimates:
    """The changes of belief to come, of jobs that run."""

    def __init__(self, beliefs: RunningBeliefs) -> None:
        self._beliefs = beliefs
        self._due: list[tuple[int, int, int]] = []  # time, job, place among the beliefs

    @property
    def next(self) -> int:
        """When the next belief changes; NEVER if none does."""
        return self._due[0][0] if self._due else NEVER

    def started(self, job: int, start: int) -> None:
        """Note that a job has started: its beliefs will change at known times."""
        self._note(job, start, int(self._beliefs.first[job]))

    def _note(self, job: int, start: int, place: int) -> None:
        """Note a job's first change from a place among the beliefs on that lies behind its start."""
        while place < self._beliefs.first[job + 1]:
            if self._beliefs.after[place] > 0:
                heapq.heappush(self._due, (start + int(self._beliefs.after[place]), job, place))
                return
            place += 1

    def apply(self, state: State) -> None:
        """Let the scheduler believe what it is to believe next, of the jobs that still run."""
        now, jobs, changed = self.next, state.jobs[0], False
        while self.next == now:
            _, job, place = heapq.heappop(self._due)
            record = jobs[job]
            if record.end >= 0:
                continue
            record.est_run = self._beliefs.total[place]
            record.est_end = record.start + record.est_run
            self._note(job, int(record.start), place + 1)
            changed = True
        if changed:
            running = np.flatnonzero((jobs.start >= 0) & (jobs.end < 0))
            relist_running(state, 0, running[np.argsort(jobs.serial[running])])


def check(protocol: Protocol, backfill: int, on_nodes: bool) -> None:
    """Raise BridgeError where beliefs of running jobs cannot change."""
    where = "estimator progress(FILE)"
    if protocol.name != "standard":
        what = f"protocol {protocol.name!r} has one belief for a whole run"
        raise BridgeError(what, where=where, remedy="Use the standard protocol.")
    if backfill in {CONSERVATIVE, CONSERVATIVE_KEEPS}:
        what = "conservative backfilling keeps its bookings from pass to pass"
        raise BridgeError(what, where=where, remedy="Use easy or none.")
    if on_nodes:
        what = "on the nodes of a cluster beliefs do not change"
        raise BridgeError(what, where=where, remedy="Leave out --cluster: all nodes are then one pool.")
