"""`bridge decide`: a policy as the decision process of a detailed platform."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridge.cli.options import cross_protocol_option, typed_options
from bridge.cli.slotted import (
    DECIDES,
    has_slotted,
    refuse_options,
    scheduler_option,
    slotted_decision_options,
)
from bridge.cli.slotted_worlds import slotted_process
from bridge.learn.folder import is_checkpoint

if TYPE_CHECKING:
    from bridge.batsim.dispatcher import Setup
    from bridge.batsim.placement import Rule
    from bridge.batsim.result import Result
    from bridge.learn.checkpoint import Checkpoint
    from bridge.scheduler.protocol import Policy


def _pairs(_ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Turn NAME=VALUE options into a dict."""
    pairs: dict[str, str] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise click.BadParameter(f"{text!r} is not {option.metavar}")
        if name in pairs:
            raise click.BadParameter(f"{name!r} is given twice")
        pairs[name] = value
    return pairs


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("policy")
@click.option(
    "--socket",
    "address",
    metavar="ENDPOINT",
    default="tcp://127.0.0.1:28000",
    show_default=True,
    help="Where to bind; Batsim connects to it with -s tcp://localhost:28000. "
    "tcp://*:28000 lets other machines connect too.",
)
@click.option(
    "--backfill",
    type=click.Choice(["none", "easy", "conservative"]),
    default="easy",
    show_default=True,
    help="Backfilling rule.",
)
@click.option("--backfill-order", metavar="ORDER", default="", help="Order among EASY's candidates.")
@click.option(
    "--estimator",
    default="requested",
    show_default=True,
    help="Believed run times; any but `requested` reads --workload.",
)
@click.option(
    "--workload",
    metavar="LOG",
    help="The log that the simulated jobs come from: for --estimator, and for orders that know all jobs.",
)
@click.option(
    "--first", metavar="N", type=click.IntRange(min=1), help="Only the first N kept jobs of --workload."
)
@click.option(
    "--placement",
    type=click.Choice(["first-fit", "contiguous", "best-fit", "topology"]),
    default="first-fit",
    show_default=True,
    help="Which hosts a job gets; the last two read --platform.",
)
@click.option(
    "--platform",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The platform XML: who is near whom, and the capacities of burst buffer and power.",
)
@click.option(
    "--resource",
    "resources",
    metavar="NAME=AMOUNT",
    multiple=True,
    callback=_pairs,
    help="A further resource and how much there is; jobs ask for it in a field of that name. Repeatable.",
)
@click.option(
    "--storage",
    metavar="LABEL=HOST",
    multiple=True,
    callback=_pairs,
    help="Which storage host serves a label of the profiles, where it has not that name. Repeatable.",
)
@cross_protocol_option
@click.option("--energy", is_flag=True, help="The platform simulates energy (-E).")
@click.option("--strict", is_flag=True, help="Stop at an illegal decision, in place of dropping it.")
@click.option(
    "--startup-timeout",
    metavar="S",
    type=click.FloatRange(min=0),
    default=300.0,
    show_default=True,
    help="Wall-clock seconds to wait for the first message; 0: for ever.",
)
@click.option(
    "--idle-timeout",
    metavar="S",
    type=click.FloatRange(min=0),
    default=3600.0,
    show_default=True,
    help="Wall-clock seconds to wait for any other message; 0: for ever.",
)
@click.option(
    "--out", metavar="FILE", type=click.Path(path_type=Path), help="Write what was decided, as JSON."
)
@scheduler_option("")
@slotted_decision_options
@click.pass_context
def decide(
    ctx: click.Context,
    /,
    policy: str,
    address: str,
    backfill: str,
    backfill_order: str,
    estimator: str,
    workload: str | None,
    first: int | None,
    placement: str,
    platform: Path | None,
    resources: dict[str, str],
    storage: dict[str, str],
    cross_protocol: bool,
    energy: bool,
    strict: bool,
    startup_timeout: float,
    idle_timeout: float,
    out: Path | None,
    scheduler: str,
    **own: Any,  # noqa: ARG001  (of the slotted pool)
) -> None:
    """Decide for Batsim, or for a stand-in, under POLICY.

    POLICY is the name of a queue order, an expression, or the folder of a trained agent; for the slotted pool
    sjf, saf, tetris, tetris* or an agent's folder.

    Exit status: 0 the simulation ended and no job is missing; 1 an error; 2 the command line; 3 nothing came
    within --startup-timeout; 4 the other side was gone before the end; 5 it fell silent for --idle-timeout;
    6 the simulation ended, but jobs are missing; 130, 143 interrupted, terminated. Whatever the status, --out
    gets what was decided until then.

    \b
    Examples:
      bridge decide sjf --backfill easy
      bridge decide '(w/t)**3*n' --backfill none --placement contiguous --out decisions.json
      bridge decide agents/my-agent
      bridge decide saf --scheduler slotted --kill rule
    """
    from bridge.batsim.endpoint import Endpoint
    from bridge.batsim.process import DecisionProcess
    from bridge.batsim.result import Outcome
    from bridge.scheduler.protocol import Policy

    if out is not None and not out.parent.is_dir():
        raise click.BadParameter(f"there is no folder {out.parent}", param_hint="--out")
    typed = typed_options(ctx)
    named = is_checkpoint(policy) or _names_folder(policy)
    if scheduler == "slotted" or ("scheduler" not in typed and named and has_slotted([policy])):
        process, who = slotted_process(policy, ctx.params, typed)
    else:
        refuse_options(typed & {*DECIDES}, "the event-driven scheduler")
        agent = _agent(ctx, policy, cross_protocol) if named else None
        chosen = agent.recipe.policy() if agent else Policy(policy, backfill, backfill_order)
        if agent and "estimator" not in typed:
            estimator = agent.recipe.setup.estimator or estimator
        setup = _setup(chosen, estimator, workload, first, placement, platform, resources, storage)
        if agent is not None:
            from bridge.learn.play import Decider

            setup = replace(setup, decider=Decider(agent), window=agent.recipe.encoder.window)
        process = DecisionProcess(setup, energy=energy, strict=strict)
        who = f"{policy}, backfill {chosen.backfill}"
    with _Ending() as ending:
        try:
            with Endpoint(address, startup_timeout=startup_timeout, idle_timeout=idle_timeout) as endpoint:
                click.echo(f"bridge: {who}; waiting for Batsim on {endpoint.address}", err=True)
                result = process.run(endpoint)
        except KeyboardInterrupt:
            result = process.result(Outcome.INTERRUPTED)
        ending.deciding = False
        if out is not None:
            result.write(out)
        _report(result)
    ctx.exit(ending.status or result.outcome.status)


def _names_folder(word: str) -> bool:
    """Tell whether a policy can only be meant as a folder: `fcfs` may be an order and a folder's name."""
    return os.sep in word and Path(word).is_dir()


def _agent(ctx: click.Context, folder: str, cross_protocol: bool) -> "Checkpoint":
    from bridge.learn import checkpoint
    from bridge.learn.play import require_protocol

    for name in ("backfill", "backfill_order"):
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} is part of the agent {folder}; leave it out")
    agent = checkpoint.load(folder)
    require_protocol(agent, "standard", cross_protocol)
    return agent


class _Ending:
    """Ctrl-C and SIGTERM end the deciding, once; what was decided until then is written undisturbed.

    Attributes:
        deciding: set it to False when signals have nothing to end any more.
        status: the exit status that a signal asks for, 0 if none came.
    """

    def __init__(self) -> None:
        self.deciding, self.status = True, 0

    def __enter__(self) -> "_Ending":
        self._before = [
            (number, signal.signal(number, self._end)) for number in (signal.SIGINT, signal.SIGTERM)
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before:
            signal.signal(number, handler)

    def _end(self, number: int, _frame: object) -> None:
        if self.deciding:
            self.deciding, self.status = False, 128 + number
            raise KeyboardInterrupt


def _setup(
    policy: "Policy",
    estimator: str,
    workload: str | None,
    first: int | None,
    placement: str,
    platform: Path | None,
    resources: dict[str, str],
    storage: dict[str, str],
) -> "Setup":
    from bridge.batsim.dispatcher import Setup
    from bridge.errors import BridgeError

    amounts: dict[str, int] = {}
    for name, text in resources.items():
        if not text.isdecimal() or name == "nodes":
            raise BridgeError(
                "is no whole amount of a further resource",
                where=f"--resource {name}={text}",
                remedy="Write NAME=BYTES.",
            )
        amounts[name] = int(text)
    rule, capacities = _placement(placement, platform)
    setup = Setup(
        policy, placement=rule, placement_name=placement, resources=capacities | amounts, storage=storage
    )
    if workload is None:
        if estimator.strip() != "requested":
            raise BridgeError(
                "reads the log of the simulated jobs",
                where=f"estimator {estimator!r}",
                remedy="Give --workload.",
            )
        return setup
    facts, believed = _beliefs(policy, estimator, workload, first)
    return replace(setup, facts=facts, estimator=believed)


def _placement(name: str, platform: Path | None) -> "tuple[Rule, dict[str, int]]":
    """Return the placement rule, and the platform's capacities beyond nodes."""
    from bridge.experiment.prepare import placement as rule_on

    if platform is None:
        return rule_on(name, None), {}
    from bridge.platform.capacities import capacities
    from bridge.platform.read import read_platform

    machine = read_platform(platform)
    amounts = {resource: amount for resource, amount in capacities(machine).items() if resource != "nodes"}
    return rule_on(name, machine), amounts


def _beliefs(policy: "Policy", estimator: str, workload: str, first: int | None) -> Any:
    """Return what the workload's log tells: facts for orders, and an estimator."""
    from bridge.batsim.beliefs import requested
    from bridge.cli.options import read_log
    from bridge.experiment.prepare import beliefs
    from bridge.fast.setup import Setup as Replay

    replay = Replay(policy.order, policy.backfill, policy.candidate_order, estimator=estimator, first=first)
    recorded, facts = beliefs(replay.prepare(replay.select(read_log(workload, "refuse"))))
    return facts, requested if estimator.strip() == "requested" else recorded


def _report(result: "Result") -> None:
    """Say how it ended: on stdout what was decided, on stderr what is wrong."""
    from bridge.batsim.result import Outcome

    if result.error is not None:
        click.echo(f"bridge: error: {result.error}", err=True)
    if result.outcome is not Outcome.ENDED:
        click.echo(f"bridge: {result.explain()}", err=True)
    for refusal in result.refusals[:10]:
        click.echo(f"bridge: not sent: {refusal}", err=True)
    if len(result.refusals) > 10:
        click.echo(f"bridge: {len(result.refusals):,} decisions were not sent", err=True)
    rejected = [job for job in result.jobs if job.state == "rejected"]
    for job in rejected[:10]:
        click.echo(f"bridge: rejected {job.job_id}: {job.why}", err=True)
    if len(rejected) > 10:
        click.echo(f"bridge: {len(rejected):,} jobs were rejected", err=True)
    counts = ", ".join(f"{count:,} {state.lower()}" for state, count in result.counts().items() if count)
    where = result.locality
    click.echo(f"{counts}; {where.rule}: goal met by {where.met:,} of {where.starts:,} starts")
