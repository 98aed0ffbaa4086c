"""Members of zones: hosts, routers, links, spokes of stars, clusters with their topology.

Kept as SimGrid keeps them while it reads: it knows only what stands above, hosts have names of their own, and
zones, hosts and routers share one name space for routes, in which the last one of a name wins.
"""

from typing import Any

from bridge.platform import units
from bridge.platform.model import Host, Link, Sharing, Spoke, Zone
from bridge.platform.scan import Element
from bridge.platform.topologies import TOPOLOGIES, Dragonfly, FatTree, Torus, Wiring
from bridge.platform.values import StopError, Values

_STAR = ("star", "vivaldi")


class Members(Values):
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
        self.reported: set[tuple[str, str]] = set()  # (zone, code) of findings made once for a zone
        self.traces: set[str] = set()
        self.connections: list[tuple[Element, str, str, str]] = []  # element, kind, trace, host or link
        self.backbone: Element | None = None  # of the next star that ends, wherever it stands
        self.spokes: list[Element] = []
        self._link_ids = {"fat-tree": 0, "dragonfly": 0, "torus": 0}
        self._leaves = 0

    # ---- names ---------------------------------------------------------------------------------------------
    def claim(self, element: Element, name: str, kind: str, zone: Zone | None) -> None:
        """Take a name; of hosts only other hosts are in the way, of zones and routers everything."""
        known = "host" if name in self.hosts else self.points[name][0] if name in self.points else ""
        if known and (kind != "host" or known == "host"):
            raise self.stop(
                element,
                "duplicate-name",
                f"{kind} '{name}': a {known} of that name exists already",
                "Hosts, routers and zones share one name space; choose another name.",
            )
        if known:
            self.findings.warning(
                element.line,
                "shared-name",
                f"host '{name}' has the name of a {known}, to which no route leads any more",
                "Hosts, routers and zones share one name space; choose another name.",
            )
        if not name:
            self.findings.error(element.line, "bad-value", f"the {kind} has an empty name", "Give it a name.")
        self.points[name] = (kind, zone)

    def in_main_tree(self, element: Element, zone: Zone | None, what: str) -> None:
        """A second outermost zone may exist, but hold nothing."""
        if zone is None or zone.ancestors()[-1] is not self.root:
            raise self.stop(
                element, "two-roots", f"the {what} stands beside the outer zone", "Put it inside."
            )

    def add_link(
        self, element: Element, name: str, bandwidth: float, latency: float, sharing: Sharing, zone: Zone
    ) -> None:
        """Add one link, or one half of a split-duplex link."""
        self.in_main_tree(element, zone, "link")
        if zone.routing == "wifi":
            raise self.stop(
                element, "wifi", "a link of a Wifi zone does not work with parallel tasks", "Use Full."
            )
        if name in self.links and name != "__loopback__":
            raise self.stop(
                element,
                "duplicate-name",
                f"link '{name}' exists already",
                "Choose another name for one of the two.",
            )
        if not name:
            self.findings.error(element.line, "bad-value", "the link has an empty name", "Give it a name.")
        self.links[name] = Link(name, bandwidth, latency, sharing, element.line)

    def add_duplex(self, element: Element, name: str, bandwidth: float, latency: float, zone: Zone) -> None:
        """Add both halves of a split-duplex link."""
        for half in ("UP", "DOWN"):
            self.add_link(element, f"{name}_{half}", bandwidth, latency, "SHARED", zone)
        self.duplex.add(name)

    def known_link(self, element: Element, name: str) -> str:
        """The name, if it is that of a link. Raises StopError."""
        if name in self.links or name == "__loopback__":
            return name
        if name in self.duplex:
            raise self.stop(
                element,
                "duplex-direction",
                f"link '{name}' is split-duplex: it has two halves",
                f"Name a half ('{name}_UP', '{name}_DOWN') or give <link_ctn> a direction (UP or DOWN).",
            )
        raise self.stop(
            element, "unknown-link", f"there is no link '{name}' above this line", "Declare the link first."
        )

    def attach(self, element: Element, kind: str, name: str) -> None:
        """Note an availability profile of one resource: SimGrid takes one of each kind."""
        if (kind, name) in self.profiled:
            raise self.stop(
                element,
                "profile-unusable",
                f"'{name}' has a second profile for {kind}",
                "Remove one of the two.",
            )
        self.profiled.add((kind, name))

    # ---- single elements -----------------------------------------------------------------------------------
    def add_host(
        self,
        element: Element,
        name: str,
        values: dict[str, Any],
        properties: dict[str, str],
        zone: Zone | None,
    ) -> None:
        """Add one host, of a `<host>`, `<cluster>`, `<cabinet>` or `<peer>`."""
        self.in_main_tree(element, zone, "host")
        assert zone is not None
        self.claim(element, name, "host", zone)
        speed = values["speed"]
        speeds = speed if isinstance(speed, tuple) else (speed,)
        pstate = values.get("pstate", 0)
        if pstate >= len(speeds):
            self.stop(
                element,
                "pstate-range",
                f"host '{name}' starts in pstate {pstate}, but has {len(speeds)}",
                f"Use pstate 0 to {len(speeds) - 1}.",
            )
            pstate = 0
        cores = values.get("core", 1)
        self.hosts[name] = Host(
            name, speeds, cores, pstate, properties, zone.name, element.line, element.place
        )
        self.routers.pop(name, None)
        zone.hosts.append(name)
        if "speed_file" in values or "availability_file" in values:
            self.profiled.add(("SPEED", name))
        if "state_file" in values:
            self.profiled.add(("HOST_AVAIL", name))

    def host(self, element: Element, zone: Zone) -> None:
        values = self.values(element)
        for child in element.children:
            if child.tag == "disk":
                self.values(child)
                self.properties(child)
        self.add_host(element, values["id"], values, self.properties(element), zone)

    def router(self, element: Element, zone: Zone, name: str) -> None:
        self.claim(element, name, "router", zone)
        self.routers[name] = zone.name
        zone.routers.append(name)

    def peer(self, element: Element, zone: Zone | None) -> None:
        routed = zone is not None and zone.routing == "vivaldi"
        add = self.findings.error if routed else self.findings.refused
        add(
            element.line,
            "unsupported-tag",
            "<peer> needs coordinate routing, which is not modelled",
            "Write <host>.",
        )
        values = self.values(element)
        if zone is not None and routed:
            self.add_host(element, values["id"], values, {}, zone)
            self.add_duplex(element, f"link_{values['id']}", values["bw_in"], 0.0, zone)
            self.duplex.discard(f"link_{values['id']}")

    def link(self, element: Element, zone: Zone) -> None:
        values = self.values(element)
        self.properties(element)
        name, sharing = values["id"], values.get("sharing_policy", "SHARED")
        figures = values["bandwidth"], values["latency"]
        if sharing == "WIFI":
            self.findings.error(
                element.line, "wifi", f"link '{name}': WIFI does not work with parallel tasks", "Use SHARED."
            )
        if sharing in ("SPLITDUPLEX", "FULLDUPLEX"):
            self.add_duplex(element, name, *figures, zone)
        else:
            self.add_link(element, name, *figures, "FATPIPE" if sharing == "FATPIPE" else "SHARED", zone)
        for file, kind in (("bandwidth", "BANDWIDTH"), ("latency", "LATENCY"), ("state", "LINK_AVAIL")):
            if f"{file}_file" in values:
                self.profiled.add((kind, name))

    # ---- stars ---------------------------------------------------------------------------------------------
    def build_star(self, zone: Zone) -> None:
        """What SimGrid does at the end of a zone with routing Cluster: backbone, host links, cabinets."""
        bone: list[str] = []
        if self.backbone is not None:
            element, self.backbone = self.backbone, None
            values = self.values(element)
            self.add_link(element, values["id"], values["bandwidth"], values["latency"], "SHARED", zone)
            bone = [values["id"]]
            zone.backbone = values["id"]
        waiting, self.spokes = sorted(self.spokes, key=lambda spoke: spoke.tag != "host_link"), []
        for element in waiting:
            try:
                values = self.values(element)
                if element.tag == "host_link":
                    self.host_link(element, values, zone, bone)
                else:
                    self.cabinet(element, values, zone, bone)
            except StopError:
                continue

    def host_link(self, element: Element, values: dict[str, Any], zone: Zone, bone: list[str]) -> None:
        name = values["id"]
        if name not in self.hosts:
            raise self.stop(element, "unknown-node", f"there is no host '{name}'", "Declare the host first.")
        up, down = (self.known_link(element, values[way]) for way in ("up", "down"))
        spoke = zone.spokes.setdefault(name, Spoke())
        spoke.up, spoke.down = (up, *bone), (*bone, down)

    def cabinet(self, element: Element, values: dict[str, Any], zone: Zone, bone: list[str]) -> None:
        for number in self.radical(element):
            name = values["prefix"] + str(number) + values["suffix"]
            self.add_host(element, name, values, {}, zone)
            for half in ("UP", "DOWN"):
                self.add_link(element, f"link_{name}_{half}", values["bw"], values["lat"], "SHARED", zone)
            zone.spokes[name] = Spoke((f"link_{name}_UP", *bone), (*bone, f"link_{name}_DOWN"))

    # ---- clusters ------------------------------------------------------------------------------------------
    def cluster(self, element: Element, zone: Zone, values: dict[str, Any]) -> None:
        """The hosts and links of a `<cluster>`, whose zone exists already."""
        numbers = self.radical(element)
        properties = self.properties(element)
        kind = values.get("topology", "FLAT")
        flat = kind not in TOPOLOGIES
        if flat:
            zone.properties = dict(properties)  # SimGrid sets them on the zone of a flat cluster as well
        size = len(numbers)
        if not flat:
            try:
                size = self.shape(element, zone, kind, values, len(numbers))
            except StopError:
                for number in numbers:  # routes below may name them
                    name = f"{values['prefix']}{number}{values['suffix']}"
                    self.add_host(element, name, values, properties, zone)
                raise
        loopback = values.get("loopback_bw", 0.0), values.get("loopback_lat", 0.0)
        for number in numbers[:size]:
            host = f"{values['prefix']}{number}{values['suffix']}"
            self.add_host(element, host, values, properties, zone)
            spoke = zone.spokes.setdefault(host, Spoke())
            if max(loopback) > 0:
                looped = f"{zone.name}_link_{number}_loopback"
                self.add_link(element, looped, *loopback, "FATPIPE", zone)
                spoke.loopback = (looped,)
        if flat:
            self.flat_cluster(element, zone, values, numbers)

    def flat_cluster(self, element: Element, zone: Zone, values: dict[str, Any], numbers: list[int]) -> None:
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
                self.add_link(element, f"{cable}_limiter", values["limiter_link"], 0.0, "SHARED", zone)
                limiter = [f"{cable}_limiter"]
            up = down = cable
            if values.get("sharing_policy", "SPLITDUPLEX") in ("SPLITDUPLEX", "FULLDUPLEX"):
                self.add_duplex(element, cable, values["bw"], values["lat"], zone)
                up, down = f"{cable}_UP", f"{cable}_DOWN"
            else:
                # A flat cluster creates its links with the default policy: FATPIPE is not passed on (SimGrid
                # 3.32).
                self.add_link(element, cable, values["bw"], values["lat"], "SHARED", zone)
            zone.spokes[host].up = (*limiter, up, *bone)
            zone.spokes[host].down = (*bone, down, *limiter)
        router = values.get("router_id") or f"{values['prefix']}{zone.name}_router{values['suffix']}"
        self.router(element, zone, router)
        zone.spokes[router] = Spoke((), ())

    def shape(self, element: Element, zone: Zone, kind: str, values: dict[str, Any], named: int) -> int:
        """Wire a torus, fat-tree or dragonfly; return its number of hosts, of which `named` have a name."""
        line, text = element.line, values.get("topo_parameters", "")
        for key in ("router_id", "bb_bw", "bb_lat"):
            if values.get(key):
                self.findings.warning(
                    line, "ignored-attribute", f"{key} is ignored for topology {kind}", "Remove it."
                )
        limited = values.get("limiter_link", 0.0) > 0
        wiring = Wiring(
            zone.name,
            values["bw"],
            values["lat"],
            values.get("sharing_policy", "SPLITDUPLEX") in ("SPLITDUPLEX", "FULLDUPLEX"),
            limited,
            self._link_ids[TOPOLOGIES[kind].kind],
            self._leaves,
        )

        def wrong(code: str, message: str, remedy: str = "See docs/platforms.md for the forms.") -> StopError:
            return self.stop(element, code, f"topo_parameters '{text}'{message}", remedy)

        try:
            topology = TOPOLOGIES[kind](text, wiring)
        except ValueError as error:
            raise wrong("topology-parameters", f": {error}") from error
        try:
            bandwidth = units.read_as_simgrid(element.attributes["bw"], units.BANDWIDTH)
            latency = units.read_as_simgrid(element.attributes["lat"], units.TIME)
        except ValueError:
            raise StopError from None  # reported where the attributes were read
        if bandwidth <= 0 or latency < 0:
            raise wrong(
                "topology-parameters",
                ": the links have no bandwidth or a negative latency",
                "Mend bw and lat.",
            )
        if isinstance(topology, Dragonfly) and topology.n_groups > topology.blades:
            self.findings.error(  # SimGrid goes on, beyond its memory if there are many
                line,
                "topology-parameters",
                f"topo_parameters '{text}': {topology.n_groups} groups need at least {topology.n_groups} "
                f"routers per chassis, there are {topology.blades}: router n of each is the way to group n",
                "See docs/platforms.md for the forms.",
            )
        if topology.size != named:
            add = self.findings.refused if topology.size > named else self.findings.error
            add(
                line,
                "topology-size",
                f"topo_parameters '{text}' make {topology.size} hosts, the radical names {named}",
                "Make them equal: SimGrid crashes if there are too few names and drops hosts if too many.",
            )
            if topology.size > named:
                raise StopError
        if topology.size > 65536:
            raise wrong(
                "topology-size",
                f": {topology.size} hosts are too many to wire one by one",
                "Use zones of <cluster>.",
            )
        if isinstance(topology, Torus) and topology.dimensions.count(1) > 1:
            raise wrong(
                "topology-parameters",
                ": two dimensions of length 1 make links of one name",
                "Leave them out.",
            )
        if isinstance(topology, FatTree) and self._leaves:
            self.findings.warning(
                line,
                "two-fat-trees",
                "SimGrid 3.32 goes on counting leaves from the fat-tree before, which shifts the routes "
                "of this one",
                "Use one fat-tree per platform.",
            )
        if isinstance(topology, FatTree) and limited and topology.switches > topology.size:
            raise self.stop(
                element,
                "topology-limiter",
                f"{topology.switches} switches for {topology.size} hosts: SimGrid names limiters twice",
                "Remove limiter_link, or use fewer switches than hosts.",
            )
        self._link_ids[topology.kind] += topology.link_ids
        if isinstance(topology, FatTree):
            self._leaves += topology.size
        zone.topology = topology
        if limited:
            for number in range(topology.size if isinstance(topology, Torus) else 2 * topology.size):
                name = f"{zone.name}_link_{number}_limiter"
                self.links[name] = Link(name, values["limiter_link"], 0.0, "SHARED", line)
        return topology.size
