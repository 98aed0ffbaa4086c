"""The load that jobs offer a cluster: their shares of its cores and GPUs, as a whole and by partition."""

from dataclasses import dataclass

import numpy as np

from bridge.base.arrays import Flags, Ints
from bridge.scheduler.state import SECOND
from bridge.workload.requests import MILLI
from bridge.workload.select import Jobs
from bridge.worlds.fast.cluster_arrays import build_cluster_arrays
from bridge.worlds.fast.cluster_nodes import CORES, GPUS, NodeClasses


@dataclass(frozen=True)
class OfferedLoad:
    """What jobs would keep busy of some nodes, from the first to the last submission.

    Attributes:
        partition: the name of the partition; empty: the whole cluster.
        nodes, cores, gpus: what there is.
        jobs: the jobs that wait in this partition.
        load, gpu_load: Σ amount · run time / (capacity · time span) of cores and of GPUs; None: there are
            none, or all jobs came at one time.
    """

    partition: str
    nodes: int
    cores: int
    gpus: int
    jobs: int
    load: float | None
    gpu_load: float | None


def offered_loads(jobs: Jobs) -> tuple[list[OfferedLoad], dict[str, int]]:
    """Return the loads of the jobs' whole cluster and of its partitions, and what was decided for jobs.

    Partitions may share nodes: each has all of its nodes. BridgeError: the cluster can never hold a job.
    """
    assert jobs.cluster is not None
    arrays = build_cluster_arrays(jobs.cluster, jobs)
    classes, demands = arrays.classes, arrays.demands
    taken = np.array([row.amounts for row in demands.taken], np.int64)[demands.shape]  # [n, R]
    span = int(np.ptp(jobs.submit))
    everywhere = np.ones(len(classes), np.bool_)
    loads = [_load("", everywhere, np.ones(len(jobs), np.bool_), taken, jobs.run, span, classes)]
    for p, partition in enumerate(classes.partitions):
        in_it = demands.partition == p
        loads.append(_load(partition.name, classes.in_partition[p], in_it, taken, jobs.run, span, classes))
    return loads, dict(arrays.notes)


def _load(
    name: str, there: Flags, mine: Flags, taken: Ints, run: Ints, span: int, classes: NodeClasses
) -> OfferedLoad:
    count = np.array([len(members) for members in classes.members], np.int64) * there
    cores, gpus = (int(count @ classes.amounts[:, r]) for r in (CORES, GPUS))

    def share(resource: int, capacity: int) -> float | None:
        if not span or not capacity:
            return None
        return float(taken[mine, resource] @ (run[mine] / SECOND)) / (capacity * span / SECOND)

    jobs = int(np.count_nonzero(mine))
    return OfferedLoad(
        name, int(count.sum()), cores, gpus // MILLI, jobs, share(CORES, cores), share(GPUS, gpus)
    )
