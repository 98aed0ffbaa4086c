"""Verifies any schedule: capacity at every instant, times that add up, walltimes, hosts held by one job."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.errors import BridgeError
from bridge.judge.findings import ROUNDING, Bools, Findings, Floats, Table, Violation
from bridge.judge.jobs import FINAL_STATES, OUTCOME_COLUMNS, attempts, demand_column, jobs_of, plain_ids

if TYPE_CHECKING:
    import pandas as pd

    from bridge.judge.power import Audit
    from bridge.workload.table import Workload

#: Every kind of violation; ``capacity`` and ``larger-than-machine`` are followed by ``:resource``.
KINDS: tuple[str, ...] = (
    "duplicate-job",
    "unknown-state",
    "rejected-but-started",
    "missing-value",
    "no-demand",
    "negative",
    "start-before-submit",
    "finish-before-start",
    "execution-time",
    "waiting-time",
    "turnaround-time",
    "walltime",
    "larger-than-machine",
    "capacity",
    "allocation-unreadable",
    "allocation-size",
    "host-range",
    "host-overlap",
    "power-budget",
    "not-in-workload",
    "workload-demand",
    "workload-submit",
    "workload-run",
)
UNITS = {"nodes": "nodes", "burst_buffer": "bytes", "power": "W"}
#: How many running jobs a violation of the capacity names.
NAMED = 8


@dataclass(frozen=True)
class Verdict:
    """What a check found.

    Attributes:
        jobs, started, rejected: how many jobs, those with a start and an end, those in state REJECTED.
        kinds: violations by kind, in the order of the rules; empty if the schedule is valid.
        first: the violation earliest in time, None if there is none.
        peak: the most in use at once, per resource.
        capacity: what it was checked against.
        notes: remarks that are no violations.
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

    @property
    def ok(self) -> bool:
        """Whether no rule is broken."""
        return self.first is None


def check_schedule(
    jobs: "pd.DataFrame",
    capacity: dict[str, int],
    *,
    tolerance: float = 1e-6,
    ignore: Collection[str] = (),
    workload: "Workload | None" = None,
    power: "Audit | None" = None,
) -> Verdict:
    """Check ``jobs`` against every rule of docs/metrics.md, section "What a valid schedule is".

    Args:
        jobs: jobs table. Demands for resources other than ``nodes`` are columns of the resource's name.
        capacity: capacity per resource, ``nodes`` among them.
        tolerance: how far times may be off, in s.
        ignore: kinds of violation (see ``KINDS``) to leave out.
        workload: the log that was scheduled, to compare demands, submit times and run times with.
        power: what the machine drew, if that was simulated.

    Raises:
        BridgeError: no capacity of ``nodes``, a resource without a column, a kind that does not exist,
            or a tolerance that is negative or not finite.
    """
    _refuse_nonsense(jobs, capacity, tolerance, ignore)
    table = Table(jobs)
    found = Findings(ignore)
    _check_rows(table, found, tolerance)
    peak = {
        resource: _check_capacity(table, found, resource, amount, tolerance)
        for resource, amount in capacity.items()
    }
    if (jobs["allocated_resources"].fillna("") != "").any():
        _check_hosts(table, found, capacity["nodes"], tolerance)
    notes: tuple[str, ...] = ()
    if workload is not None:
        notes = _check_log(table, found, workload, tolerance)
    if power is not None and power.first_over is not None:
        sentence = power.finding
        found.add("power-budget", np.array([power.first_over]), lambda _: ([], sentence))
    killed = attempts(jobs)
    return Verdict(
        jobs=int((~killed).sum()),
        started=int((table.timed & ~killed).sum()),
        rejected=int(table.rejected.sum()),
        kinds=found.kinds,
        first=found.first,
        peak=peak,
        capacity=dict(capacity),
        notes=notes,
        attempts=int(killed.sum()),
    )


def _refuse_nonsense(
    jobs: "pd.DataFrame", capacity: dict[str, int], tolerance: float, ignore: Collection[str]
) -> None:
    if not 0 <= tolerance < np.inf:
        raise BridgeError(
            "the tolerance must be a finite time, 0 s or more",
            where=f"{tolerance:g}",
            remedy="Leave kinds of violation out with --ignore.",
        )
    if "nodes" not in capacity:
        raise BridgeError("the number of nodes of the machine is not given")
    for resource, amount in capacity.items():
        if amount < 0:
            raise BridgeError(f"the capacity of {resource} must be 0 or more", where=str(amount))
        if demand_column(resource) not in jobs.columns:
            raise BridgeError(
                f"the jobs table has no column {resource!r} with the demand for that resource",
                remedy="Check the jobs.parquet of a run, which holds all demands, or leave the resource out.",
            )
    for kind in ignore:
        if kind.split(":")[0] not in KINDS:
            raise BridgeError(
                f"unknown kind of violation {kind!r}", remedy="The kinds are " + ", ".join(KINDS) + "."
            )


def _check_rows(table: Table, found: Findings, tolerance: float) -> None:
    """Check everything that concerns one row at a time, and duplicates."""
    states, submit, start, end = table.states, table.submit, table.start, table.end
    inexact = table.inexact

    def rule(kind: str, broken: Bools, said: str, **columns: Any) -> None:
        found.rule(table, kind, broken, said, **columns)

    twice = table.frame.duplicated(["workload_name", "job_id"]).to_numpy()
    rule("duplicate-job", twice, "stands in the table more than once (again in row {row})")
    unknown = ~np.isin(states.astype(str), FINAL_STATES)
    rule("unknown-state", unknown, "has the unknown final_state {states!r}", states=states)
    undue = table.rejected & ~np.isnan(start)
    rule("rejected-but-started", undue, "is REJECTED but starts at {start:.6f}")

    needed = {name: table.column(name) for name in OUTCOME_COLUMNS if name != "stretch"}
    run, requested = needed["execution_time"], table.column("requested_time")
    blank = {name: ~np.isfinite(column) & ~table.rejected for name, column in needed.items()}
    blank["submission_time"] = ~np.isfinite(submit)
    missing = np.full(len(submit), "", object)
    for name, rows in blank.items():
        missing[rows] += f", {name}"
    some, named = np.any(list(blank.values()), axis=0), [text[2:] for text in missing]
    rule("missing-value", some, "({states}) has no number in {named}", states=states, named=named)
    demand = table.column("requested_number_of_resources")
    rule("no-demand", ~(demand > 0), "requests {demand:g} nodes", demand=demand)
    rule("negative", submit < -tolerance, "has the submission_time {submit:.6f}")
    rule("negative", run < -tolerance, "has the execution_time {run:.6f}", run=run)
    early, backwards = start < submit - tolerance - inexact, end < start - tolerance - inexact
    rule("start-before-submit", early, "starts at {start:.6f}, before its submit at {submit:.6f}")
    rule("finish-before-start", backwards, "finishes at {end:.6f}, before its start at {start:.6f}")
    for kind, expected, formula in (
        ("execution-time", end - start, "finish − start"),
        ("waiting-time", start - submit, "start − submit"),
        ("turnaround-time", end - submit, "finish − submit"),
    ):
        name = kind.replace("-", "_")
        said = f"has the {name} {{given:.6f}}, but {formula} = {{expected:.6f}}"
        off = np.abs(needed[name] - expected) > tolerance + ROUNDING + inexact
        rule(kind, off, said, given=needed[name], expected=expected)
    said = "runs {run:.6f} s, longer than its requested time of {requested:.6f} s"
    long = (requested > 0) & (run > requested + tolerance)
    rule("walltime", long, said, run=run, requested=requested)


def _check_capacity(table: Table, found: Findings, resource: str, amount: int, tolerance: float) -> float:
    """Sweep starts and releases (releases first); return the peak use of ``resource``."""
    column = table.frame[demand_column(resource)]
    demand = column.to_numpy(np.int64 if column.dtype.kind in "iu" else np.float64)
    limit = amount if demand.dtype.kind == "i" else amount * (1 + 1e-12)
    unit = UNITS.get(resource, resource)
    said = f"uses {{demand:.15g}} {unit}, the machine has {amount}"
    found.rule(table, f"larger-than-machine:{resource}", table.timed & (demand > limit), said, demand=demand)
    # A start may be early by the tolerance. A job without length uses nothing.
    release = table.end - tolerance - table.inexact
    rows = np.flatnonzero(table.timed & (release > table.start) & (demand > 0))
    count = len(rows)
    if count == 0:
        return 0.0
    times = np.concatenate((table.start[rows], release[rows]))
    order = np.lexsort((np.repeat([1, 0], count), times))
    used = np.cumsum(np.concatenate((demand[rows], -demand[rows]))[order])
    over = np.flatnonzero((used > limit) & (order < count))

    def describe(k: int) -> tuple[list[str], str]:
        before = order[: over[k]]
        row, now = rows[order[over[k]]], times[order[over[k]]]
        begun = rows[before[before < count]]
        others = begun[release[begun] > now]
        others = others[np.argsort(-demand[others], kind="stable")]
        named = ", ".join(f"{table.ids[r]} ({demand[r]:.15g})" for r in others[:NAMED])
        more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
        text = f"{used[over[k]]:.15g} of {amount} {unit} in use"
        text += f" when job {table.ids[row]} ({demand[row]:.15g}) starts"
        return [table.ids[r] for r in (row, *others)], text + (f"; running: {named}{more}" if named else "")

    found.add(f"capacity:{resource}", times[order[over]], describe)
    return float(used.max())


def _check_hosts(table: Table, found: Findings, nodes: int, tolerance: float) -> None:
    """Check ``allocated_resources`` wherever it is given, on a machine with hosts 0 … nodes − 1."""
    from bridge.judge.allocate import Allocation  # compiles a kernel
    from bridge.judge.hosts import overlaps, parse

    texts = table.frame["allocated_resources"].fillna("")
    allocation, unreadable = parse(texts)
    counts = np.diff(allocation.offsets)
    owner = np.repeat(np.arange(len(texts)), counts)
    hosts = np.bincount(owner, allocation.last - allocation.first + 1, minlength=len(texts)).astype(np.int64)
    demand = table.column("requested_number_of_resources")

    said = "has allocated_resources {given}: "
    given = [repr(text if len(text) <= 40 else text[:39] + "…") for text in map(str, texts)]
    wrong = (counts > 0) & table.timed & (hosts != demand)
    beyond = np.zeros(len(texts), np.bool_)
    beyond[owner[allocation.last >= nodes]] = True
    found.rule(
        table, "allocation-unreadable", unreadable, said + "not intervals such as '0-3 7'", given=given
    )
    sizes = {"hosts": hosts, "demand": demand}
    found.rule(
        table, "allocation-size", wrong, said + "{hosts} hosts, requested {demand:g}", given=given, **sizes
    )
    found.rule(table, "host-range", beyond, said + f"the hosts are 0 … {nodes - 1}", given=given)
    if beyond.any():  # hosts that do not exist are not held
        keep = ~beyond[owner]
        offsets = np.concatenate(([0], np.cumsum(np.where(beyond, 0, counts))))
        allocation = Allocation(allocation.first[keep], allocation.last[keep], offsets)
    end = np.where(table.timed, table.end, np.nan)
    rows, holders, clash = overlaps(allocation, table.start, end - table.inexact, tolerance)

    def describe(k: int) -> tuple[list[str], str]:
        job, holder = table.ids[rows[k]], table.ids[holders[k]]
        text = f"job {job} starts on host {clash[k]}, which job {holder} holds until {end[holders[k]]:.6f}"
        return [job, holder], text

    found.add("host-overlap", table.start[rows], describe)


def _check_log(table: Table, found: Findings, workload: "Workload", tolerance: float) -> tuple[str, ...]:
    """Compare with ``workload``; return remarks that are no violations.

    The demand must be the requested or the allocated one; submits may differ by one common shift; a run
    time must be the logged one or, if shorter, the requested one. Jobs that failed or were killed by the
    scheduler may run for any time. Fields that the log does not know (−1) are not compared.
    """
    log = workload.jobs
    rows = _rows_of(jobs_of(table.frame), log)
    matched = rows >= 0
    where = f"the workload {workload.name}"
    found.rule(table, "not-in-workload", ~matched, "is not in {where}", where=where)
    if not matched.any():
        return ()

    def logged(name: str) -> Floats:
        return np.where(matched, log[name].to_numpy(np.float64)[rows], np.nan)

    slack = tolerance + ROUNDING
    demand, asked, given = table.column("requested_number_of_resources"), logged("req_procs"), logged("procs")
    said = "requests {demand:g} nodes; {where} says {asked:g}, allocated {given:g}"
    wrong = matched & (demand != asked) & (demand != given)
    found.rule(table, "workload-demand", wrong, said, where=where, demand=demand, asked=asked, given=given)
    # The schedule counts from its first job, the log from wherever it likes.
    first = int(np.argmin(np.where(matched, table.submit, np.inf)))
    due = logged("submit") - (logged("submit")[first] - table.submit[first])
    inexact = table.inexact + 2 * np.spacing(np.nan_to_num(np.abs(logged("submit"))))
    wrong = matched & (np.abs(due - table.submit) > slack + inexact)
    said = "is submitted at {submit:.6f}; {where} says {due:.6f} after the shift"
    found.rule(table, "workload-submit", wrong, said, where=where, due=due)
    run, limit, lasted = logged("run"), logged("req_time"), table.column("execution_time")
    cut = np.where(limit > 0, np.minimum(run, limit), run)
    whole = matched & np.isin(table.states.astype(str), FINAL_STATES[:2]) & (run >= 0)
    wrong = whole & (np.abs(lasted - run) > slack) & (np.abs(lasted - cut) > slack)
    said = "runs {lasted:.6f} s; {where} says {run:g} s, requested {limit:g} s"
    found.rule(table, "workload-run", wrong, said, where=where, lasted=lasted, run=run, limit=limit)
    absent = len(log) - len(np.unique(rows[matched]))
    return (f"{absent} of {len(log)} records of {where} are not in the schedule",) if absent else ()


def _rows_of(ids: "pd.Series[str]", log: "pd.DataFrame") -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return each id's row in the log, −1 if it has none; of rows with one id the first counts."""
    index = plain_ids(log["job_id"].astype(str))
    unique = ~index.duplicated()
    at = index[unique].get_indexer(plain_ids(ids))
    return np.where(at >= 0, np.flatnonzero(unique)[at], -1)
