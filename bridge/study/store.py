"""The store: a folder, also on a shared file system, in which every file appears whole under its own name.

cells/KEY.json    what a cell has found, by the digest of what it is made of
agents/KEY/       a trained agent, by the digest of its recipe, its log and its seed
work/KEY.TOKEN/   a training in hand, of one attempt alone; the next attempt goes on from a copy
claims/KEY.json   who works on a cell and how far it is; its time of change is a sign of life
failed/KEY.json   why a cell failed when it was last tried, see `failed_cells`

There are no locks. A claim only keeps two from doing the same; where both do, they write the same bits.
"""

import contextlib
import os
import shutil
import socket
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.base.cache import AGENT
from bridge.base.errors import BridgeError
from bridge.base.files import read_json, write_json
from bridge.config.fields import record_of
from bridge.learn.checkpoint_files import RESUME
from bridge.study.failed_cells import FailedCells

#: A claim whose holder has not been heard of for so long is void, seconds.
VOID = 60.0
_DAMAGED = "Remove it: the cell is then done again, or taken from the study's record."


@dataclass(frozen=True)
class Claim:
    """Claim of a running cell: a token of its run, how far it is, and since when (s since 1970)."""

    runner: str
    host: str
    pid: int
    epoch: int = 0
    epochs: int = 0
    since: float = 0.0

    @classmethod
    def own(cls, runner: str) -> "Claim":
        return cls(runner, socket.gethostname(), os.getpid(), since=time.time())


class Store:
    """A folder of results, which is made, or else looked at; raises BridgeError if it cannot be written."""

    def __init__(self, folder: Path, *, make: bool = True) -> None:
        self.folder = folder
        self.failed = FailedCells(folder / "failed")
        if not make:
            return
        try:
            for name in ("cells", "agents", "work", "claims", "failed"):
                (folder / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            remedy = "Choose a folder that can be written."
            raise BridgeError(
                f"cannot be made ({error.strerror})", where=str(folder), remedy=remedy
            ) from error

    @property
    def missing(self) -> bool:
        """Whether there is no store there."""
        return not (self.folder / "cells").is_dir()

    # Cells.

    def done(self) -> set[str]:
        return {path.stem for path in (self.folder / "cells").glob("*.json")}

    def cell(self, key: str) -> dict[str, Any] | None:
        """Return a cell's record; None if it is not done. Raises BridgeError: it is damaged."""
        path = self._path("cells", key)
        if not path.exists():
            return None
        try:
            record = read_json(path)
        except BridgeError as error:
            if _is_barred(error):
                raise
            raise BridgeError(error.what, where=error.where, remedy=_DAMAGED) from error
        if not isinstance(record, dict):
            raise BridgeError("is no cell", where=str(path), remedy=_DAMAGED)
        return record

    def save(self, key: str, record: Mapping[str, Any]) -> None:
        write_json(self._path("cells", key), record)
        self.failed.forget(key)

    # Claims.

    def claim(self, key: str, claim: Claim) -> None:
        write_json(self._path("claims", key), record_of(claim))

    def refresh_claim(self, key: str) -> None:
        """Give a sign of life for a claim."""
        with contextlib.suppress(OSError):
            os.utime(self._path("claims", key))

    def release(self, key: str) -> None:
        self._path("claims", key).unlink(missing_ok=True)

    def claimed(self, key: str) -> Claim | None:
        """Return the claim of a running cell; None if there is none, or its holder is dead or silent."""
        path = self._path("claims", key)
        try:
            age = time.time() - path.stat().st_mtime
            claim = Claim(**read_json(path))
        except (OSError, BridgeError, TypeError):
            return None
        here = claim.host == socket.gethostname()
        return None if age > VOID or (here and not _runs(claim.pid)) else claim

    # Agents.

    def agent(self, key: str) -> Path:
        return self.folder / "agents" / key

    @contextlib.contextmanager
    def attempt(self, key: str, shorter: Sequence[str] = ()) -> Iterator[Path]:
        """Make a folder for one attempt to train an agent; it has what the furthest earlier one has left.

        Else it has what the last of the `shorter` trainings' agents is that are there: it goes on from it.
        If all goes well the folder becomes the agent's, and what earlier attempts have left is removed.
        BridgeError: what an earlier one has left is damaged; it is named, and this folder is removed.
        """
        own = self.folder / "work" / f"{key}.{uuid.uuid4().hex[:12]}"
        before = sorted((self.folder / "work").glob(f"{key}.*"))
        own.mkdir()
        folders, source = [self.agent(one) for one in reversed(shorter)], own
        for left in [*sorted(before, key=_saved, reverse=True), *folders]:
            try:
                shutil.copyfile(left / AGENT, own / AGENT)
                shutil.copyfile(left / RESUME, own / RESUME)
                source = left
                break
            except OSError:  # nothing saved yet, or removed meanwhile
                for name in (AGENT, RESUME):
                    (own / name).unlink(missing_ok=True)
        try:
            with damaged(own, source):
                yield own
            own.rename(self.agent(key))
        except Exception:
            if not self.agent(key).exists():
                raise
            # Another attempt was faster, with the same bits; it may have removed this one.
        for folder in (own, *before):
            shutil.rmtree(folder, ignore_errors=True)

    def _path(self, kind: str, key: str) -> Path:
        return self.folder / kind / f"{key}.json"


@contextlib.contextmanager
def damaged(folder: Path, source: Path | None = None) -> Iterator[None]:
    """Say of a damaged file of an agent's folder what can be done; it goes if it has copies from `source`."""
    source = source or folder
    try:
        yield
    except BridgeError as error:
        file = Path(error.where)
        if folder not in (file, file.parent) or _is_barred(error):
            raise
        if source != folder:
            shutil.rmtree(folder, ignore_errors=True)
        remedy = f"Remove {source}: what was trained there begins anew."
        where = source / file.relative_to(folder)
        raise BridgeError(error.what, where=str(where), remedy=remedy) from error


def _is_barred(error: BridgeError) -> bool:
    """Tell whether the file may be whole, and only could not be read: that is no reason to remove it."""
    why = error.__cause__ or error.__context__
    return isinstance(why, OSError) and not isinstance(why, FileNotFoundError)


def _saved(folder: Path) -> float:
    """Return when a training was last saved; 0 if never."""
    try:
        return (folder / RESUME).stat().st_mtime
    except OSError:
        return 0.0


def _runs(pid: int) -> bool:
    """Tell whether there is such a process on this machine; a zombie is none."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1]
        return state not in (b"Z", b"X")
    except OSError:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
