"""`bridge evaluate`: policies on the same sampled sequences, with intervals and paired differences."""

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from bridge.cli.options import ESTIMATOR_HELP, ORDER_HELP, read_log, rule_options, warn_about
from bridge.cli.progress import progress_bar, say_if_compiling

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.table import Table

    from bridge.fast.setup import Setup
    from bridge.judge.sequences import Judged

METRICS = ("bsld", "slowdown", "wait", "turnaround", "bsld.max", "wait.max", "utilisation")


@dataclass(frozen=True)
class Contestant:
    """One policy and its value on every sequence."""

    setup: "Setup"
    oracle: bool
    values: "NDArray[np.float64]"

    @property
    def name(self) -> str:
        """What the table calls it."""
        name = (
            f"{self.setup.order}+{self.setup.backfill}" if self.setup.backfill != "none" else self.setup.order
        )
        if self.setup.candidate_order:
            name += f" by {self.setup.candidate_order}"
        return name


@click.command()
@click.argument("log")
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
    "--sequences", type=click.IntRange(min=1), help="Sequences to sample.  [default: the preset's own]"
)
@click.option("--length", type=click.IntRange(min=1), help="Jobs a sequence.  [default: the preset's own]")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the sampling.  [default: the preset's own]")
@click.option(
    "--metric",
    type=click.Choice(METRICS),
    default="bsld",
    show_default=True,
    help="Averaged over a sequence's jobs, unless it names a maximum.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print everything, every sequence's value too, as JSON."
)
def evaluate(
    log: str,
    order: tuple[str, ...],
    backfill: tuple[str, ...],
    estimator: tuple[str, ...],
    protocol: str,
    preset: str | None,
    backfill_order: str,
    cancelled: str | None,
    nodes: int | None,
    first: int | None,
    malformed: str,
    sequences: int | None,
    length: int | None,
    seed: int | None,
    metric: str,
    as_json: bool,
) -> None:
    """Judge policies on sequences of consecutive jobs sampled from LOG, each on an idle machine.

    Every policy sees the same sequences. The first one is the base that the others are compared with.

    \b
    Examples:
      bridge evaluate bundled-128 --order fcfs --order sjf --order wfp3
      bridge evaluate lublin_256.swf.gz --order sjf --protocol schedgym --sequences 10 --length 1024 --seed 40
    """
    from bridge.fast.setup import Setup
    from bridge.judge.sampling import SAMPLERS, sample

    setup = Setup(
        protocol=protocol,
        preset=preset or "",
        candidate_order=backfill_order,
        cancelled=cancelled or "",  # type: ignore[arg-type]
        nodes=nodes,
        first=first,
    )
    _, load = setup.rules()
    sampler = SAMPLERS.get(load.name, SAMPLERS["standard"])
    length = length or sampler.length
    workload = read_log(log, malformed)
    jobs = setup.select(workload)
    warn_about(jobs.tally)
    starts = sample(
        sampler, len(jobs), sequences or sampler.sequences, length, sampler.seed if seed is None else seed
    )

    from bridge.judge.sequences import values_of

    say_if_compiling()
    contestants: list[Contestant] = []
    policies = [
        replace(setup, order=o, backfill=b, estimator=e)
        for o, b, e in itertools.product(*map(dict.fromkeys, (order, backfill, estimator)))
    ]
    prepared = [policy.prepare(jobs) for policy in policies]
    with progress_bar("sequences", len(starts) * len(policies), "sequences") as advance:
        try:
            for k, (policy, ready) in enumerate(zip(policies, prepared, strict=True)):
                report = functools.partial(_beyond, advance, k * len(starts))
                values = values_of(ready, starts, length, metric, report)
                contestants.append(Contestant(policy, ready.oracle, values))
        except KeyboardInterrupt:
            if not contestants:
                raise
            click.echo(
                f"bridge: interrupted; {len(contestants)} of {len(policies)} policies are finished:", err=True
            )
            _report(contestants, starts, length, metric, as_json, jobs.name)
            raise
    _report(contestants, starts, length, metric, as_json, jobs.name)


def _beyond(advance: Callable[[int], None], before: int, done: int) -> None:
    advance(before + done)


def _report(
    contestants: list[Contestant], starts: Any, length: int, metric: str, as_json: bool, name: str
) -> None:
    from bridge.judge.sequences import judge

    judged = [
        judge(c.values, contestants[0].values if k else None, starts, length)
        for k, c in enumerate(contestants)
    ]
    if as_json:
        import json

        click.echo(json.dumps(_plain(contestants, judged, starts, length, metric, name), indent=2))
        return
    from rich.console import Console

    console = Console()
    console.print(_table(contestants, judged, len(starts), length, metric, name))
    if judged[0].dependent and np.isnan(judged[0].mean.low):
        console.print("[dim]All sequences overlap each other: no interval can be given.[/dim]")
    elif judged[0].dependent:
        console.print("[dim]Sequences overlap: intervals are moving-block bootstrap (95 %).[/dim]")
    if any(c.oracle for c in contestants):
        console.print("[dim]* the estimator reads true run times (oracle).[/dim]")


def _table(
    contestants: list[Contestant], judged: "list[Judged]", sequences: int, length: int, metric: str, name: str
) -> "Table":
    from rich.markup import escape
    from rich.table import Table

    first = contestants[0].setup
    rules = first.protocol + (f"/{first.preset}" if first.preset else "")
    size = f"{sequences:,} sequence{'s' * (sequences != 1)} of {length:,} job{'s' * (length != 1)}"
    title = escape(f"{name}: {metric}, {size}, protocol {rules}")
    digits = 4 if metric == "utilisation" else 2
    table = Table(title=title, title_justify="left", caption_justify="left")
    table.add_column("policy", overflow="fold")
    for column in ("mean", "95 % CI", "− base", "95 % CI"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("verdict", min_width=len("distinguishable"))
    several = len({c.setup.estimator for c in contestants}) > 1
    for contestant, j in zip(contestants, judged, strict=True):
        label = contestant.name
        if several:
            label += f", {contestant.setup.estimator or contestant.setup.rules()[0].estimator}"
        table.add_row(
            label + ("*" if contestant.oracle else ""),
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
    contestants: list[Contestant], judged: "list[Judged]", starts: Any, length: int, metric: str, name: str
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
                "order": c.setup.order,
                "backfill": c.setup.backfill,
                "candidate_order": c.setup.candidate_order,
                "protocol": c.setup.protocol,
                "preset": c.setup.preset,
                "estimator": c.setup.estimator or c.setup.rules()[0].estimator,
                "oracle": c.oracle,
                "mean": j.mean.mean,
                "ci95": interval(j.mean),
                "difference": interval(j.difference),
                "verdict": j.verdict if metric != "utilisation" else j.verdict_higher,
                "values": [float(v) for v in c.values],
            }
            for c, j in zip(contestants, judged, strict=True)
        ],
    }
