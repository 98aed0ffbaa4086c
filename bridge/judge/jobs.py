"""The jobs table: one row per job in Batsim's columns, read from and written to the files of three tools."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.errors import BridgeError
from bridge.files import replacing

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

#: Batsim's columns in Batsim's order (Batsim 4, ``_jobs.csv``). Times in seconds, energy in joules.
JOBS_COLUMNS: tuple[str, ...] = (
    "job_id",
    "workload_name",
    "profile",
    "submission_time",
    "requested_number_of_resources",
    "requested_time",
    "success",
    "final_state",
    "starting_time",
    "execution_time",
    "finish_time",
    "waiting_time",
    "turnaround_time",
    "stretch",
    "allocated_resources",
    "consumed_energy",
    "metadata",
)
TEXT_COLUMNS: frozenset[str] = frozenset(
    {"job_id", "workload_name", "profile", "final_state", "allocated_resources", "metadata"}
)
INT_COLUMNS: frozenset[str] = frozenset({"requested_number_of_resources", "success"})
#: Columns that are empty (NaN) in a rejected job.
OUTCOME_COLUMNS: tuple[str, ...] = (
    "starting_time",
    "execution_time",
    "finish_time",
    "waiting_time",
    "turnaround_time",
    "stretch",
)
#: Columns that a file may leave out, and what is then assumed: nothing is known.
DEFAULTS: dict[str, str | float] = {
    "workload_name": "w0",
    "profile": "",
    "allocated_resources": "",
    "consumed_energy": -1.0,
    "metadata": "",
}
FINAL_STATES: tuple[str, ...] = (
    "COMPLETED_SUCCESSFULLY",
    "COMPLETED_WALLTIME_REACHED",
    "COMPLETED_FAILED",
    "COMPLETED_KILLED",
    "REJECTED",
)
#: Fields of a line of CQSim's result file (``.rst``), without a header, separated by ``;``.
RST_FIELDS = ("id", "procs", "procs", "requested time", "run", "wait", "submit", "start", "end")


def demand_column(resource: str) -> str:
    """Return the jobs-table column that holds the demand for ``resource``."""
    return "requested_number_of_resources" if resource == "nodes" else resource


def attempts(jobs: "pd.DataFrame") -> "NDArray[np.bool_]":
    """Tell which rows are attempts that were killed so that the job could run again: [n].

    Such a row is COMPLETED_KILLED, its id is ``J#1``, ``J#2``, …, and job J stands in the table, too: it is
    that job's time on its hosts, but no job. Whoever counts or averages jobs leaves it out (`once`).
    """
    found = (jobs["final_state"] == "COMPLETED_KILLED").to_numpy(np.bool_, copy=True)
    if found.any():
        ids = jobs["job_id"].astype("str")
        parts = ids[found].str.extract(r"^(.+)#[1-9][0-9]*$")[0]
        found[found] = (parts.notna() & parts.isin(ids)).to_numpy()
    return found


def once(jobs: "pd.DataFrame") -> "pd.DataFrame":
    """Return the table with every job once, without killed attempts."""
    killed = attempts(jobs)
    return jobs[~killed] if killed.any() else jobs


def jobs_of(jobs: "pd.DataFrame") -> "pd.Series[str]":
    """Return each row's job: its id, without what makes it that of a killed attempt."""
    ids = jobs["job_id"].astype("str")
    killed = attempts(jobs)
    return ids.mask(killed, ids.str.rpartition("#")[0]) if killed.any() else ids


def write_jobs_csv(jobs: "pd.DataFrame", path: Path | str) -> None:
    """Write ``jobs`` in exactly Batsim's columns and number formats, rows in the table's order.

    Raises:
        BridgeError: a column is missing, or the file cannot be written.
    """
    from bridge.judge.csvtext import jobs_csv

    require_columns(jobs, JOBS_COLUMNS, str(path))
    with replacing(Path(path)) as out:
        out.write((",".join(JOBS_COLUMNS) + "\n").encode())
        out.writelines(jobs_csv(jobs))


def write_rst(jobs: "pd.DataFrame", path: Path | str) -> None:
    """Write CQSim's result file: finish order (ties in start order), rejected jobs left out.

    Fields as in ``RST_FIELDS``, every time as Python writes a float (``4000.0``).

    Raises:
        BridgeError: a column is missing, or the file cannot be written.
    """
    needed = ("job_id", "requested_number_of_resources", "requested_time", "execution_time", "waiting_time")
    require_columns(jobs, (*needed, "submission_time", "starting_time", "finish_time"), str(path))
    done = jobs[jobs["starting_time"].notna()]
    done = done.sort_values(["finish_time", "starting_time"], kind="stable")
    ids = done["job_id"].astype(str).tolist()
    procs = done["requested_number_of_resources"].astype("int64").tolist()
    times = (
        "requested_time",
        "execution_time",
        "waiting_time",
        "submission_time",
        "starting_time",
        "finish_time",
    )
    columns = [done[name].astype("float64").tolist() for name in times]
    lines = [
        f"{i};{n};{n};{t};{r};{w};{s};{b};{e}\n"
        for i, n, t, r, w, s, b, e in zip(ids, procs, *columns, strict=True)
    ]
    with replacing(Path(path)) as out:
        out.write("".join(lines).encode())


def read_jobs(path: Path | str) -> "pd.DataFrame":
    """Read a schedule: a jobs CSV (ours or Batsim's), a ``.parquet`` of ours, or CQSim's ``.rst``.

    A CSV may leave out the columns in ``DEFAULTS``; columns beyond Batsim's are kept (numbers where all
    values are numbers), since they may hold demands for further resources. An ``.rst`` states no final
    state: a job whose run time reached its requested time is COMPLETED_WALLTIME_REACHED, as in Batsim.

    Raises:
        BridgeError: the file is missing, empty, not a jobs table, or a line cannot be read.
    """
    path = Path(path)
    if path.is_dir():
        raise BridgeError("is a folder, not a file of jobs", where=str(path), remedy="Name its jobs.csv.")
    if path.suffix == ".parquet":
        return read_parquet(path)
    with opened(path) as stream:
        head = stream.read(4096)
    if not head.strip():
        raise BridgeError(
            "the file is empty",
            where=str(path),
            remedy="Batsim leaves it empty when it was aborted before its end.",
        )
    first = head.split(b"\n", 1)[0]
    if b"job_id" in first.split(b","):
        return _read_csv(path)
    if first.count(b";") == len(RST_FIELDS) - 1:
        return _read_rst(path)
    raise BridgeError(
        "neither a jobs CSV (no job_id in its header) nor a CQSim result file (9 fields separated by ';')",
        where=f"{path}:1",
        remedy="Name a jobs.csv of bridge, a _jobs.csv of Batsim or an .rst of CQSim.",
    )


def read_parquet(path: Path) -> "pd.DataFrame":
    """Read a ``jobs.parquet`` that `bridge` wrote."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        jobs: pd.DataFrame = pq.read_table(path).to_pandas()
    except FileNotFoundError as error:
        raise BridgeError("no such file", where=str(path)) from error
    except (pa.ArrowInvalid, OSError) as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BridgeError(f"cannot be read as Parquet: {text}", where=str(path)) from error
    require_columns(jobs, JOBS_COLUMNS, str(path))
    return jobs


def require_columns(jobs: "pd.DataFrame", needed: tuple[str, ...], where: str) -> None:
    """Raise BridgeError naming every column of ``needed`` that ``jobs`` lacks."""
    missing = [name for name in needed if name not in jobs.columns]
    if missing:
        raise BridgeError(
            f"not a jobs table: missing column{'s' * (len(missing) > 1)} {', '.join(missing)}",
            where=where,
            remedy="A jobs table has Batsim's columns: " + ", ".join(JOBS_COLUMNS) + ".",
        )


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open a plain or compressed file for reading bytes."""
    import pyarrow as pa

    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            yield stream
    except FileNotFoundError as error:
        raise BridgeError("no such file", where=str(path)) from error
    except OSError as error:
        raise BridgeError(f"cannot be read: {str(error).splitlines()[0]}", where=str(path)) from error


def _read_csv(path: Path) -> "pd.DataFrame":
    import pyarrow as pa
    from pyarrow import csv as pacsv

    kinds = {name: pa.string() if name in TEXT_COLUMNS else pa.float64() for name in JOBS_COLUMNS}
    kinds |= dict.fromkeys(INT_COLUMNS, pa.int64())
    options = pacsv.ConvertOptions(
        column_types=kinds, strings_can_be_null=False, null_values=["", "nan", "NaN"]
    )
    try:
        with opened(path) as stream:
            table = pacsv.read_csv(stream, convert_options=options)
    except pa.ArrowInvalid as error:
        raise _csv_fault(path, str(error)) from error
    jobs: pd.DataFrame = table.to_pandas()
    require_columns(jobs, tuple(name for name in JOBS_COLUMNS if name not in DEFAULTS), str(path))
    for name, value in DEFAULTS.items():
        if name not in jobs.columns:
            jobs[name] = value
    jobs["consumed_energy"] = jobs["consumed_energy"].fillna(-1.0)
    for name in sorted(INT_COLUMNS):
        if jobs[name].isna().any():
            line = int(np.flatnonzero(jobs[name].isna())[0]) + 2
            raise BridgeError(f"{name} is empty", where=f"{path}:{line}")
    return jobs[[*JOBS_COLUMNS, *(c for c in jobs.columns if c not in JOBS_COLUMNS)]]


def _csv_fault(path: Path, said: str) -> BridgeError:
    """Find the first line that a strict reader refuses, and say why."""
    with opened(path) as stream:
        text = stream.read().decode("utf-8", errors="replace")
    rows = csv.reader(text.splitlines())
    header = next(rows)
    for row in rows:
        where = f"{path}:{rows.line_num}"
        if len(row) != len(header):
            return BridgeError(f"{len(row)} fields, the header has {len(header)}", where=where)
        for name, value in zip(header, row, strict=True):
            if (
                name in JOBS_COLUMNS
                and name not in TEXT_COLUMNS
                and not _is_number(value, name in INT_COLUMNS)
            ):
                return BridgeError(f"{name} is not a number: {value!r}", where=where)
    return BridgeError(f"cannot be read as CSV: {said.splitlines()[0]}", where=str(path))


def _is_number(text: str, whole: bool) -> bool:
    try:
        _ = int(text or "0") if whole else float(text or "0")
    except ValueError:
        return False
    return True


def _read_rst(path: Path) -> "pd.DataFrame":
    import pandas as pd

    with opened(path) as stream:
        lines = stream.read().decode("utf-8", errors="replace").splitlines()
    ids: list[str] = []
    values = np.empty((len(lines), len(RST_FIELDS) - 1))
    for number, line in enumerate(lines, 1):
        parts = line.split(";")
        if len(parts) != len(RST_FIELDS):
            raise BridgeError(f"{len(parts)} fields, a CQSim result line has 9", where=f"{path}:{number}")
        ids.append(parts[0])
        try:
            values[number - 1] = [float(part) for part in parts[1:]]
        except ValueError:
            raise BridgeError(f"a field is not a number: {line!r}", where=f"{path}:{number}") from None
        if not np.isfinite(values[number - 1]).all():
            raise BridgeError(f"a field is not a finite number: {line!r}", where=f"{path}:{number}")
    procs, _, requested, run, wait, submit, start, end = values.T
    killed = (requested > 0) & (run >= requested)
    with np.errstate(divide="ignore", invalid="ignore"):
        stretch = (end - submit) / run
    jobs = pd.DataFrame(
        {
            "job_id": ids,
            "workload_name": "w0",
            "profile": "",
            "submission_time": submit,
            "requested_number_of_resources": procs.astype(np.int64),
            "requested_time": requested,
            "success": (~killed).astype(np.int64),
            "final_state": np.where(killed, FINAL_STATES[1], FINAL_STATES[0]),
            "starting_time": start,
            "execution_time": run,
            "finish_time": end,
            "waiting_time": wait,
            "turnaround_time": end - submit,
            "stretch": stretch,
            "allocated_resources": "",
            "consumed_energy": -1.0,
            "metadata": "",
        }
    )
    return jobs[list(JOBS_COLUMNS)]
