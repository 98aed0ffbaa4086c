"""Runs the simulation in a child process, so that a crash of SimGrid too ends in one clear message.

SimGrid ends the process with abort() where it does not like a platform. The parent turns that into a message
with what SimGrid said last. It passes signals on, and the child does not outlive it.
"""

import ctypes
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from bridge.simgrid.errors import CRASHED
from bridge.simgrid.options import say

_PR_SET_PDEATHSIG = 1


def supervised(work: Callable[[], int], platform: str, keep_log: bool) -> int:
    """Call ``work`` in a child process and return its exit status.

    Args:
        platform: the platform file, named when SimGrid crashes.
        keep_log: leave SimGrid's own messages on the standard error stream.
    """
    log = tempfile.TemporaryFile()  # noqa: SIM115 — shared with the child until both end
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _die_with(parent)
        if not keep_log:
            _redirect(log.fileno())
        os._exit(_flushed(work))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _forward_to(child))
    status = os.waitstatus_to_exitcode(_wait(child))
    if status >= 0:
        return status
    log.seek(0)
    words = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    said = next((line for line in words if "CRITICAL" in line), words[-1] if words else "")
    if status in (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGFPE):
        say(f"bridge simgrid: error: {platform}: SimGrid stopped ({signal.Signals(-status).name})")
        say(
            f"  {said}"
            if said
            else "  It said nothing. Check the platform, zone sizes and gateways above all."
        )
        return CRASHED
    return 128 - status


def _flushed(work: Callable[[], int]) -> int:
    try:
        return work()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _die_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(CRASHED)


def _redirect(log: int) -> None:
    """Send what the C library writes to the standard error stream to a file; Python's own stays."""
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    os.dup2(log, 2)


def _forward_to(child: int) -> Callable[[int, Any], None]:
    def forward(number: int, _frame: Any) -> None:
        # A Ctrl-C reaches both processes by itself; a second one does no harm.
        os.kill(child, number)

    return forward


def _wait(child: int) -> int:
    return os.waitpid(child, 0)[1]
