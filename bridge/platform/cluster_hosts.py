"""The nodes of a cluster as the hosts of a platform, and the hosts of a platform as a cluster."""

import re
from pathlib import Path
from typing import Any

from bridge.base.errors import BridgeError
from bridge.cluster.description import Cluster
from bridge.cluster.imported import ImportedCluster
from bridge.cluster.node_groups import group_nodes
from bridge.cluster.node_table import build_node_table
from bridge.cluster.source import read_cluster
from bridge.platform.read import read_platform
from bridge.platform.spec import Hosts, Spec, read_spec_document, spec_from

#: The rest of a platform of which only the nodes are stated: one switch.
_REST: dict[str, Any] = {
    "nodes": {"speed": "1Tf"},
    "network": {"topology": "cluster", "bandwidth": "12.5GBps", "latency": "1us"},
}


def hosts_of(cluster: str) -> Hosts:
    """Return names and cores of a cluster's nodes, by index; BridgeError: a name is none of a host."""
    site = read_cluster(cluster)
    table = build_node_table(site, cluster)
    for name in table.names:
        if not re.fullmatch(r"[\w.-]+", name, re.ASCII):
            what = f"node {name[:40]!r} has a name that no host can have"
            raise BridgeError(what, where=cluster, remedy="Use letters, digits, '.', '-' and '_'.")
    return [
        (name, site.nodes[group].cores) for name, group in zip(table.names, table.group.tolist(), strict=True)
    ]


def spec_with_nodes(path: str | Path | None, cluster: str, count: int) -> Spec:
    """Return a description whose number of hosts is a cluster's; without one all are at one switch.

    Raises BridgeError: as `read_spec`, or the description states other hosts.
    """
    where = cluster if path is None else str(path)
    document: Any = {"name": "cluster", **_REST} if path is None else read_spec_document(path)
    nodes = document.get("nodes") if isinstance(document, dict) else None
    if not isinstance(nodes, dict):
        return spec_from(document, where)  # which refuses it
    for name, value in (("count", count), ("cores", None), ("prefix", None), ("explicit", True)):
        if nodes.get(name, value) != value:
            what = f"nodes.{name} is {nodes[name]}, and the hosts are those of the cluster {cluster}"
            raise BridgeError(what, where=where, remedy=f"Leave out nodes.{name}, or --cluster.")
    return spec_from({**document, "nodes": {**nodes, "count": count}}, where)


def import_platform(path: Path) -> ImportedCluster:
    """Return the cluster of a platform's compute hosts, in Batsim's order; errors as `read_platform`."""
    platform = read_platform(path)
    nodes = {host.name: {"cores": max(host.cores, 1)} for host in platform.compute}
    notes = ("a platform tells of no memory, GPUs, features and partitions",)
    return ImportedCluster(Cluster(name=platform.root.name, nodes=group_nodes(nodes)), {}, notes)
