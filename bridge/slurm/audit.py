"""The audit log: every line says what was learnt, what was decided, why, and what Slurm answered.

Each line is one JSON object; `digest` chains it to all before it, so that it stands for the state in which
the decision was made. `replay` feeds the events to a fresh scheduler and compares what it decides.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from bridge import files
from bridge.errors import BridgeError
from bridge.slurm.book import Book, Deciding, Event
from bridge.wire import jsontext

#: Of the log's form.
VERSION = 1


class Audit:
    """Appends to a log; a line is on disk before the decision that it tells of is carried out."""

    def __init__(self, path: Path | None, head: dict[str, Any]) -> None:
        self._file: TextIO | None = None
        self.digest = ""
        if path is not None:
            try:
                self._file = path.open("a", encoding="utf-8")
            except OSError as error:
                raise files.cannot_write(path, error) from error
        self.write({"begin": VERSION, **head})

    def write(self, line: dict[str, Any]) -> None:
        """Append one line."""
        text = json.dumps(line, sort_keys=True, default=str)
        self.digest = hashlib.sha256((self.digest + text).encode()).hexdigest()[:16]
        if self._file is not None:
            self._file.write(json.dumps({**line, "digest": self.digest}) + "\n")
            self._file.flush()

    def passed(self, now: float, events: Sequence[Event], decided: Sequence[str], **more: Any) -> None:
        """Append a pass: what was learnt before it and what was decided."""
        told = [[event.what, event.time, event.job, dict(event.details)] for event in events]
        if told or decided:
            self.write({"time": now, "told": told, "decided": list(decided), **more})

    def close(self) -> None:
        """Close the log."""
        if self._file is not None:
            self._file.close()


@dataclass(frozen=True)
class Replayed:
    """What came of replaying a log: passes, starts, and places (file:line) where another one was decided."""

    passes: int
    starts: int
    differences: tuple[str, ...]


def policy_of(path: Path) -> str:
    """Return the policy that a log tells of.

    Raises:
        BridgeError: it is no audit log.
    """
    return str(_head(path, files.read_text(path).partition("\n")[0], 1)["policy"])


def replay(path: Path, deciding: Deciding) -> Replayed:
    """Decide again on what the agent was told.

    A log may hold several runs of the agent, one after the other.

    Raises:
        BridgeError: it is no audit log, or a damaged one; the error names the line.
    """
    book: Book | None = None
    passes = starts = 0
    differences = []
    lines = files.read_text(path).split("\n")
    for number, text in enumerate(lines, start=1):
        if not text or (number == len(lines) and not text.endswith("}")):
            continue  # the last line of a run that was killed may be torn
        place = f"{path}:{number}"
        try:
            line = jsontext.loads(text)
            if "begin" in line:
                head = _head(path, text, number)
                book = Book(int(head["nodes"]), deciding, float(head["origin"]))
                continue
            if "told" not in line:
                continue
            if book is None:
                raise ValueError("no beginning")
            events = [Event(*parts) for parts in line["told"]]
            now, decided = float(line["time"]), list(line["decided"])
        except (ValueError, KeyError, TypeError) as error:
            raise BridgeError(f"is no line of an audit log ({error})", where=place) from error
        for event in events:
            book.tell(event)
        found = book.decide(now)
        passes += 1
        starts += len(decided)
        if found != decided:
            # From here on as it was: each pass is judged on what the agent knew.
            for job in found:
                if job not in decided:
                    book.tell(Event("back", now, job))
            for job in decided:
                if job not in found:
                    book.tell(Event("run", now, job, {"start": now}))
            differences.append(f"{place}: decided {' '.join(decided) or '-'}, now {' '.join(found) or '-'}")
    return Replayed(passes, starts, tuple(differences))


def _head(path: Path, text: str, number: int) -> dict[str, Any]:
    try:
        head = jsontext.loads(text)
        if head["begin"] != VERSION:
            raise ValueError(f"version {head['begin']}")
        return {name: head[name] for name in ("policy", "nodes", "origin")}
    except (ValueError, KeyError, TypeError) as error:
        raise BridgeError(
            f"is no beginning of an audit log ({error})",
            where=f"{path}:{number}",
            remedy="Give the file that `bridge decide … --slurm --audit FILE` wrote.",
        ) from error
