"""A child process that never outlives its parent, whatever ends the parent."""

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from bridge.errors import BridgeError

_PR_SET_PDEATHSIG = 1
#: Wall time that a child may take to end by itself after SIGTERM, s.
_PATIENCE = 10.0
#: Of the names of temporary folders; the number of the process follows.
_PREFIX = "bridge-run-"


class Child:
    """A running program in a process group of its own, its output in a file.

    Args:
        command: the command line.
        folder: where it runs.
        log: the file that takes both of its output streams.
        stop: a command that ends what the process stands for, such as a container.

    Raises:
        BridgeError: it cannot be started.
    """

    def __init__(self, command: Sequence[str], folder: Path, log: Path, stop: Sequence[str] = ()) -> None:
        self._stop = list(stop)
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


def _interrupt(_number: int, _frame: Any) -> None:
    raise KeyboardInterrupt


@contextmanager
def terminations_as_interrupts() -> Iterator[None]:
    """Have SIGTERM and SIGHUP do what Ctrl-C does, so that every way out cleans up; main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def hold_terminations() -> None:
    """Ignore SIGTERM and SIGHUP up to the end of `terminations_as_interrupts`: results are being written."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, signal.SIG_IGN)


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
    name = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    try:
        folder = name / "detailed"  # with the user's own umask, unlike the one above it
        folder.mkdir()
        yield folder
    finally:
        shutil.rmtree(name, ignore_errors=True)


def _forget_left_ones() -> None:
    """Remove our temporary folders whose process is gone: killed at once, it could not do so itself."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = left.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdecimal() and not Path(f"/proc/{owner}").exists() and Path("/proc/self").exists():
            with suppress(OSError):
                if left.stat().st_uid == os.getuid():
                    shutil.rmtree(left)
