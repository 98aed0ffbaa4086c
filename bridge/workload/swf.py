"""Reads and writes logs in the Standard Workload Format (SWF), plain or compressed.

Format: D. Feitelson, "The Standard Workload Format", Parallel Workloads Archive; S. Chapin et al.,
"Benchmarks and Standards for the Evaluation of Parallel Job Schedulers", JSSPP 1999.
"""

import csv
import io
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal

import numpy as np
import pandas as pd

from bridge import files
from bridge.errors import BridgeError
from bridge.workload.columns import EXACT
from bridge.workload.table import (
    FLOAT_COLUMNS,
    SWF_COLUMNS,
    Tally,
    Workload,
    capacity_of,
    format_header,
    parse_header,
    tally,
    with_capacity,
)

#: What to do about a line that is no record.
Malformed = Literal["refuse", "drop"]

#: Fields that every record must have: all but the think time, which some old logs lack.
FEWEST = len(SWF_COLUMNS) - 1
#: Bytes that no text file holds.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def read_swf(path: str | Path, malformed: Malformed = "refuse") -> Workload:
    """Read an SWF log; compression (.gz, .bz2, .xz) is seen from the suffix.

    Records keep the file's order. Fields beyond the 18th become extra columns, named by the header field ``;
    ExtensionFields: burst_buffer power`` or else ``x19``, ``x20``, … A line that is no record (too few
    fields, one that is no number) is refused, or dropped and counted in the tally: `malformed`. BridgeError:
    the file is missing, empty, damaged, no SWF log, without a record, or malformed.
    """
    path = Path(path)
    lines, fields = _read_head(path)
    header = parse_header(lines)
    if fields == 0:
        what = "the log has a header but no job record" if header else "the file holds no job record"
        raise BridgeError(what, where=str(path), remedy="Fetch it again, or check what wrote it.")
    counted: Tally = {}
    jobs: pd.DataFrame | None = None
    if fields >= FEWEST:
        with files.open_read(path) as stream:
            jobs = _parse(stream, _names(header, fields, path))
    if jobs is None:
        records, counted = _examined(path, malformed)
        good = b"\n".join(" ".join(cells).encode() for cells in records)
        jobs = _parse(io.BytesIO(good), _names(header, len(records[0]), path))
    if jobs is None:
        raise BridgeError("cannot be read as numbers", where=str(path), remedy="Check the file's content.")
    return Workload.of_file(path, jobs, capacity_of(header, str(path)), header, counted)


def write_swf(workload: Workload, path: str | Path) -> None:
    """Write a workload as SWF, compressed if the suffix says so; `read_swf` gives the same table back."""
    path = Path(path)
    jobs = workload.jobs
    extra = [str(name) for name in jobs.columns if name not in SWF_COLUMNS]
    header = with_capacity(workload.header, workload.capacity)
    header.pop("ExtensionFields", None)
    if extra and extra != _numbered(len(SWF_COLUMNS) + len(extra)):
        header["ExtensionFields"] = " ".join(extra)
    table = jobs.reindex(columns=[*SWF_COLUMNS, *extra], fill_value=-1)
    for name in table.columns:
        if not _finite(table[name], "iuf"):
            what = f"column {name!r} holds something that is no finite number"
            remedy = "SWF holds numbers only: leave the column out, or write CSV or Parquet."
            raise BridgeError(what, where=str(path), remedy=remedy)
    with files.open_write(path) as file:
        file.write(format_header(header).encode())
        table.to_csv(file, sep=" ", header=False, index=False, lineterminator="\n")


def _read_head(path: Path) -> tuple[list[str], int]:
    """Return the header's lines, and how many fields the first record has, 0 without one."""
    lines: list[str] = []
    with files.open_read(path) as stream:
        for number, raw in enumerate(stream, start=1):
            if _CONTROL.search(raw):
                remedy = "SWF is text: check that this is the file you mean."
                raise BridgeError("binary data, not an SWF log", where=f"{path}:{number}", remedy=remedy)
            text = raw.decode("utf-8", errors="replace").strip()
            if text and not text.startswith(";"):
                return lines, len(text.split(";")[0].split())
            if text:
                lines.append(text)
    return lines, 0


def _numbered(fields: int) -> list[str]:
    return [f"x{n}" for n in range(len(SWF_COLUMNS) + 1, fields + 1)]


def _names(header: dict[str, str], fields: int, path: Path) -> list[str]:
    """Return the column names of a record with this many fields."""
    named = header.get("ExtensionFields", "").split()
    extra = max(0, fields - len(SWF_COLUMNS))
    names = [*SWF_COLUMNS[:fields], *named, *_numbered(fields)[len(named) :]]
    if len(named) > extra:
        what = f"the header names {len(named)} extension fields, but records have {extra}"
        remedy = "Mend the line `; ExtensionFields: …` of the header."
        raise BridgeError(what, where=str(path), remedy=remedy)
    if len(set(names)) < len(names):
        remedy = "Give each field of `; ExtensionFields: …` a name of its own."
        raise BridgeError("two columns would have the same name", where=str(path), remedy=remedy)
    return names


def _parse(stream: IO[bytes], names: list[str]) -> pd.DataFrame | None:
    """Parse records at full speed; None if any line is not a plain record of these fields."""
    whole = {n: np.int64 for n, name in enumerate(names) if name in _WHOLE}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.DtypeWarning)
            warnings.simplefilter("error", RuntimeWarning)
            jobs: pd.DataFrame = pd.read_csv(
                stream,
                sep=r"\s+",
                header=None,
                comment=";",
                quoting=csv.QUOTE_NONE,
                dtype=whole,
                na_values=[],
                keep_default_na=False,
                encoding_errors="replace",
                **EXACT,
            )
    except (ValueError, OverflowError, pd.errors.DtypeWarning, RuntimeWarning):
        return None
    # A short line leaves NaN behind; text leaves another dtype; a huge number leaves uint64.
    if len(jobs.columns) != len(names) or not all(_finite(jobs[n], "if") for n in jobs):
        return None
    jobs.columns = pd.Index(names)
    if len(names) < len(SWF_COLUMNS):
        jobs[SWF_COLUMNS[-1]] = np.int64(-1)
    return jobs


def _finite(column: pd.Series, kinds: str) -> bool:
    """Tell whether a column holds numbers of these kinds, none infinite or missing."""
    return column.dtype.kind in kinds and bool(np.isfinite(column.to_numpy()).all())


# Lines one by one: what is wrong with each, and what can be repaired. Slow next to `_parse`, and called only
# once that has given up.

_WHOLE = frozenset(SWF_COLUMNS) - FLOAT_COLUMNS
#: Memory is a mean in some logs and then has a fraction, which is cut off (KB).
_CUT = frozenset({"memory", "req_memory"})
_INT64 = np.iinfo(np.int64)
#: A line of nothing but whole numbers that are surely not too large: nothing to examine.
_PLAIN = re.compile(r"-?\d{1,18}(?: -?\d{1,18})*", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def _examined(path: Path, malformed: Malformed) -> tuple[list[list[str]], Tally]:
    """Return the cells of records, as many of each, and what was dropped (if it may be) or repaired."""
    rows: list[tuple[int, list[str], bool]] = []
    bad: list[tuple[int, str]] = []
    for number, tokens in _tokens(path):
        plain = len(tokens) >= FEWEST and _PLAIN.fullmatch(" ".join(tokens))
        cells, cut, why = (tokens, False, "") if plain else _examine(tokens)
        if why:
            bad.append((number, why))
        else:
            rows.append((number, cells, cut))
    fields = max((len(cells) for _, cells, _ in rows), default=0)
    # Without the think time only if no record has it: otherwise 17 fields are half a line.
    fewest = min(max(fields, FEWEST), len(SWF_COLUMNS))
    bad += [(n, _short(len(cells), fewest)) for n, cells, _ in rows if len(cells) < fewest]
    rows = [row for row in rows if len(row[1]) >= fewest]
    if bad and malformed == "refuse":
        number, why = min(bad)
        more = f" ({len(bad) - 1} more such lines)" if len(bad) > 1 else ""
        remedy = 'Pass --malformed drop (malformed="drop") to leave such lines out, or mend the file.'
        raise BridgeError(f"{why}{more}", where=f"{path}:{number}", remedy=remedy)
    if not rows:
        remedy = "Check that this is an SWF log."
        raise BridgeError("no line is a job record", where=str(path), remedy=remedy)
    cut_off = [int(cells[0]) for _, cells, cut in rows if cut]
    completed = [int(cells[0]) for _, cells, _ in rows if len(cells) < fields]
    return [cells + ["-1"] * (fields - len(cells)) for _, cells, _ in rows], {
        **tally("dropped", "malformed line (examples are line numbers)", sorted(n for n, _ in bad)),
        **tally("repaired", "fraction of a KB of memory cut off", cut_off),
        **tally("repaired", "missing extension fields set to -1", completed),
    }


def _tokens(path: Path) -> Iterator[tuple[int, list[str]]]:
    with files.open_read(path) as stream:
        for number, raw in enumerate(stream, start=1):
            if tokens := raw.decode("utf-8", errors="replace").split(";")[0].split():
                yield number, tokens


def _short(found: int, fewest: int) -> str:
    return f"{found} fields instead of {fewest}: half a line"


def _examine(tokens: list[str]) -> tuple[list[str], bool, str]:
    """Return a record's cells as the fast parser wants them, whether memory was cut, and what is wrong."""
    cells: list[str] = []
    cut = False
    for place, token in enumerate(tokens):
        name = SWF_COLUMNS[place] if place < len(SWF_COLUMNS) else ""
        cell = _number(token, name)
        if cell is None:
            label = f"field {place + 1}" + (f" ({name})" if name else "")
            kind = "whole number" if name in _WHOLE - _CUT else "number"
            return cells, cut, f"{label} is {token[:40]!r}, which is no {kind}"
        cut |= name in _CUT and float(cell) != float(token)
        cells.append(cell)
    # After the tokens, because a word in place of a number says more than a count.
    return cells, cut, "" if len(cells) >= FEWEST else _short(len(cells), len(SWF_COLUMNS))


def _number(token: str, name: str) -> str | None:
    """Return the token of a field as the fast parser wants it, or None if it is no such number."""
    if re.fullmatch(r"[+-]?\d+", token, re.ASCII):
        return token if len(token) <= 300 and _INT64.min <= int(token) <= _INT64.max else None
    if not _DECIMAL.fullmatch(token) or not np.isfinite(value := float(token)):
        return None
    if name not in _WHOLE:
        return token
    return str(int(value)) if abs(value) < 2**53 and (name in _CUT or value.is_integer()) else None
