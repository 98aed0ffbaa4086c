"""Platform XML → typed model, with a finding for everything SimGrid would stumble over while reading."""

from pathlib import Path

from bridge.errors import BridgeError
from bridge.platform import units
from bridge.platform.attributes import StopError
from bridge.platform.declared_routes import RouteReader
from bridge.platform.dtd import ATTRIBUTES, REMOVED, ContentModel
from bridge.platform.findings import Finding, Findings
from bridge.platform.model import MASTER_NAME, Platform, Zone
from bridge.platform.xmltree import Element, XmlError, parse_xml, read_bytes

_DOCTYPE = '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
_ROUTING = {
    "full": "full",
    "floyd": "floyd",
    "dijkstra": "dijkstra",
    "dijkstracache": "dijkstra",
    "cluster": "star",
    "none": "none",
}
_RENAMED = {
    "AS": "zone",
    "ASroute": "zoneRoute",
    "bypassASroute": "bypassZoneRoute",
    "process": "actor",
}


class _Reader(RouteReader):
    """Walks the tree: first its structure, then its meaning."""

    def structure(self, element: Element) -> None:
        """Check tags, attributes and their order in the whole tree; drop what cannot be used."""
        model = ContentModel(element.tag)
        kept = []
        for child in element.children:
            if child.tag in REMOVED:
                self.findings.error(
                    child.line,
                    "unsupported-tag",
                    f"<{child.tag}> was removed from SimGrid",
                    REMOVED[child.tag],
                )
                continue
            if child.tag not in ATTRIBUTES:
                self.findings.error(
                    child.line,
                    "unsupported-tag",
                    f"<{child.tag}> is not a tag of SimGrid platforms",
                    "Remove it.",
                )
                continue
            reason = model.refuse(child.tag)
            if reason:
                self.findings.error(child.line, "element-order", reason, "Move it to where it belongs.")
                continue
            if child.tag in _RENAMED:
                self.findings.warning(
                    child.line,
                    "deprecated",
                    f"<{child.tag}> is deprecated",
                    f"Write <{_RENAMED[child.tag]}>.",
                )
            self.unused(child)
            try:
                self.attributes(child)
            except StopError:
                continue
            self.structure(child)
            kept.append(child)
        if element.text_line and element.tag != "trace":
            self.findings.error(
                element.text_line,
                "stray-text",
                f"text inside <{element.tag}>",
                "Remove it, or make it a comment.",
            )
        element.children = kept

    def unused(self, element: Element) -> None:
        """Things that SimGrid reads but that Batsim or this program does not model."""
        tag, line = element.tag, element.line
        if tag in ("actor", "process"):
            self.findings.error(
                line,
                "unsupported-tag",
                f"<{tag}> starts a program of its own",
                "Remove it: Batsim starts all actors.",
            )
        elif tag == "peer":
            self.findings.error(
                line,
                "unsupported-tag",
                "<peer> needs coordinate routing, which is not modelled",
                "Write <host>.",
            )
        elif tag in ("random", "model_prop"):
            self.findings.warning(line, "deprecated", f"<{tag}> does nothing", "Remove it.")
        elif tag == "config":
            self.findings.note(
                line,
                "config-inside",
                "<config> changes SimGrid's settings for everyone who loads this file",
                "Prefer the command line (--cfg).",
            )
        elif tag in ("trace", "trace_connect"):
            self.findings.warning(
                line,
                "profile",
                f"<{tag}>: availability profiles change the machine behind the scheduler's back",
                "Use machine availability events (--events) instead.",
            )
        elif tag == "disk":
            self.findings.note(
                line,
                "disk-unused",
                "<disk> is not used by Batsim",
                "Model storage as a host with role=storage.",
            )
        for name in ("speed_file", "availability_file", "state_file", "bandwidth_file", "latency_file"):
            if element.attributes.get(name):
                self.findings.warning(
                    line,
                    "profile",
                    f"{name}: availability profiles change the machine behind the scheduler's back",
                    "Use machine availability events (--events) instead.",
                )
        if element.attributes.get("sharing_policy") == "FULLDUPLEX":
            self.findings.warning(line, "deprecated", "FULLDUPLEX is deprecated", "Write SPLITDUPLEX.")

    def zone(self, element: Element, parent: Zone | None) -> None:
        name = element.attributes["id"]
        self.claim(name, element.line, "zone")
        if element.tag == "cluster":
            self.cluster(element, parent)
            return
        routing = _ROUTING.get(element.attributes["routing"].lower(), "")
        if not routing:
            self.findings.error(
                element.line,
                "unsupported-routing",
                f"routing '{element.attributes['routing']}' is not modelled",
                "Use Full, Floyd, Dijkstra, DijkstraCache or Cluster.",
            )
            routing = "none"
        zone = Zone(name, routing, element.line, parent, self.properties(element))
        self.enter(zone, parent)
        pending: list[Element] = []
        for child in element.children:
            try:
                self.member(child, zone, pending)
            except StopError:
                continue
        for child in pending:
            try:
                self.spoke(child, zone)
            except StopError:
                continue

    def member(self, child: Element, zone: Zone, pending: list[Element]) -> None:
        if child.tag in ("zone", "AS", "cluster"):
            self.zone(child, zone)
        elif child.tag == "host":
            self.host(child, zone)
        elif child.tag == "router":
            name = child.attributes["id"]
            self.claim(name, child.line, "router")
            self.routers[name] = zone.name
            zone.routers.append(name)
        elif child.tag == "link":
            self.link(child)
        elif child.tag in ("host_link", "cabinet", "backbone"):
            if zone.routing != "star":
                raise self.stop(
                    child.line,
                    "star-only",
                    f"<{child.tag}> needs a zone with routing Cluster",
                    "Set routing='Cluster', or declare links and routes.",
                )
            if child.tag == "backbone":
                zone.backbone = child.attributes["id"]
                bandwidth = self.bandwidth(child, "bandwidth")
                latency = self.time(child, "latency")
                self.add_link(zone.backbone, bandwidth, latency, "SHARED", child.line)
            else:
                pending.append(child)  # SimGrid builds them at the end of the zone, with the backbone known
        elif child.tag.lower().endswith("route"):
            self.route(child, zone)

    def read(self, data: bytes, master_name: str) -> Platform | None:
        """The model of the whole file, None if there is nothing to model."""
        try:
            root, doctype = parse_xml(data)
        except XmlError as error:
            self.findings.error(error.line, error.code, error.message, error.remedy)
            return None
        if root.tag != "platform":
            self.findings.error(
                root.line,
                "not-a-platform",
                f"the outermost tag is <{root.tag}>, not <platform>",
                "Check the file.",
            )
            return None
        if not doctype:
            self.findings.error(
                root.line,
                "doctype-missing",
                "there is no document type, SimGrid stops",
                f"Begin with {_DOCTYPE}",
            )
        try:
            self.attributes(root)
            version = units.split_unit(root.attributes["version"])[0]
            if not 4 <= version <= 4.1:
                self.findings.error(
                    root.line,
                    "version",
                    f"version {root.attributes['version']} is not one that SimGrid 3.32 reads",
                    "Write 4.1, after converting older files with simgrid_update_xml.",
                )
        except StopError:
            pass
        except ValueError:
            self.findings.error(root.line, "version", "the version is not a number", "Write version='4.1'.")
        self.structure(root)
        for child in root.children:
            if child.tag in ("zone", "AS", "cluster"):
                try:
                    self.zone(child, None)
                except StopError:
                    continue
        if self.root is None:
            if not self.findings.errors:
                self.findings.error(
                    root.line, "no-zone", "the platform has no zone", "Put everything in one <zone>."
                )
            return None
        return Platform(
            self.findings.path, self.root, self.hosts, self.links, self.routers, self.zones, master_name
        )


def inspect(
    path: str | Path, *, data: bytes | None = None, master_name: str = MASTER_NAME
) -> tuple[Platform | None, Findings]:
    """Read a platform file as far as possible.

    Args:
        path: the file, as it shall appear in findings.
        data: its contents, if they are at hand (nothing is read from `path` then).
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
