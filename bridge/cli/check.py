"""`bridge check`: verifies a schedule and reports the first violation."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.base.files import is_there
from bridge.cli import options as shared
from bridge.cli.terminal import show
from bridge.config import Constraint, Count, Unsigned
from bridge.config.fields import record_of
from bridge.config.options import given_on_command_line, options
from bridge.scheduler.names import RECORDED
from bridge.workload.catalogue import resolve
from bridge.workload.formats import read

if TYPE_CHECKING:
    import pandas as pd

    from bridge.judge.check import CheckReport
    from bridge.judge.energy import PowerAudit


@dataclass(frozen=True)
class Checking:
    """What a schedule is checked against.

    Attributes:
        nodes: number of nodes of the machine (a run folder states it).
        capacity: also check a further resource, such as burst_buffer=1000000 (bytes) or power=5000 (W).
        workload: also compare demands, submit times and run times with this log.
        tolerance: largest difference of times that is allowed, in seconds.
        ignore: leave out a kind of violation, as named in the report. For Batsim with
            --enable-compute-sharing: --ignore capacity --ignore host-overlap --ignore allocation-size.
    """

    nodes: Count | None = None
    capacity: Annotated[tuple[str, ...], Constraint(metavar="RESOURCE=AMOUNT")] = ()
    workload: Annotated[Path | None, Constraint(metavar="LOG")] = None
    tolerance: Unsigned = 1e-6
    ignore: Annotated[tuple[str, ...], Constraint(metavar="KIND")] = ()


@click.command()
@click.argument("jobs_file", metavar="JOBS", type=shared.FILE)
@options(Checking)
@shared.json_option
@click.pass_context
def check(ctx: click.Context, /, jobs_file: Path, as_json: bool, **_: Any) -> None:
    """Verify the schedule JOBS: the capacity at every moment, times, walltimes, hosts, power.

    JOBS is a jobs.csv of bridge or Batsim, a jobs.parquet or run folder of bridge, or an .rst of CQSim.
    For a run under the policy recorded, the command shows where the log contradicts itself: more nodes in use
    than the machine has, or starts before a job was eligible. If the run has a cluster, it also shows nodes
    that two jobs had at one time, and nodes that the cluster does not have.

    The first violation in time is reported. The exit status is then 1, else 0.
    """
    from bridge.workload.resources import parse_capacity

    check_options = Checking(**given_on_command_line(ctx, Checking))
    further = parse_capacity(" ".join(check_options.capacity), "--capacity")
    table, limits, power, record = _load(jobs_file, check_options.nodes)
    recorded = record.get("order") == RECORDED

    from bridge.cluster.amounts_text import IDLE_EVENTS, NODE_AMOUNTS, PARTITION_NODES
    from bridge.judge.check import check_schedule

    log = None if check_options.workload is None else read(resolve(check_options.workload))
    how: dict[str, Any] = {"tolerance": check_options.tolerance, "ignore": check_options.ignore}
    how |= {"nodes": record if NODE_AMOUNTS in record else None}
    how |= {"partitions": record.get(PARTITION_NODES), "remarks": record.get(IDLE_EVENTS, ())}
    verdict = check_schedule(table, limits | further, workload=log, power=power, **how)
    document, lines = {"ok": verdict.ok, **record_of(verdict)}, [*_report_lines(verdict, recorded)]
    if power is not None:
        document["power"] = record_of(power)
        if power.peak is not None:
            budget = "no budget" if power.budget is None else f"budget {power.budget:,.6g} W"
            power_line = f"peak {power.peak:,.6g} W, mean {power.mean:,.6g} W, {budget}"
            lines.append(f"power drawn: {power_line}; energy {power.energy / 3.6e6:,.6g} kWh")
    show(document, lines, as_json)
    if not verdict.ok:
        raise click.exceptions.Exit(1)


def _load(
    path: Path, nodes: int | None
) -> "tuple[pd.DataFrame, dict[str, int], PowerAudit | None, dict[str, Any]]":
    """Return the jobs table, the capacities to check it against, what the machine drew, and the record.

    Of a file alone there is no record.
    """
    from bridge.judge.energy import recheck
    from bridge.judge.run import read_jobs, read_run

    if is_there(path, Path.is_dir):
        run = read_run(path)
        power = recheck(path, run.config, run.jobs, run.capacity["nodes"])
        return run.jobs, run.capacity | ({} if nodes is None else {"nodes": nodes}), power, run.config
    if nodes is None:
        raise BridgeError("the machine's size is not known", where=str(path), remedy="Add --nodes N.")
    return read_jobs(path), {"nodes": nodes}, None, {}


def _report_lines(verdict: "CheckReport", recorded: bool) -> Iterator[str]:
    """Yield what was found; of a record the first of each kind, since it may break several rules."""
    yield from (f"note: {note}" for note in verdict.notes)
    if verdict.ok:
        peaks = ", ".join(f"peak {verdict.peak[r]:,.0f} of {c:,} {r}" for r, c in verdict.capacity.items())
        rejected = f", {verdict.rejected:,} rejected" if verdict.rejected else ""
        killed = f", {verdict.attempts:,} killed attempts" if verdict.attempts else ""
        yield f"valid: {counted(verdict.started, 'job')} started{rejected}{killed}; {peaks}"
        return
    first = verdict.first
    assert first is not None
    yield f"first violation, at t = {first.time:.6f} s [{first.kind}]:\n  {first.text}"
    for kind, one in verdict.first_of_kind.items():
        if recorded and one != first:
            yield f"  first of {kind}, at t = {one.time:.6f} s: {one.text}"
    yield "violations: " + ", ".join(f"{kind} {count:,}" for kind, count in verdict.kinds.items())
