"""`bridge predict`: a log with predicted run times in a column, for the estimator predicted(COLUMN)."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from bridge.base.errors import BridgeError
from bridge.cli import options as shared
from bridge.cli.terminal import TERMINAL, show
from bridge.cluster.source import read_cluster
from bridge.config import Constraint, Count
from bridge.config.fields import record_of
from bridge.config.options import given_on_command_line, options
from bridge.workload.catalogue import read_log
from bridge.workload.formats import FORMATS, format_of, write
from bridge.workload.requests import with_default_times
from bridge.worlds.fast.scheduler_config import SchedulerConfig

if TYPE_CHECKING:
    from bridge.prediction.accuracy import Accuracy, Sharpness
    from bridge.workload.table import Workload


@dataclass(frozen=True)
class Predicting:
    """What predicts, and from what.

    Attributes:
        model: a forest (whole distributions) or boosted trees on what is known at submission, or the mean of
            the user's last two runs.
        column: name of the new column.  [default: the model's name]
        every: forest, trees: learn again every N jobs.  [default: 2500, 1000]
        memory: forest, trees: learn from the N jobs that ended last.  [default: 20000]
        quantile: trees: share of equal jobs that shall be no longer than predicted.  [default: 0.5]
        seed: same seed, same predictions.  [default: 0]
        with_columns: forest, trees: learn from this column of LOG, too, known at submission (job name,
            script, …).
        outcome: forest, trees: and from this one of earlier jobs, known when they had ended (exit state, …).
    """

    model: Literal["forest", "trees", "history"] = "trees"
    column: str | None = None
    every: Annotated[Count | None, Constraint(metavar="N")] = None
    memory: Annotated[Count | None, Constraint(metavar="N")] = None
    quantile: Annotated[float | None, Constraint(metavar="Q", gt=0, lt=1)] = None
    seed: Annotated[int | None, Constraint(ge=0, le=2**32 - 1)] = None
    with_columns: Annotated[tuple[str, ...], Constraint(option="--with", metavar="COLUMN")] = ()
    outcome: Annotated[tuple[str, ...], Constraint(option="--with-outcome", metavar="COLUMN")] = ()


#: Fields that mean nothing to a model.
_WITHOUT = {"history": ("every", "memory", "quantile", "seed", "known", "outcome"), "forest": ("quantile",)}


@click.command()
@click.argument("log")
@options(Predicting, "model")
@shared.file_option("--out", "Write the log with its predictions here (.parquet or .csv).", required=True)
@options(Predicting, exclude=("model",))
@shared.field_options(
    SchedulerConfig, cluster="Jobs without a requested time have that of their partition, of this site."
)
@shared.malformed_option
@shared.flag("--force", "Replace FILE if it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print how good the predictions are as JSON.")
@click.pass_context
def predict(ctx: click.Context, /, log: str, out: Path, force: bool, as_json: bool, **_: Any) -> None:
    """Predict the run time of every job of LOG from jobs that had ended when it was submitted.

    What had ended tell the log's own waits. Times are seconds.

    \b
      bridge predict SDSC-SP2-1998-4.2-cln.swf.gz --model trees --out sp2.parquet
      bridge replay sp2.parquet --order sjf --estimator 'predicted(trees, requested)'

    The forest writes quantiles, too: NAME_p02 … NAME_p98 beside the median, NAME.

    By the estimator above orders and candidates go by the prediction, while running jobs are believed to take
    what they asked for: EASY lets jobs by the head for ever where running ones outlive what was believed.
    """
    from bridge.prediction.accuracy import accuracy, sharpness
    from bridge.prediction.predictors import predictor
    from bridge.prediction.quantiles import LEVELS, Quantiles, median
    from bridge.prediction.submissions import MICRO, of_workload
    from bridge.workload.derive import add_note

    typed_options = given_on_command_line(ctx, Predicting)
    settings_given = Predicting(**typed_options)
    for name in _WITHOUT.get(settings_given.model, ()):
        if name in typed_options:
            raise click.UsageError(f"{shared.option_name(name)} has no meaning for {settings_given.model}.")
    settings = {
        name: typed_options[name] for name in ("every", "memory", "quantile", "seed") if name in typed_options
    }
    chosen = predictor(settings_given.model, **settings)
    _check_output(out, force)
    workload = read_log(log, ctx.params["malformed"] or "refuse")
    name = _check_column(workload, settings_given.column or settings_given.model)
    if ctx.params["cluster"] is not None:
        workload = with_default_times(workload, read_cluster(ctx.params["cluster"]))
    TERMINAL.dropped(workload.tally)
    jobs = of_workload(workload, settings_given.with_columns, settings_given.outcome)
    columns, quantiles = dict[str, Any](), None
    with TERMINAL.bar(f"{workload.name} {settings_given.model}", len(jobs), "jobs") as advance:
        if isinstance(chosen, Quantiles):
            quantiles = chosen.distributions(jobs, advance)
            believed = median(quantiles)
            for level, values in zip(LEVELS, quantiles.T, strict=True):
                columns[_check_column(workload, f"{name}_p{round(100 * level):02d}")] = values
        else:
            believed = chosen(jobs, advance)
    words: list[tuple[str, Any]] = list(settings.items())
    words += [("with", one) for one in settings_given.with_columns] + [
        ("with-outcome", one) for one in settings_given.outcome
    ]
    command = f"command: bridge predict --model {settings_given.model} --column {name}"
    command += "".join(f" --{option} {value}" for option, value in words)
    predicted_jobs = workload.jobs.assign(**{name: believed / MICRO}, **columns)
    write(replace(workload, jobs=predicted_jobs, header=add_note(workload.header, command)), out)
    ran, asks = jobs.run > 0, (jobs.run > 0) & (jobs.request > 0)
    compared = ((name, ran, believed), ("requested", asks, jobs.request))
    accuracies = {
        who: accuracy(jobs.run[of], predictions[of]) if of.any() else None
        for who, of, predictions in compared
    }
    spread = None
    if quantiles is not None and ran.any():
        spread = sharpness(jobs.run[ran] / MICRO, quantiles[ran], LEVELS)
    _show(accuracies, f"{workload.name}: {len(jobs):,} jobs", as_json, spread)
    click.echo(f"wrote {out}; use it with: --estimator 'predicted({name}, requested)'", err=as_json)


def _check_output(out: Path, force: bool) -> None:
    """Raise BridgeError unless this file may be written and has room for a column, before the long work."""
    if format_of(out) not in (FORMATS["parquet"], FORMATS["csv"]):
        remedy = "Name a .parquet or .csv file."
        raise BridgeError("this format has no room for predictions", where=str(out), remedy=remedy)
    shared.check_output(out, force)


def _check_column(workload: "Workload", name: str) -> str:
    """Return the name, if the estimator can find it and no column of the log goes by it."""
    from bridge.scheduler.estimators import REQUESTED

    where = f"--column {name!r}"
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise BridgeError("is no name for a column", where=where, remedy="Use letters, digits and _.")
    if name in workload.jobs.columns or name in workload.capacity or name == REQUESTED:
        raise BridgeError("this name is taken", where=where, remedy="Choose another name.")
    return name


def _show(
    accuracies: "dict[str, Accuracy | None]", title: str, as_json: bool, spread: "Sharpness | None"
) -> None:
    from bridge.report.tables import accuracy_table

    document = {name: record_of(one) if one else None for name, one in accuracies.items()}
    output: list[Any] = [accuracy_table(accuracies, title)]
    if spread is not None:
        document["quantiles"] = record_of(spread)
        output.append(
            f"quantiles: {100 * spread.coverage90:.1f} % of the jobs within the 90 % interval, "
            f"{100 * spread.coverage50:.1f} % within the 50 % one, pinball loss {spread.pinball:.3f}"
        )
    show(document, output, as_json)
