"""Write platform XML from a short description: the core is built from zones, the master is out of the way.

Every topology becomes one outer Full zone that holds zones of compute hosts (one per switch or group), a
zone of storage hosts and a zone with the master. SimGrid's own torus, fat-tree and dragonfly clusters
have no router, so storage traffic would cross a compute node: they are written on request only
(`network.native`). The XML itself is the template `platform.xml.j2`.

Management traffic: Batsim's messages go from the first host of a job to the master. In an explicit zone
each host has a bypass route of its own to a management router, so that no link of the network delays
them.
"""

import functools
import itertools
from pathlib import Path
from typing import Any

from bridge.base.errors import BridgeError
from bridge.base.files import atomic_write
from bridge.platform import units
from bridge.platform.check import require_valid
from bridge.platform.findings import LintFinding
from bridge.platform.spec import Hosts, Nodes, Spec, read_spec
from bridge.wire.platform_xml import DOCTYPE

#: Platforms are written with one element per host up to this size (bytes), above it with <cluster>.
EXPLICIT_BYTES = 900_000
_NATIVE = {"fat-tree": "FAT_TREE", "torus": "TORUS", "dragonfly": "DRAGONFLY"}
#: Bandwidth, latency and sharing policy of a link that delays nothing.
_CLEAN = ("1e18Bps", "0us", "FATPIPE")
#: Links on the way: name and direction (empty for a link that is not split-duplex).
_Way = list[tuple[str, str]]
_Cell = tuple[int, ...]  # coordinates of a switch of a torus


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


def _numbered(word: str, count: int) -> list[str]:
    return [f"{word}{number:0{len(str(count - 1))}}" for number in range(count)]


class _Author:
    """One platform: its zones of compute hosts, links that join them, ways between them and to storage."""

    def __init__(self, spec: Spec, explicit: bool, hosts: "Hosts | None") -> None:
        self.spec, self.network, self.explicit, self.hosts = spec, spec.network, explicit, hosts
        self.width = len(str(spec.nodes.count - 1))
        self.one_switch = bool(self.network.native) or self.network.topology in ("cluster", "ideal")
        self.zones = self.divided()
        self.links: list[tuple[str, ...]] = []
        self.between: dict[tuple[str, str], _Way] = {}
        self.outside: dict[str, _Way] = {name: [("fabric", "")] for name in self.zones}
        if not self.one_switch:
            self.join(list(self.zones))

    def divided(self) -> dict[str, range]:
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

    def host_name(self, number: int) -> str:
        if self.hosts is not None:
            return self.hosts[number][0]
        return f"{self.spec.nodes.prefix}{number:0{self.width}}"

    def cells(self) -> list[_Cell]:
        """Coordinates of the switches of a torus."""
        return list(itertools.product(*map(range, self.network.dimensions)))

    def join(self, names: list[str]) -> None:
        network, between, outside = self.network, self.between, self.outside

        def add(name: str, bandwidth: str, latency: str) -> None:
            self.links.append((name, bandwidth, latency, "SPLITDUPLEX"))

        if network.topology == "fat-tree":
            for name in names:
                add(f"up_{name}", network.uplink, network.uplink_latency)
                outside[name] = [(f"up_{name}", "UP"), ("core", "")]
            self.links.append(("core", *((network.core, "0us") if network.core else _CLEAN)))
            for a, b in itertools.combinations(names, 2):
                between[a, b] = [*outside[a], (f"up_{b}", "DOWN")]
            return
        for name in names if network.io else ():
            add(f"io_{name}", network.io, network.io_latency)
            outside[name] = [(f"io_{name}", "UP")]
        if network.topology == "dragonfly":
            for a, b in itertools.combinations(names, 2):
                add(f"global_{a}_{b}", network.global_bandwidth, network.global_latency)
                between[a, b] = [(f"global_{a}_{b}", "UP")]
            return
        name_of = dict(zip(self.cells(), names, strict=True))
        for (cell, name), (axis, length) in itertools.product(name_of.items(), enumerate(network.dimensions)):
            if length > 2 or (length == 2 and cell[axis] == 0):
                add(f"ring{axis}_{name}", network.ring, network.ring_latency)
        for here, there in itertools.combinations(name_of, 2):
            between[name_of[here], name_of[there]] = self.torus_way(here, there, name_of)

    def torus_way(self, src: _Cell, dst: _Cell, names: dict[_Cell, str]) -> _Way:
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

    def power(self, watts: float) -> dict[str, str]:
        flat = {"wattage_per_state": f"{watts:g}:{watts:g}:{watts:g}", "wattage_off": "0"}
        return flat if self.spec.nodes.power is not None else {}

    def storage(self) -> list[tuple[str, str, str, dict[str, str]]]:
        files = []
        for store in self.spec.storage:
            properties = {"role": "storage", "storage_kind": store.kind}
            if store.capacity:
                properties["capacity"] = str(units.parse_size(store.capacity) // store.count)
            names = [store.name] if store.count == 1 else _numbered(store.name, store.count)
            properties |= self.power(store.watts)
            files += [(name, store.bandwidth, store.latency, properties) for name in names]
        return files

    def routes(self) -> list[tuple[tuple[str, ...], _Way]]:
        """(source, destination, their gateways) and links of the routes between zones."""
        master, zones = self.spec.master.name, self.zones
        switch = {name: (f"{name}_switch", f"{name}_switch") for name in zones}  # for data, for management
        if self.explicit:
            switch = {name: (f"{name}_switch", f"{name}_management") for name in zones}
        elif self.network.native:
            first = f"{self.spec.nodes.prefix}{10**self.width}"
            switch = dict.fromkeys(zones, (first, first))
        routes: list[tuple[tuple[str, ...], _Way]] = [
            ((a, b, switch[a][0], switch[b][0]), way) for (a, b), way in self.between.items()
        ]
        for name, (data, management) in switch.items():
            if self.spec.storage:
                routes.append(((name, "storage", data, "storage_switch"), self.outside[name]))
            routes.append(((name, "management", management, master), [("mgmt", "")]))
        if self.spec.storage:
            routes.append((("storage", "management", "storage_switch", master), [("mgmt", "")]))
        return routes

    def text(self, source: str) -> str:
        spec, network, zones = self.spec, self.network, self.zones
        fabric = spec.storage and [("fabric", "")] in self.outside.values()
        clustered = (network.bandwidth, network.latency, "", network.loopback)
        speed, power = _pstates(spec.nodes)
        about = [f"{spec.name}: {spec.description}" if spec.description else spec.name]
        if network.topology == "dragonfly" and not network.native:
            what = "An approximation of a dragonfly: each group is a star, groups are joined pair by pair."
            about.append(what)
        about.append(f"Made from {source} by `bridge platform new`: change that file, not this one.")
        slow = spec.master.bandwidth or _CLEAN[0], spec.master.latency, "FATPIPE"
        values: dict[str, Any] = {
            "comment": "\n     ".join(about).replace("--", "=="),
            "spec": spec,
            "network": network,
            "explicit": self.explicit,
            "master_properties": ({} if spec.master.name == "master_host" else {"role": "master"})
            | self.power(0),
            "management": slow if spec.master.management == "latency" else _CLEAN,
            "clean": _CLEAN,
            "zones": zones,
            "hosts": {zone: [self.host_name(n) for n in zones[zone]] for zone in zones},
            "cores_of": {} if self.hosts is None else {name: n if n > 1 else "" for name, n in self.hosts},
            "first": 10**self.width,
            "cores": spec.nodes.cores if spec.nodes.cores > 1 else "",
            "speed": speed,
            "power": power,
            "cluster": (*_CLEAN, _CLEAN[0]) if network.topology == "ideal" else clustered,
            "shape": network.native and _NATIVE[network.topology],
            "storage": self.storage(),
            "links": [*([("fabric", *_CLEAN)] if fabric else []), *self.links],
            "routes": self.routes(),
        }
        return f"{_template().render(values, doctype=DOCTYPE)}\n"


@functools.cache
def _template() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    here = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=here, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.get_template("platform.xml.j2")


def platform_xml(spec: Spec, *, source: str = "a description", hosts: "Hosts | None" = None) -> bytes:
    """The platform file for a description, the same bytes each time; `source` is named in its comment.

    `hosts`: names and cores of the compute hosts, if they are not numbered and equal. Raises BridgeError: a
    combination that cannot be had.
    """
    explicit = True if hosts is not None else spec.nodes.explicit
    possible = spec.network.topology != "ideal" and not spec.network.native
    if explicit and not possible:
        what = "nodes.explicit needs a network built from zones"
        raise BridgeError(what, where=source, remedy="Remove nodes.explicit.")
    if explicit is None:
        speed, power = _pstates(spec.nodes)
        per_host = 420 + len(speed) + sum(len(k) + len(v) + 24 for k, v in power.items())
        explicit = possible and spec.nodes.count * per_host <= EXPLICIT_BYTES
    latency = units.parse_quantity(spec.network.latency or "0us", units.TIME)
    clean = spec.master.management == "clean"
    if clean and not explicit and latency > 0 and not spec.network.native:
        what = f"{spec.nodes.count} nodes are described by <cluster>, where management messages cross the "
        remedy = "Set network.latency = '0us' and put the latency on the links between switches, or set "
        remedy += "master.management = 'latency', or nodes.explicit = true (a large file)."
        raise BridgeError(f"{what}node's link", where=source, remedy=remedy)
    return _Author(spec, explicit, hosts).text(source).encode()


def write_platform(
    spec_path: str | Path | None, out: str | Path, *, force: bool = False, cluster: str | None = None
) -> list[LintFinding]:
    """Read a description, check the platform made from it, only then write it; return warnings and notes.

    `cluster`: whose nodes are the hosts, by their names; a description is then of the rest, and may be left
    out. Raises BridgeError: bad description, existing output without `force`, or an error found by the check.
    """
    out = Path(out)
    if out.exists() and not force:
        remedy = "Choose another name, or --force."
        raise BridgeError("the output file exists already", where=str(out), remedy=remedy)
    if cluster is None:
        assert spec_path is not None
        data = platform_xml(read_spec(spec_path), source=Path(spec_path).name)
    else:
        from bridge.platform.cluster_hosts import hosts_of, spec_with_nodes

        hosts = hosts_of(cluster)
        source = " and ".join(Path(name).name for name in (cluster, spec_path) if name is not None)
        data = platform_xml(spec_with_nodes(spec_path, cluster, len(hosts)), source=source, hosts=hosts)
    findings = require_valid(out, data, energy=True)
    with atomic_write(out) as file:
        file.write(data)
    return findings
