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
    "The policy (an order, with or without +BACKFILL) that decides on the recorded events.",
    default="fcfs",
    show_default=True,
)
@click.pass_context
def replay(ctx: click.Context, /, cases: tuple[Path, ...], policy: str) -> None:
    """Replay each CASE, and print one line: are all messages readable, and all decisions legal?

    A CASE is the folder of a session of Batsim 4 (transcript.jsonl) or 5 (messages.jsonl), or that file.
    Every message of both sides is decoded and encoded again; the bytes must be the same. The policy decides
    at each message. Each decision must be legal. If only one decision is possible, it must be this one.

    \b
    Examples:
      bridge batsim replay recorded/*
      bridge batsim replay session/messages.jsonl --policy sjf+easy

    The exit status is 0 if all is right, else 1. Two things are printed in the line, but are not errors: the
    recorded decisions differ from those of the policy; the session breaks off because Batsim died.
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
