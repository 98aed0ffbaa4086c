"""What became of jobs under a rule of action, which may stop and suspend them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.base.arrays import Array, Ints
from bridge.scheduler.action_state import LIFE_ENTRY

#: What is noted of each job, see `JobLives`.
OF_JOB = ("first_start", "occupied", "lost", "stops", "suspensions", "progress", "idle")


@dataclass(frozen=True)
class JobLives:
    """The lives of n jobs, in order of submission. Times in microseconds.

    Attributes:
        first_start: [n] when its first life began, or -1.
        occupied: [n] how long it had nodes of its own, suspensions included.
        lost: [n] how long it ran without progress that was kept, the costs of its stops included.
        stops: [n] lives that were cut short.
        suspensions: [n] how often its nodes were lent.
        progress: [n] of its run, by the lives before the last.
        idle: [n] how long its last life did not work: its cost at the beginning, and suspensions.
        log: LIFE_ENTRY [lives], each job's lives in order of their ends; None if nobody collected it.
    """

    first_start: Ints
    occupied: Ints
    lost: Ints
    stops: Ints
    suspensions: Ints
    progress: Ints
    idle: Ints
    log: Array | None = None


def read_lives(state: Any, b: int, n: int) -> JobLives:
    """Return what became of an episode's first `n` jobs."""
    row = state.lives[b][:n]
    columns = {name: np.array(row[name], np.int64) for name in OF_JOB if name != "idle"}
    return JobLives(**columns, idle=np.array(row["overhead"] + row["suspended"], np.int64))


class LifeLog:
    """Collects the log of lives of scheduler 0, which has room for so many only."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self._parts: list[Array] = []
        state.acts.keeps_log[0] = 1

    def collect(self) -> None:
        """Read what the scheduler has noted since."""
        n = int(self._state.acts.n_log[0])
        self._parts.append(np.array(self._state.life_log[0][:n]))
        self._state.acts.n_log[0] = 0

    def entries(self) -> Array:
        """Return all that was collected: LIFE_ENTRY [lives]."""
        return np.concatenate([np.zeros(0, LIFE_ENTRY), *self._parts])
