"""One process at a time writes a file: the others wait for it, and leave the processors to that one.

So kernels are compiled. Without turns eight workers of a study that begin together compile the same ones
eight times.
"""

import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

#: At most so long one waits, s: whoever has the turn may be stopped.
PATIENCE = 600.0
#: Between two looks, s.
_PAUSE = 0.05
_SUFFIX = ".turn"


class Turn:
    """The right to write a file. It ends with the process that has it, however that process ends.

    Where no files can be made or locked, everyone has a turn at once: the same work is then done twice.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._place = path, path.with_suffix(_SUFFIX)
        self._descriptor: int | None = None

    def wait(self, patience: float = PATIENCE, on_wait: Callable[[], None] = lambda: None) -> None:
        """Wait until the turn is ours, or the file is there, or patience (s) ends.

        `on_wait` is called before each pause, if another process has the turn.
        """
        if self._descriptor is not None:
            return
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._place.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self._place, flags, 0o600)
        except OSError:
            return
        until = time.monotonic() + patience
        while not self._is_ours() and not self._path.exists() and time.monotonic() < until:
            on_wait()
            time.sleep(_PAUSE)

    def _is_ours(self) -> bool:
        assert self._descriptor is not None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            pass
        return True

    def end(self) -> None:
        """Let the next process have the turn."""
        if self._descriptor is None:
            return
        with suppress(OSError):
            self._place.unlink()
        os.close(self._descriptor)
        self._descriptor = None
