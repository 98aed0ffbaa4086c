"""Why jobs wait, in Slurm's words, as a schedule and the rules of a cluster tell."""

from typing import Any

import numpy as np

from bridge.cluster import reasons
from bridge.scheduler.cluster_state import (
    COUNT_RUNNING,
    COUNT_SUBMITTED,
    GONE_CANCELLED,
    GONE_REFUSED,
    HELD_UNTIL,
    NOT_HELD,
)
from bridge.scheduler.state import NEVER
from bridge.worlds.fast.cluster_arrays import ClusterArrays


def why_never(state: Any, b: int, cluster: ClusterArrays, first: int, last: int) -> dict[int, str]:
    """Return why the jobs of an episode that is over never started, by their places in it."""
    never = np.flatnonzero(state.jobs.start[b, : last - first] < 0)
    return {j: _why(state, b, cluster, first, j) for j in never.tolist()}


def _why(state: Any, b: int, cluster: ClusterArrays, first: int, j: int) -> str:
    job = state.node_jobs[b, j]
    names = cluster.reasons
    if job.gone == GONE_REFUSED:
        if job.refuse > 0:
            return names[job.refuse - 1]
        return reasons.SUBMIT_LIMIT
    if job.gone == GONE_CANCELLED:
        return reasons.DEPENDENCY_NEVER
    if job.held == HELD_UNTIL:
        held = cluster.requests.hold_until[first + j] == NEVER
        return reasons.HELD if held else reasons.BEGIN_TIME
    lane = state.lanes[job.lane]
    if job.held == NOT_HELD or job.for_ever > 0:
        if lane.is_down:
            return reasons.PARTITION_DOWN
        if job.for_ever > 0:
            return names[job.for_ever - 1]
        for k in range(lane.first, lane.last):
            of = state.counted[k]
            amount = int(state.quantity[b, j, of.quantity])
            if of.tested and of.kind != COUNT_SUBMITTED and of.kind == COUNT_RUNNING:
                if int(state.counter_used[b, of.counter]) + amount > of.limit:
                    return names[of.reason]
        return reasons.RESOURCES
    return reasons.DEPENDENCY
