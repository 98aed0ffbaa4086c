"""How to wait for an answer: awake while cores are free, since being woken takes longer than most answers."""

import os
import time
from pathlib import Path

from bridge.wire.zmtp import Connection

#: Seconds to look for the next message awake.
_SPIN = 500e-6
#: Cores that we may use.
_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
#: Where Linux tells how many want to run just now.
_LOAD = Path("/proc/loadavg")
#: Seconds between two counts of the threads that want to run, and how much a count weighs.
_COUNT, _WEIGHT = 0.02, 0.1


class BusyWaiter:
    """Counts from time to time how many threads want to run, and looks out where that leaves a core free.

    ``slack`` is how many more than the cores may want to, on average, before we take no core from the peer.
    """

    def __init__(self, slack: float) -> None:
        self._slack = slack
        self._wanting, self._counted = 0.0, 0.0

    def should_spin(self) -> bool:
        """Tell whether a core is free for us while we wait."""
        now = time.monotonic()
        if now - self._counted >= _COUNT:
            weight = _WEIGHT if self._counted else 1.0
            self._counted = now
            self._wanting += weight * (_runnable() - self._wanting)
        return _CORES > 1 and self._wanting <= _CORES + self._slack

    def messages(self, connection: Connection) -> list[list[bytes]]:
        """Return the messages that come on a connection; waits up to `GLANCE` for them, awake at first."""
        until = time.monotonic() + _SPIN if self.should_spin() else 0.0
        while time.monotonic() < until and connection.open:
            if messages := connection.messages():
                return messages
        return connection.messages(wait=True) if connection.open else []


def _runnable() -> float:
    """Return how many threads of the machine run or want to run."""
    try:
        return float(_LOAD.read_text(encoding="utf-8").split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):  # no Linux
        return os.getloadavg()[0]
