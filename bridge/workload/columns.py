"""Brings a table from any source into the form of a workload's job table."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from bridge.errors import BridgeError
from bridge.workload.table import FLOAT_COLUMNS, SWF_COLUMNS, Reason, tally

#: Option of `pandas.read_csv` for decimals read to the last bit, which pandas 3.1 always does.
EXACT: dict[str, Any] = (
    {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else {"float_precision": "round_trip"}
)
#: What no job can do without.
REQUIRED = ("job_id", "submit")


def complete(
    table: pd.DataFrame, place: Callable[[int], str], source: str
) -> tuple[pd.DataFrame, dict[str, Reason]]:
    """Return the table with every SWF column, in SWF order and of the right kind, and what was repaired.

    Columns that are missing become -1 (unknown), and so do single empty cells, which are counted.
    Extra columns follow unchanged.

    Args:
        table: columns named as in ``SWF_COLUMNS``; must hold ``job_id``, ``submit`` and one of
            ``procs`` and ``req_procs``.
        place: row number (from 0) -> where that row stands, for messages.
        source: where the table stands, for messages.

    Raises:
        BridgeError: a required column is missing or has an empty cell, or a cell is no number or,
            where it must be whole, has a fraction.
    """
    missing = [name for name in REQUIRED if name not in table.columns]
    if "procs" not in table.columns and "req_procs" not in table.columns:
        missing.append("procs (or req_procs)")
    if missing:
        raise BridgeError(
            f"no column {', '.join(missing)}",
            where=source,
            remedy=f"Name the columns as in SWF: {', '.join(SWF_COLUMNS)}.",
        )
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()][0]
        raise BridgeError(f"two columns are named {twice!r}", where=source, remedy="Rename one of them.")
    if table.empty:
        raise BridgeError("the table has no row", where=source, remedy="Check what wrote it.")
    repaired: set[int] = set()
    columns: dict[str, pd.Series] = {}
    for name in SWF_COLUMNS:
        if name not in table.columns:
            columns[name] = pd.Series(np.int64(-1), index=table.index)
            continue
        column = _numbers(table[name], name, place)
        empty = column.isna().to_numpy()
        if empty.any():
            if name in REQUIRED:
                raise BridgeError(
                    f"{name} is empty", where=place(int(empty.argmax())), remedy="Every job needs it."
                )
            repaired.update(np.flatnonzero(empty).tolist())
            column = column.fillna(-1)
        columns[name] = _kind(column, name, place)
    for name in table.columns:
        if name not in columns:
            columns[str(name)] = table[name]
    jobs = pd.DataFrame(columns)
    return jobs, tally("repaired", "empty cells set to -1", jobs["job_id"].iloc[sorted(repaired)])


def _numbers(column: pd.Series, name: str, place: Callable[[int], str]) -> pd.Series:
    if is_numeric_dtype(column) and not is_bool_dtype(column):
        return column
    numbers = pd.to_numeric(column, errors="coerce")
    wrong = (numbers.isna() & column.notna()).to_numpy()
    if wrong.any():
        row = int(wrong.argmax())
        raise BridgeError(
            f"{name} is {str(column.iloc[row])[:40]!r}, which is no number",
            where=place(row),
            remedy="Mend the cell, or leave it empty if it is unknown.",
        )
    return numbers


def _kind(column: pd.Series, name: str, place: Callable[[int], str]) -> pd.Series:
    if not np.isfinite(column.to_numpy(dtype=np.float64)).all():
        row = int((~np.isfinite(column.to_numpy(dtype=np.float64))).argmax())
        raise BridgeError(f"{name} is infinite", where=place(row), remedy="Mend the cell.")
    if column.dtype.kind == "i":
        return column.astype(np.int64)
    values = column.to_numpy(dtype=np.float64)
    if name in FLOAT_COLUMNS and column.dtype.kind != "u":
        return pd.Series(values, index=column.index)
    if (np.abs(values) >= 2.0**63).any():
        row = int((np.abs(values) >= 2.0**63).argmax())
        raise BridgeError(f"{name} does not fit 64 bits", where=place(row), remedy="Mend the cell.")
    fraction = values != np.floor(values)
    if fraction.any():
        row = int(fraction.argmax())
        raise BridgeError(
            f"{name} is {values[row]}, but must be a whole number", where=place(row), remedy="Mend the cell."
        )
    return pd.Series(values.astype(np.int64), index=column.index)
