"""What a platform is, in a few lines: hosts, network, storage, power, capacities; as values or for people."""

import collections
import dataclasses
from typing import Any

from bridge.base.counted import counted
from bridge.platform import units
from bridge.platform.capacities import burst_buffers, capacities, power_summary, storage_capacity
from bridge.platform.model import Platform
from bridge.platform.routes import RouteError, Routes


def summarise(platform: Platform) -> dict[str, Any]:
    """Plain values for JSON, in flop/s, bytes, bytes/s, s, W. Raises BridgeError: malformed properties."""
    compute, power, buffers = platform.compute, power_summary(platform), burst_buffers(platform)
    speeds = collections.Counter((host.speed, host.cores, len(host.speeds)) for host in compute)
    zones = [zone for zone in platform.root.walk() if zone.hosts]
    kinds = {
        host.name: "burst_buffer" if host.name in buffers else host.properties.get("storage_kind", "storage")
        for host in platform.storage
    }
    return {
        "name": platform.root.name,
        "path": platform.path,
        "compute_hosts": len(compute),
        "first_host": compute[0].name if compute else None,
        "last_host": compute[-1].name if compute else None,
        "cores": sum(host.cores for host in compute),
        "speeds": [
            {"hosts": hosts, "speed": speed, "cores": cores, "pstates": pstates}
            for (speed, cores, pstates), hosts in sorted(speeds.items(), reverse=True)
        ],
        "zones": len(platform.zones),
        "routing": sorted({zone.topology.kind if zone.topology else zone.routing for zone in zones}),
        "links": len(platform.links),
        "master": platform.master.name if platform.master else None,
        "management_latency": _management(platform),
        "storage": [
            {"name": host.name, "kind": kinds[host.name], "capacity": storage_capacity(platform, host)}
            for host in platform.storage
        ],
        "power": None if power is None else dataclasses.asdict(power) | {"job_watts": list(power.job_watts)},
        "capacities": capacities(platform),
    }


def _management(platform: Platform) -> float | None:
    """Latency from the first compute host to the master in seconds, None if there is no way."""
    if platform.master is None or not platform.compute:
        return None
    try:
        return Routes(platform).route(platform.compute[0].name, platform.master.name).latency
    except RouteError:
        return None


def summary_lines(summary: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [
        ("compute hosts", f"{summary['compute_hosts']:,} ({summary['first_host']} … {summary['last_host']})")
    ]
    for kind in summary["speeds"]:
        each = f"{kind['hosts']:,} × {units.human(kind['speed'], 'flop/s')}"
        extra = [f"{kind['cores']} cores"] if kind["cores"] > 1 else []
        extra += [f"{kind['pstates']} pstates"] if kind["pstates"] > 1 else []
        rows.append(("speed per core", f"{each} ({', '.join(extra)})" if extra else each))
    rows.append(("network", f"{counted(summary['zones'], 'zone')}, {', '.join(summary['routing'])}"))
    for storage in summary["storage"]:
        size = "" if storage["capacity"] is None else f", {units.human(storage['capacity'], 'B')}"
        rows.append((f"storage {storage['name']}", storage["kind"].replace("_", " ") + size))
    power = summary["power"]
    if power is not None:
        budget = "" if power["budget"] is None else f", budget {power['budget']:,g} W"
        rows.append(("power", f"idle {power['idle']:,g} W, full {power['full']:,g} W{budget}"))
        watts = power["job_watts"]
        if watts:
            rows.append(("power per job", f"{len(watts)} levels, {watts[0]:g} to {watts[-1]:g} W per host"))
    latency = summary["management_latency"]
    state = "unreachable" if latency is None else "no latency" if latency == 0 else units.human_time(latency)
    rows.append(("master", f"{summary['master']}, messages to it: {state}"))
    for name, amount in summary["capacities"].items():
        unit = {"burst_buffer": " bytes", "power": " W above idle"}.get(name, "")
        rows.append((f"capacity {name}", f"{amount:,}{unit}"))
    return rows
