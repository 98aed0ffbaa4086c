"""What a record says of a site: where its jobs ran, and what they had of the nodes; nothing is scheduled.

Where the record contradicts the cluster it is played all the same, and a note says so.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from bridge.base.arrays import Flags, Floats, Ints, text_column
from bridge.base.counted import counted
from bridge.cluster.amounts_text import PER_NODE, STRAY_NODES, UNKNOWN_NODES, amounts_text
from bridge.cluster.node_ranges import short_list
from bridge.scheduler.cluster_state import AFTER, SINGLETON, UNCOUNTED
from bridge.scheduler.state import NEVER, SECOND
from bridge.workload.peaks import most_at_once
from bridge.workload.ran_on import NodesOfJobs, nodes_of_texts
from bridge.workload.requests import MILLI, JobRequests, Texts
from bridge.workload.select import Jobs
from bridge.worlds.fast.cluster_conditions import build_conditions
from bridge.worlds.fast.cluster_demands import Demands, build_demands
from bridge.worlds.fast.cluster_nodes import CORES, GPUS, MEMORY, NodeClasses, build_node_classes

#: Columns of a log: the cores and GPUs that a job had in all.
_WHOLE = {CORES: "cores", GPUS: "gpus"}
#: So many names are in a note.
_MOST = 3


@dataclass(frozen=True)
class RecordedNodes:
    """A cluster, and what n jobs had of it by the record.

    Attributes:
        classes: its nodes; `demands`: partitions of jobs, and whether they share nodes.
        ran_on: the nodes, by their names in the log; `node`: [k] the cluster's node of each name there, -1:
            it has none.
        count: [n] nodes that each job had; `amounts`: [n, R] what it had in all.
        eligible: [n] µs, when the job could start by the log; -1: never.
        notes: what the record does not say, and where it contradicts the cluster.
    """

    requests: JobRequests
    classes: NodeClasses
    demands: Demands
    ran_on: NodesOfJobs
    node: Ints
    count: Ints
    amounts: Ints
    eligible: Ints
    notes: tuple[str, ...] = ()

    @property
    def shares(self) -> Flags:
        """Which jobs share nodes with others [n]."""
        whole = np.array([shape.whole for shape in self.demands.shapes], np.bool_)
        return ~whole[self.demands.shape]

    @property
    def owner(self) -> Ints:
        """The job of each place in the lists of nodes."""
        return self.ran_on.owner

    @property
    def places(self) -> Ints:
        """The cluster's node at each place in the lists, -1: it has none."""
        places: Ints = self.node[self.ran_on.node]
        return places

    def capacity(self) -> dict[str, int]:
        return self.classes.capacity()

    def partition_sizes(self) -> dict[str, int]:
        """Return how many nodes the partitions have whose jobs have whole nodes."""
        sizes = self.classes.in_partition @ np.array([len(nodes) for nodes in self.classes.members], np.int64)
        rows = zip(self.classes.partitions, sizes.tolist(), strict=True)
        return {partition.name: size for partition, size in rows if partition.exclusive}

    def node_indices(self, which: npt.NDArray[Any]) -> list[Ints]:
        """Return the nodes of jobs, ascending; none of a job whose nodes the log does not say."""
        places, first = self.places, self.ran_on.first
        parts = (places[first[j] : first[j + 1]] for j in which.tolist())
        return [np.sort(part[part >= 0]) for part in parts]

    @cached_property
    def of_places(self) -> Ints:
        """What jobs had of the node at each place in the lists [places, R], evenly if they shared nodes."""
        owner = self.owner
        each, rest = np.divmod(self.amounts[owner], np.maximum(self.ran_on.counts, 1)[owner][:, None])
        rank = np.arange(len(owner)) - self.ran_on.first[owner]
        even = each + (rank[:, None] < rest)
        own = self.classes.amounts[self.classes.class_of[self.places]]
        amounts: Ints = np.where(self.shares[owner][:, None], even, np.where(own < UNCOUNTED, own, 0))
        return amounts

    def _per_node(self, j: int) -> str:
        part = slice(int(self.ran_on.first[j]), int(self.ran_on.first[j + 1]))
        places = self.places[part]
        kept = places >= 0
        order = np.argsort(places[kept], kind="stable")
        return amounts_text(self.of_places[part][kept][order], UNCOUNTED)

    def _names(self, which: npt.NDArray[Any], mask: Flags) -> Any:
        """Return the lists of those nodes of jobs for which a mask [places] is true."""
        import pyarrow as pa

        texts = [""] * len(which)
        rows = {int(j): k for k, j in enumerate(which.tolist())}
        at = np.flatnonzero(mask)
        of: dict[int, list[str]] = {}
        for j, name in zip(self.owner[at].tolist(), self.ran_on.node[at].tolist(), strict=True):
            of.setdefault(j, []).append(self.ran_on.names[name])
        for j, names in of.items():
            if j in rows:
                texts[rows[j]] = short_list(names)
        return text_column(pa.array(texts, pa.string()))

    @property
    def is_stray(self) -> Flags:
        """Which places in the lists are nodes that the job's partition does not have."""
        places = self.places
        inside = self.classes.in_partition[self.demands.partition[self.owner], self.classes.class_of[places]]
        stray: Flags = (places >= 0) & ~inside
        return stray

    def columns(self, which: npt.NDArray[Any]) -> dict[str, Callable[[], Any]]:
        """Return what a jobs table on a cluster has more than one of a pool; nobody knows reasons."""
        import pyarrow as pa

        def texts(column: Texts) -> Any:
            return text_column(pa.array([column.of(j) for j in which.tolist()], pa.string()))

        names = [partition.name for partition in self.classes.partitions]
        shares = self.shares[which]

        def per_node() -> Any:
            pairs = zip(which.tolist(), shares.tolist(), strict=True)
            return text_column(pa.array([self._per_node(j) if own else "" for j, own in pairs], pa.string()))

        def eligible() -> Floats:
            return np.where(self.eligible[which] >= 0, self.eligible[which] / SECOND, np.nan)

        partition = [names[p] for p in self.demands.partition[which].tolist()]
        empty = [""] * len(which)
        columns: dict[str, Callable[[], Any]] = {
            "requested_number_of_resources": lambda: self.count[which],
            "eligible_time": eligible,
            "episode": lambda: np.zeros(len(which), np.int64),
            "partition": lambda: text_column(pa.array(partition, pa.string())),
            "reason": lambda: text_column(pa.array(empty, pa.string())),
            "reasons": lambda: text_column(pa.array(empty, pa.string())),
            "qos": lambda: texts(self.requests.qos),
            "account": lambda: texts(self.requests.account),
            "shares_nodes": lambda: shares.astype(np.int64),
            "cores": lambda: self.amounts[which, CORES],
            "gpus": lambda: self.amounts[which, GPUS] / MILLI,
            PER_NODE: per_node,
        }
        for name, mask in ((UNKNOWN_NODES, self.places < 0), (STRAY_NODES, self.is_stray)):
            if mask.any():
                columns[name] = partial(self._names, which, mask)
        return columns


def build_recorded_nodes(jobs: Jobs) -> RecordedNodes:
    """Return what the record of jobs, which all have one, says of their cluster.

    BridgeError: a list of nodes, a dependency or the cluster cannot be read.
    """
    assert jobs.cluster is not None
    assert jobs.requests is not None
    cluster, requests = jobs.cluster, _without_rules(jobs.requests)
    classes = build_node_classes(cluster, [])
    requests = _known_gpus(requests, classes)
    walltime = -(-jobs.request // SECOND)
    names = jobs.id.tolist()
    demands = build_demands(cluster, classes, requests, walltime, names, recorded=True)
    ran_on = None if jobs.ran_on is None else nodes_of_texts(jobs.ran_on, lambda j: f"job {jobs.id[j]}")
    if ran_on is None:
        ran_on = NodesOfJobs(np.zeros(len(jobs) + 1, np.int64), np.zeros(0, np.int64), ())
    node = np.array([classes.table.index.get(name, -1) for name in ran_on.names], np.int64)
    taken = np.array([row.nodes for row in demands.taken], np.int64)[demands.shape]
    record = RecordedNodes(
        jobs.requests,
        classes,
        demands,
        ran_on,
        node,
        np.where(ran_on.counts > 0, ran_on.counts, taken),
        np.zeros((len(jobs), len(classes.resources)), np.int64),
        _eligible(jobs),
    )
    record = replace(record, amounts=_amounts(jobs, record))
    return replace(record, notes=(*_notes(jobs, record),))


def _without_rules(requests: JobRequests) -> JobRequests:
    """Return requests without what decides where and when a job may start: it did start."""
    nothing = Texts(np.full(len(requests), -1, np.int64))
    return replace(
        requests,
        memory=np.maximum(requests.memory, 0),
        constraints=nothing,
        nodelist=nothing,
        exclude=nothing,
        reservation=nothing,
    )


def _known_gpus(requests: JobRequests, classes: NodeClasses) -> JobRequests:
    """Return requests without types of GPUs that no node has."""
    there = np.array([f"gpus_{kind}" in classes.resources for kind in requests.gpu_type.texts] + [False])
    types = requests.gpu_type
    return replace(requests, gpu_type=replace(types, code=np.where(there[types.code], types.code, -1)))


def _amounts(jobs: Jobs, record: RecordedNodes) -> Ints:
    """Return what jobs had in all [n, R]: their whole nodes, or what the log says, or they asked for."""
    demands, ran_on, classes = record.demands, record.ran_on, record.classes
    amounts = np.array([row.amounts for row in demands.taken], np.int64)[demands.shape]
    scale = np.maximum(record.count, 1) / np.maximum([row.nodes for row in demands.taken], 1)[demands.shape]
    is_of_nodes = np.array([shape.tasks for shape in demands.shapes], np.int64)[demands.shape] == 0
    amounts = np.where(is_of_nodes[:, None], np.rint(amounts * scale[:, None]), amounts).astype(np.int64)
    for r, name in _WHOLE.items():
        if name in jobs.extra:
            values = jobs.extra[name] * (MILLI if r == GPUS else 1)
            amounts[:, r] = np.where(record.shares & (values > 0), values, amounts[:, r])
    places, owned = record.places, np.where(classes.amounts < UNCOUNTED, classes.amounts, 0)
    of_nodes = np.zeros_like(amounts)
    np.add.at(of_nodes, record.owner, np.where((places >= 0)[:, None], owned[classes.class_of[places]], 0))
    sizes = np.array([len(nodes) for nodes in classes.members], np.int64) * classes.in_partition
    mean = (sizes @ owned) / sizes.sum(axis=1)[:, None]  # of a node of each partition
    counted = np.rint(mean[demands.partition] * record.count[:, None]).astype(np.int64)
    of_nodes = np.where((ran_on.counts > 0)[:, None], of_nodes, counted)
    return np.where(record.shares[:, None], amounts, of_nodes)


def _eligible(jobs: Jobs) -> Ints:
    """Return when jobs could start by the log [n], µs; -1: never.

    That is the latest of submission, the column ``eligible``, begin time, end of a hold, and the recorded
    starts or ends of the jobs that they depend on.
    """
    assert jobs.requests is not None
    requests, since = jobs.requests, jobs.submit.copy()
    stated = jobs.extra.get("eligible")
    if stated is not None:
        times = np.where(stated >= 0, stated * SECOND - jobs.origin, -1.0)
        since = np.maximum(since, np.rint(times).astype(np.int64))
    conditions = build_conditions(requests, jobs.id.tolist())
    start = jobs.submit + jobs.logged_wait
    for j in np.flatnonzero(np.diff(conditions.first)).tolist():
        rows = conditions.records[int(conditions.first[j]) : int(conditions.first[j + 1])]
        rows = rows[(rows.parent >= 0) & (rows.kind != SINGLETON)]
        times = np.where(rows.kind == AFTER, start[rows.parent], start[rows.parent] + jobs.run[rows.parent])
        if len(times):
            times = times + rows.delay
            since[j] = max(since[j], int(times.min() if conditions.any_is_enough[j] else times.max()))
    for limit in (requests.begin, requests.hold_until):
        since = np.where(limit == NEVER, -1, np.where(since < 0, since, np.maximum(since, limit)))
    return since


def _notes(jobs: Jobs, record: RecordedNodes) -> Iterator[str]:
    """Yield what the record does not say, and where it contradicts the cluster, a line each."""
    n, without = len(jobs), int((record.ran_on.counts == 0).sum())
    if without:
        yield f"the log does not say on which nodes {without:,} of {n:,} jobs ran: they are only counted"
    if (elsewhere := int(record.demands.elsewhere.sum())) > 0:
        yield (
            f"{counted(elsewhere, 'job names', 'jobs name')} no partition of the cluster: the "
            "default partition taken"
        )
    cluster = jobs.cluster
    assert cluster is not None
    if cluster.calendar or cluster.reservations or cluster.failures.mean_time_between:
        yield "the record is played as it is: calendar, reservations and failures change nothing"
    for mask, what in (
        (record.places < 0, "nodes that the cluster does not have"),
        (record.is_stray, "nodes outside their partition"),
    ):
        if mask.any():
            names = sorted({record.ran_on.names[k] for k in record.ran_on.node[mask].tolist()})
            yield f"{counted(len(np.unique(record.owner[mask])), 'job')} ran on {what}: {_some(names)}"
    start = (jobs.submit + jobs.logged_wait) / SECOND
    end = start + jobs.run / SECOND
    yield from _overfull_nodes(record, start, end)
    names = [partition.name for partition in record.classes.partitions]
    for name, size in record.partition_sizes().items():
        mine = record.demands.partition == names.index(name)
        if (peak := most_at_once(start[mine], end[mine], record.count[mine])) > size:
            yield f"partition {name!r}: {counted(peak, 'node')} in use at one time, it has {size:,}"
    if record.classes.is_shared:
        resource, used, there = "cores", record.amounts[:, CORES], record.capacity()["cores"]
    else:
        resource, used, there = "nodes", record.count, int(jobs.capacity[0])
    if (peak := most_at_once(start, end, used)) > there:
        yield f"{peak:,} {resource} in use at one time, the cluster has {there:,}"


def _overfull_nodes(record: RecordedNodes, start: Floats, end: Floats) -> Iterator[str]:
    """Yield a note if nodes were given out twice, or beyond what they have."""
    ran_on = record.ran_on
    if not len(ran_on.names):
        return
    beyond: dict[str, str] = {}
    own = record.classes.amounts[record.classes.class_of[record.node]]
    for r, scale in ((CORES, 1), (MEMORY, 1), (GPUS, MILLI)):
        most = ran_on.most_at_once(start, end, record.of_places[:, r].astype(np.float64))
        for k in np.flatnonzero((record.node >= 0) & (most > own[:, r])).tolist():
            text = f"{most[k] / scale:g} of {own[k, r] / scale:g} {record.classes.resources[r]}"
            beyond.setdefault(ran_on.names[k], f"{ran_on.names[k]} ({text})")
    if beyond:
        some = _some([beyond[name] for name in sorted(beyond)])
        yield f"{counted(len(beyond), 'node')} had more in use at one time than they have: {some}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST]) + (f" and {len(names) - _MOST:,} more" if len(names) > _MOST else "")
