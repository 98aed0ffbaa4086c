"""`bridge predict`: a log with predicted run times in a column, for the estimator predicted(COLUMN)."""

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from bridge.cli.options import check_output, malformed_option, read_log
from bridge.cli.progress import progress_bar, warn_about
from bridge.cli.show import show_json
from bridge.errors import BridgeError

if TYPE_CHECKING:
    from bridge.predict.accuracy import Accuracy, Sharpness
    from bridge.workload.table import Workload


@click.command()
@click.argument("log")
@click.option(
    "--model",
    type=click.Choice(["forest", "trees", "history"]),
    default="trees",
    show_default=True,
    help="A forest (whole distributions) or boosted trees on what is known at submission, or the mean of "
    "the user's last two runs.",
)
@click.option(
    "--out",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the log with its predictions here (.parquet or .csv).",
)
@click.option("--column", help="Name of the new column.  [default: the model's name]")
@click.option(
    "--every",
    metavar="N",
    type=click.IntRange(min=1),
    help="forest, trees: learn again every N jobs.  [default: 2500, 1000]",
)
@click.option(
    "--memory",
    metavar="N",
    type=click.IntRange(min=1),
    help="forest, trees: learn from the N jobs that ended last.  [default: 20000]",
)
@click.option(
    "--quantile",
    metavar="Q",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="trees: share of equal jobs that shall be no longer than predicted.  [default: 0.5]",
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Same seed, same predictions.  [default: 0]")
@click.option(
    "--with",
    "known",
    multiple=True,
    metavar="COLUMN",
    help="forest, trees: learn from this column of LOG, too, known at submission (job name, script, …).",
)
@click.option(
    "--with-outcome",
    "outcome",
    multiple=True,
    metavar="COLUMN",
    help="forest, trees: and from this one of earlier jobs, known when they had ended (exit state, …).",
)
@malformed_option
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print how good the predictions are as JSON.")
def predict(
    log: str,
    model: str,
    out: Path,
    column: str | None,
    every: int | None,
    memory: int | None,
    quantile: float | None,
    seed: int | None,
    known: tuple[str, ...],
    outcome: tuple[str, ...],
    malformed: Literal["refuse", "drop"],
    force: bool,
    as_json: bool,
) -> None:
    """Predict the run time of every job of LOG from jobs that had ended when it was submitted.

    What had ended tell the log's own waits. Times are seconds.

    \b
      bridge predict SDSC-SP2-1998-4.2-cln.swf.gz --model trees --out sp2.parquet
      bridge replay sp2.parquet --order sjf --estimator 'predicted(trees, requested)'

    The forest writes quantiles, too: NAME_p02 … NAME_p98 beside the median, NAME.

    By the estimator above orders and candidates go by the prediction, while running jobs are believed to take
    what they asked for: EASY lets jobs by the head for ever where running ones outlive what was believed.
    """
    from dataclasses import replace

    from bridge.predict.accuracy import sharpness
    from bridge.predict.predictors import predictor
    from bridge.predict.quantiles import LEVELS, Quantiles, median
    from bridge.predict.submissions import MICRO, of_workload
    from bridge.workload.derive import noted
    from bridge.workload.formats import write

    typed = {"every": every, "memory": memory, "quantile": quantile, "seed": seed}
    given: dict[str, Any] = {option: value for option, value in typed.items() if value is not None}
    more = {"with": known, "with-outcome": outcome}
    _refuse(model, [*given, *(option for option, names in more.items() if names)])
    chosen = predictor(model, **given)
    _check_output(out, force)
    workload = read_log(log, malformed)
    name = _check_column(workload, column or model)
    warn_about(workload.tally)
    jobs = of_workload(workload, known, outcome)
    columns, quantiles = dict[str, Any](), None
    with progress_bar(f"{workload.name} {model}", len(jobs), "jobs") as advance:
        if isinstance(chosen, Quantiles):
            quantiles = chosen.distributions(jobs, advance)
            believed = median(quantiles)
            for level, values in zip(LEVELS, quantiles.T, strict=True):
                columns[_check_column(workload, f"{name}_p{round(100 * level):02d}")] = values
        else:
            believed = chosen(jobs, advance)
    words = [*given.items(), *((option, one) for option, names in more.items() for one in names)]
    command = f"command: bridge predict --model {model} --column {name}"
    command += "".join(f" --{option} {value}" for option, value in words)
    write(
        replace(
            workload,
            jobs=workload.jobs.assign(**{name: believed / MICRO}, **columns),
            header=noted(workload.header, command),
        ),
        out,
    )
    ran, asked = jobs.run > 0, (jobs.run > 0) & (jobs.request > 0)
    _show(
        {
            name: _accuracy(jobs.run[ran], believed[ran]),
            "requested": _accuracy(jobs.run[asked], jobs.request[asked]),
        },
        f"{workload.name}: {len(jobs):,} jobs",
        as_json,
        sharpness(jobs.run[ran] / MICRO, quantiles[ran], LEVELS)
        if quantiles is not None and ran.any()
        else None,
    )
    click.echo(f"wrote {out}; use it with: --estimator 'predicted({name}, requested)'", err=as_json)


def _refuse(model: str, given: list[str]) -> None:
    """Refuse options that mean nothing to a model."""
    for option in given:
        if model == "history" or (model == "forest" and option == "quantile"):
            raise click.UsageError(f"--{option} has no meaning for {model}.")


def _accuracy(true: object, predicted: object) -> "Accuracy | None":
    from bridge.predict.accuracy import accuracy

    try:
        return accuracy(true, predicted)  # type: ignore[arg-type]
    except BridgeError:  # nothing to compare with: no job ran, or none had a request
        return None


def _check_output(out: Path, force: bool) -> None:
    """Raise BridgeError unless this file may be written and has room for a column, before the long work."""
    from bridge.workload.formats import FORMATS, format_of

    if format_of(out) not in (FORMATS["parquet"], FORMATS["csv"]):
        raise BridgeError(
            "this format has no room for predictions", where=str(out), remedy="Name a .parquet or .csv file."
        )
    check_output(out, force)


def _check_column(workload: "Workload", name: str) -> str:
    """Return the name, if the estimator can find it and no column of the log goes by it."""
    from bridge.scheduler.estimators import REQUESTED

    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise BridgeError(
            "is no name for a column", where=f"--column {name!r}", remedy="Use letters, digits and _."
        )
    if name in workload.jobs.columns or name in workload.capacity or name == REQUESTED:
        raise BridgeError("this name is taken", where=f"--column {name!r}", remedy="Choose another name.")
    return name


def _show(
    found: "dict[str, Accuracy | None]", title: str, as_json: bool, spread: "Sharpness | None" = None
) -> None:
    if as_json:
        document = {name: asdict(one) if one else None for name, one in found.items()}
        show_json(document | ({"quantiles": asdict(spread)} if spread else {}))
        return
    from bridge.report.table import Table

    headings = (
        "believed",
        "jobs",
        "mean error",
        "median error",
        "shorter / longer",
        "too short",
        "4 × too long",
    )
    table = Table(headings, title=title)
    for name, one in found.items():
        if one is not None:
            shares = (
                f"{100 * value:.1f} %" for value in (one.mape, one.median, one.overlap, one.under, one.over4)
            )
            table.add(name, f"{one.jobs:,}", *shares)
    table.print()
    if spread is not None:
        click.echo(
            f"quantiles: {100 * spread.coverage90:.1f} % of the jobs within the 90 % interval, "
            f"{100 * spread.coverage50:.1f} % within the 50 % one, pinball loss {spread.pinball:.3f}"
        )
