"""Routes as declared: every name in them must be known by then, every end must be where it can be reached."""

from bridge.platform.members import MemberReader
from bridge.platform.model import RouteEntry, Spoke, Zone
from bridge.platform.xmltree import Element


class RouteReader(MemberReader):
    """Reads `<route>`, `<zoneRoute>` and their bypasses into zones."""

    def route(self, element: Element, zone: Zone) -> None:
        attributes, line = element.attributes, element.line
        src, dst = attributes["src"], attributes["dst"]
        between_zones = "gw_src" in attributes
        bypass = element.tag.startswith("bypass")
        for name in (src, dst):
            self.end_of_route(element, name, zone, between_zones)
        gw_src, gw_dst = attributes.get("gw_src", ""), attributes.get("gw_dst", "")
        if between_zones:
            self.containments(line, gw_src, self.zones[src])
            self.containments(line, gw_dst, self.zones[dst])
        forward, backward = [], []
        for child in element.children:
            up, down = self.halves(child)
            forward.append(up)
            backward.append(down)
        if not forward:
            raise self.stop(
                line,
                "empty-route",
                f"the route from '{src}' to '{dst}' has no links",
                "List at least one <link_ctn>.",
            )
        if bypass:
            self.store(zone.bypass, src, dst, RouteEntry(tuple(forward), gw_src, gw_dst, line))
            return
        if zone.routing == "star":
            if src != dst:
                raise self.stop(
                    line,
                    "star-route",
                    "a zone with routing Cluster takes routes from a host to itself only",
                    "Use <host_link>, or <bypassRoute> for one special pair.",
                )
            zone.spokes.setdefault(src, Spoke()).loopback = tuple(forward)
            return
        self.store(zone.routes, src, dst, RouteEntry(tuple(forward), gw_src, gw_dst, line))
        if attributes.get("symmetrical", "YES").upper() == "YES" and src != dst:
            self.store(zone.routes, dst, src, RouteEntry(tuple(reversed(backward)), gw_dst, gw_src, line))

    def end_of_route(self, element: Element, name: str, zone: Zone, between_zones: bool) -> None:
        line = element.line
        if between_zones:
            if name not in self.zones:
                raise self.stop(
                    line, "unknown-node", f"there is no zone '{name}' above this line", "Check the name."
                )
            member = self.zones[name].parent is zone
        else:
            if name in self.zones:
                raise self.stop(
                    line,
                    "route-ends",
                    f"<{element.tag}> joins hosts, but '{name}' is a zone",
                    "Use <zoneRoute>.",
                )
            if name not in self.hosts and name not in self.routers:
                raise self.stop(
                    line,
                    "unknown-node",
                    f"there is no host or router '{name}' above this line",
                    "Check the name.",
                )
            member = zone.name == (self.hosts[name].zone if name in self.hosts else self.routers[name])
        bypassing = element.tag.startswith("bypass") and between_zones
        if not member and not bypassing:
            raise self.stop(
                line,
                "route-ends",
                f"'{name}' is not a direct member of zone '{zone.name}'",
                "A route belongs into the zone that directly holds both ends.",
            )

    def containments(self, line: int, name: str, zone: Zone) -> None:
        """`name` must be a host or router somewhere inside `zone`."""
        where = self.hosts[name].zone if name in self.hosts else self.routers.get(name, "")
        if not where:
            hint = "Declare it first."
            if zone.topology is not None:
                hint = f"A {zone.topology.kind} cluster has no router: its gateway must be one of its hosts."
            raise self.stop(line, "unknown-node", f"there is no host or router '{name}'", hint)
        if zone not in self.zones[where].ancestors():
            raise self.stop(
                line,
                "gateway-outside",
                f"gateway '{name}' is in zone '{where}', not in '{zone.name}'",
                f"Use a router or host of '{zone.name}'.",
            )

    def halves(self, child: Element) -> tuple[str, str]:
        """Names of the link on the way there and on the way back."""
        name, direction = child.attributes["id"], child.attributes.get("direction", "NONE")
        if direction == "NONE":
            found = self.known_link(name, child.line)
            return found, found
        if name not in self.duplex:
            known = "is not split-duplex" if name in self.links else "does not exist above this line"
            raise self.stop(
                child.line,
                "duplex-direction",
                f"link '{name}' {known}",
                "Give a direction to split-duplex links only.",
            )
        up, down = f"{name}_UP", f"{name}_DOWN"
        return (up, down) if direction == "UP" else (down, up)

    def store(self, table: dict[tuple[str, str], RouteEntry], src: str, dst: str, entry: RouteEntry) -> None:
        if (src, dst) in table:
            raise self.stop(
                entry.line,
                "duplicate-route",
                f"there is a route from '{src}' to '{dst}' already, from line {table[src, dst].line}",
                "Remove one; routes hold in both directions unless symmetrical='NO'.",
            )
        table[src, dst] = entry
