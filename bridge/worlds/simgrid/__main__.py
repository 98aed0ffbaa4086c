"""``python3 -m bridge.worlds.simgrid``: one simulation, in a child process: a crash too ends in a message.

SimGrid ends the process with abort() where it does not like a platform. The parent turns that into a message
with what SimGrid said last. It passes signals on, and the child does not outlive it.
"""

import ctypes
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

if not __package__:  # started by path: this folder must not shadow modules of the standard library
    _HERE = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != _HERE]
    # Last, since this may be the site-packages of another interpreter, whose modules are not for this one.
    sys.path.append(str(_HERE.parents[2]))

from bridge.base.errors import BridgeError
from bridge.base.streams import print_utf8
from bridge.worlds.simgrid import options, outputs, simulation
from bridge.worlds.simgrid.options import CRASHED, SimulationOptions, log_line, report_error

_PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> int:
    print_utf8()
    try:
        chosen = options.parse(argv, f"bridge simgrid, behaves like Batsim {outputs.BATSIM_VERSION}")
    except BridgeError as error:
        return report_error(error)
    except SystemExit as stop:
        return int(stop.code or 0)
    log = tempfile.TemporaryFile()  # noqa: SIM115 — shared with the child until both end
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _die_with(parent)
        if not chosen.simgrid_log:
            _redirect(log.fileno())
        os._exit(_simulate(chosen))

    def forward(number: int, _frame: Any) -> None:
        # A Ctrl-C reaches both processes by itself; a second one does no harm.
        os.kill(child, number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, forward)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGFPE):
        return status if status >= 0 else 128 - status
    log.seek(0)
    lines = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    reason = next((line for line in lines if "CRITICAL" in line), lines[-1] if lines else "It said nothing.")
    name = signal.Signals(-status).name
    log_line(f"bridge simgrid: error: {chosen.platform}: SimGrid stopped ({name})\n  {reason}")
    return CRASHED


def _simulate(chosen: SimulationOptions) -> int:
    try:
        return simulation.run(chosen)
    except BaseException as error:
        return report_error(error)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _die_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(CRASHED)


def _redirect(log: int) -> None:
    """Send what the C library writes to the standard error stream to a file; Python's own stays."""
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, encoding="utf-8", errors="backslashreplace")
    os.dup2(log, 2)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
