"""Lint rules about the network: every host reachable, gateways, and the management link of the master."""

from bridge.platform import units
from bridge.platform.findings import Findings
from bridge.platform.model import Host, Platform, Zone
from bridge.platform.routes import RouteError, Routes

#: A 1-byte message that takes longer than this (s) moves the simulated clock.
_INSTANT = 1e-15


def check_network(platform: Platform, findings: Findings) -> None:
    """Routes between all hosts, gateways on compute hosts, management latency."""
    for zone in platform.root.walk():
        if zone.children:
            _check_zone_routes(platform, zone, findings)
            _check_gateways(platform, zone, findings)
        elif zone.hosts:
            _check_leaf(platform, zone, findings)
    _check_management(platform, findings)


def _check_leaf(platform: Platform, zone: Zone, findings: Findings) -> None:
    if zone.routing == "none":
        if len(zone.hosts) > 1:
            findings.error(
                zone.line,
                "routing-none",
                f"zone '{zone.name}' has routing None: its {len(zone.hosts)} hosts cannot reach each other",
                "Use routing='Full' with routes, or 'Cluster'.",
            )
    elif zone.routing == "full":
        members = zone.hosts
        missing = [(a, b) for a in members for b in members if a != b and (a, b) not in zone.routes]
        _report_missing(platform, zone, missing, findings)
    elif zone.routing in ("floyd", "dijkstra"):
        routes = Routes(platform)
        missing = []
        for a in zone.hosts:
            for b in zone.hosts:
                if a != b:
                    try:
                        routes.route(a, b)
                    except RouteError:
                        missing.append((a, b))
        _report_missing(platform, zone, missing, findings)
    elif zone.routing == "star":
        spokes = {name: zone.spokes.get(name) for name in zone.hosts}
        half = [name for name, spoke in spokes.items() if spoke is not None and spoke.up is None]
        if half:
            findings.error(
                platform.hosts[half[0]].line,
                "host-link-missing",
                f"{_these(half)} in zone '{zone.name}' with a loopback but no <host_link>: SimGrid stops",
                "Add <host_link id= up= down=>.",
            )
        free = [name for name, spoke in spokes.items() if spoke is None]
        if free:
            findings.warning(
                platform.hosts[free[0]].line,
                "host-link-missing",
                f"{_these(free)} in zone '{zone.name}' without <host_link>: no bandwidth limit, no latency",
                "Add <host_link id= up= down=>.",
            )


def _these(names: list[str]) -> str:
    return f"host '{names[0]}'" if len(names) == 1 else f"{len(names)} hosts (first: '{names[0]}')"


def _report_missing(
    platform: Platform, zone: Zone, missing: list[tuple[str, str]], findings: Findings
) -> None:
    if not missing:
        return
    # The pair that hurts most first: with the master, then with storage, then between compute hosts.
    rank = {"master": 0, "storage": 1, "compute": 2, None: 3}
    missing.sort(key=lambda pair: min(rank[platform.role(platform.hosts[name])] for name in pair))
    src, dst = missing[0]
    findings.error(
        zone.line,
        "route-missing",
        f"zone '{zone.name}' lacks {len(missing)} route{'s'[: len(missing) > 1]}, the first from '{src}' to "
        f"'{dst}': transfers would stop the simulation or take no time",
        "Add the <route>, or use routing='Cluster' with <host_link>.",
    )


def _check_zone_routes(platform: Platform, zone: Zone, findings: Findings) -> None:
    if zone.routing == "star":
        findings.error(
            zone.line,
            "star-zones",
            f"zone '{zone.name}' has routing Cluster but holds zones, which cannot be joined there",
            "Use routing='Full' for a zone of zones.",
        )
        return
    routes = Routes(platform)
    populated = [child for child in zone.children if _some_host(child)]
    for src in populated:
        for dst in populated:
            if src is dst:
                continue
            try:
                routes.route(_some_host(src), _some_host(dst))
            except RouteError as error:
                findings.error(
                    src.line,
                    "zone-unreachable",
                    f"hosts of zone '{src.name}' cannot reach those of '{dst.name}': {error}",
                    "Add a <zoneRoute> between them, with gateways.",
                )


def _some_host(zone: Zone) -> str:
    return next((name for inner in zone.walk() for name in inner.hosts), "")


def _check_gateways(platform: Platform, zone: Zone, findings: Findings) -> None:
    reported: set[str] = set()
    for entry in [*zone.routes.values(), *zone.bypass.values()]:
        for gateway in (entry.gw_src, entry.gw_dst):
            host = platform.hosts.get(gateway)
            if host is None or gateway in reported or platform.role(host) != "compute":
                continue
            if len(platform.zones[host.zone].hosts) == 1:
                continue
            reported.add(gateway)
            shape = platform.zones[host.zone].topology
            findings.warning(
                entry.line,
                "gateway-compute",
                f"compute host '{gateway}' is the gateway of zone '{host.zone}': all traffic in and out "
                f"crosses its link",
                "Use a router as gateway."
                if shape is None
                else f"SimGrid's {shape.kind} clusters have no router; build the core from zones (as "
                "`bridge platform new` does), or keep storage and master traffic off this platform.",
            )


def _check_management(platform: Platform, findings: Findings) -> None:
    """Batsim's internal messages: one byte from the first host of a job, or the master, to the master."""
    master = platform.master
    if master is None or findings.errors:
        return
    routes = Routes(platform)
    senders: list[Host] = [master]
    for zone in platform.root.walk():  # hosts of one zone differ little; its first and last stand for all
        compute = [host for name in zone.hosts if platform.role(host := platform.hosts[name]) == "compute"]
        senders += compute[:1] + compute[1:][-1:]
    worst, sender = 0.0, master
    latency = 0.0
    for host in senders:
        try:
            route = routes.route(host.name, master.name)
        except RouteError:  # reported above, with its zone
            return
        cost = route.latency + max(
            (1.0 / link.bandwidth for link in route.links if link.bandwidth > 0), default=0.0
        )
        if cost > worst:
            worst, sender, latency = cost, host, route.latency
    if worst > _INSTANT:
        why = f"latency {units.human_time(latency)}" if latency > 0 else "no latency, but a finite bandwidth"
        findings.note(
            master.line,
            "management-latency",
            f"each internal message takes up to {worst:.3g} s of simulated time (from '{sender.name}', "
            f"{why}): "
            "an exact comparison with the fast world is impossible",
            "For exact comparison, let management traffic use a FATPIPE link of 1e18Bps and 0us from end "
            "to end.",
        )
