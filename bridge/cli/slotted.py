"""`bridge evaluate --scheduler slotted`: RLSchert's pool, its options and its table."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bridge.cli.progress import progress_bar, say_if_compiling

if TYPE_CHECKING:
    from bridge.slotted.evaluate import Evaluation

F = TypeVar("F", bound=Callable[..., Any])

#: Options that only the slotted pool has; `--seed`, `--sequences` and `--json` it shares.
OWN = ("data", "policies", "kills", "rate", "steps", "pool_units", "pool_slots", "oracle_clamp")

_OPTIONS = (
    click.option(
        "--data", metavar="FILE", help="slotted: job set (CSV), or `synthetic`.  [default: synthetic]"
    ),
    click.option(
        "--policy",
        "policies",
        type=click.Choice(["sjf", "saf", "tetris", "tetris*", "random"]),
        multiple=True,
        help="slotted: who selects jobs. May be repeated.  [default: saf]",
    ),
    click.option(
        "--kill",
        "kills",
        type=click.Choice(["none", "rule"]),
        multiple=True,
        help="slotted: who kills mispredicted jobs. May be repeated.  [default: none]",
    ),
    click.option(
        "--rate",
        type=click.FloatRange(min=0, min_open=True),
        help="slotted: arrivals per step.  [default: 0.7]",
    ),
    click.option("--steps", type=click.IntRange(min=1), help="slotted: steps with arrivals.  [default: 200]"),
    click.option(
        "--pool-units", type=click.IntRange(min=1), help="slotted: size of the pool.  [default: 20]"
    ),
    click.option(
        "--pool-slots", type=click.IntRange(min=1), help="slotted: visible waiting jobs.  [default: 5]"
    ),
    click.option(
        "--oracle-clamp",
        is_flag=True,
        default=None,
        help="slotted: beliefs of running jobs may not pass their true length, as in the paper's numbers.",
    ),
)


def slotted_options(command: F) -> F:
    """Add the options of the slotted pool."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def evaluate_pool(given: dict[str, Any], as_json: bool) -> None:
    """Judge policies on the slotted pool and print the outcome.

    Args:
        given: options that were typed: those of `OWN`, ``seed``, ``sequences``, ``estimator``.
        as_json: print everything as JSON.

    Raises:
        BridgeError: see `bridge.slotted.evaluate.evaluate_slotted`.
    """
    from bridge.slotted.evaluate import evaluate_slotted, plain

    policies = given.pop("policies", ("saf",))
    kills = given.pop("kills", ("none",))
    data = given.pop("data", None)
    names = {"pool_units": "units", "pool_slots": "slots"}
    options = {names.get(name, name): value for name, value in given.items()}
    say_if_compiling()
    total = len(policies) * len(kills) * options.get("sequences", 16)
    with progress_bar("slotted", total, "sequences") as advance:
        found = evaluate_slotted(data, policies, kills, progress=advance, **options)
    if as_json:
        import json

        click.echo(json.dumps(plain(found), indent=2))
    else:
        _show(found)


def _show(found: "list[Evaluation]") -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    first = found[0].options
    title = f"{found[0].jobs}: {first.sequences} sequences of {first.steps} steps, rate {first.rate:g}"
    table = Table(title=escape(title), title_justify="left")
    table.add_column("policy")
    for column in ("kill", "mean slowdown", "mean completion, steps"):
        table.add_column(column, justify="right")
    for one in found:
        mark = "*" if one.oracle else ""
        table.add_row(f"{one.policy}{mark}", one.kill, f"{one.slowdown:.4f}", f"{one.completion:.4f}")
    console = Console()
    console.print(table)
    if any(one.oracle for one in found):
        console.print("[dim]* true lengths were read (oracle).[/dim]")
