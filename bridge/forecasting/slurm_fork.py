"""Futures of a real Slurm's queue under its own schedulers: the protocol `slurm`, from the present on.

A future knows of no later arrivals. Slurm's passes come at its own times, from a random begin in each future.
Priorities stay as they are.
"""

from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from bridge.base.arrays import Ints
from bridge.base.errors import BridgeError
from bridge.scheduler.slurm.controller import Controller
from bridge.scheduler.slurm.jobs import DONE, SlurmJob
from bridge.scheduler.state import NEVER, SECOND
from bridge.worlds.fast.slurm.log_replay import FREE_DELAY, UsualDelays
from bridge.worlds.fast.slurm.own_clock import OwnClock

if TYPE_CHECKING:
    from bridge.forecasting.state import MachineState


#: Kernels of all futures write to the one site.
_ONE_FUTURE = Lock()


class _Future(UsualDelays):
    """One future; `runs`: run time by key, s; `wanted`: keys of jobs with whose last start it ends."""

    stops_at_starts = True

    def __init__(self, slurm: Controller, epoch: int, runs: dict[int, float], wanted: set[int]) -> None:
        super().__init__(slurm.site, slurm, epoch)
        self._times, self._wanted = runs, wanted
        self.starts: dict[int, float] = {}
        for job in (*slurm.pending.values(), *slurm.running.values()):
            self.expect(job)
        for job in slurm.running.values():
            work = self.work_of(job)
            self.let_run(job, 0.0, max((work if work >= 0 else job.limit) - (epoch - job.start), 0.0))
        for job in slurm.jobs.values():
            if job.state == DONE and job.completing:
                self.push(FREE_DELAY, "free", (job, job.nodes, True, False, False))

    def work_of(self, job: SlurmJob) -> float:
        return self._times.get(job.key, -1.0)

    def exit_code(self, job: SlurmJob) -> int:
        del job
        return 0

    def on_start(self, job: SlurmJob, who: str, time: float) -> None:
        del who
        self.starts.setdefault(job.key, time)
        self._wanted.discard(job.key)

    def _is_over(self) -> bool:
        return not self._wanted


class SlurmFork:
    """The futures of one state of a Slurm; see `bridge.forecasting.fork.Fork`."""

    def __init__(self, state: "MachineState") -> None:
        self.load(state)

    def load(self, state: "MachineState") -> None:
        """Take another state."""
        assert state.own is not None
        self.state, self._own = state, state.own

    def simulate_futures(self, runs: Ints, wanted: Ints | None = None) -> Ints:
        """Play one future per row of run times [F, n]; see `bridge.forecasting.fork.Fork`."""
        state = self.state
        runs = np.ascontiguousarray(runs, np.int64)
        if runs.shape[1:] != (len(state),) or np.any(runs <= state.elapsed):
            raise BridgeError("run times of a future must be longer than what has run", where="fork")
        targets = {*(state.waiting if wanted is None else np.asarray(wanted, np.int64)).tolist()}
        place = {name: j for j, name in enumerate(state.id)}
        starts, epoch = np.full(runs.shape, NEVER, np.int64), state.now // SECOND
        for seed, (row, times) in enumerate(zip(starts, (runs / SECOND).tolist(), strict=True)):
            with _ONE_FUTURE:
                self._play(seed, row, times, place, targets, epoch)
        return starts

    def _play(
        self, seed: int, row: Ints, times: list[float], place: dict[str, int], targets: set[int], epoch: int
    ) -> None:
        """Play one future with these run times [n], s, and write the starts of its jobs to `row`."""
        slurm, labels = self._own.build()
        of_key = {key: place[label] for key, label in labels.items() if label in place}
        keys = {key for key, j in of_key.items() if key in slurm.pending and j in targets}
        future = _Future(slurm, epoch, {key: times[j] for key, j in of_key.items()}, keys)
        if keys:
            clock = OwnClock.of_site(slurm.site, 0.0, seed)
            clock.tell(0.0, asks=True, at_once=False)
            future.play_freely(clock)
        for key, time in future.starts.items():
            if key in of_key:
                row[of_key[key]] = max(round((epoch + time) * SECOND), self.state.now)
