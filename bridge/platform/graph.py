"""The platform as a networkx graph of hosts, switches and links; torus, fat-tree and dragonfly drawn out.

A Full, Floyd or Dijkstra zone lists routes, not cables. A link that alone makes up a route becomes an edge; a
link that several routes share becomes a node of its own between their ends, as it is a bottleneck of its own.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

import networkx as nx

from bridge.errors import BridgeError
from bridge.platform.model import Host, Platform, Zone

#: More edges than this are refused: nobody can look at them, and they fill the memory.
MAX_EDGES = 3_000_000


def locality(platform: Platform) -> dict[str, tuple[str, ...]]:
    """Compute host -> its groups, coarse to fine: zones; in torus, fat-tree and dragonfly their parts.

    Two hosts are near each other if they share many leading groups. Hosts of one switch share all of them.
    """
    found: dict[str, tuple[str, ...]] = {}
    for zone in platform.zones.values():
        chain = tuple(z.name for z in reversed(zone.ancestors()[:-1]))  # the outer zone holds everything
        for number, name in enumerate(zone.hosts):
            if platform.role(platform.hosts[name]) == "compute":
                found[name] = chain + (zone.topology.groups(number) if zone.topology is not None else ())
    return found


class _Building:
    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.graph: Any = nx.Graph()
        self.graph.graph["name"] = platform.root.name

    def host(self, host: Host) -> None:
        role = self.platform.role(host) or "unknown"
        self.graph.add_node(
            host.name, kind="host", role=role, zone=host.zone, speed=host.speed, cores=host.cores
        )

    def switch(self, name: str, zone: Zone) -> None:
        if name not in self.graph:
            self.graph.add_node(name, kind="switch", role="switch", zone=zone.name)

    def edge(self, a: str, b: str, bandwidth: float, latency: float, link: str) -> None:
        if a == b:
            return
        if self.graph.has_edge(a, b) and self.graph.edges[a, b]["bandwidth"] <= bandwidth:
            return
        self.graph.add_edge(a, b, bandwidth=bandwidth, latency=latency, link=link)

    def wire(self, a: str, b: str, links: tuple[str, ...], zone: Zone, shared: set[str]) -> None:
        """Connect two nodes by links in series; shared links are nodes in between."""
        middle = [self.platform.link(name) for name in links]
        stops = (
            [link for link in middle if link.name in shared] if len(middle) > 1 or links[0] in shared else []
        )
        if not stops:
            self.edge(a, b, middle[0].bandwidth, middle[0].latency, middle[0].name)
            return
        before, thin = a, float("inf")
        for link in stops:
            if link.name not in self.graph:
                self.graph.add_node(
                    link.name,
                    kind="link",
                    role="link",
                    zone=zone.name,
                    bandwidth=link.bandwidth,
                    latency=link.latency,
                )
            self.edge(before, link.name, min(thin, link.bandwidth), link.latency, link.name)
            before, thin = link.name, link.bandwidth
        self.edge(before, b, stops[-1].bandwidth, stops[-1].latency, stops[-1].name)

    def star(self, zone: Zone) -> None:
        centre = next((name for name in zone.routers if zone.spokes.get(name)), None)
        centre = centre or next(iter(zone.routers), f"{zone.name} (switch)")
        self.switch(centre, zone)
        if zone.backbone:
            self.graph.nodes[centre]["backbone"] = self.platform.link(zone.backbone).bandwidth
        for name in zone.hosts:
            up = zone.spokes[name].up if name in zone.spokes else None
            private = [self.platform.link(link) for link in up or () if link != zone.backbone]
            if private:
                thin = min(private, key=lambda link: link.bandwidth)
                self.edge(name, centre, thin.bandwidth, sum(link.latency for link in private), thin.name)
            else:
                self.edge(name, centre, float("inf"), 0.0, "")
        for name in zone.routers:  # a second router is another door to the same centre
            self.switch(name, zone)
            self.edge(name, centre, float("inf"), 0.0, "")

    def shape(self, zone: Zone) -> None:
        topology = zone.topology
        assert topology is not None
        latency = topology.wiring.latency
        for count, (a, b, bandwidth) in enumerate(topology.cables()):
            if count >= MAX_EDGES:
                raise BridgeError(
                    f"zone '{zone.name}' has more than {MAX_EDGES} cables",
                    where=f"{self.platform.path}:{zone.line}",
                    remedy="Describe the core by zones instead.",
                )
            ends = []
            for end in (a, b):
                word, _, number = end.partition(" ")
                if word == "host":
                    ends.append(zone.hosts[int(number)])
                else:
                    self.switch(end, zone)
                    ends.append(end)
            self.edge(ends[0], ends[1], bandwidth, latency, "")

    def routes(self, zone: Zone, leave_out: set[str]) -> None:
        pairs: dict[str, set[frozenset[str]]] = {}
        kept = {ends: e for ends, e in zone.routes.items() if not leave_out & set(ends)}
        for (src, dst), entry in kept.items():
            for link in entry.links:
                cable = link.removesuffix("_UP").removesuffix("_DOWN")
                pairs.setdefault(cable, set()).add(frozenset((src, dst)))
        shared = {name for name, users in pairs.items() if len(users) > 1}
        # Both halves of a split-duplex link are one cable: drawn once, by its upward half.
        drawn: set[frozenset[str]] = set()
        for (src, dst), entry in kept.items():
            if src == dst or frozenset((src, dst)) in drawn:
                continue
            drawn.add(frozenset((src, dst)))
            a, b = (entry.gw_src or src), (entry.gw_dst or dst)
            cables, stops = [], set()
            for link in entry.links:
                cable = link.removesuffix("_UP").removesuffix("_DOWN")
                up = f"{cable}_UP" if link != cable and f"{cable}_UP" in self.platform.links else link
                cables.append(up)
                if cable in shared:
                    stops.add(up)
            self.wire(a, b, tuple(cables), zone, stops)

    def build(self, *, management: bool) -> Any:
        for host in self.platform.hosts.values():
            self.host(host)
        for router, zone_name in self.platform.routers.items():
            self.switch(router, self.platform.zones[zone_name])
        masters = {host.name for host in self.platform.hosts_of("master")}
        for name in list(masters):  # and the zones that hold nothing else
            zone = self.platform.zones[self.platform.hosts[name].zone]
            while zone.parent is not None and {h for z in zone.walk() for h in z.hosts} <= masters:
                masters.add(zone.name)
                zone = zone.parent
        for zone in self.platform.root.walk():
            if zone.routing == "star" and zone.hosts:
                self.star(zone)
            elif zone.routing == "shape":
                self.shape(zone)
            else:
                self.routes(zone, set() if management else masters)
        if not management:
            self.graph.remove_nodes_from([name for name in masters if name in self.graph])
            for router in self.platform.routers:  # routers that only led to the master
                if self.graph.degree(router) < 2:
                    self.graph.remove_node(router)
        return self.graph


def platform_graph(platform: Platform, *, management: bool = True) -> Any:
    """The `networkx.Graph` of a platform.

    Args:
        platform: the platform.
        management: keep the master and its links.

    Returns:
        Nodes carry `kind` (host, switch, link), `role` (compute, storage, master, switch, link) and `zone`;
        hosts also `speed` (flop/s per core) and `cores`; switches of a star `backbone` (bytes/s) if there is
        one. Edges carry `bandwidth` (bytes/s), `latency` (s) and `link` (name, empty if it has none).

    Raises:
        BridgeError: more than `MAX_EDGES` cables.
    """
    return _Building(platform).build(management=management)


def write_graph(platform: Platform, path: str | Path) -> Path:
    """Write the graph as GraphML (readable by Gephi, yEd, networkx). Raises BridgeError: unwritable."""
    path = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
        nx.write_graphml(platform_graph(platform), temporary)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError as error:
        raise BridgeError(
            f"cannot write the graph: {error.strerror}", where=str(path), remedy="Check the folder."
        ) from error
    return path
