"""The slotted pool on the command line: the options that it has, and the table of `evaluate`."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bridge.cli.progress import progress_bar, say_if_compiling

if TYPE_CHECKING:
    from bridge.learn.slotted_checkpoint import SlottedCheckpoint
    from bridge.pool.evaluate import Evaluation, Options

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


#: Options of `bridge validate` that only the slotted pool has; those that it shares; and of those, what the
#: platform program is started with.
VALIDATES = ("data", "rate", "steps", "pool_units", "pool_slots", "sequences", "no_start")
PROGRAM = (
    *("platform", "profile", "placement", "program", "image", "options"),
    *("startup_timeout", "idle_timeout"),
)
VALIDATES_TOO = ("policies", "scheduler", "on", "estimator", "seed", "out", "tolerance", "as_json", *PROGRAM)

_SEQUENCES_OPTION = click.option(
    "--sequences", type=click.IntRange(min=1), help="slotted: sequences to play.  [default: 16]"
)


def slotted_validation_options(command: F) -> F:
    """Add the options of validation that only the slotted pool has."""
    no_start = click.option(
        "--no-start",
        is_flag=True,
        default=None,
        help="slotted: simulate nothing; write every simulation's platform, workload and again.sh to --out.",
    )
    for option in (no_start, _SEQUENCES_OPTION, *reversed((_OPTIONS[0], *_OPTIONS[3:7]))):
        command = option(command)
    return command


#: Options of `bridge decide` that only the slotted pool has; and those that it shares.
DECIDES = ("kill", "pool_units", "pool_slots")
DECIDES_TOO = (
    *("policy", "scheduler", "address", "estimator", "placement", "platform", "storage", "energy", "strict"),
    *("startup_timeout", "idle_timeout", "out"),
)


def slotted_decision_options(command: F) -> F:
    """Add the options of deciding that only the slotted pool has."""
    kill = click.option(
        "--kill",
        type=click.Choice(["none", "rule"]),
        help="slotted: who kills mispredicted jobs.  [default: none]",
    )
    for option in (*reversed(_OPTIONS[5:7]), kill):
        command = option(command)
    return command


def has_slotted(names: Iterable[str]) -> bool:
    """Tell whether one of these is the folder of an agent of the slotted pool."""
    from bridge.learn.folder import is_checkpoint

    folders = [name for name in names if is_checkpoint(name)]
    if not folders:
        return False
    from bridge.learn.slotted_checkpoint import is_slotted

    return any(map(is_slotted, folders))


def scheduler_option(whose: str) -> Callable[[F], F]:
    """Return the option that chooses between the two schedulers; and what is special about the second."""
    return click.option(
        "--scheduler",
        type=click.Choice(["event", "slotted"]),
        default="event",
        help=f"The event-driven scheduler, or RLSchert's time-stepped pool{whose}.  "
        "[default: event; slotted for its agents]",
    )


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
    known = {param.name: param for param in click.get_current_context().command.params}
    words = sorted(_spelt(known[name]) for name in names)
    if words:
        raise click.UsageError(f"{whom} has no {', '.join(words)}")


def _spelt(param: click.Parameter) -> str:
    """Return a parameter as it is typed."""
    return next((word for word in param.opts if word.startswith("--")), param.human_readable_name)


def evaluate_pool(given: dict[str, Any], as_json: bool, folders: Sequence[str] = ()) -> None:
    """Judge policies on the slotted pool and print the outcome.

    Args:
        given: options that were typed: those of `OWN`, ``seed``, ``sequences``, ``estimator``. What is not
            there is as the first agent learnt it.
        as_json: print everything as JSON.
        folders: of trained agents.

    Raises:
        BridgeError: see `bridge.pool.evaluate.evaluate` and `bridge.learn.slotted_play.evaluate_agent`.
    """
    from bridge.pool.evaluate import Options, evaluate, jobs_of, plain

    agents = _load(folders)
    policies = given.pop("policies", ("saf",))
    kills = given.pop("kills", ("none",))
    data = given.pop("data", agents[0].origin.workload if agents else None)
    options = played(Options(), given, agents[0] if agents else None)
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

            own = played(options, given, agent)
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


def played(base: "Options", given: dict[str, Any], agent: "SlottedCheckpoint | None") -> "Options":
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
