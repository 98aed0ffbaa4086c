"""Routes between hosts as SimGrid 3.32 takes them, and how long one task takes along them.

Which links, the latency along them, and the time of one parallel task alone on an idle platform.
"""

import collections
import dataclasses
import heapq
import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from bridge.platform.model import Link, Platform, RouteEntry, Spoke, Zone

#: SimGrid's implicit loopback of Full, Floyd and Dijkstra zones (parallel-task model): 10 GB/s, no latency.
LOOPBACK = Link("__loopback__", 10e9, 0.0, "FATPIPE", 0)
_LOOPED = RouteEntry((LOOPBACK.name,), "", "", 0)
_FAR = 1 << 40


class RouteError(Exception):
    """There is no route, and SimGrid would stop (or, in a Full zone, silently transfer in no time)."""


@dataclasses.dataclass(frozen=True, slots=True)
class Route:
    """The links from one host to another, in order, and the sum of their latencies in seconds."""

    links: tuple[Link, ...]
    latency: float


class Routes:
    """Answers route questions about one platform; zone tables are made on first use."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self._zone_of = {name: host.zone for name, host in platform.hosts.items()} | platform.routers
        self._before: dict[tuple[str, str], Mapping[str, str]] = {}  # (zone, source) -> node -> one before
        self._numbers: dict[str, dict[str, int]] = {}

    def route(self, src: str, dst: str) -> Route:
        names = self._global(src, dst, 0)
        links = tuple(LOOPBACK if name == LOOPBACK.name else self.platform.link(name) for name in names)
        return Route(links, sum(link.latency for link in links))

    def _global(self, src: str, dst: str, depth: int) -> list[str]:
        """Links between hosts or routers anywhere."""
        if depth > 64:
            raise RouteError(f"the gateways between '{src}' and '{dst}' lead in a circle")
        if zone := next((end for end in (src, dst) if end not in self._zone_of), ""):
            raise RouteError(f"the gateway '{zone}' is a zone, not a host or router")
        from_src, from_dst = (self.platform.zones[self._zone_of[end]].ancestors() for end in (src, dst))
        up, down = from_src[:], from_dst[:]
        common = None
        while len(up) > 1 and len(down) > 1 and up[-1] is down[-1]:
            common = up.pop()
            down.pop()
        together = up[-1] is down[-1]  # both in one zone, or one above the other
        if from_src[0] is from_dst[0]:
            common, together = from_src[0], True
        elif together:
            common = up[-1]
        if common is None:
            raise RouteError(f"'{src}' and '{dst}' have no zone in common")
        if from_src[0] is common and from_dst[0] is common:
            entry = common.bypass.get((src, dst)) or self._local(common, src, dst, depth)
            return list(entry.links)
        bypass = self._bypass(common, up, down)
        if bypass is not None:
            return self._via(bypass, src, dst, depth)
        if together:
            return list(self._local(common, src, dst, depth).links)
        route = self._local(common, up[-1].name, down[-1].name, depth)
        if not route.gw_src or not route.gw_dst:
            what = f"zone '{common.name}' has no route from zone '{up[-1].name}' to '{down[-1].name}'"
            raise RouteError(what)
        return self._via(route, src, dst, depth)

    def _via(self, entry: RouteEntry, src: str, dst: str, depth: int) -> list[str]:
        """The links of a route between zones, with the ways to its gateways."""
        before = self._global(src, entry.gw_src, depth + 1) if src != entry.gw_src else []
        after = self._global(entry.gw_dst, dst, depth + 1) if dst != entry.gw_dst else []
        return [*before, *entry.links, *after]

    @staticmethod
    def _bypass(common: Zone, up: list[Zone], down: list[Zone]) -> RouteEntry | None:
        """The bypass in the common zone between the innermost zones that have one."""
        if not common.bypass:
            return None
        for far in range(max(len(up), len(down))):
            near = [pair for i in range(far) for pair in ((i, far), (far, i))]
            for i, j in [*near, (far, far)]:
                if i < len(up) and j < len(down) and (up[i].name, down[j].name) in common.bypass:
                    return common.bypass[up[i].name, down[j].name]
        return None

    # ---- inside one zone -----------------------------------------------------------------------------------
    def _local(self, zone: Zone, src: str, dst: str, depth: int) -> RouteEntry:
        if zone.routing == "full":
            return self._step(zone, src, dst)
        if zone.routing == "star":
            return self._star(zone, src, dst)
        if zone.routing == "shape":
            return self._shape(zone, src, dst)
        if zone.routing in ("floyd", "dijkstra"):
            return self._shortest(zone, src, dst, depth)
        if zone.wifi:  # every station by way of the access point, also to itself
            access = zone.properties.get("access_point", zone.name)
            return RouteEntry(tuple(zone.wifi for end in (src, dst) if end != access), "", "", 0)
        raise RouteError(f"zone '{zone.name}' has no links: nothing is reachable in it")

    def _step(self, zone: Zone, src: str, dst: str) -> RouteEntry:
        entry = zone.routes.get((src, dst))
        if entry is None and (src != dst or zone.children):
            raise RouteError(f"zone '{zone.name}' has no route from '{src}' to '{dst}'")
        return entry or _LOOPED

    def _star(self, zone: Zone, src: str, dst: str) -> RouteEntry:
        mine, theirs = zone.spokes.get(src, Spoke((), ())), zone.spokes.get(dst, Spoke((), ()))
        if src == dst and mine.loopback is not None:
            links = mine.loopback
        elif mine.up is None or theirs.down is None:
            lacking = src if mine.up is None else dst
            raise RouteError(f"'{lacking}' has a loopback but no <host_link> in zone '{zone.name}'")
        else:
            links = (*mine.up, *theirs.down)
        return RouteEntry(tuple(dict.fromkeys(links)), "", "", 0)  # SimGrid passes each link once

    def _shape(self, zone: Zone, src: str, dst: str) -> RouteEntry:
        assert zone.topology is not None
        links: list[str] | tuple[str, ...] = []
        if src not in zone.routers and dst not in zone.routers:
            if zone.name not in self._numbers:
                self._numbers[zone.name] = {name: number for number, name in enumerate(zone.hosts)}
            numbers, loopback = self._numbers[zone.name], zone.spokes[src].loopback
            looped = src == dst and loopback is not None
            links = loopback or () if looped else zone.topology.route(numbers[src], numbers[dst])
        return RouteEntry(tuple(links), "", "", 0)

    def _shortest(self, zone: Zone, src: str, dst: str, depth: int) -> RouteEntry:
        """The shortest chain of declared routes, by number of links, ties as in SimGrid.

        A zone on the way is crossed from where one arrives to where one leaves.
        """
        if (zone.name, src) not in self._before:
            if zone.routing == "floyd":
                self._floyd(zone)
            else:
                self._dijkstra(zone, src)
        before = self._before[zone.name, src]
        steps: list[RouteEntry] = []
        here = dst
        while not steps or here != src:
            there = here if here == src and zone.routing == "dijkstra" else before.get(here)
            if there is None:
                raise RouteError(f"zone '{zone.name}' has no route from '{src}' to '{dst}'")
            steps.insert(0, zone.routes.get((there, here), _LOOPED))
            here = there
        links = list(steps[0].links)
        for last, step in itertools.pairwise(steps):
            if zone.children and last.gw_dst != step.gw_src:
                links += self._global(last.gw_dst, step.gw_src, depth + 1)
            links += step.links
        return RouteEntry(tuple(links), steps[0].gw_src, steps[-1].gw_dst, 0)

    def _floyd(self, zone: Zone) -> None:
        """Predecessors for all sources of a zone, as SimGrid's Floyd-Warshall tables have them."""
        members = [child.name for child in zone.children] or [*zone.hosts, *zone.routers]
        number = {name: i for i, name in enumerate(members)}
        cost = np.full((len(members), len(members)), _FAR)
        last = np.full((len(members), len(members)), -1)
        for (a, b), entry in zone.routes.items():
            cost[number[a], number[b]] = len(entry.links)
            last[number[a], number[b]] = number[a]
        if not zone.children:
            alone = np.flatnonzero(last.diagonal() < 0)
            cost[alone, alone], last[alone, alone] = 1, alone
        for c in range(len(members)):
            through = cost[:, c : c + 1] + cost[c : c + 1, :]
            better = through < cost
            cost = np.where(better, through, cost)
            last = np.where(better, last[c][None, :], last)
        for row, name in zip(last.tolist(), members, strict=True):
            before = {there: members[at] for there, at in zip(members, row, strict=True) if at >= 0}
            self._before[zone.name, name] = before

    def _dijkstra(self, zone: Zone, src: str) -> None:
        """Predecessors for one source; among equals the first found, nodes in the order of routes."""
        order = {name: i for i, name in enumerate(dict.fromkeys(n for pair in zone.routes for n in pair))}
        out: dict[str, list[tuple[str, int]]] = {}
        for (a, b), entry in zone.routes.items():
            out.setdefault(a, []).append((b, len(entry.links)))
        cost, before = {src: 0}, dict[str, str]()
        queue = [(0, order.get(src, 0), src)]
        while queue:
            at, _, here = heapq.heappop(queue)
            for there, length in out.get(here, []) if at <= cost[here] else []:
                if at + length < cost.get(there, _FAR):
                    cost[there], before[there] = at + length, here
                    heapq.heappush(queue, (at + length, order[there], there))
        self._before[zone.name, src] = before


#: SimGrid's `network/TCP-gamma`: bytes of the largest TCP window.
TCP_WINDOW = 4_194_304.0
#: Batsim reports this for a task that has nothing to do (s).
EMPTY_TASK = 1e-5


class Timing:
    """Closed-form times on one platform, hosts in their initial pstate.

    The parallel-task model (ptask_L07 of SimGrid 3.32): first the largest latency of all its transfers, then
    all computations and transfers advance in step, as fast as the tightest host or link allows. Hosts have
    speed × cores, and one rank no more than one core; SHARED links add the bytes of all transfers that cross
    them (both directions of a plain link together), FATPIPE links count the largest only; a transfer is also
    bounded by the TCP window.
    """

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.routes = Routes(platform)

    def task(
        self, ranks: Sequence[str], flops: Sequence[float], transfers: Mapping[tuple[int, int], float]
    ) -> float:
        """Seconds that a parallel task takes alone: host and flop of each rank, bytes from rank to rank.

        Raises RouteError: no route; ValueError: work at speed 0.
        """
        demands: list[float] = []  # seconds that each resource alone would need
        load: dict[str, float] = collections.defaultdict(float)
        hosts = self.platform.hosts
        for name, work in zip(ranks, flops, strict=True):
            if work > 0:
                if hosts[name].speed <= 0:
                    raise ValueError(f"host '{name}' has speed 0 and cannot compute")
                load[name] += work
                demands.append(work / hosts[name].speed)
        demands += [work / (hosts[name].speed * hosts[name].cores) for name, work in load.items()]
        latency, window = 0.0, 0.0
        crossing: dict[Link, float] = collections.defaultdict(float)
        for (src, dst), size in transfers.items():
            if size <= 0:
                continue
            route = self.routes.route(ranks[src], ranks[dst])
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
        return self.task(hosts, [cpu] * len(hosts), pairs)

    def storage(self, hosts: Sequence[str], storage: str, read: float, write: float) -> float:
        """`parallel_homogeneous_pfs`: each host reads from and writes to the storage host that many bytes."""
        last = len(hosts)
        pairs = {(last, i): read for i in range(last)} | {(i, last): write for i in range(last)}
        return self.task([*hosts, storage], [0.0] * (last + 1), pairs)

    def staging(self, source: str, target: str, size: float) -> float:
        """`data_staging`: bytes from one storage host to another."""
        return self.task([source, target], [0.0, 0.0], {(0, 1): size})
