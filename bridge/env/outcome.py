"""What became of an episode's jobs, under an agent and under the base policy, and its metric."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bridge.fast.episode import Prepared
from bridge.fast.replay import replay_sequences
from bridge.judge.metrics import bounded_slowdown
from bridge.scheduler.state import SECOND

if TYPE_CHECKING:
    from bridge.env.batch import Batch

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Episode:
    """Jobs of an episode and when they started, [L] seconds."""

    submit: Floats
    run: Floats
    start: Floats

    def value(self, metric: str) -> float:
        """Return the episode's metric, see `bridge.env.reward.Reward`."""
        wait = self.start - self.submit
        name, _, largest = metric.partition(".")
        values = wait
        if name == "bsld":
            values = bounded_slowdown(wait, self.run)
        return float(values.max() if largest else values.mean())


def episode_of(batch: "Batch", b: int) -> Episode:
    """Return what became of the jobs of a batch's episode that is over."""
    start = batch.starts_of(b)
    jobs = batch.state.jobs[b, : len(start)]
    return Episode(
        np.array(jobs["submit"]) / SECOND, np.array(jobs["run"]) / SECOND, start.astype(np.float64) / SECOND
    )


def base_values(base: Prepared, starts: Ints, length: int, metric: str) -> Floats:
    """Return the base policy's metric on the sequences of `length` jobs that begin at `starts`."""
    values = []
    for first, schedule in zip(starts.tolist(), replay_sequences(base, starts, length), strict=True):
        part = slice(first, first + length)
        submit, run = base.jobs.submit[part] / SECOND, base.jobs.run[part] / SECOND
        values.append(Episode(submit, run, schedule.start / SECOND).value(metric))
    return np.array(values)
