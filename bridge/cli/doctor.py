"""`bridge doctor`: what this machine has, and how to get what it lacks."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

import click

from bridge.cli.main import LEARNING
from bridge.cli.show import show_json
from bridge.errors import BridgeError

Status = Literal["ok", "missing", "broken"]


@dataclass(frozen=True)
class Finding:
    """One thing looked at.

    Attributes:
        what: its name.
        status: ok, missing (something optional), broken (bridge does not work without it).
        detail: version or reason.
        remedy: how to get it; empty if it is there.
    """

    what: str
    status: Status
    detail: str
    remedy: str = ""


def _python() -> Finding:
    return Finding("Python", "ok", f"{platform.python_version()} ({sys.executable})")


def _package(name: str, *, needed: bool, purpose: str) -> Finding:
    try:
        return Finding(name, "ok", version(name))
    except PackageNotFoundError:
        return Finding(
            name, "broken" if needed else "missing", f"not installed; {purpose}", f"pip install {name}"
        )


def _kernels() -> Finding:
    from bridge.jit import CACHE, is_compiled

    if is_compiled():
        return Finding("compiled kernels", "ok", str(CACHE))
    return Finding(
        "compiled kernels",
        "missing",
        "compiled at the first replay, about half a minute",
        "bridge replay bundled-128",
    )


def _cache() -> Finding:
    from bridge.cache import cache_root

    folder = cache_root()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        return Finding(
            "cache folder",
            "broken",
            f"{folder}: {error.strerror}",
            "Set BRIDGE_CACHE to a folder you can write to.",
        )
    free = shutil.disk_usage(folder).free
    if free < 200e6:
        return Finding(
            "cache folder", "broken", f"{folder}: {free / 1e6:.0f} MB free", "Free some disk space."
        )
    return Finding("cache folder", "ok", f"{folder}, {free / 1e9:.0f} GB free")


def _simgrid() -> Finding:
    from bridge.simgrid import REMEDY, find_interpreter

    try:
        return Finding("SimGrid interpreter", "ok", find_interpreter())
    except BridgeError as error:
        return Finding("SimGrid interpreter", "missing", error.what, error.remedy or REMEDY)


def _program(name: str, arguments: list[str], purpose: str, remedy: str) -> Finding:
    path = shutil.which(name)
    if path is None:
        return Finding(name, "missing", f"not on PATH; {purpose}", remedy)
    try:
        done = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(name, "missing", f"{path} does not answer ({error}); {purpose}", remedy)
    said = (done.stdout.strip() or done.stderr.strip()).splitlines()
    if done.returncode != 0:
        return Finding(name, "missing", f"{path}: {said[-1] if said else 'fails'}; {purpose}", remedy)
    return Finding(name, "ok", said[0] if said else path)


def _looks() -> list[Callable[[], Finding]]:
    return [
        _python,
        lambda: _package("numpy", needed=True, purpose="everything computes with it"),
        lambda: _package("numba", needed=True, purpose="it compiles the scheduler"),
        lambda: _package("pandas", needed=True, purpose="it reads and writes tables"),
        lambda: _package("pyarrow", needed=True, purpose="it reads and writes Parquet"),
        *(partial(_package, name, needed=False, purpose="agents need it") for name in LEARNING),
        lambda: _package("scikit-learn", needed=False, purpose="`bridge predict` by trees needs it"),
        _cache,
        _kernels,
        _simgrid,
        lambda: _program(
            "batsim",
            ["--version"],
            "the real Batsim is optional",
            "See https://batsim.readthedocs.io/en/latest/installation.html",
        ),
        lambda: _program(
            "docker",
            ["version", "--format", "{{.Server.Version}}"],
            "containers are optional",
            "Install and start Docker.",
        ),
    ]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(as_json: bool) -> None:
    """Tell what this machine has, and how to get what it lacks.

    The exit status is 1 if something is missing that bridge cannot work without.
    """
    findings = [look() for look in _looks()]
    if as_json:
        show_json([asdict(f) for f in findings])
    else:
        from bridge.report.table import Table

        rows = [
            (f.status, f.what, f"{f.detail}\n{f.remedy}" if f.remedy and f.status != "ok" else f.detail)
            for f in findings
        ]
        Table(("", "", ""), rows, words=(1, 2)).print()
    if any(f.status == "broken" for f in findings):
        raise click.exceptions.Exit(1)
