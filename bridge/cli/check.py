"""`bridge check`: verifies a schedule and reports the first violation."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bridge.cli.show import show_json
from bridge.errors import BridgeError

if TYPE_CHECKING:
    import pandas as pd

    from bridge.judge.check import Verdict
    from bridge.judge.power import Audit


@click.command()
@click.argument("jobs_file", metavar="JOBS", type=click.Path(path_type=Path))
@click.option(
    "--nodes", type=click.IntRange(min=1), help="Nodes of the machine (a run folder knows its own)."
)
@click.option(
    "--capacity",
    metavar="RESOURCE=AMOUNT",
    multiple=True,
    help="Check a further resource too, such as burst_buffer=1000000 (bytes) or power=5000 (W).",
)
@click.option(
    "--workload",
    metavar="LOG",
    type=click.Path(path_type=Path),
    help="Compare demands, submit times and run times with this log, too.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=1e-6,
    show_default=True,
    help="How far times may be off, in seconds.",
)
@click.option(
    "--ignore",
    metavar="KIND",
    multiple=True,
    help="Leave out a kind of violation, as named in the report. For Batsim with --enable-compute-sharing: "
    "--ignore capacity --ignore host-overlap --ignore allocation-size.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
def check(
    jobs_file: Path,
    nodes: int | None,
    capacity: tuple[str, ...],
    workload: Path | None,
    tolerance: float,
    ignore: tuple[str, ...],
    as_json: bool,
) -> None:
    """Verify the schedule JOBS: capacity at every instant, times, walltimes, hosts, power.

    JOBS is a jobs.csv of bridge or Batsim, a jobs.parquet or run folder of bridge, or an .rst of CQSim.
    The exit status is 0 if no rule is broken, else 1; the first violation in time is reported.
    """
    from bridge.workload.table import parse_capacity

    further = parse_capacity(" ".join(capacity), "--capacity")
    table, limits, power = _load(jobs_file, nodes)
    limits |= further

    from bridge.judge.check import check_schedule

    log = None
    if workload is not None:
        from bridge.workload.catalogue import resolve
        from bridge.workload.formats import read

        log = read(resolve(workload))
    verdict = check_schedule(table, limits, tolerance=tolerance, ignore=ignore, workload=log, power=power)
    if as_json:
        measured = {"power": asdict(power)} if power is not None else {}
        show_json({"ok": verdict.ok, **asdict(verdict)} | measured)
    else:
        _tell(verdict)
        if power is not None:
            _tell_power(power)
    if not verdict.ok:
        raise click.exceptions.Exit(1)


def _load(path: Path, nodes: int | None) -> "tuple[pd.DataFrame, dict[str, int], Audit | None]":
    """Return the jobs table, the capacities to check it against, and what the machine drew, if known."""
    from bridge.judge.power import recheck
    from bridge.judge.run import read_jobs, read_run

    if path.is_dir():
        run = read_run(path)
        power = recheck(path, run.config, run.jobs, run.capacity["nodes"])
        return run.jobs, run.capacity | ({} if nodes is None else {"nodes": nodes}), power
    if nodes is None:
        raise BridgeError("the machine's size is not known", where=str(path), remedy="Add --nodes N.")
    return read_jobs(path), {"nodes": nodes}, None


def _tell(verdict: "Verdict") -> None:
    for note in verdict.notes:
        click.echo(f"note: {note}")
    if verdict.ok:
        peaks = ", ".join(f"peak {verdict.peak[r]:,.0f} of {c:,} {r}" for r, c in verdict.capacity.items())
        rejected = f", {verdict.rejected:,} rejected" if verdict.rejected else ""
        killed = f", {verdict.attempts:,} killed attempts" if verdict.attempts else ""
        click.echo(f"valid: {verdict.started:,} jobs started{rejected}{killed}; {peaks}")
        return
    first = verdict.first
    assert first is not None
    click.echo(f"first violation, at t = {first.time:.6f} s [{first.kind}]:\n  {first.text}")
    click.echo("violations: " + ", ".join(f"{kind} {count:,}" for kind, count in verdict.kinds.items()))


def _tell_power(power: "Audit") -> None:
    if power.peak is None or power.mean is None:
        return
    budget = "no budget" if power.budget is None else f"budget {power.budget:,.6g} W"
    click.echo(
        f"power drawn: peak {power.peak:,.6g} W, mean {power.mean:,.6g} W, {budget}; "
        f"energy {power.energy / 3.6e6:,.6g} kWh"
    )
