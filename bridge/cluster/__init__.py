"""What a site is: nodes, partitions, rules and a calendar, as plain data (`Cluster`, in `cluster.toml`).

`description` and `limits` hold the dataclasses, `clusterfile` reads and writes files of them, `node_table`
expands the nodes, `request_texts` parses what jobs ask for in Slurm's words.
"""

from bridge.cluster.description import (
    AdvanceReservation,
    CalendarEvent,
    Cluster,
    Failures,
    NodeGroup,
    Partition,
    PriorityConfig,
    SchedulerParameters,
)
from bridge.cluster.limits import Account, Association, License, Limits, Qos, User

__all__ = [
    "Account",
    "AdvanceReservation",
    "Association",
    "CalendarEvent",
    "Cluster",
    "Failures",
    "License",
    "Limits",
    "NodeGroup",
    "Partition",
    "PriorityConfig",
    "Qos",
    "SchedulerParameters",
    "User",
]
