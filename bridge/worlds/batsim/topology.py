"""Which hosts are near each other: leaves (hosts of one switch) and the distances between them."""

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from bridge.base.arrays import Ints
from bridge.base.errors import BridgeError

#: Distance between parts of a graph that are not connected.
UNREACHABLE = 1 << 20
#: Leaves whose distances are remembered.
_REMEMBERED = 1024


def _check(names: Sequence[str], valid_names: Container[str], what: str, remedy: str) -> None:
    missing = next((name for name in names if name not in valid_names), None)
    if missing is not None:
        raise BridgeError(what, where=f"host {missing!r}", remedy=remedy)


def _numbered(labels: Sequence[object]) -> Ints:
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], np.int64)


class HostDistance(ABC):
    """Hosts sorted into leaves, and how far leaves lie apart.

    `leaf_of`: [hosts] number of each host's leaf; leaves are numbered by their lowest host.
    """

    leaf_of: Ints

    def __init__(self) -> None:
        self.from_leaf = lru_cache(_REMEMBERED)(self._from_leaf)

    def _from_leaf(self, leaf: int) -> tuple[Ints, Ints]:
        """Return all leaves from the nearest (itself) to the farthest, and their distances."""
        distance = self._distances(leaf)
        order = np.argsort(distance, kind="stable")
        return order, distance[order]

    @abstractmethod
    def _distances(self, leaf: int) -> Ints:
        """Return [leaves] how far each one lies from this one."""


class Groups(HostDistance):
    """Nearness by groups, coarse to fine: the distance is the number of levels that two leaves do not share.

    `names`: hosts in the order of their ids; `groups`: host -> its group, or its groups coarse to fine,
    equally many (else BridgeError); all of a host's groups make its leaf.
    """

    def __init__(self, names: Sequence[str], groups: Mapping[str, str | tuple[str, ...]]) -> None:
        super().__init__()
        _check(names, groups, "has no group", "Name a group for every compute host.")
        paths = [(g,) if isinstance(g, str) else tuple(g) for g in (groups[name] for name in names)]
        depth = max(len(path) for path in paths)
        paths = [path + ("",) * (depth - len(path)) for path in paths]
        self.leaf_of = _numbered(paths)
        leaves = list(dict.fromkeys(paths))
        # a level's code stands for the whole path down to it
        self._codes = np.stack([_numbered([path[: k + 1] for path in leaves]) for k in range(depth)], axis=1)

    def _distances(self, leaf: int) -> Ints:
        return np.asarray((self._codes != self._codes[leaf]).sum(axis=1), np.int64)


class Graph(HostDistance):
    """Nearness by hops in a graph whose nodes include the hosts: a leaf is the one node that hosts hang on.

    A host with several neighbours, as in a torus, is a leaf of its own. `names`: hosts in the order of their
    ids; `graph`: a `networkx.Graph` (BridgeError: a host is not in it).
    """

    def __init__(self, names: Sequence[str], graph: Any) -> None:
        super().__init__()
        remedy = "Give the platform file that the simulation runs on."
        _check(names, graph, "is not in the platform's graph", remedy)
        self._graph = graph
        hosts = set(names)
        labels = []
        for name in names:
            around = [other for other in graph[name] if other != name]
            labels.append(around[0] if len(around) == 1 and around[0] not in hosts else name)
        self.leaf_of = _numbered(labels)
        self._leaves = list(dict.fromkeys(labels))
        self._number = {leaf: k for k, leaf in enumerate(self._leaves)}

    def _distances(self, leaf: int) -> Ints:
        import networkx as nx

        distance = np.full(len(self._leaves), UNREACHABLE, np.int64)
        for node, hops in nx.single_source_shortest_path_length(self._graph, self._leaves[leaf]).items():
            if node in self._number:
                distance[self._number[node]] = hops
        return distance
