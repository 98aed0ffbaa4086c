"""Members of zones: hosts, routers, links, spokes of stars, clusters with their topology.

Kept as SimGrid keeps them while it reads: it knows only what stands above, hosts have names of their own, and
zones, hosts and routers share one name space for routes, in which the last one of a name wins.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from typing import Any

from bridge.base.suggestions import nearest
from bridge.platform import units
from bridge.platform.model import Host, Link, Sharing, Spoke, Zone
from bridge.platform.topologies import TOPOLOGIES, Dragonfly, FatTree, Torus, Wiring
from bridge.platform.values import AttributeReader, StopError
from bridge.wire.platform_xml import Element

#: More hosts than this are not wired one by one.
MAX_WIRED = 65536
#: Near names are sought for so many unknown ones, among so many.
_MOST_HINTS, _MOST_NAMES = 20, 2_000
#: Attributes of links and hosts that name a profile -> what it changes.
_PROFILED = {
    "host": {"speed_file": "SPEED", "availability_file": "SPEED", "state_file": "HOST_AVAIL"},
    "link": {"bandwidth_file": "BANDWIDTH", "latency_file": "LATENCY", "state_file": "LINK_AVAIL"},
}
_Values = dict[str, Any]  # of attributes
_Waiting = tuple[Element, _Values]


class Members(AttributeReader):
    """Collects the parts in the order of the file."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.hosts: dict[str, Host] = {}
        self.links: dict[str, Link] = {}
        self.duplex: set[str] = set()
        self.routers: dict[str, str] = {}
        self.zones: dict[str, Zone] = {}
        self.points: dict[str, tuple[str, Zone | None]] = {}  # name -> (kind, zone that holds it) for routes
        self.root: Zone | None = None
        self.profiled: set[tuple[str, str]] = set()
        self.backbone: _Waiting | None = None  # of the next star that ends, wherever it stands
        self.spokes: list[_Waiting] = []
        self._hints = 0
        self._link_ids = {"fat-tree": 0, "dragonfly": 0, "torus": 0}
        self._leaves = 0

    # ---- names ---------------------------------------------------------------------------------------------
    def claim(self, element: Element, name: str, kind: str, zone: Zone | None) -> None:
        """Take a name; of hosts only other hosts are in the way, of zones and routers everything."""
        first_kind = "host" if name in self.hosts else self.points[name][0] if name in self.points else ""
        if first_kind and (kind != "host" or first_kind == "host"):
            raise self.stop(element, "duplicate-name", kind=kind, name=name, known=first_kind)
        if first_kind:
            self.add_finding(element, "shared-name", name=name, known=first_kind)
        if not name:
            self.add_finding(element, "bad-value/empty", kind=kind)
        self.points[name] = (kind, zone)

    def in_main_tree(self, element: Element, zone: Zone | None, what: str) -> None:
        """A second outermost zone may exist, but hold nothing."""
        if zone is None or zone.ancestors()[-1] is not self.root:
            raise self.stop(element, "two-roots/member", what=what)

    def add_link(
        self, element: Element, name: str, bandwidth: float, latency: float, sharing: Sharing, zone: Zone
    ) -> None:
        self.in_main_tree(element, zone, "link")
        if zone.routing == "wifi" and zone.wifi:
            raise self.stop(element, "wifi/second", zone=zone.name)
        if name in self.links and name != "__loopback__":
            raise self.stop(element, "duplicate-name/link", name=name)
        if not name:
            self.add_finding(element, "bad-value/empty", kind="link")
        self.links[name] = Link(name, bandwidth, latency, sharing, element.line)
        if zone.routing == "wifi":
            zone.wifi = name
            if latency != 0:
                self.add_finding(element, "wifi/latency", name=name)

    def add_duplex(self, element: Element, name: str, bandwidth: float, latency: float, zone: Zone) -> None:
        for half in ("UP", "DOWN"):
            self.add_link(element, f"{name}_{half}", bandwidth, latency, "SHARED", zone)
        self.duplex.add(name)

    def known_link(self, element: Element, name: str) -> str:
        """The name, if it is that of a link. Raises StopError."""
        if name in self.links or name == "__loopback__":
            return name
        if name in self.duplex:
            raise self.stop(element, "duplex-direction", name=name)
        raise self.unknown(element, "unknown-link", name, self.links)

    def unknown(self, element: Element, key: str, name: str, names: Iterable[str], **words: Any) -> StopError:
        """Return the finding about a name that is none of `names`: misspelt, or of an element left out."""
        if name in self.left_out:
            key = f"{key.partition('/')[0]}/left-out"
            return self.stop(element, key, name=name, before=self.left_out[name], **words)
        return self.stop(element, key, name=name, hint=self._hint(name, names), **words)

    def _hint(self, name: str, names: Iterable[str]) -> str:
        """Return "Did you mean …? ", or nothing. To look for all would take long: there may be thousands."""
        self._hints += 1
        if self._hints > _MOST_HINTS:
            return ""
        close = nearest(name, islice(names, _MOST_NAMES))
        is_other_number = re.sub("[0-9]+", "", close) == re.sub("[0-9]+", "", name)
        return "" if not close or is_other_number else f"Did you mean {close}? "

    def attach(self, element: Element, kind: str, name: str) -> None:
        """Note an availability profile of one resource: SimGrid takes one of each kind."""
        if (kind, name) in self.profiled:
            self.add_finding(element, "profile-unusable", name=name, why=f"it has one for {kind} already")
        if any(zone.wifi == name for zone in self.zones.values()):
            self.add_finding(element, "profile-unusable", name=name, why="it is of a Wifi zone")
        self.profiled.add((kind, name))

    # ---- single elements -----------------------------------------------------------------------------------
    def add_host(
        self, element: Element, name: str, values: _Values, properties: dict[str, str], zone: Zone | None
    ) -> None:
        """Add one host, of a `<host>`, `<cluster>`, `<cabinet>` or `<peer>`."""
        self.in_main_tree(element, zone, "host")
        assert zone is not None
        self.claim(element, name, "host", zone)
        speed = values["speed"]
        speeds = speed if isinstance(speed, tuple) else (speed,)
        pstate, count = values.get("pstate", 0), len(speeds)
        if pstate >= count:
            self.add_finding(element, "pstate-range", name=name, pstate=pstate, count=count, last=count - 1)
            pstate = 0
        cores, place = values.get("core", 1), element.place
        self.hosts[name] = Host(name, speeds, cores, pstate, properties, zone.name, element.line, place)
        self.routers.pop(name, None)
        zone.hosts.append(name)
        self.profiled |= {(kind, name) for key, kind in _PROFILED["host"].items() if key in values}

    def host(self, element: Element, zone: Zone) -> None:
        values = self.values(element)
        for child in element.children:
            if child.tag == "disk":
                self.values(child)
                self.properties(child)
        self.add_host(element, values["id"], values, self.properties(element), zone)

    def router(self, element: Element, zone: Zone) -> None:
        self.add_router(element, zone, self.values(element)["id"])

    def add_router(self, element: Element, zone: Zone, name: str) -> None:
        self.claim(element, name, "router", zone)
        self.routers[name] = zone.name
        zone.routers.append(name)

    def peer(self, element: Element, zone: Zone | None) -> None:
        values = self.values(element)
        name, routed = values["id"], zone is not None and zone.routing == "vivaldi"
        self.add_finding(element, "unsupported-tag/peer", loads=routed)
        if zone is not None and routed:
            self.add_host(element, name, values, {}, zone)
            for half in ("UP", "DOWN"):
                self.add_link(element, f"link_{name}_{half}", values["bw_in"], 0.0, "SHARED", zone)

    def link(self, element: Element, zone: Zone) -> None:
        values = self.values(element)
        self.properties(element)
        name, sharing = values["id"], values.get("sharing_policy", "SHARED")
        figures = values["bandwidth"], values["latency"]
        if zone is not None and zone.routing != "wifi":
            if sharing == "WIFI":
                self.add_finding(element, "wifi", name=name)
            if re.search("[;,]", element.attributes["bandwidth"]):
                self.add_finding(
                    element, "bad-value/several", name="bandwidth", text=element.attributes["bandwidth"]
                )
        if sharing in ("SPLITDUPLEX", "FULLDUPLEX"):
            self.add_duplex(element, name, *figures, zone)
        else:
            self.add_link(element, name, *figures, "FATPIPE" if sharing == "FATPIPE" else "SHARED", zone)
        self.profiled |= {(kind, name) for key, kind in _PROFILED["link"].items() if key in values}

    # ---- stars ---------------------------------------------------------------------------------------------
    def build_star(self, zone: Zone) -> None:
        """What SimGrid does at the end of a zone with routing Cluster: backbone, host links, cabinets."""
        bone: list[str] = []
        if self.backbone is not None:
            (element, values), self.backbone = self.backbone, None
            self.add_link(element, values["id"], values["bandwidth"], values["latency"], "SHARED", zone)
            bone = [values["id"]]
            zone.backbone = values["id"]
        waiting, self.spokes = sorted(self.spokes, key=lambda spoke: spoke[0].tag != "host_link"), []
        for element, values in waiting:
            with suppress(StopError):
                (self.host_link if element.tag == "host_link" else self.cabinet)(element, values, zone, bone)

    def host_link(self, element: Element, values: _Values, zone: Zone, bone: list[str]) -> None:
        name = values["id"]
        if name not in self.hosts:
            raise self.unknown(element, "unknown-node/spoke", name, self.hosts, what="host")
        up, down = (self.known_link(element, values[way]) for way in ("up", "down"))
        spoke = zone.spokes.setdefault(name, Spoke())
        spoke.up, spoke.down = (up, *bone), (*bone, down)

    def cabinet(self, element: Element, values: _Values, zone: Zone, bone: list[str]) -> None:
        for number in self.radical(element):
            name = f"{values['prefix']}{number}{values['suffix']}"
            self.add_host(element, name, values, {}, zone)
            for half in ("UP", "DOWN"):
                self.add_link(element, f"link_{name}_{half}", values["bw"], values["lat"], "SHARED", zone)
            zone.spokes[name] = Spoke((f"link_{name}_UP", *bone), (*bone, f"link_{name}_DOWN"))

    # ---- clusters ------------------------------------------------------------------------------------------
    def cluster(self, element: Element, zone: Zone, values: _Values) -> None:
        numbers = self.radical(element)
        properties = self.properties(element)
        shaped = values.get("topology", "FLAT") in TOPOLOGIES
        loopback = values.get("loopback_bw", 0.0), values.get("loopback_lat", 0.0)
        if shaped:
            numbers = numbers[: self.wire_topology(element, zone, values, len(numbers))]
        else:
            zone.properties = dict(properties)  # SimGrid sets them on the zone of a flat cluster as well
        for number in numbers:
            host = f"{values['prefix']}{number}{values['suffix']}"
            self.add_host(element, host, values, properties, zone)
            spoke = zone.spokes.setdefault(host, Spoke())
            if max(loopback) > 0:
                looped = f"{zone.name}_link_{number}_loopback"
                self.add_link(element, looped, *loopback, "FATPIPE", zone)
                spoke.loopback = (looped,)
        if not shaped:
            self.wire_star(element, zone, values, numbers)

    def wire_star(self, element: Element, zone: Zone, values: _Values, numbers: list[int]) -> None:
        """The cables of a flat cluster, its backbone and its router."""
        bone: list[str] = []
        backbone = values.get("bb_bw", 0.0), values.get("bb_lat", 0.0)
        if max(backbone) > 0:
            zone.backbone = f"{zone.name}_backbone"
            policy: Sharing = "FATPIPE" if values.get("bb_sharing_policy") == "FATPIPE" else "SHARED"
            self.add_link(element, zone.backbone, *backbone, policy, zone)
            bone = [zone.backbone]
        for number, host in zip(numbers, zone.hosts, strict=True):
            cable = f"{zone.name}_link_{number}"
            limiter: list[str] = []
            if values.get("limiter_link", 0.0) > 0:
                limiter = [f"{cable}_limiter"]
                self.add_link(element, limiter[0], values["limiter_link"], 0.0, "SHARED", zone)
            up = down = cable
            if values.get("sharing_policy", "SPLITDUPLEX") in ("SPLITDUPLEX", "FULLDUPLEX"):
                self.add_duplex(element, cable, values["bw"], values["lat"], zone)
                up, down = f"{cable}_UP", f"{cable}_DOWN"
            else:  # with the default policy: FATPIPE is not passed on (SimGrid 3.32)
                self.add_link(element, cable, values["bw"], values["lat"], "SHARED", zone)
            zone.spokes[host].up = (*limiter, up, *bone)
            zone.spokes[host].down = (*bone, down, *limiter)
        router = values.get("router_id") or f"{values['prefix']}{zone.name}_router{values['suffix']}"
        self.add_router(element, zone, router)
        zone.spokes[router] = Spoke((), ())

    def wire_topology(self, element: Element, zone: Zone, values: _Values, named: int) -> int:
        """Wire a torus, fat-tree or dragonfly; return how many of its `named` hosts SimGrid makes."""
        kind, text = values["topology"], values.get("topo_parameters", "")
        for name in ("router_id", "bb_bw", "bb_lat"):
            if values.get(name):
                self.add_finding(element, "ignored-attribute", name=name, kind=kind)
        limiter = values.get("limiter_link", 0.0)
        duplex = values.get("sharing_policy", "SPLITDUPLEX") in ("SPLITDUPLEX", "FULLDUPLEX")
        first = self._link_ids[TOPOLOGIES[kind].kind]
        wiring = Wiring(zone.name, values["bw"], values["lat"], duplex, limiter > 0, first, self._leaves)
        try:
            topology = TOPOLOGIES[kind](text, wiring)
            if isinstance(topology, Torus) and topology.dimensions.count(1) > 1:
                raise ValueError("two dimensions of length 1 make links of one name")
            if units.read_as_simgrid(element.attributes["bw"], units.BANDWIDTH) <= 0:
                raise ValueError("the links have no bandwidth")
            if units.read_as_simgrid(element.attributes["lat"], units.TIME) < 0:
                raise ValueError("the links have a negative latency")
        except ValueError as error:
            self.add_finding(element, "topology-parameters", text=text, error=error)
            return named
        size = topology.size
        if isinstance(topology, Dragonfly) and topology.n_groups > topology.blades:
            groups, blades = topology.n_groups, topology.blades
            self.add_finding(element, "topology-parameters/groups", text=text, groups=groups, blades=blades)
        if size != named:
            self.add_finding(element, "topology-size", loads=size < named, text=text, size=size, named=named)
        elif size > MAX_WIRED:
            self.add_finding(element, "topology-size/wires", size=size)
        elif isinstance(topology, FatTree) and limiter > 0 and topology.switches > size:
            self.add_finding(element, "topology-limiter", switches=topology.switches, size=size)
        else:
            zone.topology = topology
            self._link_ids[topology.kind] += topology.link_ids
        if isinstance(topology, FatTree):
            if self._leaves:
                self.add_finding(element, "two-fat-trees")
            self._leaves += size
        if limiter > 0:
            for number in range(size if isinstance(topology, Torus) else 2 * size):
                name = f"{zone.name}_link_{number}_limiter"
                self.links[name] = Link(name, limiter, 0.0, "SHARED", element.line)
        return size
