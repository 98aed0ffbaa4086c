"""Where episodes come from: a workload, the part of it they are drawn from, and their first jobs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bridge.base.arrays import Ints
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.scheduler.state import SECOND
from bridge.workload.catalogue import resolve
from bridge.workload.formats import read
from bridge.workload.select import Jobs
from bridge.workload.table import Workload
from bridge.worlds.fast.scheduler_config import SchedulerConfig


def jobs_of(workload: str | Path | Workload | Jobs, setup: SchedulerConfig) -> Jobs:
    """Return the jobs of a log (path or name), selected by a setup's rules; BridgeError: none is left."""
    if isinstance(workload, Jobs):
        return workload
    if not isinstance(workload, Workload):
        workload = read(resolve(workload))
    return setup.select(workload)


def constants_of(jobs: Jobs) -> dict[str, float]:
    """Return what features may use of the training workload: ``max_run``, its longest actual run, seconds."""
    return {"max_run": float(jobs.run.max()) / SECOND}


def part_bounds(jobs: int, part: tuple[float, float]) -> tuple[int, int]:
    """Return the first job of a part of a workload, and the one behind its last."""
    return round(jobs * part[0]), round(jobs * part[1])


class EpisodeStarts:
    """Draws the first jobs of episodes: at random from a part of a workload, or from a list, again and again.

    Of `jobs` jobs, L = `length` an episode, whole episodes are drawn from `part` (fractions of the workload
    in submission order), or `listed` ones taken in this order; BridgeError: one does not fit.
    """

    def __init__(
        self,
        jobs: int,
        length: int,
        part: tuple[float, float] = (0.0, 1.0),
        listed: Sequence[int] | None = None,
    ) -> None:
        if length < 1:
            raise BridgeError("an episode has at least one job", where=f"length {length}")
        low, high = part
        if not 0 <= low < high <= 1:
            raise BridgeError(
                f"part cannot be {tuple(part)}",
                remedy="Two fractions of the workload, ascending: (0.0, 0.5).",
            )
        self.low, end = part_bounds(jobs, part)
        self.high = end - length  # the last start
        if listed is None and self.high < self.low:
            raise BridgeError(
                f"a part of {counted(end - self.low, 'job')} holds no episode of {length}",
                remedy="Use a longer log, a larger part or a smaller length.",
            )
        self.listed = None if listed is None else _whole(listed)
        self._next = 0
        if self.listed is not None:
            outside = self.listed[(self.listed < 0) | (self.listed > jobs - length)]
            if len(outside) or not len(self.listed):
                raise BridgeError(
                    f"no episode of {counted(length, 'job')} there" if len(outside) else "starts is empty",
                    where=f"starts {outside.tolist()}",
                    remedy=f"First jobs are numbered 0 to {jobs - length}.",
                )

    def rewind(self) -> None:
        """Begin the list again."""
        self._next = 0

    def draw(self, n: int, rng: np.random.Generator) -> Ints:
        if self.listed is None:
            return rng.integers(self.low, self.high + 1, n)
        which = (self._next + np.arange(n)) % len(self.listed)
        self._next = int(which[-1] + 1) if n else self._next
        return self.listed[which]


def _whole(listed: object) -> Ints:
    numbers = np.asarray(listed).reshape(-1)
    if len(numbers) and numbers.dtype.kind not in "iu":
        remedy = "A list of whole numbers: first jobs, counted from 0."
        raise BridgeError(f"starts cannot be {listed!r:.60}", where="environment", remedy=remedy)
    return numbers.astype(np.int64)
