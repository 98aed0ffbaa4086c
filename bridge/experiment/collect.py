"""From a detailed run's files to a run like any other: jobs table, metrics, record."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.batsim.beliefs import number_of
from bridge.batsim.clock import MICRO
from bridge.batsim.dispatcher import Job
from bridge.batsim.result import Result
from bridge.errors import BridgeError
from bridge.experiment.detailed import Conducted
from bridge.experiment.prepare import PREFIX, Task
from bridge.judge.jobs import INT_COLUMNS, JOBS_COLUMNS, TEXT_COLUMNS, read_jobs
from bridge.judge.metrics import compute
from bridge.judge.run import Run
from bridge.scheduler.state import SECOND

if TYPE_CHECKING:
    import pandas as pd


def collect(task: Task, conducted: Conducted, versions: dict[str, str]) -> Run:
    """Return the run of a detailed simulation, complete or not.

    Raises:
        BridgeError: the simulation's jobs file cannot be read.
    """
    jobs = jobs_table(task, conducted)
    selected = task.prepared.jobs
    capacity = dict(zip(selected.resources, selected.capacity.tolist(), strict=True))
    metrics = compute(jobs, capacity, bsld_threshold=task.experiment.threshold)
    config = record(task, versions) | {"detailed": _told(task, conducted)}
    setup = task.setup
    who = task.agent.name if task.agent else f"{setup.order}+{setup.backfill}"
    name = f"{selected.name} {who} on {task.experiment.on}"
    return Run(config, capacity, jobs, metrics, task.prepared.oracle, name)


def record(task: Task, versions: dict[str, str]) -> dict[str, Any]:
    """Return what `run.toml` says of an experiment, whatever its world."""
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
        "versions": versions,
        "experiment": experiment.as_dict(),
    }


def _told(task: Task, conducted: Conducted) -> dict[str, Any]:
    detailed, result = task.experiment.detailed, conducted.result
    assert task.platform is not None
    return {
        "platform": task.platform.root.name,
        "profile": str(detailed.kind),
        "walltime": detailed.limit.name,
        "placement": detailed.placement,
        "energy": detailed.energy,
        "program": list(conducted.command),
        "program_version": conducted.version,
        "status": conducted.status,
        "outcome": result.outcome.name.lower(),
        "explanation": result.explain(),
        "fault": str(conducted.fault) if conducted.fault else None,
        "messages": result.messages,
        "passes": result.dispatcher.passes,
        "counts": result.counts(),
        "locality": result.locality.as_dict(),
        "refused": len(result.refusals),
    }


def jobs_table(task: Task, conducted: Conducted) -> "pd.DataFrame":
    """Return one row per job that has ended or was rejected, in the order of the simulation's file.

    Batsim's columns as Batsim has them, but for the ids, which are the log's again. Further columns as in a
    replay; `requested_time` is the walltime that the platform enforced (−1 = none), `request` the log's.

    Raises:
        BridgeError: the file cannot be read.
    """
    import pandas as pd

    table = _read(conducted.folder / f"{PREFIX}_jobs.csv", complete=conducted.fault is None)
    jobs, result = task.prepared.jobs, conducted.result
    numbers = [number_of(str(name)) for name in table["job_id"]]
    place = {ident: k for k, ident in enumerate(jobs.id.tolist())}
    if unknown := [n for n, number in zip(table["job_id"], numbers, strict=True) if number not in place]:
        raise BridgeError(
            f"job {unknown[0]} is none of the workload's",
            where=str(conducted.folder / f"{PREFIX}_jobs.csv"),
            remedy="Was the folder used by another simulation?",
        )
    row = np.array([place[number] for number in numbers if number is not None], np.int64)
    known = {number_of(job.job_id): job for job in result.jobs}
    reasons = [_reason(result, known.get(number)) for number in numbers]
    table["job_id"] = pd.Series([str(number) for number in numbers], index=table.index, dtype="str")
    table["workload_name"] = jobs.name
    table["user"], table["queue"] = jobs.user[row], jobs.queue[row]
    table["request"] = jobs.request[row] / MICRO
    table["start_kind"] = pd.Series([r[0] for r in reasons], index=table.index, dtype="str")
    table["overtook"] = pd.Series([r[1] for r in reasons], index=table.index, dtype="str")
    table["reserved_time"] = np.array([r[2] for r in reasons], np.float64)
    for r, name in enumerate(jobs.resources[1:], 1):
        table[name] = jobs.demand[row, r]
    return table


def _reason(result: Result, job: Job | None) -> tuple[str, str, float]:
    """Return how a job started, which blocked job it overtook, and the first start it was promised, s."""
    dispatcher = result.dispatcher
    if job is None or dispatcher.session is None or job.index < 0 or job.start < 0:
        return "", "", math.nan
    promised = int(dispatcher.session.state.jobs[0, job.index].reserved)
    return (
        "backfilled" if dispatcher.backfilled(job) else "head",
        str(number_of(dispatcher.overtook(job)) or ""),
        promised / MICRO if promised >= 0 else math.nan,
    )


def _read(path: Path, *, complete: bool) -> "pd.DataFrame":
    """Return the rows of the simulation's jobs file; of a simulation that broke off, the whole ones."""
    import pandas as pd

    if not complete:
        text = path.read_bytes() if path.exists() else b""
        whole = text[: text.rfind(b"\n") + 1]
        if whole.count(b"\n") < 2:
            kinds = {name: "str" if name in TEXT_COLUMNS else "float64" for name in JOBS_COLUMNS}
            kinds |= dict.fromkeys(INT_COLUMNS, "int64")
            empty = {name: pd.Series(dtype=kind) for name, kind in kinds.items()}
            return pd.DataFrame(empty)
        if whole != text:
            path.write_bytes(whole)
    return read_jobs(path)
