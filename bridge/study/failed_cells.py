"""What becomes of a failed cell: it is tried again where its worker died, else the reason is kept."""

from pathlib import Path

from bridge.base.errors import BridgeError
from bridge.base.files import read_json, write_json

#: How often a cell is tried again whose worker died, by no fault of its own.
RETRIES = 3
#: Why a cell failed that was tried so often in vain.
WORKER_DIED = f"its worker died {RETRIES + 1} times (is there enough memory?)"


class FailedCells:
    """Why cells failed when they were last tried: a folder with a file each, by the cell's key."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def reason(self, key: str) -> str:
        """Return why a cell failed when it was last tried; empty if it did not."""
        path = self._path(key)
        try:
            return str(read_json(path)["error"]) if path.exists() else ""
        except (BridgeError, TypeError, KeyError):
            return ""

    def note(self, key: str, error: str) -> None:
        write_json(self._path(key), {"error": error})

    def forget(self, key: str) -> None:
        self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.json"
