"""From log records to the jobs that a protocol schedules: dropped, repaired, or kept, by a loading rule."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from bridge.base.arrays import Flags, Floats, Ints
from bridge.base.errors import BridgeError
from bridge.cluster.description import Cluster
from bridge.cluster.node_table import build_node_table
from bridge.workload.following import NONE, leaders, refuse_circles
from bridge.workload.ids import ranks
from bridge.workload.ignored import note_ignored
from bridge.workload.ran_on import RAN_ON
from bridge.workload.requests import (
    JobRequests,
    Texts,
    heeded_columns,
    read_requests,
    read_texts,
    with_default_times,
)
from bridge.workload.resources import idle_power_of
from bridge.workload.rules import LoadRule
from bridge.workload.table import LONGEST, STATUS_CANCELLED, SWF_COLUMNS, Tally, Workload, submitted, tally

#: Ids of jobs: int64, or objects that are texts.
Ids = npt.NDArray[Any]

MICRO = 1_000_000
#: The last instant of a schedule, microseconds: two such numbers, and what is near them as floats, fit int64.
END = 4.6e18
#: Run time given to a cancelled job that is kept (the SchedGym family's repair), seconds.
CANCELLED_RUN = 10
#: What is noted of a job that is killed at its request.
CUT = "ran past its request: killed there"
_CANCELLED = "cancelled before it started"
#: The fields of `Jobs` that are arrays of one value, or one row, per job.
_PER_JOB = ("id", "submit", "run", "request", "logged_run", "logged_wait", "demand", "user", "queue")


@dataclass(frozen=True)
class Jobs:
    """Jobs to schedule, in order of submission. Times in microseconds.

    Attributes:
        id: [n] the log's ids: whole numbers, or texts.
        submit, run, request: [n] microseconds; `run` is what the machine will do.
        logged_run, logged_wait: [n] as logged, before any repair; negative = unknown.
        demand: [n, R] per resource.
        resources: R names, ``nodes`` first.
        capacity: [R].
        user, queue: [n] as logged, -1 = unknown.
        origin: microseconds that were subtracted from the log's submit times.
        tally: records dropped or repaired, by reason (reading and selection together), and what the log says
            that no scheduler looks at.
        extra: further columns of numbers, each [n].
        idle_power: W that each node draws with or without a job, which no job's demand for power holds.
        follows: [n] the job whose end its submission waits for, by its place here, -1 = none; None if no job
            waits so.
        think: [n] microseconds from that end to the submission; negative = unknown, see
            `bridge.workload.following`.
        cluster: the site's nodes, partitions and rules; None = one pool of equal nodes.
        requests: what the jobs ask of the cluster [n], on the jobs' clock; None without one.
        ran_on: the nodes that the log says they ran on, see `bridge.workload.ran_on`; None without a cluster,
            or if the log says it of no job.

    Raises BridgeError: a job can never run, or its times go beyond 64 bits; the error names the job and the
    resource or the field.
    """

    name: str
    id: Ids
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
    extra: Mapping[str, Floats] = field(default_factory=dict)
    idle_power: int = 0
    follows: Ints | None = None
    think: Ints | None = None
    cluster: Cluster | None = None
    requests: JobRequests | None = None
    ran_on: Texts | None = None

    def __post_init__(self) -> None:
        impossible = self.demand > self.capacity
        if impossible.any() and self.cluster is None:  # else its rules refuse such a job, and say why
            j, r = np.argwhere(impossible)[0]
            what = f"can never run: it asks for {self.demand[j, r]} of {self.resources[r]!r}, "
            what += f"the machine has {self.capacity[r]}"
            remedy = "Leave the job out, or give the machine more."
            raise BridgeError(what, where=f"{self.name}, job {self.id[j]}", remedy=remedy)
        if len(self.id):
            # Nothing ends later than if all jobs ran one after another behind the last submission.
            logged = self.submit + np.maximum(self.logged_wait, 0).astype(np.float64) + self.run
            last = float(self.submit.max()) + float(self.run.sum(dtype=np.float64))
            if self.think is not None:
                last += float(np.maximum(self.think, 0).sum(dtype=np.float64))
                if last > END:
                    raise self.too_long("think time", self.think)
            for what, times, end in (("run", self.run, last), ("wait", self.logged_wait, logged.max())):
                if end > END:
                    raise self.too_long(what, times)

    def too_long(self, what: str, times: Ints) -> BridgeError:
        """Return the error for times [n] of which the longest leads beyond 64 bits; it names the job."""
        j = int(times.argmax())
        what = f"with its {what} of {times[j] / MICRO:g} s, times go beyond 4.6e12 s"
        where, remedy = f"{self.name}, job {self.id[j]}", "Mend its record, or leave it out."
        return BridgeError(f"{what} (64 bits of microseconds)", where=where, remedy=remedy)

    def __len__(self) -> int:
        return len(self.id)

    @cached_property
    def number(self) -> Ints:
        """What schedulers call the jobs [n]: their ids, or 1, 2, … in this order where those are texts."""
        ids = self.id
        return ids if ids.dtype.kind == "i" else np.arange(1, len(ids) + 1)

    def called(self, number: int) -> int | str:
        """Return the id of the job that schedulers call by this number."""
        return number if self.id.dtype.kind == "i" else self.id[number - 1]

    def take(self, which: slice | Ints | Flags) -> "Jobs":
        parts: dict[str, Any] = {name: getattr(self, name)[which] for name in _PER_JOB}
        if self.follows is not None and self.think is not None:
            place = np.full(len(self) + 1, NONE, np.int64)  # the last is for nobody
            taken = np.arange(len(self))[which]
            place[taken] = np.arange(len(taken))
            parts |= {"follows": place[self.follows[which]], "think": self.think[which]}
        if self.requests is not None:
            parts["requests"] = self.requests.take(which)
        if self.ran_on is not None:
            parts["ran_on"] = self.ran_on.take(which)
        return replace(self, **parts, extra={name: values[which] for name, values in self.extra.items()})


def _micro(column: "pd.Series[int] | pd.Series[float]") -> Ints:
    values = column.to_numpy()
    if values.dtype.kind == "f":
        return np.asarray(np.rint(values * MICRO), np.int64)
    return np.asarray(values, np.int64) * MICRO


def _number_column(workload: Workload, name: str) -> Ints:
    """Return a column of whole numbers of 64 bits (else BridgeError), -1 if there is none: [n]."""
    table = workload.jobs
    if name not in table:
        return np.full(len(table), -1, np.int64)
    values = table[name].to_numpy()
    whole = np.full(len(values), values.dtype.kind == "i")
    if values.dtype.kind in "uf":
        whole = (values == np.floor(values)) & (np.abs(values) < 2**63)
    if not whole.all():
        row = int(np.argmin(whole))
        unknown = "0 if the job needs none" if name in workload.capacity else "-1 if it is unknown"
        what = f"its {name!r} is {str(values[row])!r}, which is no whole number"
        where = f"{workload.where}: job {table['job_id'].iloc[row]}"
        raise BridgeError(what, where=where, remedy=f"Mend the column {name!r}: {unknown}.")
    return np.asarray(values, np.int64)


def machine_capacity(workload: Workload, nodes: int | None = None) -> dict[str, int]:
    """Return the machine's capacities, `nodes` overriding the log's; BridgeError: nobody says how many."""
    capacity = {"nodes": 0, **workload.capacity} | ({} if nodes is None else {"nodes": nodes})
    if capacity["nodes"] <= 0:
        what = "the log does not say how many processors the machine has"
        line = "'; MaxProcs: N' (CSV: '# capacity: nodes=N')"
        remedy = f"Give --nodes N where a command has it, or add a line {line} to the log's header."
        raise BridgeError(what, where=workload.where, remedy=remedy)
    for name, amount in capacity.items():
        if not 0 <= amount < 2**63:
            remedy = "A capacity is a whole number from 0 to 2^63 - 1."
            raise BridgeError(f"its capacity of {name!r} is {amount}", where=workload.where, remedy=remedy)
    return capacity


def _ids(workload: Workload) -> Ids:
    column = workload.jobs["job_id"]
    return _number_column(workload, "job_id") if column.dtype.kind in "iuf" else column.to_numpy(object)


class _Sieve:
    def __init__(self, ids: Ids, counted: Tally) -> None:
        self.ids, self.counted = ids, dict(counted)
        self.alive = np.ones(len(ids), np.bool_)

    def drop(self, bad: Flags, why: str) -> None:
        bad = bad & self.alive
        self.counted.update(tally("dropped", why, self.ids[bad]))
        self.alive[bad] = False

    def note(self, mask: Flags, why: str, kind: Literal["repaired", "noted"] = "repaired") -> None:
        self.counted.update(tally(kind, why, self.ids[mask & self.alive]))


def _runs(workload: Workload, rule: LoadRule, logged: Ints, sieve: _Sieve) -> Ints:
    """Return run times [n]; who never ran is dropped or gets one."""
    never_ran = logged < 0
    if rule.cancelled:
        sieve.note(never_ran, f"never ran: run time set to {CANCELLED_RUN} s")
    else:
        sieve.drop(never_ran & (_number_column(workload, "status") == STATUS_CANCELLED), _CANCELLED)
        sieve.drop(never_ran, "no run time")
    if not rule.zero_run:
        sieve.drop(logged == 0, "ran for 0 s")
    return np.where(never_ran, CANCELLED_RUN * MICRO, logged) if rule.cancelled else logged


def _requests(rule: LoadRule, request: Ints, run: Ints, sieve: _Sieve) -> Ints:
    """Return requested times [n]; a missing one is dropped, or stands for the run time."""
    missing = request <= 0
    if rule.request == "drop":
        sieve.drop(missing, "no requested time")
        return request
    if rule.request == "run":
        sieve.note(missing, "no requested time: run time taken")
        return np.where(missing, run, request)
    if rule.request == "max":
        sieve.note(request < run, "requested time raised to the run time")
        return np.maximum(request, run)
    return run


def _processors(workload: Workload, rule: LoadRule, sieve: _Sieve) -> Ints:
    requested, allocated = _number_column(workload, "req_procs"), _number_column(workload, "procs")
    if rule.procs == "strict":
        procs = requested
    elif rule.procs == "largest":
        procs = np.maximum(requested, allocated)
    else:
        procs = np.where(requested > 0, requested, allocated)
        sieve.note((requested <= 0) & (allocated > 0), "no requested processors: allocated taken")
    sieve.drop(procs <= 0, "no processors")
    return procs


def _demands(workload: Workload, procs: Ints, capacity: dict[str, int], sieve: _Sieve) -> Ints:
    """Return what jobs ask for of every resource [n, R], nodes first; who is larger than the machine goes."""
    others = (np.maximum(_number_column(workload, name), 0) for name in capacity if name != "nodes")
    demand = np.column_stack((procs, *others))
    for r, (name, limit) in enumerate(capacity.items()):
        large = (demand[:, r] > limit) & sieve.alive
        if large.any():
            most = ("up to " if np.count_nonzero(large) > 1 else "") + str(demand[large, r].max())
            sieve.drop(large, f"larger than the machine ({name}: {most} asked, {limit} there)")
    return demand


def _order(workload: Workload, rule: LoadRule, submit: Ints, first: int | None, sieve: _Sieve) -> Ints:
    """Return the `first` records of those that are left, in the rule's order; BridgeError: there are none."""
    rank = ranks(workload.jobs["job_id"])
    order = np.lexsort({"id": (rank,), "file": (submit,), "submit": (rank, submit)}[rule.sort])
    order = order[sieve.alive[order]][:first]
    if len(order) == 0:
        dropped = [f"{r.count} {why}" for why, r in sieve.counted.items() if r.kind == "dropped"]
        reasons = "; ".join(dropped) or "the log is empty"
        cancelled_too = ", or --cancelled keep" if _CANCELLED in sieve.counted else ""
        what = f"no job is left under the loading rule {rule.name!r} ({reasons})"
        remedy = f"Try another --protocol{cancelled_too}; see `bridge workload info`."
        raise BridgeError(what, where=workload.where, remedy=remedy)
    return order


def _waiting(workload: Workload, ids: Ids, order: Ints, sieve: _Sieve) -> dict[str, Ints]:
    """Return whom the kept jobs follow, and their think times, by the fields of `Jobs`; none if none does."""
    table = workload.jobs
    if "preceding_job" not in table:
        return {}
    follows, alone = leaders(ids, table["preceding_job"], order)
    kept = np.zeros(len(ids), np.bool_)
    kept[alone] = True
    sieve.note(kept, "follow a job that is not there: they arrive as logged", "noted")
    kept[:] = False
    kept[order[follows >= 0]] = True
    sieve.note(kept, "follow another job: they arrive after its end", "noted")
    if not kept.any():
        return {}
    refuse_circles(follows, ids[order], workload.name)
    stated = table["think_time"] if "think_time" in table else pd.Series(np.full(len(table), NONE))
    return {"follows": follows, "think": _micro(stated.fillna(NONE).clip(NONE, LONGEST))[order]}


def select(
    workload: Workload,
    rule: LoadRule,
    *,
    cancelled: Literal["drop", "keep"] | None = None,
    nodes: int | None = None,
    first: int | None = None,
    rebase: bool | None = None,
    dependencies: bool = False,
    cluster: Cluster | None = None,
) -> Jobs:
    """Apply a loading rule, which says what to drop and repair, to a workload, keeping the `first` N jobs.

    `cancelled` overrides the rule for jobs that never ran, `nodes` the machine size, `rebase` whether submit
    times count from the first kept job, `dependencies` whether jobs wait for their preceding ones. With a
    `cluster` its nodes are the machine, and jobs have requests of it; none is dropped for its size.
    BridgeError: no machine size, a demand or an id is no whole number, jobs wait for each other, or no job is
    left.
    """
    if cancelled is not None:
        rule = replace(rule, cancelled=cancelled == "keep")
    requests = None
    if cluster is None:
        capacity = machine_capacity(workload, nodes)
    else:
        workload = with_default_times(workload, cluster)
        requests = read_requests(workload)
        capacity = {"nodes": len(build_node_table(cluster))}
    table = workload.jobs
    ids = _ids(workload)
    sieve = _Sieve(ids, workload.tally)
    submit, logged_run = _micro(table["submit"]), _micro(table["run"])
    if rule.request == "drop" and ids.dtype.kind == "i":
        sieve.drop(ids <= 0, "job id not positive")
    sieve.drop(~submitted(table), "submission unknown")
    sieve.drop(submit < 0, "submitted before the log begins")
    run = _runs(workload, rule, logged_run, sieve)
    request = _requests(rule, _micro(table["req_time"]), run, sieve)
    procs = _processors(workload, rule, sieve) if requests is None else np.maximum(requests.nodes, 1)
    if rule.kill:
        sieve.note(run > request, CUT, "noted")
        run = np.minimum(run, request)
    demand = _demands(workload, procs, capacity, sieve) if requests is None else procs[:, None]
    del procs
    order = _order(workload, rule, submit, first, sieve)
    # From here on each column in its new order replaces the old one: a long log's take most of the memory.
    submit, run, request, logged_run = submit[order], run[order], request[order], logged_run[order]
    demand = demand[order]
    heeded = {"preceding_job"} if dependencies else set()
    if cluster is not None:
        workload, heeded = replace(workload, capacity=capacity), heeded | heeded_columns(workload)
    origin = int(submit.min()) if (rule.rebase if rebase is None else rebase) else 0
    waiting: dict[str, Ints] = {}
    if dependencies:
        waiting = _waiting(workload, ids, order, sieve)
    others = [c for c in table.columns if c not in SWF_COLUMNS and c not in capacity]
    return Jobs(
        name=workload.name,
        id=ids[order],
        submit=submit - origin,
        run=run,
        request=request,
        logged_run=logged_run,
        logged_wait=_micro(table["wait"])[order],
        demand=demand,
        resources=tuple(capacity),
        capacity=np.array([*capacity.values()], np.int64),
        user=_number_column(workload, "user")[order],
        queue=_number_column(workload, "queue")[order],
        origin=origin,
        tally=sieve.counted | note_ignored(workload, heeded),
        extra={c: np.asarray(table[c], np.float64)[order] for c in others if table[c].dtype.kind in "if"},
        idle_power=idle_power_of(workload.header, workload.where),
        cluster=cluster,
        requests=None if requests is None else requests.take(order).later(origin),
        ran_on=read_texts(table, RAN_ON).take(order) if requests is not None and RAN_ON in table else None,
        **waiting,
    )
