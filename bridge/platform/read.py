"""Platform XML → typed model, with a finding for everything SimGrid would stumble over while reading.

The reader does what SimGrid does, in its order, so that its errors are SimGrid's: a file without a finding
that says `refuses` is one that SimGrid loads.
"""

import math
from pathlib import Path
from xml.parsers import expat

from bridge.errors import BridgeError
from bridge.platform.config_keys import Settings
from bridge.platform.findings import Finding, Findings
from bridge.platform.members import Members
from bridge.platform.model import MASTER_NAME, Platform, RouteEntry, Spoke, Zone
from bridge.platform.scan import DOCTYPE, Element, XmlError, parse_xml, read_bytes
from bridge.platform.schema import ATTRIBUTES, REMOVED, ContentModel
from bridge.platform.values import StopError

#: Zones nested deeper than this are no machine.
MAX_DEPTH = 64
_ROUTING = {
    "full": "full",
    "floyd": "floyd",
    "dijkstra": "dijkstra",
    "dijkstracache": "dijkstra",
    "cluster": "star",
    "none": "none",
    "vivaldi": "vivaldi",
    "wifi": "wifi",
}
_UNMODELLED = ("vivaldi", "wifi")
_RENAMED = {
    "AS": "zone",
    "ASroute": "zoneRoute",
    "bypassASroute": "bypassZoneRoute",
    "process": "actor",
}
_IDLE = ("deprecated", "<{}> does nothing", "Remove it.")
_PROFILE = (
    "profile",
    "<{}>: availability profiles change the machine behind the scheduler's back",
    "Use machine availability events (--events) instead.",
)
_ACTOR = ("unsupported-tag", "<{}> starts a program of its own", "Remove it: Batsim starts all actors.")
#: Tags that SimGrid reads but that Batsim or this program does not model: how bad, code, message, remedy.
_REMARKS = {
    "actor": ("refused", *_ACTOR),
    "process": ("refused", *_ACTOR),
    "random": ("warning", *_IDLE),
    "model_prop": ("warning", *_IDLE),
    "config": (
        "note",
        "config-inside",
        "<{}> changes SimGrid's settings for everyone who loads this file",
        "Prefer the command line (--cfg).",
    ),
    "trace": ("warning", *_PROFILE),
    "trace_connect": ("warning", *_PROFILE),
    "disk": (
        "note",
        "disk-unused",
        "<{}> is not used by Batsim",
        "Model storage as a host with role=storage.",
    ),
    **{
        old: ("warning", "deprecated", "<{}> is deprecated", f"Write <{new}>.")
        for old, new in _RENAMED.items()
        if old != "process"
    },
}


class _Reader(Members):
    """Walks the tree: first its structure, then its meaning."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.settings = Settings()

    def structure(self, element: Element, depth: int = 1) -> None:
        """Check tags and their order in the whole tree; drop what cannot be used."""
        model = ContentModel(element.tag)
        kept = []
        for child in element.children:
            if child.tag not in ATTRIBUTES:
                what = (
                    "was removed from SimGrid"
                    if child.tag in REMOVED
                    else "is not a tag of SimGrid platforms"
                )
                remedy = REMOVED.get(child.tag, "Remove it.")
                self.stop(child, "unsupported-tag", f"<{child.tag}> {what}", remedy)
                continue
            if reason := model.refuse(child.tag):
                self.stop(child, "element-order", reason, "Move it to where it belongs.")
                continue
            if child.tag in _REMARKS:
                severity, code, message, remedy = _REMARKS[child.tag]
                getattr(self.findings, severity)(child.line, code, message.format(child.tag), remedy)
            if child.attributes.get("sharing_policy") == "FULLDUPLEX":
                self.findings.warning(
                    child.line, "deprecated", "FULLDUPLEX is deprecated", "Write SPLITDUPLEX."
                )
            if depth >= MAX_DEPTH:
                message = f"elements are nested more than {MAX_DEPTH} deep"
                self.findings.error(child.line, "xml-depth", message, "Flatten the zones.")
                continue
            self.structure(child, depth + 1)
            kept.append(child)
        if element.text_line:
            self.findings.refused(
                element.text_line,
                "stray-text",
                f"text inside <{element.tag}>",
                "Remove it, or make it a comment.",
            )
        element.children = kept

    # ---- zones ---------------------------------------------------------------------------------------------
    def zone(self, element: Element, parent: Zone | None) -> None:
        """A `<zone>`, `<AS>` or `<cluster>` with everything in it. Raises StopError."""
        values = self.values(element)
        name = values["id"]
        self.claim(element, name, "zone", parent)
        routing = "shape" if element.tag == "cluster" else _ROUTING.get(values["routing"].lower(), "")
        if element.tag == "cluster" and values.get("topology", "FLAT") == "FLAT":
            routing = "star"
        if not routing or routing in _UNMODELLED:
            add = self.findings.error if routing else self.findings.refused
            add(
                element.line,
                "unsupported-routing",
                f"routing '{values['routing']}' is not modelled",
                "Use Full, Floyd, Dijkstra, DijkstraCache or Cluster.",
            )
        properties = self.properties(element) if element.tag != "cluster" else {}
        zone = Zone(name, routing or "none", element.line, parent, properties, tag=element.tag)
        self.zones[name] = zone
        if parent is not None:
            parent.children.append(zone)
        elif self.root is None:
            self.root = zone
        else:
            self.findings.error(
                zone.line,
                "two-roots",
                f"zone '{zone.name}' stands beside another one",
                "Put both in one outer zone.",
            )
        if element.tag == "cluster":
            self.cluster(element, zone, values)
            return
        for child in element.children:
            try:
                self.member(child, zone)
            except StopError:
                continue
        # SimGrid builds a star at its end, and only if no other zone began inside it.
        if routing == "star" and not any(inner.tag != "cluster" for inner in zone.children):
            self.build_star(zone)
        if routing == "wifi" and properties.get("access_point", name) not in self.points:
            self.stop(element, "unknown-node", "there is no such access_point", "Name a router or host.")

    def member(self, child: Element, zone: Zone) -> None:
        """One child of a zone. Raises StopError."""
        if child.tag in ("zone", "AS", "cluster"):
            self.zone(child, zone)
        elif child.tag == "host":
            self.host(child, zone)
        elif child.tag == "router":
            self.router(child, zone, self.values(child)["id"])
        elif child.tag == "peer":
            self.peer(child, zone)
        elif child.tag == "link":
            self.link(child, zone)
        elif child.tag in ("host_link", "cabinet", "backbone"):
            if zone.routing != "star":
                self.findings.error(
                    child.line,
                    "star-only",
                    f"<{child.tag}> needs a zone with routing Cluster",
                    "Set routing='Cluster', or declare links and routes.",
                )
            self.spoke(child)
        elif child.tag.lower().endswith("route"):
            self.route(child, zone)
        elif child.tag in ("trace", "trace_connect"):
            self.trace(child)

    def spoke(self, child: Element) -> None:
        """A part of a star, kept until the next one ends."""
        if child.tag == "backbone":
            self.backbone = child
        else:
            self.spokes.append(child)

    def trace(self, element: Element) -> None:
        """A `<trace>` or `<trace_connect>`; what it is connected to may stand below."""
        values = self.values(element)
        if element.tag == "trace_connect":
            self.connections.append(
                (element, values.get("kind", "HOST_AVAIL"), values["trace"], values["element"])
            )
            if values["trace"] not in self.traces:
                raise self.stop(
                    element,
                    "profile-unusable",
                    f"there is no trace '{values['trace']}' above",
                    "Declare it first.",
                )
            return
        if values.get("file") or element.profile:
            self.profile(
                element,
                values.get("file", ""),
                name=values["id"],
                text=element.profile,
                period=values["periodicity"],
            )
        else:
            self.stop(element, "profile-unusable", "an empty <trace> names no file", "Remove it.")
        self.traces.add(values["id"])

    def connect(self) -> None:
        """Connect traces, each to the first element that it names for a kind."""
        seen: set[tuple[str, str]] = set()
        for element, kind, trace, name in self.connections:
            if (kind, trace) in seen or trace not in self.traces:
                continue
            seen.add((kind, trace))
            if name not in (self.hosts if kind in ("HOST_AVAIL", "SPEED") else self.links):
                self.stop(element, "profile-unusable", f"there is no '{name}' to connect", "Check the name.")
                continue
            try:
                self.attach(element, kind, name)
            except StopError:
                continue

    # ---- routes --------------------------------------------------------------------------------------------
    def route(self, element: Element, zone: Zone) -> None:
        """A `<route>`, `<zoneRoute>` or a bypass. Raises StopError."""
        values = self.values(element)
        src, dst = values["src"], values["dst"]
        gateways = values.get("gw_src", ""), values.get("gw_dst", "")
        bypass = element.tag.startswith("bypass")
        for name in (src, dst, *(gateways if "gw_src" in values else ())):
            self.known_point(element, name, values)
        links = [self.halves(child) for child in element.children]
        forward = tuple(up for up, _ in links)
        entry = RouteEntry(forward, *gateways, element.line)
        if zone.routing in ("none", "wifi") and not bypass:
            raise self.stop_once(
                element,
                zone,
                "routing-none",
                f"zone '{zone.name}' has routing None and takes no routes: SimGrid stops",
                "Use routing='Full'.",
            )
        star = zone.routing in ("star", "vivaldi") and not bypass
        for end, gateway in ((src, gateways[0]), (dst, gateways[1])):
            self.end_of_route(element, end, gateway, zone, stops=not bypass, star=star)
        if not forward and not star:
            raise self.stop(
                element,
                "empty-route",
                f"the route from '{src}' to '{dst}' has no links",
                "List at least one <link_ctn>.",
            )
        if bypass:
            self.store(element, zone.bypass, src, dst, entry)
        elif star:
            if src != dst:
                raise self.stop_once(
                    element,
                    zone,
                    "star-route",
                    "a zone with routing Cluster takes routes from a host to itself only",
                    "Use <host_link>, or <bypassRoute> for one special pair.",
                )
            zone.spokes.setdefault(src, Spoke()).loopback = forward or None
        else:
            if "gw_src" in values and gateways[0] == gateways[1]:
                raise self.stop(
                    element, "route-ends", "both ends have the same gateway", "Name a gateway in each zone."
                )
            self.store(element, zone.routes, src, dst, entry)
            symmetrical = values.get("symmetrical", "YES").upper() == "YES"
            # A route to itself counts as its own way back in Floyd and Dijkstra, not in Full.
            if symmetrical and (src != dst or zone.routing != "full"):
                backward = tuple(down for _, down in reversed(links))
                back = RouteEntry(backward, gateways[1], gateways[0], element.line)
                self.store(element, zone.routes, dst, src, back)

    def stop_once(self, element: Element, zone: Zone, code: str, message: str, remedy: str) -> StopError:
        """As `stop`, but one finding stands for all of a zone."""
        if (zone.name, code) in self.reported:
            return StopError()
        self.reported.add((zone.name, code))
        return self.stop(element, code, message, remedy)

    def known_point(self, element: Element, name: str, values: dict[str, str]) -> None:
        """Every name in a route must be that of a host, router or zone above."""
        if name in self.points:
            return
        if name not in (values["src"], values["dst"]):
            end = self.zones.get(values["src" if name == values["gw_src"] else "dst"])
            hint = "Declare it first."
            if end is not None and end.topology is not None:
                hint = f"A {end.topology.kind} cluster has no router: its gateway must be one of its hosts."
            raise self.stop(element, "unknown-node", f"there is no host or router '{name}'", hint)
        what = "zone" if "gw_src" in values else "host or router"
        raise self.stop(
            element, "unknown-node", f"there is no {what} '{name}' above this line", "Check the name."
        )

    def end_of_route(
        self, element: Element, name: str, gateway: str, zone: Zone, *, stops: bool, star: bool
    ) -> None:
        """One end must be a direct member of the zone, and of the right kind, its gateway inside it.

        A bypass (`stops` is false) is taken all the same, but may never be used. A star does not look whether
        a host is its own.
        """
        kind, holder = self.points[name]
        message = remedy = ""
        mild = not stops
        if not gateway and kind == "zone":
            message, remedy = f"<{element.tag}> joins hosts, but '{name}' is a zone", "Use <zoneRoute>."
        elif gateway and kind != "zone":
            message, remedy = f"<{element.tag}> joins zones, but '{name}' is a {kind}", "Use <route>."
        elif (
            holder is not zone
            and not (gateway and mild)
            and not (star and gateway and self.zones[name] is zone)
        ):
            message = f"'{name}' is not a direct member of zone '{zone.name}'"
            remedy = "A route belongs into the zone that directly holds both ends."
            mild = mild or (star and not gateway)
        if message:
            if not mild:
                raise self.stop(element, "route-ends", message, remedy)
            self.findings.warning(element.line, "route-unused", message, remedy)
        if not gateway or kind != "zone":
            return
        gateway_kind, home = self.points[gateway]
        if gateway_kind == "zone" or home is None or self.zones[name] not in home.ancestors():
            message = f"gateway '{gateway}' is in zone '{home.name if home else ''}', not in '{name}'"
            if gateway_kind == "zone":
                message = f"gateway '{gateway}' is a zone"
            remedy = f"Use a router or host of '{name}'."
            if stops:
                raise self.stop(element, "gateway-outside", message, remedy)
            self.findings.warning(element.line, "route-unused", message, remedy)

    def halves(self, child: Element) -> tuple[str, str]:
        """Names of the link on the way there and on the way back. Raises StopError."""
        values = self.values(child)
        name, direction = values["id"], values.get("direction", "NONE")
        if direction == "NONE":
            found = self.known_link(child, name)
            return found, found
        if name not in self.duplex:
            known = "is not split-duplex" if name in self.links else "does not exist above this line"
            raise self.stop(
                child,
                "duplex-direction",
                f"link '{name}' {known}",
                "Give a direction to split-duplex links only.",
            )
        up, down = f"{name}_UP", f"{name}_DOWN"
        return (up, down) if direction == "UP" else (down, up)

    def store(
        self,
        element: Element,
        table: dict[tuple[str, str], RouteEntry],
        src: str,
        dst: str,
        entry: RouteEntry,
    ) -> None:
        """Keep a route, unless there is one. Raises StopError."""
        if (src, dst) in table:
            raise self.stop(
                element,
                "duplicate-route",
                f"there is a route from '{src}' to '{dst}' already, from line {table[src, dst].line}",
                "Remove one; routes hold in both directions unless symmetrical='NO'.",
            )
        table[src, dst] = entry

    # ---- the whole file ------------------------------------------------------------------------------------
    def body(self, child: Element) -> None:
        """One child of `<platform>`. Raises StopError."""
        if child.tag in ("zone", "AS", "cluster"):
            self.zone(child, None)
        elif child.tag == "config":
            for message in self.settings.mistakes(self.properties(child)):
                self.stop(child, "config-key", message, "Remove it from <config>.")
            self.values(child)
        elif child.tag in ("trace", "trace_connect"):
            self.trace(child)
        elif child.tag == "peer":
            self.peer(child, None)
        elif child.tag == "cabinet":
            self.spoke(child)
        else:
            self.values(child)

    def read(self, data: bytes, master_name: str) -> Platform | None:
        """The model of the whole file, None if there is nothing to model."""
        try:
            root, doctype = parse_xml(data)
        except XmlError as error:
            self.findings.refused(error.line, error.code, error.message, error.remedy)
            return None
        if root.tag != "platform":
            self.stop(
                root,
                "not-a-platform",
                f"the outermost tag is <{root.tag}>, not <platform>",
                "Check the file.",
            )
            return None
        if not doctype:
            self.stop(
                root, "doctype-missing", "there is no document type, SimGrid stops", f"Begin with {DOCTYPE}"
            )
        self.other_readers(data)
        try:
            version = self.values(root)["version"]
            if not math.isnan(version) and not 3.995 <= version < 4.105:
                self.stop(
                    root,
                    "version",
                    f"version {root.attributes['version']} is not one that SimGrid 3.32 reads",
                    "Write 4.1, after converting older files with simgrid_update_xml.",
                )
        except StopError:
            pass
        self.structure(root)
        for child in root.children:
            try:
                self.body(child)
            except StopError:
                continue
        self.connect()
        if self.root is None:
            if not self.findings.errors:
                self.stop(root, "no-zone", "the platform has no zone", "Put everything in one <zone>.")
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
            self.findings.warning(
                error.lineno,
                "xml-lax",
                f"SimGrid reads this, but it is not well-formed XML: {message}",
                "Mend it, so that other programs can read the file.",
            )


def inspect(
    path: str | Path, *, data: bytes | None = None, master_name: str = MASTER_NAME
) -> tuple[Platform | None, Findings]:
    """Read a platform file as far as possible.

    Args:
        path: the file, as it shall appear in findings; availability profiles are looked for beside it.
        data: its contents, if they are at hand (the file itself is not read then).
        master_name: the host that Batsim's `-m` would name.

    Returns:
        The model (None if there is nothing to model; incomplete if the findings hold errors) and the
        findings.

    Raises:
        BridgeError: the file cannot be read at all.
    """
    reader = _Reader(str(path))
    platform = reader.read(read_bytes(path) if data is None else data, master_name)
    return platform, reader.findings


def refuse(finding: Finding) -> BridgeError:
    """The error to raise for a finding."""
    return BridgeError(f"{finding.message} [{finding.code}]", where=finding.where, remedy=finding.remedy)


def read_platform(path: str | Path, *, master_name: str = MASTER_NAME) -> Platform:
    """Read a platform file that must be usable.

    Raises:
        BridgeError: the first error of reading it. (`bridge platform check` finds more: wattages, routes,
        roles.)
    """
    platform, findings = inspect(path, master_name=master_name)
    for finding in findings.sorted():
        if finding.severity == "error":
            raise refuse(finding)
    assert platform is not None
    return platform
