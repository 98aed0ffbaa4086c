"""`bridge compare`: metrics of several runs side by side, and the first job whose start differs."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bridge.cli.show import show_json
from bridge.errors import BridgeError

if TYPE_CHECKING:
    from bridge.judge.compare import Comparison, JobDifference
    from bridge.judge.run import Run


#: More runs than this are shown one a row, with fewer metrics.
SIDE_BY_SIDE = 3


@click.command()
@click.argument("paths", metavar="RUN RUN…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--nodes",
    type=click.IntRange(min=1),
    help="Nodes of the machine, for a RUN that is a bare jobs file (Batsim's _jobs.csv, CQSim's .rst).",
)
@click.option(
    "--plot",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Draw how waits and bounded slowdowns are distributed (.png or .svg).",
)
@click.option("--json", "as_json", is_flag=True, help="Print all metrics and differences as JSON.")
def compare(paths: tuple[Path, ...], nodes: int | None, plot: Path | None, as_json: bool) -> None:
    """Compare run folders with the first one: metrics, differing starts, wait differences."""
    if len(paths) < 2:
        raise BridgeError("a comparison needs two runs or more", where=str(paths[0]))
    runs = [_load(path, nodes) for path in paths]

    from bridge.judge.compare import compare_runs, names_of

    comparison = compare_runs(runs, names_of(paths))
    if plot is not None:
        from bridge.report.plots import distributions, save

        save(distributions(runs, comparison.names), plot)
    if as_json:
        show_json(asdict(comparison))
        return
    from bridge.report.tables import comparison_table, overview_table

    table = comparison_table if len(runs) <= SIDE_BY_SIDE else overview_table
    table(comparison).print()
    _tell(comparison)


def _load(path: Path, nodes: int | None) -> "Run":
    from bridge.judge.run import Run, read_jobs, read_run

    if not path.is_file():
        return read_run(path)
    from bridge.judge.metrics import compute

    if nodes is None:
        raise BridgeError(
            "a bare jobs file does not tell the machine's size", where=str(path), remedy="Add --nodes N."
        )
    jobs = read_jobs(path)
    capacity = {"nodes": nodes}
    return Run(config={}, capacity=capacity, jobs=jobs, metrics=compute(jobs, capacity), name=path.name)


def _tell(comparison: "Comparison") -> None:
    from bridge.report.tables import duration

    def started(time: float | None) -> str:
        return "never starts" if time is None else f"starts at {time:.6f} s"

    def line(name: str, found: "JobDifference") -> None:
        click.echo(
            f"{name}: {found.differing_starts:,} of {found.common:,} common jobs start at another time"
        )
        if len(comparison.names) > SIDE_BY_SIDE:
            return
        if found.first is not None:
            first = found.first
            click.echo(
                f"  first: job {first.job} {started(first.base_start)} in {comparison.names[0]}, "
                f"{started(first.start)} here"
            )
        if found.differing_starts and found.wait_quantiles is not None and found.wait_mean is not None:
            quantiles = "  ".join(f"{float(q):.0%} {duration(v)}" for q, v in found.wait_quantiles.items())
            click.echo(f"  wait difference: mean {duration(found.wait_mean)}; quantiles {quantiles}")

    for name, found in zip(comparison.names[1:], comparison.jobs, strict=True):
        line(name, found)
    for warning in comparison.warnings:
        click.echo(f"warning: {warning}", err=True)
