"""`bridge run`: one experiment in the fast world, on the embedded platform model, or on Batsim."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridge.cli.options import ESTIMATOR_HELP, ORDER_HELP, cross_protocol_option, rule_options, warn_about
from bridge.cli.progress import progress_bar, say_if_compiling
from bridge.errors import BridgeError

if TYPE_CHECKING:
    from bridge.experiment.prepare import Task
    from bridge.experiment.spec import Experiment
    from bridge.judge.run import Run

_DETAILED_OPTIONS = (
    click.option("--platform", metavar="XML", help="The detailed machine: a file, or a shipped platform."),
    click.option(
        "--profile", metavar="KIND", help="What jobs do: delay, compute, network:F, io[:F].  [default: delay]"
    ),
    click.option(
        "--fidelity",
        type=click.Choice(["alloc_only", "io_aware"]),
        help="Burst-buffer requests are booked only, or staged too.  [default: alloc_only]",
    ),
    click.option(
        "--stage-in",
        type=click.FloatRange(0, 1),
        metavar="F",
        help="io_aware: share of its request that a job brings in first.  [default: 0.25]",
    ),
    click.option(
        "--stage-out",
        type=click.FloatRange(0, 1),
        metavar="F",
        help="io_aware: share that it brings out at last.  [default: 0.25]",
    ),
    click.option(
        "--checkpoints",
        type=click.IntRange(min=0),
        metavar="N",
        help="io_aware: checkpoints that a job makes.  [default: 0]",
    ),
    click.option(
        "--drain",
        type=click.FloatRange(0, 1),
        metavar="F",
        help="io_aware: share that each checkpoint writes and drains.  [default: 0.25]",
    ),
    click.option(
        "--walltime",
        metavar="POLICY",
        help="keep the requests as walltimes, none, or factor:F.  "
        "[default: keep; none for network, io and io_aware]",
    ),
    click.option(
        "--placement",
        type=click.Choice(["first-fit", "contiguous", "best-fit", "topology"]),
        help="Which hosts a job gets.  [default: first-fit]",
    ),
    click.option("--energy/--no-energy", default=None, help="Simulate power and energy."),
    click.option(
        "--power",
        type=click.Choice(["", "per-job"]),
        metavar="per-job",
        help="Let a job's hosts draw the watts that it asks for, within the platform's budget.",
    ),
    click.option(
        "--power-budget",
        type=click.FloatRange(min=0),
        metavar="W",
        help="For all compute hosts together.  [default: the platform's]",
    ),
    click.option(
        "--shutdown-after",
        type=click.FloatRange(min=0),
        metavar="S",
        help="Switch hosts off that have been idle for so long; 0 = never.  [default: 0]",
    ),
    click.option(
        "--dvfs",
        type=click.FloatRange(0, 1),
        metavar="SHARE",
        help="Run jobs slowly that start when none waits and at most this share of the hosts is busy.",
    ),
    click.option("--program", metavar="COMMAND", help="The platform program, if not the usual one."),
    click.option("--image", metavar="NAME", help="Start Batsim from this container image, with docker."),
    click.option(
        "--option",
        "options",
        metavar="TEXT",
        multiple=True,
        help="A further option of the platform program; repeatable.",
    ),
    click.option(
        "--startup-timeout",
        type=click.FloatRange(min=0),
        metavar="S",
        help="Wait so long for its first message; 0 = for ever.  [default: 300]",
    ),
    click.option(
        "--idle-timeout",
        type=click.FloatRange(min=0),
        metavar="S",
        help="Wait so long for each further one.  [default: 3600]",
    ),
)


def detailed_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the detailed world."""
    for option in reversed(_DETAILED_OPTIONS):
        command = option(command)
    return command


@click.command()
@click.argument("file", metavar="[EXPERIMENT.toml]", required=False, type=click.Path(path_type=Path))
@click.option("--workload", metavar="LOG", help="A file, a bundled workload or a fetched log.")
@click.option("--on", type=click.Choice(["fast", "simgrid", "batsim"]), help="The world.  [default: fast]")
@click.option("--order", help=ORDER_HELP)
@click.option("--backfill", type=click.Choice(["none", "easy", "conservative"]), help="Backfilling rule.")
@click.option("--estimator", help=ESTIMATOR_HELP)
@click.option("--agent", metavar="CHECKPOINT", help="A trained agent that decides; brings its own order.")
@cross_protocol_option
@rule_options
@click.option("--seed", type=click.IntRange(min=0), help="Of the estimator noisy(P).")
@click.option("--threshold", type=float, metavar="S", help="Of the bounded slowdown.  [default: 10]")
@detailed_options
@click.option(
    "--out", metavar="DIR", type=click.Path(path_type=Path), help="Write the run to this new folder."
)
@click.option("--force", is_flag=True, help="Replace the run in DIR.")
@click.option(
    "--no-start",
    is_flag=True,
    help="Do not start the platform program: wait for one that somebody else starts in --exchange.",
)
@click.option(
    "--socket", metavar="ADDRESS", default="tcp://127.0.0.1:*", help="Where decisions are asked for."
)
@click.option(
    "--exchange",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="With --no-start: the folder of the simulation's files.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the metrics as JSON.")
@click.pass_context
def run(
    ctx: click.Context,
    /,
    file: Path | None,
    out: Path | None,
    force: bool,
    no_start: bool,
    socket: str,
    exchange: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Carry out an experiment, given by a TOML file, by options, or both (options win).

    \b
    Examples:
      bridge run experiments/teaching-16.toml --out runs/teaching
      bridge run --workload bundled-128 --on simgrid --platform sp2-128 --profile io --order sjf

    Exit status of a detailed run: 0; 1 if the platform program failed; 3 if it never spoke, 4 if it went
    away, 5 if it fell silent, 6 if jobs are missing, 130 when interrupted. Whatever it is, what happened is
    written to DIR.
    """
    from bridge.experiment.prepare import load
    from bridge.judge.run import check_target, write_run

    typed = given(ctx, options)
    if "agent" in typed and (own := [n for n in ("order", "backfill", "candidate_order") if n in typed]):
        raise click.UsageError(f"{', '.join(own)} is part of the agent {typed['agent']}; leave it out")
    experiment = experiment_of(file, typed)
    if no_start and (experiment.on == "fast" or exchange is None):
        raise BridgeError(
            "needs a detailed world and a folder for the simulation's files",
            where="--no-start",
            remedy="Add --on batsim (or simgrid) and --exchange DIR.",
        )
    experiment.check()
    if out is not None:
        check_target(out, force=force)
    task = load(experiment)
    warn_about(task.prepared.jobs.tally)
    say_if_compiling()
    if experiment.on == "fast":
        made, fault, status = run_fast(task), None, 0
        if out is not None:
            write_run(made, out, force)
    else:
        from bridge.experiment.child import terminations_as_interrupts

        with terminations_as_interrupts(), _folder(exchange if no_start else None) as folder:
            made, fault, status = run_detailed(task, folder, start=not no_start, socket=socket)
            if out is not None:
                write_run(made, out, force, detailed=folder)
    _tell(made, as_json)
    if out is not None and not as_json:
        click.echo(f"run written to {out}; repeat it with: {made.config['command']}")
    if fault is not None:
        click.echo(f"bridge: error: {fault}", err=True)
        ctx.exit(status)


def given(ctx: click.Context, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given on the command line, under the names of an experiment's fields."""
    source = click.core.ParameterSource.COMMANDLINE
    found = {name: value for name, value in options.items() if ctx.get_parameter_source(name) is source}
    if "backfill_order" in found:
        found["candidate_order"] = found.pop("backfill_order")
    return found


def experiment_of(file: Path | None, options: dict[str, Any]) -> "Experiment":
    """Return the experiment of a TOML file (or none) with options over it.

    Raises:
        BridgeError: see `bridge.experiment.spec.parse`.
    """
    from bridge.experiment.spec import overlay, parse, read_document

    document = read_document(file) if file is not None else {}
    return parse(overlay(document, options), str(file) if file is not None else "the options")


def run_fast(task: "Task") -> "Run":
    """Run a loaded experiment in the fast world, with progress."""
    from dataclasses import replace

    from bridge.cli.replay import finished_run
    from bridge.cli.versions import versions
    from bridge.experiment.collect import record
    from bridge.fast.replay import replay

    prepared = task.prepared
    with progress_bar(f"{prepared.jobs.name} {task.setup.order}", len(prepared.jobs), "jobs") as advance:
        if task.agent is None:
            schedule = replay(prepared, advance)
        else:
            from bridge.learn import play

            schedule = play.replay(task.agent, prepared, advance)
    made = finished_run(prepared, schedule, task.setup, "", task.experiment.threshold)
    name = f"{prepared.jobs.name} {task.agent.name}" if task.agent else made.name
    return replace(made, name=name, config=record(task, versions()) | {"world": "fast"})


def run_detailed(
    task: "Task", folder: Path, *, start: bool = True, socket: str = "tcp://127.0.0.1:*"
) -> "tuple[Run, BridgeError | None, int]":
    """Run a loaded experiment in the detailed world, with progress; return run, fault and exit status."""
    from bridge.cli.versions import versions
    from bridge.experiment.collect import collect
    from bridge.experiment.detailed import conduct

    jobs = task.prepared.jobs
    title = f"{jobs.name} {task.setup.order} on {task.experiment.on}"
    with progress_bar(title, len(jobs), "jobs") as advance:
        conducted = conduct(task, folder, progress=advance, start=start, socket=socket, waiting=_say_waiting)
    made = collect(task, conducted, versions())
    over = made.metrics.get("over_budget.seconds")
    if over:
        click.echo(f"bridge: the machine drew more than its power budget for {over:g} s", err=True)
    return made, conducted.fault, conducted.exit_status


def _say_waiting(command: str) -> None:
    click.echo(f"bridge: waiting for the platform program, to be started in the folder: {command}", err=True)


@contextmanager
def _folder(exchange: Path | None) -> Iterator[Path]:
    """Yield the simulation's folder: the given one, or a temporary one."""
    if exchange is not None:
        exchange.mkdir(parents=True, exist_ok=True)
        yield exchange
        return
    name = tempfile.mkdtemp(prefix="bridge-run-")
    try:
        folder = Path(name) / "detailed"  # with the user's own umask, unlike the one above it
        folder.mkdir()
        yield folder
    finally:
        shutil.rmtree(name, ignore_errors=True)


def _tell(made: "Run", as_json: bool) -> None:
    if as_json:
        import json

        click.echo(json.dumps({"oracle": made.oracle, **made.metrics}, indent=2))
        return
    from rich.console import Console

    from bridge.report.tables import metrics_table

    Console().print(metrics_table(made))
