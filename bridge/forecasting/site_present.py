"""The present of a cluster: the scheduler's own arrays at a time, from a replay up to then."""

from dataclasses import replace
from typing import Any

import numpy as np

from bridge.base.arrays import Ints
from bridge.forecasting.state import LENGTHS, MachineState, SitePresent
from bridge.forecasting.timeline import Timeline
from bridge.scheduler.cluster_state import NOT_GONE
from bridge.scheduler.state import SECOND
from bridge.scheduler.timed_state import RUNNING, SUSPENDED, WAITING, TimedState
from bridge.worlds.fast import episode, world
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.lives import worked_since
from bridge.worlds.fast.replay import play


class SiteReplay:
    """A replay on a cluster that goes on from time to time."""

    def __init__(self, prepared: Scenario) -> None:
        prepared.compiled.refuse_action("forecasts")
        self._prepared, n = prepared, len(prepared.jobs)
        window = 1 if prepared.compiled.chooser is None else n
        self._state: Any = episode.allocate(prepared, 1, n, window=window)
        self._memory = world.allocate(1, n)
        episode.load_episode(self._state, self._memory, 0, prepared, 0, n)

    def advance(self, time: int) -> SitePresent:
        """Go on until all that happens at a time (µs, ascending) has happened."""
        state, memory = self._state, self._memory
        memory.clock[0].until = time + 1
        play(state, memory, self._prepared)
        arrived = int(memory.clock[0].arrived)
        rows, jobs = state.node_jobs[0][:arrived], state.jobs[0][:arrived]
        runs = (jobs.start >= 0) & (jobs.end < 0)
        waits = (jobs.start < 0) & (rows.gone == NOT_GONE)
        if isinstance(state, TimedState):
            doing = state.timed_jobs[0][:arrived].doing
            runs, waits = (doing == RUNNING) | (doing == SUSPENDED), doing == WAITING
        which = np.concatenate((np.flatnonzero(runs), np.flatnonzero(waits)))
        return SitePresent(self._prepared, state, memory, which, arrived)


class SiteTimeline(Timeline):
    """States of a replay on a cluster; a state holds until the next one is asked for."""

    def rewind(self) -> None:
        super().rewind()
        self._replay = SiteReplay(self.prepared)

    def state(self, time: int) -> tuple[MachineState, Ints]:
        present = self._replay.advance(time)
        prepared, jobs, which = self.prepared, self.prepared.jobs, present.which
        start = worked_since(present.state, 0, which, time)
        n_running = int((start >= 0).sum())
        believed: dict[str, Any] = {name: getattr(prepared.estimate, name)[which] for name in LENGTHS}
        demand, listed = jobs.demand[which], which.tolist()
        state = MachineState(
            now=time,
            resources=jobs.resources,
            capacity=jobs.capacity,
            free=jobs.capacity - demand[:n_running].sum(axis=0),
            id=tuple([self._ids[j] for j in listed]),
            submit=jobs.submit[which],
            start=start,
            request=jobs.request[which],
            demand=demand,
            lengths=replace(prepared.estimate, **believed),
            n_running=n_running,
            user=tuple([self._names[j] for j in listed]),
            partition=prepared.partition[which],
            levels=self.levels,
            quantiles=self._quantiles[which],
            longest=float(prepared.estimate.order.max()) / SECOND,
            policy=self._policy,
            settled=True,
            site=present,
        )
        return state, which
