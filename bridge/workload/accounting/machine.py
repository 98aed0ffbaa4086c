"""The machine behind an accounting: from `slurm.conf`, `scontrol show node`, or any table of `sinfo`."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bridge import files
from bridge.errors import BridgeError
from bridge.workload.accounting import values

#: States of nodes that are no part of the machine (yet).
_ABSENT = re.compile("FUTURE|UNKNOWN_NODE", re.IGNORECASE)
_REMEDY = "Give slurm.conf, or the output of `sinfo -N -o '%N|%c|%m|%G|%P|%l'` or `scontrol -o show node`."
#: What `scontrol show node` tells first of each node, and slurm.conf of none.
_OF_SCONTROL = re.compile(r"\bCPUTot=", re.IGNORECASE)
#: An `Include` leads at most so deep.
_DEEPEST = 8


@dataclass(frozen=True)
class Partition:
    """A partition: its nodes by name, its longest and its default time limit (s; infinite = none)."""

    name: str
    nodes: frozenset[str]
    limit: float = math.inf
    default: float = math.nan

    def limit_of(self, *, default: bool) -> float:
        """Return the limit of a job without one of its own: the default, if it counts and there is one."""
        return self.default if default and not math.isnan(self.default) else self.limit


@dataclass(frozen=True)
class Machine:
    """Nodes by name with their resources (cores, main_memory in bytes, gpus, …), and partitions by name."""

    nodes: Mapping[str, Mapping[str, int]]
    partitions: Mapping[str, Partition] = field(default_factory=dict)

    def capacity(self, partition: str | None = None) -> dict[str, int]:
        """Return what there is of each resource, ``nodes`` first; of one partition, if it is named."""
        names: Iterable[str] = self.nodes
        if partition is not None:
            if partition not in self.partitions:
                remedy = f"Its partitions: {', '.join(self.partitions) or 'none is known'}."
                raise BridgeError(f"the machine has no partition {partition!r}", remedy=remedy)
            names = [name for name in self.nodes if name in self.partitions[partition].nodes]
        parts = [self.nodes[name] for name in names]
        kinds = dict.fromkeys(kind for part in parts for kind in part)
        return {"nodes": len(parts)} | {kind: sum(part.get(kind, 0) for part in parts) for kind in kinds}


def read_machine(path: str | Path) -> Machine:
    """Read the machine from a file in any of the three forms; BridgeError names the line."""
    path = Path(path)
    text = files.read_text(path)
    if re.search(r"^\s*NodeName\s*=", text, re.MULTILINE | re.IGNORECASE):
        return _of_settings(_settings(path, text), str(path))
    return _of_table(text, str(path))


def _settings(path: Path, text: str, depth: int = 0) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield place and settings (names in small letters) of each line; records of `scontrol` are one line."""
    text = re.sub(r"\\\n", " ", text)
    text = re.sub(r"\n[ \t]+(?=\w+=)", " ", text)  # scontrol's continued records
    for number, raw in enumerate(text.split("\n"), start=1):
        line = re.sub(r"(?<!\\)#.*", "", raw).strip()
        if _OF_SCONTROL.search(line):  # it has no comments: `OS=Linux 5.14 #1 SMP …`
            line = raw.strip()
        place = f"{path}:{number}"
        if found := re.match(r"include\s+(\S+)", line, re.IGNORECASE):
            if depth == _DEEPEST:
                raise BridgeError("includes files without end", where=place)
            other = path.parent / found[1]
            yield from _settings(other, files.read_text(other), depth + 1)
            continue
        yield place, dict(_pairs(line))


def _pairs(line: str) -> Iterator[tuple[str, str]]:
    for found in re.finditer(r"([A-Za-z][\w/:]*)\s*=\s*(\"[^\"]*\"|\S*)", line):
        yield found[1].lower(), found[2].strip('"')


def _of_settings(lines: Iterable[tuple[str, dict[str, str]]], where: str) -> Machine:
    nodes: dict[str, dict[str, int]] = {}
    features: dict[str, set[str]] = {}
    sets: dict[str, dict[str, str]] = {}
    of_nodes: dict[str, str] = {}
    of_partitions: dict[str, str] = {}
    partitions: list[tuple[str, dict[str, str]]] = []
    named: dict[str, set[str]] = {}
    for place, line in lines:
        try:
            if (name := line.get("nodename")) is not None:
                if name.upper() == "DEFAULT":
                    of_nodes |= line
                    continue
                _add_nodes(nodes, features, named, of_nodes | line)
            elif (name := line.get("partitionname")) is not None:
                if name.upper() == "DEFAULT":
                    of_partitions |= line
                else:
                    partitions.append((place, of_partitions | line))
            elif (name := line.get("nodeset")) is not None:
                sets[name] = line
        except (ValueError, OverflowError) as error:
            raise BridgeError(str(error), where=place, remedy="Mend the line.") from error
    if not nodes:
        raise BridgeError("names no node", where=where, remedy=_REMEDY)
    groups = {name: _members(line, features) for name, line in sets.items()}
    found = {}
    for place, line in partitions:
        try:
            found[line["partitionname"]] = _partition(line, nodes, groups)
        except ValueError as error:
            raise BridgeError(str(error), where=place, remedy="Mend the line.") from error
    for name, members in named.items():
        found.setdefault(name, Partition(name, frozenset(members)))
    return Machine(nodes, found)


def _add_nodes(
    nodes: dict[str, dict[str, int]],
    features: dict[str, set[str]],
    named: dict[str, set[str]],
    line: Mapping[str, str],
) -> None:
    if _ABSENT.match(line.get("state", "")):
        return
    cores = _count(line, "cpus", "cputot", default=0)
    if not cores:
        sockets = _count(line, "sockets", "socketsperboard") * _count(line, "boards")
        cores = sockets * _count(line, "corespersocket") * _count(line, "threadspercore")
    there = {"cores": cores, "main_memory": _count(line, "realmemory", default=0) << 20}
    there |= generic(line.get("gres", ""))
    told = line.get("features") or line.get("feature") or line.get("activefeatures") or ""
    for name in values.node_names(line["nodename"]):
        nodes[name] = there
        for feature in filter(None, re.split("[,&]", told)):
            features.setdefault(feature, set()).add(name)
        for partition in filter(None, line.get("partitions", "").split(",")):
            named.setdefault(partition, set()).add(name)


def _count(line: Mapping[str, str], *names: str, default: int = 1) -> int:
    """Return the number that the first of these fields tells."""
    name = next((one for one in names if line.get(one)), None)
    if name is None:
        return default
    if not re.fullmatch(r"\d{1,9}", line[name], re.ASCII):
        raise ValueError(f"{name}={line[name]} is no whole number")
    return int(line[name])


def generic(text: str) -> dict[str, int]:
    """Return generic resources: ``gpu:a100:4(S:0-1),fake:2`` → gpus, gpus_a100, gres_fake."""
    found: dict[str, int] = {}
    plain = re.sub(r"\([^()]*\)", "", text)
    for word in filter(None, plain.split(",")):
        name, *kind = word.split(":")
        count = kind.pop() if kind and re.fullmatch(r"\d+[KMGT]?", kind[-1], re.ASCII) else "1"
        tres = f"gres/{name}" + (f":{kind[0]}" if kind else "")
        for called, number in values.resources(f"{tres}={count}").items():
            found[called] = found.get(called, 0) + number
    return found


def _members(line: Mapping[str, str], features: Mapping[str, set[str]]) -> set[str]:
    if "nodes" in line:
        return set(values.node_names(line["nodes"]))
    return set(features.get(line.get("feature", ""), ()))


def _partition(
    line: Mapping[str, str], nodes: Mapping[str, object], groups: Mapping[str, set[str]]
) -> Partition:
    members: set[str] = set()
    for word in filter(None, re.split(r",(?![^\[]*\])", line.get("nodes", ""))):
        if word.upper() == "ALL":
            members |= set(nodes)
        else:
            members |= groups[word] if word in groups else set(values.node_names(word))
    limits = {name: values.limit(line.get(name, ""), minutes=True) for name in ("maxtime", "defaulttime")}
    longest, default = limits["maxtime"], limits["defaulttime"]
    return Partition(
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
}


def _of_table(text: str, where: str) -> Machine:
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
    for number, line in enumerate(lines[begin + 1 :], start=begin + 2):
        cells = dict(zip(heads, split(line), strict=False))
        place = f"{where}:{number}"
        try:
            if len(cells) < len(set(heads)):
                raise ValueError("cells are missing")
            names = list(values.node_names(cells["nodes"]))
            there: dict[str, int] = {}
            if "cores" in cells:
                there["cores"] = int(cells["cores"].rstrip("+"))
            if "memory" in cells:
                there["main_memory"] = int(cells["memory"].rstrip("+")) << 20
            if cells.get("gres", "(null)") not in ("(null)", "N/A"):
                there |= generic(cells["gres"])
            limit = values.limit(cells.get("limit", "infinite"), minutes=True)
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
    found = {name: Partition(name, frozenset(names), limits[name]) for name, names in members.items()}
    return Machine(nodes, found)
