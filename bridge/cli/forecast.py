"""`bridge forecast`: when waiting jobs will start, and how good such forecasts are on a log."""

from collections import Counter
from pathlib import Path
from typing import Any

import click

from bridge.cli import live
from bridge.cli import options as shared
from bridge.cli.show import TERMINAL, show
from bridge.config.options import Command, group, typed
from bridge.errors import BridgeError
from bridge.fast.setup import Setup
from bridge.files import is_there
from bridge.workload.catalogue import read_log

#: How many reasons for having no forecast are printed.
_MOST = 5


@click.command(cls=Command)
@click.argument("source", metavar="[RUN|STATE|LOG]", required=False, type=shared.FILE)
@live.at_option
@click.option("--job", "jobs", multiple=True, metavar="ID", help="Only this waiting job. May be repeated.")
@live.submit_option("A job that one might submit, such as 64:2h. May be repeated: each for itself.")
@shared.policy_option("Rule, if not the state's own.", default="")
@shared.number("--futures", "Futures a forecast.  [default: 100]", 2, 10_000, metavar="N")
@shared.number("--seed", "Same seed, same forecast.  [default: 0]", 0, default=0, show_default=False)
@live.observed_options
@group(
    "Judging",
    shared.flag("--judge", "Forecast all along a replay of LOG under fcfs+easy, and compare with what came."),
    shared.number("--nodes", "Machine size, if not the log's.", metavar="N"),
    shared.number("--first", "Only the first N jobs.", metavar="N"),
    shared.malformed_option,
)
@group(
    "Output",
    shared.json_option,
    shared.file_option("--plot", "Draw running jobs and the futures of the waiting ones (.svg or .png)."),
    shared.flag("--force", "Replace FILE if it exists."),
)
@click.pass_context
def forecast(ctx: click.Context, /, source: Path | None, judge: bool, as_json: bool, **given: Any) -> None:
    """Forecast when waiting jobs will start: the median, and 50 and 90 % intervals.

    RUN is a run folder, STATE a file that `bridge state` or another program wrote. Times are seconds on the
    state's clock. With --judge, LOG is a file, a bundled workload or a fetched log. With --slurm, the
    present is that of a real Slurm, and times are seconds since 1970.

    \b
    Examples:
      bridge forecast runs/sp2 --at 2592000
      bridge forecast now.json --job 4711
      bridge forecast now.json --submit 64:2h --submit 64:1h
      bridge forecast SDSC-SP2.swf.gz --judge --json
      bridge forecast --slurm --partition batch --history log.parquet --job 4711
    """
    words = typed(ctx).keys()
    live.refuse_observed(given["slurm"], source, words)
    if judge:
        other = {"at", "jobs", "submits", "policy", "plot", "force", "slurm"}
        shared.refuse_options(words & other, "--judge")
        _judge(str(source), as_json, given)
        return
    shared.refuse_options(words & {"nodes", "first", "malformed"}, "a forecast without --judge")
    _forecast(source, as_json, given)


def _forecast(source: Path | None, as_json: bool, given: dict[str, Any]) -> None:
    from bridge.futures.forecast import FUTURES, forecast
    from bridge.futures.whatif import parse_job, with_job
    from bridge.report.tables import forecast_table

    plot: Path | None = given["plot"]
    if plot is not None:
        shared.check_output(plot, given["force"])
    asked = [parse_job(text) for text in given["submits"]]
    TERMINAL.compiling()
    if source is not None and not is_there(source, Path.is_dir):
        _refuse_log(source)
    state, left = live.state(source, *(given[name] for name in ("at", "policy", "partition", "history")))
    for job in given["jobs"]:
        if job in left:
            raise BridgeError(f"no forecast: {left[job]}", where=f"job {job}")
    how = {"policy": given["policy"], "futures": given["futures"] or FUTURES, "seed": given["seed"]}
    found: dict[str, Any] = {"now": state.now / 1e6, "policy": given["policy"] or state.policy}
    if given["jobs"] or not asked:
        one = forecast(state, jobs=given["jobs"], **how)
        found["jobs"] = one.rows()
        if plot is not None:
            from bridge.report.futures_picture import futures_picture
            from bridge.report.plots import save

            save(futures_picture(state, one), plot)
    rows = found.get("jobs", [])
    submitted = []
    for text, (nodes, walltime, user) in zip(given["submits"], asked, strict=True):
        with_it = with_job(state, nodes, walltime, user)
        submitted.append(forecast(with_it, jobs=with_it.id[-1:], **how).rows()[0] | {"job": text})
    if submitted:
        found["submitted"] = submitted
    if left:
        found["left"] = left
    waiting = len(state) - state.n_running
    title = f"{found['now']:,.0f} s: {state.n_running:,} jobs run, {waiting:,} wait, {found['policy']}"
    show(found, [forecast_table([*rows, *submitted], found["now"], title), *_left(left)], as_json)
    if plot is not None:
        click.echo(f"drew {plot}", err=True)


def _refuse_log(source: Path) -> None:
    """Refuse a log where a run or a state is meant: it has no present."""
    from bridge.workload.catalogue import bundled, catalogue

    if str(source) in {*bundled(), *catalogue()} or {".swf", ".parquet", ".csv"} & {*source.suffixes}:
        what = f"{source} is a log, which has no present: add --judge, or name a run or a state"
        raise click.UsageError(what)


def _left(left: dict[str, str]) -> list[str]:
    """Return a line for each reason why nothing is forecast of waiting jobs, those of most jobs first."""
    whys = Counter(left.values()).most_common()
    jobs = {why: [job for job, one in left.items() if one == why] for why, _ in whys[:_MOST]}
    found = [
        f"no forecast of {count:,} (job {', '.join(jobs[why][:3])}{', …' if count > 3 else ''}): {why}"
        for why, count in whys[:_MOST]
    ]
    more = sum(count for _, count in whys[_MOST:])
    return [*found, f"no forecast of {more:,} more, for other reasons"] if more else found


def _judge(log: str, as_json: bool, given: dict[str, Any]) -> None:
    from bridge.fast.replay import replay
    from bridge.futures import judge as judging
    from bridge.futures.timeline import FUTURES, believing, cases
    from bridge.report.tables import judged_table

    setup = Setup(nodes=given["nodes"], first=given["first"])
    jobs = setup.select(read_log(log, given["malformed"]))
    TERMINAL.dropped(jobs.tally)
    prepared = setup.prepare(jobs)
    TERMINAL.compiling()
    with TERMINAL.bar(f"{jobs.name} fcfs+easy", len(jobs), "jobs") as progress:
        schedule = replay(prepared, progress)
    with TERMINAL.bar(f"{jobs.name} beliefs", len(jobs), "jobs") as progress:
        timeline = believing(prepared, schedule, progress=progress)
    total = len(cases(jobs.submit, schedule.start))
    with TERMINAL.bar(f"{jobs.name} forecasts", total, "forecasts") as progress:
        found = judging.judge(timeline, given["futures"] or FUTURES, given["seed"], progress)
    show(found, [judged_table(found, jobs.name)], as_json)
