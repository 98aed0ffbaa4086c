"""The file to which Slurm's plugins append a line for each submission and each end."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

#: States of jobcomp after which a job does not come back.
FINAL = frozenset(
    {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE", "BOOT_FAIL", "PREEMPTED"}
)
#: Ends that are remembered, and seconds after which squeue must show them.
_REMEMBERED, _NOTICED = 10_000, 10.0


@dataclass(frozen=True)
class EventLine:
    """A job ended, or one was submitted (``raw`` = 0, no id is known yet); s since 1970, -1: not told."""

    raw: int = 0
    state: str = ""
    start: int = -1
    submit: int = -1


class EndedJobs:
    """The lives of jobs that have ended, by jobcomp's account; a slurmctld that was killed may not know.

    It then shows a job as running that is no more, until the job's limit, if it started shortly before.
    """

    def __init__(self) -> None:
        self._lives: dict[tuple[int, int, int], float] = {}

    def add(self, line: EventLine) -> None:
        if line.state in FINAL and line.start > 0 and line.submit > 0:
            self._lives[line.raw, line.submit, line.start] = time.monotonic()
            if len(self._lives) > _REMEMBERED:
                del self._lives[next(iter(self._lives))]

    def has_ended(self, raw: int, submit: int, start: int) -> bool:
        """Tell whether this life of a job has ended, and Slurm has had time to notice."""
        at = self._lives.get((raw, submit, start))
        return at is not None and time.monotonic() > at + _NOTICED


class EventFileReader:
    """Reads lines appended to a file, from its present end; follows replacement and truncation."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._rest = b""
        self._open(end=True)

    def _open(self, *, end: bool) -> None:
        if self._path is None:
            return
        try:
            self._file = self._path.open("rb")
        except OSError:
            return
        if end:
            self._file.seek(0, os.SEEK_END)

    def read(self) -> list[EventLine]:
        """Return the whole lines that have come; lines that are none are left out."""
        if self._file is None:
            self._open(end=False)
        if self._file is None:
            return []
        text = self._rest + self._file.read()
        if not text.strip(b"\0") and self._replaced():
            self._file.close()
            self._file, self._rest = None, b""
            return self.read()
        *lines, self._rest = text.split(b"\n")
        return [event_line for line in lines if (event_line := _parse(line)) is not None]

    def _replaced(self) -> bool:
        assert self._file is not None
        assert self._path is not None
        try:
            there, ours = self._path.stat(), os.fstat(self._file.fileno())
        except OSError:
            return False
        return there.st_ino != ours.st_ino or there.st_size < self._file.tell()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _parse(line: bytes) -> EventLine | None:
    words = line.split()
    if words[:1] == [b"S"]:
        return EventLine()
    if len(words) >= 4 and words[0] == b"E" and words[2].isdigit():
        start, submit = (int(words[k]) if len(words) > k and words[k].isdigit() else -1 for k in (4, 6))
        return EventLine(int(words[2]), words[3].decode(errors="replace"), start, submit)
    return None
