"""The text of a jobs CSV, built column by column in Arrow: a row at a time in Python is ten times slower."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bridge.judge.jobs import INT_COLUMNS, JOBS_COLUMNS, TEXT_COLUMNS

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

#: Rows turned into text at a time: keeps memory flat, and Arrow's text columns below 2 GiB.
CHUNK = 16_384
WORKERS = min(2, os.cpu_count() or 1)


def jobs_csv(jobs: "pd.DataFrame") -> Iterator[bytes]:
    """Yield the rows of ``jobs`` (no header) as Batsim writes them: ``%.6f`` floats, metadata quoted.

    Outcome columns that are NaN (rejected jobs), and every unknown in such a row, become empty fields.
    """
    starts = range(0, len(jobs), CHUNK)
    with ThreadPoolExecutor(WORKERS) as pool:
        for k in range(0, len(starts), WORKERS):  # no more text at a time than there are workers
            parts = [jobs.iloc[start : start + CHUNK] for start in starts[k : k + WORKERS]]
            yield from pool.map(_chunk, parts)


def _chunk(jobs: "pd.DataFrame") -> bytes:
    rejected = (jobs["final_state"] == "REJECTED").to_numpy()
    columns = []
    for name in JOBS_COLUMNS:
        if name in TEXT_COLUMNS:
            columns.append(_text(jobs[name], always_quoted=name == "metadata"))
        elif name in INT_COLUMNS:
            columns.append(pc.cast(pa.array(jobs[name].to_numpy(np.int64)), pa.string()))
        else:
            values = jobs[name].to_numpy(np.float64)
            # Batsim leaves the energy of a rejected job empty, not -1.
            hidden = rejected if name == "consumed_energy" else None
            columns.append(fixed_six(values, hidden))
    columns[-1] = pc.binary_join_element_wise(columns[-1], "\n", "")
    lines = pc.binary_join_element_wise(*columns, ",", null_handling="replace", null_replacement="")
    _, offsets, data = lines.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)
    return memoryview(data)[bounds[lines.offset] : bounds[lines.offset + len(lines)]].tobytes()


def fixed_six(values: "NDArray[np.float64]", hidden: "NDArray[np.bool_] | None" = None) -> Any:
    """Return an Arrow text array of ``values`` as ``%.6f``; NaN and ``hidden`` values become null."""
    null = np.isnan(values) if hidden is None else np.isnan(values) | hidden
    known = np.where(null, 0.0, values)
    if not np.all(np.abs(known) < 9e12):  # beyond int64 microseconds, or infinite
        return pa.array([None if n else f"{v:.6f}" for n, v in zip(null, values, strict=True)], pa.string())
    micros = np.rint(known * 1e6).astype(np.int64)
    whole, rest = np.divmod(np.abs(micros), 1_000_000)
    mask = null if null.any() else None
    text = pc.cast(pa.array(whole, mask=mask), pa.string())
    negative = micros < 0
    if negative.any():
        text = pc.binary_join_element_wise(pa.array(np.where(negative, "-", "")), text, "")
    if not rest.any():
        return pc.binary_join_element_wise(text, pa.scalar("000000"), ".")
    digits = pc.utf8_lpad(pc.cast(pa.array(rest), pa.string()), 6, "0")
    return pc.binary_join_element_wise(text, digits, ".")


def _text(column: "pd.Series[Any]", *, always_quoted: bool) -> Any:
    text = pa.array(column, pa.string(), from_pandas=True)
    if isinstance(text, pa.ChunkedArray):
        text = text.combine_chunks()
    text = pc.fill_null(text, "")
    special = pc.match_substring_regex(text, '[",\r\n]')
    any_special = pc.any(special).as_py()
    if not (always_quoted or any_special):
        return text
    doubled = pc.replace_substring(text, '"', '""') if any_special else text
    quoted = pc.binary_join_element_wise(pa.scalar('"'), doubled, pa.scalar('"'), "")
    return quoted if always_quoted else pc.if_else(special, quoted, text)
