"""What jobs ask of a cluster: further columns of a log, as arrays with one value a job.

A log without these columns is what it was: none is added, and no digest changes. The columns:

| column | holds |
|---|---|
| ``nodes``, ``tasks`` | how many nodes, how many tasks; -1: not stated. Without both, processors are nodes |
| ``cores_per_node``, ``memory_per_node``, ``gpus_per_node`` | of each node; memory in MiB; -1: not stated |
| ``cores_per_task``, ``memory_per_task``, ``gpus_per_task`` | of each task, where `tasks` is stated |
| ``gpu_type`` | type of the GPUs, empty: any |
| ``partition_name``, ``qos_name``, ``account``, ``user_name``, ``job_name`` | names; partitions with commas |
| ``constraints`` | features of nodes, as Slurm's --constraint |
| ``exclusive`` | 1: whole nodes, 0: shared ones, -1: as the partition says |
| ``licenses`` | as Slurm's --licenses: ``matlab:2,ansys`` |
| ``begin`` | s on the log's clock, before which the job is not eligible; -1: none |
| ``dependency`` | as Slurm's --dependency, of ids of this log |
| ``array_id``, ``array_limit`` | tasks of one array have one number; how many may run at one time; -1: none |
| ``hold_until`` | s on the log's clock, when a hold ends; ``inf``: never; -1: not held |
| ``requeue`` | 0: the job is not started again when it is preempted or its node fails; else it is |
| ``reservation``, ``nodelist``, ``exclude`` | its reservation; nodes that it must have, and must not have |
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from bridge.base.arrays import Flags, Ints
from bridge.base.errors import BridgeError
from bridge.cluster.description import Cluster
from bridge.cluster.node_table import default_partition, partitions_of
from bridge.workload.table import STATUS_COMPLETED, UNKNOWN, Workload, tally

#: Thousandths of a GPU that a GPU has; microseconds of a second.
MILLI, MICRO = 1_000, 1_000_000
#: The end of a hold that never ends, and instants beyond all others.
NEVER = np.iinfo(np.int64).max
#: Texts that name nothing.
_NOTHING = frozenset({"", "(null)", "None", "nan", "N/A"})
#: Columns of amounts of one node or task: the field of `JobRequests` -> the stem of both columns.
_AMOUNTS = ("cores", "memory", "gpus")
#: Columns of texts -> the field of `JobRequests`.
_TEXTS = {
    "partition_name": "partition",
    "qos_name": "qos",
    "account": "account",
    "user_name": "user",
    "job_name": "job_name",
    "gpu_type": "gpu_type",
    "constraints": "constraints",
    "licenses": "licenses",
    "reservation": "reservation",
    "nodelist": "nodelist",
    "exclude": "exclude",
    "dependency": "dependency",
}
#: SWF's codes that stand for names where the log has no names.
_CODES = {"partition_name": "partition", "user_name": "user", "account": "group"}
#: Columns that say the same of the whole job as others do of one node or task, and SWF's codes of names.
_WHOLE = re.compile(r"gpus(_\w+)?|main_memory|cores")
#: All columns by which a job asks something of a cluster.
REQUEST_COLUMNS: tuple[str, ...] = (
    *("nodes", "tasks", "exclusive", "begin", "array_id", "array_limit", "hold_until", "requeue"),
    *(f"{name}_per_{unit}" for unit in ("node", "task") for name in _AMOUNTS),
    *_TEXTS,
)


@dataclass(frozen=True)
class Texts:
    """A column of texts: `code` [n] is a place in `texts`, -1 where a job states none."""

    code: Ints
    texts: tuple[str, ...] = ()

    def take(self, which: slice | Ints | Flags) -> "Texts":
        return replace(self, code=self.code[which])

    def of(self, job: int) -> str:
        code = int(self.code[job])
        return self.texts[code] if code >= 0 else ""


@dataclass(frozen=True)
class JobRequests:
    """What n jobs ask of a cluster. Amounts are of one task where tasks are stated, else of one node.

    Attributes:
        nodes: [n] number of nodes, exactly; 0: as many as its tasks need.
        tasks: [n] 0: it states none.
        cores: [n] of one node or task; 0: not stated.
        memory: [n] MiB of one node or task; -1: not stated, the partition's default counts.
        gpus: [n] thousandths of a GPU of one node or task.
        exclusive: [n] 1: whole nodes, 0: shared ones, -1: as the partition says.
        begin: [n] microseconds on the jobs' clock; -1: none.
        hold_until: [n] microseconds on the jobs' clock; -1: not held; `NEVER`: it is never released.
        array_id: [n] -1: no task of an array.
        array_limit: [n] tasks of its array that may run at one time; 0: no limit.
        succeeded: [n] whether its recorded end was a success, for afterok; an unknown end is one.
        may_requeue: [n] whether it starts again when it is preempted or its node fails.
        partition: names with commas between them; the first that admits a job counts.
        qos, account, user, job_name, gpu_type, constraints, licenses, reservation, nodelist, exclude,
        dependency: as the columns of these names.
    """

    nodes: Ints
    tasks: Ints
    cores: Ints
    memory: Ints
    gpus: Ints
    exclusive: Ints
    begin: Ints
    hold_until: Ints
    array_id: Ints
    array_limit: Ints
    succeeded: Flags
    may_requeue: Flags
    partition: Texts
    qos: Texts
    account: Texts
    user: Texts
    job_name: Texts
    gpu_type: Texts
    constraints: Texts
    licenses: Texts
    reservation: Texts
    nodelist: Texts
    exclude: Texts
    dependency: Texts

    def __len__(self) -> int:
        return len(self.nodes)

    def take(self, which: slice | Ints | Flags) -> "JobRequests":
        parts: dict[str, Any] = {}
        for field in fields(self):
            column = getattr(self, field.name)
            parts[field.name] = column.take(which) if isinstance(column, Texts) else column[which]
        return replace(self, **parts)

    def later(self, origin: int) -> "JobRequests":
        """Return the same on a clock that begins `origin` microseconds later; what is past then is at 0."""

        def moved(times: Ints) -> Ints:
            stated = (times >= 0) & (times != NEVER)
            return np.where(stated, np.maximum(times - origin, 0), times)

        return replace(self, begin=moved(self.begin), hold_until=moved(self.hold_until))

    def timeless(self) -> "JobRequests":
        """Return them without times and other jobs, for jobs that are drawn anew."""
        none = np.full(len(self), UNKNOWN, np.int64)
        return replace(self, begin=none, hold_until=none.copy(), dependency=Texts(none.copy()))


def heeded_columns(workload: Workload) -> set[str]:
    """Return the columns of a log that a scheduler with a cluster looks at."""
    names = [str(name) for name in workload.jobs.columns]
    heeded = {*REQUEST_COLUMNS, "partition", "queue"}
    if any(f"{amount}_per_{unit}" in names for amount in _AMOUNTS for unit in ("node", "task")):
        heeded.update(name for name in names if _WHOLE.fullmatch(name))
    return heeded


def with_default_times(workload: Workload, cluster: Cluster) -> Workload:
    """Return a log whose jobs without a requested time have their partition's: the default, else the limit.

    Those that are so filled are counted.
    """
    table = workload.jobs
    missing = ~(table["req_time"].to_numpy() > 0)
    if not missing.any():
        return workload
    partitions = partitions_of(cluster)
    times = {p.name: p.default_time or p.max_time for p in partitions}
    usual = partitions[default_partition(cluster)]
    names = read_texts(table, "partition_name")
    first = [value.split(",")[0] for value in names.texts]
    own = np.array([times.get(name) or UNKNOWN for name in first] + [times[usual.name] or UNKNOWN], np.int64)
    filled = np.where(missing, own[names.code], UNKNOWN)  # -1, no partition named, is the last one
    which = filled > 0
    if not which.any():
        return workload
    why = "no requested time: the partition's taken"
    jobs = table.assign(req_time=np.where(which, filled, table["req_time"].to_numpy()))
    counted = {**workload.tally, **tally("repaired", why, table["job_id"][which])}
    return replace(workload, jobs=jobs, tally=counted)


def read_requests(workload: Workload) -> JobRequests:
    """Return what the records of a log ask of a cluster [n], in the file's order.

    Raises BridgeError: a cell is no whole number, or a job states amounts of nodes and of tasks.
    """
    table = workload.jobs
    tasks = np.maximum(_whole(workload, "tasks"), 0)
    nodes = np.maximum(_whole(workload, "nodes"), 0)
    plain = (nodes == 0) & (tasks == 0)
    if plain.any():
        requested, granted = _whole(workload, "req_procs"), _whole(workload, "procs")
        nodes = np.where(plain, np.where(requested > 0, requested, granted), nodes)
    amounts = {name: _amount(workload, name, tasks > 0) for name in _AMOUNTS}
    status = _whole(workload, "status")
    return JobRequests(
        nodes=nodes,
        tasks=tasks,
        cores=np.maximum(amounts["cores"], 0),
        memory=amounts["memory"],
        gpus=np.maximum(amounts["gpus"], 0),
        exclusive=_whole(workload, "exclusive"),
        begin=_instants(workload, "begin"),
        hold_until=_instants(workload, "hold_until"),
        array_id=_whole(workload, "array_id"),
        array_limit=np.maximum(_whole(workload, "array_limit"), 0),
        succeeded=(status == UNKNOWN) | (status == STATUS_COMPLETED),
        may_requeue=_whole(workload, "requeue") != 0,
        **{field: read_texts(table, name) for name, field in _TEXTS.items()},
    )


def _amount(workload: Workload, name: str, of_tasks: Flags) -> Ints:
    """Return the amounts of one task where tasks are stated, else of one node; GPUs in thousandths."""
    scale = MILLI if name == "gpus" else 1
    of_node, of_task = (_whole(workload, f"{name}_per_{unit}", scale) for unit in ("node", "task"))
    wrong = np.where(of_tasks, of_node, of_task) > 0
    if wrong.any():
        row = int(wrong.argmax())
        unit, other = ("node", "task") if of_tasks[row] else ("task", "node")
        what = f"states {name}_per_{unit}, and {'its tasks' if of_tasks[row] else 'no tasks'}"
        remedy = f"Give {name}_per_{other}, or mend the column 'tasks'."
        raise BridgeError(what, where=_job(workload, row), remedy=remedy)
    return np.where(of_tasks, of_task, of_node)


def _job(workload: Workload, row: int) -> str:
    return f"{workload.where}, job {workload.jobs['job_id'].iloc[row]}"


def _is_blank(column: "pd.Series[Any]") -> Flags:
    """Tell which cells state nothing [n]: missing ones, and empty texts."""
    missing = column.isna().to_numpy(np.bool_)
    if pd.api.types.is_numeric_dtype(column):
        return missing
    return missing | (column.astype(str) == "").to_numpy(np.bool_)


def _whole(workload: Workload, name: str, scale: int = 1) -> Ints:
    """Return a column of numbers, times `scale`, as whole ones [n]; -1 where nothing is stated."""
    table = workload.jobs
    if name not in table:
        return np.full(len(table), UNKNOWN, np.int64)
    column = pd.to_numeric(table[name], errors="coerce").astype(np.float64).to_numpy()
    values = np.where(_is_blank(table[name]) | (column < 0), UNKNOWN, column * scale)
    wrong = ~(np.isfinite(values) & (np.abs(values - np.rint(values)) < 1e-9) & (np.abs(values) < 2.0**62))
    if wrong.any():
        row = int(wrong.argmax())
        kind = "whole number" if scale == 1 else f"number of {1 / scale:g} and its multiples"
        what = f"its {name!r} is {str(table[name].iloc[row])[:40]!r}, which is no {kind}"
        raise BridgeError(what, where=_job(workload, row), remedy="Mend the cell, or write -1.")
    return np.asarray(np.rint(values), np.int64)


def _instants(workload: Workload, name: str) -> Ints:
    """Return a column of instants as microseconds on the log's clock [n]; -1 where there is none."""
    table = workload.jobs
    if name not in table:
        return np.full(len(table), UNKNOWN, np.int64)
    column = pd.to_numeric(table[name], errors="coerce").astype(np.float64).to_numpy()
    wrong = np.isnan(column) & ~_is_blank(table[name])
    if wrong.any():
        row = int(wrong.argmax())
        what = f"its {name!r} is {str(table[name].iloc[row])[:40]!r}, which is no time"
        raise BridgeError(what, where=_job(workload, row), remedy="Give seconds, or -1 for none.")
    stated = column >= 0
    finite = stated & (column < NEVER / MICRO)
    micro = np.full(len(column), UNKNOWN, np.int64)
    micro[stated] = NEVER
    micro[finite] = np.rint(column[finite] * MICRO).astype(np.int64)
    return micro


def read_texts(table: pd.DataFrame, name: str) -> Texts:
    """Return a column of texts; where the log has none, SWF's code of it as a text."""
    if name in table:
        return intern_texts([str(text).strip() for text in table[name].fillna("")])
    code = _CODES.get(name)
    if code is None or code not in table:
        return Texts(np.full(len(table), UNKNOWN, np.int64))
    return intern_texts([str(value) if value >= 0 else "" for value in table[code].tolist()])


def intern_texts(texts: Sequence[str]) -> Texts:
    """Return texts as codes, in order of appearance."""
    places: dict[str, int] = {}
    code = [UNKNOWN if text in _NOTHING else places.setdefault(text, len(places)) for text in texts]
    return Texts(np.array(code, np.int64), tuple(places))
