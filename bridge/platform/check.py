"""The lint: all findings about one platform file. Rules about hosts, then about the network between them."""

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bridge.platform import units
from bridge.platform.capacities import computing_pstates, idle_watts, job_watts
from bridge.platform.findings import FindingCollector, LintFinding
from bridge.platform.model import MASTER_NAME, Host, Platform, Zone
from bridge.platform.read import inspect, raise_first_error
from bridge.platform.routes import RouteError, Routes
from bridge.wire.wattages import parse_sleep_states, parse_wattages, parse_watts

#: Storage hosts that schedulers allocate carry `storage_kind` = burst_buffer.
STORAGE_KINDS = ("burst_buffer", "pfs")
#: A 1-byte message that takes longer than this (s) moves the simulated clock.
_INSTANT = 1e-15
_Remarks = Iterator[tuple[str, dict[str, Any]]]


def check_platform(
    path: str | Path, *, data: bytes | None = None, master_name: str = MASTER_NAME, energy: bool = False
) -> list[LintFinding]:
    """Every finding about the file, by line; none: there is nothing to say. `data`: its contents, if at hand.

    `master_name`: the host that Batsim's `-m` would name. `energy`: for simulations with -E. BridgeError: the
    file cannot be read at all.
    """
    platform, findings = inspect(path, data=data, master_name=master_name)
    findings.energy = energy
    if platform is not None:
        readable = not findings.errors  # routes that could not be read would all be reported as missing
        _check_hosts(platform, findings)
        if readable:
            _check_network(platform, findings)
    return findings.sorted()


def require_valid(path: str | Path, data: bytes | None = None, *, energy: bool = False) -> list[LintFinding]:
    """Return a file's warnings, before it is written if `data` is given; BridgeError: its first error."""
    return raise_first_error(check_platform(path, data=data, energy=energy))


def _check_hosts(platform: Platform, findings: FindingCollector) -> None:
    """Everything about hosts, and what matters once Batsim is started with -E."""
    complete = not findings.errors  # else hosts may be missing because they could not be read
    masters = platform.hosts_of("master")
    if not masters and complete:
        findings.add(platform.root.line, "master-missing", name=platform.master_name)
    for host in masters[1:]:
        findings.add(host.line, "master-twice", name=host.name, first=masters[0].name)
    if not platform.compute and complete:
        findings.add(platform.root.line, "no-compute")
    for number, (first, second) in enumerate(itertools.pairwise(platform.compute), 1):
        if natural_key(first.name) > natural_key(second.name):
            findings.add(second.line, "host-order", first=first.name, second=second.name, number=number)
            break
    powered = any("wattage_per_state" in host.properties for host in platform.hosts.values())
    reported: set[tuple[int, str]] = set()  # a <cluster> repeats the same mistake once per host
    for host in platform.hosts.values():
        for rule in _RULES:
            if (host.place, rule.__name__) in reported:
                continue
            for key, words in rule(platform, host, powered):
                findings.add(host.line, key, name=host.name, **words)
                reported.add((host.place, rule.__name__))
    if powered and not findings.errors and not findings.powered:
        _check_job_watts(platform, findings)
        _check_idle(platform, findings)
    for zone in platform.zones.values():
        if error := _wrong(parse_watts, zone.properties.get("power_budget", "0")):
            findings.add(zone.line, "power-budget", error=error)


def _wrong(parse: Callable[..., object], *values: object) -> str:
    """What a parser has against a value, or what bars a route; empty if nothing."""
    try:
        parse(*values)
    except (ValueError, RouteError) as error:
        return str(error)
    return ""


# ---- all hosts together ------------------------------------------------------------------------------------
def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Sort key that reads digits as numbers: node2 before node10."""
    parts = re.split(r"([0-9]{1,4000})", name)
    return [(0, int(part), "") if i % 2 else (1, 0, part) for i, part in enumerate(parts) if part]


def _check_job_watts(platform: Platform, findings: FindingCollector) -> None:
    """Several pstates of one speed are there to give jobs their own power; say where that does not work."""
    kinds: dict[tuple[float, ...], Host] = {}
    for host in {host.place: host for host in reversed(platform.compute)}.values():
        computing = computing_pstates(host)
        if len(computing) < 2 or len({host.speeds[p] for p in computing}) > 1:
            continue
        watts = job_watts(host)
        if watts is None:
            findings.add(host.line, "job-watts", name=host.name, count=len(computing))
        else:
            kinds[watts] = host
    if len(kinds) > 1:
        second, first = list(kinds.values())[-2:]
        findings.add(second.line, "job-watts/differ", first=first.name, second=second.name)


def _check_idle(platform: Platform, findings: FindingCollector) -> None:
    try:
        budget = parse_watts(platform.root.properties["power_budget"])
        idle = sum(idle_watts(host) for host in platform.compute)
    except (KeyError, ValueError, IndexError):
        return
    if budget < idle:
        findings.add(platform.root.line, "power-budget/idle", budget=budget, idle=idle)


# ---- one host ----------------------------------------------------------------------------------------------
def _role(platform: Platform, host: Host, _powered: bool) -> _Remarks:
    role = host.properties.get("role", "")
    if role not in ("", "compute_node", "storage", "master"):
        yield "role-unknown", {"role": role}
    if role and host.name == platform.master_name:
        yield "master-role", {}


def _speed(platform: Platform, host: Host, _powered: bool) -> _Remarks:
    role = platform.role(host)
    if role == "compute" and host.speed <= 0:
        yield "speed-zero", {}
    elif role == "compute" and host.speed < 1e6:
        yield "speed-tiny", {"speed": host.speed}
    elif role == "storage" and host.speed > 0:
        yield "storage-speed", {"speed": host.speed}


def _size(text: str) -> None:
    if units.parse_size(text) <= 0:
        raise ValueError(f"'{text}' is not positive")


def _capacity(platform: Platform, host: Host, _powered: bool) -> _Remarks:
    text, kind = host.properties.get("capacity"), host.properties.get("storage_kind")
    if platform.role(host) != "storage":
        if text is not None or kind is not None:
            yield "capacity-role", {}
        return
    if kind is not None and kind not in STORAGE_KINDS:
        yield "storage-kind", {"kind": kind, "kinds": " or ".join(STORAGE_KINDS)}
    if text is None and kind == "burst_buffer":
        yield "capacity-missing", {}
    elif text is not None and (error := _wrong(_size, text)):
        yield "capacity", {"error": error}


def _wattages(platform: Platform, host: Host, powered: bool) -> _Remarks:
    text = host.properties.get("wattage_per_state")
    if "watt_per_state" in host.properties:
        yield "watt-per-state", {}
    elif powered and text is None:
        yield "wattage-missing", {"role": platform.role(host) or "no role"}
    if text is None:
        return
    if error := _wrong(parse_wattages, text):
        yield "wattage-format", {"error": error}
        return
    watts = parse_wattages(text)
    if len(watts) != len(host.speeds):
        yield "wattage-count", {"watts": len(watts), "speeds": len(host.speeds)}
    if any(part.count(":") == 1 for part in text.split(",")):
        yield "wattage-two", {}
    for number, state in enumerate(watts):
        if not state.idle <= state.epsilon <= state.full:
            watts_text = f"{state.idle:g}:{state.epsilon:g}:{state.full:g}"
            yield "wattage-order", {"number": number, "watts": watts_text}
            break
    if error := _wrong(parse_watts, host.properties.get("wattage_off", "0")):
        yield "wattage-format/off", {"error": error}


def _sleep(_platform: Platform, host: Host, _powered: bool) -> _Remarks:
    text = host.properties.get("sleep_pstates")
    if text is None:
        return
    if error := _wrong(parse_sleep_states, text, len(host.speeds)):
        yield "sleep-pstates", {"error": error}
        return
    for state in parse_sleep_states(text, len(host.speeds)):
        off, on = host.speeds[state.switch_off], host.speeds[state.switch_on]
        if 0 in (off, on):
            yield "transition-speed", {}
        elif off < on:
            yield "sleep-order", {"off": 1 / off, "on": 1 / on}
        if host.pstate in state:
            yield "sleep-start", {"pstate": host.pstate}
    if "wattage_per_state" not in host.properties:
        yield "sleep-unpowered", {}


_RULES = (_role, _speed, _capacity, _wattages, _sleep)


# ---- the network ------------------------------------------------------------------------------------------
def _check_network(platform: Platform, findings: FindingCollector) -> None:
    """Routes between all hosts, gateways on compute hosts, management latency."""
    routes = Routes(platform)
    for zone in platform.root.walk():
        if zone.children:
            _check_inner_zones(platform, routes, zone, findings)
        elif zone.hosts:
            _check_leaf(platform, routes, zone, findings)
    _check_management(platform, routes, findings)


def _check_leaf(platform: Platform, routes: Routes, zone: Zone, findings: FindingCollector) -> None:
    hosts = zone.hosts
    if zone.routing == "none" and any(platform.role(platform.hosts[name]) == "master" for name in hosts):
        findings.add(zone.line, "routing-none/master", zone=zone.name)
    elif zone.routing in ("none", "wifi") and not zone.wifi and len(hosts) > 1:
        findings.add(zone.line, "routing-none/apart", zone=zone.name, count=len(hosts))
    elif zone.routing in ("full", "floyd", "dijkstra"):
        pairs = ((a, b) for a in hosts for b in hosts if a != b)
        missing = [p for p in pairs if p not in zone.routes]
        if zone.routing != "full":  # others find a way over several routes
            missing = [p for p in missing if _wrong(routes.route, *p)]
        if missing:
            # The pair that hurts most: with the master, then with storage, then between compute hosts.
            rank = {"master": 0, "storage": 1, "compute": 2, None: 3}
            src, dst = min(
                missing, key=lambda pair: min(rank[platform.role(platform.hosts[n])] for n in pair)
            )
            count = f"{len(missing)} route{'s'[: len(missing) > 1]}"
            findings.add(zone.line, "route-missing", zone=zone.name, routes=count, src=src, dst=dst)
    elif zone.routing == "star":
        half = [name for name in hosts if name in zone.spokes and zone.spokes[name].up is None]
        free = [name for name in hosts if name not in zone.spokes]
        for key, names in (("host-link-missing", half), ("host-link-missing/free", free)):
            if names:
                first = names[0]
                these = f"host '{first}'" if len(names) == 1 else f"{len(names)} hosts (first: '{first}')"
                findings.add(platform.hosts[first].line, key, hosts=these, zone=zone.name)


def _check_inner_zones(platform: Platform, routes: Routes, zone: Zone, findings: FindingCollector) -> None:
    if zone.routing == "star":
        findings.add(zone.line, "star-zones", zone=zone.name)
    else:
        hosts = [(child, next((n for z in child.walk() for n in z.hosts), "")) for child in zone.children]
        for (src, here), (dst, there) in itertools.permutations(hosts, 2):
            if here and there and (error := _wrong(routes.route, here, there)):
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


def _check_management(platform: Platform, routes: Routes, findings: FindingCollector) -> None:
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
