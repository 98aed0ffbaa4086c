"""The short description of a platform: typed values, read from TOML or YAML; impossible ones are refused.

See docs/platforms.md for the meaning of every key. Sizes, speeds and times are texts with SimGrid's units.
"""

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.config import Constraint, Count, Natural, Positive, Unsigned, from_tables, read_toml
from bridge.platform import units
from bridge.platform.model import MASTER_NAME
from bridge.wire.wattages import parse_wattages

#: Names and cores of compute hosts.
Hosts = Sequence[tuple[str, int]]
TopologyName = Literal["cluster", "fat-tree", "torus", "dragonfly", "ideal"]


def _quantity(table: Mapping[str, float], *, zero: bool = False) -> Constraint:
    """A text with a number and its unit, positive, or also zero."""

    def check(text: str) -> None:
        value = units.parse_size(text) if table is units.SIZE else units.parse_quantity(text, table)
        if not units.split_unit(text.strip())[1] and value != 0 and table is not units.SIZE:
            raise ValueError(f"'{text}' has no unit")
        if value < 0 or (value == 0 and not zero):
            raise ValueError(f"'{text}' is not positive")

    return Constraint(parse=check, remedy="Write e.g. '1Gf', '12.5GBps', '2us', '10TB'.")


def _name(pattern: str, rule: str) -> Constraint:
    def check(text: str) -> None:
        if not re.fullmatch(pattern, text):
            raise ValueError("names have another form")

    return Constraint(parse=check, remedy=rule)


Bandwidth = Annotated[str, _quantity(units.BANDWIDTH)]
Latency = Annotated[str, _quantity(units.TIME, zero=True)]
Speed = Annotated[str, _quantity(units.SPEED)]
Size = Annotated[str, _quantity(units.SIZE)]
Wattages = Annotated[str, Constraint(parse=parse_wattages, remedy="Write 'idle:epsilon:all' in watts.")]
_RULE = "Begin with a letter; then letters, digits, '-' and '_'."
Name = Annotated[str, _name("[A-Za-z][A-Za-z0-9_-]*", _RULE)]
Prefix = Annotated[str, _name("[A-Za-z][A-Za-z_-]*", "Letters, '-' and '_' only: digits follow.")]


@dataclasses.dataclass(frozen=True, slots=True)
class JobWatts:
    """Equal-speed pstates with flat wattages `start`, `start + step`, …, `stop` (W), one per job's need."""

    start: Natural
    stop: Count
    step: Count = 5


@dataclasses.dataclass(frozen=True, slots=True)
class Sleep:
    """A sleeping pstate (W) and the two transitions (seconds, W)."""

    watts: Unsigned
    off_seconds: Positive
    off_watts: Unsigned
    on_seconds: Positive
    on_watts: Unsigned


@dataclasses.dataclass(frozen=True, slots=True)
class NodePower:
    """Either `job` (power per job) or `states` ("idle:epsilon:all" in W for each speed); and `off` (W)."""

    job: JobWatts | None = None
    states: Annotated[tuple[Wattages, ...], Constraint(single=True)] = ()
    off: Unsigned = 0.0
    sleep: Sleep | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Nodes:
    """The compute hosts: how many, name prefix, speed of a core (several: one per pstate), cores."""

    count: Annotated[Count, Constraint(le=1_000_000)]
    speed: Annotated[tuple[Speed, ...], Constraint(single=True)]
    prefix: Prefix = "n"
    cores: Count = 1
    explicit: bool | None = None
    power: NodePower | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class NetworkSpec:
    """The interconnect: `bandwidth` and `latency` are those of one node's link, the rest is of topologies."""

    topology: TopologyName
    bandwidth: Bandwidth = ""
    latency: Latency = ""
    backbone: Bandwidth = ""
    backbone_latency: Latency = "0us"
    switches: Count = 0
    uplink: Bandwidth = ""
    uplink_latency: Latency = "0us"
    core: Bandwidth = ""
    dimensions: tuple[Count, ...] = ()
    ring: Bandwidth = ""
    ring_latency: Latency = "0us"
    groups: Count = 0
    global_bandwidth: Bandwidth = ""
    global_latency: Latency = "0us"
    io: Bandwidth = ""
    io_latency: Latency = "0us"
    loopback: Bandwidth = "10GBps"
    native: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Storage:
    """A parallel file system or a burst buffer; `capacity` (bytes) is that of all `count` hosts together."""

    name: Name
    kind: Literal["pfs", "burst_buffer"]
    bandwidth: Bandwidth
    latency: Latency = "0us"
    count: Annotated[Count, Constraint(le=10_000)] = 1
    capacity: Size = ""
    watts: Unsigned = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Master:
    """The master host. `clean`: internal messages take no simulated time; `latency`: they take that long."""

    name: Name = MASTER_NAME
    management: Literal["clean", "latency"] = "clean"
    latency: Annotated[str, _quantity(units.TIME)] = ""
    bandwidth: Bandwidth = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Spec:
    name: Name
    nodes: Nodes
    network: NetworkSpec
    description: str = ""
    master: Master = dataclasses.field(default_factory=Master)
    storage: tuple[Storage, ...] = ()
    power_budget: Unsigned = 0.0


#: Keys of [network] that a topology needs, those that it may have, and its switches at most.
_LINKS, _BACKBONE = "bandwidth latency", "backbone backbone_latency loopback"
_NETWORKS = {
    "ideal": ("", "", 1),
    "cluster": (_LINKS, _BACKBONE, 1),
    "fat-tree": (f"{_LINKS} switches uplink", f"{_BACKBONE} uplink_latency core", 256),
    "torus": (f"{_LINKS} dimensions ring", f"{_BACKBONE} ring_latency io io_latency", 64),
    "dragonfly": (f"{_LINKS} groups global_bandwidth", f"{_BACKBONE} global_latency io io_latency", 256),
    "native": (f"{_LINKS} native", "loopback", 1_000_000),
}


def _mistakes(spec: Spec, fields_given: set[str]) -> Iterator[tuple[str, str]]:
    """What does not hold between several keys, with the remedy; `fields_given` are the keys of [network]."""
    nodes, network, master = spec.nodes, spec.network, spec.master
    power, speeds = nodes.power, len(nodes.speed)
    if not speeds:
        yield "nodes.speed is empty", "Give a speed, e.g. '1Tf'."
    if power is not None:
        job, states = power.job, len(power.states)
        if (job is None) == (not states):
            yield "nodes.power needs either 'job' or 'states'", "Give exactly one of the two."
        if job is not None and speeds != 1:
            yield "nodes.power.job needs one speed", "All its pstates have the same speed."
        if job is not None and (job.stop <= job.start or (job.stop - job.start) % job.step):
            what = f"nodes.power.job goes from {job.start} to {job.stop} W in steps of {job.step} W"
            yield what, "Whole watts, rising, and the step must divide the range."
        if states not in (0, speeds):
            yield (
                f"{counted(states, 'nodes.power.state', 'nodes.power.states')} for "
                f"{counted(speeds, 'speed')}",
                "Give one per speed.",
            )
    elif spec.power_budget:
        yield "power_budget without nodes.power", "Describe the nodes' power first."
    kind, native = network.topology, bool(network.native)
    needed, allowed, limit = _NETWORKS["native" if native else kind]
    allowed_fields = sorted({*needed.split(), *allowed.split()})
    if native and kind in ("cluster", "ideal"):
        yield f"network.native has no meaning for {kind}", "It is for fat-tree, torus and dragonfly."
    if missing := ", ".join(sorted(set(needed.split()) - fields_given)):
        yield f"network: topology {kind} needs {missing}", "Add the key to [network]."
    if extra := ", ".join(sorted(fields_given - {*allowed_fields, "topology"})):
        what = f"network: {extra} has no meaning for topology {kind}{' with native' * native}"
        yield what, f"Remove it; allowed are {', '.join(allowed_fields)}."
    parts = math.prod(network.dimensions) * max(1, network.switches) * max(1, network.groups)
    if parts > nodes.count:
        yield (
            f"{counted(parts, 'switch', 'switches')} for {counted(nodes.count, 'node')}",
            "At least one node per switch.",
        )
    if parts > limit:
        what = f"{parts} switches are too many: the routes between all pairs of them are written out"
        yield what, f"At most {limit} for a {kind}; put more nodes on each, or use network.native."
    for n, storage in enumerate(spec.storage):
        if storage.kind == "burst_buffer" and not storage.capacity:
            yield f"storage[{n}]: a burst buffer needs a capacity", "Add e.g. capacity = '10TB'."
        if units.parse_size(storage.capacity or "0") % storage.count:
            what = f"capacity = '{storage.capacity}' cannot be split equally over {storage.count} hosts"
            remedy = "Choose a capacity that the count divides: requests are striped equally."
            yield f"storage[{n}].{what}", remedy
    names = [master.name, *(storage.name for storage in spec.storage)]
    if len(set(names)) < len(names):
        yield "two of the master and the storages have the same name", "Choose other names."
    if sum(storage.kind == "burst_buffer" for storage in spec.storage) > 1:
        what = "there are two burst buffers, but jobs ask for one resource burst_buffer"
        yield what, "Describe them as one, with a count."
    if master.management == "latency" and not master.latency:
        yield "management with latency needs master.latency", "Write e.g. '1ms'."
    if master.management == "clean" and (master.latency or master.bandwidth):
        remedy = "Set master.management = 'latency', or remove them."
        yield "a clean master has neither latency nor bandwidth", remedy


def spec_from(data: Any, path: str | Path) -> Spec:
    """Typed description from plain values. Raises BridgeError: unknown or missing keys, impossible values."""
    spec = from_tables(Spec, data, str(path))
    for what, remedy in _mistakes(spec, set(data["network"])):
        raise BridgeError(what, where=str(path), remedy=remedy)
    return spec


def read_spec(path: str | Path) -> Spec:
    """Read a description. Raises BridgeError: see `spec_from`; an unreadable file; YAML without PyYAML."""
    return spec_from(read_spec_document(path), path)


def read_spec_document(path: str | Path) -> Any:
    path = Path(path)
    return _yaml(path) if path.suffix in (".yaml", ".yml") else read_toml(path)


def _yaml(path: Path) -> object:
    try:
        import yaml  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError as error:
        what = "reading YAML needs PyYAML, which is not installed"
        remedy = "Write the description in TOML, or `pip install pyyaml`."
        raise BridgeError(what, where=str(path), remedy=remedy) from error
    try:
        return yaml.safe_load(path.read_bytes())
    except OSError as error:
        what = f"cannot be read ({error.strerror})"
        raise BridgeError(what, where=str(path), remedy="Check the path.") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark is not None else str(path)
        raise BridgeError("not valid YAML", where=where, remedy="Mend the file.") from error
