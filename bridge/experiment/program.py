"""The platform program: its command line, and its process, which never outlives ours."""

import ctypes
import fcntl
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bridge.base.errors import BridgeError
from bridge.experiment.spec import Detailed

#: Its files, in the folder in which it runs.
PLATFORM, WORKLOAD, PREFIX = "platform.xml", "workload.json", "out"
#: The world whose program is Batsim 5, and what it is told to tell: all profiles. Each of ours has a job.
BATSIM5, _INIT = "batsim5", '{"forward_profiles_on_simulation_begins": true}'
#: Where a container sees the folder of the simulation.
_MOUNT = "/data"
# Where a job on n hosts stages data (`data_staging`), Batsim 4.2.1 reads 8 n bytes of an array of 16. What it
# reads there has no effect, but it must be allowed to. Two things may lie behind the array:
#: the guard page of a job's stack (most crashes, as soon as jobs come and go while others stage): have none,
UNGUARDED = ("--sg-cfg", "contexts/guard-size:0")
#: or the end of the heap, which the large arrays of parallel tasks cut off again and again: keep it, with
#: 64 MiB more than is needed.
ENVIRONMENT = {
    "GLIBC_TUNABLES": "glibc.malloc.top_pad=67108864:glibc.malloc.trim_threshold=17179869184"
    ":glibc.malloc.mmap_threshold=33554432"
}
_PR_SET_PDEATHSIG = 1
#: In the lines by which SimGrid and Batsim say why they die; a backtrace and advice follow.
CRITICAL = "/CRITICAL]"
#: Wall time that a child may take to end by itself after SIGTERM, s.
_PATIENCE = 10.0
#: Of the names of temporary folders, and a file in them that is locked as long as they are in use.
_PREFIX, _LOCK = "bridge-run-", "lock"
#: A folder younger than this may be about to be locked, s.
_NEW = 60.0


@dataclass(frozen=True)
class PlatformProgram:
    """How the platform side is started, and what ends it, where ending the process does not (a container)."""

    command: tuple[str, ...]
    stop: tuple[str, ...] = ()

    def version(self) -> str:
        """Return what the program says of its version, empty if nothing within 60 s."""
        try:
            words = [*self.command, "--version"]
            how: dict[str, Any] = {"encoding": "utf-8", "errors": "replace"}
            done = subprocess.run(words, capture_output=True, timeout=60, check=False, **how)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        lines = (done.stdout or done.stderr).strip().splitlines()
        return lines[-1].strip() if lines and done.returncode == 0 else ""


def find(on: str, detailed: Detailed, folder: Path) -> PlatformProgram:
    """Return the program of a world, for files in `folder`; a BridgeError says how to get it."""
    if detailed.image:
        return _container(detailed.image, folder)
    if detailed.program:
        words = shlex.split(detailed.program)
        return PlatformProgram((_on_path(words[0], "Check --program."), *words[1:]))
    if on == "simgrid":
        from bridge.worlds import simgrid

        return PlatformProgram(tuple(simgrid.command()))
    version = 5 if on == BATSIM5 else 4
    remedy = (
        f"Install Batsim {version} (https://batsim.org), give --program, or --image to take it "
        "from a container image, or use --on simgrid, the embedded platform model."
    )
    return PlatformProgram((_on_path("batsim", remedy),))


def with_dynamic_jobs(detailed: Detailed) -> Detailed:
    """Return the options of a program in which killed jobs may run again."""
    from bridge.worlds.batsim.attempts import DYNAMIC, REUSE

    needed = (DYNAMIC, REUSE) if detailed.kind.contends else (DYNAMIC,)
    options = detailed.options
    return replace(detailed, options=(*(word for word in needed if word not in options), *options))


def where(on: str, endpoint: str, prefix: str) -> list[str]:
    """Return the options that tell a world's program its files, and where decisions are asked for."""
    words = ["-p", PLATFORM, "-w", WORKLOAD, "-s", endpoint]
    if on == BATSIM5:
        return [*words, _INIT, "-e", f"./{prefix}_", "-q"]  # it wants a folder, and adds nothing
    return [*words, "-e", prefix, "-q", "--disable-schedule-tracing"]


def _on_path(name: str, remedy: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise BridgeError("the program is not on this machine (not in PATH)", where=name, remedy=remedy)
    return path


def _container(image: str, folder: Path) -> PlatformProgram:
    """Return `docker run` with the caller's user and network, the folder mounted."""
    docker = _on_path("docker", "Install Docker, or start Batsim without --image.")
    name = f"bridge-{secrets.token_hex(6)}"
    user = f"{os.getuid()}:{os.getgid()}"
    mounted = ("--volume", f"{folder.resolve()}:{_MOUNT}", "--workdir", _MOUNT)
    command = (docker, "run", "--rm", "--name", name, "--network", "host", "--user", user, *mounted)
    environment = tuple(word for name, value in ENVIRONMENT.items() for word in ("--env", f"{name}={value}"))
    return PlatformProgram((*command, *environment, image), stop=(docker, "rm", "--force", name))


class Child:
    """A running program in a process group of its own, its output in a file; BridgeError if it cannot start.

    `stop`: a command that ends what the process stands for, such as a container. `environment`: what it finds
    besides ours, which wins.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        log: Path,
        stop: Sequence[str] = (),
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._stop, self._log = list(stop), log
        libc, parent = ctypes.CDLL(None), os.getpid()

        def follow_the_parent() -> None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(1)

        try:
            with log.open("wb") as out:
                self._process = subprocess.Popen(
                    list(command),
                    cwd=folder,
                    env={**environment, **os.environ},
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,  # a Ctrl-C at the terminal is ours to handle
                    preexec_fn=follow_the_parent,  # noqa: PLW1509 — no other thread of ours runs yet
                )
        except OSError as error:
            what = f"cannot be started ({error.strerror})"
            raise BridgeError(what, where=str(command[0]), remedy="Check the program.") from error

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def wait(self, seconds: float) -> int | None:
        """Return the exit status (negative: a signal), or None if it still runs after so long."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> int:
        if not self.ended:
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

    def read_tail(self, lines: int = 5) -> str:
        """Return the last lines of its output, or of those in it that SimGrid calls critical, in order."""
        try:
            words = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ""
        words = [line for line in words if CRITICAL in line] or words
        return " | ".join(line.strip() for line in [w for w in words if w.strip()][-lines:])

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


@contextmanager
def simulation_folder(exchange: Path | None = None) -> Iterator[Path]:
    """Yield a folder for a simulation's files: the given one, or a temporary one, removed at the end."""
    if exchange is not None:
        exchange.mkdir(parents=True, exist_ok=True)
        yield exchange
        return
    _forget_left_ones()
    name = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        with (name / _LOCK).open("w", encoding="utf-8") as lock:
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
            with lock.open("r+", encoding="utf-8") as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent)
