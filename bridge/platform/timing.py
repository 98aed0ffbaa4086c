"""How long one parallel task takes alone on an idle platform, in closed form.

The parallel-task model (ptask_L07 of SimGrid 3.32): first the largest latency of all its transfers, then
all computations and transfers advance in step, as fast as the tightest host or link allows. Hosts have
speed × cores, and one rank no more than one core; SHARED links add the bytes of all transfers that cross
them (both directions of a plain link together), FATPIPE links count the largest only; a transfer is also
bounded by the TCP window.
"""

import collections
import dataclasses
from collections.abc import Mapping, Sequence

from bridge.platform.model import Link, Platform
from bridge.platform.routes import Routes

#: SimGrid's `network/TCP-gamma`: bytes of the largest TCP window.
TCP_WINDOW = 4_194_304.0
#: Batsim reports this for a task that has nothing to do (s).
EMPTY_TASK = 1e-5


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """A parallel task: flop of each rank, and bytes from rank to rank (absent pairs transfer nothing)."""

    hosts: Sequence[str]
    flops: Sequence[float]
    transfers: Mapping[tuple[int, int], float]


class Timing:
    """Closed-form times on one platform, hosts in their initial pstate."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.routes = Routes(platform)

    def task(self, task: Task) -> float:
        """Seconds that the task takes alone. Raises RouteError: no route; ValueError: work at speed 0."""
        demands: list[float] = []  # seconds that each resource alone would need
        load: dict[str, float] = collections.defaultdict(float)
        for name, flops in zip(task.hosts, task.flops, strict=True):
            host = self.platform.hosts[name]
            if flops > 0:
                if host.speed <= 0:
                    raise ValueError(f"host '{name}' has speed 0 and cannot compute")
                load[name] += flops
                demands.append(flops / host.speed)
        hosts = self.platform.hosts
        demands += [flops / (hosts[name].speed * hosts[name].cores) for name, flops in load.items()]
        latency, window = 0.0, 0.0
        crossing: dict[Link, float] = collections.defaultdict(float)
        for (src, dst), size in task.transfers.items():
            if size <= 0:
                continue
            route = self.routes.route(task.hosts[src], task.hosts[dst])
            latency = max(latency, route.latency)
            window = max(window, route.latency * size)
            for link in route.links:
                before = crossing[link]
                crossing[link] = max(before, size) if link.sharing == "FATPIPE" else before + size
        demands += [size / link.bandwidth for link, size in crossing.items()]
        demands.append(2.0 * window / TCP_WINDOW)
        busy = max(demands)
        return latency + busy if busy > 0 or crossing else EMPTY_TASK

    def homogeneous(self, hosts: Sequence[str], cpu: float, com: float) -> float:
        """`parallel_homogeneous`: `cpu` flop on each host, `com` bytes between each ordered pair."""
        pairs = {(i, j): com for i in range(len(hosts)) for j in range(len(hosts)) if i != j and com > 0}
        return self.task(Task(hosts, [cpu] * len(hosts), pairs))

    def storage(self, hosts: Sequence[str], storage: str, read: float, write: float) -> float:
        """`parallel_homogeneous_pfs`: each host reads from and writes to the storage host that many bytes."""
        last = len(hosts)
        pairs = {(last, i): read for i in range(last)} | {(i, last): write for i in range(last)}
        return self.task(Task([*hosts, storage], [0.0] * (last + 1), pairs))

    def staging(self, source: str, target: str, size: float) -> float:
        """`data_staging`: bytes from one storage host to another."""
        return self.task(Task([source, target], [0.0, 0.0], {(0, 1): size}))
