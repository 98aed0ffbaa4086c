"""A cluster as tables: groups of nodes, partitions, which nodes they have, and the rules."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.base.counted import counted
from bridge.cluster.description import Cluster, NodeGroup, Partition
from bridge.cluster.limits import Limits
from bridge.cluster.node_table import NodeTable, build_node_table, default_partition, partitions_of
from bridge.report.table import Table

if TYPE_CHECKING:
    from bridge.judge.offered_load import OfferedLoad


def tables_of_cluster(cluster: Cluster) -> list[Table]:
    table = build_node_table(cluster)
    partitions = partitions_of(cluster)
    return [
        _nodes(cluster, table),
        _partitions(cluster, partitions, table),
        *([_overlap(cluster, partitions, table)] if len(partitions) > 1 else []),
        *_limits(cluster),
        *_calendar(cluster),
    ]


def _nodes(cluster: Cluster, table: NodeTable) -> Table:
    out = Table(
        ("nodes", "count", "cores", "memory, GiB", "GPUs", "features", "weight", "state"),
        title=f"{cluster.name}: {counted(len(table), 'node')}",
        words=(0, 4, 5, 7),
    )
    for g, group in enumerate(cluster.nodes):
        count = int(np.count_nonzero(table.group == g))
        memory = "–" if group.memory is None else f"{group.memory / 1024:,.0f}"
        features = ", ".join(group.features)
        names = group.nodes or f"{group.name}[0-{count - 1}]"
        out.add(
            names, f"{count:,}", group.cores, memory, gpus_text(group), features, group.weight, group.state
        )
    return out


def gpus_text(group: NodeGroup) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in group.gpus.items())


def _partitions(cluster: Cluster, partitions: Iterable[Partition], table: NodeTable) -> Table:
    usual, rows = default_partition(cluster), []
    for p, one in enumerate(partitions):
        members, _ = table.indices(one.nodes)
        groups = [cluster.nodes[g] for g in table.group[members].tolist()]
        rows.append(
            {
                "partition": f"{one.name}*" if p == usual else one.name,
                "nodes": f"{len(members):,}",
                "cores": f"{sum(group.cores for group in groups):,}",
                "GPUs": f"{sum(sum(group.gpus.values()) for group in groups):,}",
                "use": "whole" if one.exclusive else "shared",
                "limit": "" if one.max_time is None else duration_text(one.max_time),
                "max nodes": "" if one.max_nodes is None else one.max_nodes,
                "tier": one.tier,
                "QOS": one.qos or ", ".join(one.allow_qos),
                "state": one.state,
            }
        )
    silent = {"GPUs": "0", "limit": "", "max nodes": "", "tier": 1, "QOS": "", "state": "up"}
    heads = [name for name in rows[0] if any(row[name] != silent.get(name) for row in rows)]
    words = [n for n, name in enumerate(heads) if name in ("partition", "use", "QOS", "state")]
    out = Table(heads, title="partitions (* is the default one)", words=words)
    for row in rows:
        out.add(*(row[name] for name in heads))
    return out


def load_table(loads: Iterable["OfferedLoad"], name: str) -> Table:
    """Return the load that a log offers a cluster, by partition; no column of GPUs where there are none."""
    rows = list(loads)
    gpus = any(row.gpus for row in rows)
    heads = ["partition", "nodes", "cores", *["GPUs"] * gpus, "jobs", "load of cores"]
    table = Table([*heads, *["load of GPUs"] * gpus], title=f"offered load on {name}", words=(0,))
    for row in rows:
        amounts = (row.nodes, row.cores, *(row.gpus,) * gpus, row.jobs)
        shares = (row.load, *(row.gpu_load,) * gpus)
        texts = ("" if share is None else f"{share:.3f}" for share in shares)
        table.add(row.partition or "all", *(f"{amount:,}" for amount in amounts), *texts)
    return table


def duration_text(seconds: int) -> str:
    """Return a time limit as Slurm writes it: ``2-00:00:00``, ``00:30:00``."""
    days, rest = divmod(seconds, 86_400)
    clock = f"{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock


def _overlap(cluster: Cluster, partitions: Iterable[Partition], table: NodeTable) -> Table:
    """Return how many nodes of each group a partition has."""
    out = Table(("partition", *(group.name for group in cluster.nodes)), title="nodes of each group")
    for one in partitions:
        members, _ = table.indices(one.nodes)
        counts = np.bincount(table.group[members], minlength=len(cluster.nodes)).tolist()
        out.add(one.name, *(f"{count:,}" if count else "·" for count in counts))
    return out


def _limits(cluster: Cluster) -> list[Table]:
    rows: list[tuple[str, str, Limits]] = [("QOS", one.name, one) for one in cluster.qos]
    rows += [("account", one.name, one) for one in cluster.accounts]
    rows += [("user", f"{one.name} in {one.account}", one) for one in cluster.users]
    stated = [(kind, name, text) for kind, name, one in rows if (text := limits_text(one))]
    tables = []
    if stated:
        out = Table(("", "name", "limits"), title="limits", words=(1, 2))
        for row in stated:
            out.add(*row)
        tables.append(out)
    if cluster.licenses:
        out = Table(("licence", "count"))
        for license_ in cluster.licenses:
            out.add(license_.name, f"{license_.count:,}")
        tables.append(out)
    return tables


def limits_text(limits: Limits) -> str:
    words = []
    for field in fields(limits):
        value: Any = getattr(limits, field.name)
        if not field.name.startswith(("grp_", "max_", "min_")) or value is None or value == {}:
            continue
        text = " ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, Mapping) else str(value)
        words.append(f"{field.name} {duration_text(value) if field.name == 'max_wall' else text}")
    return ", ".join(words)


def _calendar(cluster: Cluster) -> list[Table]:
    rows = [(one.start, f"reservation {one.name} until {one.end:,} s") for one in cluster.reservations]
    for event in cluster.calendar:
        what = ", ".join((*event.nodes, *filter(None, (event.partition, event.state, event.license))))
        whose = " ".join(filter(None, (event.qos, event.account, event.user, event.limit)))
        value = f" {event.value}" if event.event in ("limit", "licenses") else ""
        rows.append((event.time, f"{event.event}: {' '.join(filter(None, (what, whose)))}{value}"))
    if not rows:
        return []
    out = Table(("s", "what"), title="calendar", words=(1,))
    for time, what in sorted(rows, key=lambda row: row[0]):
        out.add(f"{time:,}", what)
    return [out]
