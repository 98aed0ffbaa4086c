"""Reads and writes logs in the Standard Workload Format (SWF), plain or compressed.

Format: D. Feitelson, "The Standard Workload Format", Parallel Workloads Archive; S. Chapin et al.,
"Benchmarks and Standards for the Evaluation of Parallel Job Schedulers", JSSPP 1999.
"""

import codecs
import csv
import io
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal

import numpy as np
import pandas as pd

from bridge.base import files
from bridge.base.errors import BridgeError
from bridge.workload.columns import EXACT
from bridge.workload.resources import capacity_of, with_capacity
from bridge.workload.table import (
    FLOAT_COLUMNS,
    SWF_COLUMNS,
    Tally,
    Workload,
    format_header,
    parse_header,
    tally,
)

#: What to do about a line that is no record.
Malformed = Literal["refuse", "drop"]

#: Fields that every record must have: all but the think time, which some old logs lack.
FEWEST = len(SWF_COLUMNS) - 1
#: What the fields 19 to 21 are in logs that have just these (JSSPP's form of 2023).
FURTHER = ("gpus", "soft_walltime", "property")
#: Fields that name something: texts are numbered, and kept in a column of their own.
_NAMES = ("user", "group", "executable", "queue", "partition")
#: Bytes that no text file holds.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def read_swf(path: str | Path, malformed: Malformed = "refuse") -> Workload:
    """Read an SWF log; compression (.gz, .bz2, .xz) is seen from the suffix.

    Records keep the file's order. Fields beyond the 18th become extra columns, named by the header field ``;
    ExtensionFields: burst_buffer power`` or else, if they are three, ``gpus``, ``soft_walltime``,
    ``property``, else ``x19``, ``x20``, …; they may be text. Users, groups, executables, queues and
    partitions that are text are numbered, and kept in columns ``user_name``, … Lines that begin with ``#``
    are comments, too. A line that is no record (too few fields, one that is no number) is refused, or dropped
    and counted in the tally: `malformed`. BridgeError: the file is missing, empty, damaged, no SWF log,
    without a record, or malformed.
    """
    path = Path(path)
    lines, fields, above = _read_head(path)
    header = parse_header(lines)
    if fields == 0:
        what = "the log has a header but no job record" if header else "the file holds no job record"
        raise BridgeError(what, where=str(path), remedy="Fetch it again, or check what wrote it.")
    counted: Tally = {}
    jobs: pd.DataFrame | None = None
    if fields >= FEWEST:
        with files.open_read(path, files.MOST_LINE) as stream:
            jobs = _parse(stream, _names(header, fields, path), above)
    if jobs is None:
        records, counted = _examined(path, malformed)
        names = _names(header, len(records[0]), path)
        texts = _take_texts(records, names)
        good = b"\n".join(" ".join(cells).encode() for cells in records)
        jobs = _parse(io.BytesIO(good), names)
        jobs = None if jobs is None else jobs.assign(**texts)
    if jobs is None:
        raise BridgeError("cannot be read as numbers", where=str(path), remedy="Check the file's content.")
    return Workload.of_file(path, jobs, capacity_of(header, str(path)), header, counted)


def left_out(jobs: pd.DataFrame) -> str:
    """Return what a job table loses as SWF, which holds numbers only, as a sentence; empty if nothing."""
    texts = [str(name) for name in jobs.columns if name != "job_id" and jobs[name].dtype.kind not in "iufb"]
    lost = [f"columns of text are left out ({', '.join(texts)})"] if texts else []
    if jobs["job_id"].dtype.kind not in "iufb":
        lost.append("ids that are texts are left out, jobs are numbered from 1 in the file's order")
    return f"SWF holds numbers only: {'; '.join(lost)}" if lost else ""


def write_swf(workload: Workload, path: str | Path) -> None:
    """Write a workload as SWF, compressed if the suffix says so; `read_swf` gives the same numbers back.

    What is text is left out, which a note in the header says (`left_out`).
    """
    from bridge.workload.derive import add_note

    path = Path(path)
    jobs = workload.jobs
    header = with_capacity(workload.header, workload.capacity)
    if note := left_out(jobs):
        header = add_note(header, note)
        kinds = {name: jobs[name].dtype.kind for name in jobs.columns}
        jobs = jobs[[name for name, kind in kinds.items() if kind in "iufb" or name == "job_id"]]
        if kinds["job_id"] not in "iufb":
            jobs = jobs.assign(job_id=np.arange(1, len(jobs) + 1))
    further = [str(name) for name in jobs.columns if name not in SWF_COLUMNS]
    header.pop("ExtensionFields", None)
    extra = _words(further)
    if extra and extra != _unnamed(len(extra)):
        header["ExtensionFields"] = " ".join(extra)
    table = jobs.reindex(columns=[*SWF_COLUMNS, *further], fill_value=-1)
    flags = [name for name in table.columns if table[name].dtype.kind == "b"]
    table = table.astype(dict.fromkeys(flags, np.int64)) if flags else table
    for name in table.columns:
        if not _finite(table[name], "iuf"):
            what = f"column {name!r} holds something that is no finite number"
            remedy = "SWF holds numbers only: leave the column out, or write CSV or Parquet."
            raise BridgeError(what, where=str(path), remedy=remedy)
    with files.open_write(path) as file:
        file.write(format_header(header).encode())
        table.to_csv(file, sep=" ", header=False, index=False, lineterminator="\n")


def _read_head(path: Path) -> tuple[list[str], int, int]:
    """Return the header's lines, how many fields the first record has, 0 without one, and what stands above.

    That is how many lines to skip: none, unless some begin with ``#``.
    """
    lines: list[str] = []
    hashes = False
    with files.open_read(path, files.MOST_LINE) as stream:
        for number, raw in enumerate(stream, start=1):
            if number == 1:
                raw = raw.removeprefix(codecs.BOM_UTF8)  # noqa: PLW2901
            if _CONTROL.search(raw):
                remedy = "SWF is text: check that this is the file you mean."
                raise BridgeError("binary data, not an SWF log", where=f"{path}:{number}", remedy=remedy)
            text = raw.decode("utf-8", errors="replace").strip()
            if text.startswith("#"):
                text, hashes = f";{text[1:]}", True
            if text and not text.startswith(";"):
                _refuse_separated(text, f"{path}:{number}")
                return lines, len(text.split(";")[0].split()), number - 1 if hashes else 0
            if text:
                lines.append(text)
    return lines, 0, 0


def _refuse_separated(text: str, where: str) -> None:
    for sign, name in ((";", "semicolons"), (",", "commas")):
        if text.count(sign) >= FEWEST - 1 and len(text.split()) < FEWEST:
            what = f"its fields are separated by {name}, as in a CSV table; those of SWF are by blanks"
            remedy = f"Replace them: tr '{sign}' ' ' < FILE > NEW.swf; or name the columns in a .csv file."
            raise BridgeError(what, where=where, remedy=remedy)


def _unnamed(further: int) -> list[str]:
    """Return names for fields beyond the 18th that the header does not name."""
    last = len(SWF_COLUMNS)
    return list(FURTHER) if further == len(FURTHER) else [f"x{last + n}" for n in range(1, further + 1)]


def _words(names: list[str]) -> list[str]:
    """Return names of which each is one word, and one of its own; a nameless field is x and its number."""
    words: list[str] = []
    for number, name in enumerate(names, start=len(SWF_COLUMNS) + 1):
        word = re.sub(r"[\s\x00-\x1f\x7f]+", "_", name.strip()) or f"x{number}"
        others = {*words, *SWF_COLUMNS, *(other for other in names if other != name)}
        words.append(word if word not in others else f"{word}_{number}")
    return words


def _names(header: dict[str, str], fields: int, path: Path) -> list[str]:
    named = header.get("ExtensionFields", "").split()
    extra = max(0, fields - len(SWF_COLUMNS))
    unnamed = [f"x{n}" for n in range(len(SWF_COLUMNS) + 1, fields + 1)] if named else _unnamed(extra)
    names = [*SWF_COLUMNS[:fields], *named, *unnamed[len(named) :]]
    if len(named) > extra:
        what = f"the header names {len(named)} extension fields, but records have {extra}"
        remedy = "Mend the line `; ExtensionFields: …` of the header."
        raise BridgeError(what, where=str(path), remedy=remedy)
    if len(set(names)) < len(names):
        remedy = "Give each field of `; ExtensionFields: …` a name of its own."
        raise BridgeError("two columns would have the same name", where=str(path), remedy=remedy)
    return names


def _parse(stream: IO[bytes], names: list[str], above: int = 0) -> pd.DataFrame | None:
    """Parse records at full speed, without lines `above`; None if one is no plain record of these fields."""
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
                skiprows=above,
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
    if any(len(cells) < fields for _, cells, _ in rows):  # text that not every record has is no column
        bad += [(n, why) for n, cells, _ in rows if (why := _text_beyond(cells))]
        rows = [row for row in rows if not _text_beyond(row[1])]
        fields = max((len(cells) for _, cells, _ in rows), default=0)
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
    with files.open_read(path, files.MOST_LINE) as stream:
        for number, raw in enumerate(stream, start=1):
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8", errors="replace").split(";")[0]
            if (tokens := text.split()) and not tokens[0].startswith("#"):
                yield number, tokens


def _take_texts(records: list[list[str]], names: list[str]) -> dict[str, list[str]]:
    """Put numbers in the place of texts; returns the columns of texts, by name.

    Where something is named, texts get the numbers behind the largest, in order of appearance.
    """
    texts_by_column: dict[str, list[str]] = {}
    for place, name in enumerate(names):
        if name in SWF_COLUMNS and name not in _NAMES:
            continue
        cells = [record[place] for record in records]
        texts = dict.fromkeys(cell for cell in cells if not _DECIMAL.fullmatch(cell))
        if not texts:
            continue
        texts_by_column[f"{name}_name" if name in _NAMES else name] = [
            "" if cell == "-1" else cell for cell in cells
        ]
        largest = max((int(float(cell)) for cell in cells if cell not in texts), default=0)
        numbers = {text: str(max(largest, 0) + k) for k, text in enumerate(texts, start=1)}
        for record in records:
            record[place] = numbers.get(record[place], record[place])
    return texts_by_column


def _short(count: int, fewest: int) -> str:
    return f"{count} fields instead of {fewest}: half a line"


def _examine(tokens: list[str]) -> tuple[list[str], bool, str]:
    """Return a record's cells as the fast parser wants them, whether memory was cut, and what is wrong."""
    cells: list[str] = []
    cut = False
    for place, token in enumerate(tokens):
        name = SWF_COLUMNS[place] if place < len(SWF_COLUMNS) else ""
        cell = _number(token, name)
        if cell is None and (name in _NAMES or not name) and not _DECIMAL.fullmatch(token):
            cell = token
        if cell is None:
            label = f"field {place + 1}" + (f" ({name})" if name else "")
            kind = "whole number" if name in _WHOLE - _CUT else "number"
            return cells, cut, f"{label} is {token[:40]!r}, which is no {kind}"
        cut |= name in _CUT and float(cell) != float(token)
        cells.append(cell)
    # After the tokens, because a word in place of a number says more than a count.
    return cells, cut, "" if len(cells) >= FEWEST else _short(len(cells), len(SWF_COLUMNS))


def _text_beyond(cells: list[str]) -> str:
    """Return what is wrong with the first text beyond the 18th field, where that may be none."""
    texts = (n for n, cell in enumerate(cells) if n >= len(SWF_COLUMNS) and not _DECIMAL.fullmatch(cell))
    place = next(texts, None)
    return "" if place is None else f"field {place + 1} is {cells[place][:40]!r}, which is no number"


def _number(token: str, name: str) -> str | None:
    """Return the token of a field as the fast parser wants it, or None if it is no such number."""
    if re.fullmatch(r"[+-]?\d+", token, re.ASCII):
        return token if len(token) <= 300 and _INT64.min <= int(token) <= _INT64.max else None
    if not _DECIMAL.fullmatch(token) or not np.isfinite(value := float(token)):
        return None
    if name not in _WHOLE:
        return token
    return str(int(value)) if abs(value) < 2**53 and (name in _CUT or value.is_integer()) else None
