"""The audit log: every line says what was learnt, what was decided, why, and what Slurm answered.

Each line is one JSON object; `digest` chains it to all before it, so that it stands for the state in which
the decision was made. `replay` feeds the events to a fresh scheduler and compares what it decides.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from bridge.base import files
from bridge.base.errors import BridgeError, add_location
from bridge.base.jsontext import shortened
from bridge.cluster.node_groups import format_nodes
from bridge.wire.fields import Fields, read_json
from bridge.worlds.slurm.gate import DiskError
from bridge.worlds.slurm.live_scheduler import LiveEvent, LivePolicy, LiveScheduler
from bridge.worlds.slurm.site_jobs import NodePart, SitePass, SiteStop
from bridge.worlds.slurm.site_scheduler import SiteScheduler, starts_record

#: Of the log's form.
VERSION = 1
#: Nodes of a machine, and numbers of jobs, at most; and seconds since 1970, either way.
_MOST_NODES, _MOST_ID, _MOST_TIME = 1 << 31, 1 << 62, 1e12
_REMEDY = "Give the file that `bridge decide … --slurm --audit FILE` wrote."


class AuditLog:
    """Appends to a log; a line is on disk before its decision is carried out.

    None as `path`: none is kept. Each file begins with `head`: policy, nodes, origin. BridgeError: it cannot
    be opened; DiskError: nothing can be written to it.
    """

    def __init__(self, path: Path | None, head: Mapping[str, Any]) -> None:
        self._path, self._head = path, head
        self._file: TextIO | None = None
        self.digest = ""
        self._open()

    def _open(self) -> None:
        if self._path is not None:
            try:
                self._file = self._path.open("a", encoding="utf-8")
            except OSError as error:
                raise files.cannot_write(self._path, error) from error
        self.begin()

    def begin(self) -> None:
        """Tell that a scheduler begins that knows of nothing yet."""
        self.write({"begin": VERSION, **self._head})

    def is_rotated(self) -> bool:
        """Tell whether the file was moved away or cut, as logrotate does."""
        if self._file is None or self._path is None:
            return False
        try:
            there, ours = self._path.stat(), os.fstat(self._file.fileno())
        except OSError:
            return True
        return there.st_ino != ours.st_ino or ours.st_size < self._file.tell()

    def rewrite(self, now: float, snapshot: Sequence[LiveEvent]) -> None:
        """Start a new file with the scheduler's state, so that it can be replayed alone."""
        self.close()
        self._open()
        self.write({"time": now, "known": _plain(snapshot)})

    def write(self, line: dict[str, Any]) -> None:
        text = json.dumps(line, sort_keys=True, default=str)
        self.digest = hashlib.sha256((self.digest + text).encode()).hexdigest()[:16]
        if self._file is not None:
            try:
                self._file.write(json.dumps({**line, "digest": self.digest}) + "\n")
                self._file.flush()
            except OSError as error:
                raise DiskError(Path(self._file.name), error) from error

    def write_pass(
        self, now: float, events: Sequence[LiveEvent], decided: Sequence[str], **more: Any
    ) -> None:
        event_records = _plain(events)
        if event_records or decided or more:
            self.write({"time": now, "told": event_records, "decided": list(decided), **more})

    def close(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # what could not be written was told
                self._file.close()


def _plain(events: Sequence[LiveEvent]) -> list[list[Any]]:
    return [[event.kind, event.time, event.job, dict(event.details)] for event in events]


@dataclass(frozen=True)
class AuditReplay:
    """Result of replaying a log: passes, starts, and places (file:line) of different decisions."""

    passes: int
    starts: int
    differences: tuple[str, ...]


@dataclass(frozen=True)
class _Head:
    """The first line of a run: which policy decided, for how many nodes, and what counted as time 0."""

    policy: str
    nodes: int
    origin: float
    is_site: bool


def policy_of(path: Path) -> str:
    """Return the policy that a log names. Raises BridgeError: it is no audit log."""
    with add_location(f"{path}:1"):
        return _head(_line(files.read_text(path).partition("\n")[0])).policy


def replay(path: Path, deciding: LivePolicy, open_pass: Callable[[], SitePass] | None = None) -> AuditReplay:
    """Decide again on the logged events; `open_pass`: the policy's passes on a site, where a log is of one.

    A log may hold several runs of the agent, one after the other; each file of a rotated one is a log. Raises
    BridgeError: it is no audit log, or a damaged one; the error names the line.
    """
    book: LiveScheduler | SiteScheduler | None = None
    details = _DETAILS
    passes = starts = 0
    differences = []
    lines = files.read_text(path).split("\n")
    for number, text in enumerate(lines, start=1):
        if not text or (number == len(lines) and not text.endswith("}")):
            continue  # the last line of a run that was killed may be torn
        place = f"{path}:{number}"
        with add_location(place):
            line = _line(text)
            if "begin" in line:
                head = _head(line)
                details = _SITE_DETAILS if head.is_site else _DETAILS
                if not head.is_site:
                    book = LiveScheduler(head.nodes, deciding, head.origin)
                elif open_pass is not None:
                    book = SiteScheduler(open_pass())
                continue
            if not ("told" in line or "known" in line):
                continue
            if book is None:
                raise BridgeError("no run of an agent begins before it", remedy=_REMEDY)
            for record in line.array("told" if "told" in line else "known"):
                book.apply_event(_event(record, details))
            if "known" in line:
                continue
            now = _time(line, "time")
            decided = line.array("decided", [])
            if not all(type(job) is str for job in decided):
                raise BridgeError("'decided' is not an array of strings", remedy=_REMEDY)
            decisions = book.decide(now)
            passes += 1
            starts += len(decided)
            if isinstance(book, SiteScheduler):
                if fault := _replay_nodes(book, line, decided, now):
                    differences.append(f"{place}: {fault}")
                continue
            if fault := _replay_stops(book, line, now):
                differences.append(f"{place}: {fault}")
            if decisions != decided:
                # From here on as it was: each pass is judged on what the agent knew.
                for job in decisions:
                    if job not in decided:
                        book.apply_event(LiveEvent("back", now, job))
                for job in decided:
                    if job not in decisions:
                        book.apply_event(LiveEvent("run", now, job, {"start": now}))
                differences.append(
                    f"{place}: decided {' '.join(decided) or '-'}, now {' '.join(decisions) or '-'}"
                )
    return AuditReplay(passes, starts, tuple(differences))


def _replay_nodes(book: SiteScheduler, line: Fields, decided: Sequence[str], now: float) -> str:
    """Compare the starts, nodes and stops of a pass; return how they differ. From here on as it was."""
    parts = line.mapping("parts") if "parts" in line else {}
    if {*parts} != {*decided}:
        raise BridgeError("'parts' is not of the jobs that were decided on", remedy=_REMEDY)
    now_parts = starts_record(book.starts)
    stops = tuple(map(SiteStop.from_record, line.array("stops", [])))
    firsts = line.array("firsts", [])
    is_same = list(book.starts) == list(decided) and now_parts == parts
    if is_same and book.stops == stops and book.firsts == firsts:
        return ""
    logged = [_starts_text(decided, parts), *map(_stop_text, stops)]
    decisions = [_starts_text(list(book.starts), now_parts), *map(_stop_text, book.stops)]
    book.replace_decision({key: parts[key] for key in decided}, stops, firsts, now)
    return f"decided {'; '.join(logged)}, now {'; '.join(decisions)}"


def _stop_text(stop: SiteStop) -> str:
    return f"{stop.kind} {stop.key}" + (f" until {stop.grace_end:.0f}" if stop.grace_end >= 0 else "")


def _starts_text(keys: Sequence[str], parts: Mapping[str, Any]) -> str:
    words = []
    for key in keys:
        nodes = [name for part in map(NodePart.from_record, parts[key]) for name in part.nodes]
        words.append(f"{key} on {format_nodes(nodes)}")
    return "; ".join(words) or "-"


def _replay_stops(book: LiveScheduler, line: Fields, now: float) -> str:
    """Compare the jobs that a pass has stopped; return how they differ. From here on as it was."""
    logged, stopped = line.array("stopped", []), list(book.stopped)
    if not all(type(job) is str for job in logged):
        raise BridgeError("'stopped' is not an array of strings", remedy=_REMEDY)
    if stopped == logged:
        return ""
    for job in stopped:
        if job not in logged:
            book.apply_event(LiveEvent("on", now, job, {"start": now}))
    for job in logged:
        if job not in stopped:
            book.apply_event(LiveEvent("end", now, job))
    return f"stopped {' '.join(logged) or '-'}, now {' '.join(stopped) or '-'}"


def _line(text: str) -> Fields:
    try:
        return read_json(text, unique=False)
    except BridgeError as error:
        raise BridgeError(f"is no line of an audit log: it {error.what}", remedy=_REMEDY) from error


def _head(line: Fields) -> _Head:
    try:
        if (version := line.integer("begin")) != VERSION:
            raise BridgeError(f"'begin' is {version}, this version of bridge reads {VERSION}")
        nodes, origin = _whole(line, "nodes", 1, _MOST_NODES), _time(line, "origin")
        return _Head(line.text("policy"), nodes, origin, "site" in line)
    except BridgeError as error:
        raise BridgeError(f"is no beginning of an audit log: {error.what}", remedy=_REMEDY) from error


def _whole(line: Fields, name: str, minimum: int, maximum: int) -> int:
    if not minimum <= (value := line.integer(name)) <= maximum:
        raise BridgeError(f"'{name}' is {shortened(str(value))}, not {minimum} to {maximum}")
    return value


def _time(line: Fields, name: str) -> float:
    if not abs(value := line.number(name)) <= _MOST_TIME:
        raise BridgeError(f"'{name}' is {value:g}, not a time in seconds since 1970")
    return value


#: The details that an event of each kind needs, and how each is read.
_DETAILS: Mapping[str, Mapping[str, Callable[[Fields, str], object]]] = {
    "wait": {
        "id": lambda line, name: _whole(line, name, -_MOST_ID, _MOST_ID),
        "nodes": lambda line, name: _whole(line, name, 0, _MOST_NODES),
        "length": Fields.amount,
        "submit": _time,
    },
    "run": {"start": _time},
    "on": {"start": _time},
    "out": {"nodes": lambda line, name: _whole(line, name, -_MOST_NODES, _MOST_NODES)},
    "gone": {},
    "end": {},
    "back": {},
    "wake": {},
}


#: The same of a site.
_SITE_DETAILS: Mapping[str, Mapping[str, Callable[[Fields, str], object]]] = {
    "site": {"cluster": Fields.mapping},
    "out": {"names": Fields.array},
    "wait": {
        "id": lambda line, name: _whole(line, name, -_MOST_ID, _MOST_ID),
        "length": Fields.amount,
        "submit": _time,
        "request": Fields.mapping,
    },
    "run": {"start": _time, "length": Fields.amount, "parts": Fields.array},
    "gone": {},
    "end": {},
    "back": {},
    "wake": {},
}


def _event(parts: Any, kinds: Mapping[str, Mapping[str, Callable[[Fields, str], object]]]) -> LiveEvent:
    """Return an event as `_plain` writes it (else BridgeError)."""
    label = "an event"
    try:
        if type(parts) is not list or len(parts) != 4:
            raise BridgeError("it is not [what, time, job, details]")
        line = Fields(dict(zip(("what", "time", "job", "details"), parts, strict=True)))
        kind, job = line.text("what"), line.text("job")
        label = f"the event {shortened(kind)!r} of job {shortened(job)!r}"
        if kind not in kinds:
            raise BridgeError("there is no such event")
        details = Fields(line.mapping("details"))
        for name, read in kinds[kind].items():
            read(details, name)
        return LiveEvent(kind, _time(line, "time"), job, details.values)
    except BridgeError as error:
        raise BridgeError(f"{label}: {error.what}", remedy=_REMEDY) from error
