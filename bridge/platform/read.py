"""Platform XML → typed model, with a finding for everything SimGrid would stumble over while reading.

The reader does what SimGrid does, in its order, so that its errors are SimGrid's: a file without a finding
that says `refuses` is one that SimGrid loads.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.parsers import expat

from bridge.base.errors import BridgeError
from bridge.platform.findings import CATALOGUE, FindingCollector, LintFinding, verdict
from bridge.platform.members import Members
from bridge.platform.model import MASTER_NAME, Platform, RouteEntry, Spoke, Zone
from bridge.platform.schema import (
    ATTRIBUTES,
    REMARKS,
    REMOVED,
    RENAMED,
    ROUTINGS,
    ConfigElements,
    ContentModel,
)
from bridge.platform.values import StopError
from bridge.wire.platform_xml import DOCTYPE, Element, XmlError, parse_xml, read_bytes

#: Zones nested deeper than this are no machine.
MAX_DEPTH = 64
#: Tag -> the method that reads such an element, if named otherwise; called with it and the zone around it.
_PARTS = {
    tag: method
    for method, tags in {
        "zone": "AS cluster",
        "spoke": "host_link cabinet backbone",
        "route": "zoneRoute ASroute bypassRoute bypassZoneRoute bypassASroute",
        "trace": "trace_connect",
        "unmodelled": "random actor process",
    }.items()
    for tag in tags.split()
}
_Table = dict[tuple[str, str], RouteEntry]


class _Reader(Members):
    """Walks the tree: first its structure, then its meaning."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.settings = ConfigElements()
        self.reported: set[tuple[str, str]] = set()  # (zone, finding) made once for a zone
        self.traces: set[str] = set()
        self.connections: list[tuple[Element, str, str, str]] = []  # element, kind, trace, host or link

    def structure(self, element: Element, depth: int = 1) -> None:
        """Check tags and their order in the whole tree; drop what cannot be used."""
        model = ContentModel(element.tag)
        kept = []
        for child in element.children:
            tag = child.tag
            if tag in REMOVED:
                self.add_finding(child, "unsupported-tag/removed", remedy=REMOVED[tag])
                continue
            if tag not in ATTRIBUTES:
                self.add_finding(child, "unsupported-tag/unknown")
                continue
            if reason := model.refuse(tag):
                self.add_finding(child, "element-order", reason=reason)
                continue
            if tag in REMARKS:
                self.add_finding(child, REMARKS[tag], new=RENAMED.get(tag), what=f"<{tag}>")
            if child.attributes.get("sharing_policy") == "FULLDUPLEX":
                self.add_finding(child, "deprecated/duplex")
            if depth >= MAX_DEPTH:
                self.add_finding(child, "xml-depth", most=MAX_DEPTH)
                continue
            self.structure(child, depth + 1)
            kept.append(child)
        if element.text_line:
            self.findings.add(element.text_line, "stray-text", tag=element.tag)
        element.children = kept

    # ---- zones ---------------------------------------------------------------------------------------------
    def zone(self, element: Element, parent: Zone | None) -> None:
        """A `<zone>`, `<AS>` or `<cluster>` with everything in it. Raises StopError."""
        values = self.values(element)
        name = values["id"]
        self.claim(element, name, "zone", parent)
        routing = "shape" if element.tag == "cluster" else ROUTINGS.get(values["routing"].lower(), "")
        if element.tag == "cluster" and values.get("topology", "FLAT") == "FLAT":
            routing = "star"
        if not routing or routing == "vivaldi":
            self.add_finding(element, "unsupported-routing", loads=bool(routing), routing=values["routing"])
        properties = self.properties(element) if element.tag != "cluster" else {}
        zone = Zone(name, routing or "none", element.line, parent, properties, tag=element.tag)
        self.zones[name] = zone
        if parent is not None:
            parent.children.append(zone)
        elif self.root is None:
            self.root = zone
        else:
            self.add_finding(element, "two-roots", name=name)
        if element.tag == "cluster":
            self.cluster(element, zone, values)
            return
        for child in element.children:
            self.part(child, zone)
        # SimGrid builds a star at its end, and only if no other zone began inside it.
        if routing == "star" and not any(inner.tag != "cluster" for inner in zone.children):
            self.build_star(zone)
        if routing == "wifi" and properties.get("access_point", name) not in self.points:
            self.add_finding(element, "unknown-node/access")
        if zone.wifi:
            self.add_finding(element, "wifi/zone", zone=name)

    def part(self, child: Element, zone: Zone | None) -> None:
        """One child of a zone, or of `<platform>` where `zone` is None."""
        if child.tag != "prop":  # which its element has read
            with suppress(StopError):
                getattr(self, _PARTS.get(child.tag, child.tag))(child, zone)

    def spoke(self, child: Element, zone: Zone | None) -> None:
        """A part of a star, kept until the next one ends."""
        if zone is not None and zone.routing != "star":
            self.add_finding(child, "star-only")
        if child.tag == "backbone":
            self.backbone = child, self.values(child)
        else:
            self.spokes.append((child, self.values(child)))

    def config(self, child: Element, _zone: Zone | None) -> None:
        for message in self.settings.mistakes(self.properties(child)):
            self.add_finding(child, "config-key", what=message)
        self.values(child)

    def unmodelled(self, child: Element, _zone: Zone | None) -> None:
        self.values(child)

    def trace(self, element: Element, _zone: Zone | None) -> None:
        """A `<trace>` or `<trace_connect>`; what it is connected to may stand below."""
        values = self.values(element)
        if element.tag == "trace_connect":
            trace = values["trace"]
            if trace not in self.traces:
                raise self.stop(element, "profile-unusable", name=trace, why="it is not declared above")
            kind = values.get("kind", "HOST_AVAIL")
            self.connections.append((element, kind, trace, values["element"]))
            return
        name, file, text = values["id"], values.get("file", ""), element.profile
        self.traces.add(name)
        if file or text:
            self.profile(element, file, name=name, text=text, period=values["periodicity"])
        else:
            self.add_finding(element, "profile-unusable", name=name, why="it is empty")

    def connect(self) -> None:
        """Connect traces, each to the first element that it names for a kind."""
        connected_pairs: set[tuple[str, str]] = set()
        for element, kind, trace, name in self.connections:
            if (kind, trace) in connected_pairs:
                continue
            connected_pairs.add((kind, trace))
            if name in (self.hosts if kind in ("HOST_AVAIL", "SPEED") else self.links):
                self.attach(element, kind, name)
            else:
                self.add_finding(
                    element, "profile-unusable", name=trace, why=f"there is no '{name}' to connect"
                )

    # ---- routes --------------------------------------------------------------------------------------------
    def route(self, element: Element, zone: Zone) -> None:
        values = self.values(element)
        src, dst = values["src"], values["dst"]
        gateways = values.get("gw_src", ""), values.get("gw_dst", "")
        bypass = element.tag.startswith("bypass")
        for name in (src, dst, *(gateways if "gw_src" in values else ())):
            if name not in self.points:
                raise self.unknown_point(element, name, values)
        links = [self.halves(child) for child in element.children]
        forward = tuple(up for up, _ in links)
        entry = RouteEntry(forward, *gateways, element.line)
        if zone.routing in ("none", "wifi") and not bypass:
            raise self.stop_once(element, zone, "routing-none")
        star = zone.routing in ("star", "vivaldi") and not bypass
        for end, gateway in ((src, gateways[0]), (dst, gateways[1])):
            self.end_of_route(element, end, gateway, zone, bypass=bypass, star=star)
        if not forward and not star:
            raise self.stop(element, "empty-route", src=src, dst=dst)
        if bypass:
            self.store(element, zone.bypass, (src, dst), entry)
        elif star:
            if src != dst:
                raise self.stop_once(element, zone, "star-route")
            zone.spokes.setdefault(src, Spoke()).loopback = forward or None
        else:
            if "gw_src" in values and gateways[0] == gateways[1]:
                raise self.stop(element, "route-ends/same")
            self.store(element, zone.routes, (src, dst), entry)
            symmetrical = values.get("symmetrical", "YES").upper() == "YES"
            # A route to itself counts as its own way back in Floyd and Dijkstra, not in Full.
            if symmetrical and (src != dst or zone.routing != "full"):
                backward = tuple(down for _, down in reversed(links))
                back = RouteEntry(backward, gateways[1], gateways[0], element.line)
                self.store(element, zone.routes, (dst, src), back)

    def stop_once(self, element: Element, zone: Zone, key: str) -> StopError:
        """As `stop`, but one finding stands for all of a zone."""
        if (zone.name, key) in self.reported:
            return StopError()
        self.reported.add((zone.name, key))
        return self.stop(element, key, zone=zone.name)

    def unknown_point(self, element: Element, name: str, values: dict[str, str]) -> StopError:
        """The finding about a name in a route that is none of a host, router or zone above."""
        hosts = (*self.routers, *self.hosts)
        if name in (values["src"], values["dst"]):
            what, names = ("zone", self.zones) if "gw_src" in values else ("host or router", hosts)
            return self.unknown(element, "unknown-node", name, names, what=what)
        end = self.zones.get(values["src" if name == values["gw_src"] else "dst"])
        words, key = {"what": "host or router"}, "unknown-node/gateway"
        if end is not None and end.topology is not None:
            words["shape"], key = end.topology.kind, "unknown-node/shape"
        return self.unknown(element, key, name, hosts, **words)

    def end_of_route(
        self, element: Element, name: str, gateway: str, zone: Zone, *, bypass: bool, star: bool
    ) -> None:
        """One end must be a direct member of the zone, and of the right kind, its gateway inside it.

        A bypass is taken all the same, but may never be used. A star does not look whether a host is its own.
        """
        kind, holder = self.points[name]
        words = {"tag": element.tag, "name": name, "kind": kind, "zone": zone.name, "gateway": gateway}
        own = holder is zone or (bool(gateway) and (bypass or (star and self.zones.get(name) is zone)))
        key = ""
        if bool(gateway) != (kind == "zone"):
            key = "route-ends/host" if gateway else "route-ends/zone"
        elif not own:
            key = "route-ends/member"
        if key:
            self.refuse_end(element, key, unused=bypass or (star and not gateway and not own), **words)
        if gateway and kind == "zone":
            gateway_kind, home = self.points[gateway]
            words["home"] = home.name if home else ""
            if gateway_kind == "zone" or home is None or self.zones[name] not in home.ancestors():
                self.refuse_end(element, "gateway-outside", unused=bypass, **words)

    def refuse_end(self, element: Element, key: str, *, unused: bool, **words: Any) -> None:
        """Stop at the end of a route, or only say that the route is of no use."""
        if not unused:
            raise self.stop(element, key, **words)
        _, message, remedy = CATALOGUE[key]
        self.add_finding(
            element, "route-unused", message=message.format_map(words), remedy=remedy.format_map(words)
        )

    def halves(self, child: Element) -> tuple[str, str]:
        """Names of the link on the way there and on the way back. Raises StopError."""
        values = self.values(child)
        name, direction = values["id"], values.get("direction", "NONE")
        if direction == "NONE":
            link = self.known_link(child, name)
            return link, link
        if name not in self.duplex:
            variant = "single" if name in self.links else "unknown"
            raise self.stop(child, f"duplex-direction/{variant}", name=name)
        up, down = f"{name}_UP", f"{name}_DOWN"
        return (up, down) if direction == "UP" else (down, up)

    def store(self, element: Element, table: _Table, ends: tuple[str, str], entry: RouteEntry) -> None:
        """Keep a route, unless there is one. Raises StopError."""
        if ends in table:
            src, dst = ends
            raise self.stop(element, "duplicate-route", src=src, dst=dst, before=table[ends].line)
        table[ends] = entry

    # ---- the whole file ------------------------------------------------------------------------------------
    def read(self, data: bytes, master_name: str) -> Platform | None:
        """The model of the whole file, None if there is nothing to model."""
        try:
            root, doctype = parse_xml(data)
        except XmlError as error:
            self.findings.add(error.line, error.key, message=error.message, remedy=error.remedy)
            return None
        if root.tag != "platform":
            self.add_finding(root, "not-a-platform")
            return None
        if not doctype:
            self.add_finding(root, "doctype-missing", doctype=DOCTYPE)
        with suppress(StopError):
            version = self.values(root)["version"]
            if not 3.995 <= version < 4.105 and all(f.code != "version" for f in self.findings.findings):
                self.add_finding(root, "version", text=root.attributes["version"])
        self.structure(root)
        for child in root.children:
            self.part(child, None)
        self.connect()
        if verdict(self.findings.findings) == "loads":
            self.other_readers(data)
        if self.root is None:
            if not self.findings.errors:
                self.add_finding(root, "no-zone")
            return None
        return Platform(
            self.findings.path, self.root, self.hosts, self.links, self.routers, self.zones, master_name
        )

    def other_readers(self, data: bytes) -> None:
        """Say where other XML programs stop and SimGrid does not."""
        parser = expat.ParserCreate()
        try:
            parser.Parse(data, True)
        except expat.ExpatError as error:
            message = expat.ErrorString(error.code) or "malformed XML"
            line = data.count(b"\n", 0, parser.ErrorByteIndex) + 1
            self.findings.add(line, "xml-lax", error=message)


def inspect(
    path: str | Path, *, data: bytes | None = None, master_name: str = MASTER_NAME
) -> tuple[Platform | None, FindingCollector]:
    """Read a platform file as far as possible; return the model and the findings.

    `path` is shown in findings; availability profiles are looked for beside it. `data`: its contents, if they
    are at hand. `master_name`: the host that Batsim's `-m` would name. The model is None if there is nothing
    to model; incomplete if the findings hold errors. Raises BridgeError: the file cannot be read at all.
    """
    reader = _Reader(str(path))
    platform = reader.read(read_bytes(path) if data is None else data, master_name)
    return platform, reader.findings


def raise_first_error(findings: list[LintFinding]) -> list[LintFinding]:
    """Findings of which none is an error; BridgeError is the first that is one."""
    for finding in findings:
        if finding.severity == "error":
            raise BridgeError(
                f"{finding.message} [{finding.code}]", where=finding.where, remedy=finding.remedy
            )
    return findings


def read_platform(path: str | Path, *, master_name: str = MASTER_NAME) -> Platform:
    """Read a platform file that must be usable; BridgeError is the first error of reading it."""
    platform, findings = inspect(path, master_name=master_name)
    raise_first_error(findings.sorted())
    assert platform is not None
    return platform
