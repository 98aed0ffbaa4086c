"""Torus, fat-tree and dragonfly clusters: their links and the routes that SimGrid 3.32 takes through them.

A `<cluster topology="…">` names no links, so they and their names are worked out here, one class per
topology. The routing is SimGrid's own: dimension order with wrap-around (torus), destination-modulo-k (fat-
tree), minimal (dragonfly), including its habits, e.g. that a dragonfly's router n is its group's only door
to group n.
"""

import abc
import dataclasses
import itertools
import math
from collections.abc import Iterator
from typing import ClassVar

from bridge.platform import units

#: (bandwidth in bytes per second, latency in seconds) of one link.
Figures = tuple[float, float]


@dataclasses.dataclass(frozen=True, slots=True)
class Wiring:
    """What the three topologies share: zone name, figures of one cable, split-duplex or not, limiters."""

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
    """A cluster whose members are numbered 0 … size − 1."""

    kind: ClassVar[str]

    def __init__(self, wiring: Wiring, size: int) -> None:
        self.wiring = wiring
        self.size = size

    @abc.abstractmethod
    def route(self, src: int, dst: int) -> list[str]:
        """Names of the links from member `src` to member `dst` (no loopback), limiters included."""

    @abc.abstractmethod
    def link(self, name: str) -> Figures | None:
        """Bandwidth and latency of the link, None if it is not one of this zone (limiters are not)."""

    @abc.abstractmethod
    def cables(self) -> Iterator[tuple[str, str, float]]:
        """All cables: (end, end, bandwidth in bytes per second). Ends are `host N` or names of switches."""

    @abc.abstractmethod
    def groups(self, member: int) -> tuple[str, ...]:
        """Locality of a member, coarse to fine, e.g. (group, chassis, router)."""

    @property
    @abc.abstractmethod
    def link_ids(self) -> int:
        """How many of SimGrid's running link numbers this zone uses up."""

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

    def _cable(self, member: int, axis: int) -> tuple[str, int]:
        stride, length = math.prod(self.dimensions[:axis]), self.dimensions[axis]
        last = (member // stride) % length == length - 1
        neighbour = member - (length - 1) * stride if last else member + stride
        return f"{self.wiring.zone}_link_from_{member}_to_{neighbour}", neighbour

    def _coordinates(self, member: int) -> list[int]:
        coordinates = []
        for length in self.dimensions:
            coordinates.append(member % length)
            member //= length
        return coordinates

    def route(self, src: int, dst: int) -> list[str]:
        links: list[str] = []
        here, start, target = src, self._coordinates(src), self._coordinates(dst)
        while here != dst:
            now = self._coordinates(here)
            axis = next(i for i in range(len(now)) if now[i] != target[i])
            length = self.dimensions[axis]
            stride = math.prod(self.dimensions[:axis])
            direct = start[axis] < target[axis] <= start[axis] + length // 2
            wrapped = start[axis] > length // 2 and (start[axis] + length // 2) % length >= target[axis]
            links += self.limiter(here)
            if direct or wrapped:
                links.append(self._names(self._cable(here, axis)[0])[0])
                here += stride if now[axis] < length - 1 else stride - stride * length
            else:
                here += stride * length - stride if now[axis] == 0 else -stride
                links.append(self._names(self._cable(here, axis)[0])[1])
        return links + self.limiter(dst)

    def link(self, name: str) -> Figures | None:
        if not name.startswith(f"{self.wiring.zone}_link_from_"):
            return None
        return self.wiring.bandwidth, self.wiring.latency

    def cables(self) -> Iterator[tuple[str, str, float]]:
        for member in range(self.size):
            for axis, length in enumerate(self.dimensions):
                neighbour = self._cable(member, axis)[1]
                # A ring of two has two cables between the same members; a ring of one has a useless one.
                if neighbour != member and not (length == 2 and neighbour < member):
                    yield f"host {member}", f"host {neighbour}", self.wiring.bandwidth

    def groups(self, member: int) -> tuple[str, ...]:
        coordinates = self._coordinates(member)
        found = []
        for axis in range(len(coordinates) - 1, 0, -1):
            plane = ",".join(str(at) for at in reversed(coordinates[axis:]))
            found.append(f"{self.wiring.zone}/plane {plane}")
        return tuple(found) or (self.wiring.zone,)


@dataclasses.dataclass(slots=True)
class _TreeNode:
    number: int
    level: int
    position: int
    label: list[int]
    children: list[tuple[str, int] | None]  # cable, index of the lower node
    parents: list[tuple[str, int] | None]  # cable, index of the upper node


class FatTree(Topology):
    """`topo_parameters="levels;children…;parents…;cables…"`, members are the leaves."""

    kind = "fat-tree"

    def __init__(self, parameters: str, wiring: Wiring) -> None:
        parts = parameters.split(";")
        if len(parts) != 4:
            raise ValueError("a fat-tree needs 'levels;children,…;parents,…;cables,…'")
        levels = _whole_numbers(parts[0], "fat-tree levels")
        self.down, self.up, self.count = (
            _whole_numbers(part, f"fat-tree {what}")
            for part, what in zip(parts[1:], ("children", "parents", "cables"), strict=True)
        )
        if len(levels) != 1 or {len(self.down), len(self.up), len(self.count)} != {levels[0]}:
            raise ValueError(
                f"a fat-tree of {parts[0]} levels needs {parts[0]} children, parents and cables each"
            )
        self.levels = levels[0]
        super().__init__(wiring, math.prod(self.down))
        self._built: list[_TreeNode] = []
        self._starts: list[int] = []

    def _widths(self) -> list[int]:
        return [math.prod(self.up[:level]) * math.prod(self.down[level:]) for level in range(self.levels + 1)]

    @property
    def switches(self) -> int:
        """Number of switches on all levels."""
        return sum(self._widths()[1:])

    @property
    def link_ids(self) -> int:
        widths = self._widths()
        return sum(widths[i] * self.up[i] * self.count[i] for i in range(self.levels))

    def _nodes(self) -> list[_TreeNode]:
        if self._built:
            return self._built
        widths = self._widths()
        self._starts = [0, *itertools.accumulate(widths)]
        number = 2 * self.size
        nodes: list[_TreeNode] = []
        for level, width in enumerate(widths):
            limits = [self.down[j] if j + 1 > level else self.up[j] for j in range(self.levels)]
            for position in range(width):
                label, rest = [], position
                for limit in limits:
                    label.append(rest % limit)
                    rest //= limit
                if level:
                    number -= 1
                below = self.down[level - 1] * self.count[level - 1] if level else 0
                above = self.up[level] * self.count[level] if level < self.levels else 0
                ident = number if level else position
                nodes.append(_TreeNode(ident, level, position, label, [None] * below, [None] * above))
        serial = self.wiring.first_id
        for index, node in enumerate(nodes[: self._starts[self.levels]]):
            level = node.level
            for above in range(self._starts[level + 1], self._starts[level + 2]):
                parent = nodes[above]
                if any(
                    a != b
                    for i, (a, b) in enumerate(zip(parent.label, node.label, strict=True))
                    if i != level
                ):
                    continue
                for port in range(self.count[level]):
                    cable = f"link_from_{node.number}_{parent.number}_{serial}"
                    parent.children[node.label[level] + port * self.down[level]] = (cable, index)
                    node.parents[parent.label[level] + port * self.up[level]] = (cable, above)
                    serial += 1
        self._built = nodes
        return nodes

    def _below(self, root: _TreeNode, node: _TreeNode) -> bool:
        return root.level > node.level and all(
            root.label[i] == node.label[i] for i in range(self.levels) if i < node.level or i >= root.level
        )

    def route(self, src: int, dst: int) -> list[str]:
        nodes = self._nodes()
        links: list[str] = []
        here, target = nodes[src], nodes[dst]
        src_position = self.wiring.first_position + src
        dst_position = self.wiring.first_position + dst
        while not self._below(here, target):
            port = dst_position
            for level in range(here.level):
                port //= self.up[level]
            port %= self.up[here.level] * self.count[here.level]
            links += self.limiter(here.number)
            hop = here.parents[port]
            assert hop is not None
            links.append(self._names(hop[0])[0])
            here = nodes[hop[1]]
        while here is not target:
            level = here.level - 1
            port = src_position % self.count[level]
            index = port * self.down[level]
            # SimGrid goes on counting ports on the next switch after a step down; kept, as it picks the
            # cable.
            while index < len(here.children):
                level = here.level - 1
                if index % self.down[level] == target.label[level]:
                    hop = here.children[index]
                    assert hop is not None
                    links.append(self._names(hop[0])[1])
                    links += self.limiter(here.number)
                    here = nodes[hop[1]]
                index += 1
        return links + self.limiter(target.number)

    def link(self, name: str) -> Figures | None:
        if not name.startswith("link_from_"):
            return None
        serial = int(name.removesuffix("_UP").removesuffix("_DOWN").rpartition("_")[2])
        mine = self.wiring.first_id <= serial < self.wiring.first_id + self.link_ids
        return (self.wiring.bandwidth, self.wiring.latency) if mine else None

    def _switch(self, node: _TreeNode) -> str:
        return (
            f"{self.wiring.zone}/level {node.level} switch {node.position}"
            if node.level
            else f"host {node.position}"
        )

    def cables(self) -> Iterator[tuple[str, str, float]]:
        nodes = self._nodes()
        for node in nodes:
            for above, cables in itertools.groupby(sorted(p[1] for p in node.parents if p is not None)):
                yield (
                    self._switch(node),
                    self._switch(nodes[above]),
                    self.wiring.bandwidth * sum(1 for _ in cables),
                )

    def groups(self, member: int) -> tuple[str, ...]:
        found = []
        for level in range(self.levels - 1, 0, -1):
            found.append(f"{self.wiring.zone}/level {level} group {member // math.prod(self.down[:level])}")
        return tuple(found) or (self.wiring.zone,)


class Dragonfly(Topology):
    """`topo_parameters="groups,links;chassis,links;routers,links;nodes"`: chassis, routers in each, nodes."""

    kind = "dragonfly"

    def __init__(self, parameters: str, wiring: Wiring) -> None:
        parts = [_whole_numbers(part, "dragonfly") for part in parameters.split(";")]
        if [len(part) for part in parts] != [2, 2, 2, 1]:
            raise ValueError("a dragonfly needs 'groups,links;chassis,links;routers,links;nodes'")
        (self.n_groups, self.blue), (self.chassis, self.black), (self.blades, self.green), (self.nodes,) = (
            parts
        )
        super().__init__(wiring, self.n_groups * self.chassis * self.blades * self.nodes)
        first = wiring.first_id
        self._green_id = first + self.n_groups * self.chassis * self.blades * self.nodes
        self._black_id = self._green_id + self.n_groups * self.chassis * math.comb(self.blades, 2)
        self._blue_id = self._black_id + self.n_groups * math.comb(self.chassis, 2) * self.blades

    @property
    def link_ids(self) -> int:
        return self._blue_id + math.comb(self.n_groups, 2) - self.wiring.first_id

    def _place(self, member: int) -> tuple[int, int, int, int]:
        router, node = divmod(member, self.nodes)
        rest, blade = divmod(router, self.blades)
        group, chassis = divmod(rest, self.chassis)
        return group, chassis, blade, node

    def _router(self, group: int, chassis: int, blade: int) -> int:
        return (group * self.chassis + chassis) * self.blades + blade

    @staticmethod
    def _pair(count: int, low: int, high: int) -> int:
        return low * count - low * (low + 1) // 2 + high - low - 1

    def _local(self, router: int, node: int) -> str:
        serial = self.wiring.first_id + router * self.nodes + node
        return f"local_link_from_router_{router}_to_node_{node}_{serial}"

    def _green(self, group: int, chassis: int, here: int, there: int) -> str:
        low, high = sorted((here, there))
        row = group * self.chassis + chassis
        serial = self._green_id + row * math.comb(self.blades, 2) + self._pair(self.blades, low, high)
        cable = f"green_link_in_chassis_{chassis}_between_routers_{low}_and_{high}_{serial}"
        return self._names(cable)[here > there]

    def _black(self, group: int, here: int, there: int, blade: int) -> str:
        low, high = sorted((here, there))
        pair = group * math.comb(self.chassis, 2) + self._pair(self.chassis, low, high)
        cable = (
            f"black_link_in_group_{group}_between_chassis_{low}_and_{high}_blade_{blade}"
            f"_{self._black_id + pair * self.blades + blade}"
        )
        return self._names(cable)[here > there]

    def _blue(self, here: int, there: int) -> str:
        low, high = sorted((here, there))
        size = self.chassis * self.blades
        cable = (
            f"blue_link_between_group_{low}_and_{high}_routers_{low * size + high}_and_{high * size + low}"
            f"_{self._blue_id + self._pair(self.n_groups, low, high)}"
        )
        return self._names(cable)[here > there]

    def _router_limiter(self, router: int) -> list[str]:
        return self.limiter(2 * self.size - 1 - router)

    def route(self, src: int, dst: int) -> list[str]:
        my_group, my_chassis, my_blade, my_node = self._place(src)
        to_group, to_chassis, to_blade, to_node = self._place(dst)
        mine = self._router(my_group, my_chassis, my_blade)
        target = self._router(to_group, to_chassis, to_blade)
        links = [*self.limiter(src), self._names(self._local(mine, my_node))[0]]
        if target != mine:
            group, chassis, blade = my_group, my_chassis, my_blade
            if to_group != group:
                if blade != to_group:
                    links += self._router_limiter(self._router(group, chassis, blade))
                    links.append(self._green(group, chassis, blade, to_group))
                    blade = to_group
                if chassis != 0:
                    links += self._router_limiter(self._router(group, chassis, blade))
                    links.append(self._black(group, chassis, 0, blade))
                    chassis = 0
                links.append(self._blue(group, to_group))
                links += self._router_limiter(self._router(group, chassis, blade))
                group, chassis, blade = to_group, 0, my_group
            if to_blade != blade:
                links += self._router_limiter(self._router(group, chassis, blade))
                links.append(self._green(group, chassis, blade, to_blade))
                chassis, blade = 0, to_blade  # SimGrid goes on as if in the first chassis
            if to_chassis != chassis:
                links += self._router_limiter(self._router(group, chassis, blade))
                links.append(self._black(group, chassis, to_chassis, blade))
        links += self._router_limiter(target)
        links.append(self._names(self._local(target, to_node))[1])
        return links + self.limiter(dst)

    def link(self, name: str) -> Figures | None:
        kinds = {
            "local_link_": (1, self.wiring.first_id, self._green_id),
            "green_link_": (self.green, self._green_id, self._black_id),
            "black_link_": (self.black, self._black_id, self._blue_id),
            "blue_link_": (self.blue, self._blue_id, self.wiring.first_id + self.link_ids),
        }
        for prefix, (cables, first, end) in kinds.items():
            if name.startswith(prefix):
                serial = int(name.removesuffix("_UP").removesuffix("_DOWN").rpartition("_")[2])
                return (
                    (self.wiring.bandwidth * cables, self.wiring.latency) if first <= serial < end else None
                )
        return None

    def _name(self, group: int, chassis: int, blade: int) -> str:
        return f"{self.wiring.zone}/group {group} chassis {chassis} router {blade}"

    def cables(self) -> Iterator[tuple[str, str, float]]:
        width = self.wiring.bandwidth
        for member in range(self.size):
            yield f"host {member}", self._name(*self._place(member)[:3]), width
        for group, chassis in itertools.product(range(self.n_groups), range(self.chassis)):
            for low, high in itertools.combinations(range(self.blades), 2):
                yield self._name(group, chassis, low), self._name(group, chassis, high), width * self.green
        for group, blade in itertools.product(range(self.n_groups), range(self.blades)):
            for low, high in itertools.combinations(range(self.chassis), 2):
                yield self._name(group, low, blade), self._name(group, high, blade), width * self.black
        for low, high in itertools.combinations(range(self.n_groups), 2):
            yield self._name(low, 0, high), self._name(high, 0, low), width * self.blue

    def groups(self, member: int) -> tuple[str, ...]:
        group, chassis, blade, _ = self._place(member)
        zone = self.wiring.zone
        return (
            f"{zone}/group {group}",
            f"{zone}/group {group} chassis {chassis}",
            self._name(group, chassis, blade),
        )


#: Value of the `topology` attribute -> its class.
TOPOLOGIES: dict[str, type[Torus] | type[FatTree] | type[Dragonfly]] = {
    "TORUS": Torus,
    "FAT_TREE": FatTree,
    "DRAGONFLY": Dragonfly,
}
