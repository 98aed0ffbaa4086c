"""A workload: the job records of a log as one table, the capacities of its machine, and the log's header."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from bridge.base.errors import BridgeError
from bridge.base.files import stem
from bridge.workload.ids import unlike

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
#: Fields that no schedule depends on: a replay does without them.
UNSCHEDULED = frozenset(SWF_COLUMNS) - {
    *("job_id", "submit", "wait", "run", "procs", "req_procs", "req_time", "status", "user", "queue"),
    "preceding_job",  # no schedule depends on it, and that is said
}
#: What stands for an unknown value.
UNKNOWN = -1
#: SWF status of a job that ended well, and of one that was cancelled before or while it ran.
STATUS_COMPLETED, STATUS_CANCELLED = 1, 5


@dataclass(frozen=True)
class TallyEntry:
    kind: Literal["dropped", "repaired", "noted", "ignored"]
    count: int
    examples: tuple[int | str, ...] = ()

    @property
    def examples_text(self) -> str:
        """The ids of a few records, with dots if there are more."""
        return ", ".join(map(str, self.examples)) + (", …" if self.count > len(self.examples) else "")


Tally = Mapping[str, TallyEntry]


def tally(
    kind: Literal["dropped", "repaired", "noted"], why: str, ids: Iterable[int] | Iterable[str]
) -> dict[str, TallyEntry]:
    """Return ``{why: Reason}`` for the given job ids, or an empty dict if there are none."""
    job_ids: list[Any] = list(ids)
    examples = tuple(ident if isinstance(ident, str) else int(ident) for ident in job_ids[:3])
    return {why: TallyEntry(kind, len(job_ids), examples)} if job_ids else {}


def submitted(jobs: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Tell which records have a known submission: -1 is none, in a log whose times begin later, too."""
    return np.asarray(jobs["submit"] != UNKNOWN, np.bool_)


def note_order(jobs: pd.DataFrame) -> dict[str, TallyEntry]:
    """Count records that stand after a later submission."""
    has_time = submitted(jobs)
    jobs = jobs if has_time.all() else jobs[has_time]
    submit, ids = jobs["submit"].to_numpy(), jobs["job_id"]
    late = np.flatnonzero(submit[1:] < np.maximum.accumulate(submit)[:-1]) + 1
    return tally("noted", "submitted before a record above it", ids.iloc[late])


@dataclass(frozen=True)
class Workload:
    """Job records as logged (nothing dropped yet) and the machine they were logged on.

    Attributes:
        name: short name, the file's stem unless told otherwise.
        jobs: one row per record in file order; columns are ``SWF_COLUMNS`` (whole numbers int64, times
            int64 or float64 seconds, -1 = unknown) and any extra demand columns, named by their
            resource, such as ``burst_buffer`` (bytes) and ``power`` (W). Ids are texts where not all of
            them are whole numbers (`bridge.workload.ids`).
        capacity: machine capacity per resource, ``nodes`` first. Empty if the log does not state it.
        header: the log's header, field name to text, in file order.
        source: where it came from (a path or a generator's command).
        tally: records dropped or repaired while reading, by reason.

    Raises BridgeError: a time is longer than `LONGEST`; the error names the job and the field.
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
                    what = f"its {name} is {values[row]} s, and no time can be longer than {LONGEST} s"
                    where = f"{self.where}, job {self.jobs['job_id'].iloc[row]}"
                    remedy = "Times are whole microseconds of 64 bits: mend the record, or leave it out."
                    raise BridgeError(what, where=where, remedy=remedy)

    @classmethod
    def of_file(
        cls, path: Path, jobs: pd.DataFrame, capacity: dict[str, int], header: dict[str, str], counted: Tally
    ) -> "Workload":
        """Return what a file holds: named after it, each record with an id of its own.

        What was counted is told, with ids that were used again, and the records' order, beside it.
        """
        again = jobs["job_id"].duplicated().to_numpy()
        if again.any():
            twice = tally("repaired", "job id used again: a new one given", jobs["job_id"][again])
            jobs["job_id"], counted = unlike(jobs["job_id"], again), {**counted, **twice}
        return cls(stem(path), jobs, capacity, header, str(path), {**counted, **note_order(jobs)})

    @property
    def where(self) -> str:
        return self.source or self.name

    def digest(self) -> str:
        """Return the SHA-256 of its jobs and capacities: that of the same jobs in any other file, too.

        Columns count by name, in whatever order; whole numbers count as such, whether they are stored as
        int64 or float64.
        """
        hasher = hashlib.sha256(json.dumps(sorted((k, int(v)) for k, v in self.capacity.items())).encode())
        for name in sorted(self.jobs.columns):
            column = self.jobs[name]
            if column.dtype.kind not in "iufb":
                hasher.update(json.dumps([name, column.astype(str).tolist()]).encode())
                continue
            values = column.to_numpy()
            whole = values.astype(np.int64) if values.dtype.kind != "f" else _whole(values)
            hasher.update(f"{name} {whole.dtype.kind} {len(whole)}\n".encode())
            hasher.update(np.ascontiguousarray(whole, dtype=whole.dtype.newbyteorder("<")).tobytes())
        return hasher.hexdigest()


def whole_seconds(times: npt.NDArray[np.float64]) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
    """Return times rounded to whole numbers; as they are if one is too long, which `Workload` refuses."""
    return np.rint(times).astype(np.int64) if (np.abs(times) <= LONGEST).all() else times


def _whole(values: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
    """Return floats as int64 where all of them are whole and small enough, else as float64."""
    exact = np.abs(values) < 2.0**53  # False for nan
    if exact.all() and (values == np.floor(values)).all():
        return values.astype(np.int64)
    return values.astype(np.float64)


# ---- the header: comment lines of the form `; Field: text` -------------------------------------------------
#: Labels of the standard (Feitelson, "The Standard Workload Format") and ours for further resources.
LABELS: frozenset[str] = frozenset(
    (
        *("Version", "Computer", "Installation", "Acknowledge", "Information", "Conversion", "Preemption"),
        *("UnixStartTime", "TimeZone", "TimeZoneString", "StartTime", "EndTime", "MaxJobs", "MaxRecords"),
        *("MaxNodes", "MaxProcs", "MaxRuntime", "MaxMemory", "AllowOveruse", "MaxQueues", "Queues", "Queue"),
        *("MaxPartitions", "Partitions", "Partition", "Note", "Copyright"),
        *("ExtensionFields", "Capacity", "IdlePower"),
    )
)
#: The label under which header text that belongs to no field is kept.
FREE_TEXT = "Comment"
_FIELD = re.compile(r"^;(?P<indent>\s*)(?P<label>[A-Za-z][A-Za-z0-9_]*):(?P<text>.*)$")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def parse_header(lines: Iterable[str]) -> dict[str, str]:
    """Return label -> text of header lines; repeated labels and continued text are joined by newlines.

    Logs continue a field's text on deeper-indented lines, which may look like fields themselves
    (``;   see: http://…``): such a line is a field only if its label is a known one.
    """
    header: dict[str, list[str]] = {}
    label = ""
    for line in lines:
        match = _FIELD.match(line)
        if match and (match["label"] in LABELS or len(match["indent"].expandtabs()) <= 1):
            label = match["label"]
            header.setdefault(label, []).append(match["text"].strip())
        elif text := line.lstrip(";").strip():
            label = label or FREE_TEXT
            header.setdefault(label, []).append(text)
    return {label: "\n".join(texts) for label, texts in header.items()}


def format_header(header: Mapping[str, str]) -> str:
    """Return the header as comment lines, one per line of text, so that `parse_header` gives it back."""
    lines = ((label, text) for label, texts in header.items() for text in texts.split("\n"))
    return "".join(f"; {label}: {_CONTROL.sub(' ', text)}".rstrip() + "\n" for label, text in lines)
