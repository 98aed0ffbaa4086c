"""`bridge evaluate`: policies on the same sampled sequences, with intervals and paired differences."""

import functools
import itertools
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from bridge.cli.options import (
    ESTIMATOR_HELP,
    ORDER_HELP,
    cross_protocol_option,
    read_log,
    rule_options,
    warn_about,
)
from bridge.cli.progress import progress_bar, say_if_compiling
from bridge.cli.slotted import (
    OWN,
    evaluate_pool,
    has_slotted,
    refuse_options,
    scheduler_option,
    slotted_options,
)
from bridge.errors import BridgeError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.table import Table

    from bridge.fast.episode import Prepared
    from bridge.fast.setup import Setup
    from bridge.judge.sequences import Judged, Play
    from bridge.learn.checkpoint import Checkpoint
    from bridge.workload.select import Jobs
    from bridge.workload.table import Workload

METRICS = ("bsld", "slowdown", "wait", "turnaround", "bsld.max", "wait.max", "utilisation")


@dataclass(frozen=True)
class Contestant:
    """One policy: an order with a backfilling rule, or an agent on top of them."""

    setup: "Setup"
    agent: "Checkpoint | None" = None

    @property
    def name(self) -> str:
        """What the table calls it."""
        if self.agent is not None:
            return self.agent.name
        name = (
            f"{self.setup.order}+{self.setup.backfill}" if self.setup.backfill != "none" else self.setup.order
        )
        if self.setup.candidate_order:
            name += f" by {self.setup.candidate_order}"
        return name

    @property
    def estimator(self) -> str:
        """What run times it believes."""
        return self.setup.estimator or self.setup.rules()[0].estimator

    def prepare(self, jobs: "Jobs") -> "Prepared":
        """Bring it together with the jobs."""
        return self.setup.prepare(jobs, self.agent.recipe.policy() if self.agent else None)

    def play(self) -> "Play | None":
        """Return what plays its sequences; None = the built-in rules."""
        if self.agent is None:
            return None
        from bridge.learn.play import schedules

        return functools.partial(schedules, self.agent)


@dataclass(frozen=True)
class Result:
    """A contestant and its value on every sequence."""

    who: Contestant
    oracle: bool
    values: "NDArray[np.float64]"


@click.command()
@click.argument("log", metavar="LOG|CHECKPOINT", required=False, default="")
@click.option(
    "--agent",
    "agents",
    metavar="CHECKPOINT",
    multiple=True,
    help="A trained agent beside the orders. May be repeated.",
)
@cross_protocol_option
@click.option(
    "--from",
    "part",
    type=click.FloatRange(0, 1, max_open=True),
    metavar="FRACTION",
    help="Only sequences behind this part of the log.  [default: 0; where an agent learnt on LOG, what it "
    "has not seen]",
)
@click.option(
    "--order", multiple=True, default=("fcfs",), show_default=True, help=ORDER_HELP + " May be repeated."
)
@click.option(
    "--backfill",
    type=click.Choice(["none", "easy", "conservative"]),
    multiple=True,
    default=("easy",),
    show_default=True,
    help="Backfilling rule. May be repeated.",
)
@click.option("--estimator", multiple=True, default=("",), help=ESTIMATOR_HELP + " May be repeated.")
@rule_options
@click.option(
    "--sequences",
    type=click.IntRange(min=1),
    help="Sequences to sample.  [default: the preset's own; 200 for an agent's folder]",
)
@click.option(
    "--length",
    type=click.IntRange(min=1),
    help="Jobs a sequence.  [default: the preset's own; 256 for an agent's folder]",
)
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the sampling.  [default: the preset's own]")
@click.option(
    "--metric",
    type=click.Choice(METRICS),
    default="bsld",
    show_default=True,
    help="Averaged over a sequence's jobs, unless it names a maximum.",
)
@scheduler_option(", which takes no LOG but its agents")
@slotted_options
@click.option(
    "--json", "as_json", is_flag=True, help="Print everything, every sequence's value too, as JSON."
)
@click.pass_context
def evaluate(
    ctx: click.Context,
    /,
    log: str,
    agents: tuple[str, ...],
    cross_protocol: bool,
    part: float | None,
    order: tuple[str, ...],
    backfill: tuple[str, ...],
    estimator: tuple[str, ...],
    sequences: int | None,
    length: int | None,
    seed: int | None,
    metric: str,
    scheduler: str,
    as_json: bool,
    **rules: Any,
) -> None:
    """Judge policies on sequences of consecutive jobs sampled from LOG, each on an idle machine.

    Every policy sees the same sequences. The first one is the base that the others are compared with. In
    place of a log, the folder of a trained agent names the log and the rules under which it learnt; it is
    then judged against the same order without it, on sequences that it has not seen.

    \b
    Examples:
      bridge evaluate bundled-128 --order fcfs --order sjf --order wfp3
      bridge evaluate lublin_256.swf.gz --order sjf --protocol schedgym --sequences 10 --length 1024 --seed 40
      bridge evaluate agents/my-agent --order sjf
      bridge evaluate agents/my-rlschert --policy saf --kill none --kill rule
      bridge evaluate --scheduler slotted --policy sjf --policy saf --kill rule --oracle-clamp
    """
    typed = {n for n in (*ctx.params, "protocol") if ctx.get_parameter_source(n) is _TYPED}
    own = {name: rules.pop(name) for name in OWN}
    if scheduler == "slotted" or ("scheduler" not in typed and _is_slotted(log, agents)):
        shared = {"seed": seed, "sequences": sequences, "estimator": estimator[0]}
        refuse_options(typed - {*OWN, *shared, "scheduler", "as_json", "log", "agents"}, "the slotted pool")
        folders = [*([log] if log else []), *agents]
        evaluate_pool({k: v for k, v in (own | shared).items() if k in typed}, as_json, folders)
        return
    refuse_options(typed & {*OWN}, "the event-driven scheduler")
    if not log:
        raise click.UsageError("Missing argument 'LOG|CHECKPOINT'.")
    from bridge.judge.sampling import SAMPLERS, sample
    from bridge.judge.sequences import values_of

    named = _is_checkpoint(log)
    judged = _load([*([log] if named else []), *agents])
    first = judged[0] if named else None
    setup = _setup(first, typed, **rules)
    _check(judged, setup, cross_protocol)
    contestants = [Contestant(_rules_of(agent, setup), agent) for agent in judged]
    choices = [
        Contestant(replace(setup, order=o, backfill=b, estimator=e))
        for o, b, e in itertools.product(*map(dict.fromkeys, (order, backfill, estimator)))
    ]
    chosen = typed & {"order", "backfill", "estimator", "backfill_order"}
    if judged and (named or not chosen):  # the base is the first agent's own order
        own_base = Contestant(_rules_of(judged[0], setup))
        policies = [own_base, *contestants, *(choices if chosen else [])]
    else:
        policies = [*choices, *contestants]
    policies = list(dict.fromkeys(policies))

    sampler = SAMPLERS.get(setup.rules()[1].name, SAMPLERS["standard"])
    if first is not None and not typed & {"protocol", "preset"}:  # an agent's row, whatever it learnt under
        sampler = SAMPLERS["standard"]
    length = length or sampler.length
    name = first.origin.workload if first else log
    workload = read_log(name, rules["malformed"])
    jobs = setup.select(workload)
    warn_about(jobs.tally)
    before = _unseen(judged, name, workload, jobs, first) if part is None else round(len(jobs) * part)
    starts = before + sample(
        sampler,
        len(jobs) - before,
        sequences or sampler.sequences,
        length,
        sampler.seed if seed is None else seed,
    )
    say_if_compiling()
    results: list[Result] = []
    prepared = [policy.prepare(jobs) for policy in policies]
    with progress_bar("sequences", len(starts) * len(policies), "sequences") as advance:
        try:
            for k, (policy, ready) in enumerate(zip(policies, prepared, strict=True)):
                report = functools.partial(_beyond, advance, k * len(starts))
                values = values_of(ready, starts, length, metric, report, policy.play())
                results.append(Result(policy, ready.oracle, values))
        except KeyboardInterrupt:
            if not results:
                raise
            click.echo(
                f"bridge: interrupted; {len(results)} of {len(policies)} policies are finished:", err=True
            )
            _report(results, starts, length, metric, as_json, jobs.name)
            raise
    _report(results, starts, length, metric, as_json, jobs.name)


_TYPED = click.core.ParameterSource.COMMANDLINE


def _is_checkpoint(path: str) -> bool:
    from bridge.learn.folder import is_checkpoint

    return is_checkpoint(path)


def _is_slotted(log: str, agents: tuple[str, ...]) -> bool:
    """Tell whether nothing is named but agents, of which one has learnt on the slotted pool."""
    folders = [*([log] if log else []), *agents]
    return all(map(_is_checkpoint, folders)) and has_slotted(folders)


def _load(folders: list[str]) -> "list[Checkpoint]":
    """Return the agents, each once."""
    if not folders:
        return []
    from bridge.learn import checkpoint
    from bridge.learn.slotted_checkpoint import is_slotted

    for folder in folders:
        if is_slotted(folder):
            raise BridgeError(
                "is an agent of the slotted pool",
                where=folder,
                remedy=f"Judge it without a log: bridge evaluate {shlex.quote(folder)}",
            )
    return [checkpoint.load(folder) for folder in dict.fromkeys(folders)]


def _setup(
    agent: "Checkpoint | None",
    typed: set[str],
    *,
    protocol: str,
    preset: str | None,
    backfill_order: str,
    cancelled: str | None,
    nodes: int | None,
    first: int | None,
    malformed: str,  # noqa: ARG001  (of the log, not of the rules)
) -> "Setup":
    """Return the rules: the options', or the agent's with the options that were typed over them."""
    from bridge.fast.setup import Setup

    options: dict[str, Any] = {
        "protocol": protocol,
        "preset": preset or "",
        "candidate_order": backfill_order,
        "cancelled": cancelled or "",
        "nodes": nodes,
        "first": first,
    }
    if agent is None:
        return Setup(**options)
    names = {"backfill_order": "candidate_order"}
    given = {names.get(name, name) for name in typed}
    over: dict[str, Any] = {k: v for k, v in options.items() if k in given}
    return replace(agent.recipe.setup, **over)


def _rules_of(agent: "Checkpoint", setup: "Setup") -> "Setup":
    """Return an agent's own order, backfilling and estimator under the rules of this evaluation."""
    own = agent.recipe.setup
    return replace(setup.deciding_as(own), estimator=own.estimator)


def _check(judged: "list[Checkpoint]", setup: "Setup", cross: bool) -> None:
    if judged:
        from bridge.learn.play import require_protocol

        for agent in judged:
            require_protocol(agent, setup.protocol, cross)


def _unseen(
    judged: "list[Checkpoint]", name: str, workload: "Workload", jobs: "Jobs", own: "Checkpoint | None"
) -> int:
    """Return the first job from which on no agent has learnt."""
    if not judged:
        return 0
    from bridge.learn.seen import first_unseen, require_same

    if own is not None:
        require_same(
            own, name, workload, f"If you mean this log: bridge evaluate {name} --agent {own.folder}"
        )
    return max(first_unseen(agent, name, workload, jobs) for agent in judged)


def _beyond(advance: Callable[[int], None], before: int, done: int) -> None:
    advance(before + done)


def _report(results: list[Result], starts: Any, length: int, metric: str, as_json: bool, name: str) -> None:
    from bridge.judge.sequences import judge

    judged = [
        judge(c.values, results[0].values if k else None, starts, length) for k, c in enumerate(results)
    ]
    if as_json:
        import json

        click.echo(json.dumps(_plain(results, judged, starts, length, metric, name), indent=2))
        return
    from rich.console import Console

    console = Console()
    console.print(_table(results, judged, len(starts), length, metric, name))
    if judged[0].dependent and np.isnan(judged[0].mean.low):
        console.print("[dim]All sequences overlap each other: no interval can be given.[/dim]")
    elif judged[0].dependent:
        console.print("[dim]Sequences overlap: intervals are moving-block bootstrap (95 %).[/dim]")
    if any(c.oracle for c in results):
        console.print("[dim]* true run times are read (oracle).[/dim]")
    for result, j in zip(results, judged, strict=True):
        if result.who.agent is not None and j.difference is not None:
            said = _sentence(result.who.name, results[0].who.name, j, metric, len(starts))
            console.print(said, soft_wrap=True, highlight=False)


def _sentence(name: str, base: str, judged: "Judged", metric: str, sequences: int) -> str:
    """Say in one line what an agent is worth."""
    from rich.markup import escape

    assert judged.difference is not None
    said = judged.verdict_higher if metric == "utilisation" else judged.verdict
    than = "from" if said == "not distinguishable" else "than"
    said = (
        f"{said} {than}"
        if said in ("better", "worse", "not distinguishable")
        else f"{said} whether better than"
    )
    digits = 4 if metric == "utilisation" else 2
    return escape(
        f"{name}: {said} {base}: {judged.difference.mean:+,.{digits}f} {metric} "
        f"(paired 95 % CI {_interval(judged.difference, digits)}, {sequences:,} sequences)"
    )


def _table(
    results: list[Result], judged: "list[Judged]", sequences: int, length: int, metric: str, name: str
) -> "Table":
    from rich.markup import escape
    from rich.table import Table

    first = results[0].who.setup
    rules = first.protocol + (f"/{first.preset}" if first.preset else "")
    size = f"{sequences:,} sequence{'s' * (sequences != 1)} of {length:,} job{'s' * (length != 1)}"
    title = escape(f"{name}: {metric}, {size}, protocol {rules}")
    digits = 4 if metric == "utilisation" else 2
    table = Table(title=title, title_justify="left", caption_justify="left")
    table.add_column("policy", overflow="fold")
    for column in ("mean", "95 % CI", "− base", "95 % CI"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("verdict", min_width=len("distinguishable"))
    several = len({r.who.estimator for r in results}) > 1
    for result, j in zip(results, judged, strict=True):
        label = result.who.name
        if several:
            label += f", {result.who.estimator}"
        table.add_row(
            label + ("*" if result.oracle else ""),
            f"{j.mean.mean:,.{digits}f}",
            _interval(j.mean, digits),
            f"{j.difference.mean:+,.{digits}f}" if j.difference else "base",
            _interval(j.difference, digits) if j.difference else "",
            j.verdict if metric != "utilisation" else j.verdict_higher,
        )
    return table


def _interval(estimate: Any, digits: int) -> str:
    if np.isnan(estimate.low):
        return "–"
    if max(abs(estimate.low), abs(estimate.high)) >= 100:  # so that the table fits on a screen
        digits = 1
    return f"{estimate.low:,.{digits}f} … {estimate.high:,.{digits}f}"


def _plain(
    results: list[Result], judged: "list[Judged]", starts: Any, length: int, metric: str, name: str
) -> dict[str, Any]:
    def interval(estimate: Any) -> dict[str, float | None] | None:
        if estimate is None:
            return None
        low, high = (None if np.isnan(v) else v for v in (estimate.low, estimate.high))
        return {"mean": estimate.mean, "low": low, "high": high}

    return {
        "workload": name,
        "metric": metric,
        "length": length,
        "sequences": len(starts),
        "starts": [int(s) for s in starts],
        "policies": [
            {
                "name": c.who.name,
                "agent": str(c.who.agent.folder) if c.who.agent else "",
                "order": c.who.setup.order,
                "backfill": c.who.setup.backfill,
                "candidate_order": c.who.setup.candidate_order,
                "protocol": c.who.setup.protocol,
                "preset": c.who.setup.preset,
                "estimator": c.who.estimator,
                "oracle": c.oracle,
                "mean": j.mean.mean,
                "ci95": interval(j.mean),
                "difference": interval(j.difference),
                "verdict": j.verdict if metric != "utilisation" else j.verdict_higher,
                "values": [float(v) for v in c.values],
            }
            for c, j in zip(results, judged, strict=True)
        ],
    }
