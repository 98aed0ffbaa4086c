"""Power states of the compute hosts: what they are in, what they should be in, and what to say about it."""

import numpy as np

from bridge.batsim.events import SetPowerState
from bridge.wire.hosts import Hosts, from_ids

#: No power state: a host that is not on its way to one.
_NONE = -1


class HostStates:
    """Follows the power states of equal hosts.

    Between computing states a host changes at once; to and from the sleeping state it takes time, and
    `arrived` tells when it is there. What should be is told with `want`, what has to be said for it with
    `changes`.

    Args:
        hosts: how many.
        initial: the state that all are in at first.
        sleeping: the sleeping state, −1 if there is none.
        watts: what a host draws at most in each state; states that draw less are set before those that
            draw more, so that nothing rises before it may.
    """

    def __init__(self, hosts: int, initial: int, sleeping: int, watts: tuple[float, ...]) -> None:
        self._at = np.full(hosts, initial, np.int64)
        self._goal = self._at.copy()
        self._way = np.full(hosts, _NONE, np.int64)
        self._barred = np.zeros(hosts, np.bool_)
        self._sleeping = sleeping
        self._watts = np.asarray(watts, np.float64)
        self._settled = True

    def want(self, hosts: Hosts, pstate: int) -> None:
        """Hosts should be in a state; one that is on its way elsewhere goes there afterwards."""
        for low, high in hosts:
            self._goal[low : high + 1] = pstate
        self._settled = False

    def bar(self, hosts: Hosts, barred: bool) -> None:
        """Hosts have gone, and no state of theirs may be changed, or are back."""
        for low, high in hosts:
            self._barred[low : high + 1] = barred
        self._settled = False

    def arrived(self, hosts: Hosts, pstate: int) -> None:
        """Hosts have reached a state; nothing new if they were not on their way to it."""
        for low, high in hosts:
            part = slice(low, high + 1)
            there = self._way[part] == pstate
            self._at[part][there] = pstate
            self._way[part][there] = _NONE
        self._settled = False

    def ready(self, hosts: Hosts) -> bool:
        """Tell whether hosts are where they should be."""
        return all(
            bool((self._at[low : high + 1] == self._goal[low : high + 1]).all())
            and bool((self._way[low : high + 1] == _NONE).all())
            for low, high in hosts
        )

    def changes(self, now: int) -> list[SetPowerState]:
        """Return what to say at once so that hosts go where they should be, in the order to be said."""
        if self._settled:
            return []
        self._settled = True
        found = np.flatnonzero((self._at != self._goal) & (self._way == _NONE) & ~self._barred)
        if not len(found):
            return []
        here, there = self._at[found], self._goal[found]
        rises = self._watts[there] > self._watts[here]
        asleep = here == self._sleeping
        made = []
        keys = zip(rises.tolist(), there.tolist(), asleep.tolist(), strict=True)
        groups: dict[tuple[bool, int, bool], list[int]] = {}
        for host, key in zip(found.tolist(), keys, strict=True):
            groups.setdefault(key, []).append(host)
        for key in sorted(groups):
            _, pstate, sleeps = key
            ids = groups[key]
            if sleeps or pstate == self._sleeping:
                self._way[ids] = pstate
            else:
                self._at[ids] = pstate
            made.append(SetPowerState(now, from_ids(ids), pstate))
        return made
