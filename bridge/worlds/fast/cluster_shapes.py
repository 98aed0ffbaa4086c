"""Nodes and demands as the arrays that `select` reads, and what demands take of the empty cluster."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.base.arrays import Records
from bridge.scheduler.cluster_state import (
    BEST_FIT,
    BY_SET,
    CLASS,
    LEAST_LOADED,
    NODE_SWITCHES,
    SHAPE,
    UNCOUNTED,
    ClusterState,
    allocate_cluster,
)
from bridge.scheduler.fitting import WORD_BITS
from bridge.scheduler.placement import select_each
from bridge.worlds.fast.cluster_nodes import CORES, NodeClasses

#: Clusters with so many classes keep which of them hold a shape; with fewer, to look is as quick.
LEAST_CLASSES = 16
#: Words of all bits of shapes, at most: 64 MiB.
FIT_WORDS = 1 << 23
_KEYS = {"weight": BY_SET, "first_fit": BY_SET, "best_fit": BEST_FIT, "least_loaded": LEAST_LOADED}


@dataclass(frozen=True)
class Shape:
    """A demand of `nodes` nodes (0: as many as its tasks need) and `tasks` tasks (0: one vector a node)."""

    classes: tuple[int, ...]  # admissible ones that hold a vector, in packing order
    vector: tuple[int, ...]
    nodes: int
    tasks: int
    most_tasks: int
    whole: bool


@dataclass(frozen=True)
class Taken:
    """What a shape takes of the empty cluster, all nodes up: the request that limits count."""

    nodes: int
    amounts: tuple[int, ...]


def take_of_empty(shapes: Sequence[Shape], classes: NodeClasses, key: str) -> list[Taken | None]:
    """Return what each shape takes of the empty cluster by the rule `select`; None if it never fits."""
    if not shapes:
        return []
    static = node_arrays(classes, key) | shape_arrays(classes, shapes)
    static["node_switches"] = node_switches(classes, key)
    static["node_switches"].keeps_fits = False  # each is asked for once
    by_axis = {"CP": "class_partitions", "PC": "partition_classes", "S": "shapes", "SC": "set_classes"}
    sizes = {axis: len(static[name]) for axis, name in by_axis.items()}
    n, partitions, resources = len(classes), len(classes.partitions), len(classes.resources)
    sizes |= {"A": len(static["admits"]), "C": n, "C1": n + 1, "R": resources}
    sizes |= {"P": partitions, "P1": partitions + 1}
    others = (
        *("G", "GK", "Q", "K", "CO", "CH", "GR", "GR1", "GM", "T", "E", "PT", "LG", "ST", "QO", "AC"),
        *("F", "FW", "CL"),
    )
    state: Any = allocate_cluster(1, 1, dict.fromkeys(others, 1) | sizes)
    state = state._replace(**static)
    placed: ClusterState = state
    empty = classes.amounts.copy()
    for c, members in enumerate(classes.members):
        if classes.counted[c]:
            empty[c, 0] = len(members)
    nodes, amounts = np.zeros(len(shapes), np.int64), np.zeros((len(shapes), resources), np.int64)
    select_each(placed, empty, nodes, amounts)
    return [
        Taken(count, tuple(row)) if count > 0 else None
        for count, row in zip(nodes.tolist(), amounts.tolist(), strict=True)
    ]


def node_switches(classes: NodeClasses, key: str) -> Any:
    """Return the switches of a cluster whose nodes are chosen by a key of `bridge.cluster`."""
    switches = np.zeros(1, NODE_SWITCHES).view(np.recarray)
    switches.key, switches.all_counted = _KEYS[key], classes.counted.all()
    switches.keeps_fits = _KEYS[key] == BY_SET and len(classes) >= LEAST_CLASSES
    return switches


def fit_sizes(n_classes: int, n_shapes: int, batch: int) -> dict[str, int]:
    """Return the sizes of what is kept of shapes, see `bridge.scheduler.fitting`."""
    if n_classes < LEAST_CLASSES:
        return {"F": 1, "FW": 1, "CL": 1}
    words = -(-n_classes // WORD_BITS)
    places = min(n_shapes, max(1, FIT_WORDS // (words * batch)))
    return {"F": places, "FW": words, "CL": 1 << (n_classes - 1).bit_length()}


def as_records(rows: list[tuple[Any, ...]], kind: np.dtype[Any]) -> Records:
    return np.array(rows, kind).view(np.recarray)


def node_arrays(classes: NodeClasses, key: str) -> dict[str, Any]:
    """Return the arrays of nodes and partitions; `key`: how nodes are chosen."""
    n_classes = len(classes)
    rows: list[tuple[Any, ...]] = []
    of_class: list[int] = []
    capacity = np.zeros((n_classes, len(classes.resources)), np.int64)
    for c, members in enumerate(classes.members):
        partitions = np.flatnonzero(classes.in_partition[:, c]).tolist()
        rows.append((classes.counted[c], len(of_class), len(of_class) + len(partitions), 0))
        of_class += partitions
        if classes.counted[c]:
            capacity[c, 0] = classes.is_up[members].sum()
        elif classes.is_up[members[0]]:
            capacity[c] = classes.amounts[c]
    packed = classes.weight if key == "weight" else np.zeros(n_classes, np.int64)
    in_order = np.argsort(packed, kind="stable").astype(np.int32)
    of_partition = [np.flatnonzero(mask) for mask in classes.in_partition]
    return {
        "classes": as_records(rows, CLASS),
        "node_amounts": np.ascontiguousarray(classes.amounts),
        "class_capacity": capacity,
        "class_at": in_order,
        "class_place": np.argsort(in_order).astype(np.int32),
        "class_partitions": np.array(of_class, np.int32),
        "partition_first": np.cumsum([0, *map(len, of_partition)], dtype=np.int32),
        "partition_classes": np.concatenate(of_partition).astype(np.int32),
    }


def shape_arrays(classes: NodeClasses, shapes: Sequence[Shape]) -> dict[str, Any]:
    """Return the arrays of shapes and their interned sets of classes."""
    sets: dict[tuple[int, ...], tuple[int, int]] = {}
    admits: dict[frozenset[int], int] = {}
    flat: list[int] = []
    rows = []
    for shape in shapes:
        if shape.classes not in sets:
            sets[shape.classes] = (len(flat), len(flat) + len(shape.classes))
            flat += shape.classes
        first, last = sets[shape.classes]
        of = admits.setdefault(frozenset(shape.classes), len(admits))
        cores = shape.vector[CORES]
        if shape.whole:
            cores = int(classes.amounts[list(shape.classes), CORES].min(initial=UNCOUNTED))
        room = cores * (max(shape.nodes, 1) if shape.whole else shape.tasks or shape.nodes)
        rows.append(
            (first, last, room, shape.nodes, shape.tasks, min(shape.most_tasks, 1 << 40), of, shape.whole)
        )
    table = np.zeros((len(admits), len(classes)), np.int8)
    for members, a in admits.items():
        table[a, list(members)] = 1
    return {
        "shapes": as_records(rows, SHAPE),
        "vectors": np.array([shape.vector for shape in shapes], np.int64),
        "set_classes": np.array(flat, np.int32),
        "admits": table,
    }
