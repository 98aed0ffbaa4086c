"""Starts the platform model for a test and plays the decision process."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zmq
from simgrid_available import COMMAND as COMMAND
from simgrid_available import needs_simgrid as needs_simgrid

PATIENCE_S = 20


class Model:
    """A running model and the socket it talks to."""

    def __init__(self, process: subprocess.Popen[str], socket: zmq.Socket[bytes]) -> None:
        self.process = process
        self._socket = socket

    def hear(self) -> dict[str, Any] | None:
        """Return the next message; None if the process ends without one."""
        for _ in range(PATIENCE_S * 20):
            if self._socket.poll(50):
                message: dict[str, Any] = json.loads(self._socket.recv())
                return message
            if self.process.poll() is not None:
                return None
        raise AssertionError(f"nothing came within {PATIENCE_S} s")

    def say(self, raw: str | bytes) -> None:
        """Answer."""
        self._socket.send(raw if isinstance(raw, bytes) else raw.encode())

    def leave(self) -> None:
        """Disconnect."""
        self._socket.close()

    def end(self) -> tuple[int, str]:
        """Wait for the end; return the exit status and what was written to the standard error stream."""
        _, errors = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, errors


@contextmanager
def started(folder: Path, *options: str, memory: int | None = None) -> Iterator[Model]:
    """Start the model in a folder, connected to a socket of this process, with at most so many bytes."""
    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        port = socket.bind_to_random_port("tcp://127.0.0.1")
        command = [*COMMAND, "-s", f"tcp://127.0.0.1:{port}", *options]
        if memory:
            command = ["prlimit", f"--as={memory}", *command]
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        try:
            yield Model(process, socket)
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()


def converse(
    folder: Path, answer: Callable[[dict[str, Any]], list[dict[str, Any]]], *options: str
) -> tuple[list[dict[str, Any]], int, str]:
    """Run a whole simulation; ``answer`` turns each message into decisions of its date.

    Returns:
        All messages, the exit status, and what was written to the standard error stream.
    """
    heard = []
    with started(folder, *options) as model:
        while (message := model.hear()) is not None:
            heard.append(message)
            now = message["now"]
            decisions = [{"timestamp": now, **decision} for decision in answer(message)]
            model.say(json.dumps({"now": now, "events": decisions}))
        return heard, *model.end()


def runs(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
