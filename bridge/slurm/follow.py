"""The file to which Slurm's plugins append a line for each submission and each end."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

#: States of jobcomp after which a job does not come back.
FINAL = frozenset(
    {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE", "BOOT_FAIL", "PREEMPTED"}
)


@dataclass(frozen=True)
class Line:
    """A job ended (``raw``, its state), or one was submitted (``raw`` = 0, no id is known yet)."""

    raw: int = 0
    state: str = ""


class Follower:
    """Reads what is appended to a file, from its present end on; also when it is replaced or cut."""

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

    def read(self) -> list[Line]:
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
        return [found for line in lines if (found := _parse(line)) is not None]

    def _replaced(self) -> bool:
        assert self._file is not None
        assert self._path is not None
        try:
            there, ours = self._path.stat(), os.fstat(self._file.fileno())
        except OSError:
            return False
        return there.st_ino != ours.st_ino or there.st_size < self._file.tell()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def _parse(line: bytes) -> Line | None:
    words = line.split()
    if words[:1] == [b"S"]:
        return Line()
    if len(words) >= 4 and words[0] == b"E" and words[2].isdigit():
        return Line(int(words[2]), words[3].decode(errors="replace"))
    return None
