"""Cells on a Ray cluster: Ray places them, and places them again when a worker or a node is lost."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bridge.errors import BridgeError
from bridge.study.cells import Cell, log_of
from bridge.study.executor import Ended, attempt
from bridge.study.store import Store

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
        quiet: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
        try:
            if address == "local":
                ray.init(address="local", include_dashboard=False, num_cpus=cores, **quiet)
            else:
                ray.init(address=address, **quiet)
        except (ConnectionError, ValueError, RuntimeError) as error:
            said = str(error).partition("\n")[0]
            remedy = "Start one with `ray start --head`, or use --ray local."
            raise BridgeError(f"no cluster answers ({said})", where=address, remedy=remedy) from error
        names = dict.fromkeys(name for cell in cells for name in cell.needs)
        self._logs = {name: ray.put(log_of(name)) for name in names}
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

    def ended(self, seconds: float) -> Sequence[Ended]:
        ready, _ = self._ray.wait(list(self._hands), num_returns=1, timeout=seconds)
        return [self._taken(one, self._hands.pop(one)) for one in ready]

    def _taken(self, one: Any, cell: Cell) -> Ended:
        errors = self._ray.exceptions
        try:
            found: Ended = self._ray.get(one)
            return found
        except errors.RayTaskError as error:
            return Ended(cell, error=str(error).strip().splitlines()[-1])
        except errors.RayError:
            return Ended(cell, lost=True)

    def close(self) -> None:
        for one in self._hands:
            self._ray.cancel(one, force=True)
        self._ray.shutdown()


def _on_a_node(cell: Cell, folder: str, runner: str, *logs: Any) -> Ended:
    """Carry out a cell, with the logs that it needs."""
    return attempt(cell, Store(Path(folder)), runner, dict(zip(cell.needs, logs, strict=True)).__getitem__)
