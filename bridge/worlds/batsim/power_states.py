"""Power states of the machine: which state the hosts of a job run in, and where hosts without a job go.

| rule | a job's hosts | hosts without a job |
|---|---|---|
| power per job | the state at or above the job's watts per node | the lowest state |
| DVFS | the slow state if none waits and few hosts are busy at its start, else the fast one | the slow one |
| shutdown | are woken first where they sleep | sleep once they have been idle for so long |

Shutdown goes with either of the others, or alone. Hosts change state only while no job is on them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bridge.wire.events import SetPowerState
from bridge.wire.hosts import Hosts, from_ids, size
from bridge.workload.job_power import PowerLevels

#: No power state: a host that is not on its way to one.
_NONE = -1
#: Not idle: the host works, or is off, or is on its way off or on.
_NOT_IDLE = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Dvfs:
    """Runs jobs in the slow state if they start while no job waits and few hosts are busy."""

    slow: int
    fast: int
    busy_share: float


@dataclass(frozen=True)
class PowerPlan:
    """How the power states of a platform of equal compute hosts are used.

    Attributes:
        watts: what a host draws at most in each state, W.
        initial: the state that hosts are in at first.
        rest: the state of hosts that wait for work.
        levels: power per job: what the nodes of a job can draw; None: not done.
        sleeping: the sleeping state; −1: hosts are never switched off.
        idle_limit: how long a host waits for work before it is switched off, microseconds.
    """

    watts: tuple[float, ...]
    initial: int = 0
    rest: int = 0
    levels: PowerLevels | None = None
    states: tuple[int, ...] = ()
    dvfs: Dvfs | None = None
    sleeping: int = -1
    idle_limit: int = 0

    @property
    def shuts_down(self) -> bool:
        return self.sleeping >= 0


def _mark(values: npt.NDArray[Any], hosts: Hosts, value: int) -> None:
    for low, high in hosts:
        values[low : high + 1] = value


class HostStates:
    """Follows the power states of equal hosts.

    Between computing states a host changes at once; to and from the sleeping state (−1: there is none) it
    takes time, and `on_reached` tells when it is there. What should be is told with `set_target`, what has
    to be said for it with `changes`. `watts`: what a host draws at most in each state; states that draw less
    are set before those that draw more, so that nothing rises before it may.
    """

    def __init__(self, hosts: int, initial: int, sleeping: int, watts: tuple[float, ...]) -> None:
        self._at = np.full(hosts, initial, np.int64)
        self._goal = self._at.copy()
        self._way = np.full(hosts, _NONE, np.int64)
        self._barred = np.zeros(hosts, np.bool_)
        self._sleeping = sleeping
        self._watts = np.asarray(watts, np.float64)
        self._settled = True

    def set_target(self, hosts: Hosts, pstate: int) -> None:
        """Hosts should be in a state; one that is on its way elsewhere goes there afterwards."""
        _mark(self._goal, hosts, pstate)
        self._settled = False

    def set_unavailable(self, hosts: Hosts, barred: bool) -> None:
        """Hosts have gone, and no state of theirs may be changed, or are back."""
        _mark(self._barred, hosts, barred)
        self._settled = False

    def on_reached(self, hosts: Hosts, pstate: int) -> None:
        """Hosts have reached a state; nothing new if they were not on their way to it."""
        for low, high in hosts:
            part = slice(low, high + 1)
            there = self._way[part] == pstate
            self._at[part][there] = pstate
            self._way[part][there] = _NONE
        self._settled = False

    def ready(self, hosts: Hosts) -> bool:
        return all(
            bool((self._at[low : high + 1] == self._goal[low : high + 1]).all())
            and bool((self._way[low : high + 1] == _NONE).all())
            for low, high in hosts
        )

    def changes(self, now: int) -> list[SetPowerState]:
        """Return the decisions that move hosts towards their target states, in the order to be sent."""
        if self._settled:
            return []
        self._settled = True
        hosts = np.flatnonzero((self._at != self._goal) & (self._way == _NONE) & ~self._barred)
        if not len(hosts):
            return []
        here, there = self._at[hosts], self._goal[hosts]
        rises = self._watts[there] > self._watts[here]
        asleep = here == self._sleeping
        keys = zip(rises.tolist(), there.tolist(), asleep.tolist(), strict=True)
        groups: dict[tuple[bool, int, bool], list[int]] = {}
        for host, key in zip(hosts.tolist(), keys, strict=True):
            groups.setdefault(key, []).append(host)
        events = []
        for (_, pstate, sleeps), ids in sorted(groups.items()):
            if sleeps or pstate == self._sleeping:
                self._way[ids] = pstate
            else:
                self._at[ids] = pstate
            events.append(SetPowerState(now, from_ids(ids), pstate))
        return events


class Power:
    """Carries a plan out on so many hosts; `states.changes` has to be said before jobs are executed."""

    def __init__(self, plan: PowerPlan, hosts: int) -> None:
        self.plan = plan
        self._hosts = hosts
        self._busy = 0
        self.states = HostStates(hosts, plan.initial, plan.sleeping, plan.watts)
        self._idle_since = np.zeros(hosts, np.int64)  # microseconds, or `_NOT_IDLE`
        self.states.set_target(((0, hosts - 1),), plan.rest)

    def on_start(self, hosts: Hosts, level: int, waiting: int) -> None:
        """Hosts were given to a job, at its level where there is power per job; so many jobs wait still."""
        self._busy += size(hosts)
        self.states.set_target(hosts, self._state(level, waiting))
        _mark(self._idle_since, hosts, _NOT_IDLE)

    def _state(self, level: int, waiting: int) -> int:
        plan = self.plan
        if plan.levels is not None:
            return plan.states[level]
        if plan.dvfs is None:
            return plan.rest
        calm = not waiting and self._busy <= plan.dvfs.busy_share * self._hosts
        return plan.dvfs.slow if calm else plan.dvfs.fast

    def release(self, hosts: Hosts, now: int) -> None:
        self._busy -= size(hosts)
        self.states.set_target(hosts, self.plan.rest)
        _mark(self._idle_since, hosts, now)

    def select_hosts_to_sleep(self, now: int) -> Hosts:
        """Return the hosts that have been idle for too long, which are to sleep."""
        if not self.plan.shuts_down:
            return ()
        hosts = from_ids(np.flatnonzero(self._idle_since <= now - self.plan.idle_limit).tolist())
        if hosts:
            _mark(self._idle_since, hosts, _NOT_IDLE)
            self.states.set_target(hosts, self.plan.sleeping)
        return hosts

    def next_sleep_time(self) -> int | None:
        """Return when `select_hosts_to_sleep` will have something to do if nothing happens; None if never."""
        first = int(self._idle_since.min())
        return first + self.plan.idle_limit if self.plan.shuts_down and first != _NOT_IDLE else None
