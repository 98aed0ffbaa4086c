"""Lint rules about hosts: roles, the master, names and their order, speeds, storage."""

import re
from itertools import pairwise

from bridge.platform import units
from bridge.platform.findings import Findings
from bridge.platform.model import Host, Platform

#: Storage hosts that schedulers allocate carry `storage_kind` = burst_buffer.
STORAGE_KINDS = ("burst_buffer", "pfs")


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Sort key that reads digits as numbers: node2 before node10."""
    parts = re.split(r"(\d+)", name)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part]


def check_hosts(platform: Platform, findings: Findings) -> None:
    """Roles, master, order of names, speeds, storage capacities."""
    complete = not findings.errors  # else hosts may be missing because they could not be read
    _check_roles(platform, findings)
    _check_master(platform, findings, complete)
    if not platform.compute and complete:
        findings.error(
            platform.root.line, "no-compute", "there is no compute host", "Add hosts without a role property."
        )
    _check_order(platform, findings)
    seen: set[tuple[int, str]] = set()  # a <cluster> repeats the same mistake once per host
    for host in platform.hosts.values():
        for check in (_check_speed, _check_capacity):
            code = check(platform, host, findings) if (host.place, check.__name__) not in seen else ""
            if code:
                seen.add((host.place, check.__name__))


def _check_roles(platform: Platform, findings: Findings) -> None:
    reported: set[int] = set()
    for host in platform.hosts.values():
        role = host.properties.get("role", "")
        if role in ("", "compute_node", "storage", "master") or host.place in reported:
            continue
        reported.add(host.place)
        findings.error(
            host.line,
            "role-unknown",
            f"host '{host.name}' has the role '{role}', on which Batsim stops",
            "Use master, compute_node or storage, one role per host.",
        )


def _check_master(platform: Platform, findings: Findings, complete: bool) -> None:
    masters = platform.hosts_of("master")
    name = platform.master_name
    if not masters and complete:
        findings.error(
            platform.root.line,
            "master-missing",
            "there is no master host",
            f'Add a host named \'{name}\', or give one host <prop id="role" value="master"/>.',
        )
    for host in masters[1:]:
        findings.error(
            host.line,
            "master-twice",
            f"'{host.name}' is a second master beside '{masters[0].name}'",
            "Keep one master.",
        )
    for host in masters:
        if host.name == name and host.properties.get("role"):
            findings.error(
                host.line,
                "master-role",
                f"host '{name}' is the master by its name and has a role as well: Batsim joins them and "
                f"stops",
                f"Remove the role property, or name the host otherwise than '{name}'.",
            )


def _check_order(platform: Platform, findings: Findings) -> None:
    names = [host.name for host in platform.compute]
    for first, second in pairwise(names):
        if natural_key(first) > natural_key(second):
            ident = names.index(second)
            findings.warning(
                platform.hosts[second].line,
                "host-order",
                f"Batsim numbers hosts by text: '{second}' is resource {ident}, after '{first}'",
                "Pad the numbers with zeros (node00, node01); in a <cluster>, start the radical at a "
                "power of ten "
                "above the size (e.g. 1000-1511).",
            )
            return


def _check_speed(platform: Platform, host: Host, findings: Findings) -> str:
    role = platform.role(host)
    if role == "compute" and host.speed <= 0:
        findings.error(
            host.line, "speed-zero", f"compute host '{host.name}' has speed 0", "Give it a speed, e.g. '1Gf'."
        )
    elif role == "compute" and host.speed < 1e6:
        findings.warning(
            host.line,
            "speed-tiny",
            f"compute host '{host.name}' makes only {host.speed:g} flop/s",
            "Was a prefix forgotten? 'f' is one flop/s, 'Gf' a billion.",
        )
    elif role == "storage" and host.speed > 0:
        findings.note(
            host.line,
            "storage-speed",
            f"storage host '{host.name}' has speed {host.speed:g} flop/s, but does not compute",
            "Write speed='0f'.",
        )
    else:
        return ""
    return "speed"


def _check_capacity(platform: Platform, host: Host, findings: Findings) -> str:
    role = platform.role(host)
    text = host.properties.get("capacity")
    kind = host.properties.get("storage_kind")
    if role != "storage":
        if text is None and kind is None:
            return ""
        findings.warning(
            host.line,
            "capacity-role",
            f"host '{host.name}' has a storage property, but not the role storage: nobody will use it",
            'Add <prop id="role" value="storage"/>, or remove it.',
        )
        return "capacity"
    if kind is not None and kind not in STORAGE_KINDS:
        findings.error(
            host.line,
            "storage-kind",
            f"storage host '{host.name}' has storage_kind '{kind}'",
            f"Use {' or '.join(STORAGE_KINDS)}.",
        )
    if text is None:
        if kind == "burst_buffer":
            findings.error(
                host.line,
                "capacity-missing",
                f"burst buffer '{host.name}' has no capacity, so it cannot be scheduled",
                'Add e.g. <prop id="capacity" value="10TB"/>.',
            )
        return "capacity" if kind is not None and kind not in STORAGE_KINDS else ""
    try:
        if units.parse_size(text) <= 0:
            raise ValueError(f"'{text}' is not positive")
    except ValueError as error:
        findings.error(
            host.line,
            "capacity",
            f"capacity of storage host '{host.name}': {error}",
            "Write whole bytes or a size such as '10TB' or '1TiB'.",
        )
        return "capacity"
    return ""
