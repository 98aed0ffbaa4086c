"""Options of training on the time-stepped pool."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from bridge.cli.options import refuse_options as refuse_options

F = TypeVar("F", bound=Callable[..., Any])

#: Options of `bridge train` that only the pool has.
TRAINS = ("data", "objective", "oracle_clamp", "teacher")
_TRAINING_OPTIONS = (
    click.option("--data", metavar="FILE", help="pool: job set (CSV), or `synthetic`.  [default: synthetic]"),
    click.option(
        "--objective",
        type=click.Choice(["slowdown", "completion"]),
        help="pool: what is rewarded.  [default: the setting's own, slowdown]",
    ),
    click.option(
        "--oracle-clamp",
        is_flag=True,
        default=None,
        help="pool: beliefs of running jobs may not pass their true length, as in the paper's numbers.",
    ),
    click.option(
        "--teacher",
        metavar="AGENT",
        type=click.Path(file_okay=False, path_type=Path),
        help="pool: the trained agent that a setting whose agent kills learns from.",
    ),
)


def slotted_training_options(command: F) -> F:
    """Add the options of training on the pool."""
    for option in reversed(_TRAINING_OPTIONS):
        command = option(command)
    return command
