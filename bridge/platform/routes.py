"""Routes between hosts as SimGrid 3.32 takes them: which links, and the latency along them."""

import dataclasses
import heapq
import itertools

import numpy as np

from bridge.platform.model import Link, Platform, RouteEntry, Spoke, Zone

#: SimGrid's implicit loopback of Full, Floyd and Dijkstra zones (parallel-task model): 10 GB/s, no latency.
LOOPBACK = Link("__loopback__", 10e9, 0.0, "FATPIPE", 0)
_FAR = np.int64(1) << 40


class RouteError(Exception):
    """There is no route, and SimGrid would stop (or, in a Full zone, silently transfer in no time)."""


@dataclasses.dataclass(frozen=True, slots=True)
class Route:
    """The links from one host to another, in order, and the sum of their latencies in seconds."""

    links: tuple[Link, ...]
    latency: float


@dataclasses.dataclass(slots=True)
class _Found:
    links: list[str]
    gw_src: str = ""
    gw_dst: str = ""


class Routes:
    """Answers route questions about one platform; zone tables are made on first use."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self._zone_of = {name: host.zone for name, host in platform.hosts.items()} | platform.routers
        self._floyd: dict[str, tuple[list[str], np.ndarray]] = {}
        self._trees: dict[tuple[str, str], dict[str, str]] = {}
        self._numbers: dict[str, dict[str, int]] = {}

    def route(self, src: str, dst: str) -> Route:
        """The route from host (or router) `src` to `dst`.

        Raises:
            RouteError: there is none, with the reason.
            KeyError: no such host or router.
        """
        links = []
        for name in self._global(src, dst, 0):
            links.append(LOOPBACK if name == LOOPBACK.name else self.platform.link(name))
        return Route(tuple(links), sum(link.latency for link in links))

    def _zone(self, name: str) -> Zone:
        return self.platform.zones[self._zone_of[name]]

    def _global(self, src: str, dst: str, depth: int) -> list[str]:
        if depth > 64:
            raise RouteError(f"the gateways between '{src}' and '{dst}' lead in a circle")
        from_src, from_dst = self._zone(src).ancestors(), self._zone(dst).ancestors()
        common: Zone | None = None
        if from_src[0] is from_dst[0]:
            common = from_src[0]
            src_side = dst_side = common
        else:
            while len(from_src) > 1 and len(from_dst) > 1 and from_src[-1] is from_dst[-1]:
                common = from_src.pop()
                from_dst.pop()
            src_side, dst_side = from_src[-1], from_dst[-1]
            if src_side is dst_side:
                common = src_side
        if common is None:
            raise RouteError(f"'{src}' and '{dst}' have no zone in common")
        bypassed = self._bypass(common, src, dst, depth)
        if bypassed is not None:
            return bypassed
        if src_side is dst_side:
            return self._local(common, src, dst, depth).links
        found = self._local(common, src_side.name, dst_side.name, depth)
        if not found.gw_src or not found.gw_dst:
            raise RouteError(
                f"zone '{common.name}' has no route from zone '{src_side.name}' to '{dst_side.name}'"
            )
        before = self._global(src, found.gw_src, depth + 1) if src != found.gw_src else []
        after = self._global(found.gw_dst, dst, depth + 1) if dst != found.gw_dst else []
        return [*before, *found.links, *after]

    def _bypass(self, common: Zone, src: str, dst: str, depth: int) -> list[str] | None:
        if not common.bypass:
            return None
        if self._zone(src) is common and self._zone(dst) is common:
            entry = common.bypass.get((src, dst))
            return list(entry.links) if entry is not None else None
        up, down = self._zone(src).ancestors(), self._zone(dst).ancestors()
        while len(up) > 1 and len(down) > 1 and up[-1] is down[-1]:
            up.pop()
            down.pop()
        for far in range(max(len(up), len(down))):
            near = [pair for i in range(far) for pair in ((i, far), (far, i))]
            for i, j in [*near, (far, far)]:
                if i < len(up) and j < len(down) and (up[i].name, down[j].name) in common.bypass:
                    entry = common.bypass[up[i].name, down[j].name]
                    before = self._global(src, entry.gw_src, depth + 1) if src != entry.gw_src else []
                    after = self._global(entry.gw_dst, dst, depth + 1) if dst != entry.gw_dst else []
                    return [*before, *entry.links, *after]
        return None

    # ---- inside one zone -----------------------------------------------------------------------------------
    def _local(self, zone: Zone, src: str, dst: str, depth: int) -> _Found:
        if zone.routing == "full":
            return self._full(zone, src, dst)
        if zone.routing == "star":
            return self._star(zone, src, dst)
        if zone.routing == "shape":
            return self._shape(zone, src, dst)
        if zone.routing == "floyd":
            return self._join(zone, self._floyd_path(zone, src, dst), depth)
        if zone.routing == "dijkstra":
            return self._join(zone, self._dijkstra_path(zone, src, dst), depth)
        raise RouteError(f"zone '{zone.name}' has routing None: nothing is reachable in it")

    def _full(self, zone: Zone, src: str, dst: str) -> _Found:
        entry = zone.routes.get((src, dst))
        if entry is None:
            if src == dst and not zone.children:
                return _Found([LOOPBACK.name])
            raise RouteError(f"zone '{zone.name}' has no route from '{src}' to '{dst}'")
        return _Found(list(entry.links), entry.gw_src, entry.gw_dst)

    def _star(self, zone: Zone, src: str, dst: str) -> _Found:
        mine, theirs = zone.spokes.get(src, Spoke((), ())), zone.spokes.get(dst, Spoke((), ()))
        if src == dst and mine.loopback is not None:
            return _Found(list(dict.fromkeys(mine.loopback)))
        if mine.up is None or theirs.down is None:
            lacking = src if mine.up is None else dst
            raise RouteError(f"'{lacking}' has a loopback but no <host_link> in zone '{zone.name}'")
        return _Found(list(dict.fromkeys([*mine.up, *theirs.down])))  # SimGrid passes each link once

    def _shape(self, zone: Zone, src: str, dst: str) -> _Found:
        assert zone.topology is not None
        if src in zone.routers or dst in zone.routers:
            return _Found([])
        loopback = zone.spokes[src].loopback
        if src == dst and loopback is not None:
            return _Found(list(loopback))
        numbers = self._numbers.get(zone.name)
        if numbers is None:
            numbers = self._numbers[zone.name] = {name: number for number, name in enumerate(zone.hosts)}
        return _Found(zone.topology.route(numbers[src], numbers[dst]))

    def _join(self, zone: Zone, steps: list[RouteEntry], depth: int) -> _Found:
        """Chain declared routes; a zone on the way is crossed from where one arrives to where one leaves."""
        links: list[str] = []
        for before, step in itertools.zip_longest([None, *steps[:-1]], steps):
            if before is not None and zone.children and before.gw_dst != step.gw_src:
                links += self._global(before.gw_dst, step.gw_src, depth + 1)
            links += step.links
        return _Found(links, steps[0].gw_src, steps[-1].gw_dst)

    def _floyd_path(self, zone: Zone, src: str, dst: str) -> list[RouteEntry]:
        """Shortest path by number of links, ties as in SimGrid's Floyd–Warshall tables."""
        if zone.name not in self._floyd:
            members = zone.members
            number = {name: i for i, name in enumerate(members)}
            cost = np.full((len(members), len(members)), _FAR)
            pred = np.full((len(members), len(members)), -1)
            for (a, b), entry in zone.routes.items():
                cost[number[a], number[b]] = len(entry.links)
                pred[number[a], number[b]] = number[a]
            if not zone.children:
                for i in range(len(members)):
                    if pred[i, i] < 0:
                        cost[i, i], pred[i, i] = 1, i
            for c in range(len(members)):
                through = cost[:, c : c + 1] + cost[c : c + 1, :]
                better = through < cost
                cost = np.where(better, through, cost)
                pred = np.where(better, pred[c][None, :], pred)
            self._floyd[zone.name] = (members, pred)
        members, pred = self._floyd[zone.name]
        start, here = members.index(src), members.index(dst)
        steps: list[RouteEntry] = []
        while True:
            before = int(pred[start, here])
            if before < 0:
                raise RouteError(f"zone '{zone.name}' has no route from '{src}' to '{dst}'")
            steps.append(self._step(zone, members[before], members[here]))
            here = before
            if here == start:
                return steps[::-1]

    def _dijkstra_path(self, zone: Zone, src: str, dst: str) -> list[RouteEntry]:
        """Shortest path by number of links; among equals the first found, nodes in the order of routes."""
        if src == dst:
            return [self._step(zone, src, dst)]
        key = (zone.name, src)
        if key not in self._trees:
            order = {name: i for i, name in enumerate(dict.fromkeys(n for pair in zone.routes for n in pair))}
            out: dict[str, list[tuple[str, int]]] = {}
            for (a, b), entry in zone.routes.items():
                out.setdefault(a, []).append((b, len(entry.links)))
            cost, before = {src: 0}, {}
            queue = [(0, order.get(src, 0), src)]
            while queue:
                at, _, here = heapq.heappop(queue)
                if at > cost[here]:
                    continue
                for there, length in out.get(here, []):
                    if at + length < cost.get(there, int(_FAR)):
                        cost[there], before[there] = at + length, here
                        heapq.heappush(queue, (at + length, order[there], there))
            self._trees[key] = before
        before = self._trees[key]
        steps = []
        here = dst
        while here != src:
            if here not in before:
                raise RouteError(f"zone '{zone.name}' has no route from '{src}' to '{dst}'")
            steps.append(self._step(zone, before[here], here))
            here = before[here]
        return steps[::-1]

    def _step(self, zone: Zone, src: str, dst: str) -> RouteEntry:
        entry = zone.routes.get((src, dst))
        return entry if entry is not None else RouteEntry((LOOPBACK.name,), "", "", 0)
