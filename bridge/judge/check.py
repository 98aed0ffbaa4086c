"""Verifies any schedule: capacity at every instant, times that add up, walltimes, hosts held by one job."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bridge.base.arrays import Flags, Floats, Ints
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.cluster.amounts_text import (
    NODE_AMOUNTS,
    NODE_RESOURCES,
    PER_NODE,
    UNKNOWN_NODES,
    read_amounts,
)
from bridge.judge.check_nodes import find_excess
from bridge.judge.check_record import check_listed_nodes, check_partitions
from bridge.judge.check_use import check_use
from bridge.judge.checked_schedule import CheckedSchedule, Violation
from bridge.judge.energy import PowerAudit
from bridge.judge.jobs import (
    FINAL_STATES,
    OUTCOME_COLUMNS,
    demand_column,
    is_killed_attempt,
    jobs_of,
    plain_ids,
)
from bridge.workload.resources import UNITS
from bridge.workload.table import Workload

if TYPE_CHECKING:
    from bridge.judge.hosts import HostAllocation

#: Every kind of violation; ``capacity`` and ``larger-than-machine`` are followed by ``:resource``.
KINDS: tuple[str, ...] = (
    "duplicate-job", "unknown-state", "rejected-but-started", "missing-value", "no-demand", "negative",
    "start-before-submit", "start-before-eligible", "finish-before-start", "execution-time", "waiting-time",
    "turnaround-time", "walltime", "larger-than-machine", "capacity", "allocation-unreadable",
    "allocation-size", "host-range", "host-overlap", "node-amount", "node-unknown", "node-partition",
    "partition-nodes", "power-budget", "not-in-workload", "workload-demand", "workload-submit",
    "workload-run",
)  # fmt: skip
#: Files round every time to 1 µs, so a sum of three of them may be off by this much, in s.
ROUNDING = 1.5e-6


@dataclass(frozen=True)
class CheckReport:
    """Result of a check.

    Attributes:
        jobs, started, rejected: how many jobs, those with a start and an end, those in state REJECTED.
        kinds: violations by kind, in the order of the rules; empty if the schedule is valid.
        first: the violation earliest in time, None if there is none.
        first_of_kind: the earliest of each kind.
        peak: the most in use at once, per resource.
        attempts: rows of attempts that were killed so that the job could run again; they are no jobs.
    """

    jobs: int
    started: int
    rejected: int
    kinds: dict[str, int]
    first: Violation | None
    peak: dict[str, float]
    capacity: dict[str, int]
    notes: tuple[str, ...] = ()
    attempts: int = 0
    first_of_kind: Mapping[str, Violation] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.first is None


def shared_use(jobs: pd.DataFrame) -> Flags:
    """Tell which rows are of jobs that share their nodes with others [n]."""
    if "shares_nodes" not in jobs:
        return np.zeros(len(jobs), np.bool_)
    return np.asarray(jobs["shares_nodes"].to_numpy() > 0, np.bool_)


def check_schedule(
    jobs: pd.DataFrame,
    capacity: dict[str, int],
    *,
    tolerance: float = 1e-6,
    ignore: Collection[str] = (),
    workload: Workload | None = None,
    power: PowerAudit | None = None,
    nodes: Mapping[str, str] | None = None,
    partitions: Mapping[str, int] | None = None,
    remarks: Sequence[str] = (),
) -> CheckReport:
    """Check ``jobs`` against every rule of docs/metrics.md, section "What a valid schedule is".

    Demands for resources of `capacity` other than ``nodes`` are columns of the resource's name. `tolerance`:
    how far times may be off, s. `ignore`: kinds of violation (see ``KINDS``) to leave out. `workload`: the
    log, to compare demands, submit times and run times with. `power`: what the machine drew, if that was
    simulated. `nodes`: what a record says of a cluster's nodes, see `bridge.cluster.amounts_text`;
    `partitions`: nodes of those whose jobs have whole nodes; `remarks`: notes of its own. Raises BridgeError:
    no capacity of ``nodes``, a resource without a column, no such kind, or no such tolerance.
    """
    _refuse_nonsense(jobs, capacity, tolerance, ignore)
    schedule = CheckedSchedule(jobs, tolerance, ignore)
    _check_rows(schedule)
    shares = shared_use(jobs)
    counted = {name: amount for name, amount in capacity.items() if name != "nodes" or not shares.any()}
    peak = {resource: _check_capacity(schedule, resource, amount) for resource, amount in counted.items()}
    if (jobs["allocated_resources"].fillna("") != "").any():
        _check_hosts(schedule, capacity["nodes"])
    check_listed_nodes(schedule)
    check_partitions(schedule, partitions or {})
    notes = _check_log(schedule, workload) if workload is not None else ()
    if shares.any() and not (nodes and PER_NODE in jobs):
        what = (
            "jobs share nodes, and the table does not tell what each has of them (a run's jobs.parquet does)"
        )
        notes = (*notes, f"{what}: cores and GPUs are checked all together, not node by node")
    elif shares.any() and nodes:
        _check_nodes(schedule, nodes)
    if power is not None and power.first_over is not None:
        schedule.add("power-budget", np.array([power.first_over]), lambda _: ([], power.finding))
    killed = is_killed_attempt(jobs)
    return CheckReport(
        jobs=int((~killed).sum()),
        started=int((schedule.timed & ~killed).sum()),
        rejected=int(schedule.rejected.sum()),
        kinds=schedule.kinds,
        first=schedule.first,
        peak=peak,
        capacity=counted,
        notes=(*remarks, *notes),
        attempts=int(killed.sum()),
        first_of_kind=schedule.first_of_kind,
    )


def _refuse_nonsense(
    jobs: pd.DataFrame, capacity: dict[str, int], tolerance: float, ignore: Collection[str]
) -> None:
    if not 0 <= tolerance < np.inf:
        what = "the tolerance must be a finite time, 0 s or more"
        remedy = "Leave kinds of violation out with --ignore."
        raise BridgeError(what, where=f"{tolerance:g}", remedy=remedy)
    if "nodes" not in capacity:
        raise BridgeError("the number of nodes of the machine is not given")
    for resource, amount in capacity.items():
        if amount < 0:
            raise BridgeError(f"the capacity of {resource} must be 0 or more", where=str(amount))
        if demand_column(resource) not in jobs.columns:
            what = f"the jobs table has no column {resource!r} with the demand for that resource"
            remedy = "Check the jobs.parquet of a run, which holds all demands, or leave the resource out."
            raise BridgeError(what, remedy=remedy)
    for kind in ignore:
        if kind.split(":")[0] not in KINDS:
            kinds_text = f"The kinds are {', '.join(KINDS)}."
            raise BridgeError(f"unknown kind of violation {kind!r}", remedy=kinds_text)


def _check_rows(schedule: CheckedSchedule) -> None:
    """Check everything that concerns one row at a time, and duplicates."""
    states, submit, start, end = schedule.states, schedule.submit, schedule.start, schedule.end
    rule, inexact, tolerance = schedule.rule, schedule.inexact, schedule.tolerance
    twice = schedule.frame.duplicated(["workload_name", "job_id"]).to_numpy()
    rule("duplicate-job", twice, "stands in the table more than once (again in row {row})")
    unknown = ~np.isin(states.astype(str), FINAL_STATES)
    rule("unknown-state", unknown, "has the unknown final_state {states!r}", states=states)
    undue = schedule.rejected & ~np.isnan(start)
    rule("rejected-but-started", undue, "is REJECTED but starts at {start:.6f}")

    needed = {name: schedule.column(name) for name in OUTCOME_COLUMNS if name != "stretch"}
    run, requested = needed["execution_time"], schedule.column("requested_time")
    blank = {name: ~np.isfinite(column) & ~schedule.rejected for name, column in needed.items()}
    blank["submission_time"] = ~np.isfinite(submit)
    missing = np.full(len(submit), "", object)
    for name, rows in blank.items():
        missing[rows] += f", {name}"
    some, named = np.any(list(blank.values()), axis=0), [text[2:] for text in missing]
    rule("missing-value", some, "({states}) has no number in {named}", states=states, named=named)
    demand = schedule.column("requested_number_of_resources")
    rule("no-demand", ~(demand > 0), "requests {demand:g} nodes", demand=demand)
    rule("negative", submit < -tolerance, "has the submission_time {submit:.6f}")
    rule("negative", run < -tolerance, "has the execution_time {run:.6f}", run=run)
    early, backwards = start < submit - tolerance - inexact, end < start - tolerance - inexact
    rule("start-before-submit", early, "starts at {start:.6f}, before its submit at {submit:.6f}")
    if "eligible_time" in schedule.frame:
        eligible = schedule.column("eligible_time")
        undue = ~early & (start < eligible - tolerance - inexact)
        rule_text = "starts at {start:.6f}, but it could not before {eligible:.6f}"
        rule("start-before-eligible", undue, rule_text, eligible=eligible)
    rule("finish-before-start", backwards, "finishes at {end:.6f}, before its start at {start:.6f}")
    waited = (start - submit, "start − submit")
    if {"eligible_time", "reason"} <= {*schedule.frame}:  # on a cluster a job waits since it is eligible
        waited = (np.maximum(start - schedule.column("eligible_time"), 0.0), "start − eligible")
    ran = (end - start, "finish − start")
    if len(schedule.pauses.row):
        waited = (waited[0] + schedule.stood, f"{waited[1]} + suspended")
        ran = (ran[0] - schedule.stood, f"{ran[1]} − suspended")
    if (progress := schedule.progress).any():  # of a job that was stopped, by its lives before
        waited = (waited[0] - progress, f"{waited[1]} − progress")
        ran = (ran[0] + progress, f"{ran[1]} + progress")
    for kind, expected, formula in (
        ("execution-time", *ran),
        ("waiting-time", *waited),
        ("turnaround-time", end - submit, "finish − submit"),
    ):
        name = kind.replace("-", "_")
        rule_text = f"has the {name} {{given:.6f}}, but {formula} = {{expected:.6f}}"
        off = np.abs(needed[name] - expected) > tolerance + ROUNDING + inexact
        rule(kind, off, rule_text, given=needed[name], expected=expected)
    rule_text = "runs {run:.6f} s, longer than its requested time of {requested:.6f} s"
    long = (requested > 0) & (run > requested + tolerance)
    rule("walltime", long, rule_text, run=run, requested=requested)


def _check_capacity(schedule: CheckedSchedule, resource: str, amount: int) -> float:
    column = schedule.frame[demand_column(resource)]
    demand = column.to_numpy(np.int64 if column.dtype.kind in "iu" else np.float64)
    limit = amount if demand.dtype.kind == "i" else amount * (1 + 1e-12)
    unit = UNITS.get(resource, resource)
    text = f"uses {{demand:.15g}} {unit}, the machine has {amount}"
    schedule.rule(f"larger-than-machine:{resource}", schedule.timed & (demand > limit), text, demand=demand)
    return check_use(schedule, f"capacity:{resource}", demand, amount, limit, unit)


def _check_hosts(schedule: CheckedSchedule, nodes: int) -> None:
    """Check ``allocated_resources`` wherever it is given, on a machine with hosts 0 … nodes − 1."""
    from bridge.judge.hosts import HostAllocation, overlaps, parse  # compiles kernels

    texts = schedule.frame["allocated_resources"].fillna("")
    allocation, unreadable = parse(texts)
    counts = np.diff(allocation.offsets)
    owner = np.repeat(np.arange(len(texts)), counts)
    hosts = np.bincount(owner, allocation.last - allocation.first + 1, minlength=len(texts)).astype(np.int64)
    demand = schedule.column("requested_number_of_resources")

    rule_text = "has allocated_resources {given}: "
    texts_given = [repr(text if len(text) <= 40 else text[:39] + "…") for text in map(str, texts)]
    wrong = (counts > 0) & schedule.timed & (hosts != demand)
    if UNKNOWN_NODES in schedule.frame:  # which have no number
        wrong &= (schedule.frame[UNKNOWN_NODES].fillna("") == "").to_numpy()
    beyond = np.zeros(len(texts), np.bool_)
    beyond[owner[allocation.last >= nodes]] = True
    for kind, broken, what in (
        ("allocation-unreadable", unreadable, "not intervals such as '0-3 7'"),
        ("allocation-size", wrong, "{hosts} hosts, requested {demand:g}"),
        ("host-range", beyond, f"the hosts are 0 … {nodes - 1}"),
    ):
        schedule.rule(kind, broken, rule_text + what, given=texts_given, hosts=hosts, demand=demand)
    if beyond.any():  # hosts that do not exist are not held
        keep = ~beyond[owner]
        offsets = np.concatenate(([0], np.cumsum(np.where(beyond, 0, counts))))
        allocation = HostAllocation(allocation.first[keep], allocation.last[keep], offsets)
    pieces = schedule.pieces
    if len(schedule.pauses.row):  # what is suspended leaves its hosts to others
        allocation = _allocation_of_rows(allocation, pieces.row)
    end = np.where(schedule.timed[pieces.row], pieces.end, np.nan)
    rows, holders, clash = overlaps(
        allocation, pieces.start, end - schedule.inexact[pieces.row], schedule.tolerance
    )
    until = end[holders]
    rows, holders = pieces.row[rows], pieces.row[holders]
    shares = shared_use(schedule.frame)
    alone = ~(shares[rows] & shares[holders])
    rows, holders, clash, until = rows[alone], holders[alone], clash[alone], until[alone]

    def describe(k: int) -> tuple[list[str], str]:
        job, holder = schedule.ids[rows[k]], schedule.ids[holders[k]]
        text = f"job {job} starts on host {clash[k]}, which job {holder} holds until {until[k]:.6f}"
        return [job, holder], text

    schedule.add("host-overlap", schedule.start[rows], describe)


def _allocation_of_rows(allocation: "HostAllocation", rows: Ints) -> "HostAllocation":
    """Return the hosts of some rows, each as often as it stands there."""
    from bridge.judge.hosts import HostAllocation

    parts = [np.arange(allocation.offsets[row], allocation.offsets[row + 1]) for row in rows.tolist()]
    which = np.concatenate([np.zeros(0, np.int64), *parts])
    offsets = np.cumsum([0, *map(len, parts)])
    return HostAllocation(allocation.first[which], allocation.last[which], offsets)


def _check_nodes(schedule: CheckedSchedule, record: Mapping[str, str]) -> None:
    """Check what jobs have of each node that they share, by a record of what the nodes have."""
    has = read_amounts(record[NODE_AMOUNTS], NODE_AMOUNTS)
    names = record[NODE_RESOURCES].split()
    rows, start, end = (np.concatenate(both) for both in zip(schedule.pieces, schedule.pauses, strict=True))
    is_suspended = np.arange(len(rows)) >= len(schedule.pieces.row)
    end = np.where(schedule.timed[rows], end - schedule.tolerance - schedule.inexact[rows], np.nan)
    excess = find_excess(schedule.frame.iloc[rows], start, end, has, is_suspended)

    def describe(k: int) -> tuple[list[str], str]:
        job, name = schedule.ids[rows[excess.rows[k]]], names[excess.resources[k]]
        text = f"{excess.used[k]} of {excess.capacity[k]} {name} of node {excess.nodes[k]} in use"
        return [job], f"{text} when job {job} starts"

    schedule.add("node-amount", start[excess.rows], describe)


def _check_log(schedule: CheckedSchedule, workload: Workload) -> tuple[str, ...]:
    """Compare with ``workload``; return remarks that are no violations.

    The demand must be the requested or the allocated one; submits may differ by one common shift; a run
    time must be the logged one or, if shorter, the requested one. Jobs that failed or were killed by the
    scheduler may run for any time. Fields that the log does not know (−1) are not compared.
    """
    log = workload.jobs
    index, ids = plain_ids(log["job_id"].astype(str), jobs_of(schedule.frame))
    unique = np.flatnonzero(~index.duplicated())  # of records with one id the first counts
    at = index[unique].get_indexer(ids)
    matched, rows = at >= 0, unique[at]
    where = f"the workload {workload.name}"
    schedule.rule("not-in-workload", ~matched, "is not in {where}", where=where)
    if not matched.any():
        return ()

    def logged(name: str) -> Floats:
        return np.where(matched, log[name].to_numpy(np.float64)[rows], np.nan)

    slack = schedule.tolerance + ROUNDING
    demand, requested, allocated = (
        schedule.column("requested_number_of_resources"),
        logged("req_procs"),
        logged("procs"),
    )
    text = "requests {demand:g} nodes; {where} says {asked:g}, allocated {given:g}"
    wrong = matched & (demand != requested) & (demand != allocated)
    schedule.rule(
        "workload-demand", wrong, text, where=where, demand=demand, asked=requested, given=allocated
    )
    # The schedule counts from its first job, the log from wherever it likes.
    first = int(np.argmin(np.where(matched, schedule.submit, np.inf)))
    due = logged("submit") - (logged("submit")[first] - schedule.submit[first])
    inexact = schedule.inexact + 2 * np.spacing(np.nan_to_num(np.abs(logged("submit"))))
    wrong = matched & (np.abs(due - schedule.submit) > slack + inexact)
    text = "is submitted at {submit:.6f}; {where} says {due:.6f} after the shift"
    schedule.rule("workload-submit", wrong, text, where=where, due=due)
    run, limit, lasted = logged("run"), logged("req_time"), schedule.column("execution_time")
    cut = np.where(limit > 0, np.minimum(run, limit), run)
    whole = matched & np.isin(schedule.states.astype(str), FINAL_STATES[:2]) & (run >= 0)
    wrong = whole & (np.abs(lasted - run) > slack) & (np.abs(lasted - cut) > slack)
    text = "runs {lasted:.6f} s; {where} says {run:g} s, requested {limit:g} s"
    schedule.rule("workload-run", wrong, text, where=where, lasted=lasted, run=run, limit=limit)
    absent = len(log) - len(np.unique(rows[matched]))
    return (
        (f"{absent:,} of {counted(len(log), 'record')} of {where} are not in the schedule",) if absent else ()
    )
