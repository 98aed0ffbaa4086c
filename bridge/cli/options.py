"""Options that several commands share: the log, the policy, the rules."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bridge.errors import BridgeError

if TYPE_CHECKING:
    from bridge.workload.table import Workload

F = TypeVar("F", bound=Callable[..., Any])

malformed_option = click.option(
    "--malformed",
    type=click.Choice(["refuse", "drop"]),
    default="refuse",
    show_default=True,
    help="What to do about lines of the log that are no record.",
)

_RULE_OPTIONS = (
    click.option(
        "--protocol",
        type=click.Choice(["standard", "cqsim", "schedgym"]),
        default="standard",
        show_default=True,
        help="The exact rules: textbook, CQSim's, or those of RLScheduler's family.",
    ),
    click.option(
        "--preset",
        type=click.Choice(["rlbackfilling", "rlscheduler", "schedinspector"]),
        help="Load (and sample) the log as this code base does. Under schedgym: rlbackfilling.",
    ),
    click.option(
        "--backfill-order",
        metavar="ORDER",
        default="",
        help="Order among EASY's candidates, if not the queue's: fcfs, sjf, … or an expression of s, t, n.",
    ),
    click.option(
        "--cancelled",
        type=click.Choice(["drop", "keep"]),
        help="Jobs that never ran: drop, or keep with a run time of 10 s.  [default: the rules' own]",
    ),
    click.option("--nodes", type=click.IntRange(min=1), help="Machine size, if not the log's."),
    click.option("--first", metavar="N", type=click.IntRange(min=1), help="Only the first N kept jobs."),
    malformed_option,
)

cross_protocol_option = click.option(
    "--cross-protocol",
    is_flag=True,
    help="Let an agent decide under a protocol that it did not learn under.",
)

ORDER_HELP = (
    "Queue order: fcfs, lcfs, sjf, ljf, saf, srf, wfp3, unicep, f1, f2, f3, f4, slurm, "
    "or an expression such as '(w/t)**3*n', largest first."
)
ESTIMATOR_HELP = (
    "Believed run times: requested, actual, cqsim, noisy(P), predicted, predicted(COLUMN); behind a "
    "prediction `, requested` keeps running jobs at their request.  "
    "[default: the protocol's own]"
)


def typed_options(ctx: click.Context) -> set[str]:
    """Return the names of the parameters that stand on the command line."""
    return {n for n in ctx.params if ctx.get_parameter_source(n) is click.core.ParameterSource.COMMANDLINE}


def rule_options(command: F) -> F:
    """Add the options that choose rules and jobs."""
    for option in reversed(_RULE_OPTIONS):
        command = option(command)
    return command


def read_log(log: str, malformed: str) -> "Workload":
    """Read a workload by path or name."""
    from bridge.workload.catalogue import resolve
    from bridge.workload.formats import read

    path = resolve(log)
    if path.is_dir():
        raise BridgeError("is a folder, not a log", where=log, remedy="Name a file in it.")
    return read(path, malformed="drop" if malformed == "drop" else "refuse")


def check_output(out: Path, force: bool) -> None:
    """Refuse a file that cannot be written, or must not be replaced, before the long work.

    Raises:
        BridgeError: see there.
    """
    if out.is_dir():
        raise BridgeError("is a folder", where=str(out), remedy="Name a file in it.")
    if out.exists() and not force:
        raise BridgeError(
            "the file exists", where=str(out), remedy="Name another, or pass --force to replace it."
        )
    if not out.parent.is_dir():
        raise BridgeError("no such folder", where=str(out.parent), remedy="Make it first.")


def warn_about(tally: Any) -> None:
    """Say on stderr which records were dropped or repaired, in one line each."""
    for why, reason in tally.items():
        if reason.kind == "dropped":
            examples = ", ".join(map(str, reason.examples))
            more = ", …" if reason.count > len(reason.examples) else ""
            noun = "record" if reason.count == 1 else "records"
            click.echo(f"bridge: {reason.count:,} {noun} dropped: {why} (job {examples}{more})", err=True)
    repaired = [f"{r.count:,} {why}" for why, r in tally.items() if r.kind != "dropped"]
    if repaired:
        click.echo(f"bridge: {'; '.join(repaired)}", err=True)
