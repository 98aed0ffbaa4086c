"""Numbers of RLSchert's page: means over all jobs with intervals over sequences, and how they are written."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from bridge.base.arrays import Floats
from bridge.judge.stats import ConfidenceInterval, block_bootstrap, verdict
from bridge.pool.study_rows import linear
from papers.rlschert.contestants import BASE

COMMAND = "python -m papers rlschert"


def mean_of(rows: pd.DataFrame, column: str) -> Floats:
    """Return an array of numbers, one per sequence say: the mean over the seeds."""
    return np.asarray(np.mean(np.stack([np.asarray(v, np.float64) for v in rows[column]]), axis=0))


def estimate(
    rows: pd.DataFrame, metric: str, base: pd.DataFrame | None = None, counts: str = "jobs"
) -> ConfidenceInterval:
    """Return the mean over all jobs, which the paper prints, or its difference to the base's.

    Sequences are what is drawn, jobs are not independent; so the interval is that of a ratio of two sums over
    sequences, by its linearised values, sequence by sequence, which are independent, 95 %. `metric`: a column
    of sums; `counts`: the column of what is counted.
    """
    values = linear(mean_of(rows, metric), mean_of(rows, counts))
    if base is not None:
        values = values - linear(mean_of(base, metric), mean_of(base, counts))
    return block_bootstrap(values, 1)


# How it is written.


def cell(e: ConfidenceInterval, sign: str = "") -> str:
    held = f"[{e.low:{sign}.2f}, {e.high:{sign}.2f}]{e.mark}" if e.kind else "(no interval)"
    return f"{e.mean:{sign}.2f} {held}"


@dataclass(frozen=True)
class Difference:
    """A difference, lower being better: in words, ``better than SAF``, and in numbers with its interval."""

    verdict_text: str
    text: str

    def __str__(self) -> str:
        return f"{self.verdict_text} ({self.text})"


@dataclass(frozen=True)
class RowResults:
    """A contestant's results, a line a seed, as text; false where there are none."""

    rows: pd.DataFrame

    def __len__(self) -> int:
        return len(self.rows)

    def mean(self, metric: str, counts: str = "jobs") -> float:
        return estimate(self.rows, metric, counts=counts).mean

    def cell(self, metric: str, counts: str = "jobs") -> str:
        return cell(estimate(self.rows, metric, counts=counts))

    def against(self, base: "RowResults", metric: str, whom: str = BASE, counts: str = "jobs") -> Difference:
        e = estimate(self.rows, metric, base.rows, counts)
        judgement = verdict(e)
        verdict_text = (
            judgement
            if e.kind is None
            else f"{judgement} {'from' if judgement == 'not distinguishable' else 'than'} {whom}"
        )
        return Difference(verdict_text, cell(e, "+"))


def look(data: pd.DataFrame, row: str) -> RowResults:
    return RowResults(data[data["row"] == row].sort_values("seed") if len(data) else data)


def seeds_of(results: RowResults) -> str:
    return "–" if len(results) and not results.rows["seed"].any() else f"{len(results)}"
