"""Read a short description of a platform (TOML or YAML); unknown keys and impossible values are refused."""

import dataclasses
import difflib
import math
import re
import tomllib
import types
import typing
from pathlib import Path
from typing import Any, Literal

from bridge.errors import BridgeError
from bridge.platform import units
from bridge.platform.power import parse_wattages
from bridge.platform.spec import Nodes, Spec

#: Keys of [network] that a topology needs, and those it may have; bandwidth and latency belong to
#: all but ideal.
_NEEDED: dict[str, tuple[set[str], set[str]]] = {
    "ideal": (set(), set()),
    "cluster": ({"bandwidth", "latency"}, {"backbone", "backbone_latency", "loopback"}),
    "fat-tree": (
        {"bandwidth", "latency", "switches", "uplink"},
        {"uplink_latency", "core", "backbone", "backbone_latency", "loopback"},
    ),
    "torus": (
        {"bandwidth", "latency", "dimensions", "ring"},
        {"ring_latency", "io", "io_latency", "backbone", "backbone_latency", "loopback"},
    ),
    "dragonfly": (
        {"bandwidth", "latency", "groups", "global_bandwidth"},
        {"global_latency", "io", "io_latency", "backbone", "backbone_latency", "loopback"},
    ),
}
_NAME_RULE = "Begin with a letter; then letters, digits, '-' and '_'."
_NATIVE = ({"bandwidth", "latency", "native"}, {"loopback"})
_BANDWIDTHS = ("bandwidth", "backbone", "uplink", "core", "ring", "global_bandwidth", "io", "loopback")
_LATENCIES = ("latency", "backbone_latency", "uplink_latency", "ring_latency", "global_latency", "io_latency")


class _Building:
    def __init__(self, path: str) -> None:
        self.path = path

    def refuse(self, what: str, remedy: str) -> BridgeError:
        return BridgeError(what, where=self.path, remedy=remedy)

    def build(self, kind: Any, data: object, where: str) -> Any:
        """Turn plain values into the dataclass (or simple type) `kind`."""
        origin = typing.get_origin(kind)
        if origin in (types.UnionType, typing.Union):
            inner = [option for option in typing.get_args(kind) if option is not type(None)]
            return self.build(inner[0], data, where)
        if origin is Literal:
            choices = typing.get_args(kind)
            if data not in choices:
                known = ", ".join(choices)
                raise self.refuse(f"{where} = {data!r} is none of {known}", "Choose one of them.")
            return data
        if origin is tuple:
            items = data if isinstance(data, list) else [data]
            inner_kind = typing.get_args(kind)[0]
            return tuple(self.build(inner_kind, item, f"{where}[{n}]") for n, item in enumerate(items))
        if dataclasses.is_dataclass(kind):
            return self.table(typing.cast(type, kind), data, where)
        if kind is float and isinstance(data, int) and not isinstance(data, bool):
            data = float(data)
        if type(data) is not kind or (kind is float and not math.isfinite(typing.cast(float, data))):
            article = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}[kind]
            raise self.refuse(f"{where} = {data!r} is not {article}", f"Write {article}.")
        return data

    def table(self, kind: type, data: object, where: str) -> Any:
        if not isinstance(data, dict):
            raise self.refuse(f"{where} is not a table", f"Write [{where}] with its keys below.")
        fields = {field.name: field for field in dataclasses.fields(kind)}
        for key in data:
            if key not in fields:
                near = difflib.get_close_matches(str(key), fields, 1)
                hint = f"Did you mean '{near[0]}'? " if near else ""
                raise self.refuse(f"unknown key '{key}' in {where}", f"{hint}Known: {', '.join(fields)}.")
        hints = typing.get_type_hints(kind)
        missing = [
            name
            for name, field in fields.items()
            if name not in data
            and field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
        ]
        if missing:
            raise self.refuse(
                f"{where} lacks {', '.join(missing)}", "Add it; docs/platforms.md shows all keys."
            )
        prefix = "" if where == "the description" else f"{where}."
        return kind(**{key: self.build(hints[key], value, prefix + key) for key, value in data.items()})

    def quantity(
        self, text: str, parse: typing.Callable[[str], float], where: str, *, positive: bool
    ) -> float:
        """Check a text with a unit."""
        try:
            value = parse(text)
            unit = units.split_unit(text.strip())[1]
        except ValueError as error:
            raise self.refuse(f"{where}: {error}", "Write e.g. '1Gf', '12.5GBps', '2us', '10TB'.") from error
        if not unit and value != 0 and parse is not units.parse_size:
            raise self.refuse(f"{where} = '{text}' has no unit", "Write e.g. '1Gf', '12.5GBps', '2us'.")
        if value < 0 or (positive and value == 0):
            raise self.refuse(f"{where} = '{text}' is not positive", "Write a positive value.")
        return value


def _check_nodes(nodes: Nodes, make: _Building) -> None:
    if not 1 <= nodes.count <= 1_000_000:
        raise make.refuse(f"nodes.count = {nodes.count}", "Between one and a million nodes, please.")
    if not re.fullmatch(r"[A-Za-z][A-Za-z_-]*", nodes.prefix):
        raise make.refuse(f"nodes.prefix = '{nodes.prefix}'", "Letters, '-' and '_' only: digits follow.")
    if nodes.cores < 1:
        raise make.refuse(f"nodes.cores = {nodes.cores}", "At least one core.")
    if not nodes.speed:
        raise make.refuse("nodes.speed is empty", "Give a speed, e.g. '1Tf'.")
    for speed in nodes.speed:
        make.quantity(speed, units.parse_speed, "nodes.speed", positive=True)
    power = nodes.power
    if power is None:
        return
    if (power.job is None) == (not power.states):
        raise make.refuse("nodes.power needs either 'job' or 'states'", "Give exactly one of the two.")
    if power.job is not None:
        if len(nodes.speed) != 1:
            raise make.refuse("nodes.power.job needs one speed", "All its pstates have the same speed.")
        job = power.job
        if job.step < 1 or job.start < 0 or job.stop <= job.start or (job.stop - job.start) % job.step:
            raise make.refuse(
                f"nodes.power.job goes from {job.start} to {job.stop} W in steps of {job.step} W",
                "Whole watts, rising, and the step must divide the range.",
            )
    for state in power.states:
        try:
            parse_wattages(state)
        except ValueError as error:
            raise make.refuse(f"nodes.power.states: {error}", "Write 'idle:epsilon:all' in watts.") from error
    if power.states and len(power.states) != len(nodes.speed):
        raise make.refuse(
            f"{len(power.states)} nodes.power.states for {len(nodes.speed)} speeds", "Give one per speed."
        )
    values = [power.off]
    if power.sleep is not None:
        values += dataclasses.astuple(power.sleep)
        if min(power.sleep.off_seconds, power.sleep.on_seconds) <= 0:
            raise make.refuse("a transition takes no time", "nodes.power.sleep needs positive seconds.")
    if min(values) < 0:
        raise make.refuse("a value of nodes.power is negative", "Watts and seconds are positive.")


def _check_network(spec: Spec, given: set[str], make: _Building) -> None:
    network = spec.network
    needed, allowed = _NATIVE if network.native else _NEEDED[network.topology]
    if network.native and network.topology in ("cluster", "ideal"):
        raise make.refuse(
            f"network.native has no meaning for {network.topology}",
            "It is for fat-tree, torus and dragonfly.",
        )
    if missing := sorted(needed - given):
        raise make.refuse(
            f"network: topology {network.topology} needs {', '.join(missing)}", "Add the key to [network]."
        )
    if extra := sorted(given - needed - allowed - {"topology"}):
        raise make.refuse(
            f"network: {', '.join(extra)} has no meaning for topology {network.topology}"
            + (" with native" if network.native else ""),
            f"Remove it; allowed are {', '.join(sorted(needed | allowed))}.",
        )
    for key in _BANDWIDTHS:
        if getattr(network, key):
            make.quantity(getattr(network, key), units.parse_bandwidth, f"network.{key}", positive=True)
    for key in _LATENCIES:
        if getattr(network, key):
            make.quantity(getattr(network, key), units.parse_time, f"network.{key}", positive=False)
    parts = math.prod(network.dimensions) if network.dimensions else network.switches or network.groups or 1
    if (
        min((*network.dimensions, network.switches, network.groups)) < 0
        or parts < 1
        or 0 in network.dimensions
    ):
        raise make.refuse("a size in [network] is not positive", "Use whole numbers from 1.")
    if parts > spec.nodes.count:
        raise make.refuse(f"{parts} switches for {spec.nodes.count} nodes", "At least one node per switch.")
    limit = {"torus": 64, "fat-tree": 256, "dragonfly": 256}.get(network.topology, 1)
    if not network.native and parts > limit:
        raise make.refuse(
            f"{parts} switches are too many: the routes between all pairs of them are written out",
            f"At most {limit} for a {network.topology}; put more nodes on each, or use network.native.",
        )


def _check_storage(spec: Spec, make: _Building) -> None:
    names: list[str] = [spec.master.name]
    for n, storage in enumerate(spec.storage):
        where = f"storage[{n}]"
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", storage.name):
            raise make.refuse(f"{where}.name = '{storage.name}'", _NAME_RULE)
        if not 1 <= storage.count <= 10_000:
            raise make.refuse(f"{where}.count = {storage.count}", "At least one host.")
        make.quantity(storage.bandwidth, units.parse_bandwidth, f"{where}.bandwidth", positive=True)
        make.quantity(storage.latency, units.parse_time, f"{where}.latency", positive=False)
        if storage.kind == "burst_buffer" and not storage.capacity:
            raise make.refuse(f"{where}: a burst buffer needs a capacity", "Add e.g. capacity = '10TB'.")
        if storage.capacity:
            size = make.quantity(storage.capacity, units.parse_size, f"{where}.capacity", positive=True)
            if int(size) % storage.count:
                raise make.refuse(
                    f"{where}.capacity = '{storage.capacity}' cannot be split equally over "
                    f"{storage.count} hosts",
                    "Choose a capacity that the count divides: requests are striped equally.",
                )
        if storage.watts < 0:
            raise make.refuse(f"{where}.watts is negative", "Watts are positive.")
        names.append(storage.name)
    if len(set(names)) != len(names):
        raise make.refuse("two of the master and the storages have the same name", "Choose other names.")
    kinds = [s for s in spec.storage if s.kind == "burst_buffer"]
    if len(kinds) > 1:
        raise make.refuse(
            "there are two burst buffers, but jobs ask for one resource burst_buffer",
            "Describe them as one, with a count.",
        )


def spec_from(data: object, path: str | Path) -> Spec:
    """Typed description from plain values. Raises BridgeError: unknown or missing keys, impossible values."""
    make = _Building(str(path))
    spec: Spec = make.build(Spec, data, "the description")
    assert isinstance(data, dict)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", spec.name):
        raise make.refuse(f"name = '{spec.name}'", _NAME_RULE)
    _check_nodes(spec.nodes, make)
    _check_network(spec, set(data["network"]), make)
    _check_storage(spec, make)
    master = spec.master
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", master.name):
        raise make.refuse(f"master.name = '{master.name}'", _NAME_RULE)
    if master.management == "latency":
        make.quantity(master.latency or "", units.parse_time, "master.latency", positive=True)
        make.quantity(master.bandwidth or "1e18Bps", units.parse_bandwidth, "master.bandwidth", positive=True)
    elif master.latency or master.bandwidth:
        raise make.refuse(
            "a clean master has neither latency nor bandwidth",
            "Set master.management = 'latency', or remove them.",
        )
    if spec.power_budget < 0 or (spec.power_budget and spec.nodes.power is None):
        raise make.refuse("power_budget without nodes.power, or negative", "Describe the nodes' power first.")
    return spec


def read_spec(path: str | Path) -> tuple[Spec, bytes]:
    """Read a description; return it with the bytes of the file.

    Raises:
        BridgeError: unreadable, malformed, unknown keys, impossible values; YAML without PyYAML.
    """
    path = Path(path)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BridgeError(
            f"cannot read the description: {error.strerror}", where=str(path), remedy="Check the path."
        ) from error
    if path.suffix in (".yaml", ".yml"):
        return spec_from(_yaml(raw, path), path), raw
    try:
        data = tomllib.loads(raw.decode())
    except UnicodeDecodeError as error:
        raise BridgeError("the description is not text in UTF-8", where=str(path)) from error
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        where = f"{path}:{line[1]}" if line else str(path)
        raise BridgeError(f"not valid TOML: {error}", where=where, remedy="Mend the file.") from error
    return spec_from(data, path), raw


def _yaml(raw: bytes, path: Path) -> object:
    try:
        import yaml  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError as error:
        raise BridgeError(
            "reading YAML needs PyYAML, which is not installed",
            where=str(path),
            remedy="Write the description in TOML, or `pip install pyyaml`.",
        ) from error
    try:
        return yaml.safe_load(raw)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark is not None else str(path)
        raise BridgeError("not valid YAML", where=where, remedy="Mend the file.") from error
