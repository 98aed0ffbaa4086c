"""Torus, fat-tree and dragonfly clusters: their links and the routes that SimGrid 3.32 takes through them.

A `<cluster topology="…">` names no links, so they and their names are worked out here, one class per
topology. The routing is SimGrid's own: dimension order with wrap-around (torus), destination-modulo-k (fat-
tree), minimal (dragonfly), including its habits, e.g. that a dragonfly's router n is its group's only door
to group n.
"""

import abc
import dataclasses
import functools
import itertools
import math
import operator
from collections.abc import Hashable, Iterator
from typing import ClassVar

from bridge.platform import units

#: (bandwidth in bytes per second, latency in seconds) of one link.
Figures = tuple[float, float]
#: One cable: its name, what it joins (upwards from the first), and how many times the usual bandwidth it has.
Cable = tuple[str, Hashable, Hashable, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Wiring:
    """Parameters of all three topologies: zone name, one cable's figures, split-duplex or not, limiters."""

    zone: str
    bandwidth: float
    latency: float
    duplex: bool
    limited: bool
    first_id: int = 0  # SimGrid numbers links of fat-trees and dragonflies across all zones of the platform
    first_position: int = 0  # …and the leaves of fat-trees


def _whole_numbers(text: str, what: str) -> list[int]:
    numbers = []
    for part in text.split(","):
        number = units.c_int(part)
        if number < 1:
            raise ValueError(f"{what}: '{part.strip()}' is not a whole number from 1")
        numbers.append(number)
    return numbers


class Topology(abc.ABC):
    """A cluster whose members are numbered 0 … size - 1."""

    kind: ClassVar[str]
    bundles: ClassVar[bool] = False  # cables between the same ends work side by side

    def __init__(self, wiring: Wiring, size: int) -> None:
        self.wiring = wiring
        self.size = size

    @abc.abstractmethod
    def route(self, src: int, dst: int) -> list[str]:
        """Names of the links from member `src` to member `dst` (no loopback), limiters included."""

    @abc.abstractmethod
    def build(self) -> Iterator[Cable]:
        """All cables in SimGrid's order; members are whole numbers, switches something else."""

    @abc.abstractmethod
    def groups(self, member: int) -> tuple[str, ...]:
        """Locality of a member, coarse to fine, e.g. (group, chassis, router)."""

    def switch(self, end: Hashable) -> str:
        """Name of a switch, for people."""
        return f"{self.wiring.zone}/{end}"

    @functools.cached_property
    def _cables(self) -> list[Cable]:
        return list(self.build())

    @functools.cached_property
    def _widths(self) -> dict[str, int]:
        return {half: width for name, _, _, width in self._cables for half in self._names(name)}

    @functools.cached_property
    def _way(self) -> dict[tuple[Hashable, Hashable], str]:
        """The link from one end to the other, either way; of several cables the first."""
        ways: dict[tuple[Hashable, Hashable], str] = {}
        for name, a, b, _ in self._cables:
            up, down = self._names(name)
            ways.setdefault((a, b), up)
            ways.setdefault((b, a), down)
        return ways

    @property
    def link_ids(self) -> int:
        return len(self._cables)

    def link(self, name: str) -> Figures | None:
        width = self._widths.get(name)
        return None if width is None else (self.wiring.bandwidth * width, self.wiring.latency)

    def cables(self) -> Iterator[tuple[str, str, float]]:
        """Yield the cables to draw: (end, end, bandwidth in bytes/s). Ends are `host N` or switches."""
        cables: dict[frozenset[Hashable], tuple[Hashable, Hashable, int]] = {}
        for _, a, b, width in self._cables:
            pair = frozenset((a, b))
            if a != b and (self.bundles or pair not in cables):  # a ring of one has a useless cable
                cables[pair] = a, b, width + (cables[pair][2] if pair in cables else 0)
        for *both, width in cables.values():
            a, b = (f"host {end}" if isinstance(end, int) else self.switch(end) for end in both)
            yield a, b, self.wiring.bandwidth * width

    def limiter(self, number: int) -> list[str]:
        """The limiter link of a member or switch, as a list that may be empty."""
        return [f"{self.wiring.zone}_link_{number}_limiter"] if self.wiring.limited else []

    def _names(self, cable: str) -> tuple[str, str]:
        return (f"{cable}_UP", f"{cable}_DOWN") if self.wiring.duplex else (cable, cable)


class Torus(Topology):
    """`topo_parameters="4,4,2"`: the length of each dimension; members are connected directly."""

    kind = "torus"

    def __init__(self, parameters: str, wiring: Wiring) -> None:
        self.dimensions = _whole_numbers(parameters, "torus dimensions")
        super().__init__(wiring, math.prod(self.dimensions))

    @property
    def link_ids(self) -> int:
        return 0

    def _coordinates(self, member: int) -> list[int]:
        strides = itertools.accumulate(self.dimensions, operator.mul, initial=1)
        return [member // stride % length for stride, length in zip(strides, self.dimensions, strict=False)]

    def _beside(self, member: int, axis: int, by: int) -> int:
        """The neighbour ahead (`by` is 1) or behind (-1)."""
        stride, length = math.prod(self.dimensions[:axis]), self.dimensions[axis]
        at = member // stride % length
        return member + ((at + by) % length - at) * stride

    def build(self) -> Iterator[Cable]:
        for member, axis in itertools.product(range(self.size), range(len(self.dimensions))):
            ahead = self._beside(member, axis, 1)
            yield f"{self.wiring.zone}_link_from_{member}_to_{ahead}", member, ahead, 1

    def route(self, src: int, dst: int) -> list[str]:
        links: list[str] = []
        here, start, target = src, self._coordinates(src), self._coordinates(dst)
        while here != dst:
            now = self._coordinates(here)
            axis = next(i for i in range(len(now)) if now[i] != target[i])
            length = self.dimensions[axis]
            direct = start[axis] < target[axis] <= start[axis] + length // 2
            wrapped = start[axis] > length // 2 and (start[axis] + length // 2) % length >= target[axis]
            there = self._beside(here, axis, 1 if direct or wrapped else -1)
            links += [*self.limiter(here), self._way[here, there]]
            here = there
        return links + self.limiter(dst)

    def groups(self, member: int) -> tuple[str, ...]:
        above = self._coordinates(member)[:0:-1]
        planes = (",".join(map(str, above[:count])) for count in range(1, len(above) + 1))
        return tuple(f"{self.wiring.zone}/plane {plane}" for plane in planes) or (self.wiring.zone,)


@dataclasses.dataclass(frozen=True, slots=True)
class _TreeNode:
    """A leaf (level 0) or a switch, with the cable and the node at each port; see `FatTree`."""

    number: int
    level: int
    position: int
    label: tuple[int, ...]
    down: dict[int, tuple[str, int]] = dataclasses.field(default_factory=dict, compare=False)
    up: dict[int, tuple[str, int]] = dataclasses.field(default_factory=dict, compare=False)


class FatTree(Topology):
    """`topo_parameters="levels;children…;parents…;cables…"`, members are the leaves."""

    kind = "fat-tree"
    bundles = True

    def __init__(self, parameters: str, wiring: Wiring) -> None:
        parts = parameters.split(";")
        if len(parts) != 4:
            raise ValueError("a fat-tree needs 'levels;children,…;parents,…;cables,…'")
        levels = _whole_numbers(parts[0], "fat-tree levels")
        named = zip(parts[1:], ("children", "parents", "cables"), strict=True)
        self.down, self.up, self.count = (_whole_numbers(part, f"fat-tree {what}") for part, what in named)
        if len(levels) != 1 or {len(self.down), len(self.up), len(self.count)} != {levels[0]}:
            what = f"a fat-tree of {parts[0]} levels needs {parts[0]} children, parents and cables each"
            raise ValueError(what)
        self.levels = levels[0]
        #: Number of nodes on each level, leaves first.
        self.sizes = [math.prod(self.up[:n]) * math.prod(self.down[n:]) for n in range(self.levels + 1)]
        super().__init__(wiring, self.sizes[0])

    @property
    def switches(self) -> int:
        return sum(self.sizes[1:])

    @functools.cached_property
    def _nodes(self) -> list[_TreeNode]:
        numbers = itertools.chain(range(self.size), itertools.count(2 * self.size - 1, -1))
        nodes = []
        for level, size in enumerate(self.sizes):
            limits = [self.down[j] if j + 1 > level else self.up[j] for j in range(self.levels)]
            # The first number of a label runs fastest.
            labels = itertools.product(*(range(limit) for limit in reversed(limits)))
            for position, label in zip(range(size), labels, strict=True):
                nodes.append(_TreeNode(next(numbers), level, position, label[::-1]))
        return nodes

    @property
    def link_ids(self) -> int:
        return sum(self.sizes[i] * self.up[i] * self.count[i] for i in range(self.levels))

    def build(self) -> Iterator[Cable]:
        nodes, serial = self._nodes, itertools.count(self.wiring.first_id)
        index = {(node.level, node.label): number for number, node in enumerate(nodes)}
        for below, node in enumerate(nodes[: -self.sizes[-1]]):
            level = node.level
            for way in range(self.up[level]):  # parents in the order of their positions
                above = index[level + 1, (*node.label[:level], way, *node.label[level + 1 :])]
                parent = nodes[above]
                for port in range(self.count[level]):
                    cable = f"link_from_{node.number}_{parent.number}_{next(serial)}"
                    parent.down[node.label[level] + port * self.down[level]] = (cable, below)
                    node.up[way + port * self.up[level]] = (cable, above)
                    yield cable, node.number if level == 0 else node, parent, 1

    def _below(self, root: _TreeNode, node: _TreeNode) -> bool:
        return root.level > node.level and all(
            root.label[i] == node.label[i] for i in range(self.levels) if i < node.level or i >= root.level
        )

    def route(self, src: int, dst: int) -> list[str]:
        nodes, _ = self._nodes, self._cables  # which plugs them in
        links: list[str] = []
        here, target = nodes[src], nodes[dst]
        while not self._below(here, target):
            port = (self.wiring.first_position + dst) // math.prod(self.up[: here.level])
            cable, above = here.up[port % (self.up[here.level] * self.count[here.level])]
            links += [*self.limiter(here.number), self._names(cable)[0]]
            here = nodes[above]
        while here is not target:
            port = (self.wiring.first_position + src) % self.count[here.level - 1] * self.down[here.level - 1]
            # SimGrid goes on counting ports on the next switch after a step down: kept, it picks the cable.
            while port < len(here.down):
                if port % self.down[here.level - 1] == target.label[here.level - 1]:
                    cable, below = here.down[port]
                    links += [self._names(cable)[1], *self.limiter(here.number)]
                    here = nodes[below]
                port += 1
        return links + self.limiter(target.number)

    def switch(self, end: Hashable) -> str:
        assert isinstance(end, _TreeNode)
        return f"{self.wiring.zone}/level {end.level} switch {end.position}"

    def groups(self, member: int) -> tuple[str, ...]:
        zone, levels = self.wiring.zone, range(self.levels - 1, 0, -1)
        groups = (f"{zone}/level {level} group {member // math.prod(self.down[:level])}" for level in levels)
        return tuple(groups) or (zone,)


class Dragonfly(Topology):
    """`topo_parameters="groups,links;chassis,links;routers,links;nodes"`: chassis, routers in each, nodes.

    A router is (group, chassis, blade).
    """

    kind = "dragonfly"

    def __init__(self, parameters: str, wiring: Wiring) -> None:
        parts = [_whole_numbers(part, "dragonfly") for part in parameters.split(";")]
        if [len(part) for part in parts] != [2, 2, 2, 1]:
            raise ValueError("a dragonfly needs 'groups,links;chassis,links;routers,links;nodes'")
        (self.n_groups, self.blue), (self.chassis, self.black) = parts[:2]
        (self.blades, self.green), (self.nodes,) = parts[2:]
        super().__init__(wiring, self.n_groups * self.chassis * self.blades * self.nodes)

    def _router(self, member: int) -> tuple[int, int, int]:
        rest, blade = divmod(member // self.nodes, self.blades)
        return (*divmod(rest, self.chassis), blade)

    def _number(self, router: tuple[int, int, int]) -> int:
        return (router[0] * self.chassis + router[1]) * self.blades + router[2]

    def build(self) -> Iterator[Cable]:
        groups, chassis, blades = range(self.n_groups), range(self.chassis), range(self.blades)
        serial = itertools.count(self.wiring.first_id)
        for member in range(self.size):
            router, node = divmod(member, self.nodes)
            name = f"local_link_from_router_{router}_to_node_{node}_{next(serial)}"
            yield name, member, self._router(member), 1
        for group, row in itertools.product(groups, chassis):
            for a, b in itertools.combinations(blades, 2):
                name = f"green_link_in_chassis_{row}_between_routers_{a}_and_{b}_{next(serial)}"
                yield name, (group, row, a), (group, row, b), self.green
        for group in groups:
            for (a, b), blade in itertools.product(itertools.combinations(chassis, 2), blades):
                name = f"black_link_in_group_{group}_between_chassis_{a}_and_{b}_blade_{blade}_{next(serial)}"
                yield name, (group, a, blade), (group, b, blade), self.black
        for a, b in itertools.combinations(groups, 2):
            ends = (a, 0, b), (b, 0, a)
            routers = "_and_".join(str(self._number(end)) for end in ends)
            yield f"blue_link_between_group_{a}_and_{b}_routers_{routers}_{next(serial)}", *ends, self.blue

    def route(self, src: int, dst: int) -> list[str]:
        start, target = self._router(src), self._router(dst)
        here = start
        links = [*self.limiter(src), self._way[src, start]]

        def limit(router: tuple[int, int, int]) -> list[str]:
            return self.limiter(2 * self.size - 1 - self._number(router))

        def hop(there: tuple[int, int, int], *, before: bool = True) -> None:
            nonlocal here
            link = [self._way[here, there]]
            links.extend([*limit(here), *link] if before else [*link, *limit(here)])
            here = there

        if target != start:
            if target[0] != start[0]:
                if here[2] != target[0]:
                    hop((here[0], here[1], target[0]))
                if here[1] != 0:
                    hop((here[0], 0, here[2]))
                hop((target[0], 0, start[0]), before=False)
            if target[2] != here[2]:
                hop((here[0], here[1], target[2]))
                here = (here[0], 0, target[2])  # SimGrid goes on as if in the first chassis
            if target[1] != here[1]:
                hop((here[0], target[1], here[2]))
        return [*links, *limit(target), self._way[target, dst], *self.limiter(dst)]

    def switch(self, end: Hashable) -> str:
        assert isinstance(end, tuple)
        return "{}/group {} chassis {} router {}".format(self.wiring.zone, *end)

    def groups(self, member: int) -> tuple[str, ...]:
        zone, (group, chassis, _) = self.wiring.zone, self._router(member)
        names = f"{zone}/group {group}", f"{zone}/group {group} chassis {chassis}"
        return *names, self.switch(self._router(member))


#: Value of the `topology` attribute -> its class.
TOPOLOGIES: dict[str, type[Torus] | type[FatTree] | type[Dragonfly]] = {
    "TORUS": Torus,
    "FAT_TREE": FatTree,
    "DRAGONFLY": Dragonfly,
}
