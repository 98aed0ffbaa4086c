"""Which nodes are free, by class: a start takes those of lowest index.

Nodes of a counted class are alike for the scheduler, which says only how many a job gets.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bridge.base.arrays import Flags, Ints


class FreeNodes:
    """The free nodes of each class.

    Args:
        members: the nodes' indices of each class, ascending.
        counted: [C] whether jobs have whole nodes there; else a class is one node, which jobs may share.
        is_up: [N] whether jobs can start on a node.
    """

    def __init__(self, members: Sequence[Ints], counted: Flags, is_up: Flags) -> None:
        self._members, self._counted = members, counted
        self._free: list[Any] = [np.array(is_up[nodes]) for nodes in members]
        self._held: dict[int, list[tuple[int, Ints]]] = {}

    def take(self, job: int, entries: Iterable[tuple[int, int]]) -> Ints:
        """Give a job what was allocated to it, classes and units; return its nodes, ascending."""
        parts: list[Any] = []
        for c, units in entries:
            if self._counted[c]:
                places = np.flatnonzero(self._free[c])[:units]
                self._free[c][places] = False
                self._held.setdefault(job, []).append((c, places))
                parts.append(self._members[c][places])
            else:
                parts.append(self._members[c])
        return np.sort(np.concatenate(parts)) if parts else np.zeros(0, np.int64)

    def release(self, job: int) -> None:
        for c, places in self._held.pop(job, ()):
            self._free[c][places] = True
