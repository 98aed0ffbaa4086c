"""The jobs table: one row per job in Batsim's columns, read from and written to the files of three tools."""

import csv
import io
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bridge.base import files
from bridge.base.arrays import Flags, Floats
from bridge.base.errors import BridgeError
from bridge.cluster.amounts_text import PROGRESS, SUSPENDED

#: Batsim's columns in its order (Batsim 4, ``_jobs.csv``), and what they hold. Times in s, energy in J.
COLUMNS: dict[str, type] = {
    "job_id": str, "workload_name": str, "profile": str, "submission_time": float,
    "requested_number_of_resources": int, "requested_time": float, "success": int, "final_state": str,
    "starting_time": float, "execution_time": float, "finish_time": float, "waiting_time": float,
    "turnaround_time": float, "stretch": float, "allocated_resources": str, "consumed_energy": float,
    "metadata": str,
}  # fmt: skip
JOBS_COLUMNS: tuple[str, ...] = tuple(COLUMNS)
#: Further columns of a jobs table of a cluster.
CLUSTER_COLUMNS: Mapping[str, type] = {
    "eligible_time": float,
    "episode": int,
    "partition": str,
    "reason": str,
    SUSPENDED: str,
    PROGRESS: float,
}
TEXT_COLUMNS, INT_COLUMNS = (frozenset(n for n, kind in COLUMNS.items() if kind is k) for k in (str, int))
#: Columns that are empty (NaN) in a rejected job: from ``starting_time`` to ``stretch``.
OUTCOME_COLUMNS: tuple[str, ...] = JOBS_COLUMNS[8:14]
#: Columns that a file may leave out, and what is then assumed: nothing is known.
DEFAULTS: dict[str, str | float] = dict.fromkeys(("profile", "allocated_resources", "metadata"), "")
DEFAULTS |= {"workload_name": "w0", "consumed_energy": -1.0}
_COMPLETED = ("SUCCESSFULLY", "WALLTIME_REACHED", "FAILED", "KILLED")
FINAL_STATES: tuple[str, ...] = (*(f"COMPLETED_{how}" for how in _COMPLETED), "REJECTED")
#: Rows turned into text at a time: keeps memory flat, and Arrow's text columns below 2 GiB.
CHUNK = 16_384
#: Fields of a line of CQSim's result file (``.rst``), without a header, separated by ``;``.
RST_FIELDS = ("id", "procs", "procs", "requested time", "run", "wait", "submit", "start", "end")


def demand_column(resource: str) -> str:
    return "requested_number_of_resources" if resource == "nodes" else resource


def is_killed_attempt(jobs: pd.DataFrame) -> Flags:
    """Tell which rows are attempts that were killed so that the job could run again: [n].

    Such a row is COMPLETED_KILLED, its id is ``J#1``, ``J#2``, …, and job J stands in the table, too: it is
    that job's time on its hosts, but no job. Whoever counts or averages jobs leaves it out
    (`drop_killed_attempts`).
    """
    is_killed = (jobs["final_state"] == "COMPLETED_KILLED").to_numpy(np.bool_, copy=True)
    if is_killed.any():
        ids = jobs["job_id"].astype("str")
        parts = ids[is_killed].str.extract(r"^(.+)#[1-9][0-9]*$")[0]
        is_killed[is_killed] = (parts.notna() & parts.isin(ids)).to_numpy()
    return is_killed


def drop_killed_attempts(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the table with every job once, without killed attempts."""
    killed = is_killed_attempt(jobs)
    return jobs[~killed] if killed.any() else jobs


@dataclass(frozen=True)
class Started:
    """The rows of a jobs table that have a start, and their columns as float64: times in s; [n] each."""

    jobs: pd.DataFrame
    submit: Floats
    start: Floats
    end: Floats
    wait: Floats
    run: Floats
    nodes: Floats

    def __len__(self) -> int:
        return len(self.jobs)


def started(jobs: pd.DataFrame, *, killed: bool = True) -> Started:
    """Return the rows that have a start; unless ``killed``, every job once, without its killed attempts."""
    has_started = jobs["starting_time"].notna().to_numpy()
    rows = jobs if has_started.all() else jobs[has_started]  # no copy of all of them
    rows = rows if killed else drop_killed_attempts(rows)
    times = (f"{kind}_time" for kind in ("submission", "starting", "finish", "waiting", "execution"))
    columns = (rows[name].to_numpy(np.float64) for name in (*times, "requested_number_of_resources"))
    return Started(rows, *columns)


def plain_ids(*tables: "pd.Series[str]") -> "list[pd.Index[str]]":
    """Return ids of several tables for matching: zero-padded numbers, as in Batsim workloads, as plain ones.

    Where that would make one job of two, as of ``01`` and ``1``, all are as they stand.
    """
    raw = [pd.Index(ids) for ids in tables]
    plain = [ids.str.replace(r"(^|!)0+([0-9]+)$", r"\1\2", regex=True) for ids in raw]
    alike = all(one.nunique() == other.nunique() for one, other in zip(raw, plain, strict=True))
    return plain if alike else raw


def jobs_of(jobs: pd.DataFrame) -> "pd.Series[str]":
    """Return each row's job id, without the suffix of killed attempts."""
    ids = jobs["job_id"].astype("str")
    killed = is_killed_attempt(jobs)
    return ids.mask(killed, ids.str.rpartition("#")[0]) if killed.any() else ids


def write_jobs_csv(pieces: Iterable[pd.DataFrame], path: Path | str) -> None:
    """Write a jobs table in exactly Batsim's columns and number formats, piece by piece.

    Those of a cluster follow where the table has them. Outcome columns that are NaN (rejected jobs), and
    every unknown in such a row, become empty fields. Raises BridgeError: a column is missing, or the file
    cannot be written.
    """
    workers = min(2, os.cpu_count() or 1)
    with files.atomic_write(Path(path)) as out, ThreadPoolExecutor(workers) as pool:
        columns: dict[str, type] = {}
        for jobs in pieces:
            require_columns(jobs, JOBS_COLUMNS, str(path))
            if not columns:
                columns = COLUMNS | {name: kind for name, kind in CLUSTER_COLUMNS.items() if name in jobs}
                out.write((",".join(columns) + "\n").encode())
            starts = range(0, len(jobs), CHUNK)
            for k in range(0, len(starts), workers):  # no more text at a time than there are workers
                parts = [jobs.iloc[start : start + CHUNK] for start in starts[k : k + workers]]
                out.writelines(pool.map(partial(_csv, columns=columns), parts))
        if not columns:
            out.write((",".join(JOBS_COLUMNS) + "\n").encode())


def _csv(jobs: pd.DataFrame, columns: Mapping[str, type]) -> bytes:
    """Return rows as text, built column by column in Arrow: a row at a time in Python is ten times slower."""
    rejected = (jobs["final_state"] == "REJECTED").to_numpy()
    texts = []
    for name, kind in columns.items():
        if kind is str:
            texts.append(_quoted(jobs[name], always=name == "metadata"))
        elif kind is int:
            texts.append(pc.cast(pa.array(jobs[name].to_numpy(np.int64)), pa.string()))
        else:  # Batsim leaves the energy of a rejected job empty, not -1
            hidden = rejected if name == "consumed_energy" else None
            texts.append(fixed_six(jobs[name].to_numpy(np.float64), hidden))
    texts[-1] = pc.binary_join_element_wise(texts[-1], "\n", "")
    lines = pc.binary_join_element_wise(*texts, ",", null_handling="replace", null_replacement="")
    _, offsets, data = lines.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)
    return memoryview(data)[bounds[lines.offset] : bounds[lines.offset + len(lines)]].tobytes()


def fixed_six(values: Floats, hidden: Flags | None = None) -> Any:
    """Return an Arrow text array of ``values`` as ``%.6f``; NaN and ``hidden`` values become null."""
    null = np.isnan(values) if hidden is None else np.isnan(values) | hidden
    numbers = np.where(null, 0.0, values)
    if not np.all(np.abs(numbers) < 9e12):  # beyond int64 microseconds, or infinite
        return pa.array([None if n else f"{v:.6f}" for n, v in zip(null, values, strict=True)], pa.string())
    micros = pa.array(np.rint(numbers * 1e6).astype(np.int64), mask=null)
    exact = pc.multiply(pc.cast(micros, pa.decimal128(19)), pa.scalar(Decimal("0.000001")))
    return pc.cast(exact, pa.string())


def _quoted(column: "pd.Series[Any]", *, always: bool) -> Any:
    """Return a column as an Arrow text array, in double quotes where needed or ``always``."""
    text = pa.array(column, pa.string(), from_pandas=True)
    text = pc.fill_null(text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text, "")
    special = pc.match_substring_regex(text, '[",\r\n]')
    if not (always or pc.any(special).as_py()):
        return text
    quoted = pc.binary_join_element_wise("", pc.replace_substring(text, '"', '""'), "", '"')
    return quoted if always else pc.if_else(special, quoted, text)


def write_rst(jobs: pd.DataFrame, path: Path | str) -> None:
    """Write CQSim's result file: finish order (ties in start order), rejected jobs left out.

    Fields as in ``RST_FIELDS``, every time as Python writes a float (``4000.0``). Raises BridgeError: a
    column is missing, or the file cannot be written.
    """
    kinds = ("requested", "execution", "waiting", "submission", "starting", "finish")
    times = [f"{kind}_time" for kind in kinds]
    require_columns(jobs, ("job_id", "requested_number_of_resources", *times), str(path))
    done = jobs[jobs["starting_time"].notna()]
    done = done.sort_values(["finish_time", "starting_time"], kind="stable")
    procs = done["requested_number_of_resources"].astype("int64").tolist()
    columns = (done["job_id"].astype(str).tolist(), procs, procs, *(done[t].astype("float64") for t in times))
    lines = (";".join(map(str, row)) + "\n" for row in zip(*columns, strict=True))
    with files.atomic_write(Path(path)) as out:
        out.write("".join(lines).encode())


def read_jobs(path: Path | str) -> pd.DataFrame:
    """Read a schedule: a jobs CSV (ours or Batsim's), a ``.parquet`` of ours, or CQSim's ``.rst``.

    A CSV may leave out the columns in ``DEFAULTS``; columns beyond Batsim's are kept (numbers where all
    values are numbers), since they may hold demands for further resources. An ``.rst`` states no final state:
    a job whose run time reached its requested time is COMPLETED_WALLTIME_REACHED, as in Batsim. Raises
    BridgeError: the file is missing, empty, not a jobs table, or a line cannot be read.
    """
    path = Path(path)
    if files.is_there(path, Path.is_dir):
        raise BridgeError("is a folder, not a file of jobs", where=str(path), remedy="Name its jobs.csv.")
    if path.suffix == ".parquet":
        return read_parquet(path)
    with files.open_read(path) as stream:
        first = stream.readline(4096)
    if b"job_id" in first.strip().removeprefix(b"\xef\xbb\xbf").split(b","):
        return _read_csv(path)
    if first.count(b";") == len(RST_FIELDS) - 1:
        return _read_rst(path)
    what = "neither a jobs CSV (no job_id in its header) nor a CQSim result file (9 fields separated by ';')"
    remedy = (
        "Name a jobs.csv of bridge, a _jobs.csv of Batsim or an .rst of CQSim. Batsim leaves it empty when "
    )
    raise BridgeError(what, where=f"{path}:1", remedy=f"{remedy}it was aborted before its end.")


def read_parquet(path: Path) -> pd.DataFrame:
    """Read a ``jobs.parquet`` that `bridge` wrote."""
    jobs, _ = files.read_parquet(path)
    require_columns(jobs, JOBS_COLUMNS, str(path))
    for name, kind in COLUMNS.items():
        numbers = jobs[name].dtype.kind in "iuf"
        if numbers == (kind is str) or (kind is int and jobs[name].isna().any()):
            held = "text" if kind is str else "numbers"
            raise BridgeError(f"not a jobs table: {name} does not hold {held} alone", where=str(path))
    return _finite(jobs, path)


def _finite(jobs: pd.DataFrame, path: Path) -> pd.DataFrame:
    for name in (name for name, kind in COLUMNS.items() if kind is float):
        infinite = np.isinf(jobs[name].to_numpy(np.float64))
        if infinite.any():
            row = int(infinite.argmax()) + 1
            where = f"{path}, row {row}" if path.suffix == ".parquet" else f"{path}:{row + 1}"
            raise BridgeError(f"{name} is infinite", where=where)
    return jobs


def require_columns(jobs: pd.DataFrame, needed: tuple[str, ...], where: str) -> None:
    """Raise BridgeError naming every column of ``needed`` that ``jobs`` lacks, or one that it has twice."""
    missing = [name for name in needed if name not in jobs.columns]
    if missing:
        what = f"not a jobs table: missing column{'s' * (len(missing) > 1)} {', '.join(missing)}"
        columns_text = f"A jobs table has Batsim's columns: {', '.join(JOBS_COLUMNS)}."
        raise BridgeError(what, where=where, remedy=columns_text)
    if not jobs.columns.is_unique:
        twice = jobs.columns[jobs.columns.duplicated()][0]
        raise BridgeError(f"two columns are named {twice!r}", where=where, remedy="Rename one of them.")


def _read_csv(path: Path) -> pd.DataFrame:
    from pyarrow import csv as pacsv

    arrow = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    options = pacsv.ConvertOptions(
        column_types={name: arrow[kind] for name, kind in COLUMNS.items()},
        strings_can_be_null=False,
        null_values=["", "nan", "NaN"],
    )
    try:
        with files.open_read(path) as stream:
            jobs: pd.DataFrame = pacsv.read_csv(stream, convert_options=options).to_pandas()
    except (pa.ArrowException, ValueError) as error:
        _refuse_csv(path, str(error))
    require_columns(jobs, tuple(name for name in JOBS_COLUMNS if name not in DEFAULTS), str(path))
    jobs = jobs.assign(**{name: value for name, value in DEFAULTS.items() if name not in jobs.columns})
    jobs["consumed_energy"] = jobs["consumed_energy"].fillna(-1.0)
    for name in sorted(INT_COLUMNS):
        if (empty := jobs[name].isna()).any():
            raise BridgeError(f"{name} is empty", where=f"{path}:{int(empty.argmax()) + 2}")
    return _finite(jobs[[*JOBS_COLUMNS, *jobs.columns.difference([*JOBS_COLUMNS], sort=False)]], path)


def _refuse_csv(path: Path, reason: str) -> NoReturn:
    """Raise BridgeError for the first line that a strict reader refuses, and say why."""
    rows = csv.reader(io.StringIO(files.read_text(path), newline=""))
    what, where = f"cannot be read as CSV: {reason.splitlines()[0]}", str(path)
    try:
        header = next(rows)
        for row in rows:
            place = f"{path}:{rows.line_num}"
            if len(row) != len(header):
                raise BridgeError(f"{len(row)} fields, the header has {len(header)}", where=place)
            for name, value in zip(header, row, strict=True):
                if not _fits(value, COLUMNS.get(name, str)):
                    raise BridgeError(f"{name} is not a number: {value[:40]!r}", where=place)
    except csv.Error as error:
        what, where = f"cannot be read as CSV: {error}", f"{path}:{rows.line_num}"
    raise BridgeError(what, where=where)


def _fits(text: str, kind: type) -> bool:
    """Tell whether a cell is of a column's kind; an empty one is."""
    try:
        value = kind(text or 0)
    except ValueError:
        return False
    return kind is not int or -(2**63) <= value < 2**63


def _read_rst(path: Path) -> pd.DataFrame:
    lines = files.read_text(path).splitlines()
    ids: list[str] = []
    values = np.empty((len(lines), len(RST_FIELDS) - 1))
    for number, line in enumerate(lines, 1):
        (ident, *parts), where = line.split(";"), f"{path}:{number}"
        if len(parts) != len(RST_FIELDS) - 1:
            raise BridgeError(f"{len(parts) + 1} fields, a CQSim result line has 9", where=where)
        try:
            values[number - 1] = [float(part) for part in parts]
        except ValueError:
            raise BridgeError(f"a field is not a number: {line[:80]!r}", where=where) from None
        if not (np.abs(values[number - 1]) < 2.0**63).all():
            raise BridgeError(f"a field is not a finite number: {line[:80]!r}", where=where)
        ids.append(ident)
    procs, _, requested, run, wait, submit, start, end = values.T
    killed = (requested > 0) & (run >= requested)
    with np.errstate(divide="ignore", invalid="ignore"):
        stretch = (end - submit) / run
    columns = {
        "job_id": ids, "submission_time": submit, "requested_number_of_resources": procs.astype(np.int64),
        "requested_time": requested, "success": (~killed).astype(np.int64),
        "final_state": np.where(killed, FINAL_STATES[1], FINAL_STATES[0]), "starting_time": start,
        "execution_time": run, "finish_time": end, "waiting_time": wait, "turnaround_time": end - submit,
        "stretch": stretch,
    }  # fmt: skip
    return pd.DataFrame(columns | DEFAULTS)[list(JOBS_COLUMNS)]
