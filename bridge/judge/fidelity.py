"""How far replayed waits are from the recorded ones: over all jobs, and job by job.

The mean and Wasserstein's distance hang on the few jobs that wait longest, and distributions may agree where
every job waits otherwise: what a verdict stands on is paired, the mean difference of logarithms.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bridge.base.arrays import Floats
from bridge.base.counted import counted
from bridge.base.errors import BridgeError

if TYPE_CHECKING:
    import pandas as pd

#: Added to a wait before its logarithm is taken, s: below it differences hardly matter.
SOFTENING = 60.0
#: A start counts as met within so many seconds.
WITHIN = (60, 600, 3600)


@dataclass(frozen=True)
class WaitDistance:
    """How far waits are from the recorded ones; times in s. None: not defined.

    Attributes:
        jobs: jobs that are compared.
        recorded_mean, replayed_mean: of their waits.
        bias: replayed mean / recorded mean − 1.
        wasserstein: Wasserstein-1, mean difference of the sorted waits.
        wasserstein_relative: the same in recorded means; never below |bias|.
        log_mae: mean |log10(60 s + replayed) − log10(60 s + recorded)|, job by job.
        rank_correlation: Spearman's.
        within: seconds → share of the jobs that start as close to their recorded start.
    """

    jobs: int
    recorded_mean: float
    replayed_mean: float
    bias: float | None
    wasserstein: float
    wasserstein_relative: float | None
    log_mae: float
    rank_correlation: float | None
    within: Mapping[str, float]


#: What a `WaitDistance` measures.
MEASURES = tuple(f.name for f in fields(WaitDistance))[3:]


def log_errors(replayed: Floats, recorded: Floats) -> Floats:
    """Return each job's |log10(60 s + replayed) − log10(60 s + recorded)|: [n]."""
    errors: Floats = np.abs(np.log10(SOFTENING + replayed) - np.log10(SOFTENING + recorded))
    return errors


def wait_distance(replayed: Floats, recorded: Floats) -> WaitDistance:
    """Return how far waits [n] are from the recorded ones of the same jobs, s; BridgeError: none."""
    if len(recorded) == 0:
        raise BridgeError("no job has a recorded wait to compare with")
    off = np.abs(replayed - recorded)
    return WaitDistance(
        *_of_distributions(replayed, recorded),
        log_mae=float(log_errors(replayed, recorded).mean()),
        rank_correlation=rank_correlation(replayed, recorded),
        within={str(seconds): float((off <= seconds).mean()) for seconds in WITHIN},
    )


def null_distance(before: Floats, recorded: Floats) -> WaitDistance:
    """Return how far the waits of the part before [m] are as a forecast of the recorded ones [n], s.

    Nothing is simulated. Distributions are compared by their quantiles; job by job the forecast is the median
    of the waits before, the same for all, so that ranks are not defined.
    """
    if len(before) == 0:
        raise BridgeError("no job before has a recorded wait to forecast from")
    n = len(recorded)
    spread = np.quantile(before, (np.arange(n) + 0.5) / n)
    paired = wait_distance(np.full(n, np.median(before)), recorded)
    jobs, recorded_mean, _, _, wasserstein, relative = _of_distributions(spread, recorded)
    mean = float(before.mean())
    bias = mean / recorded_mean - 1 if recorded_mean > 0 else None
    return WaitDistance(
        jobs, recorded_mean, mean, bias, wasserstein, relative, paired.log_mae, None, paired.within
    )


def _of_distributions(
    replayed: Floats, recorded: Floats
) -> tuple[int, float, float, float | None, float, float | None]:
    """Return the first six values of a `WaitDistance`, for which no job is paired with another."""
    m, mean = float(recorded.mean()), float(replayed.mean())
    wasserstein = float(np.abs(np.sort(replayed) - np.sort(recorded)).mean())
    relative = (mean / m - 1, wasserstein / m) if m > 0 else (None, None)
    return len(recorded), m, mean, relative[0], wasserstein, relative[1]


def rank_correlation(values: Floats, others: Floats) -> float | None:
    """Return Spearman's rank correlation, ties at their mean rank; None where one of them is all ties."""
    a, b = (_ranks(x) for x in (values, others))
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / norm if norm > 0 else None


def _ranks(values: Floats) -> Floats:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean_rank: Floats = (last - (counts - 1) / 2.0)[inverse]
    return mean_rank


def run_distance(jobs: "pd.DataFrame") -> WaitDistance | None:
    """Return how far a run's waits are from those that its log records; None if it does not know them."""
    if "recorded_wait" not in jobs:
        return None
    replayed, recorded = (jobs[name].to_numpy(np.float64) for name in ("waiting_time", "recorded_wait"))
    has_record = ~(np.isnan(replayed) | np.isnan(recorded))
    return wait_distance(replayed[has_record], recorded[has_record]) if has_record.any() else None


def folder_distance(folder: Path) -> WaitDistance | None:
    """Return the same of a run's folder, of which two columns are read; None also if it is no run's."""
    import pyarrow.parquet as pq

    path = folder / "jobs.parquet"
    if not path.is_file() or "recorded_wait" not in pq.read_schema(path).names:
        return None
    return run_distance(pq.read_table(path, columns=["waiting_time", "recorded_wait"]).to_pandas())


def describe(distance: WaitDistance) -> str:
    """Return the fidelity of a replay in one line."""
    hour = distance.within[str(WITHIN[-1])]
    rank = "" if distance.rank_correlation is None else f", rank correlation {distance.rank_correlation:.2f}"
    bias = "" if distance.bias is None else f", mean wait {100 * distance.bias:+.0f} %"
    return (
        f"fidelity to the record: log-MAE {distance.log_mae:.2f}{rank}, {100 * hour:.0f} % of the starts "
        f"within 1 h{bias} ({counted(distance.jobs, 'job')})"
    )
