"""Numbers of RLSchert's page: means over all jobs with intervals over sequences, and how they are written."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pandas as pd

from bridge.judge.stats import Estimate, mean_ci, verdict
from papers.rlschert.rows import BASE, Sample

Floats = npt.NDArray[np.float64]
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


def as_printed(ours: float, paper: str) -> bool:
    """Tell whether a number is the printed one, to its last digit."""
    return f"{ours:.{len(paper.partition('.')[2])}f}" == paper


# How it is written.


def cell(found: pd.DataFrame, metric: str, counts: str = "jobs") -> str:
    """Return a mean with its interval."""
    if not len(found):
        return "not run"
    e = estimate(found, metric, counts=counts)
    return f"{e.mean:.2f} [{e.low:.2f}, {e.high:.2f}]"


def difference(e: Estimate) -> str:
    """Return a difference with its interval."""
    return f"{e.mean:+.2f} [{e.low:+.2f}, {e.high:+.2f}]"


def against(e: Estimate, base: str = BASE.row) -> str:
    """Return in words whether a difference, lower being better, is one."""
    said = verdict(e)
    return f"{said} {'from' if said == 'not distinguishable' else 'than'} {base}"


def smoke_of(found: pd.DataFrame) -> int:
    """Return the epochs of smoke rows, 0 if there are none."""
    return int(found["smoke"].max()) if len(found) else 0


def seeds_of(found: Iterable[pd.DataFrame], *, learns: bool) -> str:
    """Return a cell that tells how many seeds there are of each of some results."""
    if not learns:
        return "none needed"
    found = list(found)
    smoke = max((smoke_of(one) for one in found), default=0)
    counts = sorted({len(one) for one in found})
    return "–".join(map(str, counts)) + (f" (smoke: {smoke} epochs)" if smoke else "")


def smoke_warning(smoke: int) -> str:
    """Return a sentence that marks a smoke row, or nothing."""
    return f" A smoke row: {smoke} epochs show that it runs, no more." if smoke else ""


def markdown(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """Return the lines of a table, and an empty one."""
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines] + [""]
