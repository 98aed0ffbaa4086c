"""Progress series of running jobs, and what a network believes of the jobs from them.

A series is a Parquet file with the columns ``job``, ``time`` (seconds since the job's start) and one or more
columns of values (``value``, or others): an iteration's residual, a share of the work, a power draw. On a
grid of steps, a value stands until the next one comes. The network (`bridge.prediction.series_network`)
learns from jobs that had ended when a job was submitted, and what it says after a step follows from nothing
that the series has later.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bridge.base.arrays import Floats, Ints
from bridge.base.errors import BridgeError
from bridge.base.progress import ProgressCallback, ignore_progress
from bridge.config import Count, Positive, verify
from bridge.prediction.predictors import History
from bridge.prediction.submissions import MICRO, Submissions
from bridge.workload.running_beliefs import RunningBeliefs

if TYPE_CHECKING:
    from bridge.prediction.series_network import SeriesModel

#: Columns of the file that are no values.
KEYS = ("job", "time")
#: Parts of a run over which a synthetic series falls, and its jitter as a share of the fall of a part.
_DECADES, _PARTS, _JITTER = 4.0, 20, 0.35
#: In place of a request that is not known, seconds.
_UNKNOWN = 1e9


@dataclass(frozen=True)
class ProgressSeries:
    """Values of m records, by job and time.

    Attributes:
        job: [m] ids as texts, those of one job in a row.
        time: [m] seconds since the job's start, ascending for each job.
        numbers: [m, S] values.
        synthetic: made from true run times.
    """

    job: Sequence[str]
    time: Floats
    numbers: Floats
    synthetic: bool = False

    def places(self, ids: Sequence[object]) -> list[slice]:
        """Return where each job's records are: empty where it has none."""
        names = np.asarray(self.job, object)
        begins = np.flatnonzero(np.append(True, names[1:] != names[:-1])) if len(names) else np.zeros(0, int)
        ends = np.append(begins[1:], len(names))
        where = {names[a]: slice(int(a), int(b)) for a, b in zip(begins, ends, strict=True)}
        return [where.get(str(ident), slice(0, 0)) for ident in ids]

    def on_grid(self, ids: Sequence[object], steps: Ints, step: float, width: int) -> Floats:
        """Return the series of some jobs on a grid: [n, W, S + 1], after 1, 2, … steps.

        The last number is 1 where a value has come yet; else all are 0. NaN behind the `steps` [n] that a job
        has run.
        """
        grid = np.full((len(ids), width, self.numbers.shape[1] + 1), np.nan)
        for row, part, ran in zip(grid, self.places(ids), np.minimum(steps, width).tolist(), strict=True):
            times, values = self.time[part], self.numbers[part]
            last = np.searchsorted(times, step * np.arange(1, ran + 1), side="right") - 1
            row[:ran] = 0.0
            row[:ran][last >= 0, :-1] = values[last[last >= 0]]
            row[:ran][last >= 0, -1] = 1.0
        return grid


def read_series(path: Path) -> ProgressSeries:
    """Read a file of series; BridgeError: no such file, no values, or something that is no number."""
    where = str(path)
    try:
        table = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        remedy = "Name a Parquet file with the columns job, time and value."
        raise BridgeError(
            f"cannot be read as Parquet ({type(error).__name__})", where=where, remedy=remedy
        ) from None
    return series_of(table, where)


def series_of(table: pd.DataFrame, where: str) -> ProgressSeries:
    names = [name for name in table.columns if name not in KEYS]
    missing = [name for name in KEYS if name not in table.columns]
    if missing or not names:
        what = f"has no column {missing[0] if missing else 'value'!r}"
        raise BridgeError(what, where=where, remedy="It needs job, time (s since the start) and value.")
    numbers = table[["time", *names]].apply(pd.to_numeric, errors="coerce").to_numpy(np.float64)
    if len(bad := np.flatnonzero(~np.isfinite(numbers).all(axis=1) | (numbers[:, 0] < 0))):
        what = (
            f"record {bad[0] + 1} of job {table['job'].iloc[bad[0]]} holds no finite value or a time below 0"
        )
        raise BridgeError(what, where=where, remedy="Leave such records out.")
    jobs = table["job"].astype(str)
    order = np.lexsort((numbers[:, 0], jobs.to_numpy(str))) if len(jobs) else np.zeros(0, np.int64)
    return ProgressSeries(jobs.iloc[order].tolist(), numbers[order, 0], numbers[order, 1:])


def synthetic_series(ids: Sequence[object], run: Floats, seed: int = 0) -> ProgressSeries:
    """Return series of jobs that iterate until a residual has fallen by four decades, as solvers do.

    The rate of the fall follows from the true run time [n] s, which no real predictor knows: for trials.
    """
    rng = np.random.default_rng(seed)
    n = len(ids)
    parts = np.arange(1, _PARTS + 1) / _PARTS
    residual = -_DECADES * (parts + rng.normal(size=(n, _PARTS)) * (_JITTER / _PARTS))
    order = np.argsort([str(ident) for ident in ids], kind="stable")
    names = np.repeat([str(ids[k]) for k in order], _PARTS).tolist()
    times = (np.maximum(run, 0.0)[order, None] * parts).ravel()
    return ProgressSeries(names, times, residual[order].reshape(-1, 1), synthetic=True)


@dataclass(frozen=True)
class SeriesPredictor:
    """A network, learnt again before every N-th job from what had ended by then.

    Attributes:
        step: of the grid, seconds.
        width: steps of the grid; behind them a job is believed to take what was believed last.
        every: N, in order of submission.
        memory: learn from at most so many jobs, those that ended last.
        least: as long as fewer have ended, the user's history predicts, and nothing changes while a job runs.
        epochs: of each training.
        seed: of weights and batches.
    """

    step: Positive = 300.0
    width: Count = 256
    every: Count = 2500
    memory: Count = 4000
    least: Count = 200
    epochs: Count = 10
    seed: int = field(default=0)

    def __post_init__(self) -> None:
        verify(self, "predictor series")

    def parameters(self, s: Submissions, history: Ints) -> Floats:
        """Return what is known of jobs at submission: [n, 3] request, processors, the user's history."""
        request = np.where(s.request > 0, s.request / MICRO, _UNKNOWN)
        return np.column_stack([request, np.maximum(s.procs, 0), history / MICRO]).astype(np.float64)

    def steps(self, run: Ints) -> Ints:
        """Return how many steps jobs take, the last one begun counts: [n]."""
        return np.maximum(-(-run // round(self.step * MICRO)), 1)

    def __call__(
        self,
        s: Submissions,
        ids: Sequence[object],
        series: ProgressSeries,
        progress: ProgressCallback = ignore_progress,
    ) -> RunningBeliefs:
        """Return what is believed of every job before it runs and after each step that it ran.

        A job whose run is not known, as one that still runs, has run as far as its series.
        """
        history = History()(s)
        parameters = self.parameters(s, history)
        ran = self._ran(s, ids, series)
        lines: list[tuple[Ints, Ints]] = [(np.zeros(1, np.int64), history[k : k + 1]) for k in range(len(s))]
        for block, learnt, done in s.training_blocks(lambda _: self.every, self.memory, self.least):
            usable = learnt[self.steps(s.run[learnt]) <= self.width]
            if len(usable) >= self.least:
                # what is known of the jobs to learn from is what was known at their submission
                model = self._fit(s, ids, series, parameters, usable)
                for k in block.tolist():
                    lines[k] = self._lines(
                        model, parameters[k], ids[k], series, int(ran[k]), int(s.request[k])
                    )
            progress(done)
        first = np.append(0, np.cumsum([len(after) for after, _ in lines]))
        after, total = (np.concatenate([line[k] for line in lines]) for k in (0, 1))
        return RunningBeliefs(first.astype(np.int64), after, total, series.synthetic)

    def _ran(self, s: Submissions, ids: Sequence[object], series: ProgressSeries) -> Ints:
        """Return after how many steps each job is looked at last: [n]."""
        last = [series.time[part][-1] if part.stop > part.start else 0.0 for part in series.places(ids)]
        going = (np.asarray(last, np.float64) // self.step).astype(np.int64)
        return np.minimum(np.where(s.run > 0, self.steps(s.run) - 1, going), self.width)

    def _fit(
        self, s: Submissions, ids: Sequence[object], series: ProgressSeries, parameters: Floats, which: Ints
    ) -> "SeriesModel":
        from bridge.prediction.series_network import SeriesSettings, fit

        steps = self.steps(s.run[which])
        grid = series.on_grid([ids[k] for k in which.tolist()], steps, self.step, int(steps.max()))
        return fit(parameters[which], grid, steps, SeriesSettings(epochs=self.epochs, seed=self.seed))

    def _lines(
        self,
        model: "SeriesModel",
        parameters: Floats,
        ident: object,
        series: ProgressSeries,
        ran: int,
        request: int,
    ) -> tuple[Ints, Ints]:
        """Return when beliefs about one job change, and to what, within so many steps: microseconds."""
        total = self.totals(model, parameters, ident, series, ran) * MICRO
        after = np.arange(ran + 1) * round(self.step * MICRO)
        longest = request if request > 0 else 1 << 60
        believed = np.maximum(np.minimum(np.rint(total).astype(np.int64), longest), after + MICRO)
        changed = np.append(True, believed[1:] != believed[:-1])
        return after[changed], believed[changed]

    def totals(
        self, model: "SeriesModel", parameters: Floats, ident: object, series: ProgressSeries, steps: int
    ) -> Floats:
        """Return the total lengths believed of a job after 0, 1, … `steps` steps: seconds."""
        grid = series.on_grid([ident], np.array([steps]), self.step, steps + 1)
        values: Any = model.totals(parameters[None], grid)[0]
        return np.asarray(values, np.float64) * self.step
