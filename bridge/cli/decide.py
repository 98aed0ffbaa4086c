"""`bridge decide`: a policy as the decision process of a detailed platform."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridge.base.interrupts import hold_interrupts, interrupts_once
from bridge.cli import decide_slurm
from bridge.cli import options as shared
from bridge.commands.request import CommandRequest
from bridge.config.options import Command, given_on_command_line, group, options
from bridge.experiment.spec import Detailed, Experiment
from bridge.policy_name import parse_policy
from bridge.scheduler.names import KILLS
from bridge.worlds.fast.scheduler_config import SchedulerConfig

if TYPE_CHECKING:
    from bridge.worlds.batsim.result import ProcessResult

_KILL = "Short for HEURISTIC+rule: the rule that kills mispredicted jobs.  [default: none]"
#: How many refusals and rejections are printed.
_MOST = 10


def _pairs(_ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise click.BadParameter(f"{text!r} is not {option.metavar}")
        if name in pairs:
            raise click.BadParameter(f"{name!r} is given twice")
        pairs[name] = value
    return pairs


#: What `--help` shows of the long headings.
FOLDS = {
    "Platform": ("placement", "platform", "energy"),
    "Platform program": (),
    "Slurm": ("slurm", "partition", "directory", "dry_run", "shadow"),
    shared.POOL: (),
}


@click.command(cls=Command, folds=FOLDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("policy", type=shared.POLICY)
@group(
    "Policy",
    options(SchedulerConfig, "backfill", "candidate_order"),
    shared.field_options(
        SchedulerConfig,
        estimator="The estimator of run times; all but requested need --workload.  [default: requested]",
    ),
    options(Experiment, "cross_protocol"),
    shared.field_options(
        Experiment,
        workload="The log of the simulated jobs, for --estimator and for orders that need the whole log.",
    ),
    shared.field_options(
        SchedulerConfig,
        first="Only the first N jobs of --workload that the loading rule keeps.",
        cluster="The site of --workload: nodes, partitions and rules.",
    ),
)
@group(
    "Platform",
    shared.field_options(
        Detailed, placement="Which hosts a job gets; best-fit and topology need --platform."
    ),
    shared.file_option(
        "--platform",
        "The platform XML: which hosts are near each other, and the amounts of burst buffer and power.",
    ),
    click.option(
        "--resource",
        "resources",
        metavar="NAME=AMOUNT",
        multiple=True,
        callback=_pairs,
        help="A further resource and its amount; jobs request it in a field of this name. May be repeated.",
    ),
    click.option(
        "--storage",
        metavar="LABEL=HOST",
        multiple=True,
        callback=_pairs,
        help="The storage host for a label in the profiles, if no host has this name. May be repeated.",
    ),
    click.option("--energy", is_flag=True, help="The platform simulates energy (-E)."),
    click.option(
        "--batsim",
        type=click.Choice(["4", "5"]),
        help="Accept only this version.  [default: any; the first bytes show it]",
    ),
)
@group(
    "Socket",
    click.option(
        "--socket",
        "address",
        metavar="ENDPOINT",
        default="tcp://127.0.0.1:28000",
        show_default=True,
        help="Address of the socket. Batsim connects with -s tcp://localhost:28000. With tcp://*:28000 other "
        "machines can connect, too.",
    ),
    options(Detailed, "startup_timeout", "idle_timeout"),
)
@decide_slurm.slurm_options
@shared.scheduler_option
@shared.pool_options()
@group(shared.POOL, click.option("--kill", type=click.Choice(KILLS), help=_KILL))
@click.option(
    "--strict",
    is_flag=True,
    help="End with an error at an illegal decision. Without it, the decision is dropped.",
)
@shared.file_option("--out", "Write the decisions as JSON.")
@click.pass_context
def decide(
    ctx: click.Context, /, policy: str, address: str, out: Path | None, scheduler: str | None, **_: Any
) -> None:
    """Let POLICY decide for Batsim (4 or 5), for the embedded platform model, or for a real Slurm (--slurm).

    POLICY is a queue order (a name or an expression) with or without +BACKFILL, or the folder of a trained
    agent. On the time-stepped pool, POLICY is sjf, saf, tetris or tetris*, with or without the kill rule (as
    in saf+rule), or the folder of an agent.

    \b
    Exit status:
      0         the simulation ended, and no job is missing
      1         an error
      2         the command line is wrong
      3         no message came within --startup-timeout
      4         the other side closed the connection before the end
      5         the other side was silent for --idle-timeout
      6         the simulation ended, but jobs are missing
      130, 143  interrupted, terminated
    In all cases the decisions so far are written to --out.

    \b
    Examples:
      bridge decide sjf+easy
      bridge decide '(w/t)**3*n+none' --placement contiguous --out decisions.json
      bridge decide agents/my-agent
      bridge decide saf+rule --scheduler pool
      bridge decide sjf+easy --slurm --partition batch --shadow
    """
    from bridge.worlds.batsim.endpoint import Endpoint
    from bridge.worlds.batsim.process import warm_up
    from bridge.worlds.batsim.result import ExitReason

    if out is not None and not out.parent.is_dir():
        raise click.BadParameter(f"there is no folder {out.parent}", param_hint="--out")
    typed_options, name = given_on_command_line(ctx), parse_policy(policy)
    request = CommandRequest((name,), typed=typed_options)
    entry = shared.select_backend(scheduler, request, "decide")
    for part, own in (("backfill", name.backfill), ("candidate_order", ""), ("kill", name.kill)):
        if part in typed_options and (name.agent or own):
            whose = f"agent {policy}" if name.agent else f"policy {policy}"
            raise click.UsageError(f"{shared.option_name(part)} is part of the {whose}; leave it out")
    if decide_slurm.is_live(ctx):
        decide_slurm.decide(ctx, entry, request, policy)
    process, who = entry.decide(request)
    first, again = (typed_options.get(n, getattr(Detailed, n)) for n in ("startup_timeout", "idle_timeout"))
    with interrupts_once() as signals:
        try:
            warm_up()
            with Endpoint(address, startup_timeout=first, idle_timeout=again) as endpoint:
                click.echo(f"bridge: {who}; waiting for Batsim on {endpoint.address}", err=True)
                result = process.run(endpoint)
        except KeyboardInterrupt:
            result = process.result(ExitReason.INTERRUPTED)
        hold_interrupts()
        if out is not None:
            result.write(out)
        _report(result)
    ctx.exit(signals.status or result.outcome.status)


def _report(result: "ProcessResult") -> None:
    """Say how it ended: on stdout what was decided, on stderr what is wrong."""
    from bridge.worlds.batsim.result import ExitReason

    if result.error is not None:
        click.echo(f"bridge: error: {result.error}", err=True)
    if result.outcome is not ExitReason.ENDED:
        click.echo(f"bridge: {result.explain()}", err=True)
    rejected = [job for job in result.jobs if job.state == "rejected"]
    for lines, what in (
        ([f"not sent: {refusal}" for refusal in result.refusals], "decisions were not sent"),
        ([f"rejected {job.job_id}: {job.why}" for job in rejected], "jobs were rejected"),
    ):
        for line in lines[:_MOST]:
            click.echo(f"bridge: {line}", err=True)
        if len(lines) > _MOST:
            click.echo(f"bridge: {len(lines):,} {what}", err=True)
    counts = ", ".join(f"{count:,} {state.lower()}" for state, count in result.counts().items() if count)
    where = result.locality
    placed = f"{where.rule}: goal met by {where.met:,} of {where.starts:,} starts"
    click.echo(f"{counts or 'no job was submitted'}; {placed}")
