"""Reads and writes workloads as CSV and Parquet, columns named as in SWF plus any extra resources."""

import io
import json
import warnings
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bridge import files
from bridge.errors import BridgeError
from bridge.wire.jsontext import loads
from bridge.workload.columns import EXACT, complete
from bridge.workload.swf import note_order
from bridge.workload.swf_header import format_header, parse_capacity, parse_header
from bridge.workload.table import Workload

_META = b"bridge.workload"


def read_csv(path: str | Path) -> Workload:
    """Read a CSV table with a line of column names; compression is seen from the suffix.

    Comment lines before the names may hold the capacity (``# capacity: nodes=128 power=5000``) and the
    header (``# Computer: …``).

    Raises:
        BridgeError: the file is missing, damaged or no table of jobs.
    """
    path = Path(path)
    text = files.read_text(path)
    lines = io.StringIO(text, newline="")
    comments = list(takewhile(lambda line: line.startswith("#"), lines))
    try:
        with warnings.catch_warnings():
            # Too many cells in a row are an error here, not a warning and a silent cut.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = pd.read_csv(
                io.StringIO(text, newline=""),
                skiprows=len(comments),
                index_col=False,
                low_memory=False,
                keep_default_na=False,
                na_values=[""],
                on_bad_lines="error",
                **EXACT,
            )
    except (ValueError, pd.errors.ParserWarning) as error:
        raise BridgeError(
            f"is no CSV table ({str(error).strip().splitlines()[-1]})",
            where=str(path),
            remedy="The first line after comments must name the columns, and rows must have as many cells.",
        ) from error
    header = parse_header(f";{line[1:].rstrip()}" for line in comments)
    stated = parse_capacity(header.pop("capacity", ""), str(path))
    jobs, repaired = complete(table, lambda row: f"{path}:{len(comments) + 2 + row}", str(path))
    return Workload(
        name=files.stem(path),
        jobs=jobs,
        capacity=stated,
        header=header,
        source=str(path),
        tally={**repaired, **note_order(jobs)},
    )


def write_csv(workload: Workload, path: str | Path) -> None:
    """Write a workload as CSV with its capacity and header in comment lines.

    Raises:
        BridgeError: the file cannot be written.
    """
    comments = format_header(workload.header)
    if workload.capacity:
        pairs = " ".join(f"{name}={amount}" for name, amount in workload.capacity.items())
        comments = f"; capacity: {pairs}\n{comments}"
    with files.open_write(Path(path)) as file:
        file.write("".join(f"#{line[1:]}\n" for line in comments.split("\n")[:-1]).encode())
        workload.jobs.to_csv(file, index=False, lineterminator="\n")


def read_parquet(path: str | Path) -> Workload:
    """Read a Parquet table; capacity and header come from its metadata, if `write_parquet` wrote it.

    Raises:
        BridgeError: the file is missing, damaged or no table of jobs.
    """
    path = Path(path)
    table, notes = files.read_parquet(path)
    meta = _meta(notes.get(_META, b"{}"), path)
    jobs, repaired = complete(table, lambda row: f"{path}, row {row + 1}", str(path))
    return Workload(
        name=files.stem(path),
        jobs=jobs,
        capacity=meta["capacity"],
        header=meta["header"],
        source=str(path),
        tally={**repaired, **note_order(jobs)},
    )


def _meta(text: bytes, path: Path) -> dict[str, Any]:
    try:
        meta = loads(text)
        return {
            "capacity": {str(name): int(amount) for name, amount in meta.get("capacity", {}).items()},
            "header": {str(name): str(value) for name, value in meta.get("header", {}).items()},
        }
    except (ValueError, AttributeError, TypeError) as error:
        raise BridgeError(
            "the metadata for capacity and header is damaged", where=str(path), remedy="Write it again."
        ) from error


def write_parquet(workload: Workload, path: str | Path) -> None:
    """Write a workload as Parquet with its capacity and header in the file's metadata.

    Raises:
        BridgeError: the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(workload.jobs, preserve_index=False)
    meta = json.dumps({"capacity": workload.capacity, "header": workload.header}, default=_plain)
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), _META: meta.encode()})
    with files.open_write(Path(path)) as file:
        pq.write_table(table, file)


def _plain(value: object) -> object:
    if isinstance(value, np.integer):
        return int(value)
    raise TypeError(f"{type(value).__name__} cannot be stored")
