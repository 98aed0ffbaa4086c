"""The gate between submissions and the agent: open, Slurm decides; closed, new jobs wait for the agent.

The directory of `bridge slurm setup` has a folder for each partition's gate, for each has its own agent:
its heartbeat (the agent's side of a dead-man switch), its lock, and the file that opens it.
"""

import fcntl
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from bridge.base import files
from bridge.base.errors import BridgeError
from bridge.worlds.slurm.client import Client, Control, is_held_by_us, is_suspended_by_us

#: A heartbeat that is older means that the agent is dead (s).
STALE = 30
#: What the folder of a gate may hold.
_FILES = frozenset({"heartbeat", "heartbeat.new", "gate_open", "agent.lock"})
#: Seconds in which a living agent sees that the gate is open, and holds no job any more.
_NOTICE = 2.0
#: What the watchdog writes into the file that opens the gate, and what an operator's command does.
WATCHDOG, OPERATOR = "watchdog", "operator"


class DiskError(BridgeError):
    """The agent cannot write a file; it stops deciding and gives the queue to Slurm."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(
            f"cannot write: {error.strerror or error}",
            where=str(path),
            remedy="Make room there or name another place, and start the agent again.",
        )


@dataclass(frozen=True)
class GateStatus:
    """How the gate stands: whether it is open, and the age of the agent's heartbeat (s), None without one."""

    is_open: bool
    heartbeat: float | None

    @property
    def alive(self) -> bool:
        """Whether an agent decides."""
        return not self.is_open and self.heartbeat is not None and self.heartbeat <= STALE


def gate_of(directory: Path, partition: str = "") -> Path:
    """Return the folder of a partition's gate (else BridgeError); of the only one, if none is named."""
    is_ours = (directory / "job_submit.lua").exists()
    theirs = sorted(path.name for path in directory.iterdir() if is_gate(path)) if is_ours else []
    if not theirs:
        remedy = "Give the directory that `bridge slurm setup` wrote."
        raise BridgeError("holds no gate", where=str(directory), remedy=remedy)
    if partition in theirs or (not partition and len(theirs) == 1):
        return directory / (partition or theirs[0])
    raise BridgeError(
        f"holds no gate of partition {partition!r}" if partition else "holds the gates of several partitions",
        where=str(directory),
        remedy=f"Give --partition: {', '.join(theirs)}.",
    )


def is_gate(path: Path) -> bool:
    return path.is_dir() and {inner.name for inner in path.iterdir()} <= _FILES


def status(gate: Path) -> GateStatus:
    is_open = (gate / "gate_open").exists()
    try:
        last = float((gate / "heartbeat").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return GateStatus(is_open, None)
    return GateStatus(is_open, max(time.time() - last, 0.0))


def opened_by(gate: Path) -> str:
    """Return the name of who opened the gate; empty while it is closed."""
    try:
        return (gate / "gate_open").read_text(encoding="utf-8", errors="replace").strip() or OPERATOR
    except OSError:
        return ""


def open_gate(gate: Path, client: Client) -> int:
    """Open the gate and release all that it holds to Slurm's own backfill; returns how many jobs."""
    alive = status(gate).alive
    try:
        (gate / "gate_open").write_text(f"{OPERATOR}\n", encoding="ascii")
    except OSError as error:
        raise files.cannot_write(gate / "gate_open", error) from error
    if alive:
        time.sleep(_NOTICE)
    return release(client, gate.name)


def release(client: Client, partition: str) -> int:
    """Release all jobs that a gate holds, and let suspended ones go on; return how many were released."""
    control, released = Control(client), 0
    try:
        for row in client.queue(partition):
            if (
                row.state == "PENDING"
                and row.priority == 0
                and is_held_by_us(control(f"show job {row.label}"))
            ):
                control(f"update JobId={row.label} ReqNodeList=")
                released += not control(f"release {row.label}")
            elif row.state == "SUSPENDED" and is_suspended_by_us(control(f"show job {row.label}")):
                control(f"resume {row.label}")
    finally:
        control.close()
    return released


def close_gate(gate: Path) -> None:
    """Close the gate: new jobs wait for the agent, as long as its heartbeat is fresh."""
    (gate / "gate_open").unlink(missing_ok=True)


#: Seconds between two beats.
_EVERY = 1.0


def lock_gate(gate: Path) -> TextIO:
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


class Heartbeat:
    """Beats while the agent works, in the folders of its gates, if there are some.

    `paused`: an operator has opened the gate: Slurm decides until it is closed.
    """

    def __init__(self, *gates: Path) -> None:
        self._gates = gates
        self._next = self._look = 0.0
        self.paused = False
        self._close()

    def _close(self) -> None:
        for gate in self._gates:
            (gate / "gate_open").unlink(missing_ok=True)

    def beat(self) -> None:
        """Write the time, each second. Raises DiskError: it cannot be written."""
        now = time.monotonic()
        if not self._gates or now < self._next:
            return
        self._next = now + _EVERY
        for gate in self._gates:
            new = gate / "heartbeat.new"
            try:
                new.write_text(f"{time.time():.0f}\n", encoding="ascii")
                new.replace(new.with_suffix(""))  # at once: the gate must not find an empty file
            except OSError as error:
                raise DiskError(new, error) from error

    def poll_gate(self) -> str:
        """Return what is new of the gate, empty if nothing is; looked at each second.

        A gate that the watchdog has opened, because this agent did not live, is closed again; one that an
        operator has opened stays open.
        """
        now = time.monotonic()
        if not self._gates or now < self._look:
            return ""
        self._look = now + _EVERY
        openers = {opened_by(gate) for gate in self._gates} - {""}
        before = self.paused
        if openers == {WATCHDOG}:
            self._close()
            self.paused = False
            return "the watchdog had opened the gate: the queue is taken back"
        self.paused = bool(openers)
        if self.paused == before:
            return ""
        if self.paused:
            return "an operator has opened the gate: Slurm decides until it is closed"
        return "the gate is closed: the queue is taken back"
