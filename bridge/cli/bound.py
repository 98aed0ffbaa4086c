"""`bridge bound`: how much is left to win on a log, and for which unknown."""

from typing import TYPE_CHECKING, Any

import click

from bridge.cli import options as shared
from bridge.cli.show import TERMINAL, show
from bridge.config.options import Command, options, typed
from bridge.experiment.spec import Sampling
from bridge.fast.setup import Setup
from bridge.schedulers import Request

if TYPE_CHECKING:
    from bridge.futures.bound import Bound
    from bridge.report.table import Table


@click.command(cls=Command)
@click.argument("log")
@options(Setup, "estimator", "cancelled", "nodes", "first", heading=shared.RULES)
@shared.malformed_option
@options(Sampling, "part", "sequences", "length", "seed", heading="Sequences")
@shared.json_option
@click.pass_context
def bound(ctx: click.Context, /, log: str, as_json: bool, **_: Any) -> None:
    """Tell how much true run times, and true arrivals, would win on sequences sampled from LOG.

    The base is the best of ten rules behind EASY, in hindsight. Beside it: lookahead, the best rule with true
    run times, and a clairvoyant that looks ahead on true run times and the true arrivals of 12 h.

    \b
    Examples:
      bridge bound bundled-128 --sequences 50
      bridge bound sp2.parquet --estimator 'predicted(trees, requested)' --from 0.6 --length 1024
    """
    from bridge.futures import bound as bounds
    from bridge.judge.sequences import SAMPLERS, sample
    from bridge.workload.catalogue import read_log

    request = Request((), log, typed(ctx))
    setup, sampling = request.settings(Setup), request.settings(Sampling)
    jobs = setup.select(read_log(log, request.typed.get("malformed", "refuse")))
    watch, usual = TERMINAL, SAMPLERS["standard"]
    watch.dropped(jobs.tally)
    length, count = sampling.length or usual.length, sampling.sequences or usual.sequences
    before = round(len(jobs) * (sampling.part or 0.0))
    seed = usual.seed if sampling.seed is None else sampling.seed
    starts = before + sample(usual, len(jobs) - before, count, length, seed)
    watch.compiling()
    with watch.bar("sequences", count * bounds.runs(), "sequences") as progress:
        found = bounds.bound(jobs, setup, starts, length, progress)
    document = {
        "workload": jobs.name,
        "metric": "bsld",
        "estimator": setup.estimator or setup.rules()[0].estimator,
        "length": length,
        "sequences": count,
        "starts": starts.tolist(),
        **found.as_dict(),
    }
    show(document, [_table(found, f"{jobs.name}: bsld, {count:,} sequences of {length:,} jobs")], as_json)


def _table(found: "Bound", title: str) -> "Table":
    """Return the rows with their differences in percent."""
    from bridge.report.table import Table

    table = Table(("known", "policy", "mean", "− base", "95 % CI"), title=title, words=(1,))
    for row in found.as_dict()["rows"]:
        gain = row["difference_percent"]
        between = "" if gain is None or gain["low"] is None else f"{gain['low']:+.0f} … {gain['high']:+.0f} %"
        table.add(
            row["known"],
            row["policy"] + ("*" if row["oracle"] else ""),
            f"{row['mean']:,.2f}",
            "base" if gain is None else f"{gain['mean']:+.1f} %",
            between,
        )
    return table
