"""A state's file: versioned JSON with times in seconds; what it may hold is said by the dataclasses below."""

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from bridge.base import files
from bridge.base.arrays import Ints
from bridge.base.counted import counted
from bridge.base.errors import BridgeError, add_location
from bridge.config import Constraint, Positive, Unsigned, from_tables
from bridge.config.fields import record_of
from bridge.forecasting.corrections import LEVELS
from bridge.forecasting.state import LENGTHS, MOST, FairShareUser, MachineState, micro
from bridge.scheduler.estimators import RunTimeEstimates
from bridge.scheduler.state import SECOND

FORMAT, VERSION = "bridge-state", 1
#: Longest time of a file, seconds: 30,000 years.
_MOST = 1e12
Time = Annotated[float, Constraint(ge=-_MOST, le=_MOST)]
Length = Annotated[Positive, Constraint(le=_MOST)]
Amount = Annotated[int, Constraint(ge=0, le=MOST)]
Name = int | str


@dataclass(frozen=True)
class EstimateEntry:
    """What the scheduler believes of a job's run time, s.

    Attributes:
        order: what orders see.
        waiting: as head of the queue and as candidate.
        running: once it runs.
    """

    order: Length
    waiting: Length
    running: Length


@dataclass(frozen=True)
class JobEntry:
    """A job that waits.

    Attributes:
        id: its name, a text or a whole number.
        submit: when it was submitted, s.
        request: its requested time, at which it is killed, s.
        demand: resource to amount; nodes at least.
        lengths: what the scheduler believes.  [default: the request]
        quantiles: its run time at the file's levels, s.  [default: it runs as long as it requests]
        user: a name.
        partition: share of its queue in the machine's use, for multifactor orders.
    """

    id: Name
    submit: Time
    request: Length
    demand: Mapping[str, Amount]
    lengths: EstimateEntry | None = None
    quantiles: tuple[Length, ...] = ()
    user: Name = ""
    partition: Unsigned = 0.0


@dataclass(frozen=True)
class RunningJob(JobEntry):
    """A job that runs.

    Attributes:
        start: when it started, s.
    """

    start: Time = dataclasses.field(kw_only=True)


@dataclass(frozen=True)
class StateDocument:
    """A state's file.

    Attributes:
        format: bridge-state.
        version: of the format.
        now: the present, s, on the clock of all times.
        capacity: resource to amount; nodes at least.
        free: resource to amount; what is neither free nor used is out of service. Less than 0: so much of
            what running jobs use goes out of service when they end.
        running, waiting: jobs; those that wait in order of submission.
        levels: of the jobs' quantiles, ascending between 0 and 1.
        policy: order and backfilling by name.
        settled: the scheduler has made its pass at `now`.
        oracle: true run times are among the believed ones.
        longest: longest request of the machine, s, for orders that use t_max.
        users: user to share and use.
        used: node-seconds of all ended jobs.
        corrections: seconds waited to what forecasts are corrected by, see docs/forecasts.md.
    """

    format: Annotated[str, Constraint(choices=(FORMAT,))]
    version: int
    now: Time
    capacity: Mapping[str, Amount]
    free: Mapping[str, Annotated[int, Constraint(ge=-MOST, le=MOST)]]
    running: tuple[RunningJob, ...] = ()
    waiting: tuple[JobEntry, ...] = ()
    levels: Annotated[tuple[float, ...], Constraint(gt=0, lt=1)] = ()
    policy: str = "fcfs+easy"
    settled: bool = False
    oracle: bool = False
    longest: Unsigned = 0.0
    users: Mapping[str, FairShareUser] = field(default_factory=dict)
    used: Unsigned = 0.0
    corrections: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


def read_state(path: Path | str) -> MachineState:
    """Read a state's file; BridgeError names the field or the job that is missing, unknown or cannot be."""
    path = Path(path)
    return state_of(files.read_json(path, unique=True), str(path))


def state_of(document: object, where: str = "state") -> MachineState:
    version = document.get("version") if isinstance(document, Mapping) else None
    if isinstance(document, Mapping) and document.get("format") == FORMAT and version != VERSION:
        what = f"version {version!r} is unknown, this version of bridge reads {VERSION}"
        raise BridgeError(what, where=where, remedy="Write the state again with this version of bridge.")
    state_document = from_tables(StateDocument, document, where)
    jobs = (*state_document.running, *state_document.waiting)
    resources = ("nodes", *(name for name in state_document.capacity if name != "nodes"))
    _check(state_document, jobs, resources, where)
    submit = micro([job.submit for job in jobs])
    n_running = len(state_document.running)
    in_order = np.r_[np.arange(n_running), n_running + np.argsort(submit[n_running:], kind="stable")]
    requests = [job.request for job in jobs]
    believed = [job.lengths or EstimateEntry(r, r, r) for job, r in zip(jobs, requests, strict=True)]
    quantiles = np.array([job.quantiles for job in jobs], np.float64).reshape(
        len(jobs), len(state_document.levels)
    )
    demand = np.array([[job.demand.get(r, 0) for r in resources] for job in jobs], np.int64)
    lengths: dict[str, Any] = {name: micro([getattr(one, name) for one in believed]) for name in LENGTHS}
    with add_location(where):
        state = MachineState(
            now=int(micro(state_document.now)),
            resources=resources,
            capacity=np.array([state_document.capacity[name] for name in resources], np.int64),
            free=np.array([state_document.free.get(name, 0) for name in resources], np.int64),
            id=tuple(str(job.id) for job in jobs),
            submit=submit,
            start=micro(
                [
                    *(job.start for job in state_document.running),
                    *(state_document.now for _ in state_document.waiting),
                ]
            ),
            request=micro(requests),
            demand=demand.reshape(-1, len(resources)),
            lengths=RunTimeEstimates(**lengths, oracle=state_document.oracle),
            n_running=n_running,
            user=tuple(str(job.user) for job in jobs),
            partition=np.array([job.partition for job in jobs], np.float64),
            levels=np.array(state_document.levels, np.float64),
            quantiles=quantiles,
            users=state_document.users,
            used=state_document.used,
            longest=max(state_document.longest, max((one.order for one in believed), default=0.0)),
            policy=state_document.policy,
            settled=state_document.settled,
            corrections={int(seconds): numbers for seconds, numbers in state_document.corrections.items()},
        )
    return state.take(in_order)


def document_of(state: MachineState) -> dict[str, Any]:
    state.refuse_site("a state's file")
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "now": state.now / SECOND,
        "policy": state.policy,
        "settled": state.settled,
        "oracle": state.lengths.oracle,
        "capacity": _amounts(state, state.capacity),
        "free": _amounts(state, state.free),
        "longest": state.longest,
        "used": state.used,
        "users": {name: record_of(user) for name, user in state.users.items()},
        "levels": state.levels.tolist(),
        "corrections": {str(seconds): [*numbers] for seconds, numbers in state.corrections.items()},
    }
    jobs = [_job(state, j) for j in range(len(state))]
    return document | {"running": jobs[: state.n_running], "waiting": jobs[state.n_running :]}


def write_state(state: MachineState, path: Path | str) -> None:
    with files.open_write(Path(path)) as out:
        out.write((json.dumps(document_of(state), indent=1, ensure_ascii=False) + "\n").encode())


def _amounts(state: MachineState, amounts: Ints) -> dict[str, int]:
    return dict(zip(state.resources, amounts.tolist(), strict=True))


def _job(state: MachineState, j: int) -> dict[str, Any]:
    lengths = {name: float(getattr(state.lengths, name)[j] / SECOND) for name in LENGTHS}
    request = float(state.request[j] / SECOND)
    fields: dict[str, Any] = {
        "id": state.id[j],
        "submit": float(state.submit[j] / SECOND),
        "request": request,
        "demand": _amounts(state, state.demand[j]),
        "user": state.user[j],
        "partition": float(state.partition[j]),
    }
    if j < state.n_running:
        fields["start"] = float(state.start[j] / SECOND)
    if any(length != request for length in lengths.values()):
        fields["lengths"] = lengths
    if len(state.levels):
        fields["quantiles"] = state.quantiles[j].tolist()
    return fields


def _check(
    document: StateDocument, jobs: tuple[JobEntry, ...], resources: tuple[str, ...], where: str
) -> None:
    """Refuse names that are nowhere, and quantiles that are not as many as levels."""
    if "nodes" not in document.capacity:
        raise BridgeError("capacity.nodes is missing", where=where, remedy="Add the machine's nodes.")
    if wrong := [name for name in document.free if name not in resources]:
        raise BridgeError(f"free names {wrong[0]!r}, which is no resource of the capacity", where=where)
    for seconds, numbers in document.corrections.items():
        if not re.fullmatch("[0-9]{1,9}", seconds) or len(numbers) != len(LEVELS):
            what = f"corrections[{seconds!r}] must be {len(LEVELS)} numbers for a whole number of seconds"
            raise BridgeError(what, where=where)
    for job in jobs:
        what = f"job {str(job.id)!r}: it"
        if wrong := [name for name in job.demand if name not in resources]:
            raise BridgeError(f"{what} asks for {wrong[0]!r}, of which the machine has none", where=where)
        if len(job.quantiles) != len(document.levels):
            what = (
                f"{what} has {counted(len(job.quantiles), 'quantile')} for "
                f"{counted(len(document.levels), 'level')}"
            )
            remedy = "Give a quantile for each level, or leave out levels and quantiles."
            raise BridgeError(what, where=where, remedy=remedy)
