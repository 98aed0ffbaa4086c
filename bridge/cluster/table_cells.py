"""Tables of any columns, CSV or Parquet, read cell by cell as a column map says.

Every cell that is not what the map says is refused with its line; no column that the table has is left out in
silence.
"""

import io
import warnings
from collections.abc import Callable, Mapping
from datetime import tzinfo
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bridge.base import files
from bridge.base.arrays import Flags, Floats, as_numbers
from bridge.base.errors import BridgeError
from bridge.cluster import slurm_values as values
from bridge.cluster.table_map import MappedColumn, OpenedMap

#: Texts that are empty cells in any table.
NOTHING = frozenset({"", "nan", "none", "null", "(null)", "n/a", "na", "nat", "unknown"})
_MIB = 1 << 20


class MappedTable:
    """A table's n rows, and a map that says what its columns hold; `zone`: of dates without one."""

    def __init__(self, path: Path, opened: OpenedMap, zone: tzinfo) -> None:
        self.path, self.opened, self.zone = path, opened, zone
        self.is_text = not path.name.lower().endswith(".parquet")
        self.frame = self._of_text() if self.is_text else files.read_parquet(path)[0]
        self.frame.columns = pd.Index([str(name).strip() for name in self.frame.columns])
        if not self.frame.columns.is_unique:
            twice = self.frame.columns[self.frame.columns.duplicated()][0]
            raise BridgeError(f"two columns are named {twice!r}", where=str(path), remedy="Rename one.")
        if self.frame.empty:
            raise BridgeError("the table has no row", where=str(path), remedy="Check what wrote it.")

    def __len__(self) -> int:
        return len(self.frame)

    def _of_text(self) -> pd.DataFrame:
        names = self.opened.map.names
        how: dict[str, Any] = {"header": None, "names": list(names)} if names else {}
        text = files.read_text(self.path)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)
                frame: pd.DataFrame = pd.read_csv(
                    io.StringIO(text, newline=""),
                    sep=self.opened.map.delimiter,
                    dtype="str",
                    index_col=False,
                    keep_default_na=False,
                    na_filter=False,
                    **how,
                )
        except (ValueError, OverflowError, pd.errors.ParserWarning) as error:
            what = f"is no such table ({str(error).strip().splitlines()[-1]})"
            remedy = (
                "Its first line names the columns, unless the map's `names` do; `delimiter` divides cells."
            )
            raise BridgeError(what, where=str(self.path), remedy=remedy) from error
        return frame

    def place(self, row: int) -> str:
        if not self.is_text:
            return f"{self.path}, row {row + 1}"
        return f"{self.path}:{row + (1 if self.opened.map.names else 2)}"

    def unused(self, columns: Mapping[str, MappedColumn]) -> list[str]:
        """Return the table's columns that neither these nor the map's `ignore` name; an index counts not."""
        read = {name for one in columns.values() for name in one.sources} | {*self.opened.map.ignore}
        rest = [str(name) for name in self.frame.columns if name not in read]
        if rest and (rest[0] == "" or rest[0].startswith("Unnamed: ")):
            first = as_numbers(self.frame[rest[0]])
            if first.notna().all() and (np.diff(first.to_numpy(np.float64)) == 1).all():
                rest = rest[1:]  # the index of pandas
        return rest

    def has(self, one: MappedColumn, path: str) -> bool:
        """Tell whether the table has what a column is made of; BridgeError: it lacks it, and must not."""
        missing = [name for name in one.sources if name not in self.frame.columns]
        if missing and not one.optional:
            there = ", ".join(map(str, self.frame.columns))
            remedy = f"Mend the map ({self.opened.lines.place(path)}). The table's columns: {there}."
            raise BridgeError(f"has no column {missing[0]!r}", where=str(self.path), remedy=remedy)
        return not missing

    def texts(self, one: MappedColumn) -> list[str]:
        """Return a column as texts [n]; empty cells are "" unless the map says otherwise."""
        if not one.column:
            return [_text_of(one.value)] * len(self)
        cells, empty = self._cells(one)
        nothing = _text_of(one.empty) if one.empty is not None else ""
        texts = [nothing if gone else cell for cell, gone in zip(cells, empty.tolist(), strict=True)]
        if not one.codes:
            return texts
        pairs = enumerate(zip(texts, empty.tolist(), strict=True))
        return [cell if gone else _text_of(self._looked_up(one, cell, row)) for row, (cell, gone) in pairs]

    def numbers(self, one: MappedColumn, form: str) -> Floats:
        """Return a column as numbers [n], NaN where nothing is said; `form`: unless the map states one."""
        if not one.column:
            return np.full(len(self), _number_of(one.value))
        result = self._read(one, one.form or form)
        for other, divides in ((one.times, False), (one.per, True)):
            if other:
                factor = self._read(MappedColumn(column=other), "number")
                self._refuse(divides & (factor == 0), f"{other} is 0, and divides")
                result = result / factor if divides else result * factor
        result = result * one.scale
        if one.round == "up":
            result = np.ceil(result - 1e-9)
        elif one.round == "nearest":
            result = np.rint(result)
        if one.empty is not None:
            result = np.where(np.isnan(result), _number_of(one.empty), result)
        return np.asarray(result, np.float64)

    def _cells(self, one: MappedColumn) -> tuple[list[str], Flags]:
        """Return cells as texts [n], and which of them are empty."""
        column = self.frame[one.column]
        cells = [_cell_text(cell) for cell in column.tolist()]
        if one.key:
            cells = [_behind(cell, one.key) for cell in cells]
        nothing = NOTHING | {text.lower() for text in one.nothing}
        return cells, np.array([cell.lower() in nothing for cell in cells], np.bool_)

    def _read(self, one: MappedColumn, form: str) -> Floats:
        """Return one of the table's columns as numbers [n], NaN where a cell is empty."""
        column = self.frame[one.column]
        if column.dtype.kind in "Mm":
            return _of_dates(column)
        if one.codes or one.key or form == "memory":
            return self._read_one_by_one(one, form)
        numbers = column if column.dtype.kind in "iuf" else as_numbers(column)
        result: Floats = numbers.to_numpy(np.float64, copy=True)
        if one.nothing:
            result[[_cell_text(cell) in one.nothing for cell in column.tolist()]] = np.nan
        for row in np.flatnonzero(np.isnan(result)).tolist():
            cell = _cell_text(column.iloc[row])
            if cell.lower() not in NOTHING and cell not in one.nothing:
                result[row] = self._parsed(one, form, cell, row)
        self._refuse(np.isinf(result), lambda row: f"{one.column} is {column.iloc[row]}, which is infinite")
        return result

    def _read_one_by_one(self, one: MappedColumn, form: str) -> Floats:
        cells, empty = self._cells(one)
        result = np.full(len(cells), np.nan)
        for row in np.flatnonzero(~empty).tolist():
            cell = cells[row]
            if one.codes:
                result[row] = _number_of(self._looked_up(one, cell, row))
            else:
                result[row] = self._parsed(one, form, cell, row)
        return result

    def _parsed(self, one: MappedColumn, form: str, cell: str, row: int) -> float:
        try:
            return _PARSERS.get(form, _number)(cell, self.zone)
        except (ValueError, OverflowError) as error:
            what = f"{one.column} cannot be read: {error}"
            remedy = "Mend the cell, or the map: `form` says how cells are written, `nothing` what is empty."
            raise BridgeError(what, where=self.place(row), remedy=remedy) from error

    def _looked_up(self, one: MappedColumn, cell: str, row: int) -> float | str:
        if cell in one.codes:
            return one.codes[cell]
        if one.otherwise is None:
            what = f"{one.column} is {cell[:40]!r}, which the map does not know"
            remedy = "Add it to the map's `codes`, or give `otherwise`."
            raise BridgeError(what, where=self.place(row), remedy=remedy)
        return one.otherwise

    def _refuse(self, wrong: Flags, what: str | Callable[[int], str]) -> None:
        if np.any(wrong):
            row = int(np.argmax(wrong))
            raise BridgeError(
                what if isinstance(what, str) else what(row),
                where=self.place(row),
                remedy="Mend the cell, or the map.",
            )


def _cell_text(cell: Any) -> str:
    if isinstance(cell, str):
        return cell.strip()
    if cell is None or cell != cell:
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _text_of(value: float | str | None) -> str:
    return _cell_text(value)


def _number_of(value: float | str | None) -> float:
    try:
        return float(value if value is not None else "nan")
    except ValueError as error:
        raise BridgeError(f"{value!r} stands for a number in the map", remedy="Write a number.") from error


def _behind(cell: str, key: str) -> str:
    for pair in cell.split(","):
        name, equals, value = pair.partition("=")
        if equals and name.strip() == key:
            return value.strip()
    return ""


def _of_dates(column: "pd.Series[Any]") -> Floats:
    unit = "datetime64[us]" if column.dtype.kind == "M" else "timedelta64[us]"
    if column.dtype.kind == "M" and getattr(column.dt, "tz", None) is not None:
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    result = column.to_numpy(unit).astype(np.int64) / 1e6
    return np.where(column.isna().to_numpy(), np.nan, result)


def _number(cell: str, _zone: tzinfo) -> float:
    try:
        number = float(cell)
    except ValueError as error:
        raise ValueError(f"{cell[:40]!r} is no number") from error
    if not np.isfinite(number):
        raise ValueError(f"{cell[:40]!r} is no finite number")
    return number


def _time(cell: str, zone: tzinfo) -> float:
    from datetime import datetime

    try:
        date = datetime.fromisoformat(cell)
    except ValueError as error:
        raise ValueError(f"{cell[:40]!r} is no time") from error
    return (date if date.tzinfo is not None else date.replace(tzinfo=zone)).timestamp()


def _duration(cell: str, _zone: tzinfo) -> float:
    text, days = cell, 0
    if " day" in cell:  # as pandas and Python write it: 1 days 02:00:00, 1 day, 2:00:00
        count, _, text = cell.partition(" day")
        text = text.removeprefix("s").lstrip(", ") or "0"
        if not count.isdecimal() or len(count) > 9:
            raise ValueError(f"{cell[:40]!r} is no duration")
        days = int(count)
    whole, _, fraction = text.partition(".")
    rest = float(f"0.{fraction}") if fraction.isdecimal() else 0.0
    return 86_400 * days + values.duration(whole) + rest


def _memory(cell: str, _zone: tzinfo) -> float:
    return values.amount(cell.removesuffix("B").removesuffix("i") or cell, 1, 1) / _MIB


_PARSERS: Mapping[str, Callable[[str, tzinfo], float]] = {
    "time": _time,
    "duration": _duration,
    "memory": _memory,
}
