"""The agent's side of the dead-man switch: its heartbeat, and a gate that others have opened."""

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from bridge import files
from bridge.errors import BridgeError
from bridge.slurm.gate import WATCHDOG, DiskError, opened_by, status

#: Seconds between two beats.
_EVERY = 1.0


def alone(directory: Path, partition: str) -> TextIO:
    """Take a directory for the one agent of a partition; it is free again when the file is closed, or we die.

    Raises:
        BridgeError: another agent has it, it holds no gate, or it cannot be written.
    """
    status(directory)
    path = directory / f"agent-{partition}.lock"
    try:
        (directory / "heartbeat.new").touch()
        file = path.open("a+", encoding="ascii")
    except OSError as error:
        raise files.cannot_write(directory, error) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.seek(0)
        who = file.read().strip() or "unknown"
        file.close()
        raise BridgeError(
            f"another agent (process {who}) decides for partition {partition!r} already",
            where=str(directory),
            remedy="Let it decide, or end it first; --shadow and --dry-run may run beside it.",
        ) from error
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


class Heart:
    """Beats while the agent works.

    Args:
        directory: what `bridge slurm setup` wrote; None = there is no gate.

    Attributes:
        paused: an operator has opened the gate: Slurm decides until it is closed.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._next = self._look = 0.0
        self.paused = False
        if directory is not None:
            (directory / "gate_open").unlink(missing_ok=True)

    def beat(self) -> None:
        """Write the time, each second.

        Raises:
            DiskError: it cannot be written.
        """
        now = time.monotonic()
        if self._directory is None or now < self._next:
            return
        self._next = now + _EVERY
        new = self._directory / "heartbeat.new"
        try:
            new.write_text(f"{time.time():.0f}\n", encoding="ascii")
            with suppress(FileNotFoundError):  # another partition's agent was faster
                new.replace(new.with_suffix(""))  # at once: the gate must not find an empty file
        except OSError as error:
            raise DiskError(new, error) from error

    def news(self) -> str:
        """Return what is new of the gate, empty if nothing is; looked at each second.

        A gate that the watchdog has opened, because this agent did not live, is closed again; one that an
        operator has opened stays open.
        """
        now = time.monotonic()
        if self._directory is None or now < self._look:
            return ""
        self._look = now + _EVERY
        who, before = opened_by(self._directory), self.paused
        if who == WATCHDOG:
            (self._directory / "gate_open").unlink(missing_ok=True)
            self.paused = False
            return "the watchdog had opened the gate: the queue is taken back"
        self.paused = who != ""
        if self.paused == before:
            return ""
        if self.paused:
            return "an operator has opened the gate: Slurm decides until it is closed"
        return "the gate is closed: the queue is taken back"
