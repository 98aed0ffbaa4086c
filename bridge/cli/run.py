"""`bridge run`: one experiment in the fast world, on the embedded platform model, or on Batsim."""

from pathlib import Path
from typing import Any

import click

from bridge.base.errors import BridgeError
from bridge.cli import options as shared
from bridge.cli.terminal import TERMINAL, print_run
from bridge.config.options import Command, given_on_command_line, group
from bridge.experiment.spec import parse, read_document, refuse_programs


@click.command(cls=Command)
@click.argument("file", metavar="[EXPERIMENT.toml]", required=False, type=shared.FILE)
@shared.experiment_options("workload", "on")
@shared.one_policy
@shared.estimator_option
@shared.agent_options
@shared.rule_options
@shared.experiment_options("seed", "threshold", "malformed")
@shared.detailed_options
@group(
    "Platform program",
    shared.flag(
        "--no-start",
        "Do not start the platform program; wait until it is started by hand in --exchange.",
    ),
    click.option(
        "--socket",
        metavar="ADDRESS",
        default="tcp://127.0.0.1:*",
        help="Address of the socket of the decision process.",
    ),
    shared.folder_option("--exchange", "With --no-start: the folder for the files of the simulation."),
)
@shared.out_folder_option
@shared.force_option
@shared.json_option
@click.pass_context
def run(
    ctx: click.Context,
    /,
    file: Path | None,
    policy: str | None,
    out: Path | None,
    force: bool,
    no_start: bool,
    socket: str,
    exchange: Path | None,
    as_json: bool,
    **_: Any,
) -> None:
    """Run one experiment, given by a TOML file, by options, or by both (options replace values of the file).

    \b
    Examples:
      bridge run experiments/teaching-16.toml --out runs/teaching
      bridge run --workload bundled-128 --on simgrid --platform sp2-128 --profile io --policy sjf+easy

    \b
    Exit status of a detailed run:
      0    the simulation ended, and no job is missing
      1    an input is wrong, or the platform program failed
      3    the platform program sent no first message in time
      4    the platform program ended too early
      5    the platform program was silent for --idle-timeout
      6    the simulation ended, but jobs are missing
      130  interrupted
    In all cases the results so far are written to DIR.
    """
    from bridge.experiment.prepare import prepare_experiment
    from bridge.experiment.run import detailed_run, run_fast
    from bridge.judge.run import check_target, write_run

    options = shared.experiment_options_given(ctx, policy)
    own = [shared.option_name(name) for name in ("order", "backfill", "candidate_order") if name in options]
    if "agent" in options and own:
        raise click.UsageError(f"{', '.join(own)} is part of the agent {options['agent']}; leave it out")
    document = read_document(file) if file is not None else {}
    where = str(file) if file is not None else "the options"
    experiment = parse(document, where, options)
    if not no_start:
        refuse_programs(experiment, options, where)
    if no_start and (experiment.on == "fast" or exchange is None):
        what = "needs a detailed world and a folder for the simulation's files"
        raise BridgeError(what, where="--no-start", remedy="Add --on batsim (or simgrid) and --exchange DIR.")
    if not no_start and exchange is not None:
        raise click.UsageError("--exchange needs --no-start")
    if experiment.on == "fast":
        shared.refuse_options({"socket"} & given_on_command_line(ctx).keys(), "the fast world")
    experiment.check()
    if out is not None:
        check_target(out, force=force)
    task = prepare_experiment(experiment)
    TERMINAL.dropped(task.prepared.jobs.tally)
    TERMINAL.warn(task.warnings)
    if experiment.on == "fast":
        result, fault, status = run_fast(task, TERMINAL), None, 0
        if out is not None:
            write_run(result, out, force)
    else:
        inputs = exchange if no_start else None
        with detailed_run(task, TERMINAL, inputs, start=not no_start, socket=socket) as (result, how):
            fault, status = how.fault, how.exit_status
            if out is not None:
                write_run(result, out, force, detailed=how.folder)
    print_run(result, out, as_json)
    if fault is not None:
        click.echo(f"bridge: error: {fault}", err=True)
        ctx.exit(status)
