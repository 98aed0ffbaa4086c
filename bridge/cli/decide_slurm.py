"""What `bridge decide --slurm` does: an agent beside a real Slurm, until it is stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.cli.options import F, file_option, flag, refuse_options
from bridge.cli.terminal import TERMINAL, show
from bridge.commands.request import CommandBackend, CommandRequest, Live, scheduler
from bridge.config import from_tables
from bridge.config.fields import fields_of, record_of
from bridge.config.options import given_on_command_line, group, options
from bridge.policy_name import parse_policy
from bridge.worlds.slurm.settings import AgentConfig

if TYPE_CHECKING:
    from bridge.forecasting.state import MachineState
    from bridge.serve.observer import PartitionObserver

HEADING = "Slurm"
#: How many differences are printed.
_MOST = 10
#: Options of `bridge decide` that mean something to a Slurm, beside `Settings`.
_OF_SLURM = {"policy", "scheduler", "backfill", "candidate_order", "estimator", "cross_protocol", "out"}
_OF_SLURM |= {"slurm", "dry_run", "shadow"}


slurm_options = group(
    HEADING,
    flag("--slurm", "Decide for a real Slurm (the one of SLURM_CONF), not for Batsim."),
    flag("--dry-run", "Print the jobs that would be started, and change nothing in Slurm."),
    flag("--shadow", "As --dry-run, and compare with the starts of Slurm."),
    options(AgentConfig, exclude=("mode",)),
)

observed_options = group(
    HEADING,
    flag("--slurm", "Read the present state of a real Slurm (the one of SLURM_CONF)."),
    options(AgentConfig, "partition"),
    file_option(
        "--history",
        "Learn run times from this log (`bridge workload import sacct`).  [default: only limits are known]",
        "LOG",
    ),
)


at_option = click.option(
    "--at", type=float, metavar="TIME", help="For a RUN: the time of the state, in seconds of its clock."
)


def submit_option(help_text: str) -> Callable[[F], F]:
    return click.option("--submit", "submits", multiple=True, metavar="NODES:WALLTIME[:USER]", help=help_text)


def open_observer(partition: str | None, policy: str, history: Path | None) -> PartitionObserver:
    """Return what reads the present of partitions; UsageError if none is named.

    Without a policy, Slurm's own schedulers decide, or fcfs+easy where they cannot be played. Under a policy
    that decides on a site's nodes, these are what futures know; else one pool.
    """
    from bridge.experiment.live_pass import decides_on_sites
    from bridge.forecasting.fork import policy_of
    from bridge.serve.observer import PartitionObserver, RunTimeModel
    from bridge.serve.site_observer import SiteObserver
    from bridge.workload.catalogue import read_log
    from bridge.worlds.slurm.client import Client
    from bridge.worlds.slurm.site_reading import require_partitions

    if not partition:
        raise click.UsageError("--slurm needs --partition P")
    beliefs = RunTimeModel(read_log(str(history), "refuse")) if history is not None else None
    if not policy:
        try:
            return SiteObserver(Client(), partition, beliefs=beliefs, own=True)
        except BridgeError as error:
            click.echo(f"futures under fcfs+easy, not Slurm's own schedulers: {error}", err=True)
    policy = policy or "fcfs+easy"
    several = len(require_partitions(partition)) > 1
    observer = SiteObserver if several or decides_on_sites(policy_of(policy)) else PartitionObserver
    return observer(Client(), partition, policy, beliefs)


def state(
    source: Path | None, at: float | None, policy: str, partition: str | None, history: Path | None
) -> tuple[MachineState, dict[str, str]]:
    """Return the state of a run or a file; without one the present of a partition, see `open_observer`.

    Also why other waiting jobs have no forecast.
    """
    from bridge.forecasting.run_state import load_state

    if source is not None:
        with TERMINAL.bar("earlier forecasts", 1200, "forecasts") as progress:
            return load_state(source, at, policy, progress=progress), {}
    with closing(open_observer(partition, policy, history)) as watching:
        reading = watching.read()
    return reading.machine_state(), reading.not_forecast


def refuse_observed(slurm: bool, source: Path | None, options: Collection[str]) -> None:
    """Refuse (UsageError) a source beside --slurm, none at all, and options of the other one."""
    if slurm == (source is not None):
        raise click.UsageError("name a source, or --slurm --partition P: one of both")
    whose, others = ("--slurm", {"at"}) if slurm else ("a source", {"partition", "history"})
    refuse_options(others & {*options}, whose)


def is_live(ctx: click.Context) -> bool:
    """Tell whether the command is to decide for Slurm; where it is not, its options are a UsageError."""
    if ctx.params["slurm"]:
        return True
    words = [
        *given_on_command_line(ctx, AgentConfig),
        *(name for name in ("dry_run", "shadow") if ctx.params[name]),
    ]
    if words:
        raise click.UsageError(f"--{words[0].replace('_', '-')} needs --slurm")
    return False


def decide(ctx: click.Context, entry: CommandBackend, request: CommandRequest, policy: str) -> None:
    """Decide until interrupted, and write the report to --out; BridgeError: there is no such partition."""
    from bridge.base.interrupts import hold_interrupts, interrupts_once
    from bridge.experiment.live_pass import site_pass_of
    from bridge.worlds.slurm.agent import SlurmAgent
    from bridge.worlds.slurm.client import Client
    from bridge.worlds.slurm.gate import gate_of
    from bridge.worlds.slurm.report import write_report
    from bridge.worlds.slurm.site_reading import require_partitions

    refuse_options(given_on_command_line(ctx).keys() - {*fields_of(AgentConfig), *_OF_SLURM}, "--slurm")
    if not isinstance(entry, Live):
        what = "the time-stepped pool cannot decide for Slurm"
        remedy = "Give a rule such as sjf+easy, or an agent of the event-driven scheduler."
        raise BridgeError(what, where=f"policy {policy!r}", remedy=remedy)
    if not ctx.params["partition"]:
        raise click.UsageError("--slurm needs --partition P: the partition to decide for")
    if ctx.params["dry_run"] and ctx.params["shadow"]:
        raise click.UsageError("--dry-run and --shadow exclude each other")
    mode = "dry-run" if ctx.params["dry_run"] else "shadow" if ctx.params["shadow"] else "live"
    options = given_on_command_line(ctx, AgentConfig) | {"mode": mode}
    directory = options.get("directory")
    if directory is not None:
        for name in require_partitions(ctx.params["partition"]):
            gate_of(directory, name)
        options.setdefault("events", directory / "events")
    settings = from_tables(AgentConfig, options, "the options")
    deciding, who = entry.dispatcher_config(request)
    site = site_pass_of(deciding, len(require_partitions(settings.partition)))

    def print_line(line: str) -> None:
        click.echo(f"{time.strftime('%H:%M:%S')} {line}", err=True)

    agent = SlurmAgent(settings, deciding, Client(), policy, print_line, site)
    nodes = len(agent.tracking.machine.nodes)
    print_line(f"{who} decides for partition {settings.partition} ({mode}), {counted(nodes, 'node')}")
    with interrupts_once():
        with suppress(KeyboardInterrupt):
            agent.run(lambda: False)
        hold_interrupts()
        report = agent.report()
        if ctx.params["out"] is not None:
            write_report(report, ctx.params["out"])
        _summary(report, mode)
    ctx.exit(0)  # it only ends when it is told to


def replay_audit(path: Path, policy: str | None, as_json: bool) -> int:
    """Decide again on what an audit log tells; returns the exit status, 1 if it comes out otherwise."""
    from bridge.experiment.live_pass import ClusterPass
    from bridge.worlds.slurm import audit

    name = policy or audit.policy_of(path)
    entry = scheduler("event")
    assert isinstance(entry, Live)
    deciding, _ = entry.dispatcher_config(CommandRequest((parse_policy(name),)))
    result = audit.replay(path, deciding, lambda: ClusterPass.of(deciding))
    same = "the same decisions" if not result.differences else f"{len(result.differences):,} passes differ"
    summary = f"{name}: {counted(result.passes, 'pass', 'passes')}, {counted(result.starts, 'start')}: {same}"
    show({**record_of(result), "policy": name}, [*result.differences[:_MOST], summary], as_json)
    return 1 if result.differences else 0


def _summary(report: dict[str, Any], mode: str) -> None:
    verb = "started" if mode == "live" else "would have started"
    click.echo(
        f"{verb} {counted(report['starts'], 'job')} in "
        f"{counted(report['passes'], 'pass', 'passes')}; {report['withdrawn']:,} "
        f"withdrawn, {len(report['foreign']):,} left to Slurm, {len(report['lost']):,} lost"
    )
    if any(report[name] for name in ("requeued", "cancelled", "suspended")):
        click.echo(
            f"stopped running jobs: {report['requeued']:,} requeued, {report['cancelled']:,} cancelled, "
            f"{report['suspended']:,} suspended"
        )
    pairs = [(ours, slurms) for ours, slurms in report["compared"].values() if slurms > 0]
    if mode == "shadow":
        before = sum(0 < ours < slurms - 1 for ours, slurms in pairs)
        click.echo(
            f"Slurm started {counted(len(pairs), 'job')} meanwhile; {before:,} of them would have "
            "started here more than a second before, on nodes that Slurm had free at that moment. Each "
            "is judged on the machine as Slurm had it, so no gain in waiting follows: for that, import "
            "the accounting and replay it."
        )
