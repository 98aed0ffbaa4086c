"""`bridge predict`: a log with predicted run times in a column, for the estimator predicted(COLUMN)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridge.base.counted import counted
from bridge.cli import options as shared
from bridge.cli.terminal import TERMINAL, show
from bridge.commands.predict import (
    PredictConfig,
    predict_series,
    require_parquet,
    require_room,
    with_times_of,
)
from bridge.commands.predict import predict as predict_workload
from bridge.config.fields import record_of
from bridge.config.options import given_on_command_line, options
from bridge.workload.catalogue import read_log
from bridge.worlds.fast.scheduler_config import SchedulerConfig

if TYPE_CHECKING:
    from bridge.prediction.accuracy import Accuracy, Sharpness
    from bridge.workload.table import Workload


@click.command()
@click.argument("log")
@options(PredictConfig, "model")
@shared.file_option("--out", "Write the log with its predictions here (.parquet or .csv).", required=True)
@options(PredictConfig, exclude=("model",))
@shared.field_options(
    SchedulerConfig,
    cluster="The site. Jobs without a requested time get the time limit of their partition there.",
)
@shared.malformed_option
@shared.flag("--force", "Replace FILE if it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print how good the predictions are as JSON.")
@click.pass_context
def predict(ctx: click.Context, /, log: str, out: Path, force: bool, as_json: bool, **_: Any) -> None:
    """Predict the run time of every job of LOG, from jobs that had ended before this job was submitted.

    A job's end is computed from the recorded wait and run time. Times are seconds.

    \b
      bridge predict SDSC-SP2-1998-4.2-cln.swf.gz --model trees --out sp2.parquet
      bridge replay sp2.parquet --order sjf --estimator 'predicted(trees, requested)'

    The model `series` estimates the run time of a running job from its progress. It reads a Parquet file with
    the columns job, time (seconds since the job's start) and value. The file of --out then has estimates, and
    not the log:

    \b
      bridge predict log.parquet --model series --series residuals.parquet --out beliefs.parquet
      bridge replay log.parquet --policy fcfs+easy --estimator 'progress(beliefs.parquet)'

    The forest also writes quantiles: NAME_p02 … NAME_p98. NAME is the median.

    With the estimator above, orders and backfill candidates use the prediction. For
    running jobs the requested time is used. Otherwise, if jobs run longer than predicted, EASY could delay
    the head of the queue again and again.
    """
    config = PredictConfig(**given_on_command_line(ctx, PredictConfig))
    for name in config.unsupported:
        raise click.UsageError(f"{shared.option_name(name)} has no meaning for {config.model}.")
    (require_parquet if config.model == "series" else require_room)(out)
    shared.check_output(out, force)
    workload = read_log(log, ctx.params["malformed"] or "refuse")
    if ctx.params["cluster"] is not None:
        workload = with_times_of(workload, ctx.params["cluster"])
    if config.model == "series":
        _predict_series(workload, config, out, as_json)
        return
    result = predict_workload(workload, config, TERMINAL)
    result.write(out)
    _show(
        result.accuracies, f"{workload.name}: {counted(len(workload.jobs), 'job')}", as_json, result.sharpness
    )
    click.echo(f"wrote {out}; use it with: --estimator 'predicted({result.column}, requested)'", err=as_json)


def _predict_series(workload: "Workload", config: PredictConfig, out: Path, as_json: bool) -> None:
    result = predict_series(workload, config, TERMINAL)
    result.write(out)
    changing = int((result.beliefs.first[1:] - result.beliefs.first[:-1] > 1).sum())
    lines = [f"{workload.name}: beliefs about {changing:,} of {len(result.ids):,} jobs change as they run"]
    if result.beliefs.synthetic:
        lines.append(
            "the series are synthetic, made from true run times: every schedule by them is an oracle's"
        )
    if result.errors:
        tenths = ", ".join(
            f"{100 * k:.0f} %: {100 * error:.1f}" for k, error in zip(_TENTHS, result.errors, strict=True)
        )
        lines.append(f"mean error of the total, %, when so much of a job has run: {tenths}")
    document = {"jobs": len(result.ids), "changing": changing, "errors": result.errors}
    show(document, lines, as_json)
    click.echo(f"wrote {out}; use it with: --estimator 'progress({out})'", err=as_json)


#: Parts of a run after which errors are told.
_TENTHS = tuple(k / 10 for k in range(10))


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
