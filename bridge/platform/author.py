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
import os
import tempfile
from pathlib import Path

from bridge.errors import BridgeError
from bridge.platform import units
from bridge.platform.check import require_sound
from bridge.platform.findings import Finding
from bridge.platform.read_spec import read_spec
from bridge.platform.spec import Nodes, Spec, Storage

#: Platforms are written with one element per host up to this size (bytes), above it with <cluster>.
EXPLICIT_BYTES = 900_000
_NATIVE = {"fat-tree": "FAT_TREE", "torus": "TORUS", "dragonfly": "DRAGONFLY"}
_CLEAN = 'bandwidth="1e18Bps" latency="0us" sharing_policy="FATPIPE"'


@dataclasses.dataclass(frozen=True, slots=True)
class _Part:
    """One zone of compute hosts: its name and its host numbers."""

    name: str
    numbers: range


@dataclasses.dataclass(frozen=True, slots=True)
class _Core:
    """How parts are joined: link lines, links between parts (i < j), links of each part to storage."""

    links: list[str]
    between: dict[tuple[int, int], list[tuple[str, str]]]
    outside: list[list[tuple[str, str]]]


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


def _element(indent: int, head: str, properties: dict[str, str], tag: str) -> list[str]:
    pad = " " * indent
    if not properties:
        return [f"{pad}<{head}/>"]
    props = "".join(f'<prop id="{key}" value="{value}"/>' for key, value in properties.items())
    return [f"{pad}<{head}>{props}</{tag}>"]


def _route(tag: str, ends: str, links: list[tuple[str, str]], indent: int = 2) -> str:
    parts = "".join(
        f'<link_ctn id="{name}" direction="{way}"/>' if way else f'<link_ctn id="{name}"/>'
        for name, way in links
    )
    return f"{' ' * indent}<{tag} {ends}>{parts}</{tag}>"


def _duplex(name: str, bandwidth: str, latency: str, indent: int = 2) -> str:
    pad = " " * indent
    return (
        f'{pad}<link id="{name}" bandwidth="{bandwidth}" latency="{latency}" sharing_policy="SPLITDUPLEX"/>'
    )


class _Author:
    def __init__(self, spec: Spec, explicit: bool) -> None:
        self.spec = spec
        self.explicit = explicit
        self.speed, self.power = _pstates(spec.nodes)
        self.core_attribute = f' core="{spec.nodes.cores}"' if spec.nodes.cores > 1 else ""
        self.width = len(str(spec.nodes.count - 1))

    # ---- compute zones -------------------------------------------------------------------------------------
    def parts(self) -> list[_Part]:
        network, count = self.spec.network, self.spec.nodes.count
        if network.native or network.topology in ("cluster", "ideal"):
            return [_Part("compute", range(count))]
        if network.topology == "torus":
            cells = itertools.product(*(range(n) for n in network.dimensions))
            names = ["torus" + "-".join(map(str, cell)) for cell in cells]
        else:
            word, n = {"fat-tree": ("switch", network.switches), "dragonfly": ("group", network.groups)}[
                network.topology
            ]
            names = [f"{word}{i:0{len(str(n - 1))}}" for i in range(n)]
        share, more = divmod(count, len(names))
        starts = [i * share + min(i, more) for i in range(len(names) + 1)]
        return [_Part(name, range(starts[i], starts[i + 1])) for i, name in enumerate(names)]

    def compute_zone(self, part: _Part) -> list[str]:
        if not self.explicit:
            return self.cluster(part)
        network = self.spec.network
        hosts = [f"{self.spec.nodes.prefix}{number:0{self.width}}" for number in part.numbers]
        lines = [f'  <zone id="{part.name}" routing="Cluster">']
        for host in hosts:
            lines += _element(
                3, f'host id="{host}" speed="{self.speed}"{self.core_attribute}', self.power, "host"
            )
        lines.append(f'   <router id="{part.name}_switch"/>')
        lines.append(f'   <router id="{part.name}_management"/>')
        lines += [_duplex(f"l_{host}", network.bandwidth, network.latency, 3) for host in hosts]
        lines.append(
            f'   <link id="{part.name}_loopback" bandwidth="{network.loopback}" latency="0us"'
            ' sharing_policy="FATPIPE"/>'
        )
        if network.backbone:
            lines.append(
                f'   <backbone id="{part.name}_backbone" bandwidth="{network.backbone}"'
                f' latency="{network.backbone_latency}"/>'
            )
        lines += [f'   <host_link id="{host}" up="l_{host}_UP" down="l_{host}_DOWN"/>' for host in hosts]
        for host in hosts:
            lines.append(_route("route", f'src="{host}" dst="{host}"', [(f"{part.name}_loopback", "")], 3))
        for host in hosts:
            ends = f'src="{host}" dst="{part.name}_management"'
            lines.append(_route("bypassRoute", ends, [("clean", "")], 3))
        return [*lines, "  </zone>"]

    def cluster(self, part: _Part) -> list[str]:
        """A `<cluster>`; its names cannot be padded, so numbers start at a power of ten."""
        network = self.spec.network
        base = 10**self.width
        radical = f"{base + part.numbers.start}-{base + part.numbers.stop - 1}"
        head = (
            f'cluster id="{part.name}" prefix="{self.spec.nodes.prefix}" suffix="" radical="{radical}"'
            f' speed="{self.speed}"{self.core_attribute}'
        )
        if network.topology == "ideal":
            head += (
                ' bw="1e18Bps" lat="0us" sharing_policy="FATPIPE" loopback_bw="1e18Bps" loopback_lat="0us"'
            )
        else:
            head += f' bw="{network.bandwidth}" lat="{network.latency}"'
            head += f' loopback_bw="{network.loopback}" loopback_lat="0us"'
        if network.backbone:
            head += f' bb_bw="{network.backbone}" bb_lat="{network.backbone_latency}"'
        if network.native:
            head += f' topology="{_NATIVE[network.topology]}" topo_parameters="{network.native}"'
        else:
            head += f' router_id="{part.name}_switch"'
        return _element(2, head, self.power, "cluster")

    def gateways(self, part: _Part) -> tuple[str, str]:
        """Gateway for data and gateway for management traffic."""
        if self.spec.network.native:
            first = f"{self.spec.nodes.prefix}{10**self.width + part.numbers.start}"
            return first, first
        data = f"{part.name}_switch"
        return data, f"{part.name}_management" if self.explicit else data

    # ---- the core ------------------------------------------------------------------------------------------
    def core(self, parts: list[_Part]) -> _Core:
        network = self.spec.network
        if network.native or network.topology in ("cluster", "ideal"):
            return _Core([], {}, [[("fabric", "")]] * len(parts))
        if network.topology == "fat-tree":
            links = [_duplex(f"up_{part.name}", network.uplink, network.uplink_latency) for part in parts]
            limit = f'bandwidth="{network.core}" latency="0us"' if network.core else _CLEAN
            links.append(f'  <link id="core" {limit}/>')
            between = {
                (i, j): [(f"up_{parts[i].name}", "UP"), ("core", ""), (f"up_{parts[j].name}", "DOWN")]
                for i, j in itertools.combinations(range(len(parts)), 2)
            }
            return _Core(links, between, [[(f"up_{part.name}", "UP"), ("core", "")] for part in parts])
        links = []
        if network.io:
            links = [_duplex(f"io_{part.name}", network.io, network.io_latency) for part in parts]
        outside = [[(f"io_{part.name}", "UP") if network.io else ("fabric", "")] for part in parts]
        if network.topology == "dragonfly":
            between = {}
            for i, j in itertools.combinations(range(len(parts)), 2):
                name = f"global_{parts[i].name}_{parts[j].name}"
                links.append(_duplex(name, network.global_bandwidth, network.global_latency))
                between[i, j] = [(name, "UP")]
            return _Core(links, between, outside)
        ring_links, between = self.torus(parts)
        return _Core(links + ring_links, between, outside)

    def torus(self, parts: list[_Part]) -> tuple[list[str], dict[tuple[int, int], list[tuple[str, str]]]]:
        """Ring links of each dimension, and dimension-ordered shortest ways between all pairs."""
        lengths = self.spec.network.dimensions
        cells = list(itertools.product(*(range(n) for n in lengths)))
        index = {cell: i for i, cell in enumerate(cells)}
        links = []

        def step(cell: tuple[int, ...], axis: int, by: int) -> tuple[int, ...]:
            moved = list(cell)
            moved[axis] = (moved[axis] + by) % lengths[axis]
            return tuple(moved)

        def ring(cell: tuple[int, ...], axis: int) -> str:
            return f"ring{axis}_{parts[index[cell]].name}"

        for cell in cells:
            for axis, length in enumerate(lengths):
                if length > 2 or (length == 2 and cell[axis] == 0):
                    network = self.spec.network
                    links.append(_duplex(ring(cell, axis), network.ring, network.ring_latency))
        between: dict[tuple[int, int], list[tuple[str, str]]] = {}
        for i, j in itertools.combinations(range(len(cells)), 2):
            here, path = cells[i], []
            for axis, length in enumerate(lengths):
                ahead = (cells[j][axis] - here[axis]) % length
                forward = 2 * ahead <= length
                for _ in range(ahead if forward else length - ahead):
                    there = step(here, axis, 1 if forward else -1)
                    owner = here if forward else there
                    if length == 2:  # one cable, owned by coordinate 0
                        owner = here if here[axis] == 0 else there
                    path.append((ring(owner, axis), "UP" if owner == here else "DOWN"))
                    here = there
            between[i, j] = path
        return links, between

    # ---- storage and master --------------------------------------------------------------------------------
    def storage_hosts(self, storage: Storage) -> list[str]:
        if storage.count == 1:
            return [storage.name]
        return [f"{storage.name}{n:0{len(str(storage.count - 1))}}" for n in range(storage.count)]

    def storage_zone(self) -> list[str]:
        lines = ['  <zone id="storage" routing="Cluster">']
        links, joints = [], []
        for storage in self.spec.storage:
            properties = {"role": "storage", "storage_kind": storage.kind}
            if storage.capacity:
                properties["capacity"] = str(units.parse_size(storage.capacity) // storage.count)
            if self.power:
                properties |= _flat(storage.watts)
            for host in self.storage_hosts(storage):
                lines += _element(3, f'host id="{host}" speed="0f"', properties, "host")
                # One shared link: reading and writing compete for the same servers.
                links.append(
                    f'   <link id="l_{host}" bandwidth="{storage.bandwidth}" latency="{storage.latency}"/>'
                )
                joints.append(f'   <host_link id="{host}" up="l_{host}" down="l_{host}"/>')
        lines.append('   <router id="storage_switch"/>')
        return [*lines, *links, *joints, "  </zone>"]

    def master_zone(self, mgmt: str) -> list[str]:
        """The master and the management links; first in the file, as links are declared before use."""
        name = self.spec.master.name
        properties = {} if name == "master_host" else {"role": "master"}
        if self.power:
            properties |= _flat(0)
        return [
            '  <zone id="management" routing="Full">',
            *_element(3, f'host id="{name}" speed="1Gf"', properties, "host"),
            f'   <link id="mgmt" {mgmt}/>',
            *([f'   <link id="clean" {_CLEAN}/>'] if self.explicit else []),
            _route("route", f'src="{name}" dst="{name}"', [("mgmt", "")], 3),
            "  </zone>",
        ]

    # ---- whole ---------------------------------------------------------------------------------------------
    def zone_routes(self, parts: list[_Part], core: _Core) -> list[str]:
        lines = []
        for (i, j), links in core.between.items():
            ends = (
                f'src="{parts[i].name}" dst="{parts[j].name}"'
                f' gw_src="{self.gateways(parts[i])[0]}" gw_dst="{self.gateways(parts[j])[0]}"'
            )
            lines.append(_route("zoneRoute", ends, links))
        master = self.spec.master.name
        for i, part in enumerate(parts):
            data, management = self.gateways(part)
            if self.spec.storage:
                ends = f'src="{part.name}" dst="storage" gw_src="{data}" gw_dst="storage_switch"'
                lines.append(_route("zoneRoute", ends, core.outside[i]))
            ends = f'src="{part.name}" dst="management" gw_src="{management}" gw_dst="{master}"'
            lines.append(_route("zoneRoute", ends, [("mgmt", "")]))
        if self.spec.storage:
            ends = f'src="storage" dst="management" gw_src="storage_switch" gw_dst="{master}"'
            lines.append(_route("zoneRoute", ends, [("mgmt", "")]))
        return lines

    def text(self, source: str) -> str:
        spec = self.spec
        parts = self.parts()
        core = self.core(parts)
        about = [f"{spec.name}: {spec.description}" if spec.description else spec.name]
        if spec.network.topology == "dragonfly" and not spec.network.native:
            about.append(
                "An approximation of a dragonfly: each group is a star, groups are joined pair by pair."
            )
        about.append(f"Made from {source} by `bridge platform new`: change that file, not this one.")
        comment = "\n     ".join(about).replace("--", "==")
        master = spec.master
        mgmt = _CLEAN
        if master.management == "latency":
            bandwidth = master.bandwidth or "1e18Bps"
            mgmt = f'bandwidth="{bandwidth}" latency="{master.latency}" sharing_policy="FATPIPE"'
        lines = [
            "<?xml version='1.0'?>",
            '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
            f"<!-- {comment} -->",
            '<platform version="4.1">',
            f' <zone id="{spec.name}" routing="Full">',
        ]
        if spec.power_budget:
            lines.append(f'  <prop id="power_budget" value="{spec.power_budget:g}"/>')
        lines += self.master_zone(mgmt)
        for part in parts:
            lines += self.compute_zone(part)
        if spec.storage:
            lines += self.storage_zone()
        if spec.storage and [("fabric", "")] in core.outside:
            lines.append(f'  <link id="fabric" {_CLEAN}/>')
        lines += core.links
        lines += self.zone_routes(parts, core)
        return "\n".join([*lines, " </zone>", "</platform>", ""])


def platform_xml(spec: Spec, *, source: str = "a description") -> bytes:
    """The platform file for a description, the same bytes each time.

    Args:
        spec: the description.
        source: name of its file, for the comment at the top.

    Raises:
        BridgeError: a combination that cannot be had, e.g. node latency together with a clean management
        link in
            a machine too large for one element per host.
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
    spec, _ = read_spec(spec_path)
    data = platform_xml(spec, source=Path(spec_path).name)
    findings = require_sound(out, data)
    try:
        with tempfile.NamedTemporaryFile(dir=out.parent, prefix=f".{out.name}.", delete=False) as file:
            temporary = Path(file.name)
            file.write(data)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(out)
    except OSError as error:
        raise BridgeError(
            f"cannot write the platform: {error.strerror}", where=str(out), remedy="Check the folder."
        ) from error
    return findings


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
