"""`bridge compare`: metrics of several runs side by side, and the first job whose start differs."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bridge.base.errors import BridgeError
from bridge.base.files import is_there
from bridge.cli import options as shared
from bridge.cli.terminal import show
from bridge.config.fields import record_of
from bridge.report.picture_files import kind_of_picture

if TYPE_CHECKING:
    from bridge.judge.compare import RunComparison
    from bridge.judge.run import Run


#: More runs than this are shown one a row, with fewer metrics.
SIDE_BY_SIDE = 3


@click.command()
@click.argument("paths", metavar="RUN RUN…", nargs=-1, required=True, type=shared.FILE)
@shared.number("--nodes", "Number of nodes, if a RUN is only a jobs file.")
@shared.file_option("--plot", "Draw the distributions of waits and bounded slowdowns (.png or .svg).")
@shared.json_option
def compare(paths: tuple[Path, ...], nodes: int | None, plot: Path | None, as_json: bool) -> None:
    """Compare run folders with the first one: metrics, different starts, differences of waits.

    A RUN may be a bare jobs file, too: Batsim's _jobs.csv, CQSim's .rst.
    """
    if len(paths) < 2:
        raise BridgeError("a comparison needs two runs or more", where=str(paths[0]))
    if nodes is not None and all(is_there(path, Path.is_dir) for path in paths):
        raise click.UsageError("--nodes is for a bare jobs file: a run folder knows its own")
    if plot is not None:
        kind_of_picture(plot)
    runs = [_load(path, nodes) for path in paths]

    from bridge.judge.compare import compare_runs, names_of

    comparison = compare_runs(runs, names_of(paths))
    if plot is not None:
        from bridge.report.plots import distributions, save

        save(distributions(runs, comparison.names), plot)
    from bridge.report.tables import comparison_table, overview_table

    table = comparison_table if len(runs) <= SIDE_BY_SIDE else overview_table
    show(record_of(comparison), [table(comparison), *_report_lines(comparison)], as_json)
    if not as_json:
        for warning in comparison.warnings:
            click.echo(f"warning: {warning}", err=True)


def _load(path: Path, nodes: int | None) -> "Run":
    from bridge.judge.metrics import compute_metrics
    from bridge.judge.run import Run, read_jobs, read_run

    if not is_there(path, Path.is_file):
        return read_run(path)
    if nodes is None:
        what = "a bare jobs file does not tell the machine's size"
        raise BridgeError(what, where=str(path), remedy="Add --nodes N.")
    jobs, capacity = read_jobs(path), {"nodes": nodes}
    return Run(
        config={}, capacity=capacity, jobs=jobs, metrics=compute_metrics(jobs, capacity), name=path.name
    )


def _report_lines(comparison: "RunComparison") -> Iterator[str]:
    from bridge.report.tables import wait_difference

    def started(time: float | None) -> str:
        return "never starts" if time is None else f"starts at {time:.6f} s"

    base, *others = comparison.names
    for name, difference in zip(others, comparison.jobs, strict=True):
        counts = f"{difference.differing_starts:,} of {difference.common:,}"
        yield f"{name}: {counts} common jobs start at another time than in {base}"
        first = difference.first
        if first is not None and len(others) < SIDE_BY_SIDE:
            here, there = started(first.start), started(first.base_start)
            yield f"  first: job {first.job} {there} in {base}, {here} here"
            yield from wait_difference(difference)
