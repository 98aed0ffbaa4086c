"""The slotted pool in the detailed world on the command line: what `validate` and `decide` do with it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridge.cli.progress import progress_bar, say_if_compiling
from bridge.cli.slotted import DECIDES, DECIDES_TOO, PROGRAM, played, refuse_options
from bridge.errors import BridgeError

if TYPE_CHECKING:
    from bridge.batsim.process import DecisionProcess
    from bridge.experiment.slotted_runs import Both
    from bridge.learn.slotted_checkpoint import SlottedCheckpoint
    from bridge.pool.evaluate import Options


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
    from bridge.experiment.slotted import Policy, SlottedTask, policy_of
    from bridge.experiment.slotted_runs import Both, beyond, refuse_one_place, simulate, write_files
    from bridge.experiment.spec import Detailed, Experiment, platform_file
    from bridge.judge.agreement import write_document
    from bridge.pool.evaluate import Options, jobs_of, judged, prepare

    record = {"command": _command(policies, given, on), "versions": versions()}
    start = not given.pop("no_start", False)
    if not start and (out is None or as_json or tolerance is not None):
        raise click.UsageError("--no-start writes to --out DIR, and has no --json or --tolerance")
    asked = Detailed(**{name: given.pop(name) for name in PROGRAM if name in given})
    Experiment("the slotted pool", on=on, detailed=asked).check()
    platform = read_sound(platform_file(asked.platform))
    found = [policy_of(text) for text in dict.fromkeys(policies)]
    first = next((policy.agent for policy in found if policy.agent), None)
    jobs = jobs_of(given.pop("data", first.origin.workload if first else None))
    base = _honest(played(Options(), given, first), first)
    say_if_compiling()
    everything: list[tuple[Policy, Options, list[SlottedTask]]] = []
    for policy in found:
        options = base
        if policy.agent is not None and policy.agent is not first:
            options = _honest(played(base, given, policy.agent), policy.agent)
        drawn = prepare(jobs, options)
        tasks = [
            SlottedTask(on, policy, options.settings, drawn, s, platform, asked) for s in range(len(drawn))
        ]
        tasks[0].check()
        everything.append((policy, options, tasks))
    if out is not None:
        refuse_one_place(out, found)
    both: list[Both] = []
    for policy, options, tasks in everything:
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
        detailed = judged(tasks[0].drawn, schedules, fast.policy, fast.kill, options)
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
    title = f"{documents[0]['data']}: {options.sequences} sequences of {options.steps} steps"
    click.echo(f"{title}, profile {about['profile']} on {about['platform']} ({about['world']})")
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
    from bridge.experiment.slotted import READ_PLATFORM, dispatcher, names_agent, policy_of
    from bridge.pool.evaluate import Options

    refuse_options(typed - {*DECIDES, *DECIDES_TOO}, "the slotted pool")
    own = names_agent(policy)
    if own and "kill" in typed:
        raise click.UsageError(f"--kill is part of the agent {policy}; leave it out")
    chosen = policy_of(policy if own or options["kill"] in (None, "none") else f"{policy}+{options['kill']}")
    given: dict[str, Any] = {
        name: options[name] for name in ("pool_units", "pool_slots", "estimator") if name in typed
    }
    own_options = _honest(played(Options(), given, chosen.agent), chosen.agent)
    if chosen.agent is not None:
        from bridge.learn.slotted_checkpoint import require_pool

        require_pool(chosen.agent, own_options.settings)
    believers = {"running": own_series, "submit": at_submission}
    if own_options.estimator not in believers:
        raise BridgeError(
            "cannot be had of jobs that really run",
            where=f"estimator {own_options.estimator!r}",
            remedy="Use running (the jobs' own series) or submit.",
        )
    platform = options["platform"]
    if platform is not None and options["placement"] not in READ_PLATFORM:
        raise click.UsageError(f"--placement {options['placement']} does not read --platform; leave it out")
    decided = dispatcher(
        chosen,
        own_options.settings,
        options["placement"],
        read_sound(platform) if platform is not None else None,
        believe=believers[own_options.estimator],
        storage=options["storage"],
    )
    process = DecisionProcess(decided, energy=options["energy"], strict=options["strict"])
    return process, f"{policy}, kill {chosen.kill}, {own_options.settings.units} units"
