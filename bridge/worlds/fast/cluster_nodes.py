"""The nodes of a cluster as the scheduler sees them: amounts, classes of nodes that no job can tell apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bridge.base.arrays import Flags, Ints
from bridge.base.errors import BridgeError
from bridge.cluster.description import Cluster, Partition
from bridge.cluster.node_table import NodeTable, build_node_table, partitions_of
from bridge.cluster.request_texts import admits, parse_constraints
from bridge.scheduler.cluster_state import UNCOUNTED
from bridge.workload.requests import MILLI

#: Amounts of a node before those of each type of GPU.
CORES, MEMORY, GPUS = 0, 1, 2


@dataclass(frozen=True)
class NodeClasses:
    """N nodes in C classes. Classes are numbered by their lowest node.

    Attributes:
        resources: R names of a node's amounts: cores, memory, gpus, and each type of GPUs.
        members: nodes of each class, ascending.
        counted: [C] only whole-node jobs reach it.
        amounts: [C, R] of one node; memory in MiB, GPUs in thousandths.
        weight: [C].
        features: of each class.
        is_up: [N] whether jobs can start there.
        in_partition: [P, C].
        listed: [C] by a text of `-w` or `-x`: the classes that it names.
        reserved: [C] by the name of an advance reservation: its classes.
    """

    table: NodeTable
    partitions: tuple[Partition, ...]
    resources: tuple[str, ...]
    members: tuple[Ints, ...]
    counted: Flags
    amounts: Ints
    weight: Ints
    features: tuple[frozenset[str], ...]
    is_up: Flags
    in_partition: Flags
    listed: Mapping[str, Flags] = field(default_factory=dict)
    reserved: Mapping[str, Flags] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.members)

    @cached_property
    def class_of(self) -> Ints:
        """The class of each node [N]."""
        classes = np.zeros(len(self.table), np.int64)
        for c, members in enumerate(self.members):
            classes[members] = c
        return classes

    @property
    def is_shared(self) -> bool:
        return not bool(self.counted.all())

    def capacity(self) -> dict[str, int]:
        """Return what all nodes have: cores, and GPUs where there are some."""
        total = sum(
            (self.amounts[c] * len(members) for c, members in enumerate(self.members)),
            start=np.zeros(len(self.resources), np.int64),
        )
        gpus = int(total[GPUS]) // MILLI
        return {"cores": int(total[CORES])} | ({"gpus": gpus} if gpus else {})

    def admissible(
        self, partition: int, constraints: str, nodelist: str, exclude: str, reservation: str, where: str
    ) -> Flags:
        """Return the classes [C] that a job may use: partition, features, `-w` and `-x`, its reservation."""
        mask: Flags = self.in_partition[partition].copy()
        if constraints:
            try:
                choice = parse_constraints(constraints)
            except ValueError as error:
                raise BridgeError(
                    str(error), where=where, remedy="Mend its column 'constraints', or leave it empty."
                ) from error
            mask &= np.array([admits(choice, features) for features in self.features], np.bool_)
        if nodelist:
            mask &= self.listed[nodelist]
        if exclude:
            mask &= ~self.listed[exclude]
        if reservation:
            mask &= self.reserved[reservation]
        return mask


def build_node_classes(cluster: Cluster, lists: Sequence[str]) -> NodeClasses:
    """Return the classes of a cluster's nodes; `lists`: texts of nodes by which jobs tell them apart.

    Raises BridgeError: a partition names a node that there is not, or no node.
    """
    table, partitions = build_node_table(cluster), partitions_of(cluster)
    n = len(table)
    types = sorted({kind for group in cluster.nodes for kind in group.gpus})
    resources = ("cores", "memory", "gpus", *(f"gpus_{kind}" for kind in types))
    of_group = np.zeros((len(cluster.nodes), len(resources)), np.int64)
    for g, group in enumerate(cluster.nodes):
        of_group[g, CORES] = group.cores
        of_group[g, MEMORY] = UNCOUNTED if group.memory is None else group.memory
        of_group[g, GPUS] = sum(group.gpus.values()) * MILLI
        for kind, count in group.gpus.items():
            of_group[g, 3 + types.index(kind)] = count * MILLI
    in_partition = np.zeros((len(partitions), n), np.bool_)
    for p, partition in enumerate(partitions):
        indices, unknown = table.indices(partition.nodes)
        if unknown or not len(indices):
            what = f"names the node {unknown[0]!r}, which there is not" if unknown else "has no node"
            where = f"{cluster.name}, partition {partition.name!r}"
            raise BridgeError(what, where=where, remedy="Mend its list of nodes.")
        in_partition[p, indices] = True
    shared = np.zeros(n, np.bool_)
    for p, partition in enumerate(partitions):
        if not partition.exclusive:
            shared |= in_partition[p]
    named = {}
    for text in lists:
        named[text] = np.zeros(n, np.bool_)
        named[text][table.indices([text])[0]] = True
    kept = {}
    for row in cluster.reservations:
        kept[row.name] = np.zeros(n, np.bool_)
        kept[row.name][table.indices(row.nodes)[0]] = True
    names_of = np.array([*named.values(), *kept.values()], np.bool_).reshape(len(named) + len(kept), n)
    kinds: dict[object, list[int]] = {}
    for node in range(n):
        group = cluster.nodes[table.group[node]]
        key: object = (
            node
            if shared[node]
            else (
                of_group[table.group[node]].tobytes(),
                frozenset(group.features),
                group.weight,
                in_partition[:, node].tobytes(),
                names_of[:, node].tobytes(),
            )
        )
        kinds.setdefault(key, []).append(node)
    members = tuple(np.array(nodes, np.int64) for nodes in kinds.values())
    first: npt.NDArray[np.int64] = np.array([nodes[0] for nodes in members], np.int64)
    groups = table.group[first]
    return NodeClasses(
        table=table,
        partitions=partitions,
        resources=resources,
        members=members,
        counted=~shared[first],
        amounts=of_group[groups],
        weight=np.array([cluster.nodes[g].weight for g in groups], np.int64),
        features=tuple(frozenset(cluster.nodes[g].features) for g in groups),
        is_up=np.array([cluster.nodes[g].state == "up" for g in table.group], np.bool_),
        in_partition=in_partition[:, first],
        listed={text: mask[first] for text, mask in named.items()},
        reserved={name: mask[first] for name, mask in kept.items()},
    )
