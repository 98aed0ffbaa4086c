"""`bridge doctor`: what this machine has, and how to get what it lacks."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click

from bridge.base.cache import cache_root
from bridge.base.checks import CheckResult, Status
from bridge.base.environment_variables import describe_variables
from bridge.base.errors import BridgeError
from bridge.cli import options as shared
from bridge.cli.main import DRAWING, LEARNING
from bridge.cli.terminal import show
from bridge.config.fields import record_of
from bridge.report.table import Table

#: Short: a terminal of 80 columns shows it whole.
BATSIM = "https://batsim.readthedocs.io"


def _package(name: str, purpose: str, lack: Status = "missing") -> CheckResult:
    try:
        return CheckResult(name, "ok", version(name))
    except PackageNotFoundError:
        return CheckResult(name, lack, f"not installed; {purpose}", f"pip install {name}")


def _kernels() -> CheckResult:
    from bridge.base.jit import CACHE, is_compiled

    what, later = "compiled kernels", "compiled at the first replay, some twenty seconds"
    if is_compiled():
        return CheckResult(what, "ok", str(CACHE))
    return CheckResult(what, "missing", later, "bridge replay bundled-128")


def _cache() -> CheckResult:
    what, folder = "cache folder", cache_root()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        remedy = "Set BRIDGE_CACHE to a folder you can write to."
        return CheckResult(what, "broken", f"{folder}: {error.strerror}", remedy)
    free = shutil.disk_usage(folder).free
    if free < 200e6:
        return CheckResult(what, "broken", f"{folder}: {free / 1e6:.0f} MB free", "Free some disk space.")
    return CheckResult(what, "ok", f"{folder}, {free / 1e9:.0f} GB free")


def _simgrid() -> CheckResult:
    from bridge.worlds.simgrid import REMEDY, find_interpreter

    try:
        return CheckResult("SimGrid interpreter", "ok", find_interpreter())
    except BridgeError as error:
        return CheckResult("SimGrid interpreter", "missing", error.what, error.remedy or REMEDY)


def _program(name: str, arguments: list[str], purpose: str, install: str, mend: str) -> CheckResult:
    """Look for a program; `install`, `mend`: what helps if it is not there, and if it does not work."""
    path = shutil.which(name)
    if path is None:
        return CheckResult(name, "missing", f"not on PATH; {purpose}", install)
    try:
        how: dict[str, Any] = {"encoding": "utf-8", "errors": "replace"}
        done = subprocess.run([path, *arguments], capture_output=True, timeout=20, check=False, **how)
    except (OSError, subprocess.TimeoutExpired) as error:
        return CheckResult(name, "missing", f"{path} does not answer ({error}); {purpose}", mend)
    output = (done.stdout.strip() or done.stderr.strip()).splitlines()
    if done.returncode != 0:
        return CheckResult(name, "missing", f"{path}: {output[-1] if output else 'fails'}; {purpose}", mend)
    return CheckResult(name, "ok", output[0] if output else path)


#: What bridge cannot work without, and why.
NEEDED = {
    "numpy": "everything computes with it",
    "numba": "it compiles the scheduler",
    "pandas": "it reads and writes tables",
    "pyarrow": "it reads and writes Parquet",
}
OPTIONAL = {
    **dict.fromkeys(DRAWING, "pictures and reports need it"),
    **dict.fromkeys(LEARNING, "agents need it"),
    "scikit-learn": "`bridge predict` by trees needs it",
}
#: Programs: name, arguments, purpose, what helps if it is not there, and if it does not work.
PROGRAMS = (
    (
        "batsim",
        ["--version"],
        "the real Batsim is optional",
        f"Install it: {BATSIM}",
        f"Install it anew: {BATSIM}",
    ),
    (
        "docker",
        ["version", "--format", "{{.Server.Version}}"],
        "containers are optional",
        "Install Docker.",
        "Docker is installed. Start its service (sudo systemctl start docker), and join its group.",
    ),
)


def _findings() -> Iterator[CheckResult]:
    yield CheckResult("Python", "ok", f"{platform.python_version()} ({sys.executable})")
    yield from (_package(name, purpose, "broken") for name, purpose in NEEDED.items())
    yield from (_package(name, purpose) for name, purpose in OPTIONAL.items())
    yield from (_cache(), _kernels(), _simgrid())
    yield from (_program(*one) for one in PROGRAMS)


def _variables() -> Iterator[CheckResult]:
    """Yield the environment variables that bridge reads, and what they are set to."""
    for variable, value in describe_variables():
        detail = (
            f"{value}; {variable.purpose}" if value else f"not set: {variable.default}; {variable.purpose}"
        )
        yield CheckResult(variable.name, "ok", detail)


@click.command()
@shared.json_option
def doctor(as_json: bool) -> None:
    """List what this machine has, and how to install what is missing.

    The exit status is 1 if something is missing that bridge cannot work without.
    """
    findings, variables = list(_findings()), list(_variables())
    rows = [(f.status, f.what, f"{f.detail}\n{f.remedy}".strip()) for f in findings]
    settings = Table(
        ("", ""), ((v.what, v.detail) for v in variables), title="Environment variables", words=(1,)
    )
    tables = [Table(("", "", ""), rows, words=(1, 2)), settings]
    show([record_of(f) for f in [*findings, *variables]], tables, as_json)
    if any(f.status == "broken" for f in findings):
        raise click.exceptions.Exit(1)
