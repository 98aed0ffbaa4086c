"""Workloads as tables with named columns: CSV and Parquet, and what makes any table a job table.

Columns are named as in SWF; extra ones are demands for further resources.
"""

import io
import json
import re
import warnings
from collections.abc import Callable, Collection, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from bridge.base import files
from bridge.base.arrays import as_numbers
from bridge.base.errors import BridgeError
from bridge.base.jsontext import loads
from bridge.workload.ids import of_texts
from bridge.workload.ignored import note_column
from bridge.workload.resources import parse_capacity
from bridge.workload.table import (
    FLOAT_COLUMNS,
    SWF_COLUMNS,
    TallyEntry,
    Workload,
    format_header,
    parse_header,
    tally,
)

_META = b"bridge.workload"
#: Option of `pandas.read_csv` for decimals read to the last bit, which pandas 3.1 always does.
EXACT: dict[str, Any] = (
    {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else {"float_precision": "round_trip"}
)
#: Labels of comment lines that are ours, not the log's, with underscores or without.
_OWN = re.compile(r"(capacity|text)_*")
#: What pandas calls a column without a name.
_NAMELESS = re.compile(r"\s*|Unnamed: \d+(\.\d+)?")
#: Columns of names, and SWF's code that numbers them where a table has none.
CODES_OF_NAMES = {"user_name": "user", "account": "group", "qos_name": "queue", "partition_name": "partition"}
#: What no job can do without.
REQUIRED = ("job_id", "submit")


def read_csv(path: str | Path) -> Workload:
    """Read a CSV table with a line of column names; compression is seen from the suffix.

    Comment lines before the names may hold the capacity (``# capacity: nodes=128 power=5000``), the columns
    of text with what an empty cell of them is (``# text: {"site": "", "user_name": null}``), and the header
    (``# Computer: …``). Raises BridgeError: the file is missing, damaged or no table of jobs.
    """
    path = Path(path)
    text = files.read_text(path)
    comments = list(takewhile(lambda line: line.startswith("#"), io.StringIO(text, newline="")))
    header = parse_header(f";{line[1:].rstrip()}" for line in comments)
    stated = parse_capacity(header.pop("capacity", ""), str(path))
    texts = _texts(header)
    header = {_without(label): of for label, of in header.items()}
    rest = "\n" * len(comments) + text[sum(map(len, comments)) :]  # quotes in comments are none
    table = _table(rest, texts, len(comments), path)
    if "job_id" in table and _ambiguous(table["job_id"]):
        table["job_id"] = _table(rest, {"job_id": None}, len(comments), path)["job_id"]
    for name, empty in texts.items():
        if name in table and empty is not None:
            table[name] = table[name].fillna(empty)
    jobs, repaired = complete_columns(table, lambda row: f"{path}:{len(comments) + 2 + row}", str(path))
    return Workload.of_file(path, jobs, stated, header, repaired)


def _table(text: str, texts: Mapping[str, str | None], above: int, path: Path) -> pd.DataFrame:
    how: dict[str, Any] = {"index_col": False, "low_memory": False, "on_bad_lines": "error", **EXACT}
    how |= {"skiprows": above, "keep_default_na": False, "na_values": [""]}
    try:
        with warnings.catch_warnings():
            # Too many cells in a row are an error here, not a warning and a silent cut.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table: pd.DataFrame = pd.read_csv(
                io.StringIO(text, newline=""), dtype=dict.fromkeys(texts, "str"), **how
            )
    except (ValueError, OverflowError, pd.errors.ParserWarning) as error:
        what = f"is no CSV table ({str(error).strip().splitlines()[-1]})"
        remedy = "The first line after comments must name the columns, and rows must have as many cells."
        raise BridgeError(what, where=str(path), remedy=remedy) from error
    return table


def _ambiguous(ids: pd.Series) -> bool:
    """Tell whether ids may have lost what tells them apart: zeros before, or digits beyond 64 bits."""
    kind = ids.dtype.kind
    return ids.dtype == object or kind == "u" or (kind == "i" and bool(ids.duplicated().any()))


def _texts(header: dict[str, str]) -> dict[str, str | None]:
    """Take the columns of text from a header, each with what an empty cell is; none if that is no JSON."""
    try:
        stated = loads(header.get("text", "null"))
    except ValueError:
        return {}
    if not isinstance(stated, dict) or not all(value in ("", None) for value in stated.values()):
        return {}
    del header["text"]
    return stated


def _without(label: str) -> str:
    """Return a label of a log's header as the log has it: with an underscore less if it is one of ours."""
    return label[:-1] if _OWN.fullmatch(label) and label.endswith("_") else label


def write_csv(workload: Workload, path: str | Path) -> None:
    """Write a workload as CSV with its capacity and header in comment lines. Raises BridgeError."""
    pairs = " ".join(f"{name}={amount}" for name, amount in workload.capacity.items())
    jobs = workload.jobs
    texts = {
        str(name): None if jobs[name].isna().any() else ""
        for name in jobs.columns
        if jobs[name].dtype.kind not in "iufb"
    }
    own = ({"capacity": pairs} if pairs else {}) | ({"text": json.dumps(texts)} if texts else {})
    header = {f"{label}_" if _OWN.fullmatch(label) else label: of for label, of in workload.header.items()}
    comments = format_header(own | header)
    with files.open_write(Path(path)) as file:
        file.write("".join(f"#{line[1:]}\n" for line in comments.split("\n")[:-1]).encode())
        jobs.to_csv(file, index=False, lineterminator="\n")


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
    jobs, repaired = complete_columns(table, lambda row: f"{path}, row {row + 1}", str(path), leave)
    return Workload.of_file(path, jobs, capacity, header, repaired)


def write_parquet(workload: Workload, path: str | Path) -> None:
    """Write a workload as Parquet with its capacity and header in the file's metadata. Raises BridgeError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pa.Table.from_pandas(workload.jobs, preserve_index=False)
    except (pa.ArrowException, OverflowError) as error:
        what = f"a column holds values of several kinds ({error.args[-1]})"
        remedy = "Parquet holds one kind a column: leave the column out, or write CSV."
        raise BridgeError(what, where=str(path), remedy=remedy) from error
    meta = json.dumps({"capacity": workload.capacity, "header": workload.header}, default=int)
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), _META: meta.encode()})
    with files.open_write(Path(path)) as file:
        pq.write_table(table, file)


def complete_columns(
    table: pd.DataFrame, place: Callable[[int], str], source: str, leave: Collection[str] = ()
) -> tuple[pd.DataFrame, dict[str, TallyEntry]]:
    """Return the table with every SWF column, in SWF order and of the right kind, and what was counted.

    Columns that are missing become -1 (unknown), and so do single empty cells, which are counted; but codes
    of users, groups, queues and partitions number their names, from 1, where a table has only these. Extra
    columns follow unchanged, those to `leave` are checked only, and counted if no scheduler looks at what
    they say. The table must hold ``job_id``, ``submit``
    and one of ``procs`` and ``req_procs``; it is empty afterwards, for memory's sake. `place`: row number
    (from 0) -> where that row stands. Raises BridgeError: one of those is missing or empty, or a cell is no
    number or, where it must be whole, has a fraction.
    """
    _name(table)
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
    for name, code in CODES_OF_NAMES.items():
        if name in table.columns and code not in table.columns:
            table[code] = _number(table[name])
    repaired: set[int] = set()
    ignored: dict[str, TallyEntry] = {}
    columns: dict[str, pd.Series] = {}
    for name in SWF_COLUMNS:
        if name not in table.columns:
            if name not in leave:
                columns[name] = pd.Series(np.int64(-1), index=table.index)
            continue
        column = table.pop(name)
        if name == "job_id" and (ids := _ids(column, place)) is not None:
            columns[name] = ids
            continue
        column = _numbers(column, name, place)
        empty = column.isna().to_numpy()
        if name in REQUIRED:
            _refuse(empty, f"{name} is empty", place, "Every job needs it.")
        repaired.update(np.flatnonzero(empty).tolist())
        column = _kind(column.fillna(-1) if empty.any() else column, name, place)
        if name not in leave:
            columns[name] = column
        else:
            ignored |= note_column(name, column, columns["job_id"])
    for name in list(table.columns):
        column = table.pop(name)
        if column.dtype == object:
            large = [type(value) is int and abs(value) >= 2**63 for value in column]
            _refuse(np.array(large), f"{name} does not fit 64 bits", place)
        columns[str(name)] = column
    jobs = pd.DataFrame(columns, copy=False)
    return jobs, ignored | tally("repaired", "empty cells set to -1", jobs["job_id"].iloc[sorted(repaired)])


def _number(names: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return names by their numbers, from 1 in order of appearance; -1: there is none."""
    texts = names.fillna("").astype(str)
    places = {text: n for n, text in enumerate(dict.fromkeys(filter(None, texts)), start=1)}
    return texts.map(lambda text: places.get(text, -1)).astype(np.int64)


def _name(table: pd.DataFrame) -> None:
    """Strip blanks around the names of columns, drop an index of pandas, and name what has no name."""
    names = [str(name).strip() for name in table.columns]
    for place, name in enumerate(names):
        if _NAMELESS.fullmatch(name):
            if place == 0 and table.iloc[:, 0].tolist() == list(range(len(table))):
                del table[table.columns[0]]
                return _name(table)
            names[place] = f"x{place + 1}"
    if len(set(names)) == len(names):
        table.columns = pd.Index(names)
    return None


def _ids(column: pd.Series, place: Callable[[int], str]) -> pd.Series | None:
    """Return ids that came as texts; None if they are numbers, as those of most logs."""
    if is_numeric_dtype(column) and not is_bool_dtype(column):
        return None
    values = column.tolist()
    texts = [isinstance(value, str) for value in values]
    if not any(texts):
        return None
    empty = np.array([value is None or value != value or value == "" for value in values])
    _refuse(empty, "job_id is empty", place, "Every job needs it.")
    _refuse(~np.array(texts), "job_id is no text, as others are", place)
    return of_texts(values).set_axis(column.index)


def _numbers(column: pd.Series, name: str, place: Callable[[int], str]) -> pd.Series:
    if is_numeric_dtype(column) and not is_bool_dtype(column):
        return column
    numbers: pd.Series = as_numbers(column)
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
    if wrong.any():
        row = int(wrong.argmax())
        raise BridgeError(what if isinstance(what, str) else what(row), where=place(row), remedy=remedy)
