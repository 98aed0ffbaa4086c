"""Workloads as tables with named columns: CSV and Parquet, and what makes any table a job table.

Columns are named as in SWF; extra ones are demands for further resources.
"""

import io
import json
import warnings
from collections.abc import Callable, Collection
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from bridge import files
from bridge.errors import BridgeError
from bridge.wire.jsontext import loads
from bridge.workload.ignored import note_column
from bridge.workload.table import (
    FLOAT_COLUMNS,
    SWF_COLUMNS,
    Reason,
    Workload,
    format_header,
    parse_capacity,
    parse_header,
    tally,
)

_META = b"bridge.workload"
#: Option of `pandas.read_csv` for decimals read to the last bit, which pandas 3.1 always does.
EXACT: dict[str, Any] = (
    {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else {"float_precision": "round_trip"}
)
#: What no job can do without.
REQUIRED = ("job_id", "submit")


def read_csv(path: str | Path) -> Workload:
    """Read a CSV table with a line of column names; compression is seen from the suffix.

    Comment lines before the names may hold the capacity (``# capacity: nodes=128 power=5000``) and the
    header (``# Computer: …``). Raises BridgeError: the file is missing, damaged or no table of jobs.
    """
    path = Path(path)
    text = files.read_text(path)
    comments = list(takewhile(lambda line: line.startswith("#"), io.StringIO(text, newline="")))
    how: dict[str, Any] = {"index_col": False, "low_memory": False, "on_bad_lines": "error", **EXACT}
    how |= {"skiprows": len(comments), "keep_default_na": False, "na_values": [""]}
    try:
        with warnings.catch_warnings():
            # Too many cells in a row are an error here, not a warning and a silent cut.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            rest = "\n" * len(comments) + text[sum(map(len, comments)) :]  # quotes in comments are none
            table = pd.read_csv(io.StringIO(rest, newline=""), **how)
    except (ValueError, pd.errors.ParserWarning) as error:
        what = f"is no CSV table ({str(error).strip().splitlines()[-1]})"
        remedy = "The first line after comments must name the columns, and rows must have as many cells."
        raise BridgeError(what, where=str(path), remedy=remedy) from error
    header = parse_header(f";{line[1:].rstrip()}" for line in comments)
    stated = parse_capacity(header.pop("capacity", ""), str(path))
    jobs, repaired = complete(table, lambda row: f"{path}:{len(comments) + 2 + row}", str(path))
    return Workload.of_file(path, jobs, stated, header, repaired)


def write_csv(workload: Workload, path: str | Path) -> None:
    """Write a workload as CSV with its capacity and header in comment lines. Raises BridgeError."""
    pairs = " ".join(f"{name}={amount}" for name, amount in workload.capacity.items())
    comments = format_header(({"capacity": pairs} if pairs else {}) | workload.header)
    with files.open_write(Path(path)) as file:
        file.write("".join(f"#{line[1:]}\n" for line in comments.split("\n")[:-1]).encode())
        workload.jobs.to_csv(file, index=False, lineterminator="\n")


def read_parquet(path: str | Path, leave: Collection[str] = ()) -> Workload:
    """Read a Parquet table; capacity and header come from its metadata, if `write_parquet` wrote it.

    Fields to `leave` are checked like the others, but not kept. Raises BridgeError: the file is missing,
    damaged or no table of jobs.
    """
    path = Path(path)
    table, notes = files.read_parquet(path)
    try:
        meta = loads(notes.get(_META, b"{}"))
        capacity = {str(name): int(amount) for name, amount in meta.get("capacity", {}).items()}
        header = {str(name): str(value) for name, value in meta.get("header", {}).items()}
    except (ValueError, AttributeError, TypeError) as error:
        what = "the metadata for capacity and header is damaged"
        raise BridgeError(what, where=str(path), remedy="Write it again.") from error
    jobs, repaired = complete(table, lambda row: f"{path}, row {row + 1}", str(path), leave)
    return Workload.of_file(path, jobs, capacity, header, repaired)


def write_parquet(workload: Workload, path: str | Path) -> None:
    """Write a workload as Parquet with its capacity and header in the file's metadata. Raises BridgeError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(workload.jobs, preserve_index=False)
    meta = json.dumps({"capacity": workload.capacity, "header": workload.header}, default=int)
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), _META: meta.encode()})
    with files.open_write(Path(path)) as file:
        pq.write_table(table, file)


def complete(
    table: pd.DataFrame, place: Callable[[int], str], source: str, leave: Collection[str] = ()
) -> tuple[pd.DataFrame, dict[str, Reason]]:
    """Return the table with every SWF column, in SWF order and of the right kind, and what was counted.

    Columns that are missing become -1 (unknown), and so do single empty cells, which are counted. Extra
    columns follow unchanged, those to `leave` are checked only, and counted if no scheduler looks at what
    they say. The table must hold ``job_id``, ``submit``
    and one of ``procs`` and ``req_procs``; it is empty afterwards, for memory's sake. `place`: row number
    (from 0) -> where that row stands. Raises BridgeError: one of those is missing or empty, or a cell is no
    number or, where it must be whole, has a fraction.
    """
    missing = [name for name in REQUIRED if name not in table.columns]
    if "procs" not in table.columns and "req_procs" not in table.columns:
        missing.append("procs (or req_procs)")
    if missing:
        remedy = f"Name the columns as in SWF: {', '.join(SWF_COLUMNS)}."
        raise BridgeError(f"no column {', '.join(missing)}", where=source, remedy=remedy)
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()][0]
        raise BridgeError(f"two columns are named {twice!r}", where=source, remedy="Rename one of them.")
    if table.empty:
        raise BridgeError("the table has no row", where=source, remedy="Check what wrote it.")
    repaired: set[int] = set()
    ignored: dict[str, Reason] = {}
    columns: dict[str, pd.Series] = {}
    for name in SWF_COLUMNS:
        if name not in table.columns:
            if name not in leave:
                columns[name] = pd.Series(np.int64(-1), index=table.index)
            continue
        column = _numbers(table.pop(name), name, place)
        empty = column.isna().to_numpy()
        if name in REQUIRED:
            _refuse(empty, f"{name} is empty", place, "Every job needs it.")
        repaired.update(np.flatnonzero(empty).tolist())
        column = _kind(column.fillna(-1) if empty.any() else column, name, place)
        if name not in leave:
            columns[name] = column
        else:
            ignored |= note_column(name, column, columns["job_id"])
    columns |= {str(name): table.pop(name) for name in list(table.columns)}
    jobs = pd.DataFrame(columns, copy=False)
    return jobs, ignored | tally("repaired", "empty cells set to -1", jobs["job_id"].iloc[sorted(repaired)])


def _numbers(column: pd.Series, name: str, place: Callable[[int], str]) -> pd.Series:
    if is_numeric_dtype(column) and not is_bool_dtype(column):
        return column
    numbers = pd.to_numeric(column, errors="coerce")
    _refuse(
        (numbers.isna() & column.notna()).to_numpy(),
        lambda row: f"{name} is {str(column.iloc[row])[:40]!r}, which is no number",
        place,
        "Mend the cell, or leave it empty if it is unknown.",
    )
    return numbers


def _kind(column: pd.Series, name: str, place: Callable[[int], str]) -> pd.Series:
    values = column.to_numpy(dtype=np.float64)
    _refuse(~np.isfinite(values), f"{name} is infinite", place)
    if column.dtype.kind == "i":
        return column.astype(np.int64)
    if name in FLOAT_COLUMNS and column.dtype.kind != "u":
        return pd.Series(values, index=column.index)
    _refuse(np.abs(values) >= 2.0**63, f"{name} does not fit 64 bits", place)
    fraction = values != np.floor(values)
    _refuse(fraction, lambda row: f"{name} is {values[row]}, but must be a whole number", place)
    return pd.Series(values.astype(np.int64), index=column.index)


def _refuse(
    wrong: npt.NDArray[np.bool_],
    what: str | Callable[[int], str],
    place: Callable[[int], str],
    remedy: str = "Mend the cell.",
) -> None:
    """Refuse the first row that is wrong."""
    if wrong.any():
        row = int(wrong.argmax())
        raise BridgeError(what if isinstance(what, str) else what(row), where=place(row), remedy=remedy)
