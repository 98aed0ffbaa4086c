"""Power states of the machine: which state the hosts of a job run in, and where hosts without a job go.

| rule | a job's hosts | hosts without a job |
|---|---|---|
| power per job | the state at or above the job's watts per node | the lowest state |
| DVFS | the slow state if none waits and few hosts are busy at its start, else the fast one | the slow one |
| shutdown | are woken first where they sleep | sleep once they have been idle for so long |

Shutdown goes with either of the others, or alone. Hosts change state only while no job is on them.
"""

from dataclasses import dataclass

from bridge.batsim.events import ResourceStateChanged, SetPowerState
from bridge.batsim.host_states import HostStates
from bridge.batsim.idle_hosts import IdleHosts
from bridge.wire.hosts import Hosts, size
from bridge.workload.job_power import Levels


@dataclass(frozen=True)
class Dvfs:
    """Runs jobs in the slow state that start when nobody waits and at most a share of the hosts is busy."""

    slow: int
    fast: int
    busy_share: float


@dataclass(frozen=True)
class PowerPlan:
    """What is done with the power states of a platform whose compute hosts are all alike.

    Attributes:
        watts: what a host draws at most in each state, W.
        initial: the state that hosts are in at first.
        rest: the state of hosts that wait for work.
        levels: power per job: what the nodes of a job can draw; None: not done.
        states: the state of each level.
        dvfs: None: not done.
        sleeping: the sleeping state; −1: hosts are never switched off.
        idle_limit: how long a host waits for work before it is switched off, microseconds.
    """

    watts: tuple[float, ...]
    initial: int = 0
    rest: int = 0
    levels: Levels | None = None
    states: tuple[int, ...] = ()
    dvfs: Dvfs | None = None
    sleeping: int = -1
    idle_limit: int = 0

    @property
    def shuts_down(self) -> bool:
        """Whether idle hosts are switched off."""
        return self.sleeping >= 0


class Power:
    """Carries a plan out.

    Args:
        plan: what to do.
        hosts: how many compute hosts there are.
    """

    def __init__(self, plan: PowerPlan, hosts: int) -> None:
        self.plan = plan
        self._hosts = hosts
        self._busy = 0
        self._states = HostStates(hosts, plan.initial, plan.sleeping, plan.watts)
        self._idle = IdleHosts(hosts, plan.idle_limit) if plan.shuts_down else None
        self._states.want(((0, hosts - 1),), plan.rest)

    def grant(self, hosts: Hosts, level: int, waiting: int) -> None:
        """Hosts were given to a job.

        Args:
            level: the job's level where there is power per job.
            waiting: how many jobs wait after this pass.
        """
        self._busy += size(hosts)
        self._states.want(hosts, self._state(level, waiting))
        if self._idle is not None:
            self._idle.end(hosts)

    def _state(self, level: int, waiting: int) -> int:
        plan = self.plan
        if plan.levels is not None:
            return plan.states[level]
        if plan.dvfs is None:
            return plan.rest
        calm = not waiting and self._busy <= plan.dvfs.busy_share * self._hosts
        return plan.dvfs.slow if calm else plan.dvfs.fast

    def release(self, hosts: Hosts, now: int) -> None:
        """The job on these hosts is over."""
        self._busy -= size(hosts)
        self._states.want(hosts, self.plan.rest)
        if self._idle is not None:
            self._idle.begin(hosts, now)

    def bar(self, hosts: Hosts, barred: bool) -> None:
        """Hosts have become unavailable, or are back."""
        self._states.bar(hosts, barred)

    def arrived(self, event: ResourceStateChanged) -> None:
        """Hosts have reached a state."""
        self._states.arrived(event.hosts, event.pstate)

    def ready(self, hosts: Hosts) -> bool:
        """Tell whether a job on these hosts can begin."""
        return self._states.ready(hosts)

    def doze(self, now: int) -> Hosts:
        """Return the hosts that have been idle for too long, which are to sleep."""
        hosts = self._idle.due(now) if self._idle is not None else ()
        if hosts:
            self._states.want(hosts, self.plan.sleeping)
        return hosts

    def next_doze(self) -> int | None:
        """Return when `doze` will have something to do if nothing happens; None if never."""
        return self._idle.next_due() if self._idle is not None else None

    def changes(self, now: int) -> list[SetPowerState]:
        """Return what has to be said now; jobs are executed after it."""
        return self._states.changes(now)
