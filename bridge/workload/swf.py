"""Reads and writes logs in the Standard Workload Format (SWF), plain or compressed.

Format: D. Feitelson, "The Standard Workload Format", Parallel Workloads Archive; S. Chapin et al.,
"Benchmarks and Standards for the Evaluation of Parallel Job Schedulers", JSSPP 1999.
"""

import csv
import io
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd

from bridge import files
from bridge.errors import BridgeError
from bridge.workload.columns import EXACT
from bridge.workload.swf_header import capacity_of, format_header, parse_header, with_capacity
from bridge.workload.swf_lines import FEWEST, Lines, Malformed
from bridge.workload.table import FLOAT_COLUMNS, SWF_COLUMNS, Tally, Workload, tally

#: Bytes that no text file holds.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def read_swf(path: str | Path, malformed: Malformed = "refuse") -> Workload:
    """Read an SWF log; compression (.gz, .bz2, .xz) is seen from the suffix.

    Records keep the file's order. Fields beyond the 18th become extra columns, named by the header
    field ``; ExtensionFields: burst_buffer power`` or else ``x19``, ``x20``, …

    Args:
        path: the log.
        malformed: what to do about a line that is no record (too few fields, a field that is no
            number): refuse the log, or drop the line and count it in the tally.

    Raises:
        BridgeError: the file is missing, empty, damaged, no SWF log, without a record, or malformed.
    """
    path = Path(path)
    head = _read_head(path)
    header = parse_header(head.lines)
    if head.fields == 0:
        raise BridgeError(
            "the log has a header but no job record" if header else "the file holds no job record",
            where=str(path),
            remedy="Fetch it again, or check what wrote it.",
        )
    counted: Tally = {}
    jobs: pd.DataFrame | None = None
    if head.fields >= FEWEST:
        with files.open_read(path) as stream:
            jobs = _parse(stream, head.fields, _names(header, head.fields, path))
    if jobs is None:
        lines = Lines(path)
        counted = lines.settle(malformed)
        jobs = _parse(io.BytesIO(b"\n".join(lines.good)), lines.fields, _names(header, lines.fields, path))
        if jobs is None:
            raise BridgeError(
                "cannot be read as numbers", where=str(path), remedy="Check the file's content."
            )
    return Workload(
        name=files.stem(path),
        jobs=jobs,
        capacity=capacity_of(header, str(path)),
        header=header,
        source=str(path),
        tally={**counted, **note_order(jobs)},
    )


def write_swf(workload: Workload, path: str | Path) -> None:
    """Write a workload as SWF, compressed if the suffix says so; `read_swf` gives the same table back.

    Raises:
        BridgeError: the file cannot be written, or a column holds what SWF cannot state.
    """
    path = Path(path)
    jobs = workload.jobs
    extra = [str(name) for name in jobs.columns if name not in SWF_COLUMNS]
    header = with_capacity(workload.header, workload.capacity)
    header.pop("ExtensionFields", None)
    if extra and extra != _numbered(len(SWF_COLUMNS) + len(extra)):
        header["ExtensionFields"] = " ".join(extra)
    table = jobs.reindex(columns=[*SWF_COLUMNS, *extra], fill_value=-1)
    for name in table.columns:
        if table[name].dtype.kind not in "iuf" or (
            table[name].dtype.kind == "f" and not np.isfinite(table[name].to_numpy()).all()
        ):
            raise BridgeError(
                f"column {name!r} holds something that is no finite number",
                where=str(path),
                remedy="SWF holds numbers only: leave the column out, or write CSV or Parquet.",
            )
    with files.open_write(path) as file:
        file.write(format_header(header).encode())
        table.to_csv(file, sep=" ", header=False, index=False, lineterminator="\n")


def note_order(jobs: pd.DataFrame) -> Tally:
    """Count records that stand after a later submission, and ids that are used again."""
    submit, ids = jobs["submit"].to_numpy(), jobs["job_id"]
    late = np.flatnonzero(submit[1:] < np.maximum.accumulate(submit)[:-1]) + 1
    noted = tally("noted", "submitted before a record above it", ids.to_numpy()[late].tolist())
    if not ids.is_unique:
        noted |= tally("noted", "job id used again", ids[ids.duplicated()].tolist())
    return noted


@dataclass(frozen=True)
class _Head:
    """What stands before the second record: the header's lines, and how many fields a record has."""

    lines: tuple[str, ...]
    fields: int


def _read_head(path: Path) -> _Head:
    lines: list[str] = []
    with files.open_read(path) as stream:
        for number, raw in enumerate(stream, start=1):
            if _CONTROL.search(raw):
                raise BridgeError(
                    "binary data, not an SWF log",
                    where=f"{path}:{number}",
                    remedy="SWF is text: check that this is the file you mean.",
                )
            text = raw.decode("utf-8", errors="replace").strip()
            if text and not text.startswith(";"):
                return _Head(tuple(lines), len(text.split(";")[0].split()))
            if text:
                lines.append(text)
    return _Head(tuple(lines), 0)


def _numbered(fields: int) -> list[str]:
    return [f"x{n}" for n in range(len(SWF_COLUMNS) + 1, fields + 1)]


def _names(header: dict[str, str], fields: int, path: Path) -> list[str]:
    """Return the column names of a record with this many fields."""
    named = header.get("ExtensionFields", "").split()
    extra = max(0, fields - len(SWF_COLUMNS))
    if len(named) > extra:
        raise BridgeError(
            f"the header names {len(named)} extension fields, but records have {extra}",
            where=str(path),
            remedy="Mend the line `; ExtensionFields: …` of the header.",
        )
    names = [*SWF_COLUMNS[:fields], *named, *_numbered(fields)[len(named) :]]
    if len(set(names)) < len(names):
        raise BridgeError(
            "two columns would have the same name",
            where=str(path),
            remedy="Give each field of `; ExtensionFields: …` a name of its own.",
        )
    return names


def _parse(stream: IO[bytes], fields: int, names: list[str]) -> pd.DataFrame | None:
    """Parse records at full speed; None if any line is not a plain record of this many fields."""
    whole = {n: np.int64 for n, name in enumerate(names[: len(SWF_COLUMNS)]) if name not in FLOAT_COLUMNS}
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
    if len(jobs.columns) != fields:
        return None
    for column in jobs:
        kind = jobs[column].dtype.kind
        # A short line leaves NaN behind; text leaves another dtype; a huge number leaves uint64.
        if kind not in "if" or (kind == "f" and not np.isfinite(jobs[column].to_numpy()).all()):
            return None
    jobs.columns = pd.Index(names)
    if fields < len(SWF_COLUMNS):
        jobs[SWF_COLUMNS[-1]] = np.int64(-1)
    return jobs
