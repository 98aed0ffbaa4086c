"""What a protocol whose jobs get nodes of one machine asks of a cluster and its jobs."""

import numpy as np

from bridge.base.errors import BridgeError
from bridge.scheduler.protocol import Protocol
from bridge.worlds.fast.cluster_arrays import ClusterArrays


def check_machines(protocol: Protocol, cluster: ClusterArrays, names: list[str]) -> None:
    """Raise BridgeError for nodes, rules or a job that the protocol does not know."""
    if not protocol.one_machine:
        return
    where = f"protocol {protocol.name!r}"
    cluster.refuse_calendar(f"the protocol {protocol.name}")
    if cluster.is_shared:
        what, remedy = "gives jobs whole nodes, and jobs share nodes", "Make all partitions exclusive."
        raise BridgeError(what, where=where, remedy=remedy)
    size = np.array([len(members) for members in cluster.classes.members], np.int64)
    shapes, classes = cluster.static["shapes"], cluster.static["set_classes"]
    for number, shape in enumerate(cluster.demands.shape.tolist()):
        row = shapes[shape]
        job = f"{where}, job {names[number]}"
        if row["tasks"]:
            raise BridgeError("gives nodes to jobs, not tasks", where=job, remedy="Write the column 'nodes'.")
        if row["nodes"] > size[classes[row["first"] : row["last"]]].max(initial=0):
            what = f"no machine has the {row['nodes']} nodes that it needs"
            raise BridgeError(what, where=job, remedy="Leave it out of the log.")
