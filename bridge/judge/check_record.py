"""Where a log's own starts contradict its cluster: nodes that it does not have, and too full partitions."""

from collections.abc import Mapping

import numpy as np

from bridge.cluster.amounts_text import STRAY_NODES, UNKNOWN_NODES
from bridge.judge.check_use import check_use
from bridge.judge.checked_schedule import CheckedSchedule
from bridge.judge.jobs import demand_column

#: Kind of violation -> the column that names its nodes, and whose they are not.
_LISTED = {
    "node-unknown": (UNKNOWN_NODES, "the cluster does not have"),
    "node-partition": (STRAY_NODES, "its partition does not have"),
}


def check_listed_nodes(schedule: CheckedSchedule) -> None:
    """Count jobs that ran on nodes which the cluster, or their partition, does not have."""
    for kind, (column, whose) in _LISTED.items():
        if column in schedule.frame:
            names = schedule.frame[column].fillna("").astype(str).to_numpy(object)
            schedule.rule(kind, names != "", f"ran on {{names}}, which {whose}", names=names)


def check_partitions(schedule: CheckedSchedule, sizes: Mapping[str, int]) -> None:
    """Count starts at which more nodes of a partition are in use than it has; its jobs have whole nodes."""
    if not sizes or "partition" not in schedule.frame:
        return
    names = schedule.frame["partition"].astype(str).to_numpy(object)
    nodes = schedule.column(demand_column("nodes"))
    for name, size in sizes.items():
        mine = np.where(names == name, nodes, 0.0)
        check_use(schedule, "partition-nodes", mine, size, size, f"nodes of partition {name!r}")
