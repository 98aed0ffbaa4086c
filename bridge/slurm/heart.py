"""The agent's side of the dead-man switch: its heartbeat, and a gate that others have opened."""

import fcntl
import os
import time
from pathlib import Path
from typing import TextIO

from bridge import files
from bridge.errors import BridgeError
from bridge.slurm.gate import WATCHDOG, DiskError, opened_by

#: Seconds between two beats.
_EVERY = 1.0


def alone(gate: Path) -> TextIO:
    """Take a gate for its one agent, until the file is closed or we die; BridgeError: another has it."""
    try:
        (gate / "heartbeat.new").touch()
        file = (gate / "agent.lock").open("a+", encoding="ascii")
    except OSError as error:
        raise files.cannot_write(gate, error) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.seek(0)
        who = file.read().strip() or "unknown"
        file.close()
        raise BridgeError(
            f"another agent (process {who}) decides for partition {gate.name!r} already",
            where=str(gate),
            remedy="Let it decide, or end it first; --shadow and --dry-run may run beside it.",
        ) from error
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


class Heart:
    """Beats while the agent works, in a gate's folder if there is one.

    `paused`: an operator has opened the gate: Slurm decides until it is closed.
    """

    def __init__(self, gate: Path | None) -> None:
        self._gate = gate
        self._next = self._look = 0.0
        self.paused = False
        if gate is not None:
            (gate / "gate_open").unlink(missing_ok=True)

    def beat(self) -> None:
        """Write the time, each second. Raises DiskError: it cannot be written."""
        now = time.monotonic()
        if self._gate is None or now < self._next:
            return
        self._next = now + _EVERY
        new = self._gate / "heartbeat.new"
        try:
            new.write_text(f"{time.time():.0f}\n", encoding="ascii")
            new.replace(new.with_suffix(""))  # at once: the gate must not find an empty file
        except OSError as error:
            raise DiskError(new, error) from error

    def news(self) -> str:
        """Return what is new of the gate, empty if nothing is; looked at each second.

        A gate that the watchdog has opened, because this agent did not live, is closed again; one that an
        operator has opened stays open.
        """
        now = time.monotonic()
        if self._gate is None or now < self._look:
            return ""
        self._look = now + _EVERY
        who, before = opened_by(self._gate), self.paused
        if who == WATCHDOG:
            (self._gate / "gate_open").unlink(missing_ok=True)
            self.paused = False
            return "the watchdog had opened the gate: the queue is taken back"
        self.paused = who != ""
        if self.paused == before:
            return ""
        if self.paused:
            return "an operator has opened the gate: Slurm decides until it is closed"
        return "the gate is closed: the queue is taken back"
