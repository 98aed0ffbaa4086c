"""What `bridge decide --slurm` does: an agent beside a real Slurm, until it is stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bridge.cli.options import refuse_options
from bridge.cli.show import show_json
from bridge.config import build
from bridge.config.options import Option, group, options, typed
from bridge.errors import BridgeError
from bridge.slurm.settings import Settings

if TYPE_CHECKING:
    from bridge.futures.state import State
    from bridge.schedulers import Request, Scheduler
    from bridge.slurm.present import Observer

F = TypeVar("F", bound=Callable[..., Any])
HEADING = "Slurm"
#: How many differences are printed.
_MOST = 10


def _flag(name: str, told: str) -> Callable[[F], F]:
    return click.option(name, cls=Option, group=HEADING, is_flag=True, help=told)


slurm_options = group(
    HEADING,
    _flag("--slurm", "Decide for a real Slurm, that of SLURM_CONF, in place of Batsim."),
    _flag("--dry-run", "Say what would be started, and write nothing to Slurm."),
    _flag("--shadow", "As --dry-run, and compare with what Slurm starts."),
    options(Settings, but=("mode",)),
)

observed_options = group(
    HEADING,
    _flag("--slurm", "The present of a real Slurm, that of SLURM_CONF."),
    options(Settings, "partition"),
    click.option(
        "--history",
        metavar="LOG",
        type=click.Path(path_type=Path),
        help="Learn run times from what `bridge workload import sacct` wrote.  [default: nothing is known]",
    ),
)


def observer(partition: str | None, policy: str, history: Path | None) -> Observer:
    """Return what reads the present of a partition.

    Raises:
        UsageError: none is named.
        BridgeError: there is no such partition, jobs are hidden from us, or the history is none.
    """
    from bridge.slurm.beliefs import Beliefs
    from bridge.slurm.client import Client
    from bridge.slurm.present import Observer
    from bridge.workload.catalogue import read_log

    if not partition:
        raise click.UsageError("--slurm needs --partition P")
    beliefs = Beliefs(read_log(str(history), "refuse")) if history is not None else None
    return Observer(Client(), partition, policy or "fcfs+easy", beliefs)


def present(partition: str | None, policy: str, history: Path | None) -> tuple[State, dict[str, str]]:
    """Return the present of a partition, and why other waiting jobs have no forecast; see `observer`."""
    from bridge.futures.statefile import state_of

    watching = observer(partition, policy, history)
    try:
        found = watching.read()
    finally:
        watching.close()
    return state_of(found.document, "Slurm"), found.left


def refuse_observed(slurm: bool, source: Path | None, given: Collection[str]) -> None:
    """Refuse a source beside --slurm, none at all, and options of the other one.

    Raises:
        UsageError: see there.
    """
    if slurm == (source is not None):
        raise click.UsageError("name a source, or --slurm --partition P: one of both")
    refuse_options(
        set(given) & ({"at"} if slurm else {"partition", "history"}), "--slurm" if slurm else "a source"
    )


def is_live(ctx: click.Context) -> bool:
    """Tell whether the command is to decide for Slurm; refuse its options where it is not.

    Raises:
        UsageError: there are some.
    """
    if ctx.params["slurm"]:
        return True
    words = [*typed(ctx, Settings), *(name for name in ("dry_run", "shadow") if ctx.params[name])]
    if words:
        raise click.UsageError(f"--{words[0].replace('_', '-')} needs --slurm")
    return False


def decide(ctx: click.Context, entry: Scheduler, request: Request, policy: str) -> None:
    """Decide until interrupted, and write the report to --out.

    Raises:
        BridgeError: there is no such partition, or the scheduler cannot decide for a live machine.
    """
    from bridge.interrupts import hold_interrupts, interrupts_once
    from bridge.slurm.agent import Agent, write_report
    from bridge.slurm.client import Client
    from bridge.slurm.gate import status

    if not hasattr(entry, "deciding"):
        raise BridgeError(
            "the time-stepped pool cannot decide for Slurm",
            where=f"policy {policy!r}",
            remedy="Give a rule such as sjf+easy, or an agent of the event-driven scheduler.",
        )
    if not ctx.params["partition"]:
        raise click.UsageError("--slurm needs --partition P: the partition to decide for")
    if ctx.params["dry_run"] and ctx.params["shadow"]:
        raise click.UsageError("--dry-run and --shadow exclude each other")
    mode = "dry-run" if ctx.params["dry_run"] else "shadow" if ctx.params["shadow"] else "live"
    given = typed(ctx, Settings) | {"mode": mode}
    directory = given.get("directory")
    if directory is not None:
        status(directory)
        given.setdefault("events", directory / "events")
    settings = build(Settings, given, "the options")
    deciding, who = entry.deciding(request)

    def said(line: str) -> None:
        click.echo(f"{time.strftime('%H:%M:%S')} {line}", err=True)

    agent = Agent(settings, deciding, Client(), policy, said)
    said(f"{who} decides for partition {settings.partition} ({mode}), {len(agent.machine.nodes)} nodes")
    with interrupts_once() as signals:
        with suppress(KeyboardInterrupt):
            agent.run(lambda: False)
        hold_interrupts()
        report = agent.report()
        if ctx.params["out"] is not None:
            write_report(report, ctx.params["out"])
        _summary(report, mode)
    ctx.exit(signals.status and 0)


def replay_audit(path: Path, policy: str | None, as_json: bool) -> int:
    """Decide again on what an audit log tells; returns the exit status, 1 if it comes out otherwise.

    Raises:
        BridgeError: it is no audit log, or its policy cannot decide for a live machine.
    """
    from bridge import schedulers
    from bridge.policy_name import parse_policy
    from bridge.schedulers import Request
    from bridge.slurm import audit

    name = policy or audit.policy_of(path)
    entry: Any = schedulers.scheduler("event")
    deciding, _ = entry.deciding(Request((parse_policy(name),)))
    found = audit.replay(path, deciding)
    if as_json:
        show_json({**asdict(found), "policy": name})
    else:
        for difference in found.differences[:_MOST]:
            click.echo(difference)
        same = "the same decisions" if not found.differences else f"{len(found.differences):,} passes differ"
        click.echo(f"{name}: {found.passes:,} passes, {found.starts:,} starts: {same}")
    return 1 if found.differences else 0


def _summary(report: dict[str, Any], mode: str) -> None:
    verb = "started" if mode == "live" else "would have started"
    click.echo(
        f"{verb} {report['starts']:,} jobs in {report['passes']:,} passes; {report['withdrawn']:,} "
        f"withdrawn, {len(report['foreign']):,} left to Slurm, {len(report['lost']):,} lost"
    )
    pairs = [(ours, slurms) for ours, slurms in report["compared"].values() if slurms > 0]
    if mode == "shadow":
        before = sum(0 < ours < slurms - 1 for ours, slurms in pairs)
        click.echo(
            f"Slurm started {len(pairs):,} jobs meanwhile; {before:,} of them would have started here more "
            "than a second before, on nodes that Slurm had free at that moment. Each is judged on the "
            "machine as Slurm had it, so no gain in waiting follows: for that, import the accounting and "
            "replay it."
        )
