"""The platform as a networkx graph of hosts, switches and links; torus, fat-tree and dragonfly drawn out.

A Full, Floyd or Dijkstra zone lists routes, not cables. A link that alone makes up a route becomes an edge; a
link that several routes share becomes a node of its own between their ends, as it is a bottleneck of its own.
"""

import math
from pathlib import Path
from typing import Any

import networkx as nx

from bridge.base.errors import BridgeError
from bridge.base.files import atomic_write
from bridge.platform.model import Link, Platform, Zone

#: More edges than this are refused: nobody can look at them, and they fill the memory.
MAX_EDGES = 3_000_000


def locality(platform: Platform) -> dict[str, tuple[str, ...]]:
    """Compute host -> its groups, coarse to fine: zones; in torus, fat-tree and dragonfly their parts.

    Two hosts are near each other if they share many leading groups. Hosts of one switch share all of them.
    """
    areas: dict[str, tuple[str, ...]] = {}
    for zone in platform.zones.values():
        chain = tuple(z.name for z in reversed(zone.ancestors()[:-1]))  # the outer zone holds everything
        for number, name in enumerate(zone.hosts):
            if platform.role(platform.hosts[name]) == "compute":
                areas[name] = chain + (zone.topology.groups(number) if zone.topology is not None else ())
    return areas


class _Building:
    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.graph: Any = nx.Graph()
        self.graph.graph["name"] = platform.root.name

    def switch(self, name: str, zone: Zone) -> str:
        if name not in self.graph:
            self.graph.add_node(name, kind="switch", role="switch", zone=zone.name)
        return name

    def edge(self, a: str, b: str, bandwidth: float, latency: float = 0.0, link: str = "") -> None:
        edge = self.graph.get_edge_data(a, b, {"bandwidth": math.inf})
        if a != b and (not self.graph.has_edge(a, b) or edge["bandwidth"] > bandwidth):
            self.graph.add_edge(a, b, bandwidth=bandwidth, latency=latency, link=link)

    def wire(self, a: str, b: str, links: list[Link], zone: Zone, shared: set[str]) -> None:
        """Connect two nodes by links in series; shared links are nodes in between."""
        stops = [link for link in links if link.name in shared]
        if not stops:
            self.edge(a, b, links[0].bandwidth, links[0].latency, links[0].name)
            return
        before, thin = a, math.inf
        for link in stops:
            if link.name not in self.graph:
                figures = {"bandwidth": link.bandwidth, "latency": link.latency}
                self.graph.add_node(link.name, kind="link", role="link", zone=zone.name, **figures)
            self.edge(before, link.name, min(thin, link.bandwidth), link.latency, link.name)
            before, thin = link.name, link.bandwidth
        self.edge(before, b, stops[-1].bandwidth, stops[-1].latency, stops[-1].name)

    def star(self, zone: Zone) -> None:
        centre = next((name for name in zone.routers if zone.spokes.get(name)), None)
        centre = self.switch(centre or next(iter(zone.routers), f"{zone.name} (switch)"), zone)
        if zone.backbone:
            self.graph.nodes[centre]["backbone"] = self.platform.link(zone.backbone).bandwidth
        for name in zone.hosts:
            up = zone.spokes[name].up if name in zone.spokes else None
            private = [self.platform.link(link) for link in up or () if link != zone.backbone]
            if private:
                thin = min(private, key=lambda link: link.bandwidth)
                self.edge(name, centre, thin.bandwidth, sum(link.latency for link in private), thin.name)
            else:
                self.edge(name, centre, math.inf)
        for name in zone.routers:  # a second router is another door to the same centre
            self.edge(self.switch(name, zone), centre, math.inf)

    def shape(self, zone: Zone) -> None:
        topology = zone.topology
        assert topology is not None
        hosts = {f"host {number}": name for number, name in enumerate(zone.hosts)}
        for count, (*ends, bandwidth) in enumerate(topology.cables()):
            if count >= MAX_EDGES:
                what = f"zone '{zone.name}' has more than {MAX_EDGES} cables"
                where = f"{self.platform.path}:{zone.line}"
                raise BridgeError(what, where=where, remedy="Describe the core by zones instead.")
            a, b = (hosts.get(end) or self.switch(end, zone) for end in ends)
            self.edge(a, b, bandwidth, topology.wiring.latency)

    def cable(self, link: str) -> str:
        """Both halves of a split-duplex link are one cable: drawn once, by its upward half."""
        cable = link.removesuffix("_UP").removesuffix("_DOWN")
        return f"{cable}_UP" if link != cable and f"{cable}_UP" in self.platform.links else link

    def routes(self, zone: Zone, leave_out: set[str]) -> None:
        users: dict[str, set[frozenset[str]]] = {}
        kept = {ends: entry for ends, entry in zone.routes.items() if not leave_out & set(ends)}
        for ends, entry in kept.items():
            for link in entry.links:
                users.setdefault(self.cable(link), set()).add(frozenset(ends))
        shared = {name for name, pairs in users.items() if len(pairs) > 1}
        edges_added: set[frozenset[str]] = set()
        for (src, dst), entry in kept.items():
            if src != dst and frozenset((src, dst)) not in edges_added:
                edges_added.add(frozenset((src, dst)))
                links = [self.platform.link(self.cable(link)) for link in entry.links]
                self.wire(entry.gw_src or src, entry.gw_dst or dst, links, zone, shared)

    def build(self, *, management: bool) -> Any:
        for host in self.platform.hosts.values():
            of = {"role": self.platform.role(host) or "unknown", "zone": host.zone}
            self.graph.add_node(host.name, kind="host", **of, speed=host.speed, cores=host.cores)
        for router, zone_name in self.platform.routers.items():
            self.switch(router, self.platform.zones[zone_name])
        masters = {host.name for host in self.platform.hosts_of("master")}
        for name in list(masters):  # and the zones that hold nothing else
            for zone in self.platform.zones[self.platform.hosts[name].zone].ancestors()[:-1]:
                if {h for z in zone.walk() for h in z.hosts} <= masters:
                    masters.add(zone.name)
        for zone in self.platform.root.walk():
            if zone.routing == "star" and zone.hosts:
                self.star(zone)
            elif zone.routing == "shape":
                self.shape(zone)
            else:
                self.routes(zone, set() if management else masters)
        if not management:
            self.graph.remove_nodes_from([name for name in masters if name in self.graph])
            # Routers that only led to the master go, too.
            self.graph.remove_nodes_from([r for r in self.platform.routers if self.graph.degree(r) < 2])
        return self.graph


def platform_graph(platform: Platform, *, management: bool = True) -> Any:
    """The `networkx.Graph` of a platform; `management` keeps the master and its links.

    Nodes carry `kind` (host, switch, link), `role` (compute, storage, master, switch, link) and `zone`; hosts
    also `speed` (flop/s per core) and `cores`; switches of a star `backbone` (bytes/s) if there is one. Edges
    carry `bandwidth` (bytes/s), `latency` (s) and `link` (name, empty if it has none). Raises BridgeError:
    more than `MAX_EDGES` cables.
    """
    return _Building(platform).build(management=management)


def write_graph(platform: Platform, path: str | Path) -> Path:
    """Write the graph as GraphML (readable by Gephi, yEd, networkx). Raises BridgeError: unwritable."""
    graph = platform_graph(platform)
    with atomic_write(Path(path)) as file:
        nx.write_graphml(graph, file)
    return Path(path)
