"""`bridge fidelity`: how near replays of a log come to what its record says happened."""

from pathlib import Path
from typing import Any

import click

from bridge.cli import options as shared
from bridge.cli.terminal import TERMINAL, show
from bridge.commands.fidelity_config import FidelityConfig
from bridge.commands.request import CommandRequest
from bridge.config.options import Command, given_on_command_line, group, options
from bridge.policy_name import parse_policy, refuse_twice


@click.command(cls=Command)
@click.argument("log")
@shared.policies_option
@shared.estimator_option
@options(FidelityConfig, heading="Jobs that are compared")
@shared.rule_options
@shared.malformed_option
@group(
    "Output",
    shared.json_option,
    shared.file_option("--plot", "Draw waits, recorded and replayed, and their reasons (.svg or .png)."),
    shared.flag("--force", "Replace FILE if it exists."),
)
@click.pass_context
def fidelity(
    ctx: click.Context,
    /,
    log: str,
    policies: tuple[str, ...],
    plot: Path | None,
    force: bool,
    as_json: bool,
    **_: Any,
) -> None:
    """Compare the starts in a replay with the starts that LOG records, job by job.

    Each policy (default: fcfs+easy) is compared with two references. Both come from the earlier part of the
    log: the null is a forecast from the waits there, without simulation; the textbook rule is the rule that
    was nearest to the recorded starts there. The earlier part ends at --from, or at the middle of the log.

    The verdict compares the logarithms of the two waits of each job, because a few long waits dominate the
    other measures. The last lines show how much of the waiting is explained: by too few free nodes, by a full
    partition, or by one reservation.

    \b
    Examples:
      bridge fidelity SDSC-SP2.swf.gz
      bridge fidelity SDSC-SP2.swf.gz --policy fcfs+easy --policy sjf+easy --from 0.5 --window 1500
      bridge fidelity site.parquet --json --plot fidelity.svg
    """
    from bridge.commands.fidelity import fidelity as compare

    if plot is not None:
        shared.check_picture(plot, force)
    request = CommandRequest(
        tuple(map(parse_policy, refuse_twice(policies))), log, given_on_command_line(ctx)
    )
    output = compare(request, TERMINAL)
    show(output.document, output.output, as_json)
    if plot is not None:
        from bridge.report.fidelity_picture import fidelity_picture
        from bridge.report.plots import save

        save(fidelity_picture(output.document), plot)
        click.echo(f"drew {plot}", err=True)
