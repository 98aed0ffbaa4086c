"""Lint rules about the network: every host reachable, gateways, and the management link of the master."""

import itertools

from bridge.platform import units
from bridge.platform.findings import Findings
from bridge.platform.model import Host, Platform, Zone
from bridge.platform.routes import RouteError, Routes

#: A 1-byte message that takes longer than this (s) moves the simulated clock.
_INSTANT = 1e-15


def check_network(platform: Platform, findings: Findings) -> None:
    """Routes between all hosts, gateways on compute hosts, management latency."""
    routes = Routes(platform)
    for zone in platform.root.walk():
        if zone.children:
            _check_inner_zones(platform, routes, zone, findings)
        elif zone.hosts:
            _check_leaf(platform, routes, zone, findings)
    _check_management(platform, routes, findings)


def _reaches(routes: Routes, src: str, dst: str) -> bool:
    try:
        routes.route(src, dst)
    except RouteError:
        return False
    return True


def _check_leaf(platform: Platform, routes: Routes, zone: Zone, findings: Findings) -> None:
    hosts = zone.hosts
    if zone.routing == "none" and len(hosts) > 1:
        findings.add(zone.line, "routing-none/apart", zone=zone.name, count=len(hosts))
    elif zone.routing in ("full", "floyd", "dijkstra"):
        pairs = ((a, b) for a in hosts for b in hosts if a != b)
        missing = [p for p in pairs if p not in zone.routes]
        if zone.routing != "full":  # others find a way over several routes
            missing = [p for p in missing if not _reaches(routes, *p)]
        if missing:
            _report_missing(platform, zone, missing, findings)
    elif zone.routing == "star":
        half = [name for name in hosts if name in zone.spokes and zone.spokes[name].up is None]
        free = [name for name in hosts if name not in zone.spokes]
        for key, names in (("host-link-missing", half), ("host-link-missing/free", free)):
            if names:
                first = names[0]
                these = f"host '{first}'" if len(names) == 1 else f"{len(names)} hosts (first: '{first}')"
                findings.add(platform.hosts[first].line, key, hosts=these, zone=zone.name)


def _report_missing(
    platform: Platform, zone: Zone, missing: list[tuple[str, str]], findings: Findings
) -> None:
    # The pair that hurts most first: with the master, then with storage, then between compute hosts.
    rank = {"master": 0, "storage": 1, "compute": 2, None: 3}
    src, dst = min(missing, key=lambda pair: min(rank[platform.role(platform.hosts[n])] for n in pair))
    count = f"{len(missing)} route{'s'[: len(missing) > 1]}"
    findings.add(zone.line, "route-missing", zone=zone.name, routes=count, src=src, dst=dst)


def _check_inner_zones(platform: Platform, routes: Routes, zone: Zone, findings: Findings) -> None:
    if zone.routing == "star":
        findings.add(zone.line, "star-zones", zone=zone.name)
    else:
        hosts = [(child, next((n for z in child.walk() for n in z.hosts), "")) for child in zone.children]
        for (src, here), (dst, there) in itertools.permutations(hosts, 2):
            if here and there:
                try:
                    routes.route(here, there)
                except RouteError as error:
                    findings.add(src.line, "zone-unreachable", src=src.name, dst=dst.name, error=error)
    reported: set[str] = set()
    for entry in [*zone.routes.values(), *zone.bypass.values()]:
        for gateway in (entry.gw_src, entry.gw_dst):
            host = platform.hosts.get(gateway)
            if host is None or gateway in reported or platform.role(host) != "compute":
                continue
            home = platform.zones[host.zone]
            if len(home.hosts) > 1:
                reported.add(gateway)
                shape = home.topology.kind if home.topology is not None else ""
                key = f"gateway-compute{'/shape' * bool(shape)}"
                findings.add(entry.line, key, name=gateway, zone=home.name, shape=shape)


def _check_management(platform: Platform, routes: Routes, findings: Findings) -> None:
    """Batsim's internal messages: one byte from the first host of a job, or the master, to the master."""
    master = platform.master
    if master is None or findings.errors:
        return
    senders: list[Host] = [master]
    for zone in platform.root.walk():  # hosts of one zone differ little; its first and last stand for all
        compute = [host for name in zone.hosts if platform.role(host := platform.hosts[name]) == "compute"]
        senders += compute[:1] + compute[1:][-1:]
    worst, latency, sender = 0.0, 0.0, master
    for host in senders:
        try:
            route = routes.route(host.name, master.name)
        except RouteError:  # reported above, with its zone
            return
        slowest = max((1.0 / link.bandwidth for link in route.links if link.bandwidth > 0), default=0.0)
        if route.latency + slowest > worst:
            worst, latency, sender = route.latency + slowest, route.latency, host
    if worst > _INSTANT:
        why = f"latency {units.human_time(latency)}" if latency > 0 else "no latency, but a finite bandwidth"
        findings.add(master.line, "management-latency", worst=worst, sender=sender.name, why=why)
