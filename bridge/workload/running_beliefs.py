"""What is believed of running jobs as they go on: a Parquet file of job, after and total, in seconds.

A job that has run for ``after`` is believed from then on to take ``total`` in all. ``after`` 0 is what is
believed before it runs. The file's metadata say whether the series behind it are synthetic.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from bridge.base.arrays import Floats, Ints
from bridge.base.errors import BridgeError
from bridge.base.files import atomic_write

#: Columns of the file.
COLUMNS = ("job", "after", "total")
_SYNTHETIC = b"bridge.synthetic"
_MICRO = 1_000_000
#: Longest believed length, seconds: sums of a few stay within 64 bits.
_LONGEST = 1e12
_REMEDY = "`bridge predict LOG --model series --series FILE` writes one."


@dataclass(frozen=True)
class RunningBeliefs:
    """Beliefs about n jobs, by place; those of job j are ``first[j]:first[j + 1]``. Times in microseconds.

    Attributes:
        first: [n + 1].
        after: [m] ascending for each job.
        total: [m] above `after`.
        synthetic: the series that they come from were made from true run times.
    """

    first: Ints
    after: Ints
    total: Ints
    synthetic: bool = False

    def __len__(self) -> int:
        return len(self.first) - 1

    def before_start(self, request: Ints) -> Ints:
        """Return what is believed before each job runs: [n]; its request where nothing is."""
        believed = request.copy()
        jobs = np.flatnonzero(self.first[:-1] < self.first[1:])
        jobs = jobs[self.after[self.first[jobs]] == 0]
        believed[jobs] = self.total[self.first[jobs]]
        return believed


def write_beliefs(path: Path, ids: Sequence[object], beliefs: RunningBeliefs) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = np.repeat(np.asarray([str(ident) for ident in ids], object), np.diff(beliefs.first))
    columns = {"job": names.tolist(), "after": beliefs.after / _MICRO, "total": beliefs.total / _MICRO}
    table = pa.table(columns).replace_schema_metadata({_SYNTHETIC: str(int(beliefs.synthetic)).encode()})
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as out:
        pq.write_table(table, out)


def read_beliefs(path: Path, ids: Sequence[object]) -> RunningBeliefs:
    """Read the beliefs about jobs of these ids [n]; a job that is not named has none.

    BridgeError: no such file, or not one of beliefs.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    where = str(path)
    try:
        read = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise BridgeError(
            f"cannot be read as Parquet ({type(error).__name__})", where=where, remedy=_REMEDY
        ) from None
    if missing := [name for name in COLUMNS if name not in read.column_names]:
        raise BridgeError(f"has no column {missing[0]!r}", where=where, remedy=_REMEDY)
    table = read.select(list(COLUMNS)).to_pandas()
    numbers = np.column_stack([_seconds(table[name], name, where) for name in COLUMNS[1:]])
    places = {str(ident): place for place, ident in enumerate(ids)}
    place = table["job"].map(lambda job: places.get(str(job), -1)).to_numpy(np.int64)
    kept = np.flatnonzero(place >= 0)
    if not len(kept):
        raise BridgeError("names none of the jobs", where=where, remedy="Take the beliefs of this very log.")
    order = kept[np.lexsort((numbers[kept, 0], place[kept]))]
    after, total = np.rint(numbers[order] * _MICRO).astype(np.int64).T
    same = np.diff(place[order]) == 0
    if (total <= after).any() or (np.diff(after)[same] <= 0).any():
        wrong = int(np.flatnonzero((total <= after) | np.append(False, same & (np.diff(after) <= 0)))[0])
        what = f"job {table['job'].iloc[order[wrong]]}: a total must lie behind 'after', and 'after' ascend"
        raise BridgeError(what, where=where, remedy=_REMEDY)
    first = np.searchsorted(place[order], np.arange(len(ids) + 1))
    synthetic = (read.schema.metadata or {}).get(_SYNTHETIC) == b"1"
    return RunningBeliefs(first, np.ascontiguousarray(after), np.ascontiguousarray(total), synthetic)


def _seconds(column: "pd.Series[float]", name: str, where: str) -> Floats:
    values = np.asarray(pd.to_numeric(column, errors="coerce"), np.float64)
    if not np.isfinite(values).all() or (values < 0).any() or (values > _LONGEST).any():
        raise BridgeError(f"{name!r} must be seconds from 0 to {_LONGEST:g}", where=where, remedy=_REMEDY)
    return values
