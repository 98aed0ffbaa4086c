"""The machine behind an accounting: from `slurm.conf`, `scontrol show node`, or any table of `sinfo`."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bridge.base import files
from bridge.base.errors import BridgeError
from bridge.cluster import slurm_values as values
from bridge.cluster.imported import mending
from bridge.cluster.slurm_conf import Line, is_settings, settings
from bridge.cluster.slurm_lines import cores_of, count_of, features_of, is_absent, members_of
from bridge.cluster.slurm_values import generic as generic
from bridge.workload.accounting.ignored import Ignored

_REMEDY = "Give slurm.conf, or the output of `sinfo -N -o '%N|%c|%m|%G|%P|%l'` or `scontrol -o show node`."


@dataclass(frozen=True)
class PartitionTimes:
    name: str
    nodes: frozenset[str]
    limit: float = math.inf
    default: float = math.nan

    def limit_of(self, *, default: bool) -> float:
        """Return the limit of a job without one of its own: the default, if it counts and there is one."""
        return self.default if default and not math.isnan(self.default) else self.limit


@dataclass(frozen=True)
class AccountingMachine:
    """Nodes by name with their resources (cores, main_memory in bytes, gpus, …), and partitions by name.

    `ignored`: what is said of it and no replay looks at, with the number of nodes, partitions or lines.
    """

    nodes: Mapping[str, Mapping[str, int]]
    partitions: Mapping[str, PartitionTimes] = field(default_factory=dict)
    ignored: Mapping[str, int] = field(default_factory=dict)

    def capacity(self, partition: str | None = None) -> dict[str, int]:
        names: Iterable[str] = self.nodes
        if partition is not None:
            if partition not in self.partitions:
                remedy = f"Its partitions: {', '.join(self.partitions) or 'none is known'}."
                raise BridgeError(f"the machine has no partition {partition!r}", remedy=remedy)
            names = [name for name in self.nodes if name in self.partitions[partition].nodes]
        parts = [self.nodes[name] for name in names]
        kinds = dict.fromkeys(kind for part in parts for kind in part)
        whole = {kind: sum(part.get(kind, 0) for part in parts) for kind in kinds}
        if beyond := [kind for kind, amount in whole.items() if amount > values.MOST]:
            remedy = "Check what the nodes are said to have."
            raise BridgeError(f"the machine's {beyond[0]} does not fit 64 bits", remedy=remedy)
        return {"nodes": len(parts)} | whole


def read_machine(path: str | Path) -> AccountingMachine:
    """Read the machine from a file in any of the three forms; BridgeError names the line."""
    path = Path(path)
    text = files.read_text(path)
    if is_settings(text):
        return _of_settings(settings(path, text), str(path))
    return _of_table(text, str(path))


@dataclass
class _NodesRead:
    nodes: dict[str, dict[str, int]] = field(default_factory=dict)
    named_so_far: int = 0
    features: dict[str, set[str]] = field(default_factory=dict)
    named: dict[str, set[str]] = field(default_factory=dict)
    sets: dict[str, Line] = field(default_factory=dict)
    partitions: list[Line] = field(default_factory=list)
    ignored: Ignored = field(default_factory=Ignored)


def _of_settings(lines: Iterable[Line], where: str) -> AccountingMachine:
    partitions_by_name = _NodesRead()
    defaults: dict[str, dict[str, str]] = {"nodename": {}, "partitionname": {}}
    for place, line in lines:
        kind = next((kind for kind in (*defaults, "nodeset") if kind in line), "")
        if kind in defaults and line[kind].upper() == "DEFAULT":
            defaults[kind] |= line
            continue
        whole = defaults.get(kind, {}) | line
        with mending(place):
            partitions_by_name.ignored.add(kind, whole)
            if kind == "nodename":
                _add_nodes(partitions_by_name, whole)
            elif kind == "partitionname":
                partitions_by_name.partitions.append((place, whole))
            elif kind == "nodeset":
                partitions_by_name.sets[line["nodeset"]] = (place, line)
    if not partitions_by_name.nodes:
        raise BridgeError("names no node", where=where, remedy=_REMEDY)
    groups: dict[str, set[str]] = {}
    for name, (place, line) in partitions_by_name.sets.items():
        with mending(place):
            of_feature = partitions_by_name.features.get(line.get("feature", ""), ())
            members = members_of(line.get("nodes", ""), partitions_by_name.nodes, groups)
            groups[name] = members.union(of_feature)
    partitions = {}
    for place, line in partitions_by_name.partitions:
        with mending(place):
            partitions[line["partitionname"]] = _partition(line, partitions_by_name.nodes, groups)
    for name, members in partitions_by_name.named.items():
        partitions.setdefault(name, PartitionTimes(name, frozenset(members)))
    return AccountingMachine(
        partitions_by_name.nodes,
        partitions,
        partitions_by_name.ignored.counts(partitions_by_name.nodes, partitions),
    )


def _add_nodes(nodes_read: _NodesRead, line: Mapping[str, str]) -> None:
    if is_absent(line):
        return
    there = {"cores": cores_of(line), "main_memory": count_of(line, "realmemory", default=0) << 20}
    there |= generic(line.get("gres", ""))
    names, features = list(values.node_names(line["nodename"])), features_of(line)
    nodes_read.named_so_far += len(names)
    if nodes_read.named_so_far > values.MOST_NODES:
        raise ValueError(f"with this line more than {values.MOST_NODES:,} nodes are named")
    for name in names:
        nodes_read.nodes[name] = there
        for feature in features:
            nodes_read.features.setdefault(feature, set()).add(name)
        for partition in filter(None, line.get("partitions", "").split(",")):
            nodes_read.named.setdefault(partition, set()).add(name)


def _partition(
    line: Mapping[str, str], nodes: Mapping[str, object], groups: Mapping[str, set[str]]
) -> PartitionTimes:
    members = members_of(line.get("nodes", ""), nodes, groups)
    limits = {name: values.limit(line.get(name, ""), minutes=True) for name in ("maxtime", "defaulttime")}
    longest, default = limits["maxtime"], limits["defaulttime"]
    return PartitionTimes(
        line["partitionname"],
        frozenset(members & set(nodes)),
        math.inf if longest is None else longest,
        math.nan if default is None else default,
    )


#: Column of `sinfo` -> what it tells.
_SINFO = {
    "nodelist": "nodes",
    "nodehost": "nodes",
    "hostnames": "nodes",
    "cpus": "cores",
    "memory": "memory",
    "gres": "gres",
    "partition": "partition",
    "timelimit": "limit",
    "state": "state",
    "avail_features": "features",
    "active_features": "activefeatures",
    "weight": "weight",
}


def _of_table(text: str, where: str) -> AccountingMachine:
    """Return the machine of a table of `sinfo`, with its line of column names."""
    lines = [line for line in text.split("\n") if line.strip()]
    begin = next((n for n, line in enumerate(lines) if re.search(r"NODELIST|HOSTNAMES", line)), None)
    if begin is None:
        raise BridgeError("tells of no node", where=where, remedy=_REMEDY)
    split = (lambda line: [cell.strip() for cell in line.split("|")]) if "|" in lines[begin] else str.split
    heads = [_SINFO.get(name.strip().lower(), "") for name in split(lines[begin])]
    nodes: dict[str, dict[str, int]] = {}
    members: dict[str, set[str]] = {}
    limits: dict[str, float] = {}
    ignored = Ignored()
    for number, line in enumerate(lines[begin + 1 :], start=begin + 2):
        cells = dict(zip(heads, split(line), strict=False))
        place = f"{where}:{number}"
        try:
            if len(cells) < len(set(heads)):
                raise ValueError("cells are missing")
            names = list(values.node_names(cells["nodes"]))
            there: dict[str, int] = {}
            if "cores" in cells:
                there["cores"] = count_of({"CPUS": cells["cores"].rstrip("+")}, "CPUS")
            if "memory" in cells:
                there["main_memory"] = count_of({"MEMORY": cells["memory"].rstrip("+")}, "MEMORY") << 20
            there |= generic(cells.get("gres", ""))
            limit = values.limit(cells.get("limit", "infinite"), minutes=True)
            ignored.add_nodes(cells | {"nodename": cells["nodes"]})
        except (ValueError, KeyError, OverflowError) as error:
            raise BridgeError(f"is no line of sinfo ({error})", where=place, remedy=_REMEDY) from error
        for name in names:
            nodes.setdefault(name, {}).update(there)
        if "partition" in cells:
            partition = cells["partition"].rstrip("*")
            members.setdefault(partition, set()).update(names)
            limits[partition] = math.inf if limit is None else limit
    if not nodes:
        raise BridgeError("tells of no node", where=where, remedy=_REMEDY)
    partitions = {
        name: PartitionTimes(name, frozenset(names), limits[name]) for name, names in members.items()
    }
    return AccountingMachine(nodes, partitions, ignored.counts(nodes, partitions))
