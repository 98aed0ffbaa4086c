"""What a log says of its jobs and no scheduler here looks at: named once, with the number of records.

Nodes are one pool, on which any job may run at any time. What is told of partitions, queues, the nodes that a
job may have, or the jobs that it waits for, changes nothing, and neither does a demand without a capacity.
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd

from bridge.base.arrays import Flags
from bridge.workload.resources import DEMAND, OF_NODES
from bridge.workload.table import TallyEntry, Workload

#: Texts that say nothing.
_NOTHING = ("", "(null)", "None", "none", "N/A", "nan", "-1", "0")
#: States of jobs that were stopped by the system.
_STOPPED = ("PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "REQUEUED")
#: Columns of codes or texts that tell jobs apart -> how many of them there are.
_KINDS: Mapping[str, str] = {
    "partition": "jobs of {} partitions: all nodes are one pool",
    "queue": "jobs of {} queues: no queue has limits or a priority",
}
#: Columns of names that say more than the codes.
_NAMES = {"partition": "partition_name", "queue": "qos_name"}
#: Columns that say something where they are filled -> what.
_FILLED: Mapping[str, str] = {
    "preceding_job": "jobs follow another job: they arrive as logged",
    "dependency": "jobs wait for other jobs: they arrive as logged",
    "req_memory": "jobs ask for memory of each processor",
    "constraints": "jobs ask for features of nodes",
    "features": "jobs ask for features of nodes",
    "property": "jobs ask for a property of nodes",
    "licenses": "jobs ask for licences",
    "reservation": "jobs ran in a reservation",
    "soft_walltime": "jobs have a soft walltime: only the estimator soft believes it",
}


def note_ignored(workload: Workload, heeded: Collection[str] = ()) -> dict[str, TallyEntry]:
    """Return what the records of a log say and no scheduler looks at, by what it is, but `heeded` columns."""
    jobs, notes = workload.jobs, dict[str, TallyEntry]()
    ids = jobs["job_id"]
    for name in (*_KINDS, *_FILLED):
        if name in jobs and name not in heeded:
            text = _NAMES.get(name, name)
            notes |= note_column(text if text in jobs else name, jobs[text if text in jobs else name], ids)
    if "state" in jobs:
        stopped = np.asarray(jobs["state"].isin(_STOPPED), np.bool_)
        notes |= _ignored(
            "jobs were preempted, requeued, or lost a node: they run as long as logged", stopped, ids
        )
    demands = [
        str(name)
        for name in jobs
        if DEMAND.fullmatch(str(name)) and name not in workload.capacity and name not in heeded
    ]
    for name in demands:
        notes |= _ignored(f"jobs ask for {name}: no capacity of it is stated", _filled(jobs[name]), ids)
    pooled = [name for name in workload.capacity if OF_NODES.fullmatch(name) and name in jobs]
    if pooled:
        asking = np.logical_or.reduce([_filled(jobs[name]) for name in pooled])
        notes |= _ignored(f"jobs ask for {', '.join(pooled)}: one pool, whichever nodes have it", asking, ids)
    return notes


def note_column(name: str, column: "pd.Series[Any]", ids: "pd.Series[Any]") -> dict[str, TallyEntry]:
    """Return what one column of a log says and no scheduler looks at, if it says anything."""
    if name in _FILLED:
        return _ignored(_FILLED[name], _filled(column), ids)
    what = _KINDS.get({text: code for code, text in _NAMES.items()}.get(name, name))
    if what is None or not len(column) or column.eq(column.iloc[0]).all():
        return {}
    has_value = _has_value(column)
    kinds = column[has_value].nunique()
    what = "jobs of {} QOS: none has limits or a priority" if name == "qos_name" else what
    return _ignored(what.format(kinds), has_value, ids) if kinds > 1 else {}


def _has_value(column: "pd.Series[Any]") -> Flags:
    if column.dtype.kind in "iuf":
        return np.asarray(column >= 0, np.bool_)
    return _has_text(column)


def _filled(column: "pd.Series[Any]") -> Flags:
    if column.dtype.kind in "iufb":
        return np.asarray(column > 0, np.bool_)
    return _has_text(column)


def _has_text(column: "pd.Series[Any]") -> Flags:
    return ~np.asarray(column.fillna("").isin(_NOTHING), np.bool_)


def _ignored(what: str, mask: Flags, ids: "pd.Series[Any]") -> dict[str, TallyEntry]:
    """Return what some records say, the first of them as examples."""
    rows = np.flatnonzero(mask)
    if not len(rows):
        return {}
    return {what: TallyEntry("ignored", len(rows), tuple(ids.iloc[rows[:3]].tolist()))}
