"""A cluster from `pbsnodes -a`, of OpenPBS and PBS Pro or of TORQUE, or from `pbsnodes -a -F json`."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bridge.base import files
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.cluster.description import Cluster, Partition
from bridge.cluster.imported import ImportedCluster, ImportNotes, mending
from bridge.cluster.node_groups import format_nodes, group_nodes
from bridge.cluster.pbs_values import count, size

_DOWN = frozenset({"down", "offline", "stale", "state-unknown", "unknown", "unresolvable", "initializing"})
_DRAIN = frozenset({"maintenance", "provisioning", "wait-provisioning", "sleep"})
_AVAILABLE = "resources_available."
#: Resources that are read, or say nothing of what jobs may ask for.
_READ = frozenset({"ncpus", "mem", "ngpus", "host", "vnode", "arch", "vmem", "hpmem", "accelerator_memory"})
_REMEDY = "Give the output of `pbsnodes -a`, or of `pbsnodes -a -F json`."

#: The place of a node's record, its name, and its attributes.
Record = tuple[str, str, Mapping[str, str]]


def import_pbsnodes(path: Path) -> ImportedCluster:
    """Return the cluster of a list of nodes; a queue that nodes name is a partition.

    BridgeError names the line that is none of it.
    """
    text = files.read_text(path)
    notes = ImportNotes()
    nodes: dict[str, dict[str, Any]] = {}
    queues: dict[str, list[str]] = {}
    records = _of_json(text, path) if text.lstrip()[:1] == "{" else _of_text(text, path)
    for place, name, attributes in records:
        if name in nodes:
            raise BridgeError(f"node {name!r} is listed twice", where=place, remedy=_REMEDY)
        with mending(place):
            nodes[name] = _fields(attributes, notes)
        for queue in filter(None, re.split(r"[,\s]+", attributes.get("queue", ""))):
            queues.setdefault(queue, []).append(name)
    if not nodes:
        raise BridgeError("lists no node", where=str(path), remedy=_REMEDY)
    if queues and (free := [name for name in nodes if not any(name in of for of in queues.values())]):
        what = f"{counted(len(free), 'node belongs', 'nodes belong')} to no queue: partition 'free'"
        notes.note(what)
        queues["free"] = free
    partitions = tuple(
        Partition(name=name, nodes=(format_nodes(of),), exclusive=False) for name, of in queues.items()
    )
    if not partitions:
        partitions = (Partition(name="all", exclusive=False, default=True),)
        notes.note("no node names its queue: all nodes are one partition, which jobs share")
    cluster = Cluster(nodes=group_nodes(nodes), partitions=partitions)
    return ImportedCluster(cluster, notes.unhonoured, tuple(notes.notes))


def _of_text(text: str, path: Path) -> Iterator[Record]:
    place, name = "", ""
    attributes: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        if not line[:1].isspace():
            if name:
                yield _record(place, name, attributes)
            place, name, attributes = f"{path}:{number}", line.strip(), {}
            if not re.fullmatch(r"[\w.\-\[\]]+", name):
                raise BridgeError(f"{name[:40]!r} is no name of a node", where=place, remedy=_REMEDY)
            continue
        key, equals, value = line.strip().partition("=")
        if not name or not equals:
            raise BridgeError("is no attribute of a node", where=f"{path}:{number}", remedy=_REMEDY)
        attributes[key.strip()] = value.strip()
    if name:
        yield _record(place, name, attributes)


def _record(place: str, name: str, attributes: Mapping[str, str]) -> Record:
    if not attributes:
        raise BridgeError(
            f"{name[:40]!r} has no attributes: this lists no nodes", where=place, remedy=_REMEDY
        )
    return place, name, attributes


def _of_json(text: str, path: Path) -> Iterator[Record]:
    document = files.json_in(text, str(path), _REMEDY)
    nodes = document.get("nodes") if isinstance(document, dict) else None
    if not isinstance(nodes, dict):
        raise BridgeError("has no table of nodes", where=str(path), remedy=_REMEDY)
    for name, record in nodes.items():
        if not isinstance(record, dict):
            raise BridgeError("is no table", where=f"{path}, node {name!r}", remedy=_REMEDY)
        available = record.get("resources_available")
        own = available if isinstance(available, dict) else {}
        flat = {key: str(value) for key, value in record.items() if not isinstance(value, dict | list)}
        yield f"{path}, node {name!r}", name, flat | {f"{_AVAILABLE}{k}": str(v) for k, v in own.items()}


def _fields(attributes: Mapping[str, str], notes: ImportNotes) -> dict[str, Any]:
    status = dict(
        pair.split("=", 1) for pair in attributes.get("status", "").split(",") if "=" in pair
    )  # TORQUE's
    own = {
        name.removeprefix(_AVAILABLE): value
        for name, value in attributes.items()
        if name.startswith(_AVAILABLE)
    }
    cores = _cores(own.get("ncpus") or attributes.get("np") or attributes.get("pcpus") or status.get("ncpus"))
    gpus = count(own.get("ngpus") or attributes.get("gpus") or "0")
    memory = own.get("mem") or status.get("physmem") or ""
    features = [word for word in re.split(r"[,\s]+", attributes.get("properties", "")) if word]
    for name, value in own.items():
        if value.lower() == "true":
            features.append(name)
        elif name not in _READ and value.lower() not in ("false", "0", "0b", "0kb"):
            notes.leave(f"nodes with the resource {name}")
    return {
        "cores": cores,
        "memory": (size(memory) >> 20 or None) if memory else None,
        "gpus": {"gpu": gpus} if gpus else {},
        "features": tuple(dict.fromkeys(features)),
        "state": _state(attributes.get("state", "free")),
    }


def _state(text: str) -> str:
    words = set(re.split(r"[,\s]+", text.lower()))
    if words & _DOWN:
        return "down"
    return "drain" if words & _DRAIN else "up"


def _cores(text: str | None) -> int:
    if not text:
        raise ValueError("does not tell its cores")
    return count(text)
