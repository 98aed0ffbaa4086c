"""Verifies any schedule: capacity at every instant, times that add up, walltimes, hosts held by one job."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bridge.errors import BridgeError
from bridge.judge.findings import ROUNDING, Findings, Table, Violation
from bridge.judge.jobs import FINAL_STATES, OUTCOME_COLUMNS, attempts, demand_column

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
        from bridge.judge.check_hosts import check_hosts  # compiles a kernel

        check_hosts(table, found, capacity["nodes"], tolerance)
    notes: tuple[str, ...] = ()
    if workload is not None:
        from bridge.judge.check_log import check_log

        notes = check_log(table, found, workload, tolerance)
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
    twice = table.frame.duplicated(["workload_name", "job_id"]).to_numpy()
    found.rule(
        table, "duplicate-job", twice, lambda row: f"stands in the table more than once (again in row {row})"
    )
    unknown = ~np.isin(states.astype(str), FINAL_STATES)
    found.rule(table, "unknown-state", unknown, lambda row: f"has the unknown final_state {states[row]!r}")
    undue = table.rejected & ~np.isnan(start)
    found.rule(
        table, "rejected-but-started", undue, lambda row: f"is REJECTED but starts at {start[row]:.6f}"
    )

    needed = {name: table.column(name) for name in OUTCOME_COLUMNS if name != "stretch"}
    blank = ~table.rejected & ~np.all([np.isfinite(column) for column in needed.values()], axis=0)
    needed["submission_time"] = submit
    blank |= ~np.isfinite(submit)
    found.rule(
        table,
        "missing-value",
        blank,
        lambda row: (
            f"({states[row]}) has no number in "
            + ", ".join(name for name, column in needed.items() if not np.isfinite(column[row]))
        ),
    )
    demand = table.column("requested_number_of_resources")
    found.rule(table, "no-demand", ~(demand > 0), lambda row: f"requests {demand[row]:g} nodes")
    run, wait, turnaround = needed["execution_time"], needed["waiting_time"], needed["turnaround_time"]
    found.rule(
        table, "negative", submit < -tolerance, lambda row: f"has the submission_time {submit[row]:.6f}"
    )
    found.rule(table, "negative", run < -tolerance, lambda row: f"has the execution_time {run[row]:.6f}")
    found.rule(
        table,
        "start-before-submit",
        start < submit - tolerance - table.inexact,
        lambda row: f"starts at {start[row]:.6f}, before its submit at {submit[row]:.6f}",
    )
    found.rule(
        table,
        "finish-before-start",
        end < start - tolerance - table.inexact,
        lambda row: f"finishes at {end[row]:.6f}, before its start at {start[row]:.6f}",
    )
    loose = tolerance + ROUNDING + table.inexact
    for kind, given, expected, formula in (
        ("execution-time", run, end - start, "finish − start"),
        ("waiting-time", wait, start - submit, "start − submit"),
        ("turnaround-time", turnaround, end - submit, "finish − submit"),
    ):
        found.rule(
            table,
            kind,
            np.abs(given - expected) > loose,
            lambda row, k=kind, g=given, e=expected, f=formula: (  # type: ignore[misc]
                f"has the {k.replace('-', '_')} {g[row]:.6f}, but {f} = {e[row]:.6f}"
            ),
        )
    requested = table.column("requested_time")
    found.rule(
        table,
        "walltime",
        (requested > 0) & (run > requested + tolerance),
        lambda row: f"runs {run[row]:.6f} s, longer than its requested time of {requested[row]:.6f} s",
    )


def _check_capacity(table: Table, found: Findings, resource: str, amount: int, tolerance: float) -> float:
    """Sweep starts and releases (releases first); return the peak use of ``resource``."""
    column = table.frame[demand_column(resource)]
    demand = column.to_numpy(np.int64 if column.dtype.kind in "iu" else np.float64)
    limit = amount if demand.dtype.kind == "i" else amount * (1 + 1e-12)
    unit = UNITS.get(resource, resource)
    found.rule(
        table,
        f"larger-than-machine:{resource}",
        table.timed & (demand > limit),
        lambda row: f"uses {demand[row]:.15g} {unit}, the machine has {amount}",
    )
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
