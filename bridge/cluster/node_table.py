"""The nodes of a cluster, one by one: names and groups by index, and the indices of lists of nodes."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bridge.base.arrays import Ints
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.cluster.description import WHOLE, Cluster, NodeGroup, Partition
from bridge.cluster.slurm_values import MOST_NODES, node_names

#: The word for all nodes, in small letters.
_ALL = "all"


@dataclass(frozen=True)
class NodeTable:
    """N nodes.

    Attributes:
        names: by index.
        group: [N] the node's group, by its place in `Cluster.nodes`.
        groups: names of the groups, several of which may have one name.
    """

    names: tuple[str, ...]
    group: Ints
    groups: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def index(self) -> dict[str, int]:
        return {name: n for n, name in enumerate(self.names)}

    def indices(self, lists: Iterable[str]) -> tuple[Ints, list[str]]:
        """Return the indices of lists of nodes, names of groups, or ALL, ascending; and the unknown names.

        Raises ValueError: a text is no list of nodes.
        """
        members: set[int] = set()
        unknown: list[str] = []
        for text in lists:
            for word in split_list(text):
                if word in self.groups:
                    groups = [g for g, name in enumerate(self.groups) if name == word]
                    members.update(np.flatnonzero(np.isin(self.group, groups)).tolist())
                elif word.lower() == _ALL:
                    members.update(range(len(self)))
                else:
                    for name in node_names(word):
                        if name in self.index:
                            members.add(self.index[name])
                        else:
                            unknown.append(name)
        return np.array(sorted(members), np.int64), unknown


def split_list(text: str) -> Iterator[str]:
    """Yield the words of a list of nodes, whose brackets may hold commas."""
    yield from filter(None, (word.strip() for word in re.split(r",(?![^\[]*\])", text)))


def names_of(group: NodeGroup) -> list[str]:
    """Return the names of a group's nodes; ValueError: they are no list, or not as many as it says."""
    if not group.nodes:
        if group.count is None:
            raise ValueError("states neither count nor nodes")
        if group.count > MOST_NODES:
            raise ValueError(f"has more than {MOST_NODES:,} nodes")
        return [f"{group.name}{n}" for n in range(group.count)]
    names = list(node_names(group.nodes))
    if group.count not in (None, len(names)):
        raise ValueError(f"states count = {group.count}, and its list names {counted(len(names), 'node')}")
    return names


def build_node_table(cluster: Cluster, where: str = "") -> NodeTable:
    """Return the nodes; BridgeError at `where`: there is none, a list is none, or a name comes twice."""
    names: list[str] = []
    groups: list[int] = []
    for g, group in enumerate(cluster.nodes):
        try:
            own = names_of(group)
        except ValueError as error:
            place = f"{where or cluster.name}, nodes[{g}]"
            raise BridgeError(str(error), where=place, remedy="Mend the group of nodes.") from error
        names += own
        groups += [g] * len(own)
    table = NodeTable(tuple(names), np.array(groups, np.int64), tuple(group.name for group in cluster.nodes))
    if not names:
        raise BridgeError("has no node", where=where or cluster.name, remedy="Add a table [[nodes]].")
    if len(table.index) < len(names):
        twice = next(name for n, name in enumerate(names) if table.index[name] != n)
        what = f"node {twice!r} is in two groups"
        remedy = "Give each group names of its own (name, or nodes)."
        raise BridgeError(what, where=where or cluster.name, remedy=remedy)
    return table


def partitions_of(cluster: Cluster) -> tuple[Partition, ...]:
    """Return the partitions; of a cluster that states none, one of all nodes with whole nodes for jobs."""
    return cluster.partitions or (Partition(name=WHOLE, default=True),)


def default_partition(cluster: Cluster) -> int:
    """Return the place of the partition of jobs that name none."""
    return next((p for p, partition in enumerate(partitions_of(cluster)) if partition.default), 0)
