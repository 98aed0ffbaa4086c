"""Write platform XML from a short description: the core is built from zones, the master is out of the way.

Every topology becomes one outer Full zone that holds zones of compute hosts (one per switch or group), a
zone of storage hosts and a zone with the master. SimGrid's own torus, fat-tree and dragonfly clusters
have no router, so storage traffic would cross a compute node: they are written on request only
(`network.native`).

Management traffic: Batsim's messages go from the first host of a job to the master. In an explicit zone
each host has a bypass route of its own to a management router, so that no link of the network delays
them.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

from bridge.errors import BridgeError
from bridge.files import replacing
from bridge.platform import units
from bridge.platform.check import require_sound
from bridge.platform.findings import Finding
from bridge.platform.scan import DOCTYPE
from bridge.platform.spec import Nodes, Spec, Storage, read_spec

#: Platforms are written with one element per host up to this size (bytes), above it with <cluster>.
EXPLICIT_BYTES = 900_000
_NATIVE = {"fat-tree": "FAT_TREE", "torus": "TORUS", "dragonfly": "DRAGONFLY"}
#: Bandwidth, latency and sharing policy of a link that delays nothing.
_CLEAN = ("1e18Bps", "0us", "FATPIPE")
#: Links on the way: name and direction (empty for a link that is not split-duplex).
_Way = list[tuple[str, str]]
_Cell = tuple[int, ...]  # coordinates of a switch of a torus


@dataclasses.dataclass(frozen=True, slots=True)
class _Core:
    """How zones of compute hosts are joined: link lines, ways between them, ways of each to storage."""

    links: list[str]
    between: dict[tuple[str, str], _Way]
    outside: dict[str, _Way]


def _xml(indent: int, tag: str, attributes: Iterable[tuple[str, str]], inner: str = "") -> str:
    """One line with one element; attributes without value are left out."""
    head = " " * indent + f"<{tag}" + "".join(f' {name}="{value}"' for name, value in attributes if value)
    return f"{head}>{inner}</{tag}>" if inner else f"{head}/>"


def _props(properties: dict[str, str]) -> str:
    return "".join(_xml(0, "prop", [("id", key), ("value", value)]) for key, value in properties.items())


def _link(
    name: str, bandwidth: str, latency: str, policy: str = "", *, indent: int = 2, tag: str = "link"
) -> str:
    figures = [("bandwidth", bandwidth), ("latency", latency), ("sharing_policy", policy)]
    return _xml(indent, tag, [("id", name), *figures])


def _route(tag: str, ends: Sequence[str], links: _Way, indent: int = 2) -> str:
    inner = "".join(_xml(0, "link_ctn", [("id", name), ("direction", way)]) for name, way in links)
    return _xml(indent, tag, zip(("src", "dst", "gw_src", "gw_dst"), ends, strict=False), inner)


def _pstates(nodes: Nodes) -> tuple[str, dict[str, str]]:
    """The `speed` attribute and the power properties of a compute host."""
    speeds, properties = list(nodes.speed), dict[str, str]()
    power = nodes.power
    if power is None:
        return ",".join(speeds), properties
    if power.job is not None:
        watts = [f"{w}:{w}:{w}" for w in range(power.job.start, power.job.stop + 1, power.job.step)]
        speeds *= len(watts)
    else:
        watts = [state.replace(" ", "") for state in power.states]
    if power.sleep is not None:
        sleep = power.sleep
        first = len(speeds)
        speeds += ["1f", f"{1 / sleep.off_seconds!r}f", f"{1 / sleep.on_seconds!r}f"]
        watts += [f"{w:g}:{w:g}:{w:g}" for w in (sleep.watts, sleep.off_watts, sleep.on_watts)]
        properties["sleep_pstates"] = f"{first}:{first + 1}:{first + 2}"
    properties["wattage_per_state"] = ",".join(watts)
    properties["wattage_off"] = f"{power.off:g}"
    return ",".join(speeds), properties


def _flat(watts: float) -> dict[str, str]:
    return {"wattage_per_state": f"{watts:g}:{watts:g}:{watts:g}", "wattage_off": "0"}


def _numbered(word: str, count: int) -> list[str]:
    """Names with numbers padded with zeros."""
    return [f"{word}{number:0{len(str(count - 1))}}" for number in range(count)]


class _Author:
    def __init__(self, spec: Spec, explicit: bool) -> None:
        self.spec = spec
        self.network = spec.network
        self.explicit = explicit
        self.speed, self.power = _pstates(spec.nodes)
        self.cores = str(spec.nodes.cores) if spec.nodes.cores > 1 else ""
        self.width = len(str(spec.nodes.count - 1))
        self.one_switch = bool(self.network.native) or self.network.topology in ("cluster", "ideal")

    # ---- compute zones -------------------------------------------------------------------------------------
    def zones(self) -> dict[str, range]:
        """Names of the zones of compute hosts, and the numbers of their hosts."""
        network, count = self.network, self.spec.nodes.count
        if self.one_switch:
            names = ["compute"]
        elif network.topology == "torus":
            names = ["torus" + "-".join(map(str, cell)) for cell in self.cells()]
        elif network.topology == "fat-tree":
            names = _numbered("switch", network.switches)
        else:
            names = _numbered("group", network.groups)
        share, more = divmod(count, len(names))
        starts = [i * share + min(i, more) for i in range(len(names) + 1)]
        return {name: range(*ends) for name, ends in zip(names, itertools.pairwise(starts), strict=True)}

    def cells(self) -> list[_Cell]:
        """Coordinates of the switches of a torus."""
        return list(itertools.product(*map(range, self.network.dimensions)))

    def compute_zone(self, name: str, numbers: range) -> list[str]:
        if not self.explicit:
            return [self.cluster(name, numbers)]
        network = self.network
        hosts = [f"{self.spec.nodes.prefix}{number:0{self.width}}" for number in numbers]
        head, power = [("speed", self.speed), ("core", self.cores)], _props(self.power)
        lines = [f'  <zone id="{name}" routing="Cluster">']
        lines += [_xml(3, "host", [("id", host), *head], power) for host in hosts]
        lines += [_xml(3, "router", [("id", f"{name}_{what}")]) for what in ("switch", "management")]
        lines += [_link(f"l_{h}", network.bandwidth, network.latency, "SPLITDUPLEX", indent=3) for h in hosts]
        lines.append(_link(f"{name}_loopback", network.loopback, "0us", "FATPIPE", indent=3))
        if network.backbone:
            figures = network.backbone, network.backbone_latency
            lines.append(_link(f"{name}_backbone", *figures, indent=3, tag="backbone"))
        ways = [(host, f"l_{host}_UP", f"l_{host}_DOWN") for host in hosts]
        lines += [_xml(3, "host_link", zip(("id", "up", "down"), way, strict=True)) for way in ways]
        lines += [_route("route", (host, host), [(f"{name}_loopback", "")], 3) for host in hosts]
        target = f"{name}_management"
        lines += [_route("bypassRoute", (host, target), [("clean", "")], 3) for host in hosts]
        return [*lines, "  </zone>"]

    def cluster(self, name: str, numbers: range) -> str:
        """A `<cluster>`; its names cannot be padded, so numbers start at a power of ten."""
        network, base = self.network, 10**self.width
        bandwidth, latency, policy = network.bandwidth, network.latency, ""
        loopback = network.loopback
        if network.topology == "ideal":
            (bandwidth, latency, policy), loopback = _CLEAN, _CLEAN[0]
        attributes = {
            "id": name,
            "prefix": self.spec.nodes.prefix,
            "suffix": "",
            "radical": f"{base + numbers.start}-{base + numbers.stop - 1}",
            "speed": self.speed,
            "core": self.cores,
            "bw": bandwidth,
            "lat": latency,
            "sharing_policy": policy,
            "loopback_bw": loopback,
            "loopback_lat": "0us",
            "bb_bw": network.backbone,
            "bb_lat": network.backbone and network.backbone_latency,
            "topology": network.native and _NATIVE[network.topology],
            "topo_parameters": network.native,
            "router_id": "" if network.native else f"{name}_switch",
        }
        line = _xml(2, "cluster", attributes.items(), _props(self.power))
        return line.replace(" radical=", ' suffix="" radical=', 1)  # which must be there, though empty

    def gateways(self, name: str, numbers: range) -> tuple[str, str]:
        """Gateway for data and gateway for management traffic."""
        if self.network.native:
            first = f"{self.spec.nodes.prefix}{10**self.width + numbers.start}"
            return first, first
        return f"{name}_switch", f"{name}_{'management' if self.explicit else 'switch'}"

    # ---- the core ------------------------------------------------------------------------------------------
    def core(self, names: list[str]) -> _Core:
        network = self.network
        core = _Core([], {}, {name: [("fabric", "")] for name in names})
        if self.one_switch:
            return core

        def add(name: str, bandwidth: str, latency: str) -> None:
            core.links.append(_link(name, bandwidth, latency, "SPLITDUPLEX"))

        if network.topology == "fat-tree":
            for name in names:
                add(f"up_{name}", network.uplink, network.uplink_latency)
                core.outside[name] = [(f"up_{name}", "UP"), ("core", "")]
            core.links.append(_link("core", *((network.core, "0us") if network.core else _CLEAN)))
            for a, b in itertools.combinations(names, 2):
                core.between[a, b] = [*core.outside[a], (f"up_{b}", "DOWN")]
            return core
        for name in names if network.io else ():
            add(f"io_{name}", network.io, network.io_latency)
            core.outside[name] = [(f"io_{name}", "UP")]
        if network.topology == "dragonfly":
            for a, b in itertools.combinations(names, 2):
                add(f"global_{a}_{b}", network.global_bandwidth, network.global_latency)
                core.between[a, b] = [(f"global_{a}_{b}", "UP")]
            return core
        name_of = dict(zip(self.cells(), names, strict=True))
        for (cell, name), (axis, length) in itertools.product(name_of.items(), enumerate(network.dimensions)):
            if length > 2 or (length == 2 and cell[axis] == 0):
                add(f"ring{axis}_{name}", network.ring, network.ring_latency)
        for here, there in itertools.combinations(name_of, 2):
            core.between[name_of[here], name_of[there]] = self.torus_way(here, there, name_of)
        return core

    def torus_way(
        self, src: tuple[int, ...], dst: tuple[int, ...], names: dict[tuple[int, ...], str]
    ) -> _Way:
        """The shortest way between two switches of a torus, in the order of dimensions."""
        here, path = src, []
        for axis, length in enumerate(self.network.dimensions):
            ahead = (dst[axis] - here[axis]) % length
            forward = 2 * ahead <= length
            for _ in range(ahead if forward else length - ahead):
                at = (here[axis] + (1 if forward else -1)) % length
                there = (*here[:axis], at, *here[axis + 1 :])
                owner = here if forward else there
                if length == 2:  # one cable, owned by coordinate 0
                    owner = here if here[axis] == 0 else there
                path.append((f"ring{axis}_{names[owner]}", "UP" if owner == here else "DOWN"))
                here = there
        return path

    # ---- storage and master --------------------------------------------------------------------------------
    def storage_zone(self) -> list[str]:
        hosts, links, joints = [], [], []
        for storage in self.spec.storage:
            properties = self.storage_properties(storage)
            for host in [storage.name] if storage.count == 1 else _numbered(storage.name, storage.count):
                hosts.append(_xml(3, "host", [("id", host), ("speed", "0f")], _props(properties)))
                # One shared link: reading and writing compete for the same servers.
                links.append(_link(f"l_{host}", storage.bandwidth, storage.latency, indent=3))
                joints.append(
                    _xml(3, "host_link", [("id", host), ("up", f"l_{host}"), ("down", f"l_{host}")])
                )
        router = _xml(3, "router", [("id", "storage_switch")])
        return ['  <zone id="storage" routing="Cluster">', *hosts, router, *links, *joints, "  </zone>"]

    def storage_properties(self, storage: Storage) -> dict[str, str]:
        found = {"role": "storage", "storage_kind": storage.kind}
        if storage.capacity:
            found["capacity"] = str(units.parse_size(storage.capacity) // storage.count)
        return found | _flat(storage.watts) if self.power else found

    def master_zone(self) -> list[str]:
        """The master and the management links; first in the file, as links are declared before use."""
        master = self.spec.master
        properties = {} if master.name == "master_host" else {"role": "master"}
        if self.power:
            properties |= _flat(0)
        figures = _CLEAN
        if master.management == "latency":
            figures = master.bandwidth or "1e18Bps", master.latency, "FATPIPE"
        return [
            '  <zone id="management" routing="Full">',
            _xml(3, "host", [("id", master.name), ("speed", "1Gf")], _props(properties)),
            _link("mgmt", *figures, indent=3),
            *([_link("clean", *_CLEAN, indent=3)] if self.explicit else []),
            _route("route", (master.name, master.name), [("mgmt", "")], 3),
            "  </zone>",
        ]

    # ---- whole ---------------------------------------------------------------------------------------------
    def zone_routes(self, zones: dict[str, range], core: _Core) -> list[str]:
        master = self.spec.master.name
        gateways = {name: self.gateways(name, numbers) for name, numbers in zones.items()}
        ways = [((a, b, gateways[a][0], gateways[b][0]), links) for (a, b), links in core.between.items()]
        for name, (data, management) in gateways.items():
            if self.spec.storage:
                ways.append(((name, "storage", data, "storage_switch"), core.outside[name]))
            ways.append(((name, "management", management, master), [("mgmt", "")]))
        if self.spec.storage:
            ways.append((("storage", "management", "storage_switch", master), [("mgmt", "")]))
        return [_route("zoneRoute", ends, links) for ends, links in ways]

    def text(self, source: str) -> str:
        spec, zones = self.spec, self.zones()
        core = self.core(list(zones))
        about = [f"{spec.name}: {spec.description}" if spec.description else spec.name]
        if spec.network.topology == "dragonfly" and not spec.network.native:
            about.append(
                "An approximation of a dragonfly: each group is a star, groups are joined pair by pair."
            )
        about.append(f"Made from {source} by `bridge platform new`: change that file, not this one.")
        comment = "\n     ".join(about).replace("--", "==")
        lines = ["<?xml version='1.0'?>", DOCTYPE, f"<!-- {comment} -->", '<platform version="4.1">']
        lines.append(f' <zone id="{spec.name}" routing="Full">')
        if spec.power_budget:
            lines.append("  " + _props({"power_budget": f"{spec.power_budget:g}"}))
        lines += self.master_zone()
        for name, numbers in zones.items():
            lines += self.compute_zone(name, numbers)
        if spec.storage:
            lines += self.storage_zone()
            if [("fabric", "")] in core.outside.values():
                lines.append(_link("fabric", *_CLEAN))
        return "\n".join([*lines, *core.links, *self.zone_routes(zones, core), " </zone>", "</platform>", ""])


def platform_xml(spec: Spec, *, source: str = "a description") -> bytes:
    """The platform file for a description, the same bytes each time.

    Args:
        spec: the description.
        source: name of its file, for the comment at the top.

    Raises:
        BridgeError: a combination that cannot be had, e.g. node latency together with a clean management
            link in a machine too large for one element per host.
    """
    explicit = spec.nodes.explicit
    possible = spec.network.topology != "ideal" and not spec.network.native
    if explicit and not possible:
        raise BridgeError(
            "nodes.explicit needs a network built from zones", where=source, remedy="Remove nodes.explicit."
        )
    if explicit is None:
        speed, power = _pstates(spec.nodes)
        per_host = 420 + len(speed) + sum(len(k) + len(v) + 24 for k, v in power.items())
        explicit = possible and spec.nodes.count * per_host <= EXPLICIT_BYTES
    latency = units.parse_time(spec.network.latency or "0us")
    clean = spec.master.management == "clean"
    if clean and not explicit and latency > 0 and not spec.network.native:
        raise BridgeError(
            f"{spec.nodes.count} nodes are described by <cluster>, where management messages cross the "
            f"node's link",
            where=source,
            remedy="Set network.latency = '0us' and put the latency on the links between switches, or set "
            "master.management = 'latency', or nodes.explicit = true (a large file).",
        )
    return _Author(spec, explicit).text(source).encode()


def write_platform(spec_path: str | Path, out: str | Path, *, force: bool = False) -> list[Finding]:
    """Read a description, check the platform made from it, and only then write it.

    Returns:
        The warnings and notes of the check.

    Raises:
        BridgeError: bad description, existing output without `force`, or an error found by the check.
    """
    out = Path(out)
    if out.exists() and not force:
        raise BridgeError(
            "the output file exists already", where=str(out), remedy="Choose another name, or --force."
        )
    data = platform_xml(read_spec(spec_path), source=Path(spec_path).name)
    findings = require_sound(out, data)
    with replacing(out) as file:
        file.write(data)
    return findings
