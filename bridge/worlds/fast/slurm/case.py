"""Recorded cases of a real Slurm: what was submitted, the clock of its passes, and what it started."""

import csv
import io
import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bridge.base import files
from bridge.base.errors import BridgeError

#: Kinds of passes in cycles.csv.
KINDS = ("default", "full", "backfill", "prio", "limits")
#: Seconds from a start to the payload's, and from an end to free nodes, where nothing is recorded (medians).
PAYLOAD_DELAY, FREE_DELAY, KILLED_DELAY = 4.0, 0.5, 6.0
#: A command of the operator returns so much later than it was carried out, s.
COMMAND_RETURN = 0.25
#: A node is stamped free after it is: by so much, or by as much more as brings it before the default pass
#: that the message of its end asked for, s.
FREE_STAMP, FREE_BEFORE_PASS = 0.06, 0.35


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a result file may tell a replay of one episode: durations, no decision."""

    submit: float | None
    elapsed: float | None
    free_delay: float | None


@dataclass(frozen=True, slots=True)
class RealStart:
    """What the real Slurm did: to compare with, never to decide by."""

    start: float
    nodes: str


@dataclass
class SlurmCase:
    """A folder of one recorded run; instants in s of its clock, whose 0 is `epoch`."""

    name: str
    folder: Path
    epoch: int
    jobs: list[dict[str, str]]
    events: list[tuple[float, str]]
    passes: list[tuple[float, str]]
    recorded: dict[str, list[Recorded]]
    starts: dict[tuple[str, int], RealStart]
    suspended: set[str] = field(default_factory=set)
    has_accounting: bool = False
    default_passes: list[float] = field(default_factory=list)

    def freed(self, ended: float, delay: float) -> float:
        """Return when the nodes of an ended job are free, by the stamp of that and the passes before it."""
        stamped = ended + delay
        k = bisect_right(self.default_passes, stamped) - 1
        wanted = self.default_passes[k] if k >= 0 else -1e18
        time = stamped - FREE_STAMP
        if stamped - FREE_BEFORE_PASS < wanted:
            time = min(time, wanted - 1e-6)
        return max(time, ended)

    def submission(self, label: str) -> float | None:
        """Return when a job's record was made; None: it was refused."""
        rows = self.recorded.get(label)
        if rows is None:
            rows = next(
                (
                    self.recorded[name]
                    for name in self.recorded
                    if name.startswith((f"{label}_", f"{label}+"))
                    and name[len(label) + 1 :].isdecimal()
                    and self.recorded[name][0].submit is not None
                ),
                None,
            )
        return rows[0].submit if rows else None


def _rows(path: Path, needs: tuple[str, ...]) -> Iterator[tuple[str, dict[str, str]]]:
    text = files.read_text(path)
    reader = csv.DictReader(io.StringIO(text))
    missing = [name for name in needs if name not in (reader.fieldnames or ())]
    if missing:
        what = f"has no column {', '.join(missing)}"
        raise BridgeError(what, where=str(path), remedy="Give a recorded case, as the README of cases says.")
    for row in reader:
        place = f"{path}:{reader.line_num}"
        if None in row or any(value is None for value in row.values()):
            raise BridgeError(
                "has not as many cells as names of columns", where=place, remedy="Mend the line."
            )
        yield place, row


def _number(text: str, name: str, place: str) -> float | None:
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < 1e12:
        raise BridgeError(f"{name} = {text[:40]!r} is no time in s", where=place, remedy="Mend the cell.")
    return value


def read_case(folder: Path) -> SlurmCase:
    """Return the case of a folder; BridgeError names the file of what is missing or wrong."""
    if not folder.is_dir():
        raise BridgeError("is no folder", where=str(folder), remedy="Give the folder of a recorded case.")
    passes = []
    for place, row in _rows(folder / "cycles.csv", ("time", "kind")):
        if row["kind"] not in KINDS:
            remedy = f"There are: {', '.join(KINDS)}."
            raise BridgeError(f"{row['kind'][:40]!r} is no kind of pass", where=place, remedy=remedy)
        time = _number(row["time"], "time", place)
        if time is not None:
            passes.append((time, row["kind"]))
    recorded, starts = _results(folder / "result.csv")
    jobs = [row for _, row in _rows(folder / "jobs.csv", ("job", "submit"))]
    suspended = set()
    if (folder / "suspended.csv").exists():
        suspended = {row["job"] for _, row in _rows(folder / "suspended.csv", ("job",))}
    return SlurmCase(
        name=folder.name,
        folder=folder,
        epoch=_epoch(folder / "case.json"),
        jobs=jobs,
        events=_events(folder / "events.csv"),
        passes=sorted(passes, key=lambda one: one[0]),
        recorded=recorded,
        starts=starts,
        suspended=suspended,
        default_passes=sorted(time for time, kind in passes if kind == "default"),
        has_accounting=(folder / "assoc.txt").exists(),
    )


def _epoch(path: Path) -> int:
    try:
        document = json.loads(files.read_text(path))
        epoch = document["epoch_of_time_0"]
        if isinstance(epoch, bool) or not isinstance(epoch, int | float) or not 0 <= epoch < 1e11:
            raise ValueError("epoch_of_time_0 is no instant")
        return int(epoch)
    except (ValueError, KeyError, TypeError) as error:
        what = f"states no epoch_of_time_0 ({type(error).__name__})"
        raise BridgeError(what, where=str(path), remedy="Give the epoch of the case's time 0.") from error


def _events(path: Path) -> list[tuple[float, str]]:
    if not path.exists():
        return []
    events = []
    for place, row in _rows(path, ("time", "command")):
        planned = _number(row["time"], "time", place) or 0.0
        real = _number(row.get("real_time", ""), "real_time", place)
        events.append(
            (planned if real is None else max(real - COMMAND_RETURN, min(planned, real)), row["command"])
        )
    return sorted(events, key=lambda one: one[0])


def _results(path: Path) -> tuple[dict[str, list[Recorded]], dict[tuple[str, int], RealStart]]:
    recorded: dict[str, dict[int, Recorded]] = {}
    starts: dict[tuple[str, int], RealStart] = {}
    for place, row in _rows(path, ("job", "episode", "submit_ms", "start_ms", "end_ms", "free_ms")):
        if not row["episode"].strip().isdecimal():
            raise BridgeError("states no episode", where=place, remedy="Mend the line.")
        job, episode = row["job"].strip(), int(row["episode"])
        submit, start, end, free = (
            _number(row[name], name, place) for name in ("submit_ms", "start_ms", "end_ms", "free_ms")
        )
        elapsed = end - start if end is not None and start is not None else None
        delay = max(free - end, 0.0) if free is not None and end is not None else None
        recorded.setdefault(job, {})[episode] = Recorded(submit, elapsed, delay)
        if start is not None:
            starts[job, episode] = RealStart(start, row.get("nodes", ""))
    return {job: [rows[k] for k in sorted(rows)] for job, rows in recorded.items()}, starts


def runtime_of(row: Mapping[str, str]) -> tuple[float, int]:
    """Return how long a job's payload runs, s, and its exit code; ValueError: the cell is none."""
    text = row.get("runtime", "").strip() or "0"
    if text.startswith("fail"):
        return float(text.removeprefix("fail") or 0), 1
    return float(text), 0
