"""`bridge evaluate`: policies on the same sampled sequences, with intervals and paired differences."""

from typing import Any

import click

from bridge.base.interrupts import interrupts_once
from bridge.cli import options as shared
from bridge.cli.terminal import TERMINAL, show
from bridge.commands.request import CommandRequest, StoppedError
from bridge.config.options import Command, given_on_command_line, group, options
from bridge.experiment.spec import Experiment, Sampling
from bridge.policy_name import PolicyName, parse_policy
from bridge.pool.settings import PoolConfig
from bridge.scheduler.names import KILLS
from bridge.worlds.fast.scheduler_config import SchedulerConfig

KILL = "Short for --policy HEURISTIC+rule: the rule that kills mispredicted jobs."


@click.command(cls=Command)
@click.argument(
    "log",
    metavar="LOG|CHECKPOINT",
    required=False,
    default="",
    type=click.types.FuncParamType(shared.log_or_agent),
)
@shared.policies_option
@group(
    "Policies",
    shared.repeatable_option(
        "agent", "A trained agent, in addition to the policies.", metavar="CHECKPOINT", type=shared.NAME
    ),
    shared.repeatable_option("order", "Short for --policy ORDER+BACKFILL.", metavar="ORDER"),
    shared.repeatable_option("backfill", "The backfilling rules of --order."),
    shared.repeatable_option("estimator", "The estimator of run times.", metavar="NAME"),
    options(SchedulerConfig, "candidate_order"),
    options(Experiment, "cross_protocol"),
)
@options(Sampling, heading="Sequences")
@shared.rule_options
@shared.malformed_option
@options(Experiment, "dependencies", heading=shared.RULES)
@shared.scheduler_option
@shared.pool_options("rate", "steps")
@group(
    shared.POOL,
    shared.repeatable_option("kill", KILL, type=click.Choice(KILLS)),
    shared.field_options(PoolConfig, oracle_clamp=shared.CLAMP),
)
@shared.json_option
@click.pass_context
def evaluate(
    ctx: click.Context,
    /,
    log: str,
    policies: tuple[str, ...],
    agent: tuple[str, ...],
    scheduler: str | None,
    as_json: bool,
    **_: Any,
) -> None:
    """Judge policies on sequences of consecutive jobs from LOG. Each sequence begins on an idle machine.

    Every policy plays the same sequences. The first policy is the base: all others are compared with it.

    Instead of a log you can give the folder of a trained agent. Then the log and the rules of its training
    are used. The agent is compared with the same order without an agent, on sequences that it has not seen.

    The time-stepped pool draws its own sequences of jobs. The policy recorded starts each job at its recorded
    time.

    \b
    Examples:
      bridge evaluate bundled-128 --policy fcfs+easy --policy sjf+easy --policy wfp3+none
      bridge evaluate lublin_256.swf.gz --order sjf --protocol schedgym --sequences 10 --length 1024 --seed 40
      bridge evaluate agents/my-agent --policy sjf+easy
      bridge evaluate agents/my-rlschert --policy saf --policy saf+rule
      bridge evaluate --scheduler pool --policy sjf+rule --policy saf+rule --oracle-clamp
    """
    agents = [PolicyName(folder, agent=folder) for folder in agent]
    request = CommandRequest((*map(parse_policy, policies), *agents), log, given_on_command_line(ctx))
    entry = shared.select_backend(scheduler, request, "evaluate")
    if not log and entry.name == "event":
        raise click.UsageError("Missing argument 'LOG|CHECKPOINT'.")
    with interrupts_once():
        try:
            output = entry.evaluate(request, TERMINAL)
        except StoppedError as stopped:
            TERMINAL.say(f"interrupted; {stopped.message}:")
            show(stopped.outcome.document, stopped.outcome.output, as_json)
            raise
    show(output.document, output.output, as_json)
