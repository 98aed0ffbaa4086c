"""`bridge replay`: one log, one policy, a judged schedule."""

import math
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridge.cli.options import ESTIMATOR_HELP, ORDER_HELP, read_log, rule_options, warn_about
from bridge.cli.progress import progress_bar, say_if_compiling
from bridge.errors import BridgeError

if TYPE_CHECKING:
    from bridge.fast.setup import Setup
    from bridge.judge.run import Run
    from bridge.workload.select import Jobs


@click.command()
@click.argument("log")
@click.option("--order", default="fcfs", show_default=True, help=ORDER_HELP)
@click.option(
    "--backfill",
    type=click.Choice(["none", "easy", "conservative"]),
    default="easy",
    show_default=True,
    help="Backfilling rule.",
)
@click.option("--estimator", default="", help=ESTIMATOR_HELP)
@rule_options
@click.option(
    "--rebase/--no-rebase",
    default=None,
    help="Count submit times from the first kept job.  [default: the rules' own]",
)
@click.option(
    "--threshold",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help="Run time below which the bounded slowdown stops growing.",
)
@click.option(
    "--out", metavar="DIR", type=click.Path(path_type=Path), help="Write the run to this new folder."
)
@click.option("--force", is_flag=True, help="Replace the run in DIR, and other outputs.")
@click.option("--rst", metavar="FILE", type=click.Path(path_type=Path), help="Write CQSim's result file.")
@click.option(
    "--plot", is_flag=True, help="Draw a timeline, and a Gantt chart of small runs, into DIR (or here)."
)
@click.option(
    "--by",
    type=click.Choice(["user", "size", "queue"]),
    multiple=True,
    help="Break waits and bounded slowdowns down by this. May be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the metrics as JSON.")
def replay(
    log: str,
    order: str,
    backfill: str,
    estimator: str,
    protocol: str,
    preset: str | None,
    backfill_order: str,
    cancelled: str | None,
    nodes: int | None,
    first: int | None,
    malformed: str,
    rebase: bool | None,
    threshold: float,
    out: Path | None,
    force: bool,
    rst: Path | None,
    plot: bool,
    by: tuple[str, ...],
    as_json: bool,
) -> None:
    """Replay LOG (a file, a bundled workload or a fetched log) under one policy.

    \b
    Examples:
      bridge replay bundled-128 --order sjf --backfill easy
      bridge replay SDSC-SP2.swf.gz --order wfp3 --protocol cqsim --first 10000 --out runs/wfp3
    """
    from bridge.fast.setup import Setup
    from bridge.judge.run import check_target, write_rst, write_run

    if not math.isfinite(threshold):
        raise BridgeError(
            "not a number of seconds", where=f"--threshold {threshold}", remedy="Name one above 0."
        )
    if out is not None:
        check_target(out, force=force)
        _check_folder(out, out.absolute().parent)
    if rst is not None:
        _check_file(rst, out, force)
    setup = Setup(
        order=order,
        backfill=backfill,
        candidate_order=backfill_order,
        protocol=protocol,
        preset=preset or "",
        estimator=estimator,
        cancelled=cancelled or "",  # type: ignore[arg-type]
        nodes=nodes,
        first=first,
        rebase=rebase,
    )
    setup.rules()
    jobs = setup.select(read_log(log, malformed))
    pictures = _pictures(out or Path(), jobs.name, len(jobs)) if plot else []
    for picture in pictures:
        _check_file(picture, out, force)
    run = run_replay(jobs, setup, log=log, malformed=malformed, threshold=threshold)
    if out is not None:
        write_run(run, out, force)
    if rst is not None:
        write_rst(run.jobs, rst)
    if as_json:
        import json

        click.echo(json.dumps({"oracle": run.oracle, **run.metrics}, indent=2))
    else:
        from rich.console import Console

        from bridge.judge.metrics import breakdown
        from bridge.report.tables import breakdown_table, metrics_table

        console = Console()
        console.print(metrics_table(run))
        for group in by:
            console.print(breakdown_table(breakdown(run.jobs, group, bsld_threshold=threshold)))
    if out is not None and not as_json:
        click.echo(f"run written to {out}; repeat it with: {run.config['command']}")
    if plot:
        _draw(run, pictures)


def run_replay(jobs: "Jobs", setup: "Setup", *, log: str, malformed: str, threshold: float) -> "Run":
    """Replay selected jobs and return the judged run; says what was dropped, shows progress."""
    from bridge.fast.replay import replay as play

    warn_about(jobs.tally)
    prepared = setup.prepare(jobs)
    say_if_compiling()
    with progress_bar(f"{jobs.name} {prepared.compiled.order.name}", len(jobs), "jobs") as advance:
        schedule = play(prepared, advance)
    return finished_run(prepared, schedule, setup, _command(log, setup, malformed, threshold), threshold)


def finished_run(
    prepared: Any, schedule: Any, setup: "Setup", command: str, threshold: float = 10.0
) -> "Run":
    """Return the run of a finished schedule: placed on hosts, with metrics and the record to repeat it."""
    from bridge.cli.versions import versions
    from bridge.fast.jobs_table import jobs_table
    from bridge.judge.allocate import place
    from bridge.judge.metrics import compute, job_energy
    from bridge.judge.run import Run

    jobs = prepared.jobs
    kill = setup.rules()[1].kill
    table = jobs_table(prepared, schedule, killed_at_request=kill)
    capacity = dict(zip(jobs.resources, jobs.capacity.tolist(), strict=True))
    table = place(table, capacity["nodes"])
    if "power" in capacity:
        table["consumed_energy"] = job_energy(table, jobs.idle_power)
    config = {
        "command": command,
        "workload": jobs.name,
        "world": "fast",
        **setup.as_dict(),
        "estimator": setup.estimator or prepared.compiled.protocol.estimator,
        "origin": jobs.origin / 1e6,
        "idle_power": jobs.idle_power if "power" in capacity else None,
        "records": {why: reason.count for why, reason in jobs.tally.items()},
        "versions": versions(),
    }
    metrics = compute(table, capacity, bsld_threshold=threshold, idle_power=jobs.idle_power)
    return Run(
        config, capacity, table, metrics, prepared.oracle, f"{jobs.name} {setup.order}+{setup.backfill}"
    )


def _command(log: str, setup: "Setup", malformed: str, threshold: float) -> str:
    words = ["bridge", "replay", log, "--order", setup.order, "--backfill", setup.backfill]
    words += ["--protocol", setup.protocol]
    for option, value in (
        ("--preset", setup.preset),
        ("--estimator", setup.estimator),
        ("--backfill-order", setup.candidate_order),
        ("--cancelled", setup.cancelled),
        ("--nodes", setup.nodes),
        ("--first", setup.first),
        ("--malformed", "" if malformed == "refuse" else malformed),
        ("--threshold", "" if threshold == 10.0 else repr(threshold)),
    ):
        if value:
            words += [option, str(value)]
    if setup.rebase is not None:
        words.append("--rebase" if setup.rebase else "--no-rebase")
    return shlex.join(words)


def _check_file(path: Path, out: Path | None, force: bool) -> None:
    """Raise BridgeError unless a file may be written here, before the long work; never over a device."""
    if out is None or path.parent.absolute() != out.absolute():  # a run folder is made, or made anew
        if path.exists() and not path.is_file():
            raise BridgeError("exists and is not a file", where=str(path), remedy="Name a new file.")
        if path.exists() and not force:
            raise BridgeError(
                "the file already exists", where=str(path), remedy="Name a new file, or add --force."
            )
        if not path.parent.exists():
            raise BridgeError("its folder does not exist", where=str(path), remedy="Make the folder first.")
        _check_folder(path, path.absolute().parent)


def _check_folder(path: Path, folder: Path) -> None:
    """Raise BridgeError unless files can be made in a folder, or in the nearest one above that exists."""
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise BridgeError(f"{folder} is not a folder", where=str(path), remedy="Choose another place.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BridgeError(
            f"cannot write: no right to write to {folder}",
            where=str(path),
            remedy="Choose a writable folder.",
        )


def _pictures(folder: Path, name: str, jobs: int) -> list[Path]:
    """Return where the timeline goes and, for a small run, the Gantt chart."""
    from bridge.report.plots import MOST_JOBS

    kinds = ("timeline", "gantt") if jobs <= MOST_JOBS else ("timeline",)
    return [folder / f"{name}-{kind}.png" for kind in kinds]


def _draw(run: "Run", pictures: list[Path]) -> None:
    from bridge.report.plots import gantt, save, timeline

    for draw, picture in zip((timeline, gantt), pictures, strict=False):
        save(draw(run), picture)
        click.echo(f"drew {picture}", err=True)
