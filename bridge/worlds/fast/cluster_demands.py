"""What jobs demand of a cluster: shapes with their admissible classes, and the partitions that admit jobs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bridge.base.arrays import Flags, Ints
from bridge.base.errors import BridgeError
from bridge.cluster.description import Cluster, Partition
from bridge.cluster.node_table import default_partition
from bridge.scheduler.cluster_state import ALL_OF_IT
from bridge.workload.requests import JobRequests, Texts
from bridge.worlds.fast.cluster_nodes import CORES, GPUS, MEMORY, NodeClasses
from bridge.worlds.fast.cluster_shapes import Shape, Taken, take_of_empty

#: More tasks than any node holds.
_MANY = 1 << 40


@dataclass(frozen=True)
class Demands:
    """The demands of n jobs.

    Attributes:
        partition: [n] the partition that each job waits in.
        shape: [n] its place in `shapes`.
        shapes, taken: each shape, and what it takes.
        elsewhere: [n] the job names no partition of the cluster, or others, too.
        redirected: [n] its first partition does not admit it.
    """

    partition: Ints
    shape: Ints
    shapes: tuple[Shape, ...]
    taken: tuple[Taken, ...]
    elsewhere: Flags
    redirected: Flags


def tasks_in(amounts: Ints, vector: Sequence[int], most: int) -> Ints:
    """Return how many vectors empty nodes [C, R] hold, at most `most` [C]."""
    fits = np.full(len(amounts), most, np.int64)
    for r, amount in enumerate(vector):
        if amount > 0:
            fits = np.minimum(fits, amounts[:, r] // amount)
    return fits


def _vector(
    requests: JobRequests, job: int, partition: Partition, classes: NodeClasses, whole: bool, where: str
) -> tuple[int, ...]:
    """Return the amounts of one node or task; ALL_OF_IT: all that a node has."""
    vector = [0] * len(classes.resources)
    vector[CORES] = max(int(requests.cores[job]), 1)
    memory = int(requests.memory[job])
    if memory < 0 and not whole:
        if partition.default_memory_per_core is not None:
            memory = partition.default_memory_per_core * vector[CORES]
        elif partition.default_memory_per_node is None:
            memory = ALL_OF_IT
        elif requests.tasks[job] > 0:
            raise BridgeError(
                "names tasks and no memory, and the partition's default is one of nodes",
                where=f"{where}, partition {partition.name!r}",
                remedy="State its memory_per_task, or the partition's default_memory_per_core.",
            )
        else:
            memory = partition.default_memory_per_node
    vector[MEMORY] = memory if memory >= 0 or not whole else 0
    gpus = int(requests.gpus[job])
    if gpus > 0:
        vector[GPUS] = gpus
        kind = requests.gpu_type.of(job)
        if kind:
            name = f"gpus_{kind}"
            if name not in classes.resources:
                raise BridgeError(
                    f"can never run: no node has GPUs of the type {kind!r}",
                    where=where,
                    remedy="Leave the job out, or give nodes such GPUs.",
                )
            vector[classes.resources.index(name)] = gpus
    return tuple(vector)


def _most_tasks(partition: Partition, vector: Sequence[int], tasks: int) -> int:
    """Return how many vectors a job may have on one node, by the partition's limits of a node."""
    most = _MANY if tasks > 0 else 1
    for limit, amount in (
        (partition.max_cores_per_node, vector[CORES]),
        (partition.max_memory_per_node, vector[MEMORY]),
    ):
        if limit is not None and amount > 0:
            most = min(most, limit // amount)
    return most


def build_demands(
    cluster: Cluster,
    classes: NodeClasses,
    requests: JobRequests,
    walltime: Ints,
    names: Sequence[object],
    *,
    recorded: bool = False,
) -> Demands:
    """Return the demands of n jobs; `walltime`: [n] requested times in seconds, `names`: [n] ids for errors.

    A job of several partitions goes to the first that admits it (its QOS and account, walltime and nodes),
    else to the first that holds it; one that names none that there is, to the default partition. `recorded`:
    the jobs ran, so that one that the cluster cannot hold takes what it asks for.

    Raises BridgeError: the cluster, empty and up, cannot hold a job.
    """
    from bridge.worlds.fast.cluster_rules import not_allowed, within_partition

    places = {partition.name: p for p, partition in enumerate(classes.partitions)}
    default = default_partition(cluster)
    key = cluster.scheduler.select
    shapes: dict[Shape, int] = {}
    admissible: dict[tuple[object, ...], Flags] = {}

    def shape_in(job: int, p: int) -> int:
        """Return the shape of a job in a partition."""
        partition = classes.partitions[p]
        whole = partition.exclusive or bool(requests.exclusive[job] == 1)
        tasks, nodes = int(requests.tasks[job]), int(requests.nodes[job])
        where = f"job {names[job]}"
        vector = _vector(requests, job, partition, classes, whole, where)
        most = _most_tasks(partition, vector, tasks)
        texts = _places(requests, job)
        mask = admissible.get((p, *texts))
        if mask is None:
            mask = admissible[(p, *texts)] = classes.admissible(p, *texts, where)
        order = np.flatnonzero(mask & (tasks_in(classes.amounts, vector, most) > 0))
        if key == "weight":
            order = order[np.argsort(classes.weight[order], kind="stable")]
        shape = Shape(tuple(order.tolist()), vector, nodes, tasks, most, whole)
        return shapes.setdefault(shape, len(shapes))

    first, of = _alike(requests, walltime)
    partition_of, shape_of = np.zeros((2, len(first)), np.int64)
    elsewhere, redirected = np.zeros((2, len(first)), np.bool_)
    choices = []
    for row, job in enumerate(first.tolist()):
        stated = [text.strip() for text in requests.partition.of(job).split(",") if text.strip()]
        named = [places[text] for text in stated if text in places]
        elsewhere[row] = bool(cluster.partitions) and len(named) < max(len(stated), 1)
        choices.append([(p, shape_in(job, p)) for p in named or [default]])
    taken = take_of_empty(list(shapes), classes, key)
    if recorded:
        taken = [row or _as_stated(shape) for row, shape in zip(taken, shapes, strict=True)]
    for row, (job, in_each) in enumerate(zip(first.tolist(), choices, strict=True)):
        held = [(p, s) for p, s in in_each if taken[s] is not None]
        if not held:
            raise _never(classes, requests, job, in_each[0][0], names[job])
        admitting = [
            (p, s)
            for p, s in held
            if not not_allowed(cluster, classes.partitions[p], requests, job)
            and within_partition(
                cluster, classes.partitions[p], requests, job, int(walltime[job]), _nodes(taken[s])
            )
            is None
        ]
        partition_of[row], shape_of[row] = (admitting or held)[0]
        redirected[row] = partition_of[row] != in_each[0][0]
    used, place = np.unique(shape_of, return_inverse=True)
    in_order = list(shapes)
    return Demands(
        partition_of[of],
        place[of],
        tuple(in_order[s] for s in used.tolist()),
        tuple(row for s in used.tolist() if (row := taken[s]) is not None),
        elsewhere[of],
        redirected[of],
    )


def _alike(requests: JobRequests, walltime: Ints) -> tuple[Ints, Ints]:
    """Return the first job of each set of jobs that ask for the same, and each job's set, [n].

    The walltime counts only where it decides to which of several partitions a job goes.
    """
    columns: tuple[Ints | Texts, ...] = (
        *(requests.partition, requests.constraints, requests.nodelist, requests.exclude, requests.gpu_type),
        *(requests.qos, requests.account, requests.user, requests.reservation),
        *(requests.nodes, requests.tasks, requests.cores, requests.memory, requests.gpus, requests.exclusive),
    )
    matrix = np.column_stack([column.code if isinstance(column, Texts) else column for column in columns])
    several = np.array([text.count(",") > 0 for text in requests.partition.texts] + [False], np.bool_)
    matrix = np.column_stack((matrix, np.where(several[requests.partition.code], walltime, 0)))
    _, first, of = np.unique(matrix, axis=0, return_index=True, return_inverse=True)
    return first, of.reshape(-1)


def _places(requests: JobRequests, job: int) -> tuple[str, str, str, str]:
    """Return what a job says of the nodes that it may use, beside its partition."""
    return (
        requests.constraints.of(job),
        requests.nodelist.of(job),
        requests.exclude.of(job),
        requests.reservation.of(job),
    )


def _as_stated(shape: Shape) -> Taken:
    """Return what a shape takes by itself, wherever it may be."""
    nodes = max(shape.nodes, 1)
    vectors = shape.tasks or nodes
    return Taken(nodes, tuple(max(amount, 0) * vectors for amount in shape.vector))


def _nodes(taken: Taken | None) -> int:
    return taken.nodes if taken else 0


def _never(classes: NodeClasses, requests: JobRequests, job: int, p: int, name: object) -> BridgeError:
    """Return the error for a job that the empty cluster cannot hold; it names what there is too little of."""
    partition = classes.partitions[p]
    whole = partition.exclusive or bool(requests.exclusive[job] == 1)
    where = f"job {name}"
    vector = _vector(requests, job, partition, classes, whole, where)
    texts = _places(requests, job)
    mask = classes.admissible(p, *texts, where)
    there = f"partition {partition.name!r}" + (" (features, node lists, reservation)" if any(texts) else "")
    if not mask.any():
        what = f"can never run: no node of {there} is one that it asks for"
    else:
        what = ""
        for r, amount in enumerate(vector):
            most = int(classes.amounts[mask, r].max())
            if amount > most:
                unit = "task" if requests.tasks[job] > 0 else "node"
                scale = 1000 if r >= GPUS else 1
                what = (
                    f"can never run: it asks for {amount / scale:g} {classes.resources[r]} a {unit}, "
                    f"nodes of {there} have at most {most / scale:g}"
                )
                break
        if not what:
            nodes, tasks = int(requests.nodes[job]), int(requests.tasks[job])
            counts = [f"{count} {unit}" for count, unit in ((nodes, "nodes"), (tasks, "tasks")) if count > 0]
            held = np.flatnonzero(mask & (tasks_in(classes.amounts, vector, 1) > 0))
            n = sum(len(classes.members[c]) for c in held.tolist())
            what = f"can never run: it asks for {' and '.join(counts)}, "
            what += f"and {n} nodes of {there} hold one of them"
    return BridgeError(what, where=where, remedy="Leave the job out, or give the cluster more.")
