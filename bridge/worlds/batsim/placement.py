"""Placement: which hosts a started job gets. Locality is best effort, a start is never refused.

| rule | gives | its goal |
|---|---|---|
| first-fit | the lowest ids | none |
| contiguous | the smallest hole that holds the job, else the largest holes | one interval of ids |
| best-fit | the fullest group that holds the job, else the emptiest groups | as few groups as possible |
| topology | best-fit in one leaf, else neighbouring leaves, least distances | as few leaves as possible |
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from bridge.base.arrays import Ints
from bridge.base.errors import BridgeError
from bridge.wire.hosts import Hosts, HostSet, merged
from bridge.worlds.batsim.topology import Graph, Groups, HostDistance

NAMES = ("first-fit", "contiguous", "best-fit", "topology")
#: Leaves from which `Topology` tries to grow an allocation: half of them the emptiest, half spread evenly.
_SEEDS = 16


class FirstFit:
    """The free hosts, at first all `names`, in the order of their ids; other rules derive from this one."""

    def __init__(self, names: Sequence[str]) -> None:
        self._free = HostSet(((0, len(names) - 1),))

    @property
    def free(self) -> int:
        return self._free.size

    def allocate(self, n: int) -> Hosts:
        return self._free.take_lowest(n)

    def release(self, hosts: Hosts) -> None:
        self._free.add(hosts)

    def withdraw(self, hosts: Hosts) -> Hosts:
        """Take these hosts as far as they are free, and return those."""
        there = self._free.overlap(hosts)
        self._free.remove(there)
        return there

    def groups_of(self, hosts: Hosts) -> int:  # noqa: ARG002
        """Return over how many groups hosts are spread; 0 where the rule knows no groups."""
        return 0

    def goal(self, n: int) -> tuple[int, int]:  # noqa: ARG002
        """Return the most intervals and groups with which a job on `n` hosts meets the goal; 0 = no goal."""
        return 0, 0


#: Makes the pool of the hosts named, all free; ids are places in the list.
PlacementFactory = Callable[[Sequence[str]], FirstFit]


class Contiguous(FirstFit):
    """One interval of ids where there is one: the smallest hole that holds the job."""

    def allocate(self, n: int) -> Hosts:
        taken: list[Hosts] = []
        while n:
            low, length = self._hole(n)
            part = ((low, low + min(length, n) - 1),)
            self._free.remove(part)
            taken.append(part)
            n -= min(length, n)
        return taken[0] if len(taken) == 1 else merged(taken)

    def _hole(self, n: int) -> tuple[int, int]:
        """Return (lowest id, length) of the smallest hole that holds `n`, or of the largest hole."""
        holes = [(low, high - low + 1) for low, high in self._free.hosts()]
        enough = [hole for hole in holes if hole[1] >= n]
        return min(enough, key=itemgetter(1)) if enough else max(holes, key=itemgetter(1))

    def goal(self, n: int) -> tuple[int, int]:  # noqa: ARG002
        return 1, 0


class BestFit(FirstFit):
    """One group (leaf of `nearness`) where one holds the job, the fullest; else as few as possible."""

    def __init__(self, names: Sequence[str], nearness: HostDistance) -> None:
        self._nearness, group = nearness, nearness.leaf_of
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        self._run_starts: list[int] = starts.tolist()
        self._run_groups: list[int] = group[starts].tolist()
        self._count = np.bincount(group)
        self._groups = [HostSet() for _ in self._count]
        for g, low, high in self._split(((0, len(names) - 1),)):
            self._groups[g].add(((low, high),))
        self._largest_first = np.cumsum(np.sort(self._count)[::-1])
        self._all_free = len(names)

    def _split(self, hosts: Hosts) -> list[tuple[int, int, int]]:
        """Cut intervals where groups change: (group, low, high)."""
        starts, groups = self._run_starts, self._run_groups
        pieces = []
        for first, high in hosts:
            low = first
            k = bisect_right(starts, low) - 1
            while low <= high:
                end = min(high, starts[k + 1] - 1) if k + 1 < len(starts) else high
                pieces.append((groups[k], low, end))
                low = end + 1
                k += 1
        return pieces

    @property
    def free(self) -> int:
        return self._all_free

    def allocate(self, n: int) -> Hosts:
        one = self._fullest_with(n)
        parts = []
        for group, k in [(one, n)] if one >= 0 else self._fewest(n):
            self._count[group] -= k
            parts.append(self._groups[group].take_lowest(k))
        self._all_free -= n
        return parts[0] if len(parts) == 1 else merged(parts)

    def _fullest_with(self, n: int) -> int:
        """Return the group with the fewest free hosts, but `n` at least; -1 if there is none."""
        enough = np.where(self._count >= n, self._count, np.iinfo(np.int64).max)
        best = int(enough.argmin())
        return best if self._count[best] >= n else -1

    def _fewest(self, n: int) -> list[tuple[int, int]]:
        """Fill the emptiest groups, and put the rest where it fits best: (group, hosts taken from it)."""
        order = np.argsort(-self._count, kind="stable")
        total = np.cumsum(self._count[order])
        whole = int(np.searchsorted(total, n))  # groups before this one are used up
        chosen = [(int(g), int(self._count[g])) for g in order[:whole]]
        rest = n - (int(total[whole - 1]) if whole else 0)
        others = order[whole:]
        enough = others[self._count[others] >= rest]
        chosen.append((int(enough[self._count[enough].argmin()]), rest))
        return chosen

    def release(self, hosts: Hosts) -> None:
        for g, low, high in self._split(hosts):
            self._groups[g].add(((low, high),))
            self._count[g] += high - low + 1
            self._all_free += high - low + 1

    def withdraw(self, hosts: Hosts) -> Hosts:
        parts = []
        for g, low, high in self._split(hosts):
            there = self._groups[g].overlap(((low, high),))
            self._groups[g].remove(there)
            n = sum(b - a + 1 for a, b in there)
            self._count[g] -= n
            self._all_free -= n
            parts.append(there)
        return merged(parts)

    def groups_of(self, hosts: Hosts) -> int:
        return len({g for g, _, _ in self._split(hosts)})

    def goal(self, n: int) -> tuple[int, int]:
        return 0, int(np.searchsorted(self._largest_first, n)) + 1


class TopologyPlacement(BestFit):
    """One leaf where one holds the job; else leaves near each other."""

    def _fewest(self, n: int) -> list[tuple[int, int]]:
        best: tuple[int, int] | None = None
        chosen: tuple[Ints, Ints] | None = None
        for seed in self._seeds():
            order, distance = self._nearness.from_leaf(seed)
            count = self._count[order]
            total = np.cumsum(count)
            last = int(np.searchsorted(total, n))
            taken = count[: last + 1].copy()
            taken[last] -= total[last] - n
            cost = int(taken @ distance[: last + 1]), int(np.count_nonzero(taken))
            if best is None or cost < best:
                best, chosen = cost, (order[: last + 1], taken)
        assert chosen is not None
        return [(g, k) for g, k in zip(chosen[0].tolist(), chosen[1].tolist(), strict=True) if k]

    def _seeds(self) -> list[int]:
        free = np.flatnonzero(self._count)
        if len(free) <= _SEEDS:
            return [int(g) for g in free]
        emptiest = free[np.argsort(-self._count[free], kind="stable")[: _SEEDS // 2]]
        spread = free[np.linspace(0, len(free) - 1, _SEEDS // 2).astype(np.int64)]
        return [int(g) for g in dict.fromkeys([*emptiest.tolist(), *spread.tolist()])]


def rule(
    name: str, *, groups: Mapping[str, str | tuple[str, ...]] | None = None, graph: Any = None
) -> PlacementFactory:
    """Return a placement rule by name; BridgeError: unknown, or it lacks groups and graph.

    `groups`: host -> its group, or its groups coarse to fine, for ``best-fit`` and ``topology``; or in place
    of them a `networkx.Graph` with the hosts among its nodes.
    """
    if name == "first-fit":
        return FirstFit
    if name == "contiguous":
        return Contiguous
    if name not in NAMES:
        raise BridgeError("unknown placement", where=repr(name), remedy=f"Choose {', '.join(NAMES)}.")
    pool = BestFit if name == "best-fit" else TopologyPlacement
    if graph is not None:
        return lambda names: pool(names, Graph(names, graph))
    if groups is not None:
        return lambda names: pool(names, Groups(names, groups))
    what = "needs to know which hosts are near each other"
    raise BridgeError(what, where=f"placement {name!r}", remedy="Give the platform file.")
