"""Numbers of RLSchert's page: means over all jobs with intervals over sequences, and how they are written."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bridge.arrays import Floats
from bridge.judge.stats import Estimate, mean_ci, verdict
from papers.rlschert.study import BASE, Method, Sample, row_of

COMMAND = "python -m papers rlschert"


def results(data: pd.DataFrame, row: str, sample: Sample, label: str) -> pd.DataFrame:
    """Return a contestant's results on some sequences, one per seed."""
    if not len(data):
        return data
    mine = (data["row"] == row) & (data["test"] == sample.name) & (data["label"] == label)
    return data[mine].sort_values("seed")


def mean_of(found: pd.DataFrame, column: str) -> Floats:
    """Return an array of numbers, one per sequence say: the mean over the seeds."""
    return np.asarray(np.mean(np.stack([np.asarray(v, np.float64) for v in found[column]]), axis=0))


def linear(sums: Floats, counts: Floats) -> Floats:
    """Return numbers, one per sequence, whose mean is Σ sums / Σ counts.

    Their spread is that of the ratio, linearised (Cochran, Sampling Techniques, 1977, §6.4).
    """
    ratio = sums.sum() / counts.sum()
    return np.asarray(ratio + (sums - ratio * counts) / counts.mean())


def estimate(
    found: pd.DataFrame, metric: str, base: pd.DataFrame | None = None, counts: str = "jobs"
) -> Estimate:
    """Return the mean over all jobs, which the paper prints, or its difference to the base's.

    Sequences are what is drawn, jobs are not independent; so the interval is that of a ratio of two sums over
    sequences: Student's t on its linearised values, sequence by sequence, 95 %.

    Args:
        found: `results` of one contestant.
        metric: ``slowdown`` or ``completion``, or another column of sums.
        base: of another one on the same sequences.
        counts: the column of what is counted.
    """
    values = linear(mean_of(found, metric), mean_of(found, counts))
    if base is not None:
        values = values - linear(mean_of(base, metric), mean_of(base, counts))
    return mean_ci(values)


# How it is written.


@dataclass(frozen=True)
class Apart:
    """A difference, lower being better: in words, ``better than SAF``, and in numbers with its interval."""

    said: str
    text: str

    def __str__(self) -> str:
        return f"{self.said} ({self.text})"


@dataclass(frozen=True)
class Found:
    """A contestant's `results`, as text; false where there are none."""

    rows: pd.DataFrame

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def smoke(self) -> int:
        """Epochs of smoke rows, 0 if there are none."""
        return int(self.rows["smoke"].max()) if len(self) else 0

    @property
    def warning(self) -> str:
        """A sentence that marks a smoke row, or nothing."""
        return f" A smoke row: {self.smoke} epochs show that it runs, no more." if self.smoke else ""

    def mean(self, metric: str, counts: str = "jobs") -> float:
        """Return the mean over all jobs."""
        return estimate(self.rows, metric, counts=counts).mean

    def cell(self, metric: str, counts: str = "jobs") -> str:
        """Return the mean with its interval."""
        if not len(self):
            return "not run"
        e = estimate(self.rows, metric, counts=counts)
        return f"{e.mean:.2f} [{e.low:.2f}, {e.high:.2f}]"

    def against(self, base: "Found", metric: str, whom: str = BASE.row, counts: str = "jobs") -> Apart:
        """Return the difference to somebody on the same sequences."""
        e = estimate(self.rows, metric, base.rows, counts)
        told = verdict(e)
        said = f"{told} {'from' if told == 'not distinguishable' else 'than'} {whom}"
        return Apart(said, f"{e.mean:+.2f} [{e.low:+.2f}, {e.high:+.2f}]")


def look(
    data: pd.DataFrame, method: Method, sample: Sample, label: str, objective: str = "slowdown"
) -> Found:
    """Return a method's results; agents have learnt for the objective."""
    return Found(results(data, row_of(method, objective), sample, label))


def seeds_of(found: Iterable[Found], *, learns: bool) -> str:
    """Return a cell that tells how many seeds there are of each of some results."""
    if not learns:
        return "none needed"
    found = list(found)
    smoke = max((one.smoke for one in found), default=0)
    counts = sorted({len(one) for one in found})
    return "–".join(map(str, counts)) + (f" (smoke: {smoke} epochs)" if smoke else "")


def not_run(method: Method, command: str = COMMAND) -> str:
    """Return what is said of somebody who has not played."""
    return f'{method.row}: not run; `{command} --row "{method.row}"`.'
