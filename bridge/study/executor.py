"""Who carries out cells: the interface, a fixed number of processes on this machine, and a Ray cluster.

Ray places cells, and places them again when a worker or a node is lost.
"""

import contextlib
import functools
import multiprocessing
import os
import signal
import socket
import threading
import time
import traceback
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from bridge.base.compile_notice import announce, announce_by
from bridge.base.errors import BridgeError
from bridge.study.cells import Cell, Logs, load_log
from bridge.study.store import Store
from bridge.study.work import run_cell


@dataclass(frozen=True)
class CellOutcome:
    """Outcome of a cell: its record, why it failed, or that its worker died."""

    cell: Cell
    record: dict[str, Any] | None = None
    error: str = ""
    lost: bool = False


class Executor(Protocol):
    """Carries out cells: there is `room` for so many now, `width` are worked on at a time."""

    @property
    def room(self) -> int: ...
    @property
    def width(self) -> int: ...

    def start(self, cell: Cell) -> None:
        """Have a cell carried out."""

    def collect_ended(self, seconds: float) -> Sequence[CellOutcome]:
        """Return the cells that have ended since; wait so long for one."""

    def close(self) -> None:
        """End all work in hand; what is saved stays."""


def try_cell(cell: Cell, store: Store, runner: str, logs: Logs = load_log) -> CellOutcome:
    """Run a cell; return errors in the outcome instead of raising them."""
    try:
        return CellOutcome(cell, run_cell(cell, store, runner, logs))
    except BridgeError as error:
        return CellOutcome(cell, error=str(error))
    except (Exception, SystemExit) as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        message = f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"
        return CellOutcome(cell, error=message)


class Processes:
    """Processes on this machine, each with one cell at a time; one that dies is replaced.

    Each is a pool of its own: a pool of several breaks as a whole.
    """

    def __init__(self, store: Store, runner: str, workers: int) -> None:
        self.width = workers
        self._attempt = functools.partial(try_cell, store=store, runner=runner)
        self._context = multiprocessing.get_context("spawn")
        self._leash, self._ends = self._context.Pipe()
        self._idle: list[ProcessPoolExecutor] = []
        self._hands: dict[Future[CellOutcome], tuple[Cell, ProcessPoolExecutor]] = {}

    @property
    def room(self) -> int:
        """How many workers are idle, or not started yet."""
        return self.width - len(self._hands)

    def start(self, cell: Cell) -> None:
        pool = self._idle.pop() if self._idle else self._new()
        try:
            one = pool.submit(self._attempt, cell)
        except BrokenExecutor:  # it has died while it was idle
            pool = self._new()
            one = pool.submit(self._attempt, cell)
        self._hands[one] = cell, pool

    def _new(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, self._context, initializer=_begin, initargs=(self._ends,))

    def collect_ended(self, seconds: float) -> Sequence[CellOutcome]:
        if not self._hands:
            time.sleep(seconds)
        while self._leash.poll():
            announce(self._leash.recv_bytes().decode())  # once, whatever the number of workers
        outcomes = []
        for one in wait(self._hands, seconds, FIRST_COMPLETED).done:
            cell, pool = self._hands.pop(one)
            try:
                outcomes.append(one.result())
                self._idle.append(pool)
            except BrokenExecutor:  # killed, by somebody or for memory
                pool.shutdown()
                outcomes.append(CellOutcome(cell, lost=True))
        return outcomes

    def close(self) -> None:
        self._leash.close()
        for pool in (*self._idle, *(pool for _, pool in self._hands.values())):
            pool.shutdown(cancel_futures=True)
        self._idle, self._hands = [], {}


def _begin(ends: "Connection[Any, Any]") -> None:
    """Let the run decide what Ctrl-C means to this worker, have it say what is compiled, and end with it."""
    announce_by(lambda text: ends.send_bytes(text.encode()))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with, args=(ends,), daemon=True).start()


def _leave_with(ends: "Connection[Any, Any]") -> None:
    with contextlib.suppress(OSError, EOFError):
        ends.recv_bytes()  # nothing is ever sent; the other end closes, or its process dies
    os._exit(1)


#: Within how many seconds a cluster's head takes a connection.
CONNECTING = 10.0
#: How often Ray itself does a cell again whose worker or node is lost.
RETRIES = 10


class Ray:
    """A Ray cluster; logs travel to each of its nodes once, as objects of Ray's store.

    The store is a folder that all nodes see by the same path. Where one does not, what its cells find still
    comes back, but a training that breaks off there begins anew. `runner`, `cells`: a token of this run, and
    all that it may ask for. Address ``local`` starts a cluster on `cores` of this machine (None = all),
    ``auto`` finds a running one. BridgeError: Ray is not installed, or there is no such cluster.
    """

    def __init__(
        self, store: Store, runner: str, cells: Iterable[Cell], address: str, cores: int | None = None
    ) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
        except ImportError as error:
            remedy = "Install it: pip install 'ray>=2.9'"
            raise BridgeError("Ray is not installed", where="--ray", remedy=remedy) from error
        self._ray, self._runner, self._folder = ray, runner, str(store.folder.resolve())
        how: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
        if address == "local":
            how |= {"include_dashboard": False, "num_cpus": cores}
        try:
            _reach(address)
            ray.init(address=address, **how)
        except (OSError, ValueError, RuntimeError, OverflowError) as error:
            message = str(error).partition("\n")[0]
            remedy = "Start one with `ray start --head`" + ", or use --ray local" * (address != "local") + "."
            raise BridgeError(f"no cluster answers ({message})", where=address, remedy=remedy) from error
        names = dict.fromkeys(name for cell in cells for name in cell.needs)
        self._logs = {name: ray.put(load_log(name)) for name in names}
        self._task = ray.remote(num_cpus=1, max_retries=RETRIES)(_on_a_node)
        self._hands: dict[Any, Cell] = {}
        self._resources: Any = ray.cluster_resources

    @property
    def width(self) -> int:
        """The cluster's cores, now."""
        return max(1, int(self._resources().get("CPU", 1)))

    @property
    def room(self) -> int:
        """Twice as many cells as there are cores are handed over, so that no core waits for this run."""
        return 2 * self.width - len(self._hands)

    def start(self, cell: Cell) -> None:
        logs = [self._logs[name] for name in cell.needs]
        self._hands[self._task.remote(cell, self._folder, self._runner, *logs)] = cell

    def collect_ended(self, seconds: float) -> Sequence[CellOutcome]:
        ready, _ = self._ray.wait(list(self._hands), num_returns=1, timeout=seconds)
        return [self._taken(one, self._hands.pop(one)) for one in ready]

    def _taken(self, one: Any, cell: Cell) -> CellOutcome:
        errors = self._ray.exceptions
        try:
            outcome: CellOutcome = self._ray.get(one)
            return outcome
        except errors.RayTaskError as error:
            return CellOutcome(cell, error=str(error).strip().splitlines()[-1])
        except errors.RayError:
            return CellOutcome(cell, lost=True)

    def close(self) -> None:
        for one in self._hands:
            self._ray.cancel(one, force=True)
        self._ray.shutdown()


def _reach(address: str) -> None:
    """Refuse a host and port where nobody listens: Ray itself would try for minutes, again and again."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), CONNECTING).close()


def _on_a_node(cell: Cell, folder: str, runner: str, *logs: Any) -> CellOutcome:
    """Carry out a cell, with the logs that it needs."""
    return try_cell(cell, Store(Path(folder)), runner, dict(zip(cell.needs, logs, strict=True)).__getitem__)
