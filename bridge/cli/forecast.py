"""`bridge forecast`: when waiting jobs will start, and how good such forecasts are on a log."""

from collections import Counter
from pathlib import Path
from typing import Any

import click

from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.base.files import is_there
from bridge.cli import decide_slurm
from bridge.cli import options as shared
from bridge.cli.terminal import TERMINAL, show
from bridge.config.fields import record_of
from bridge.config.options import Command, given_on_command_line, group
from bridge.workload.catalogue import read_log
from bridge.worlds.fast.scheduler_config import SchedulerConfig

#: How many reasons for having no forecast are printed.
_MOST = 5


@click.command(cls=Command)
@click.argument("source", metavar="[RUN|STATE|LOG]", required=False, type=shared.FILE)
@decide_slurm.at_option
@click.option("--job", "jobs", multiple=True, metavar="ID", help="Only this waiting job. May be repeated.")
@decide_slurm.submit_option(
    "A job that you might submit, such as 64:2h. May be repeated; each job gets its own forecast."
)
@shared.policy_option("The policy of the futures.  [default: the policy of the state]", default="")
@shared.number("--futures", "Number of futures for each forecast.  [default: 100]", 2, 10_000, metavar="N")
@shared.number("--seed", "Same seed, same forecast.  [default: 0]", 0, default=0, show_default=False)
@decide_slurm.observed_options
@shared.file_option(
    "--progress",
    "Take new estimates of running jobs from this file (made by `bridge predict --model series`).",
)
@group(
    "Judging",
    shared.flag(
        "--judge",
        "Replay LOG under fcfs+easy, forecast its jobs on the way, and compare with the real starts.",
    ),
    shared.number("--nodes", "Number of nodes.  [default: as the log states]", metavar="N"),
    shared.number("--first", "Only the first N jobs.", metavar="N"),
    shared.field_options(
        SchedulerConfig,
        cluster="Replay LOG on the nodes and under the rules of this site. A RUN always has its own cluster.",
    ),
    shared.malformed_option,
)
@group(
    "Output",
    shared.json_option,
    shared.file_option("--plot", "Draw running jobs and the futures of the waiting ones (.svg or .png)."),
    shared.flag("--force", "Replace FILE if it exists."),
)
@click.pass_context
def forecast(ctx: click.Context, /, source: Path | None, judge: bool, as_json: bool, **options: Any) -> None:
    """Forecast when waiting jobs will start: the median, and 50 and 90 % intervals.

    RUN is a run folder. STATE is a file that `bridge state` or another program wrote. Times are seconds on
    the clock of the state. With --judge, give a LOG: a file, a bundled workload or a fetched log. With
    --slurm, the present state is read from a real Slurm. Times are then seconds since 1970.

    \b
    Examples:
      bridge forecast runs/sp2 --at 2592000
      bridge forecast now.json --job 4711
      bridge forecast now.json --submit 64:2h --submit 64:1h
      bridge forecast SDSC-SP2.swf.gz --judge --json
      bridge forecast --slurm --partition batch --history log.parquet --job 4711
      bridge forecast now.json --progress beliefs.parquet
    """
    words = given_on_command_line(ctx).keys()
    decide_slurm.refuse_observed(options["slurm"], source, words)
    if judge:
        other = {"at", "jobs", "submits", "policy", "plot", "force", "slurm", "progress"}
        shared.refuse_options(words & other, "--judge")
        _judge(str(source), as_json, options)
        return
    shared.refuse_options(words & {"nodes", "first", "malformed"}, "a forecast without --judge")
    shared.refuse_cluster(options["cluster"])
    _forecast(source, as_json, options)


def _forecast(source: Path | None, as_json: bool, options: dict[str, Any]) -> None:
    from bridge.forecasting.starts import FUTURES, forecast
    from bridge.forecasting.whatif import parse_job, with_job
    from bridge.judge.fidelity import describe, folder_distance
    from bridge.report.tables import forecast_table

    plot: Path | None = options["plot"]
    if plot is not None:
        shared.check_picture(plot, options["force"])
    submissions = [parse_job(text) for text in options["submits"]]
    if source is not None and not is_there(source, Path.is_dir):
        _refuse_log(source)
    state, left = decide_slurm.state(
        source, *(options[name] for name in ("at", "policy", "partition", "history"))
    )
    if options["progress"] is not None:
        from bridge.forecasting.reestimated import with_beliefs
        from bridge.workload.running_beliefs import read_beliefs

        state = with_beliefs(state, read_beliefs(options["progress"], state.id))
    for job in options["jobs"]:
        if job in left:
            raise BridgeError(f"no forecast: {left[job]}", where=f"job {job}")
    how = {"policy": options["policy"], "futures": options["futures"] or FUTURES, "seed": options["seed"]}
    document: dict[str, Any] = {"now": state.now / 1e6, "policy": options["policy"] or state.decider}
    if options["jobs"] or not submissions:
        one = forecast(state, jobs=options["jobs"], **how)
        document["jobs"] = one.rows()
        if plot is not None:
            from bridge.report.futures_picture import futures_picture
            from bridge.report.plots import save

            save(futures_picture(state, one), plot)
    rows = document.get("jobs", [])
    submitted = []
    for text, (nodes, walltime, user) in zip(options["submits"], submissions, strict=True):
        with_it = with_job(state, nodes, walltime, user)
        submitted.append(forecast(with_it, jobs=with_it.id[-1:], **how).rows()[0] | {"job": text})
    if submitted:
        document["submitted"] = submitted
    if left:
        document["left"] = left
    lines = _left(left)
    if source is not None and (distance := folder_distance(source)):
        document["fidelity"] = record_of(distance)
        lines.append(describe(distance))
    waiting = len(state) - state.n_running
    title = (
        f"{document['now']:,.0f} s: {counted(state.n_running, 'job runs', 'jobs run')}, "
        f"{counted(waiting, 'waits', 'wait')}, {document['policy']}"
    )
    show(document, [forecast_table([*rows, *submitted], document["now"], title), *lines], as_json)
    if plot is not None:
        click.echo(f"drew {plot}", err=True)


def _refuse_log(source: Path) -> None:
    from bridge.workload.catalogue import bundled, catalogue

    if str(source) in {*bundled(), *catalogue()} or {".swf", ".parquet", ".csv"} & {*source.suffixes}:
        what = f"{source} is a log, which has no present: add --judge, or name a run or a state"
        raise click.UsageError(what)


def _left(left: dict[str, str]) -> list[str]:
    """Return a line for each reason why nothing is forecast of waiting jobs, those of most jobs first."""
    whys = Counter(left.values()).most_common()
    jobs = {why: [job for job, one in left.items() if one == why] for why, _ in whys[:_MOST]}
    lines = [
        f"no forecast of {count:,} (job {', '.join(jobs[why][:3])}{', …' if count > 3 else ''}): {why}"
        for why, count in whys[:_MOST]
    ]
    more = sum(count for _, count in whys[_MOST:])
    return [*lines, f"no forecast of {more:,} more, for other reasons"] if more else lines


def _judge(log: str, as_json: bool, options: dict[str, Any]) -> None:
    from bridge.forecasting import scoring as judging
    from bridge.forecasting.scoring import learn_estimates
    from bridge.forecasting.timeline import FUTURES, list_cases
    from bridge.judge.fidelity import describe, wait_distance
    from bridge.report.tables import judged_table
    from bridge.scheduler.state import SECOND
    from bridge.worlds.fast.recorded import is_recorded
    from bridge.worlds.fast.replay import replay

    setup = SchedulerConfig(nodes=options["nodes"], first=options["first"], cluster=options["cluster"])
    jobs = setup.select(read_log(log, options["malformed"]))
    TERMINAL.dropped(jobs.tally)
    prepared = setup.build_scenario(jobs)
    with TERMINAL.bar(f"{jobs.name} fcfs+easy", len(jobs), "jobs") as progress:
        schedule = replay(prepared, progress)
    with TERMINAL.bar(f"{jobs.name} beliefs", len(jobs), "jobs") as progress:
        timeline = learn_estimates(prepared, schedule, progress=progress)
    total = len(list_cases(jobs.submit, schedule.start))
    with TERMINAL.bar(f"{jobs.name} forecasts", total, "forecasts") as progress:
        document = judging.judge(timeline, options["futures"] or FUTURES, options["seed"], progress)
    lines = []
    if (has_record := is_recorded(jobs)).any():
        waits = (schedule.start - schedule.submit)[has_record] / SECOND
        distance = wait_distance(waits, jobs.logged_wait[has_record] / SECOND)
        document["fidelity"] = record_of(distance)
        lines.append(describe(distance))
    show(document, [judged_table(document, jobs.name), *lines], as_json)
