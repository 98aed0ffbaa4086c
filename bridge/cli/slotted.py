"""The slotted pool on the command line: options of `evaluate` and `train`, and the table of the former."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bridge.cli.progress import progress_bar, say_if_compiling

if TYPE_CHECKING:
    from bridge.learn.slotted_checkpoint import SlottedCheckpoint
    from bridge.slotted.evaluate import Evaluation, Options

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


#: Options of `bridge train` that only the slotted pool has.
TRAINS = ("data", "objective", "oracle_clamp", "teacher")

_TRAINING_OPTIONS = (
    _OPTIONS[0],
    click.option(
        "--objective",
        type=click.Choice(["slowdown", "completion"]),
        help="slotted: what is rewarded.  [default: the setting's own, slowdown]",
    ),
    _OPTIONS[-1],
    click.option(
        "--teacher",
        metavar="AGENT",
        type=click.Path(file_okay=False, path_type=Path),
        help="slotted: the trained agent that a setting whose agent kills learns from.",
    ),
)


def slotted_training_options(command: F) -> F:
    """Add the options of training on the slotted pool."""
    for option in reversed(_TRAINING_OPTIONS):
        command = option(command)
    return command


def refuse_options(names: Iterable[str], whom: str) -> None:
    """Refuse options that would be ignored.

    Raises:
        UsageError: there are some, by the names of their parameters.
    """
    spelt = {"policies": "policy", "kills": "kill", "agents": "agent", "part": "from", "log": "LOG"}
    words = ["--" + spelt.get(n, n).replace("_", "-") for n in names]
    if words:
        raise click.UsageError(f"{whom} has no {', '.join(sorted(words)).replace('--LOG', 'LOG')}")


def evaluate_pool(given: dict[str, Any], as_json: bool, folders: Sequence[str] = ()) -> None:
    """Judge policies on the slotted pool and print the outcome.

    Args:
        given: options that were typed: those of `OWN`, ``seed``, ``sequences``, ``estimator``. What is not
            there is as the first agent learnt it.
        as_json: print everything as JSON.
        folders: of trained agents.

    Raises:
        BridgeError: see `bridge.slotted.evaluate.evaluate` and `bridge.learn.slotted_play.evaluate_agent`.
    """
    from bridge.slotted.evaluate import Options, evaluate, jobs_of, plain

    agents = _load(folders)
    policies = given.pop("policies", ("saf",))
    kills = given.pop("kills", ("none",))
    data = given.pop("data", agents[0].origin.workload if agents else None)
    options = _options(Options(), given, agents[0] if agents else None)
    jobs = jobs_of(data)
    say_if_compiling()
    total = (len(policies) * len(kills) + len(agents)) * options.sequences
    found: list[Evaluation] = []
    with progress_bar("slotted", total, "sequences") as advance:

        def report(done: int) -> None:
            advance(len(found) * options.sequences + done)

        for policy in policies:
            for kill in kills:
                found.append(evaluate(jobs, policy, kill, options, progress=report))
        for agent in agents:
            from bridge.learn.slotted_play import evaluate_agent

            own = _options(options, given, agent)
            found.append(evaluate_agent(agent, jobs, own, progress=report))
    if as_json:
        import json

        click.echo(json.dumps(plain(found), indent=2))
    else:
        _show(found)


def _load(folders: Sequence[str]) -> "list[SlottedCheckpoint]":
    """Return the agents, each once."""
    if not folders:
        return []
    from bridge.learn.slotted_checkpoint import load

    return [load(folder) for folder in dict.fromkeys(folders)]


def _options(base: "Options", given: dict[str, Any], agent: "SlottedCheckpoint | None") -> "Options":
    """Return what is played: what was typed, else what the agent has learnt on, else the paper's test set."""
    if agent is not None:
        from bridge.learn.slotted_play import options_of

        base = options_of(agent, base)
    pool = {"pool_units": "units", "pool_slots": "slots", "oracle_clamp": "oracle_clamp"}
    settings = replace(base.settings, **{pool[name]: given[name] for name in given if name in pool})
    return replace(base, settings=settings, **{k: v for k, v in given.items() if k not in pool})


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
