"""A part of a log, as if there were nothing else: what its jobs ask of a cluster, and their conditions."""

from dataclasses import replace

import numpy as np

from bridge.worlds.fast.cluster_arrays import ClusterArrays


def part_of_arrays(arrays: ClusterArrays, first: int, last: int) -> ClusterArrays:
    """Return what the protocol slurm reads of the jobs ``first:last``; conditions on other jobs are met.

    BridgeError: the cluster changes in time, or preempts.
    """
    arrays.refuse_calendar("sampled sequences under the protocol slurm")
    part, before = slice(first, last), arrays.conditions
    begin, end = int(before.first[first]), int(before.first[last])
    records = before.records[begin:end].copy()
    inside = (records.parent >= first) & (records.parent < last)
    records.parent = np.where(inside, records.parent - first, -1)
    conditions = replace(
        before,
        first=before.first[first : last + 1] - begin,
        records=records,
        any_is_enough=before.any_is_enough[part],
        is_singleton=before.is_singleton[part],
    )
    return replace(arrays, requests=arrays.requests.take(part), jobs=arrays.jobs[part], conditions=conditions)
