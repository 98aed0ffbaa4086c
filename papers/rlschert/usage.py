"""How a pool was used, step by step: units that idle, jobs that wait, resource holes (both at once)."""

from dataclasses import dataclass

import numpy as np

from bridge.base.arrays import Ints
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.pool.schedule import PoolSchedule


@dataclass(frozen=True)
class Usage:
    """A pool until its last job has ended: [T] idle units, and [T] jobs that wait, booked or not."""

    idle: Ints
    waiting: Ints

    @property
    def holes(self) -> Ints:
        """[T] units that idled while a job waited (RLSchert, Section 4.6.1)."""
        return np.where(self.waiting > 0, self.idle, 0)


def usage(schedule: PoolSchedule, units: int) -> Usage:
    """Return how a pool was used, by killed attempts too; all jobs have ended.

    BridgeError: a job did not end, or more attempts were killed than are remembered.
    """
    if not schedule.ended.all():
        left = counted(int(np.count_nonzero(~schedule.ended)), "job")
        raise BridgeError(f"{left} did not end", where="usage of a pool")
    if schedule.kills.sum() > len(schedule.attempts):
        raise BridgeError("more attempts were killed than are remembered", where="usage of a pool")
    of = np.concatenate((np.arange(len(schedule.id)), schedule.attempts["job"]))
    start = np.concatenate((schedule.start, schedule.attempts["start"]))
    end = np.concatenate((schedule.end, schedule.attempts["end"]))
    steps = int(schedule.end.max(initial=0))
    running = _level(start, end, np.ones(len(of), np.int64), steps)
    in_system = _level(schedule.submit, schedule.end, np.ones(len(schedule.id), np.int64), steps)
    return Usage(units - _level(start, end, schedule.units[of], steps), in_system - running)


def _level(begin: Ints, end: Ints, height: Ints, steps: int) -> Ints:
    """Return the sum of heights over what lasts from `begin` to before `end`, in each step."""
    change = np.zeros(steps + 1, np.int64)
    np.add.at(change, begin, height)
    np.add.at(change, end, -height)
    return np.cumsum(change)[:-1]
