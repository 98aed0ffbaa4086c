"""Platform programs: the command lines that start Batsim, its container image, or the embedded model."""

import os
import secrets
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bridge.errors import BridgeError
from bridge.experiment.prepare import PLATFORM, WORKLOAD
from bridge.experiment.spec import Detailed

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


@dataclass(frozen=True)
class Program:
    """How the platform side is started.

    Attributes:
        command: what comes before Batsim's options.
        stop: a command that ends it, where ending the process does not (a container).
    """

    command: tuple[str, ...]
    stop: tuple[str, ...] = ()

    def version(self) -> str:
        """Return what the program says of its version, empty if nothing within 60 s."""
        try:
            done = subprocess.run(
                [*self.command, "--version"], capture_output=True, text=True, timeout=60, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        lines = (done.stdout or done.stderr).strip().splitlines()
        return lines[-1].strip() if lines and done.returncode == 0 else ""


def find(on: str, detailed: Detailed, folder: Path) -> Program:
    """Return the program of a world, which must be there.

    Args:
        on: ``simgrid`` or ``batsim``.
        detailed: program or image, if not the usual one.
        folder: where the simulation's files lie.

    Raises:
        BridgeError: it is not on this machine; the error says how to get it.
    """
    if detailed.image:
        return _container(detailed.image, folder)
    if detailed.program:
        words = shlex.split(detailed.program)
        return Program((_on_path(words[0], "Check --program."), *words[1:]))
    if on == "simgrid":
        from bridge.simgrid import interpreter

        return Program(tuple(interpreter.command()))
    return Program(
        (
            _on_path(
                "batsim",
                "Install Batsim 4 (https://batsim.org), give --image oarteam/batsim to take it from a "
                "container image, or use --on simgrid, the embedded platform model.",
            ),
        )
    )


def _on_path(name: str, remedy: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise BridgeError("the program is not on this machine (not in PATH)", where=name, remedy=remedy)
    return found


def _container(image: str, folder: Path) -> Program:
    """Return `docker run` with the caller's user and network, the folder mounted."""
    docker = _on_path("docker", "Install Docker, or start Batsim without --image.")
    name = f"bridge-{secrets.token_hex(6)}"
    user = f"{os.getuid()}:{os.getgid()}"
    mounted = ("--volume", f"{folder.resolve()}:{_MOUNT}", "--workdir", _MOUNT)
    command = (docker, "run", "--rm", "--name", name, "--network", "host", "--user", user, *mounted)
    told = tuple(word for name, value in ENVIRONMENT.items() for word in ("--env", f"{name}={value}"))
    return Program((*command, *told, image), stop=(docker, "rm", "--force", name))


def arguments(
    on: str, detailed: Detailed, endpoint: str, prefix: str, *, hosts: int, nodes: int
) -> list[str]:
    """Return Batsim's options of a simulation; paths are relative to its folder.

    Args:
        on: ``simgrid`` or ``batsim``.
        detailed: energy, staging and further options.
        endpoint: what to connect to.
        prefix: of the output files.
        hosts, nodes: compute hosts of the platform, and how many of them the machine has.
    """
    words = ["-p", PLATFORM, "-w", WORKLOAD, "-s", endpoint, "-e", prefix, "-q"]
    words += ["--disable-schedule-tracing"]
    words += ["-E"] if detailed.powered else []
    words += ["--mmax", str(nodes)] if nodes < hosts else []
    words += UNGUARDED if on == "batsim" and detailed.staging is not None else ()
    return [*words, *detailed.options]
