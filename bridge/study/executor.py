"""Who carries out cells: the interface, and a fixed number of processes on this machine."""

import contextlib
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

from bridge.errors import BridgeError
from bridge.study.cells import Cell, Logs, carry_out, log_of
from bridge.study.store import Store


@dataclass(frozen=True)
class Ended:
    """What became of a cell.

    Attributes:
        cell: which.
        found: its record; None if it failed or was lost.
        error: why it failed; empty if it did not.
        lost: its worker died, whatever the cell has done.
    """

    cell: Cell
    found: dict[str, Any] | None = None
    error: str = ""
    lost: bool = False


class Executor(Protocol):
    """Carries out cells.

    Attributes:
        room: how many more cells it takes now.
        width: how many it works on at a time, for the estimate of the time left.
    """

    @property
    def room(self) -> int: ...
    @property
    def width(self) -> int: ...

    def start(self, cell: Cell) -> None:
        """Have a cell carried out."""

    def ended(self, seconds: float) -> Sequence[Ended]:
        """Return the cells that have ended since; wait so long for one."""

    def close(self) -> None:
        """End all work in hand; what is saved stays."""


def attempt(cell: Cell, store: Store, runner: str, logs: Logs = log_of) -> Ended:
    """Carry out a cell; whatever is wrong with it is told, never raised."""
    try:
        return Ended(cell, carry_out(cell, store, runner, logs))
    except BridgeError as error:
        return Ended(cell, error=str(error))
    except (Exception, SystemExit) as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"
        return Ended(cell, error=said)


@dataclass
class _Worker:
    process: BaseProcess
    pipe: "Connection[Any, Any]"
    cell: Cell | None = None


class Processes:
    """Processes on this machine, each with one cell at a time; one that dies is replaced.

    Args:
        store: where cells are kept.
        runner: a token of this run.
        workers: how many.
    """

    def __init__(self, store: Store, runner: str, workers: int) -> None:
        self._store, self._runner = store, runner
        self._context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []
        self.width = workers

    @property
    def room(self) -> int:
        """How many workers are idle, or not started yet."""
        return self.width - sum(worker.cell is not None for worker in self._workers)

    @property
    def pids(self) -> list[int]:
        """The processes that have a cell in hand."""
        return [w.process.pid for w in self._workers if w.cell is not None and w.process.pid]

    def start(self, cell: Cell) -> None:
        """See `Executor.start`."""
        worker = next((w for w in self._workers if w.cell is None), None) or self._new()
        worker.cell = cell
        with contextlib.suppress(OSError):  # it has died while it was idle: `ended` will tell
            worker.pipe.send(cell)

    def _new(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        arguments = (theirs, self._store.folder, self._runner, os.getpid())
        process = self._context.Process(target=_serve, args=arguments, daemon=True)
        process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._workers.append(worker)
        return worker

    def ended(self, seconds: float) -> Sequence[Ended]:
        """See `Executor.ended`."""
        busy = [worker for worker in self._workers if worker.cell is not None]
        if not busy:
            time.sleep(seconds)
            return []
        ready = wait([worker.pipe for worker in busy], seconds)
        found = []
        for worker in busy:
            if worker.pipe not in ready:
                continue
            cell, worker.cell = worker.cell, None
            assert cell is not None
            try:
                found.append(worker.pipe.recv())
            except (EOFError, OSError):  # killed, by somebody or for memory
                self._workers.remove(worker)
                worker.process.join()
                found.append(Ended(cell, lost=True))
        return found

    def close(self) -> None:
        """See `Executor.close`."""
        for worker in self._workers:
            if worker.cell is not None:
                worker.process.kill()
            worker.pipe.close()
        for worker in self._workers:
            worker.process.join(5)
            if worker.process.is_alive():
                worker.process.kill()
        self._workers = []


def _serve(pipe: "Connection[Any, Any]", folder: Any, runner: str, parent: int) -> None:
    """Carry out cells until nobody asks for more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run decides what Ctrl-C means
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    store = Store(folder)
    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(attempt(pipe.recv(), store, runner))


def _leave_with(parent: int) -> None:
    """End this process when the run that has started it is gone."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
