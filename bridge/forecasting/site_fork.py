"""Futures of a cluster: copies of the scheduler's arrays, nodes and rules among them, played forward.

A future knows of no later arrivals, of no failures, returns and changes of the calendar after now, and of the
advance reservations that are announced by now. Jobs that end succeed.
"""

from contextlib import nullcontext
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np

from bridge.base.arrays import Ints
from bridge.base.errors import BridgeError
from bridge.base.jit import kernel
from bridge.forecasting.fork import Fork, policy_of
from bridge.forecasting.slurm_fork import SlurmFork
from bridge.forecasting.state import MachineState
from bridge.scheduler import core
from bridge.scheduler.cluster_state import ClusterState
from bridge.scheduler.compiled import CompiledPolicy, compile_policy
from bridge.scheduler.protocol import protocol
from bridge.scheduler.state import NEVER
from bridge.scheduler.timed_state import TimedState
from bridge.worlds.fast import world
from bridge.worlds.fast.foresight import forget_future
from bridge.worlds.fast.site_lookahead import SiteLookahead
from bridge.worlds.fast.state_copies import copy_scheduler, list_copied

#: Priorities by use know one history at a time.
_ONE_HISTORY = Lock()
#: Passes between two looks whether all that were wanted have started.
_PASSES = 32


@kernel
def _begin(state: ClusterState, b: int) -> None:
    core.begin_pass(state, b)


class SiteFork:
    """The futures of one state of a cluster under one policy; see `bridge.forecasting.fork.Fork`."""

    def __init__(self, state: MachineState, policy: str = "") -> None:
        assert state.site is not None
        own = state.site.scenario.compiled
        self._is_own = policy_of(policy or state.policy) == policy_of(state.policy)
        self.compiled: CompiledPolicy = own
        if not self._is_own:
            chosen = policy_of(policy)
            self.compiled = compile_policy(chosen, protocol("standard"), on_nodes=True)
            self.compiled.refuse_action("forecasts")
            if self.compiled.order.by_priority:
                what = "its priorities come from a history of use that the run did not count"
                raise BridgeError(what, where=f"policy {policy!r}", remedy="Replay the log under it.")
            rules = self.compiled.rules.copy()
            rules["dynamic_order"] = 1  # what waits was sorted by the run's own order
            ahead, others = self.compiled.order.lookahead, self.compiled.order.others
            ranker = None
            if ahead is not None:
                ranker = SiteLookahead(ahead, others)
            self.compiled = replace(self.compiled, rules=rules, priorities=ranker)
        self.load(state)

    def load(self, state: MachineState) -> None:
        """Take another state of the same replay."""
        site = state.site
        assert site is not None
        self.state, self._site = state, site
        self._present, n = copy_scheduler(site.state), site.arrived
        forget_future(self._present, state.now, site.which)
        if isinstance(self._present, TimedState):
            waits = site.which[self._present.jobs[0].start[site.which] < 0]
            self._present.timed_jobs[0].first_start[waits] = -1  # what the future is read by
        self._future: Any = self.compiled.install_in(copy_scheduler(self._present))
        self._memory = world.allocate(1, len(site.scenario.jobs))
        self._pairs = [*list_copied(self._future, self._present, n)]
        self._ranking = None if self.compiled.priorities is None else self.compiled.priorities.save()

    def simulate_futures(self, runs: Ints, wanted: Ints | None = None) -> Ints:
        """Play one future per row of run times [F, n]; see `bridge.forecasting.fork.Fork`."""
        with _ONE_HISTORY if self.compiled.priorities is not None else nullcontext():
            return self._simulate(runs, wanted)

    def _simulate(self, runs: Ints, wanted: Ints | None) -> Ints:
        state = self.state
        runs = np.ascontiguousarray(runs, np.int64)
        if runs.shape[1:] != (len(state),) or np.any(runs <= state.elapsed):
            raise BridgeError("run times of a future must be longer than what has run", where="fork")
        wanted = state.waiting if wanted is None else np.asarray(wanted, np.int64)
        starts = np.full(runs.shape, NEVER, np.int64)
        waiting = self._site.which[state.n_running :]
        for row, times in zip(starts, runs, strict=True):
            self._restart(times)
            self._play(self._site.which[wanted])
            first = self._first_starts()[waiting]
            row[state.n_running :] = np.where(first >= 0, first, NEVER)
        if self.compiled.priorities is not None:
            self.compiled.priorities.restore(self._ranking)
        return starts

    def _first_starts(self) -> Ints:
        future = self._future
        is_timed = isinstance(future, TimedState)
        starts: Ints = future.timed_jobs[0].first_start if is_timed else future.jobs[0].start
        return starts

    def _restart(self, runs: Ints) -> None:
        """Bring the future back to the present, with other run times."""
        for own, present in self._pairs:
            np.copyto(own, present)
        if self.compiled.priorities is not None:
            self.compiled.priorities.restore(self._ranking)
        future, clock, which = self._future, self._memory.clock[0], self._site.which
        future.jobs[0].run[which] = runs
        records, of = self._site.others
        future.jobs[0].run[list(records)] = runs[list(of)]
        pending = self._site.memory.heap[0].job[: int(self._site.memory.clock[0].pending)]
        jobs = future.jobs[0]
        end = jobs.start[pending] + jobs.run[pending]
        if isinstance(future, TimedState):
            end += future.timed_jobs[0].stood[pending]
        order = np.lexsort((jobs.serial[pending], end))
        heap = self._memory.heap[0]
        n = len(pending)
        heap.end[:n], heap.serial[:n] = end[order], jobs.serial[pending][order]
        heap.job[:n] = pending[order]
        clock.arrived = clock.last = self._site.arrived
        clock.pending, clock.open, clock.until, clock.behind = n, 0, NEVER, -1
        if not (self._is_own and self.state.settled):
            future.scalars.now[0] = self.state.now
            _begin(future, 0)
            clock.open = 1

    def _play(self, wanted: Ints) -> None:
        """Play until the wanted jobs have started, or nothing happens any more."""
        future, memory = self._future, self._memory
        while (self._first_starts()[wanted] < 0).any():
            kind = world.run_until_decision(future, memory, 0, _PASSES)
            if int(future.scalars.bad_score[0]) >= 0:
                name = self.compiled.order.name
                raise BridgeError("the score of a job is not a finite number", where=f"order {name!r}")
            if self.compiled.decide(future, 0, kind):
                continue
            if kind != core.PAUSE:
                return


def open_fork(state: MachineState, policy: str = "") -> Fork | SiteFork | SlurmFork:
    """Return the futures of a state under a policy, of a pool or of a cluster, or by a Slurm itself."""
    if state.own is not None and not policy:
        return SlurmFork(state)
    return Fork(state, policy) if state.site is None else SiteFork(state, policy)
