"""How to wait for an answer: awake while cores are free, since being woken takes longer than most answers.

Where all are busy, two who take turns do best on one core: together they want it all the time, each wakes the
other at once, and the rest is moved away. On two cores each of them waits for others.
"""

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


class Lookout:
    """Counts from time to time how many threads want to run, and looks out where that leaves a core free.

    ``slack`` is how many more than the cores may want to, on average, before we take no core from the peer;
    who ``follows`` then runs on the peer's, until `close`.
    """

    def __init__(self, slack: float, *, follows: bool = False) -> None:
        self._slack = slack
        self._wanting, self._counted = 0.0, 0.0
        self._ours = os.sched_getaffinity(0) if follows and hasattr(os, "sched_setaffinity") else set[int]()
        self._where = self._ours

    def awake(self) -> bool:
        """Tell whether a core is free for us while we wait."""
        now = time.monotonic()
        if now - self._counted >= _COUNT:
            weight = _WEIGHT if self._counted else 1.0
            self._counted = now
            self._wanting += weight * (_runnable() - self._wanting)
        return _CORES > 1 and self._wanting <= _CORES + self._slack

    def messages(self, connection: Connection) -> list[list[bytes]]:
        """Return the messages that come on a connection; waits up to `GLANCE` for them, awake at first."""
        counted, awake = self._counted, self.awake()
        if counted != self._counted:
            self._run_on(-1 if awake else connection.core())
        until = time.monotonic() + _SPIN if awake else 0.0
        while time.monotonic() < until and connection.open:
            if found := connection.messages():
                return found
        return connection.messages(wait=True) if connection.open else []

    def _run_on(self, core: int) -> None:
        """Run on this core, or on all that we have been given if it is none of them."""
        where = {core} & self._ours or self._ours
        if where == self._where:
            return
        try:
            os.sched_setaffinity(0, where)
            self._where = where
        except OSError:  # we may not, or have been given others since
            self._where = self._ours = set()

    def close(self) -> None:
        """Run anywhere again."""
        self._run_on(-1)


def _runnable() -> float:
    """Return how many threads of the machine run or want to run."""
    try:
        return float(_LOAD.read_text().split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):  # no Linux
        return os.getloadavg()[0]
