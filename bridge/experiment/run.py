"""One experiment in one world, as a run like any other: jobs table, metrics, record."""

import dataclasses
import math
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bridge.base.errors import BridgeError
from bridge.base.interrupts import interrupts_once
from bridge.base.progress import SILENT, ProgressReporter
from bridge.base.version import __version__
from bridge.cluster.amounts_text import IDLE_EVENTS, PARTITION_NODES
from bridge.experiment.job_lives import lives_metrics, merge_lives
from bridge.experiment.prepare import PreparedExperiment, numbering_of
from bridge.experiment.program import PREFIX, simulation_folder
from bridge.experiment.site_jobs import SiteOutcome, add_site_columns, nodes_record, outcome_of
from bridge.judge.action_metrics import run_action_metrics
from bridge.judge.energy import RECORD, PowerAudit, audit, read_power_trace
from bridge.judge.energy import record as power_record
from bridge.judge.hosts import HostAllocation, place_first_fit
from bridge.judge.jobs import COLUMNS, read_jobs
from bridge.judge.metrics import compute_metrics, job_energy
from bridge.judge.run import Run
from bridge.scheduler.state import SECOND
from bridge.wire.times import MICRO
from bridge.worlds.fast import replay as fast
from bridge.worlds.fast.allocations import as_intervals
from bridge.worlds.fast.attempts import cut_short, with_attempts
from bridge.worlds.fast.cluster_calendar import idle_by_starts
from bridge.worlds.fast.jobs_table import JobsTableBuilder

if TYPE_CHECKING:
    from bridge.experiment.detailed import DetailedRun
    from bridge.workload.select import Jobs
    from bridge.worlds.batsim.estimates import Numbering
    from bridge.worlds.batsim.jobs import DispatchedJob
    from bridge.worlds.batsim.killing_dispatcher import RepeatableJob


def run_fast(
    task: PreparedExperiment, watch: ProgressReporter = SILENT, command: str = "", *, whole: bool = True
) -> Run:
    """Run an experiment in the fast world; `command` repeats it, if not `bridge run`.

    `whole`: hold the whole jobs table, each job's hosts named; else `Run.rows` makes its rows.
    """
    prepared, agent = task.prepared, task.agent
    jobs = prepared.jobs
    with watch.bar(f"{jobs.name} {task.setup.order}", len(jobs), "jobs") as progress:
        if agent is None:
            schedule = fast.replay(prepared, progress)
        else:
            from bridge.learn.agent import replay as replay_agent

            schedule = replay_agent(agent, prepared, progress)
    idle = [] if prepared.cluster is None else idle_by_starts(prepared.cluster.cluster, jobs, schedule.start)
    watch.warn(idle)
    cut = cut_short(prepared, schedule)
    costs = {} if schedule.lives is None else run_action_metrics(prepared, schedule)
    prepared, schedule = with_attempts(prepared, schedule)
    played = JobsTableBuilder(prepared, schedule, killed_at_request=task.setup.rules()[1].kill)
    powered = "power" in jobs.resources

    def with_energy(table: pd.DataFrame) -> pd.DataFrame:
        if powered:
            table["consumed_energy"] = job_energy(table, jobs.idle_power)
        return table

    @cache
    def hosts() -> HostAllocation:
        if schedule.allocation is not None and prepared.cluster is not None:
            nodes = schedule.allocation.node_indices(
                prepared.cluster.classes, schedule.start, schedule.end, schedule.serial
            )
            return HostAllocation(*as_intervals([nodes[j] for j in played.order.tolist()]))
        if (record := prepared.recorded_nodes) is not None:
            return HostAllocation(*as_intervals(record.node_indices(played.order)))
        return place_first_fit(measured, int(jobs.capacity[0]))

    def rows(start: int, stop: int) -> pd.DataFrame:
        table = with_energy(played.rows(start, stop))
        guests = schedule.lives is not None and prepared.cluster is None
        counts_only = prepared.recorded and prepared.recorded_nodes is None
        if counts_only or guests:  # it may use more nodes than there are
            return table
        return table.assign(allocated_resources=hosts().texts(start, stop))

    measured = with_energy(played.metric_columns())
    table = rows(0, len(played)) if whole else measured
    waits = (reason_seconds(played) if prepared.cluster is not None else {}) | cut
    config: dict[str, Any] = {"world": "fast", "idle_power": jobs.idle_power if powered else None}
    if (record := prepared.recorded_nodes) is not None and (sizes := record.partition_sizes()):
        config[PARTITION_NODES] = sizes
    result = _run(task, table, config | ({"command": command} if command else {}), idle=idle)
    result = dataclasses.replace(result, metrics={**result.metrics, **waits}) if waits else result
    if costs:
        result = dataclasses.replace(result, metrics=result.metrics | costs)
    return result if whole else dataclasses.replace(result, rows=rows)


def reason_seconds(played: JobsTableBuilder) -> dict[str, float]:
    """Return for how long all jobs of a cluster together waited for each reason."""
    return {f"reason.{name}.seconds": total for name, total in played.history.totals().items()}


def _run(
    task: PreparedExperiment,
    table: pd.DataFrame,
    record_fields: dict[str, Any],
    at: str = "",
    idle: Sequence[str] = (),
) -> Run:
    """Return the run that a jobs table is of, with what its world tells; `idle`: further idle events."""
    jobs, setup = task.prepared.jobs, task.setup
    capacity = dict(zip(jobs.resources, jobs.capacity.tolist(), strict=True))
    counted = capacity
    if (cluster := task.prepared.cluster or task.prepared.recorded_nodes) is not None:
        capacity |= cluster.capacity()
        if cluster.classes.is_shared:  # jobs that share nodes do not add up to nodes
            counted = {name: amount for name, amount in capacity.items() if name != "nodes"}
            record_fields = record_fields | nodes_record(cluster.classes)
    if events := [*task.prepared.idle_events, *idle]:
        record_fields = record_fields | {IDLE_EVENTS: events}
    threshold = task.experiment.threshold
    metrics = compute_metrics(table, counted, bsld_threshold=threshold, idle_power=jobs.idle_power)
    rule = setup.order if setup.recorded else f"{setup.order}+{setup.backfill}"
    rule += f"+{setup.action}" if setup.action else ""
    who = task.agent.name if task.agent else rule
    return Run(
        record(task) | record_fields, capacity, table, metrics, task.prepared.oracle, f"{jobs.name} {who}{at}"
    )


def run_detailed(
    task: PreparedExperiment, folder: Path, watch: ProgressReporter = SILENT, **more: Any
) -> tuple[Run, "DetailedRun"]:
    """Run an experiment in the detailed world; return the run and how it ended, both whether complete or not.

    `folder` exists, for the simulation's files; `more` is for `bridge.experiment.detailed.run_simulation`.
    """
    from bridge.experiment.detailed import run_simulation

    def waiting(command: str) -> None:
        watch.say(f"waiting for the platform program, to be started in the folder: {command}")

    jobs = task.prepared.jobs
    with watch.bar(f"{jobs.name} {task.setup.order} on {task.experiment.on}", len(jobs), "jobs") as progress:
        conducted = run_simulation(task, folder, progress=progress, waiting=waiting, **more)
    result = collect(task, conducted)
    if over := result.metrics.get("over_budget.seconds"):
        watch.say(f"the machine drew more than its power budget for {over:g} s")
    return result, conducted


@contextmanager
def detailed_run(
    task: PreparedExperiment, watch: ProgressReporter, exchange: Path | None = None, **more: Any
) -> Iterator[tuple[Run, "DetailedRun"]]:
    """Yield what `run_detailed` returns; its files are in `exchange`, or in a folder that is then gone."""
    with interrupts_once(), simulation_folder(exchange) as folder:
        yield run_detailed(task, folder, watch, **more)


def collect(task: PreparedExperiment, conducted: "DetailedRun") -> Run:
    site = _site_of(task, conducted)
    jobs = jobs_table(task, conducted, site)
    detailed = task.experiment.detailed
    record_fields = conducted.record_fields(task) | {
        "walltime": detailed.limit.name,
        "energy": detailed.powered,
        "fidelity": detailed.fidelity,
        "fault": str(conducted.fault) if conducted.fault else None,
        "passes": conducted.result.dispatcher.passes,
    }
    more: dict[str, float | int | None] = {}
    if site is not None:
        more |= {**reason_seconds(site.builder), **site.cut_short}
    if (audited := _audited(task, conducted, jobs)) is not None:
        power_trace, record_fields[RECORD] = audited
        more |= {
            "power.budget": power_trace.budget,
            "power.max": power_trace.peak,
            "power.mean": power_trace.mean,
            "energy.machine.joules": power_trace.energy,
            "over_budget.seconds": power_trace.over,
        }
    if (acting := _acting_jobs(conducted)) is not None:
        more |= lives_metrics(task.prepared, acting, numbering_of(task.prepared.jobs))
    result = _run(task, jobs, {"detailed": record_fields}, f" on {task.experiment.on}")
    return dataclasses.replace(result, metrics=result.metrics | more)


def _acting_jobs(conducted: "DetailedRun") -> "list[RepeatableJob] | None":
    """Return the jobs of a simulation under a rule of action; None without one."""
    from bridge.worlds.batsim.acting_dispatcher import ActingDispatcher

    dispatcher = conducted.result.dispatcher
    return dispatcher.repeatable_jobs if isinstance(dispatcher, ActingDispatcher) else None


def _audited(
    task: PreparedExperiment, conducted: "DetailedRun", jobs: pd.DataFrame
) -> tuple[PowerAudit, dict[str, Any]] | None:
    """Compare what the platform drew with the budget; None if it simulated no power, or wrote nothing.

    The budget is what the scheduler kept to where it booked power for jobs, else the platform's.
    """
    from bridge.experiment.power_options import system_budget
    from bridge.platform.capacities import idle_watts

    detailed, platform, selected = task.experiment.detailed, task.platform, task.prepared.jobs
    path = conducted.folder / f"{PREFIX}_consumed_energy.csv"
    if not detailed.powered or platform is None or not path.exists():
        return None
    if conducted.fault is not None:
        _whole_lines(path)
    nodes, uncounted = int(selected.capacity[0]), 0.0
    budget = system_budget(platform, detailed)
    if detailed.power:
        place = selected.resources.index("power")
        budget = float(selected.capacity[place] + selected.idle_power * nodes)
        uncounted = 0.0 if selected.idle_power else idle_watts(platform.compute[0])
    storage = sum((idle_watts(host) for host in platform.storage), 0.0)
    power_audit = audit(
        read_power_trace(path), budget, storage=storage, uncounted=uncounted, nodes=nodes, jobs=jobs
    )
    return power_audit, power_record(
        power_audit, f"detailed/{path.name}", storage=storage, uncounted=uncounted
    )


def versions() -> dict[str, str]:
    """Return name → version of bridge, Python and the libraries that compute."""
    libraries = {name: version(name) for name in ("numpy", "numba", "pandas")}
    return {"bridge": __version__, "python": platform.python_version(), **libraries}


def record(task: PreparedExperiment) -> dict[str, Any]:
    jobs, experiment = task.prepared.jobs, task.experiment
    return {
        "command": experiment.command(),
        "workload": jobs.name,
        "world": experiment.on,
        "seed": experiment.seed,
        **task.setup.as_dict(),
        "estimator": task.setup.estimator or task.prepared.compiled.protocol.estimator,
        "origin": jobs.origin / SECOND,
        "records": {why: reason.count for why, reason in jobs.tally.items()},
        "versions": versions(),
        "experiment": experiment.as_dict(),
        "trained_on": task.trained_on or None,
    }


def _site_of(task: PreparedExperiment, conducted: "DetailedRun") -> SiteOutcome | None:
    """Return what became of the jobs of a cluster; None without one, or if the simulation never began."""
    if task.prepared.cluster is None or not conducted.result.messages:
        return None
    dispatcher: Any = conducted.result.dispatcher
    return outcome_of(dispatcher, task.prepared, kills=task.setup.rules()[1].kill)


def jobs_table(
    task: PreparedExperiment, conducted: "DetailedRun", site: SiteOutcome | None = None
) -> pd.DataFrame:
    """Return one row per job that has ended or was rejected, in the order of the simulation's file.

    Batsim's columns as Batsim has them, but for the ids, which are the log's again. Further columns as in a
    replay; `requested_time` is the walltime that the platform enforced (−1 = none), `request` the log's.
    """
    path = conducted.folder / f"{PREFIX}_jobs.csv"
    if conducted.fault is not None and _whole_lines(path).count(b"\n") < 2:
        kinds = {str: "str", int: "int64", float: "float64"}
        table = pd.DataFrame({name: pd.Series(dtype=kinds[kind]) for name, kind in COLUMNS.items()})
    else:
        table = read_jobs(path)
    jobs = task.prepared.jobs
    numbering, decided = numbering_of(jobs), conducted.result.jobs
    if (acting := _acting_jobs(conducted)) is not None:
        table = merge_lives(table, acting)
    by_life = None
    if site is not None and site.lives is not None:
        by_life = (table["workload_name"].astype(str) + "!" + table["job_id"].astype(str)).tolist()
        table["job_id"] = [_first_name(conducted.result.dispatcher.jobs.get(name)) for name in by_life]
    numbers = [numbering(str(name)) for name in table["job_id"]]
    row = pd.Index(jobs.number).get_indexer(pd.Index(numbers))
    if (unknown := table["job_id"][row < 0]).size:
        what = f"job {unknown.iloc[0]} is none of the workload's"
        raise BridgeError(what, where=str(path), remedy="Was the folder used by another simulation?")
    jobs_by_number = {numbering(job.job_id): job for job in decided}
    if acting is not None:
        jobs_by_number |= {numbering(job.event.job_id): job.current for job in acting}
    of_rows = [jobs_by_number.get(number) for number in numbers]
    if by_life is not None:
        of_rows = [conducted.result.dispatcher.jobs.get(name) for name in by_life]
    reasons = [_reason(job, jobs, numbering) for job in of_rows]
    table["job_id"] = jobs.id[row].astype(str)
    table["workload_name"] = jobs.name
    table["user"], table["queue"] = jobs.user[row], jobs.queue[row]
    table["request"] = jobs.request[row] / MICRO
    more = {"start_kind": "str", "overtook": "str", "reserved_time": "float64"}
    for k, (name, kind) in enumerate(more.items()):
        table[name] = pd.Series([reason[k] for reason in reasons], index=table.index, dtype=kind)
    for r, name in enumerate(jobs.resources[1:], 1):
        table[name] = jobs.demand[row, r]
    if site is None:
        return table
    if by_life is not None and site.lives is not None:
        lives = site.lives
        row = np.array([lives.get(name, j) for name, j in zip(by_life, row.tolist(), strict=True)], np.int64)
        table["job_id"] = [site.jobs[k] for k in row.tolist()]
    return add_site_columns(table, row, site)


def _first_name(job: "DispatchedJob | None") -> str:
    """Return the name of the job that the life of a job on the platform belongs to."""
    repeated = getattr(job, "job", None)
    name: str = repeated.event.job_id if repeated is not None else getattr(job, "job_id", "")
    return name.partition("!")[2]


def _reason(job: "DispatchedJob | None", jobs: "Jobs", numbering: "Numbering") -> tuple[str, str, float]:
    """Return how a job started, which blocked job it overtook, and the first start it was promised, s."""

    if job is None or job.start < 0:
        return "", "", math.nan
    past = numbering(job.overtook)
    return (
        "speculative" if getattr(job, "speculative", False) else "backfilled" if job.backfilled else "head",
        "" if past is None else str(jobs.called(past)),
        job.promised / MICRO if job.promised >= 0 else math.nan,
    )


def _whole_lines(path: Path) -> bytes:
    """Cut off the line that a program did not live to finish; return what is left."""
    text = path.read_bytes() if path.exists() else b""
    whole = text[: text.rfind(b"\n") + 1]
    if whole != text:
        path.write_bytes(whole)
    return whole
