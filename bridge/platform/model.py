"""The detailed machine as typed objects: hosts, links, zones with their routing, roles."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Literal

from bridge.platform.topologies import Topology

#: The host that Batsim takes for the master unless told otherwise (`-m`).
MASTER_NAME = "master_host"

Role = Literal["compute", "storage", "master"]
_ROLES: Mapping[str, Role] = {"compute_node": "compute", "storage": "storage", "master": "master"}
Sharing = Literal["SHARED", "FATPIPE"]


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """One host.

    Attributes:
        name: unique; Batsim numbers compute hosts in the lexicographic order of names.
        speeds, cores: flop/s of one core, one per pstate; number of cores.
        pstate: the one at the start.
        properties: the `<prop>` of the host (of its `<cluster>`).
        zone: name of the zone that holds it.
        line, place: line and offset of its element: hosts of one element share them, others never the offset.
    """

    name: str
    speeds: tuple[float, ...]
    cores: int
    pstate: int
    properties: Mapping[str, str]
    zone: str
    line: int
    place: int = -1

    @property
    def speed(self) -> float:
        """flop/s of one core at the start."""
        return self.speeds[self.pstate] if 0 <= self.pstate < len(self.speeds) else self.speeds[0]


@dataclasses.dataclass(frozen=True, slots=True)
class Link:
    """One link (each half of a split-duplex link is one): bytes per second, seconds, sharing policy."""

    name: str
    bandwidth: float
    latency: float
    sharing: Sharing
    line: int


@dataclasses.dataclass(frozen=True, slots=True)
class RouteEntry:
    """A declared route: links in order, and for zones the hosts or routers where it leaves and enters."""

    links: tuple[str, ...]
    gw_src: str
    gw_dst: str
    line: int


@dataclasses.dataclass(slots=True)
class Spoke:
    """How one member of a star zone reaches its centre (up), is reached (down), and reaches itself."""

    up: tuple[str, ...] | None = None
    down: tuple[str, ...] | None = None
    loopback: tuple[str, ...] | None = None


@dataclasses.dataclass(slots=True)
class Zone:
    """One zone: `routing` is full, floyd, dijkstra, star, shape (torus, fat-tree, dragonfly), wifi or none.

    `routes` and `bypass` are keyed by (source, destination), names of members: hosts, routers or child zones.
    """

    name: str
    routing: str
    line: int
    parent: "Zone | None"
    properties: dict[str, str] = dataclasses.field(default_factory=dict)
    children: list["Zone"] = dataclasses.field(default_factory=list)
    hosts: list[str] = dataclasses.field(default_factory=list)
    routers: list[str] = dataclasses.field(default_factory=list)
    routes: dict[tuple[str, str], RouteEntry] = dataclasses.field(default_factory=dict)
    bypass: dict[tuple[str, str], RouteEntry] = dataclasses.field(default_factory=dict)
    spokes: dict[str, Spoke] = dataclasses.field(default_factory=dict)
    backbone: str = ""
    wifi: str = ""
    topology: Topology | None = None
    tag: str = "zone"

    def walk(self) -> Iterator["Zone"]:
        yield self
        for child in self.children:
            yield from child.walk()

    def ancestors(self) -> list["Zone"]:
        return [self, *(self.parent.ancestors() if self.parent is not None else ())]


@dataclasses.dataclass(slots=True)
class Platform:
    """A whole platform file.

    Attributes:
        hosts, links: by name; links of torus, fat-tree and dragonfly zones are made on demand (see `link`).
        zones: by name.
    """

    path: str
    root: Zone
    hosts: dict[str, Host]
    links: dict[str, Link]
    routers: dict[str, str]
    zones: dict[str, Zone]
    master_name: str = MASTER_NAME

    def role(self, host: Host) -> Role | None:
        """The host's role; None if its `role` property is none that Batsim knows."""
        if host.name == self.master_name:
            return "master"
        return _ROLES.get(host.properties.get("role") or "compute_node")

    def hosts_of(self, role: Role) -> list[Host]:
        """Hosts of one role in the lexicographic order of names, which is the order of Batsim's numbers."""
        return sorted((host for host in self.hosts.values() if self.role(host) == role), key=lambda h: h.name)

    @property
    def compute(self) -> list[Host]:
        """Compute hosts; the position is Batsim's resource number."""
        return self.hosts_of("compute")

    @property
    def storage(self) -> list[Host]:
        return self.hosts_of("storage")

    @property
    def master(self) -> Host | None:
        """The master, None unless there is exactly one."""
        masters = self.hosts_of("master")
        return masters[0] if len(masters) == 1 else None

    def resource_ids(self) -> dict[str, int]:
        """Host name -> Batsim's resource number (compute hosts first, then storage; the master has none)."""
        return {host.name: number for number, host in enumerate([*self.compute, *self.storage])}

    def link(self, name: str) -> Link:
        for zone in self.zones.values() if name not in self.links else ():
            figures = zone.topology.link(name) if zone.topology is not None else None
            if figures is not None:
                self.links[name] = Link(name, *figures, "SHARED", zone.line)
                break
        return self.links[name]
