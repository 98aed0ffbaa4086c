"""The order `lookahead` on a cluster: candidates are played forward on a copy of the scheduler and its nodes.

As `bridge.scheduler.lookahead` has it for a pool: the rule's own order, and each of its next jobs moved to
the front; the order stays as it is through the roll-out, run times are what is believed, and no job arrives.
Who becomes eligible in a roll-out stands behind. Of a calendar only the advance reservations come that are
announced by now. Jobs preempt each other; who was stopped and has not started again waits to the end.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bridge.base.arrays import Array, Ints
from bridge.base.jit import kernel
from bridge.scheduler import core
from bridge.scheduler.cluster_state import ClusterState
from bridge.scheduler.compiled import Ranker
from bridge.scheduler.eligibility import is_eligible
from bridge.scheduler.lanes import list_lanes, sort_lanes
from bridge.scheduler.lookahead import DEPTH, REACH, Lookahead
from bridge.scheduler.queue import BY_ORDER, sort_jobs
from bridge.scheduler.score import Op
from bridge.scheduler.state import INSTRUCTION, SECOND, State
from bridge.scheduler.timed_state import RUNNING, TimedState
from bridge.worlds.fast import world
from bridge.worlds.fast.foresight import forget_future
from bridge.worlds.fast.lives import worked_since
from bridge.worlds.fast.state_copies import copy_scheduler, list_copied

#: The score of jobs that join a queue whose other scores are places.
_BEHIND: Any = np.array([(Op.CONSTANT, 0, -1e15)], INSTRUCTION).view(np.recarray)


@kernel
def _list_by_program(state: ClusterState, b: int, out: Array, eligible: Array) -> None:
    """Write the waiting jobs in the order of the program, and which of them only resources hold."""
    sort_lanes(state, b)
    n = list_lanes(state, b, out)
    sort_jobs(state.jobs[b], out, state.scratch[1], n, BY_ORDER)
    for k in range(n):
        eligible[k] = is_eligible(state, b, out[k])


class SiteLookahead(Ranker):
    """Brings the waiting jobs into the order that looks best ahead."""

    def __init__(self, lookahead: Lookahead, others: Sequence[Array]) -> None:
        self._settings, self._others = lookahead, others
        self._fork: Any = None
        self._memory: world.WorldState

    def save(self) -> object:
        return None

    def restore(self, saved: object) -> None:
        pass

    def rank(self, state: State, b: int) -> None:
        """Write scores to the waiting jobs and sort them: the best of the candidates' orders."""
        any_state: Any = state
        each = [any_state, *(any_state._replace(program=one.view(np.recarray)) for one in self._others)]
        orders = [self._order(one, b) for one in each]
        if int(state.scalars[b].bad_score) >= 0:
            return
        margins = [1.0 - self._settings.margin, *(1.0 for _ in self._others)]
        costs = [margins[k] * self._cost(state, b, *order, 0) for k, order in enumerate(orders)]
        best = int(np.argmin(costs))
        which, rest = orders[best]
        least = costs[best] if best == 0 else costs[best] * (1.0 - self._settings.margin)
        front = 0
        if least > 0:
            for moved in range(1, min(len(which), self._settings.deviations + 1)):
                cost = self._cost(state, b, which, rest, moved)
                if cost < least:
                    least, front = cost, moved
        _write_scores(state.jobs[b], which, rest, front)
        core.sort_by_scores(state, b)

    def _order(self, state: Any, b: int) -> tuple[Ints, Ints]:
        """Return the waiting jobs by a program: those that only resources hold, and the others."""
        n = int(state.scalars[b].n_waiting)
        out, eligible = np.zeros(n, np.int32), np.zeros(n, np.bool_)
        _list_by_program(state, b, out, eligible)
        return out[eligible].astype(np.int64), out[~eligible].astype(np.int64)

    def _cost(self, state: State, b: int, which: Ints, rest: Ints, front: int) -> float:
        """Return the discounted growth of slowdowns if a job is moved to the front; 0: all start now."""
        fork, jobs = self._copy(state, b), state.jobs[b]
        now, until = int(state.scalars[b].now), REACH * self._settings.T * SECOND
        _write_scores(fork.jobs[0], which, rest, front)
        core.sort_by_scores(fork, 0)
        self._memory.clock[0].until = now + int(until) + 1
        while world.run_until_decision(fork, self._memory, 0, 1 << 30) == core.PAUSE:
            pass
        judged = which[:DEPTH]
        after = np.minimum(_waits(fork, judged, now, now + int(until)), until) / SECOND
        weight = 1.0 / np.maximum(np.maximum(jobs.est_wait[judged], 1) / SECOND, 10.0)
        return float((weight * self._settings.T * -np.expm1(-after / self._settings.T)).sum())

    def _copy(self, state: State, b: int) -> Any:
        """Return the present on the copy, with run times as they are believed."""
        if self._fork is None or self._fork.jobs.shape[1] != state.jobs.shape[1]:
            self._fork = copy_scheduler(state, b)
            rules = state.switches.copy()
            rules.scored_outside = rules.dynamic_order = 0
            self._fork = self._fork._replace(switches=rules, program=_BEHIND)
            self._memory = world.allocate(1, state.jobs.shape[1])
        for own, present in list_copied(self._fork, state, state.jobs.shape[1], b):
            np.copyto(own, present)
        jobs, now = self._fork.jobs[0], int(state.scalars[b].now)
        forget_future(self._fork, now, slice(None))
        jobs.run[:] = np.maximum(jobs.est_wait, 1)
        running = np.flatnonzero((jobs.start >= 0) & (jobs.end < 0))
        elapsed, length = now - worked_since(self._fork, 0, running, now), jobs.est_wait[running]
        late = elapsed >= length
        length = np.where(late, np.minimum(2 * elapsed, jobs.est_run[running]), length)
        jobs.run[running] = np.maximum(length, elapsed + SECOND)
        end = now + jobs.run[running] - elapsed
        if isinstance(self._fork, TimedState):
            self._fork.timed_switches.logs_lives = 0
            runs = self._fork.timed_jobs[0].doing[running] == RUNNING
            running, end = running[runs], end[runs]
        order = np.lexsort((jobs.serial[running], end))
        heap, n, clock = self._memory.heap[0], len(running), self._memory.clock[0]
        heap.end[:n], heap.serial[:n] = end[order], jobs.serial[running][order]
        heap.job[:n] = running[order]
        clock.arrived = clock.last = 0
        clock.pending, clock.open, clock.behind = n, 1, -1
        return self._fork


def _waits(state: Any, which: Ints, now: int, until: int) -> Ints:
    """Return how long jobs that waited at a time did not run from then to the end of a roll-out."""
    since = worked_since(state, 0, which, until)
    return np.where(since >= 0, since, until) - now


def _write_scores(jobs: Any, which: Ints, rest: Ints, front: int) -> None:
    """Let scores be places: the jobs in order, one of them at the front, and others behind."""
    jobs.score[which] = -np.arange(len(which))
    jobs.score[rest] = -np.arange(len(which), len(which) + len(rest))
    if len(which):
        jobs.score[which[front]] = 1.0
