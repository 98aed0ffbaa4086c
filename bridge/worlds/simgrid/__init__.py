"""The embedded platform model: Batsim's side of the wire, on SimGrid's Python bindings; and how to start it.

It runs as its own process under whatever interpreter has the module ``simgrid``: SimGrid's bindings are a
package of the distribution (Debian and Ubuntu: python3-simgrid), built for its own Python. So everything in
this folder uses that and the standard library only, and of the rest of ``bridge`` no more
than :mod:`bridge.wire`, :mod:`bridge.base.errors` and the table of Batsim 5's names of profiles. By hand:
``python3 -m bridge.worlds.simgrid -p platform.xml -w workload.json -s tcp://localhost:28000``.
"""

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

from bridge.base.errors import BridgeError

#: Names an interpreter, for machines on which it is not found.
VARIABLE = "BRIDGE_SIMGRID_PYTHON"
REMEDY = (
    "Debian, Ubuntu: apt install python3-simgrid. Elsewhere: install SimGrid 3.32 with its Python bindings "
    f"for an interpreter, and name that in {VARIABLE}."
)
_NEEDED = "import sys; sys.version_info >= (3, 11) or sys.exit(3); import simgrid"
_TIMEOUT_S = 60


@functools.cache
def find_interpreter() -> str:
    """Return the path of an interpreter that has what the platform model needs.

    Tried in this order: $BRIDGE_SIMGRID_PYTHON (and then nothing else), this one, /usr/bin/python3, python3
    on PATH. A BridgeError says that there is none, and what to install.
    """
    named = os.environ.get(VARIABLE)
    candidates = [named] if named else [sys.executable, "/usr/bin/python3", shutil.which("python3") or ""]
    tried = list(dict.fromkeys(filter(None, candidates)))
    for python in tried:
        if _has_modules(python):
            return python
    what = "no Python here, 3.11 or later, has the module simgrid"
    raise BridgeError(what, where=f"${VARIABLE}={named}" if named else ", ".join(tried), remedy=REMEDY)


def command() -> list[str]:
    """Return the command that starts the platform model; Batsim's options go behind it."""
    return [find_interpreter(), str(Path(__file__).with_name("__main__.py"))]


def _has_modules(python: str) -> bool:
    try:
        done = subprocess.run([python, "-c", _NEEDED], capture_output=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
