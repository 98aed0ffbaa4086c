"""A site as Slurm's schedulers see it: nodes in the order of their names, partitions, QOS, associations."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from bridge.base.arrays import Ints
from bridge.base.errors import BridgeError
from bridge.cluster.description import Cluster, Partition
from bridge.cluster.limits import Account, Association, Limits, Qos, User
from bridge.cluster.node_table import build_node_table, partitions_of
from bridge.scheduler.slurm.masks import mask_of
from bridge.scheduler.slurm.node_words import WORD
from bridge.scheduler.slurm.parameters import Parameters, parameters_of
from bridge.scheduler.slurm.settings import Settings


@dataclass(slots=True)
class SlurmNode:
    """A node; `threads` are the CPUs of one core."""

    name: str
    cpus: int
    threads: int
    memory: int
    gres: dict[str, int]
    features: frozenset[str]
    weight: int
    state: str = "up"


@dataclass(slots=True)
class SlurmPart:
    """A partition: its description, its nodes, and what the calendar changes, which counts up `version`."""

    index: int
    name: str
    mask: int
    about: Partition
    state: str
    max_time: int | None
    max_nodes: int | None
    min_nodes: int
    version: int = 0
    cpus: int = 0
    memory: int = 0
    gres: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Assoc:
    """One line of the accounts' tree: an account, or a user in an account.

    Attributes:
        tree: of the root: what fair shares are computed with; None: it is made when it is needed.
    """

    name: str
    parent: "Assoc | None"
    is_user: bool
    shares: int
    limits: Limits
    about: Association | None
    children: "list[Assoc]" = field(default_factory=list)
    usage: float = 0.0
    fs: float = 1.0
    level: float = 0.0
    shares_norm: float = 1.0
    effective: float = 0.0
    tree: object = None
    _chain: "tuple[Assoc, ...]" = ()
    _total: tuple[int, int] = (0, 0)

    def total_shares(self) -> int:
        """Return the shares of all children together; they are added again when a child has come."""
        n = len(self.children)
        if self._total[0] != n:
            self._total = n, sum(max(child.shares, 0) for child in self.children)
        return self._total[1]

    def chain(self) -> "tuple[Assoc, ...]":
        """Return it and all above it."""
        if not self._chain:
            self._chain = (self, *(self.parent.chain() if self.parent is not None else ()))
        return self._chain


def natural(name: str) -> tuple[object, ...]:
    """Return a key that sorts names of nodes as Slurm does: numbers by value."""
    pieces = re.split(r"(\d+)", name)
    return tuple(int(piece) if odd % 2 else piece for odd, piece in enumerate(pieces))


class Site:
    """What does not change in a replay, and partitions, whose limits a calendar may change.

    Attributes:
        nodes: in the order of their names.
        table_index: of each, its place in the cluster's description.
        table: [N, 3] CPUs, threads of a core, MiB.
        memory: MiB of each.
        gres: names of generic resources, in the order of the columns of `SlurmUsage`.
        weights: [N].
        is_uniform: all nodes have as many CPUs.
        scratch: what kernels write to.
        needs: what jobs ask for, as kernels read it.
    """

    def __init__(self, cluster: Cluster, settings: Settings, where: str = "") -> None:
        self.cluster, self.settings = cluster, settings
        self.where = where or cluster.name
        self.parameters: Parameters = parameters_of(cluster.scheduler.parameters, self.where)
        table = build_node_table(cluster, where)
        order = sorted(range(len(table)), key=lambda n: natural(table.names[n]))
        self.nodes = [self._node(table.names[n], int(table.group[n])) for n in order]
        self.table_index = order
        self.index = {node.name: n for n, node in enumerate(self.nodes)}
        self.gres = sorted({kind for node in self.nodes for kind in node.gres})
        self.n_words = -(-len(self.nodes) // WORD)
        self.table = np.array([(node.cpus, node.threads, node.memory) for node in self.nodes], np.int64)
        self.memory = [node.memory for node in self.nodes]
        self.is_uniform = len({(node.cpus, node.threads) for node in self.nodes}) == 1
        self.scratch = (np.zeros((4, len(self.nodes)), np.int64), np.zeros(3 + self.n_words, np.int64))
        self.needs: dict[tuple[int, ...], Ints] = {}
        self._of_features: dict[tuple[frozenset[str], ...], int] = {}
        self.all_nodes = (1 << len(self.nodes)) - 1
        self.cpus = sum(node.cpus for node in self.nodes)
        place = {old: new for new, old in enumerate(order)}
        self.parts: list[SlurmPart] = []
        for p, partition in enumerate(partitions_of(cluster)):
            members, unknown = table.indices(partition.nodes)
            if unknown:
                what = f"partition {partition.name} names nodes that are none: {', '.join(unknown[:3])}"
                raise BridgeError(what, where=self.where, remedy="Mend its list.")
            self.parts.append(self._part(p, partition, mask_of(place[int(n)] for n in members)))
        self.part_index = {part.name: part for part in self.parts}
        self.default_part = next((part for part in self.parts if part.about.default), self.parts[0])
        self.qos = {qos.name: qos for qos in cluster.qos}
        self.qos.setdefault("normal", Qos(name="normal"))
        self.most_qos = max((qos.priority for qos in self.qos.values()), default=0)
        self.most_factor = max(part.about.priority_factor for part in self.parts)
        self.licenses = {one.name: one.count for one in cluster.licenses}
        self.root = Assoc("root", None, False, 1, Limits(), None)
        self.accounts = {"root": self.root}
        self.users: dict[tuple[str, str], Assoc] = {}
        self.default_account: dict[str, str] = {}
        self._associations(cluster.accounts, cluster.users)
        self.weights = np.array([node.weight for node in self.nodes], np.int64)
        self.whole_site_exclusive = all(part.about.exclusive for part in self.parts)

    def _node(self, name: str, group: int) -> SlurmNode:
        about = self.cluster.nodes[group]
        gres: dict[str, int] = {}
        for kind, count in about.gpus.items():
            gres[f"gpu:{kind}"] = count
            gres["gpu"] = gres.get("gpu", 0) + count
        memory = about.memory if about.memory is not None else 1 << 60
        return SlurmNode(
            name,
            about.cores,
            about.threads,
            memory,
            gres,
            frozenset(about.features),
            about.weight,
            about.state,
        )

    def _part(self, index: int, about: Partition, mask: int) -> SlurmPart:
        nodes = [node for n, node in enumerate(self.nodes) if mask >> n & 1]
        part = SlurmPart(
            index, about.name, mask, about, about.state, about.max_time, about.max_nodes, about.min_nodes
        )
        part.cpus = sum(node.cpus for node in nodes)
        part.memory = sum(node.memory for node in nodes)
        for node in nodes:
            for kind, count in node.gres.items():
                part.gres[kind] = part.gres.get(kind, 0) + count
        return part

    def with_features(self, alternatives: tuple[frozenset[str], ...]) -> int:
        """Return the nodes that have all features of one of the alternatives."""
        if alternatives not in self._of_features:
            members = (
                n for n, node in enumerate(self.nodes) if any(one <= node.features for one in alternatives)
            )
            self._of_features[alternatives] = mask_of(members)
        return self._of_features[alternatives]

    def _associations(self, accounts: Iterable[Account], users: Iterable[User]) -> None:
        listed = {one.name: one for one in accounts}

        def account_of(name: str, depth: int = 0) -> Assoc:
            if name in self.accounts:
                return self.accounts[name]
            about = listed.get(name)
            above = about.parent if about and depth < 50 else "root"
            parent = account_of(above if above != name else "root", depth + 1)
            one = Assoc(name, parent, False, about.shares if about else 1, about or Limits(), about)
            parent.children.append(one)
            self.accounts[name] = one
            return one

        for name in listed:
            if name != "root":
                account_of(name)
        if "root" in listed:
            self.root.limits, self.root.about = listed["root"], listed["root"]
        self.user_of("root", "root")
        for user in users:
            self.default_account.setdefault(user.name, user.account)
            if user.default:
                self.default_account[user.name] = user.account
            account_of(user.account)
            self.user_of(user.name, user.account, user)

    def user_of(self, name: str, account: str, about: User | None = None) -> Assoc:
        """Return the association of a user in an account; one that nobody described has one share."""
        if (name, account) not in self.users:
            if account not in self.accounts:
                one = Assoc(account, self.root, False, 1, Limits(), None)
                self.root.children.append(one)
                self.accounts[account] = one
            parent = self.accounts[account]
            self.users[name, account] = one = Assoc(
                name, parent, True, about.shares if about else 1, about or Limits(), about
            )
            parent.children.append(one)
            self.root.tree = None
        return self.users[name, account]
