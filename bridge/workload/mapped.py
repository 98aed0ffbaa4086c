"""A workload of any table, by a column map: CSV or Parquet, whatever its columns are called.

Columns of a map are those of a workload; beside them `start`, `end` and `eligible` are instants, of which
waits and runs are made where the map has none.
"""

import math
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bridge.base.arrays import Flags, Floats
from bridge.base.errors import BridgeError
from bridge.base.files import stem
from bridge.base.suggestions import did_you_mean
from bridge.cluster.table_cells import MappedTable
from bridge.cluster.table_map import OpenedMap, open_map
from bridge.workload.columns import CODES_OF_NAMES, complete_columns
from bridge.workload.ignored import note_ignored
from bridge.workload.ran_on import RAN_ON
from bridge.workload.requests import REQUEST_COLUMNS, heeded_columns
from bridge.workload.resources import DEMAND
from bridge.workload.table import SWF_COLUMNS, TallyEntry, Workload, tally

#: Instants of a job, on the table's clock; the first three make waits and runs.
_INSTANTS = ("submit", "start", "end", "eligible", "begin", "hold_until")
_LENGTHS = ("wait", "run", "req_time", "soft_walltime", "think_time", "cpu_time")
_TEXTS = frozenset(
    {
        *("job_id", "state", "property", "job_name", "constraints", "licenses", "gpu_type"),
        *("dependency", "reservation", "nodelist", "exclude", RAN_ON, *CODES_OF_NAMES),
    }
)
_SIZES = ("procs", "req_procs", "nodes")
_AMOUNTS_OF_MEMORY = ("memory_per_node", "memory_per_task")
#: What a map can fill beside demands such as gpus, main_memory or burst_buffer.
TARGETS = (*SWF_COLUMNS, *_INSTANTS[1:], *REQUEST_COLUMNS, "soft_walltime", "property", "state", RAN_ON)


def read_mapped(path: Path, name: str, zone: tzinfo = UTC, nodes: int | None = None) -> Workload:
    """Return the workload of a table under a map, which is a file or comes with bridge.

    `zone`: of dates without one; `nodes`: the machine's size, in the unit of procs. What is left out, mended
    or of no use to a scheduler is counted. BridgeError names the line of the table, or of the map.
    """
    opened = open_map(name)
    _check_targets(opened)
    table = MappedTable(path, opened, zone)
    columns: dict[str, Any] = {}
    for target, one in opened.jobs.items():
        if not table.has(one, f"jobs.{target}"):
            continue
        form = (
            "time" if target in _INSTANTS else "duration" if target in _LENGTHS
            else "memory" if target in _AMOUNTS_OF_MEMORY else "number"
        )  # fmt: skip
        is_text = one.form == "text" or (not one.form and target in _TEXTS)
        columns[target] = table.texts(one) if is_text else table.numbers(one, form)
    counted = _note_unused(table, opened)
    ids: Any = columns.setdefault("job_id", list(map(str, range(1, len(table) + 1))))
    origin = _put_on_clock(columns, opened)
    counted |= _waits_and_runs(columns, ids)
    frame = pd.DataFrame({key: stored for key, of in columns.items() if (stored := _stored(of)) is not None})
    jobs, repaired = complete_columns(frame, table.place, str(path))
    header = {"UnixStartTime": str(origin)} if opened.map.clock == "unix" else {}
    header["Note"] = f"{path.name} by the map {Path(name).name}: {opened.map.about}".rstrip(": ")
    capacity = dict(opened.map.capacity) | ({} if nodes is None else {"nodes": nodes})
    workload = Workload.of_file(path, jobs, capacity, header, {**counted, **repaired})
    ignored = note_ignored(workload, heeded_columns(workload))
    return Workload(stem(path), workload.jobs, capacity, header, str(path), {**workload.tally, **ignored})


def _check_targets(opened: OpenedMap) -> None:
    for target in opened.jobs:
        if target not in TARGETS and not DEMAND.fullmatch(target):
            names = ", ".join(dict.fromkeys(TARGETS))
            remedy = f"{did_you_mean(target, TARGETS)}Known: {names}, and demands."
            what = f"a workload has no column {target!r}"
            raise BridgeError(what, where=opened.lines.place(f"jobs.{target}"), remedy=remedy)
    for target in ("submit",):
        if target not in opened.jobs:
            remedy = f"Add {target} to [jobs]."
            raise BridgeError(f"the map has no {target}", where=opened.lines.where, remedy=remedy)
    if not {"procs", "req_procs", "nodes"} & opened.jobs.keys():
        remedy = "Add procs (or req_procs, or nodes) to [jobs]."
        raise BridgeError("the map does not tell how large jobs are", where=opened.lines.where, remedy=remedy)


def _note_unused(table: MappedTable, opened: OpenedMap) -> dict[str, TallyEntry]:
    unused = table.unused(opened.jobs)
    why = f"columns that the map does not use: {', '.join(unused)}"
    return {why: TallyEntry("ignored", len(table))} if unused else {}


def _put_on_clock(columns: dict[str, Any], opened: OpenedMap) -> int:
    """Count instants from the first submission; returns that one, a whole number of s."""
    submit: Floats = columns["submit"]
    stated = submit[~np.isnan(submit)]
    if not len(stated):
        where = opened.lines.place("jobs.submit")
        raise BridgeError("no row says when its job was submitted", where=where, remedy="Mend the map.")
    origin = math.floor(float(stated.min()))
    for name in _INSTANTS:
        if name in columns:
            moved = np.asarray(columns[name]) - origin
            columns[name] = moved if name in ("submit", "start", "end") else np.maximum(moved, 0)
    return origin


def _waits_and_runs(columns: dict[str, Any], ids: list[str]) -> dict[str, TallyEntry]:
    """Make waits and runs of instants, where the map does not have them; what does not agree is counted."""
    start, end = columns.pop("start", None), columns.pop("end", None)
    counted: dict[str, TallyEntry] = {}
    submit: Floats = columns["submit"]
    names = np.asarray(ids, object)
    if start is not None and "wait" not in columns:
        early = start < submit
        counted |= tally("repaired", "started before its submission: submitted at its start", names[early])
        columns["submit"] = submit = np.where(early, start, submit)
        columns["wait"] = start - submit
    if start is not None and end is not None and "run" not in columns:
        backwards = end < start
        counted |= tally("repaired", "ended before it started: its run time is not known", names[backwards])
        columns["run"] = np.where(backwards, np.nan, end - start)
    amounts = [name for name in columns if name in _SIZES or "_per_" in name]
    for name in (*_LENGTHS, *amounts):
        if name in columns and (below := columns[name] < 0).any():
            counted |= tally("repaired", f"its {name} is negative: not known", names[below])
            columns[name] = np.where(below, np.nan, columns[name])
    for name in ("wait", "run", "req_time", "submit"):
        unknown: Flags = np.isnan(columns[name]) if name in columns else np.zeros(0, np.bool_)
        if unknown.any():
            counted |= tally("noted", f"{name} is not known", names[unknown])
            columns[name] = np.where(unknown, -1.0, columns[name])
    if "nodes" in columns and not {"procs", "req_procs"} & columns.keys():
        columns["procs"] = columns["nodes"]
    return counted


def _stored(column: Any) -> "pd.Series[Any] | None":
    """Return a column as workloads have it: whole numbers as such, -1 if unknown; None: it says nothing."""
    if isinstance(column, list):
        return pd.Series(column, dtype=object) if any(column) else None
    is_known = ~np.isnan(column) if column.dtype.kind == "f" else np.ones(len(column), np.bool_)
    if not is_known.any():
        return None
    filled = np.where(is_known, column, -1.0)
    whole = bool((np.abs(filled) < 2.0**53).all() and (filled == np.floor(filled)).all())
    return pd.Series(filled.astype(np.int64) if whole else filled)
