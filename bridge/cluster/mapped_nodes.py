"""A cluster of a table with a row for each node, by a column map (`bridge.cluster.table_map`)."""

from datetime import UTC
from pathlib import Path
from typing import Any

import numpy as np

from bridge.base.errors import BridgeError
from bridge.base.files import stem
from bridge.base.suggestions import did_you_mean
from bridge.cluster.description import Cluster, Partition
from bridge.cluster.imported import ImportedCluster, ImportNotes
from bridge.cluster.node_groups import group_nodes
from bridge.cluster.table_cells import MappedTable
from bridge.cluster.table_map import open_map

_TEXTS = ("name", "gpu_type", "features", "partition", "state")
_NUMBERS = ("cores", "memory", "gpus", "weight")
#: What stands for the type of GPUs where the table has none.
_ANY_GPU = "gpu"


def import_nodes(path: Path, name: str) -> ImportedCluster:
    """Return the cluster of a table of nodes, which jobs share; BridgeError: the line of table or map."""
    opened = open_map(name)
    columns = opened.nodes
    for target in columns:
        if target not in (*_TEXTS, *_NUMBERS):
            fields = (*_TEXTS, *_NUMBERS)
            remedy = f"{did_you_mean(target, fields)}Known: {', '.join(fields)}."
            where = opened.lines.place(f"nodes.{target}")
            raise BridgeError(f"a node has no field {target!r}", where=where, remedy=remedy)
    if not columns.keys() >= {"name", "cores"}:
        remedy = "Add [nodes] with name and cores."
        raise BridgeError("the map does not tell of nodes", where=opened.lines.where, remedy=remedy)
    table = MappedTable(path, opened, UTC)
    there = {target: one for target, one in columns.items() if table.has(one, f"nodes.{target}")}
    texts = {target: table.texts(there[target]) for target in _TEXTS if target in there}
    numbers = {
        target: table.numbers(there[target], "memory" if target == "memory" else "number")
        for target in _NUMBERS
        if target in there
    }
    nodes: dict[str, dict[str, Any]] = {}
    queues: dict[str, list[str]] = {}
    for row in range(len(table)):
        text = {target: of[row] for target, of in texts.items()}
        own = text["name"]
        if not own or own in nodes:
            what = f"node {own!r} is listed twice" if own else "a node has no name"
            raise BridgeError(what, where=table.place(row), remedy="Mend the table, or the map.")
        amounts = {target: _whole(of[row], target, table.place(row)) for target, of in numbers.items()}
        nodes[own] = _node(text, amounts, table.place(row))
        for queue in filter(None, text.get("partition", "").replace(";", ",").split(",")):
            queues.setdefault(queue.strip(), []).append(own)
    notes = ImportNotes()
    if unused := table.unused(there):
        notes.leave(f"nodes with columns that the map does not use: {', '.join(unused)}", len(table))
    partitions = tuple(Partition(name=of, nodes=tuple(own), exclusive=False) for of, own in queues.items())
    if not partitions:
        partitions = (Partition(name="all", exclusive=False, default=True),)
        notes.note("the table names no partition: all nodes are one, which jobs share")
    cluster = Cluster(name=stem(path), nodes=group_nodes(nodes), partitions=partitions)
    return ImportedCluster(cluster, notes.unhonoured, tuple(notes.notes), where=str(path))


def _whole(value: float, name: str, place: str) -> int:
    if np.isnan(value):
        return 0
    if value < 0 or value != np.floor(value) or value >= 2**62:
        remedy = "Mend the cell, or give `scale` or `round` in the map."
        raise BridgeError(f"its {name} is {value:g}, which is no amount", where=place, remedy=remedy)
    return int(value)


def _node(text: dict[str, str], amounts: dict[str, int], place: str) -> dict[str, Any]:
    if amounts["cores"] < 1:
        raise BridgeError("a node has no cores", where=place, remedy="Mend the cell, or the map.")
    kind = text.get("gpu_type") or _ANY_GPU
    state = text.get("state") or "up"
    if state not in ("up", "down", "drain"):
        remedy = "Map its texts to up, down and drain by `codes`."
        raise BridgeError(f"{state[:40]!r} is no state of a node", where=place, remedy=remedy)
    features = [word for word in text.get("features", "").replace("|", ",").split(",") if word.strip()]
    return {
        "cores": amounts["cores"],
        "memory": amounts.get("memory") or None,
        "gpus": {kind: amounts["gpus"]} if amounts.get("gpus") else {},
        "features": tuple(word.strip() for word in features),
        "weight": amounts.get("weight") or 1,
        "state": state,
    }
