"""`bridge batsim`: what was recorded between a Batsim and its decision process."""

from pathlib import Path

import click

from bridge.cli import options as shared
from bridge.config.options import Command
from bridge.policy_name import parse_policy


@click.group()
def batsim() -> None:
    """Work with sessions that were recorded between a Batsim and a decision process."""


@batsim.command(cls=Command)
@click.argument("cases", metavar="CASE…", nargs=-1, required=True, type=shared.FILE)
@shared.policy_option(
    "The order, with or without +BACKFILL, that decides beside the recorded decider.",
    default="fcfs",
    show_default=True,
)
@click.pass_context
def replay(ctx: click.Context, /, cases: tuple[Path, ...], policy: str) -> None:
    """Replay each CASE, and print one line: whether all messages are read and all decisions are legal.

    A CASE is the folder of a session of Batsim 4 (transcript.jsonl) or 5 (messages.jsonl), or that file.
    Every frame of both sides is read and written back, and must be the same frame. The policy decides at each
    message. Each decision must be legal. If only one decision is possible, it must be that one.

    \b
    Examples:
      bridge batsim replay recorded/*
      bridge batsim replay session/messages.jsonl --policy sjf+easy

    Exit status: 0 where all is right, 1 otherwise. That the recorded decider did what ours would not, or that
    the session breaks off because Batsim died, is told in the line and is no fault of the session.
    """
    from bridge.worlds.batsim.transcript_replay import replay as compare

    name = parse_policy(policy)
    if not name.is_rule:
        raise click.UsageError(f"--policy {policy}: name an order, alone or with +BACKFILL")
    decided = name.policy("none")
    right = True
    for case in cases:
        comparison = compare(case, decided)
        right &= not comparison.wrong
        click.echo(comparison.line)
    ctx.exit(0 if right else 1)
