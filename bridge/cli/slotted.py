"""The slotted pool on the command line: options of `evaluate` and `train`, and the table of the former."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bridge.cli.progress import progress_bar, say_if_compiling
from bridge.errors import BridgeError

if TYPE_CHECKING:
    from bridge.batsim.process import DecisionProcess
    from bridge.experiment.slotted_runs import Both
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


#: Options of `bridge validate` that only the slotted pool has; those that it shares; and of those, what the
#: platform program is started with.
VALIDATES = ("data", "rate", "steps", "pool_units", "pool_slots", "sequences", "no_start")
_PROGRAM = (
    *("platform", "profile", "placement", "program", "image", "options"),
    *("startup_timeout", "idle_timeout"),
)
VALIDATES_TOO = ("policies", "scheduler", "on", "estimator", "seed", "out", "tolerance", "as_json", *_PROGRAM)

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


def _honest(options: "Options", agent: "SlottedCheckpoint | None") -> "Options":
    """Return an agent's options without the oracle clamp, which no platform can have; say so."""
    if agent is None or not options.settings.oracle_clamp:
        return options
    click.echo(f"bridge: {agent.name} has learnt with the oracle clamp, and is played without it", err=True)
    return replace(options, settings=replace(options.settings, oracle_clamp=False))


def validate_pool(
    policies: Sequence[str],
    given: dict[str, Any],
    on: str,
    *,
    out: Path | None,
    tolerance: float | None,
    as_json: bool,
) -> bool:
    """Play policies of the slotted pool in both worlds and tell how far they agree; False beyond `tolerance`.

    Args:
        policies: names, or agents' folders.
        given: other options that were typed.
        on: the detailed world.
        out: a new folder for agreement.json and all runs.
        tolerance: largest relative difference.
        as_json: print everything as JSON.

    Raises:
        BridgeError: an input cannot work, or a simulation failed.
    """
    from bridge.cli.versions import versions
    from bridge.experiment.prepare import read_sound
    from bridge.experiment.slotted import SlottedTask, policy_of
    from bridge.experiment.slotted_runs import Both, beyond, simulate, write_files
    from bridge.experiment.spec import Detailed, Experiment, platform_file
    from bridge.judge.agreement import write_document
    from bridge.slotted.evaluate import Options, jobs_of, judged, prepare

    record = {"command": _command(policies, given, on), "versions": versions()}
    start = not given.pop("no_start", False)
    if not start and (out is None or as_json or tolerance is not None):
        raise click.UsageError("--no-start writes to --out DIR, and has no --json or --tolerance")
    asked = Detailed(**{name: given.pop(name) for name in _PROGRAM if name in given})
    Experiment("the slotted pool", on=on, detailed=asked).check()
    platform = read_sound(platform_file(asked.platform))
    found = [policy_of(text) for text in dict.fromkeys(policies)]
    first = next((policy.agent for policy in found if policy.agent), None)
    jobs = jobs_of(given.pop("data", first.origin.workload if first else None))
    base = _honest(_options(Options(), given, first), first)
    say_if_compiling()
    both: list[Both] = []
    for policy in found:
        options = base
        if policy.agent is not None and policy.agent is not first:
            options = _honest(_options(base, given, policy.agent), policy.agent)
        drawn = prepare(jobs, options)
        tasks = [
            SlottedTask(on, policy, options.settings, drawn, s, platform, asked) for s in range(len(drawn))
        ]
        tasks[0].check()
        if not start:
            assert out is not None
            folders = [write_files(task, out) for task in tasks]
            click.echo(f"{policy.name}: {len(folders)} simulations; start one with {folders[0]}/again.sh")
            continue
        fast = policy.fast(jobs, options)
        schedules = []
        for task in tasks:
            title = f"{policy.name}, sequence {task.sequence + 1} of {len(tasks)}"
            with progress_bar(title, task.n_jobs, "jobs") as advance:
                schedules.append(simulate(task, fast, record, out=out, progress=advance))
        detailed = judged(drawn, schedules, fast.policy, fast.kill, options)
        both.append(Both(policy, fast, detailed))
    if not start:
        return True
    documents = [one.as_dict() for one in both]
    problems = beyond(documents, tolerance) if tolerance is not None else []
    about = {"scheduler": "slotted", "world": on, "platform": platform.root.name, "profile": str(asked.kind)}
    document = about | {"placement": asked.placement, "policies": documents}
    if out is not None:
        write_document(document, out / "agreement.json")
    if as_json:
        import json

        click.echo(json.dumps(document | {"problems": problems}, indent=2))
    else:
        _show_both(both, documents, about)
    for problem in problems:
        click.echo(f"beyond the tolerance: {problem}", err=True)
    return not problems


def _command(policies: Sequence[str], given: dict[str, Any], on: str) -> str:
    """Return the command line that validates once more."""
    import shlex

    words = ["bridge", "validate", *policies, "--scheduler", "slotted", "--on", on]
    for name, value in given.items():
        option = "--" + name.replace("_", "-")
        if name == "options":
            words += [f"--option={text}" for text in value]
        elif name != "no_start":
            words += [option, str(value)]
    return shlex.join(words)


def _show_both(both: "list[Both]", documents: Sequence[dict[str, Any]], about: dict[str, str]) -> None:
    from rich.console import Console
    from rich.table import Table

    options = both[0].options
    played = f"{documents[0]['data']}: {options.sequences} sequences of {options.steps} steps"
    click.echo(f"{played}, profile {about['profile']} on {about['platform']} ({about['world']})")
    table = Table()
    table.add_column("policy")
    for column in ("", "fast", "detailed", "difference"):
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    shown = {
        "slowdown": ("mean slowdown", ".4f"),
        "completion_time": ("mean completion, steps", ".4f"),
        "kills": ("kills", ",d"),
        "lost_steps": ("lost steps", ",d"),
    }
    for one in documents:
        name = one["policy"] + ("*" if one["fast"]["oracle"] else "")
        for key, (label, form) in shown.items():
            difference = one["difference"][key]
            values = (format(one[world][key], form) for world in ("fast", "detailed"))
            table.add_row(name, label, *values, format(difference, f"+{form}") if difference else "=")
            name = ""
        table.add_section()
    console = Console()
    if not console.is_terminal:
        console = Console(width=110)
    console.print(table)
    for one in documents:
        click.echo(
            f"{one['policy']}: {one['differing_starts']:,} of {one['jobs']:,} jobs start in another step"
        )
        first = one["first_difference"]
        if first:
            click.echo(
                f"  first: job {first['job']} of sequence {first['sequence']}, step {first['fast']} in the "
                f"fast world, {first['detailed']} on the platform"
            )
    if any(one["fast"]["oracle"] for one in documents):
        console.print("[dim]* true lengths were read (oracle).[/dim]")


def slotted_process(policy: str, options: dict[str, Any], typed: set[str]) -> "tuple[DecisionProcess, str]":
    """Return who decides for the slotted pool behind Batsim, and what it is called.

    Args:
        policy: a heuristic, or an agent's folder.
        options: all of the command's.
        typed: the names of those that were typed.

    Raises:
        BridgeError: no such policy, or it is for another scheduler.
        UsageError: an option that would be ignored.
    """
    from bridge.batsim.beliefs import at_submission, own_series
    from bridge.batsim.process import DecisionProcess
    from bridge.experiment.prepare import read_sound
    from bridge.experiment.slotted import READ_PLATFORM, dispatcher, policy_of
    from bridge.slotted.evaluate import Options

    refuse_options(typed - {*DECIDES, *DECIDES_TOO}, "the slotted pool")
    own = Path(policy).is_dir()
    if own and "kill" in typed:
        raise click.UsageError(f"--kill is part of the agent {policy}; leave it out")
    chosen = policy_of(policy if own or options["kill"] in (None, "none") else f"{policy}+{options['kill']}")
    given: dict[str, Any] = {
        name: options[name] for name in ("pool_units", "pool_slots", "estimator") if name in typed
    }
    played = _honest(_options(Options(), given, chosen.agent), chosen.agent)
    if chosen.agent is not None:
        from bridge.learn.slotted_play import require_pool

        require_pool(chosen.agent, played.settings)
    believers = {"running": own_series, "submit": at_submission}
    if played.estimator not in believers:
        raise BridgeError(
            "cannot be had of jobs that really run",
            where=f"estimator {played.estimator!r}",
            remedy="Use running (the jobs' own series) or submit.",
        )
    platform = options["platform"]
    if platform is not None and options["placement"] not in READ_PLATFORM:
        raise click.UsageError(f"--placement {options['placement']} does not read --platform; leave it out")
    decided = dispatcher(
        chosen,
        played.settings,
        options["placement"],
        read_sound(platform) if platform is not None else None,
        believe=believers[played.estimator],
        storage=options["storage"],
    )
    process = DecisionProcess(decided, energy=options["energy"], strict=options["strict"])
    return process, f"{policy}, kill {chosen.kill}, {played.settings.units} units"
