"""Members of zones: hosts, routers, links, spokes of stars, clusters with their topology."""

from bridge.platform.attributes import AttributeReader
from bridge.platform.model import Host, Link, Sharing, Spoke, Zone
from bridge.platform.topologies import TOPOLOGIES, FatTree, Torus, Wiring
from bridge.platform.xmltree import Element


class MemberReader(AttributeReader):
    """Collects the parts in the order of the file: SimGrid knows only what it has read so far."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.hosts: dict[str, Host] = {}
        self.links: dict[str, Link] = {}
        self.duplex: set[str] = set()
        self.routers: dict[str, str] = {}
        self.zones: dict[str, Zone] = {}
        self.root: Zone | None = None
        self._link_ids = {"fat-tree": 0, "dragonfly": 0, "torus": 0}
        self._leaves = 0

    def claim(self, name: str, line: int, what: str) -> None:
        """Hosts, routers and zones share one name space."""
        if not name:
            raise self.stop(line, "bad-value", f"the {what} has an empty name", "Give it a name.")
        for kind, known in (("host", self.hosts), ("router", self.routers), ("zone", self.zones)):
            if name in known:
                raise self.stop(
                    line,
                    "duplicate-name",
                    f"{what} '{name}': a {kind} of that name exists already",
                    "Hosts, routers and zones share one name space; choose another name.",
                )

    def add_link(self, name: str, bandwidth: float, latency: float, sharing: Sharing, line: int) -> None:
        if name in self.links:
            raise self.stop(
                line,
                "duplicate-name",
                f"link '{name}' exists already",
                "Choose another name for one of the two.",
            )
        self.links[name] = Link(name, bandwidth, latency, sharing, line)

    def known_link(self, name: str, line: int) -> str:
        if name in self.duplex:
            raise self.stop(
                line,
                "duplex-direction",
                f"link '{name}' is split-duplex: it has two halves",
                f"Name a half ('{name}_UP', '{name}_DOWN') or give <link_ctn> a direction (UP or DOWN).",
            )
        if name not in self.links:
            raise self.stop(
                line, "unknown-link", f"there is no link '{name}' above this line", "Declare the link first."
            )
        return name

    def enter(self, zone: Zone, parent: Zone | None) -> None:
        self.zones[zone.name] = zone
        if parent is not None:
            parent.children.append(zone)
        elif self.root is None:
            self.root = zone
        else:
            raise self.stop(
                zone.line,
                "two-roots",
                f"zone '{zone.name}' stands beside another one",
                "Put both in one outer zone.",
            )

    def host(self, element: Element, zone: Zone) -> None:
        name = element.attributes["id"]
        self.claim(name, element.line, "host")
        speeds = self.speeds(element)
        pstate = self.whole(element, "pstate", 0, 0)
        if pstate >= len(speeds):
            self.findings.error(
                element.line,
                "pstate-range",
                f"host '{name}' starts in pstate {pstate}, but has {len(speeds)}",
                f"Use pstate 0 to {len(speeds) - 1}.",
            )
            pstate = 0
        cores = self.whole(element, "core", 1, 1)
        self.hosts[name] = Host(
            name, speeds, cores, pstate, self.properties(element), zone.name, element.line
        )
        zone.hosts.append(name)

    def link(self, element: Element) -> None:
        name = element.attributes["id"]
        bandwidth = self.bandwidth(element, "bandwidth")
        latency = self.time(element, "latency")
        sharing = element.attributes.get("sharing_policy", "SHARED")
        if sharing == "WIFI":
            self.findings.error(
                element.line, "wifi", f"link '{name}': WIFI does not work with parallel tasks", "Use SHARED."
            )
        if sharing in ("SPLITDUPLEX", "FULLDUPLEX"):
            self.add_link(f"{name}_UP", bandwidth, latency, "SHARED", element.line)
            self.add_link(f"{name}_DOWN", bandwidth, latency, "SHARED", element.line)
            self.duplex.add(name)
        else:
            self.add_link(
                name, bandwidth, latency, "FATPIPE" if sharing == "FATPIPE" else "SHARED", element.line
            )

    def spoke(self, element: Element, zone: Zone) -> None:
        """A `<host_link>` or `<cabinet>` of a star zone."""
        bone = [zone.backbone] if zone.backbone else []
        line = element.line
        if element.tag == "host_link":
            name = element.attributes["id"]
            if name not in self.hosts:
                raise self.stop(line, "unknown-node", f"there is no host '{name}'", "Declare the host first.")
            up = self.known_link(element.attributes["up"], line)
            down = self.known_link(element.attributes["down"], line)
            spoke = zone.spokes.setdefault(name, Spoke())
            spoke.up, spoke.down = (up, *bone), (*bone, down)
            return
        bandwidth = self.bandwidth(element, "bw")
        latency = self.time(element, "lat")
        speeds = self.speeds(element)
        for number in self.radical(element):
            name = element.attributes["prefix"] + str(number) + element.attributes["suffix"]
            self.claim(name, line, "host")
            self.hosts[name] = Host(name, speeds, 1, 0, {}, zone.name, line)
            zone.hosts.append(name)
            for half in ("UP", "DOWN"):
                self.add_link(f"link_{name}_{half}", bandwidth, latency, "SHARED", line)
            zone.spokes[name] = Spoke((f"link_{name}_UP", *bone), (*bone, f"link_{name}_DOWN"))

    def cluster(self, element: Element, parent: Zone | None) -> None:
        attributes, line = element.attributes, element.line
        name = attributes["id"]
        numbers = self.radical(element)
        properties = self.properties(element)
        kind = attributes.get("topology", "FLAT")
        bandwidth = self.bandwidth(element, "bw")
        latency = self.time(element, "lat")
        extra = {
            key: self.time(element, key) if key.endswith("lat") else self.bandwidth(element, key)
            for key in ("bb_bw", "bb_lat", "limiter_link", "loopback_bw", "loopback_lat")
            if attributes.get(key)
        }
        flat = kind not in TOPOLOGIES
        zone = Zone(name, "star" if flat else "shape", line, parent, {}, tag="cluster")
        if flat:
            zone.properties = dict(properties)  # SimGrid sets them on the zone of a flat cluster as well
        self.enter(zone, parent)
        speeds = self.speeds(element)
        cores = self.whole(element, "core", 1, 1)
        for number in numbers:
            host = f"{attributes['prefix']}{number}{attributes['suffix']}"
            self.claim(host, line, "host")
            self.hosts[host] = Host(host, speeds, cores, 0, properties, name, line)
            zone.hosts.append(host)
        sharing = attributes.get("sharing_policy", "SPLITDUPLEX")
        loopback = extra.get("loopback_bw", 0) > 0 or extra.get("loopback_lat", 0) > 0
        limited = extra.get("limiter_link", 0) > 0
        for number, host in zip(numbers, zone.hosts, strict=True):
            spoke = zone.spokes.setdefault(host, Spoke())
            if loopback:
                looped = f"{name}_link_{number}_loopback"
                self.add_link(
                    looped, extra.get("loopback_bw", 0), extra.get("loopback_lat", 0), "FATPIPE", line
                )
                spoke.loopback = (looped,)
        if not flat:
            self.shape(element, zone, kind, Wiring(
                name, bandwidth, latency, sharing != "SHARED" and sharing != "FATPIPE", limited,
                self._link_ids[TOPOLOGIES[kind].kind], self._leaves,
            ), extra.get("limiter_link", 0.0))  # fmt: skip
            return
        bone: list[str] = []
        if extra.get("bb_bw", 0) > 0 or extra.get("bb_lat", 0) > 0:
            policy: Sharing = "FATPIPE" if attributes.get("bb_sharing_policy") == "FATPIPE" else "SHARED"
            zone.backbone = f"{name}_backbone"
            self.add_link(zone.backbone, extra.get("bb_bw", 0), extra.get("bb_lat", 0), policy, line)
            bone = [zone.backbone]
        for number, host in zip(numbers, zone.hosts, strict=True):
            cable = f"{name}_link_{number}"
            limiter: list[str] = []
            if limited:
                self.add_link(f"{cable}_limiter", extra["limiter_link"], 0.0, "SHARED", line)
                limiter = [f"{cable}_limiter"]
            up = down = cable
            if sharing in ("SPLITDUPLEX", "FULLDUPLEX"):
                up, down = f"{cable}_UP", f"{cable}_DOWN"
                self.duplex.add(cable)
                self.add_link(down, bandwidth, latency, "SHARED", line)
            # A flat cluster creates its links with the default policy: FATPIPE is not passed on (SimGrid
            # 3.32).
            self.add_link(up, bandwidth, latency, "SHARED", line)
            zone.spokes[host].up = (*limiter, up, *bone)
            zone.spokes[host].down = (*bone, down, *limiter)
        router = attributes.get("router_id") or f"{attributes['prefix']}{name}_router{attributes['suffix']}"
        self.claim(router, line, "router")
        self.routers[router] = name
        zone.routers.append(router)
        zone.spokes[router] = Spoke((), ())

    def shape(self, element: Element, zone: Zone, kind: str, wiring: Wiring, limiter: float) -> None:
        line, text = element.line, element.attributes.get("topo_parameters", "")
        for key in ("router_id", "bb_bw", "bb_lat"):
            if element.attributes.get(key):
                self.findings.warning(
                    line, "ignored-attribute", f"{key} is ignored for topology {kind}", "Remove it."
                )
        try:
            topology = TOPOLOGIES[kind](text, wiring)
        except ValueError as error:
            raise self.stop(
                line,
                "topology-parameters",
                f"topo_parameters '{text}': {error}",
                "See docs/platforms.md for the forms.",
            ) from error
        if topology.size != len(zone.hosts):
            raise self.stop(
                line,
                "topology-size",
                f"topo_parameters '{text}' make {topology.size} hosts, the radical names {len(zone.hosts)}",
                "Make them equal: SimGrid crashes if there are too few names and drops hosts if too many.",
            )
        if topology.size > 65536:
            raise self.stop(
                line,
                "topology-size",
                f"{topology.size} hosts are too many to wire one by one",
                "Use zones of <cluster>.",
            )
        if isinstance(topology, FatTree) and self._leaves:
            self.findings.warning(
                line,
                "two-fat-trees",
                "SimGrid 3.32 goes on counting leaves from the fat-tree before, which shifts the routes "
                "of this one",
                "Use one fat-tree per platform.",
            )
        if isinstance(topology, FatTree) and wiring.limited and topology.switches > topology.size:
            raise self.stop(
                line,
                "topology-limiter",
                f"{topology.switches} switches for {topology.size} hosts: SimGrid names limiters twice",
                "Remove limiter_link, or use fewer switches than hosts.",
            )
        self._link_ids[topology.kind] += topology.link_ids
        if isinstance(topology, FatTree):
            self._leaves += topology.size
        zone.topology = topology
        if wiring.limited:
            numbers = range(topology.size) if isinstance(topology, Torus) else range(2 * topology.size)
            for number in numbers:
                self.links[f"{zone.name}_link_{number}_limiter"] = Link(
                    f"{zone.name}_link_{number}_limiter", limiter, 0.0, "SHARED", line
                )
