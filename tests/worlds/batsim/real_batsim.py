"""The real Batsim, 4 or 5, that the variable BATSIM names; tests against it are skipped without it."""

import os
import shlex
import shutil
import subprocess
from functools import cache

import pytest

BATSIM = os.environ.get("BATSIM", "")
#: The world of a version.
WORLDS = {"4": "batsim", "5": "batsim5"}


@cache
def version() -> str:
    """Return the first figure of Batsim's version, or a sentence that says why there is none."""
    if not BATSIM:
        return "BATSIM is not set (the command of a real Batsim 4 or 5)"
    words = shlex.split(BATSIM)
    if shutil.which(words[0]) is None:
        return f"BATSIM={BATSIM} is no program"
    done = subprocess.run([*words, "--version"], capture_output=True, text=True, timeout=60, check=False)
    text = (done.stdout or done.stderr).strip().lstrip("v")
    is_valid = text.partition(".")[0] in WORLDS
    return text.partition(".")[0] if is_valid else f"BATSIM is version {text or '?'}, not 4 or 5"


def require_batsim() -> None:
    """Skip the test unless BATSIM names a real Batsim."""
    if version() not in WORLDS:
        pytest.skip(version())


def on() -> list[str]:
    """Return the options that name the world and its program."""
    return ["--on", WORLDS[version()], "--program", BATSIM]
