"""`bridge whatif`: the same futures of a machine under several rules."""

from pathlib import Path
from typing import Any

import click

from bridge.cli import live
from bridge.cli import options as shared
from bridge.cli.progress import TERMINAL
from bridge.cli.show import show
from bridge.config.options import Command


@click.command(cls=Command)
@click.argument("source", metavar="[RUN|STATE]", required=False, type=click.Path(path_type=Path))
@click.option("--at", type=float, metavar="TIME", help="Of a run: seconds on its clock.")
@shared.policies_option
@click.option("--drain", type=click.IntRange(min=1), metavar="N", help="Take N nodes out of service.")
@click.option("--add", type=click.IntRange(min=1), metavar="N", help="Add N nodes.")
@click.option(
    "--submit",
    "submits",
    multiple=True,
    metavar="NODES:WALLTIME[:USER]",
    help="Submit a job. May be repeated.",
)
@click.option("--futures", type=click.IntRange(min=2), default=100, metavar="N", help="[default: 100]")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Same seed, same futures.  [default: 0]")
@live.observed_options
@shared.json_option
def whatif(
    source: Path | None,
    at: float | None,
    policies: tuple[str, ...],
    drain: int | None,
    add: int | None,
    submits: tuple[str, ...],
    futures: int,
    seed: int,
    slurm: bool,
    partition: str | None,
    history: Path | None,
    as_json: bool,
) -> None:
    """Play the same futures of a machine under several rules, and compare them future by future.

    The first --policy is the base; without any it is the state's own. With --drain, --add or --submit the
    base is the machine as it is, and the rules are played on the changed one.

    \b
      bridge whatif runs/sp2 --at 2592000 --policy fcfs+easy --policy sjf+easy --policy saf+easy
      bridge whatif now.json --drain 16
      bridge whatif --slurm --partition batch --policy fcfs+easy --policy sjf+easy
    """
    from dataclasses import asdict

    from bridge.futures.change import changed
    from bridge.futures.load import load_state
    from bridge.futures.whatif import whatif

    words = {"at": at, "partition": partition, "history": history}
    live.refuse_observed(slurm, source, {name for name, value in words.items() if value is not None})
    if drain and add:
        raise click.UsageError("--drain and --add: choose one")
    change = bool(drain or add or submits)
    if len(policies) < 2 and not change:
        raise click.UsageError("name two rules at least (--policy), or a change (--drain, --add, --submit)")
    first = policies[0] if policies else ""
    TERMINAL.compiling()
    if source is None:
        state, _ = live.present(partition, first, history)
    else:
        with TERMINAL.bar("earlier forecasts", 1200, "forecasts") as progress:
            state = load_state(source, at, first, progress=progress)
    names = [*policies] or [state.policy]
    states = [state]
    if change:
        after = changed(state, nodes=(add or 0) - (drain or 0), submits=submits)
        states = [state, *(after for _ in names)]
        names = [names[0], *names]
    outcomes = whatif(states, names, futures=futures, seed=seed)
    found: dict[str, Any] = {
        "now": state.now / 1e6, "futures": futures, "seed": seed, "changed": change,
        "policies": [asdict(one) for one in outcomes],
    }  # fmt: skip
    show(found, [] if as_json else [_table(outcomes, change, futures)], as_json)


def _table(outcomes: list[Any], change: bool, futures: int) -> object:
    from bridge.report.table import Table
    from bridge.report.tables import duration

    headings = ("policy", "mean wait", "difference", "slowdown", "difference", "last start", "shorter waits")
    caption = "Differences to the first, future by future, with 95 % intervals; slowdown: bounded."
    table = Table(headings, title=f"{futures} futures", caption=caption)
    for k, one in enumerate(outcomes):
        wait, slow, last = (one.values[name] for name in ("wait", "bsld", "drained"))
        name = f"{one.policy}, changed" if change and k else one.policy
        cells = ["", ""]
        if k:
            of_wait, of_slow = one.differences["wait"], one.differences["bsld"]
            cells = [
                f"{duration(of_wait.mean)} [{duration(of_wait.low)}, {duration(of_wait.high)}]",
                f"{of_slow.mean:.2f} [{of_slow.low:.2f}, {of_slow.high:.2f}]",
            ]
        better = f"{100 * one.better:.0f} %" if k else ""
        table.add(
            name, duration(wait.mean), cells[0], f"{slow.mean:.2f}", cells[1], duration(last.mean), better
        )
        if one.never:
            table.add(f"  {one.never} jobs can never start")
    return table
