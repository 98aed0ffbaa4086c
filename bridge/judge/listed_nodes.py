"""What a log's lists of nodes say of partitions: which nodes each has, what they share, what a node holds.

Lists name hardware: a node on which a job of a partition ran is the partition's. Nodes on which none ran are
not seen, so each estimate tells how late the last new one came.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from bridge.base.arrays import Floats, Ints
from bridge.base.counted import counted
from bridge.cluster.description import Cluster, NodeGroup, Partition
from bridge.cluster.node_ranges import short_list
from bridge.judge.inference import Estimate, PoolEstimates
from bridge.workload.ran_on import NodesOfJobs


@dataclass(frozen=True)
class ListedNodes:
    """What lists of nodes say.

    Attributes:
        of: code of a partition -> its nodes, places in `names`, ascending.
        names: of nodes.
        cores: [nodes] the most cores in use at one time, if jobs shared nodes and tell cores; else None.
        estimates: with evidence.
        notes: what else is to be said.
    """

    of: Mapping[int, Ints]
    names: tuple[str, ...]
    cores: Ints | None
    estimates: tuple[Estimate, ...]
    notes: tuple[str, ...]

    def pools(self) -> PoolEstimates:
        """Return sizes and overlaps of partitions; where jobs share nodes, those tell nothing of room."""
        if self.cores is not None:
            return PoolEstimates({}, {}, self.estimates)
        sizes = {code: len(nodes) for code, nodes in self.of.items()}
        shared = {(a, b): len(np.intersect1d(self.of[a], self.of[b])) for a, b in combinations(self.of, 2)}
        return PoolEstimates(sizes, {pair: n for pair, n in shared.items() if n}, self.estimates)


def cluster_of_lists(name: str, partitions: Mapping[int, str], listed: ListedNodes) -> Cluster:
    """Return the cluster whose partitions have the nodes of the lists; one without a list may use any."""
    users: dict[int, list[int]] = {}  # node -> codes of the partitions that have it
    for code, nodes in listed.of.items():
        for node in nodes.tolist():
            users.setdefault(node, []).append(code)
    groups: dict[tuple[tuple[int, ...], int], list[str]] = {}
    for node, of_node in users.items():
        cores = 1 if listed.cores is None else int(listed.cores[node])
        groups.setdefault((tuple(of_node), cores), []).append(listed.names[node])
    own: dict[int, list[str]] = {code: [] for code in partitions}
    described = []
    for place, ((codes, cores), names) in enumerate(sorted(groups.items())):
        label = f"group{place}"
        described.append(NodeGroup(name=label, nodes=short_list(names), cores=cores))
        for code in codes:
            own[code].append(label)
    exclusive = listed.cores is None
    return Cluster(
        name=name,
        nodes=tuple(described),
        partitions=tuple(
            Partition(name=text, nodes=tuple(own[code] or ("ALL",)), default=place == 0, exclusive=exclusive)
            for place, (code, text) in enumerate(partitions.items())
        ),
    )


def listed_nodes(
    listed: NodesOfJobs, partition: Ints, names: Mapping[int, str], start: Floats, end: Floats, cores: Ints
) -> ListedNodes:
    """Return what the lists of n jobs say of partitions `names` by code.

    `partition`, `start`, `end`, `cores` [n]: codes, s, and the cores of the whole job; -1: not recorded.
    """
    of: dict[int, Ints] = {}
    estimates: list[Estimate] = []
    for code, name in names.items():
        mine = partition == code
        nodes = listed.of(mine)
        what = f"nodes of partition {name}"
        if not len(nodes):
            estimates.append(
                Estimate(what, None, f"none of its {counted(int(mine.sum()), 'job')} names its nodes")
            )
            continue
        of[code] = nodes
        jobs, last = _last_new(listed, np.flatnonzero(mine))
        evidence = f"NodeLists of {counted(jobs, 'job')}; the last new node is of number {last:,}"
        estimates.append(Estimate(what, len(nodes), evidence))
    for a, b in combinations(of, 2):
        shared = len(np.intersect1d(of[a], of[b]))
        if shared:
            what = f"nodes that {names[a]} and {names[b]} share"
            estimates.append(Estimate(what, shared, "NodeLists of both name them"))
    most = listed.most_at_once(start, end, np.ones(len(listed.node)))
    shared_nodes = int((most > 1).sum())
    if not shared_nodes:
        return ListedNodes(of, listed.names, None, tuple(estimates), ())
    notes = [f"jobs shared {shared_nodes:,} of {len(most):,} nodes at one time (NodeList)"]
    each = np.where(cores > 0, np.ceil(cores / np.maximum(listed.counts, 1)), 1)
    if not (cores > 0).any():
        notes.append("cores are not recorded: the file gives whole nodes, so fewer jobs run at one time")
        return ListedNodes(of, listed.names, None, tuple(estimates), tuple(notes))
    notes.append("cores of a node are the most that were in use at one time; it may have more")
    of_nodes = np.repeat(each, listed.counts)
    in_use = np.maximum(listed.most_at_once(start, end, of_nodes).astype(np.int64), 1)
    return ListedNodes(of, listed.names, in_use, tuple(estimates), tuple(notes))


def _last_new(listed: NodesOfJobs, jobs: Ints) -> tuple[int, int]:
    """Return how many of these jobs name nodes, and which one of them named the last new one, from 1."""
    before, count, last = set[int](), 0, 0
    for job in jobs.tolist():
        nodes = listed.node[listed.first[job] : listed.first[job + 1]].tolist()
        count += bool(nodes)
        if not before.issuperset(nodes):
            before.update(nodes)
            last = count
    return count, last
