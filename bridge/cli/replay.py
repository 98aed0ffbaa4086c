"""`bridge replay`: one log, one policy, a judged schedule."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from bridge.cli import decide_slurm
from bridge.cli import options as shared
from bridge.cli.terminal import TERMINAL, print_run
from bridge.config import command_line, to_arguments
from bridge.config.options import Command, given_on_command_line, group
from bridge.experiment.spec import Experiment, parse
from bridge.worlds.fast.scheduler_config import SchedulerConfig


@click.command(cls=Command)
@click.argument("log", required=False)
@shared.one_policy
@shared.estimator_option
@shared.agent_options
@shared.rule_options
@shared.experiment_options("seed", "threshold", "malformed", "dependencies")
@shared.file_option(
    "--from-audit",
    "Instead of LOG: repeat the decisions of an agent for Slurm from its audit file, and compare.",
)
@group(
    "Output",
    shared.out_folder_option,
    shared.flag("--force", "Replace the run in DIR, and other outputs."),
    shared.file_option("--rst", "Write CQSim's result file."),
    shared.flag(
        "--plot",
        "Draw a timeline and, if the run is small, a Gantt chart, in DIR (or in the current folder).",
    ),
    click.option(
        "--by",
        type=click.Choice(["user", "size", "queue", "partition", "qos", "account", "reason"]),
        multiple=True,
        help="Show waits and bounded slowdowns for each group of this kind. May be repeated.",
    ),
    shared.json_option,
)
@click.pass_context
def replay(
    ctx: click.Context,
    /,
    log: str | None,
    policy: str | None,
    from_audit: Path | None,
    out: Path | None,
    force: bool,
    rst: Path | None,
    plot: bool,
    by: tuple[str, ...],
    as_json: bool,
    **_: Any,
) -> None:
    """Replay LOG (a file, a bundled workload or a fetched log) under one policy.

    The policy recorded starts each job at its recorded time.

    \b
    Examples:
      bridge replay bundled-128 --policy sjf+easy
      bridge replay SDSC-SP2.swf.gz --policy recorded --out runs/recorded
      bridge replay SDSC-SP2.swf.gz --order wfp3 --protocol cqsim --first 10000 --out runs/wfp3
    """
    if (log is None) == (from_audit is None):
        raise click.UsageError("Give LOG or --from-audit FILE.")
    if log is None:
        assert from_audit is not None
        shared.refuse_options(
            given_on_command_line(ctx).keys() - {"from_audit", "policy", "as_json"}, "--from-audit"
        )
        ctx.exit(decide_slurm.replay_audit(from_audit, policy, as_json))
    from bridge.experiment.prepare import prepare_experiment
    from bridge.experiment.run import run_fast
    from bridge.judge.run import check_target, write_rst, write_run

    experiment = parse({"workload": log}, "the options", shared.experiment_options_given(ctx, policy))
    experiment.check()
    if out is not None:
        check_target(out, force=force)
        shared.check_folder(out)
    if rst is not None:
        shared.check_output(rst, force, inside=out)
    task = prepare_experiment(experiment)
    pictures = _pictures(out or Path(), task.prepared.jobs.name, task.n_jobs) if plot else {}
    for picture in pictures.values():
        shared.check_output(picture, force, inside=out)
    TERMINAL.dropped(task.prepared.jobs.tally)
    TERMINAL.warn(task.warnings)
    defaults = (
        SchedulerConfig() if experiment.agent else SchedulerConfig(order="", backfill="", protocol="")
    )  # those even by default
    stated, named = replace(experiment, workload="").without_action(defaults)
    options = to_arguments(stated, Experiment("", setup=defaults))
    command = command_line("replay", log, *options, *named)
    run = run_fast(task, TERMINAL, command, whole=plot or rst is not None)
    if out is not None:
        write_run(run, out, force)
    if rst is not None:
        write_rst(run.jobs, rst)
    print_run(run, out, as_json, by)
    if plot:
        from bridge.report import plots

        for kind, picture in pictures.items():
            plots.save(getattr(plots, kind)(run), picture)
            click.echo(f"drew {picture}", err=True)


def _pictures(folder: Path, name: str, jobs: int) -> dict[str, Path]:
    """Return where the timeline goes and, for a small run, the Gantt chart."""
    from bridge.report.plots import MOST_JOBS

    kinds = ("timeline", "gantt") if jobs <= MOST_JOBS else ("timeline",)
    return {kind: folder / f"{name}-{kind}.png" for kind in kinds}
