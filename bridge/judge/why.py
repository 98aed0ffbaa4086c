"""Why a job started when it did, read off a finished schedule."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd

from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.config.fields import Constraint
from bridge.judge.jobs import is_killed_attempt, jobs_of, started
from bridge.judge.run import Run

#: Times closer than this are one instant, seconds.
SAME = 1e-6


@dataclass(frozen=True)
class StartExplanation:
    """The facts behind one job's start. Times in seconds, jobs as ids.

    Attributes:
        job, nodes, submitted, started, ended: the job itself.
        free_at_submit: nodes free when it was submitted, after all else that happened at that instant.
        ahead: jobs that waited when it was submitted.
        kind: ``head`` or ``backfilled``, empty if the run does not say.
        overtook: the blocked job that it was backfilled past.
        first_shadow_time: the first start time it was given as blocked head, None if never.
        freed_by: jobs that ended at the instant of its start, and their nodes.
        free_before: nodes free just before that instant.
        blocked_by: jobs that held most node-time while it waited: id, nodes, until.
        overtaken_by: later submissions that started before it did.
        backfilled_past: those of them that were backfilled while this job was the blocked head.
        also_asked: further resources and amounts.
        reasons: on a cluster, since when it waited for which reason, in Slurm's words.
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
    first_shadow_time: Annotated[float | None, Constraint(key="promised")]
    freed_by: tuple[tuple[str, int], ...]
    free_before: int
    blocked_by: tuple[tuple[str, int, float], ...]
    overtaken_by: tuple[str, ...]
    backfilled_past: tuple[str, ...]
    also_asked: dict[str, int]
    reasons: tuple[tuple[float, str], ...] = ()


def _pairs(text: str) -> tuple[tuple[float, str], ...]:
    """Return a history of reasons, as a jobs table holds it, as times and reasons."""
    words = (part.split(" ", 1) for part in text.split("; ") if part)
    return tuple((float(since), reason) for since, reason in words)


def _history(jobs: pd.DataFrame, mask: "pd.Series[bool]") -> str:
    pairs = _pairs(str(jobs.loc[mask, "reasons"].iloc[0]))
    return ", ".join(f"{reason} since {since:,.0f} s" for since, reason in pairs) or "no reason"


def explain(run: Run, job: str, *, most: int = 5) -> StartExplanation:
    """Explain one job's start, naming at ``most`` so many blocking jobs; BridgeError: it never started."""
    executed = started(run.jobs)
    table, submit, start, end = executed.jobs, executed.submit, executed.start, executed.end
    ids = table["job_id"].astype("str").to_numpy(str)
    where = np.flatnonzero(ids == job)
    if len(where) == 0 and job.isdecimal():
        where = np.flatnonzero(np.char.lstrip(ids, "0") == job.lstrip("0"))
    if len(where) == 0:
        never = (run.jobs["job_id"].astype("str") == job).any()
        what = "the job never started" if never else "no such job in the run"
        if never and "reasons" in run.jobs:
            what += f": {_history(run.jobs, run.jobs['job_id'].astype('str') == job)}"
        raise BridgeError(what, where=f"job {job!r}", remedy="jobs.csv lists the run's jobs, first column.")
    if len(where) > 1:
        what = f"the job stands in the run {len(where)} times"
        raise BridgeError(what, where=f"job {job!r}", remedy="`bridge check` names all such jobs.")
    me = int(where[0])
    nodes = table["requested_number_of_resources"].to_numpy(np.int64)
    came, began, capacity = submit[me], start[me], run.capacity["nodes"]

    others, earlier = np.arange(len(nodes)) != me, start < began - SAME
    at_submit = others & (start <= came + SAME) & (end > came + SAME)
    before_start = others & earlier & (end >= began - SAME)
    released = others & earlier & (np.abs(end - began) <= SAME)
    while_waiting = others & earlier & (end > came + SAME) & (began > came + SAME)
    overlap = np.minimum(end, began) - np.maximum(start, came)
    weight = np.where(while_waiting, overlap * nodes, 0.0)
    heaviest = [int(k) for k in np.argsort(-weight, kind="stable")[:most] if weight[k] > 0]
    owner = jobs_of(table).to_numpy(str)
    foreign = owner != owner[me]  # another job, not another attempt at this one
    queued = (submit <= came + SAME) & (start > came + SAME)
    overtaking = foreign & (submit > came + SAME) & earlier
    overtook = table["overtook"].to_numpy(str) if "overtook" in table else np.full(len(nodes), "")
    reserved = float(table["reserved_time"].to_numpy(np.float64)[me]) if "reserved_time" in table else np.nan
    return StartExplanation(
        job=str(ids[me]),
        nodes=int(nodes[me]),
        submitted=float(came),
        started=float(began),
        ended=float(end[me]),
        free_at_submit=int(capacity - nodes[at_submit].sum()),
        ahead=int((foreign & ~is_killed_attempt(table) & queued).sum()),
        kind=str(table["start_kind"].to_numpy(str)[me]) if "start_kind" in table else "",
        overtook=str(overtook[me]),
        first_shadow_time=None if np.isnan(reserved) else reserved,
        freed_by=tuple((str(ids[k]), int(nodes[k])) for k in np.flatnonzero(released)),
        free_before=int(capacity - nodes[before_start].sum()),
        blocked_by=tuple((str(ids[k]), int(nodes[k]), float(end[k])) for k in heaviest),
        overtaken_by=tuple(dict.fromkeys(str(i) for i in owner[overtaking])),
        backfilled_past=tuple(str(i) for i in ids[overtook == ids[me]]),
        reasons=_pairs(str(table["reasons"].iloc[me])) if "reasons" in table else (),
        also_asked={r: int(table[r].to_numpy()[me]) for r in run.capacity if r != "nodes" and r in table},
    )


def _some(ids: tuple[str, ...], most: int = 5) -> str:
    return ", ".join(ids[:most]) + (f" and {len(ids) - most:,} more" if len(ids) > most else "")


def describe_reason(reason: StartExplanation, capacity: int) -> list[str]:
    wait = reason.started - reason.submitted
    other_demands = "".join(f" and {amount:,} {name}" for name, amount in reason.also_asked.items())
    free, ahead = counted(reason.free_at_submit, "node"), counted(reason.ahead, "job")
    lines = [
        f"Job {reason.job} asked for {reason.nodes:,} of {capacity:,} nodes{other_demands} "
        f"at {reason.submitted:,.0f} s and started at {reason.started:,.0f} s, after {wait:,.0f} s."
    ]
    if wait <= SAME:
        lines.append(f"It started at once: {free} free, {ahead} waiting.")
    else:
        enough = reason.free_at_submit >= reason.nodes
        short = "enough, but other jobs stood before it" if enough else "too few"
        lines.append(f"When it came: {free} free ({short}), {ahead} waiting.")
    if reason.reasons:
        history = ", ".join(f"{why} from {since:,.0f} s" for since, why in reason.reasons)
        lines.append(f"It waited because of: {history}.")
    if reason.blocked_by:
        holders = ", ".join(f"{i} ({counted(n, 'node')}, until {t:,.0f} s)" for i, n, t in reason.blocked_by)
        lines.append(f"Most node-time while it waited was held by {holders}.")
    if reason.first_shadow_time is not None:
        late = reason.started - reason.first_shadow_time
        kept = f"started {abs(late):,.0f} s {'later' if late > 0 else 'earlier'}"
        kept = "started then" if abs(late) <= SAME else kept
        lines.append(
            "As blocked head of the queue it was first reserved for "
            f"{reason.first_shadow_time:,.0f} s, and {kept}."
        )
    if reason.freed_by:
        enders = _some(tuple(f"{i} ({counted(n, 'node')})" for i, n in reason.freed_by))
        lines.append(
            f"Just before its start: {counted(reason.free_before, 'node')} free; then ended {enders}."
        )
    if reason.kind == "backfilled":
        past = f" past job {reason.overtook}, the blocked head" if reason.overtook else ""
        lines.append(f"It was backfilled{past}.")
    elif reason.kind == "head":
        lines.append("It started as head of the queue.")
    if reason.overtaken_by:
        later = counted(len(reason.overtaken_by), "later job")
        lines.append(f"{later} started before it: {_some(reason.overtaken_by)}.")
    if reason.backfilled_past:
        lines.append(f"Backfilled past it while it was the blocked head: {_some(reason.backfilled_past)}.")
    return lines
