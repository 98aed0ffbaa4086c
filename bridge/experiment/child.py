"""A child process that never outlives its parent, whatever ends the parent."""

import ctypes
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO

from bridge.errors import BridgeError

_PR_SET_PDEATHSIG = 1
#: Wall time that a child may take to end by itself after SIGTERM, s.
_PATIENCE = 10.0
#: Of the names of temporary folders, and a file in them that is locked as long as they are in use.
_PREFIX, _LOCK = "bridge-run-", "lock"
#: A folder younger than this may be about to be locked, s.
_NEW = 60.0


class Child:
    """A running program in a process group of its own, its output in a file.

    Args:
        command: the command line.
        folder: where it runs.
        log: the file that takes both of its output streams.
        stop: a command that ends what the process stands for, such as a container.
        environment: what it finds in its environment besides ours, which wins.

    Raises:
        BridgeError: it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        log: Path,
        stop: Sequence[str] = (),
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._stop = list(stop)
        self._environment = {**environment, **os.environ}
        self._log = log
        parent = os.getpid()
        try:
            with log.open("wb") as out:
                self._process = self._start(list(command), folder, out, parent)
        except OSError as error:
            raise BridgeError(
                f"cannot be started ({error.strerror})", where=str(command[0]), remedy="Check the program."
            ) from error
        self.stopped = False

    def _start(
        self, command: list[str], folder: Path, out: IO[bytes], parent: int
    ) -> subprocess.Popen[bytes]:
        libc = ctypes.CDLL(None)

        def follow_the_parent() -> None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(1)

        return subprocess.Popen(
            command,
            cwd=folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,  # a Ctrl-C at the terminal is ours to handle
            preexec_fn=follow_the_parent,  # noqa: PLW1509 — no other thread of ours runs yet
        )

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def wait(self, seconds: float) -> int | None:
        """Return the exit status (negative: a signal), or None if it still runs after so long."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> int:
        """End it, by force if need be, with all that it has started; return the exit status."""
        if not self.ended:
            self.stopped = True
            self._signal(signal.SIGTERM)
            if self._stop:
                with suppress(OSError, subprocess.TimeoutExpired):
                    subprocess.run(self._stop, capture_output=True, timeout=60, check=False)
            self.wait(_PATIENCE)
        self._signal(signal.SIGKILL)
        return self._process.wait()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def last_words(self, lines: int = 5) -> str:
        """Return the last lines of its output, one after the other."""
        try:
            words = self._log.read_text(errors="replace").splitlines()
        except OSError:
            return ""
        return " | ".join(line.strip() for line in [w for w in words if w.strip()][-lines:])

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


@contextmanager
def simulation_folder(exchange: Path | None = None) -> Iterator[Path]:
    """Yield a folder for a simulation's files: the given one, or a temporary one that is removed at the end.

    Temporary ones that killed commands have left are removed as well.
    """
    if exchange is not None:
        exchange.mkdir(parents=True, exist_ok=True)
        yield exchange
        return
    _forget_left_ones()
    name = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        with (name / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # until this process ends, however it does
            folder = name / "detailed"  # with the user's own umask, unlike the one above it
            folder.mkdir()
            yield folder
    finally:
        shutil.rmtree(name, ignore_errors=True)


def _forget_left_ones() -> None:
    """Remove temporary folders of ours whose process was killed and could not do so itself."""
    for lock in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError):
            if lock.stat().st_uid != os.getuid() or time.time() - lock.stat().st_mtime < _NEW:
                continue
            with lock.open("r+") as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent)
