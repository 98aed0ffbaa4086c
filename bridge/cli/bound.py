"""`bridge bound`: how much is left to win on a log, and for which unknown."""

from typing import Any

import click

from bridge.cli import options as shared
from bridge.cli.terminal import TERMINAL, show
from bridge.commands.request import CommandRequest
from bridge.config.options import Command, given_on_command_line, group, options
from bridge.experiment.spec import Sampling
from bridge.worlds.fast.scheduler_config import SchedulerConfig

_SEQUENCES = {
    "part": "Only sequences after this part of the log.  [default: 0]",
    "sequences": "Number of sequences.  [default: 200]",
    "length": "Number of jobs in each sequence.  [default: 256]",
    "seed": "Random seed of the sampling.  [default: 1]",
}


@click.command(cls=Command)
@click.argument("log")
@options(SchedulerConfig, "estimator", "cancelled", "nodes", "first", "cluster", heading=shared.RULES)
@shared.malformed_option
@group("Sequences", shared.field_options(Sampling, **_SEQUENCES))
@group(
    "Actions",
    shared.flag(
        "--actions",
        "Show instead what rules gain if they may stop and suspend jobs.",
    ),
    click.option(
        "--share",
        type=click.FloatRange(0, 1, min_open=True),
        default=1.0,
        metavar="FRACTION",
        help="With --actions: share of all jobs that may be stopped and suspended; of a user, all or none.  "
        "[default: 1]",
    ),
)
@shared.json_option
@click.pass_context
def bound(ctx: click.Context, /, log: str, actions: bool, share: float, as_json: bool, **_: Any) -> None:
    """Estimate how much better schedules of LOG would be with true run times and true arrivals.

    All policies play the same random sequences. The base is the best of ten rules with EASY; it is chosen
    after the results are known. The other rows show lookahead, the best rule with true run times, lookahead
    with true run times, and a policy that knows true run times and the arrivals of the next 12 h.

    With --actions the base is SAF with EASY. The other rows are rules that may also stop, suspend and resume
    jobs. The table shows the gain and the cost of each.

    \b
    Examples:
      bridge bound bundled-128 --sequences 50
      bridge bound bundled-128 --actions --share 0.5
      bridge bound sp2.parquet --estimator 'predicted(trees, requested)' --from 0.6 --length 1024
    """
    from bridge.forecasting import bound as bounds
    from bridge.judge.sequences import SAMPLERS, sample
    from bridge.report.evaluation_document import bound_table, bounds_of
    from bridge.workload.catalogue import read_log

    request = CommandRequest((), log, given_on_command_line(ctx))
    setup, sampling = request.settings(SchedulerConfig), request.settings(Sampling)
    jobs = setup.select(read_log(log, request.typed.get("malformed", "refuse")))
    watch, usual = TERMINAL, SAMPLERS["standard"]
    watch.dropped(jobs.tally)
    length, count = sampling.length or usual.length, sampling.sequences or usual.sequences
    before = round(len(jobs) * (sampling.part or 0.0))
    seed = usual.seed if sampling.seed is None else sampling.seed
    starts = before + sample(usual, len(jobs) - before, count, length, seed)
    document: dict[str, Any] = {
        "workload": jobs.name,
        "metric": "bsld",
        "estimator": setup.estimator or setup.rules()[0].estimator,
        "length": length,
        "sequences": count,
        "starts": starts.tolist(),
    }
    if actions:
        from bridge.forecasting.action_bound import PLAYED, bound_actions
        from bridge.report.action_table import action_bound_tables

        with watch.bar("sequences", count * PLAYED, "sequences") as progress:
            rows, warnings = bound_actions(jobs, setup, starts, length, share, progress)
        watch.warn(warnings)
        document |= {"share": share, "warnings": warnings, "rows": [row.as_dict() for row in rows]}
        show(document, action_bound_tables(document, rows), as_json)
        return
    if ctx.get_parameter_source("share") is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("--share is the part of the jobs that permit --actions.")
    with watch.bar("sequences", count * bounds.PLAYED, "sequences") as progress:
        result = bounds.bound(jobs, setup, starts, length, progress)
    document |= result.as_dict()
    show(document, bound_table(bounds_of(document, jobs.name)), as_json)
