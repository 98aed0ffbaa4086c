"""From log records to the jobs that a protocol schedules: dropped, repaired, or kept, by a loading rule."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from bridge.errors import BridgeError
from bridge.workload.rules import LoadRule
from bridge.workload.swf_header import idle_power_of
from bridge.workload.table import STATUS_CANCELLED, SWF_COLUMNS, Reason, Tally, Workload, tally

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MICRO = 1_000_000
#: The last instant of a schedule, microseconds: two such numbers, and what is near them as floats, fit int64.
END = 4.6e18
#: Run time given to a cancelled job that is kept (the SchedGym family's repair), seconds.
CANCELLED_RUN = 10
_CANCELLED = "cancelled before it started"


@dataclass(frozen=True)
class Jobs:
    """Jobs to schedule, in order of submission. Times in microseconds.

    Attributes:
        name: the workload's name.
        id: [n] the log's ids.
        submit, run, request: [n] microseconds; `run` is what the machine will do.
        logged_run, logged_wait: [n] as logged, before any repair; negative = unknown.
        demand: [n, R] per resource.
        resources: R names, ``nodes`` first.
        capacity: [R].
        user, queue: [n] as logged, -1 = unknown.
        origin: microseconds that were subtracted from the log's submit times.
        tally: records dropped or repaired, by reason (reading and selection together).
        extra: further columns of numbers, each [n].
        idle_power: W that each node draws with or without a job, which no job's demand for power holds.

    Raises:
        BridgeError: a job can never run, or its times go beyond 64 bits; the error names the job and the
            resource or the field.
    """

    name: str
    id: Ints
    submit: Ints
    run: Ints
    request: Ints
    logged_run: Ints
    logged_wait: Ints
    demand: Ints
    resources: tuple[str, ...]
    capacity: Ints
    user: Ints
    queue: Ints
    origin: int
    tally: Tally = field(default_factory=dict)
    extra: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    idle_power: int = 0

    def __post_init__(self) -> None:
        impossible = self.demand > self.capacity
        if impossible.any():
            j, r = np.argwhere(impossible)[0]
            asked, there = self.demand[j, r], self.capacity[r]
            raise BridgeError(
                f"can never run: it asks for {asked} of {self.resources[r]!r}, the machine has {there}",
                where=f"{self.name}, job {self.id[j]}",
                remedy="Leave the job out, or give the machine more.",
            )
        if len(self.id):
            # Nothing ends later than if all jobs ran one after another behind the last submission.
            if float(self.submit.max()) + float(self.run.sum(dtype=np.float64)) > END:
                raise self.too_long("run", self.run)
            logged = self.submit + np.maximum(self.logged_wait, 0).astype(np.float64) + self.run
            if logged.max() > END:
                raise self.too_long("wait", self.logged_wait)

    def too_long(self, what: str, times: Ints) -> BridgeError:
        """Return the error for times [n] of which the longest leads beyond 64 bits; it names the job."""
        j = int(times.argmax())
        return BridgeError(
            f"with its {what} of {times[j] / MICRO:g} s, times go beyond 4.6e12 s (64 bits of microseconds)",
            where=f"{self.name}, job {self.id[j]}",
            remedy="Mend its record, or leave it out.",
        )

    def __len__(self) -> int:
        return len(self.id)

    def take(self, which: slice | Ints | Mask) -> "Jobs":
        """Return a part of the jobs; times are left as they are."""
        return replace(
            self,
            id=self.id[which],
            submit=self.submit[which],
            run=self.run[which],
            request=self.request[which],
            logged_run=self.logged_run[which],
            logged_wait=self.logged_wait[which],
            demand=self.demand[which],
            user=self.user[which],
            queue=self.queue[which],
            extra={k: v[which] for k, v in self.extra.items()},
        )


def _micro(column: "pd.Series[int] | pd.Series[float]") -> Ints:
    values = column.to_numpy()
    if values.dtype.kind == "f":
        return np.asarray(np.rint(values * MICRO), np.int64)
    return np.asarray(values, np.int64) * MICRO


def _number_column(workload: Workload, name: str) -> Ints:
    """Return a column of whole numbers, -1 if there is none: [n].

    Raises:
        BridgeError: a cell is no whole number (text, an empty cell, a fraction, beyond 64 bits).
    """
    table = workload.jobs
    if name not in table:
        return np.full(len(table), -1, np.int64)
    values = table[name].to_numpy()
    if values.dtype.kind != "i":
        whole = np.zeros(len(values), np.bool_)
        if values.dtype.kind in "uf":
            whole = (values == np.floor(values)) & (np.abs(values) < 2**63)
        if not whole.all():
            row = int(np.argmin(whole))
            raise BridgeError(
                f"its {name!r} is {str(values[row])!r}, which is no whole number",
                where=f"{workload.source or workload.name}: job {table['job_id'].iloc[row]}",
                remedy=f"Mend the column {name!r}: "
                + ("0 if the job needs none." if name in workload.capacity else "-1 if it is unknown."),
            )
    return np.asarray(values, np.int64)


def machine_capacity(workload: Workload, nodes: int | None = None) -> dict[str, int]:
    """Return the machine's capacities, `nodes` overriding the log's.

    Raises:
        BridgeError: neither the log nor the caller says how many nodes there are, or a capacity does
            not fit 64 bits.
    """
    capacity = dict(workload.capacity)
    if nodes is not None:
        capacity = {"nodes": nodes, **{k: v for k, v in capacity.items() if k != "nodes"}}
    if capacity.get("nodes", 0) <= 0:
        raise BridgeError(
            "the log does not say how many processors the machine has",
            where=workload.source or workload.name,
            remedy="Give --nodes N, or add a line '; MaxProcs: N' to the header.",
        )
    for name, amount in capacity.items():
        if not 0 <= amount < 2**63:
            raise BridgeError(
                f"its capacity of {name!r} is {amount}",
                where=workload.source or workload.name,
                remedy="A capacity is a whole number from 0 to 2^63 - 1.",
            )
    return {"nodes": capacity.pop("nodes"), **capacity}


def select(
    workload: Workload,
    rule: LoadRule,
    *,
    cancelled: Literal["drop", "keep"] | None = None,
    nodes: int | None = None,
    first: int | None = None,
    rebase: bool | None = None,
) -> Jobs:
    """Apply a loading rule to a workload.

    Args:
        workload: the records.
        rule: what to drop and repair.
        cancelled: overrides the rule for jobs that never ran.
        nodes: overrides the machine size.
        first: keep only the first N kept jobs.
        rebase: overrides whether submit times count from the first kept job.

    Raises:
        BridgeError: no machine size, a demand or an id is no whole number, or no job is left.
    """
    if cancelled is not None:
        rule = replace(rule, cancelled=cancelled == "keep")
    capacity = machine_capacity(workload, nodes)
    table = workload.jobs
    ids = _number_column(workload, "job_id")
    submit = _micro(table["submit"])
    run = _micro(table["run"])
    request = _micro(table["req_time"])
    logged_run = run
    requested, allocated = _number_column(workload, "req_procs"), _number_column(workload, "procs")
    alive = np.ones(len(ids), np.bool_)
    counted: dict[str, Reason] = dict(workload.tally)

    def drop(bad: Mask, why: str) -> None:
        bad = bad & alive
        counted.update(tally("dropped", why, ids[bad]))
        alive[bad] = False

    def note(found: Mask, why: str, kind: Literal["repaired", "noted"] = "repaired") -> None:
        counted.update(tally(kind, why, ids[found & alive]))

    if rule.request == "drop":
        drop(ids <= 0, "job id not positive")
    drop(submit < 0, "submitted before the log begins")
    never_ran = logged_run < 0
    if rule.cancelled:
        note(never_ran, f"never ran: run time set to {CANCELLED_RUN} s")
        run = np.where(never_ran, CANCELLED_RUN * MICRO, run)
    else:
        status = _number_column(workload, "status")
        gone = status == STATUS_CANCELLED
        drop(never_ran & gone, _CANCELLED)
        drop(never_ran, "no run time")
    if not rule.zero_run:
        drop(logged_run == 0, "ran for 0 s")

    missing = request <= 0
    if rule.request == "drop":
        drop(missing, "no requested time")
    elif rule.request == "run":
        note(missing, "no requested time: run time taken")
        request = np.where(missing, run, request)
    elif rule.request == "max":
        note(request < run, "requested time raised to the run time")
        request = np.maximum(request, run)
    else:
        request = run

    if rule.procs == "strict":
        procs = requested
    elif rule.procs == "largest":
        procs = np.maximum(requested, allocated)
    else:
        procs = np.where(requested > 0, requested, allocated)
        note((requested <= 0) & (allocated > 0), "no requested processors: allocated taken")
    drop(procs <= 0, "no processors")
    if rule.kill:
        over = run > request
        note(over, "ran past its request: killed there", "noted")
        run = np.minimum(run, request)

    names = ("nodes", *(k for k in capacity if k != "nodes"))
    demand = np.empty((len(ids), len(names)), np.int64)
    demand[:, 0] = procs
    for r, name in enumerate(names[1:], 1):
        demand[:, r] = np.maximum(_number_column(workload, name), 0)
    limits = np.array([capacity[name] for name in names], np.int64)
    for r, name in enumerate(names):
        large = (demand[:, r] > limits[r]) & alive
        if large.any():
            most = ("up to " if np.count_nonzero(large) > 1 else "") + str(demand[large, r].max())
            drop(large, f"larger than the machine ({name}: {most} asked, {limits[r]} there)")

    if rule.sort == "id":
        order = np.argsort(ids, kind="stable")
    elif rule.sort == "file":
        order = np.argsort(submit, kind="stable")
    else:
        order = np.lexsort((ids, submit))
    order = order[alive[order]]
    if first is not None:
        order = order[:first]
    if len(order) == 0:
        reasons = "; ".join(f"{r.count} {why}" for why, r in counted.items() if r.kind == "dropped")
        ran_not = _CANCELLED in counted
        raise BridgeError(
            f"no job is left under the loading rule {rule.name!r} ({reasons or 'the log is empty'})",
            where=workload.source or workload.name,
            remedy=f"Try another --protocol{', or --cancelled keep' * ran_not}; see `bridge workload info`.",
        )
    origin = int(submit[order].min()) if (rule.rebase if rebase is None else rebase) else 0
    others = [c for c in table.columns if c not in SWF_COLUMNS and c not in names]
    return Jobs(
        name=workload.name,
        id=ids[order],
        submit=submit[order] - origin,
        run=run[order],
        request=request[order],
        logged_run=logged_run[order],
        logged_wait=_micro(table["wait"])[order],
        demand=demand[order],
        resources=names,
        capacity=limits,
        user=_number_column(workload, "user")[order],
        queue=_number_column(workload, "queue")[order],
        origin=origin,
        tally=counted,
        extra={c: np.asarray(table[c], np.float64)[order] for c in others if table[c].dtype.kind in "if"},
        idle_power=idle_power_of(workload.header, workload.source or workload.name),
    )
