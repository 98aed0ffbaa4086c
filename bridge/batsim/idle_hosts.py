"""Idle hosts: since when each one waits for work, and which have waited long enough to be switched off."""

import numpy as np

from bridge.wire.hosts import Hosts, from_ids

#: Not idle: the host works, or is off, or is on its way off or on.
_NOT_IDLE = np.iinfo(np.int64).max


class IdleHosts:
    """Times of hosts that wait, microseconds.

    Args:
        hosts: how many; all are idle from time 0 on.
        limit: how long one waits before it is switched off, microseconds.
    """

    def __init__(self, hosts: int, limit: int) -> None:
        self._since = np.zeros(hosts, np.int64)
        self._limit = limit

    def begin(self, hosts: Hosts, now: int) -> None:
        """Hosts wait for work from now on."""
        for low, high in hosts:
            self._since[low : high + 1] = now

    def end(self, hosts: Hosts) -> None:
        """Hosts have work, or are switched off."""
        for low, high in hosts:
            self._since[low : high + 1] = _NOT_IDLE

    def due(self, now: int) -> Hosts:
        """Return the hosts that have waited long enough, which then count as idle no more."""
        found = from_ids(np.flatnonzero(self._since <= now - self._limit).tolist())
        self.end(found)
        return found

    def next_due(self) -> int | None:
        """Return when the next host will have waited long enough; None if none waits."""
        first = int(self._since.min())
        return None if first == _NOT_IDLE else first + self._limit
