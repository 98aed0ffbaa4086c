"""`bridge validate`: policies in the fast world against the same policies on a detailed platform."""

from pathlib import Path
from typing import Any

import click

from bridge.base.errors import BridgeError
from bridge.cli import options as shared
from bridge.cli.terminal import TERMINAL, show
from bridge.commands.request import CommandRequest
from bridge.config import Constraint
from bridge.config.options import Command, given_on_command_line, group
from bridge.experiment.spec import DETAILED
from bridge.policy_name import parse_policy

#: What `--help` shows of the long headings.
FOLDS = {
    shared.RULES: ("workload", "protocol", "first", "cluster"),
    "Platform": ("on", "platform", "profile", "energy"),
    "Platform program": (),
    shared.POOL: (),
}
_WORLD = "The detailed world.  [default: simgrid]"


@click.command(cls=Command, folds=FOLDS)
@click.argument("names", metavar="POLICY…", type=shared.POLICY, nargs=-1)
@shared.policies_option
@shared.estimator_option
@shared.cross_protocol_option
@shared.experiment_options(
    "workload",
    workload=Constraint(
        help="A file, a bundled workload or a fetched log.  [default: the log of the first agent's training]"
    ),
)
@shared.rule_options
@shared.experiment_options("seed", "threshold", "malformed")
@group(
    "Platform",
    click.option("--on", type=click.Choice(DETAILED), default="simgrid", help=_WORLD),
    shared.detailed_options,
)
@shared.scheduler_option
@shared.pool_options("rate", "steps", "sequences")
@group(
    shared.POOL,
    click.option(
        "--no-start",
        is_flag=True,
        default=None,
        help="Only write the platform, workload and again.sh of every simulation to --out.",
    ),
)
@group(
    "Output",
    shared.file_option(
        "--out", "Write validation.json (pool: agreement.json) and all runs to this new folder.", "DIR"
    ),
    click.option(
        "--tolerance",
        type=click.FloatRange(min=0),
        metavar="T",
        help="Largest relative difference that is allowed: from the baseline with --against [default: 1e-6], "
        "between the two worlds without it. If a difference is larger, the exit status is 1.",
    ),
    shared.file_option("--save-baseline", "Save the outcome as a baseline."),
    shared.file_option("--against", "Compare the outcome with a baseline.", to="baseline"),
    shared.json_option,
)
@click.pass_context
def validate(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    policies: tuple[str, ...],
    on: str,
    out: Path | None,
    tolerance: float | None,
    save_baseline: Path | None,
    scheduler: str | None,
    as_json: bool,
    **_: Any,
) -> None:
    """Run each POLICY in the fast world and on a detailed platform, and compare the results.

    A POLICY is an order and a backfilling rule, such as fcfs+easy, sjf+conservative or wfp3+none, or the
    folder of a trained agent. On the time-stepped pool, a POLICY is sjf, saf, tetris or tetris*, with or
    without the kill rule (as in saf+rule), or the folder of an agent.

    \b
    Examples:
      bridge validate fcfs+easy sjf+easy --workload bundled-128 --platform sp2-128 --profile io --first 500
      bridge validate fcfs+easy --workload small.swf --platform my.xml --against baseline.json
      bridge validate agents/my-agent fcfs+easy --platform sp2-128 --first 500
      bridge validate saf saf+rule --scheduler pool --platform exact-128 --sequences 2

    The exit status is 1 if a run failed, or if a difference is larger than --tolerance.
    """
    from bridge.judge.world_agreement import write_document

    if not (names or policies):
        raise click.UsageError("Missing argument 'POLICY…'.")
    if out is not None and out.exists():
        raise BridgeError("exists already", where=str(out), remedy="Name a new folder.")
    own = {name: value for name, value in given_on_command_line(ctx).items() if name != "names"}
    request = CommandRequest(tuple(map(parse_policy, (*names, *policies))), typed=own)
    entry = shared.select_backend(scheduler, request, "validate")
    if own.get("no_start") and (out is None or as_json or tolerance is not None):
        raise click.UsageError("--no-start writes to --out DIR, and has no --json or --tolerance")
    output = entry.validate(request, on, out, TERMINAL)
    if save_baseline is not None:
        write_document(output.document, save_baseline)
    show(output.document | {"problems": output.problems}, output.output, as_json)
    if save_baseline is not None:
        TERMINAL.say(f"baseline written to {save_baseline}")
    if not output.problems and "baseline" in own:
        TERMINAL.say(f"agrees with the baseline {own['baseline']}")
    elif not output.problems and tolerance is not None:
        TERMINAL.say("both worlds agree within the tolerance")
    for problem in output.problems[:20]:
        click.echo(f"beyond the tolerance: {problem}", err=True)
    if len(output.problems) > 20:
        click.echo(f"… and {len(output.problems) - 20} more", err=True)
    if output.problems:
        ctx.exit(1)
