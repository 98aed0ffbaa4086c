"""A workload: the job records of a log as one table, and the capacities of its machine."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from bridge.errors import BridgeError
from bridge.files import stem

#: Standard SWF fields in file order. Times in seconds, memory in KB per processor, -1 = unknown.
SWF_COLUMNS: tuple[str, ...] = (
    *("job_id", "submit", "wait", "run", "procs", "cpu_time", "memory", "req_procs", "req_time"),
    *("req_memory", "status", "user", "group", "executable", "queue", "partition", "preceding_job"),
    "think_time",
)
#: SWF fields that hold fractions in real logs; all others are whole numbers.
FLOAT_COLUMNS: frozenset[str] = frozenset({"submit", "wait", "run", "cpu_time", "req_time", "think_time"})
#: Fields that schedules are made of, and the longest time they can hold (s): as microseconds it fits int64.
TIME_COLUMNS: tuple[str, ...] = ("submit", "wait", "run", "req_time")
LONGEST = (2**63 - 1) // 1_000_000
#: SWF status of a job that was cancelled before or while it ran.
STATUS_CANCELLED = 5


@dataclass(frozen=True)
class Reason:
    """How many records were dropped or repaired for one reason, and the first few job ids."""

    kind: Literal["dropped", "repaired", "noted"]
    count: int
    examples: tuple[int, ...] = ()


Tally = Mapping[str, Reason]


def tally(kind: Literal["dropped", "repaired", "noted"], why: str, ids: Iterable[int]) -> dict[str, Reason]:
    """Return ``{why: Reason}`` for the given job ids, or an empty dict if there are none."""
    found = [int(i) for i in ids]
    return {why: Reason(kind, len(found), tuple(found[:3]))} if found else {}


def note_order(jobs: pd.DataFrame) -> Tally:
    """Count records that stand after a later submission, and ids that are used again."""
    submit, ids = jobs["submit"].to_numpy(), jobs["job_id"]
    late = np.flatnonzero(submit[1:] < np.maximum.accumulate(submit)[:-1]) + 1
    noted = tally("noted", "submitted before a record above it", ids.to_numpy()[late].tolist())
    if not ids.is_unique:
        noted |= tally("noted", "job id used again", ids[ids.duplicated()].tolist())
    return noted


@dataclass(frozen=True)
class Workload:
    """Job records as logged (nothing dropped yet) and the machine they were logged on.

    Attributes:
        name: short name, the file's stem unless told otherwise.
        jobs: one row per record in file order; columns are ``SWF_COLUMNS`` (whole numbers int64, times
            int64 or float64 seconds, -1 = unknown) and any extra demand columns, named by their
            resource, such as ``burst_buffer`` (bytes) and ``power`` (W).
        capacity: machine capacity per resource, ``nodes`` first. Empty if the log does not state it.
        header: the log's header, field name to text, in file order.
        source: where it came from (a path or a generator's command).
        tally: records dropped or repaired while reading, by reason.

    Raises:
        BridgeError: a time is longer than `LONGEST`; the error names the job and the field.
    """

    name: str
    jobs: pd.DataFrame
    capacity: dict[str, int]
    header: dict[str, str] = field(default_factory=dict)
    source: str = ""
    tally: Tally = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in TIME_COLUMNS:
            if name in self.jobs and self.jobs[name].dtype.kind in "iuf":
                values = self.jobs[name].to_numpy()
                beyond = (values > LONGEST) | (values < -LONGEST)
                if beyond.any():
                    row = int(beyond.argmax())
                    raise BridgeError(
                        f"its {name} is {values[row]} s, and no time can be longer than {LONGEST} s",
                        where=f"{self.where}, job {self.jobs['job_id'].iloc[row]}",
                        remedy="Times are whole microseconds of 64 bits: mend the record, or leave it out.",
                    )

    @classmethod
    def of_file(
        cls,
        path: Path,
        jobs: pd.DataFrame,
        capacity: dict[str, int],
        header: dict[str, str],
        counted: Tally,
    ) -> "Workload":
        """Return what a file holds: named after it, with its records' order noted beside what was counted."""
        return cls(stem(path), jobs, capacity, header, str(path), {**counted, **note_order(jobs)})

    @property
    def where(self) -> str:
        """Where it came from, for messages."""
        return self.source or self.name

    def digest(self) -> str:
        """Return the SHA-256 of its jobs and capacities: that of the same jobs in any other file, too.

        Columns count by name, in whatever order; whole numbers count as such, whether they are stored as
        int64 or float64.
        """
        found = hashlib.sha256(json.dumps(sorted((k, int(v)) for k, v in self.capacity.items())).encode())
        for name in sorted(self.jobs.columns):
            column = self.jobs[name]
            if column.dtype.kind not in "iufb":
                found.update(json.dumps([name, column.astype(str).tolist()]).encode())
                continue
            values = column.to_numpy()
            whole = values.astype(np.int64) if values.dtype.kind != "f" else _whole(values)
            found.update(f"{name} {whole.dtype.kind} {len(whole)}\n".encode())
            found.update(np.ascontiguousarray(whole, dtype=whole.dtype.newbyteorder("<")).tobytes())
        return found.hexdigest()


def whole_seconds(times: npt.NDArray[np.float64]) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
    """Return times rounded to whole numbers; as they are if one is too long, which `Workload` refuses."""
    return np.rint(times).astype(np.int64) if (np.abs(times) <= LONGEST).all() else times


def _whole(values: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
    """Return floats as int64 where all of them are whole and small enough, else as float64."""
    exact = np.abs(values) < 2.0**53  # False for nan
    if exact.all() and (values == np.floor(values)).all():
        return values.astype(np.int64)
    return values.astype(np.float64)
