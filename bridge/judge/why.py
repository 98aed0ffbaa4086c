"""Why a job started when it did, read off a finished schedule."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bridge.errors import BridgeError
from bridge.judge.jobs import attempts, jobs_of, started

if TYPE_CHECKING:
    from bridge.judge.run import Run

#: Times closer than this are one instant, seconds.
SAME = 1e-6


@dataclass(frozen=True)
class Reason:
    """The facts behind one job's start. Times in seconds, jobs as ids.

    Attributes:
        job, nodes, submitted, started, ended: the job itself.
        free_at_submit: nodes free when it was submitted, after all else that happened at that instant.
        ahead: jobs that waited when it was submitted.
        kind: ``head`` or ``backfilled``, empty if the run does not say.
        overtook: the blocked job that it was backfilled past.
        promised: the first start time it was given as blocked head, None if never.
        freed_by: jobs that ended at the instant of its start, and their nodes.
        free_before: nodes free just before that instant.
        blocked_by: jobs that held most node-time while it waited: id, nodes, until.
        overtaken_by: later submissions that started before it did.
        backfilled_past: those of them that were backfilled while this job was the blocked head.
        also_asked: further resources and amounts.
    """

    job: str
    nodes: int
    submitted: float
    started: float
    ended: float
    free_at_submit: int
    ahead: int
    kind: str
    overtook: str
    promised: float | None
    freed_by: tuple[tuple[str, int], ...]
    free_before: int
    blocked_by: tuple[tuple[str, int, float], ...]
    overtaken_by: tuple[str, ...]
    backfilled_past: tuple[str, ...]
    also_asked: dict[str, int]


def explain(run: "Run", job: str, *, most: int = 5) -> Reason:
    """Explain one job's start.

    Args:
        run: the run.
        job: the job's id; leading zeros do not matter.
        most: how many blocking jobs are named.

    Raises:
        BridgeError: no such job, it never started, or the run does not say how many nodes there are.
    """
    if "nodes" not in run.capacity:
        raise BridgeError("the run does not tell the machine's nodes", where=run.name, remedy="See run.toml.")
    found = started(run.jobs)
    table, submit, start, end = found.jobs, found.submit, found.start, found.end
    ids = table["job_id"].astype("str").to_numpy()
    where = np.flatnonzero(ids == job)
    if len(where) == 0 and job:
        plain = np.char.lstrip(ids.astype(str), "0")
        where = np.flatnonzero(plain == job.lstrip("0"))
    if len(where) == 0:
        never = run.jobs["job_id"].astype("str").to_numpy() == job
        what = "the job never started" if never.any() else "no such job in the run"
        raise BridgeError(what, where=f"job {job!r}", remedy="jobs.csv lists the run's jobs, first column.")
    me = int(where[0])
    if len(where) > 1:
        raise BridgeError(
            f"the job stands in the run {len(where)} times",
            where=f"job {job!r}",
            remedy="`bridge check` names all such jobs.",
        )
    nodes = table["requested_number_of_resources"].to_numpy(np.int64)
    capacity = run.capacity["nodes"]

    others = np.arange(len(nodes)) != me
    at_submit = others & (start <= submit[me] + SAME) & (end > submit[me] + SAME)
    before_start = others & (start < start[me] - SAME) & (end >= start[me] - SAME)
    released = others & (np.abs(end - start[me]) <= SAME) & (start < start[me] - SAME)
    while_waiting = (
        others & (start < start[me] - SAME) & (end > submit[me] + SAME) & (start[me] > submit[me] + SAME)
    )
    overlap = np.minimum(end, start[me]) - np.maximum(start, submit[me])
    weight = np.where(while_waiting, overlap * nodes, 0.0)
    heaviest = [int(k) for k in np.argsort(-weight, kind="stable")[:most] if weight[k] > 0]
    owner = jobs_of(table).to_numpy(str)
    foreign = owner != owner[me]  # another job, not another attempt at this one
    queued = (submit <= submit[me] + SAME) & (start > submit[me] + SAME)
    overtaking = foreign & (submit > submit[me] + SAME) & (start < start[me] - SAME)
    known = "start_kind" in table
    overtook = table["overtook"].to_numpy(str) if "overtook" in table else np.full(len(nodes), "")
    reserved = float(table["reserved_time"].to_numpy(np.float64)[me]) if "reserved_time" in table else np.nan
    further = {r: int(table[r].to_numpy()[me]) for r in run.capacity if r != "nodes" and r in table}
    return Reason(
        job=str(ids[me]),
        nodes=int(nodes[me]),
        submitted=float(submit[me]),
        started=float(start[me]),
        ended=float(end[me]),
        free_at_submit=int(capacity - nodes[at_submit].sum()),
        ahead=int((foreign & ~attempts(table) & queued).sum()),
        kind=str(table["start_kind"].to_numpy(str)[me]) if known else "",
        overtook=str(overtook[me]),
        promised=None if np.isnan(reserved) else reserved,
        freed_by=tuple((str(ids[k]), int(nodes[k])) for k in np.flatnonzero(released)),
        free_before=int(capacity - nodes[before_start].sum()),
        blocked_by=tuple((str(ids[k]), int(nodes[k]), float(end[k])) for k in heaviest),
        overtaken_by=tuple(dict.fromkeys(str(i) for i in owner[overtaking])),
        backfilled_past=tuple(str(i) for i in ids[overtook == ids[me]]),
        also_asked=further,
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _some(ids: tuple[str, ...], most: int = 5) -> str:
    return ", ".join(ids[:most]) + (f" and {len(ids) - most:,} more" if len(ids) > most else "")


def sentences(reason: Reason, capacity: int) -> list[str]:
    """Tell a reason in plain sentences."""
    wait = reason.started - reason.submitted
    asked = "".join(f" and {amount:,} {name}" for name, amount in reason.also_asked.items())
    said = [
        f"Job {reason.job} asked for {reason.nodes:,} of {capacity:,} nodes{asked} "
        f"at {reason.submitted:,.0f} s and started at {reason.started:,.0f} s, after {wait:,.0f} s."
    ]
    if wait <= SAME:
        said.append(
            f"It started at once: {_count(reason.free_at_submit, 'node')} free, "
            f"{_count(reason.ahead, 'job')} waiting."
        )
    else:
        short = (
            "enough, but other jobs stood before it" if reason.free_at_submit >= reason.nodes else "too few"
        )
        said.append(
            f"When it came: {_count(reason.free_at_submit, 'node')} free ({short}), "
            f"{_count(reason.ahead, 'job')} waiting."
        )
    if reason.blocked_by:
        holders = ", ".join(f"{i} ({_count(n, 'node')}, until {t:,.0f} s)" for i, n, t in reason.blocked_by)
        said.append(f"Most node-time while it waited was held by {holders}.")
    if reason.promised is not None:
        kept = reason.started - reason.promised
        outcome = (
            "and started then"
            if abs(kept) <= SAME
            else f"and started {abs(kept):,.0f} s {'later' if kept > 0 else 'earlier'}"
        )
        said.append(
            f"As blocked head of the queue it was first reserved for {reason.promised:,.0f} s, {outcome}."
        )
    if reason.freed_by:
        enders = _some(tuple(f"{i} ({_count(n, 'node')})" for i, n in reason.freed_by))
        said.append(f"Just before its start: {_count(reason.free_before, 'node')} free; then ended {enders}.")
    if reason.kind == "backfilled":
        past = f" past job {reason.overtook}, the blocked head" if reason.overtook else ""
        said.append(f"It was backfilled{past}.")
    elif reason.kind == "head":
        said.append("It started as head of the queue.")
    if reason.overtaken_by:
        said.append(
            f"{_count(len(reason.overtaken_by), 'later job')} started before it: "
            f"{_some(reason.overtaken_by)}."
        )
    if reason.backfilled_past:
        said.append(f"Backfilled past it while it was the blocked head: {_some(reason.backfilled_past)}.")
    return said
