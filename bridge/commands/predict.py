"""Predicted run times of a log's jobs, as a column of it that the estimator predicted(COLUMN) reads."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from bridge.base.errors import BridgeError
from bridge.base.progress import ProgressReporter
from bridge.config import Constraint, Count
from bridge.workload.formats import FORMATS, format_of, write

if TYPE_CHECKING:
    from bridge.base.arrays import Ints
    from bridge.prediction.accuracy import Accuracy, Sharpness
    from bridge.workload.running_beliefs import RunningBeliefs
    from bridge.workload.table import Workload


@dataclass(frozen=True)
class PredictConfig:
    """Configuration of a prediction: predictor and its inputs.

    Attributes:
        model: the predictor. forest: a distribution, from what is known at submission. trees: boosted trees,
            from the same data. history: the mean of the user's last two runs. series: a network that reads
            the progress series of running jobs.
        column: name of the new column.  [default: the model's name]
        every: forest, trees, series: train again every N jobs.  [default: 2500, 1000, 2500]
        memory: forest, trees, series: learn from the N jobs that ended last.  [default: 20000, 20000, 4000]
        quantile: trees: the quantile. With 0.9, about 90 % of similar jobs run no longer than predicted.
            [default: 0.5]
        seed: same seed, same predictions.  [default: 0]
        with_columns: forest, trees: also learn from this column, which is known at submission (job name,
            script, …).
        series: series: Parquet file with job, time (s since its start) and value, or `synthetic` for trials.
        step: series: seconds between two estimates of a running job.  [default: 300]
        outcome: forest, trees: also learn from this column, which is known only after a job has ended (exit
            state, …).
    """

    model: Literal["forest", "trees", "history", "series"] = "trees"
    column: str | None = None
    every: Annotated[Count | None, Constraint(metavar="N")] = None
    memory: Annotated[Count | None, Constraint(metavar="N")] = None
    quantile: Annotated[float | None, Constraint(metavar="Q", gt=0, lt=1)] = None
    seed: Annotated[int | None, Constraint(ge=0, le=2**32 - 1)] = None
    with_columns: Annotated[tuple[str, ...], Constraint(option="--with", metavar="COLUMN")] = ()
    outcome: Annotated[tuple[str, ...], Constraint(option="--with-outcome", metavar="COLUMN")] = ()
    series: Annotated[str | None, Constraint(metavar="FILE")] = None
    step: Annotated[float | None, Constraint(metavar="S", gt=0)] = None

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the predictor that are not its own defaults."""
        values = {name: getattr(self, name) for name in ("every", "memory", "quantile", "seed", "step")}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def unsupported(self) -> list[str]:
        return [name for name in _WITHOUT.get(self.model, ()) if getattr(self, name) not in (None, ())]


#: Fields that mean nothing to a model.
_WITHOUT = {
    "history": ("every", "memory", "quantile", "seed", "with_columns", "outcome", "series", "step"),
    "forest": ("quantile", "series", "step"),
    "trees": ("series", "step"),
    "series": ("column", "quantile", "with_columns", "outcome"),
}


@dataclass(frozen=True)
class PredictResult:
    """A log with predicted run times, and how good they are.

    Attributes:
        workload: the log; ``workload.jobs[column]`` has the predictions, seconds.
        column: name of the new column.
        accuracies: of the predictions and of the requested times, by column; None where no job has both.
        sharpness: of the forest's quantiles; None for other models.
    """

    workload: "Workload"
    column: str
    accuracies: "dict[str, Accuracy | None]"
    sharpness: "Sharpness | None"

    def write(self, path: Path | str) -> None:
        """Write the log with its predictions to a .parquet or .csv file.

        Raises BridgeError: the format has no room for predictions.
        """
        require_room(Path(path))
        write(self.workload, Path(path))


@dataclass(frozen=True)
class SeriesResult:
    """What is believed of a log's jobs as they run, and how good that is.

    Attributes:
        ids: of the jobs.
        errors: mean absolute percentage error of the total length when 0, 10, … 90 % of a job has run, as a
            fraction; of jobs that take so many steps. Empty where none does.
    """

    ids: "list[object]"
    beliefs: "RunningBeliefs"
    errors: "list[float]"

    def write(self, path: Path) -> None:
        """Write the beliefs to a .parquet file; BridgeError: it has another name."""
        from bridge.workload.running_beliefs import write_beliefs

        require_parquet(path)
        write_beliefs(path, self.ids, self.beliefs)


def with_times_of(workload: "Workload", cluster: str) -> "Workload":
    """Return a log whose jobs without a requested time have that of their partition, of this cluster."""
    from bridge.cluster.source import read_cluster
    from bridge.workload.requests import with_default_times

    return with_default_times(workload, read_cluster(cluster))


def require_parquet(path: Path) -> None:
    if path.suffix != ".parquet":
        raise BridgeError(
            "beliefs about running jobs are a Parquet file", where=str(path), remedy="Name a .parquet file."
        )


def predict_series(workload: "Workload", config: PredictConfig, watch: ProgressReporter) -> SeriesResult:
    """Predict every job's run time before and while it runs, from jobs that had ended at its submission.

    Raises BridgeError: no series are named or can be read, or a setting means nothing to the model.
    """
    from bridge.prediction.progress import SeriesPredictor, read_series, synthetic_series
    from bridge.prediction.submissions import MICRO, of_workload

    if config.unsupported or config.series is None:
        what = (
            f"{', '.join(config.unsupported)} means nothing to the model"
            if config.unsupported
            else "no series"
        )
        remedy = "Leave it out." if config.unsupported else "Name them: --series FILE, or --series synthetic."
        raise BridgeError(what, where=config.model, remedy=remedy)
    chosen = SeriesPredictor(**config.settings)
    jobs, ids = of_workload(workload), workload.jobs["job_id"].tolist()
    watch.dropped(workload.tally)
    synthetic = config.series == "synthetic"
    run = jobs.run / MICRO
    series = synthetic_series(ids, run, chosen.seed) if synthetic else read_series(Path(config.series))
    with watch.bar(f"{workload.name} series", len(jobs), "jobs") as advance:
        beliefs = chosen(jobs, ids, series, advance)
    return SeriesResult(ids, beliefs, _errors_by_tenths(beliefs, jobs.run))


def _errors_by_tenths(beliefs: "RunningBeliefs", run: "Ints") -> "list[float]":
    """Return the mean error after each tenth of a run, of jobs about which beliefs change."""
    import numpy as np

    changing = np.flatnonzero((np.diff(beliefs.first) > 1) & (run > 0))
    errors = np.zeros((len(changing), 10))
    for row, j in zip(errors, changing.tolist(), strict=True):
        part = slice(int(beliefs.first[j]), int(beliefs.first[j + 1]))
        last = np.searchsorted(beliefs.after[part], np.arange(10) * int(run[j]) // 10, side="right") - 1
        row[:] = np.abs(beliefs.total[part][last] / run[j] - 1)
    return errors.mean(axis=0).tolist() if len(changing) else []


def require_room(path: Path) -> None:
    """Raise BridgeError if a file's format has no room for a column."""
    if format_of(path) not in (FORMATS["parquet"], FORMATS["csv"]):
        remedy = "Name a .parquet or .csv file."
        raise BridgeError("this format has no room for predictions", where=str(path), remedy=remedy)


def predict(workload: "Workload", config: PredictConfig, watch: ProgressReporter) -> PredictResult:
    """Predict every job's run time from jobs that had ended when it was submitted.

    Raises BridgeError: a setting means nothing to the model, or a name of a column cannot be used.
    """
    from bridge.prediction.accuracy import accuracy, sharpness
    from bridge.prediction.predictors import predictor
    from bridge.prediction.quantiles import LEVELS, Quantiles, median
    from bridge.prediction.submissions import MICRO, of_workload
    from bridge.workload.derive import add_note

    if config.unsupported:
        what = f"{', '.join(config.unsupported)} means nothing to the model"
        raise BridgeError(what, where=config.model, remedy="Leave it out.")
    chosen = predictor(config.model, **config.settings)
    name = _check_column(workload, config.column or config.model)
    watch.dropped(workload.tally)
    jobs = of_workload(workload, config.with_columns, config.outcome)
    columns, quantiles = dict[str, Any](), None
    with watch.bar(f"{workload.name} {config.model}", len(jobs), "jobs") as advance:
        if isinstance(chosen, Quantiles):
            quantiles = chosen.distributions(jobs, advance)
            predictions = median(quantiles)
            for level, values in zip(LEVELS, quantiles.T, strict=True):
                columns[_check_column(workload, f"{name}_p{round(100 * level):02d}")] = values
        else:
            predictions = chosen(jobs, advance)
    predicted_jobs = workload.jobs.assign(**{name: predictions / MICRO}, **columns)
    note = add_note(workload.header, _command(config, name))
    ran, asks = jobs.run > 0, (jobs.run > 0) & (jobs.request > 0)
    compared = ((name, ran, predictions), ("requested", asks, jobs.request))
    accuracies = {
        label: accuracy(jobs.run[mask], values[mask]) if mask.any() else None
        for label, mask, values in compared
    }
    spread = None
    if quantiles is not None and ran.any():
        spread = sharpness(jobs.run[ran] / MICRO, quantiles[ran], LEVELS)
    return PredictResult(replace(workload, jobs=predicted_jobs, header=note), name, accuracies, spread)


def _command(config: PredictConfig, name: str) -> str:
    """Return the command that predicts alike, for the header of the log."""
    options: list[tuple[str, Any]] = list(config.settings.items())
    options += [("with", column) for column in config.with_columns]
    options += [("with-outcome", column) for column in config.outcome]
    command = f"command: bridge predict --model {config.model} --column {name}"
    return command + "".join(f" --{option} {value}" for option, value in options)


def _check_column(workload: "Workload", name: str) -> str:
    """Return the name, if the estimator can find it and no column of the log goes by it."""
    from bridge.scheduler.estimators import REQUESTED

    where = f"--column {name!r}"
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise BridgeError("is no name for a column", where=where, remedy="Use letters, digits and _.")
    if name in workload.jobs.columns or name in workload.capacity or name == REQUESTED:
        raise BridgeError("this name is taken", where=where, remedy="Choose another name.")
    return name
