"""The site that a running Slurm describes, as far as one agent decides for it: some of its partitions.

Slurm itself checks accounts, limits of QOS and the users of reservations. So they are no part of this site.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any

from bridge.base.errors import BridgeError
from bridge.cluster.description import (
    AdvanceReservation,
    Cluster,
    NodeGroup,
    Partition,
    PriorityConfig,
    SchedulerParameters,
)
from bridge.cluster.imported import ImportNotes, mending
from bridge.cluster.limits import Qos
from bridge.cluster.node_groups import format_nodes
from bridge.cluster.node_table import NodeTable, build_node_table, names_of
from bridge.cluster.sacctmgr import read_qos_text
from bridge.cluster.slurm_reservations import reservation_lines, reservation_of
from bridge.cluster.slurm_site import import_slurm_text

#: What errors call the texts.
_SITE, _RESERVATIONS = Path("scontrol show"), Path("scontrol show reservation")


def read_live_site(
    text: str, reservations: str, partitions: Sequence[str], qos: str = "", *, preempts: bool = False
) -> Cluster:
    """Return some partitions of a Slurm, their nodes, all of them up, licences, and advance reservations.

    `text`: settings of slurm.conf, then what `scontrol show` prints of nodes, partitions and licences.
    `preempts`: with the rules by which jobs are preempted; `qos`: what `sacctmgr -P show qos` prints, where
    these need it. Instants are seconds since 1970. BridgeError: there is no such partition, or a line is not
    what it should be.
    """
    whole = import_slurm_text(text, _SITE).cluster
    rules = SchedulerParameters(select=whole.scheduler.select)
    if preempts:
        rules = replace(
            rules,
            preempt=whole.scheduler.preempt,
            preempt_mode=whole.scheduler.preempt_mode,
            preempt_exempt_time=whole.scheduler.preempt_exempt_time,
        )
    table = build_node_table(whole)
    named = {row.name: row for row in whole.partitions}
    if missing := [name for name in partitions if name not in named]:
        what = "has no nodes, or does not exist"
        raise BridgeError(what, where=f"partition {missing[0]!r}", remedy="See `sinfo -s`.")
    own = [_partition(named[name], table, by_tier=rules.preempt == "partition") for name in partitions]
    members = {table.names[n] for row in own for n in table.indices(row.nodes)[0].tolist()}
    return Cluster(
        name=whole.name,
        nodes=tuple(_groups(whole.nodes, members)),
        partitions=tuple(own),
        licenses=whole.licenses,
        priority=PriorityConfig(),
        qos=tuple(_qos_rules(qos)) if rules.preempt == "qos" else (),
        scheduler=rules,
        reservations=tuple(_read_reservations(reservations, table, members)),
    )


def _qos_rules(text: str) -> list[Qos]:
    """Return of each QOS whose jobs may be preempted in its favour, and what becomes of its own ones."""
    return [
        Qos(
            name=row.name,
            priority=row.priority,
            preempt=row.preempt,
            preempt_mode=row.preempt_mode,
            grace_time=row.grace_time,
        )
        for row in read_qos_text(text, "sacctmgr -P show qos")
    ]


def _partition(row: Partition, table: NodeTable, *, by_tier: bool) -> Partition:
    """Return a partition with what decides where its jobs run; jobs state their memory themselves.

    `by_tier`: jobs are preempted as partitions say; under preempt/qos, these say nothing of it.
    """
    rules: dict[str, Any] = {}
    if by_tier:
        rules = {"tier": row.tier, "preempt_mode": row.preempt_mode, "grace_time": row.grace_time}
    nodes = [table.names[n] for n in table.indices(row.nodes)[0].tolist()]
    return Partition(
        name=row.name,
        nodes=(format_nodes(nodes),),
        state=row.state,
        exclusive=row.exclusive,
        max_time=row.max_time,
        min_nodes=row.min_nodes,
        max_nodes=row.max_nodes,
        max_cores_per_node=row.max_cores_per_node,
        max_memory_per_node=row.max_memory_per_node,
        **rules,
    )


def _groups(groups: Sequence[NodeGroup], members: Collection[str]) -> list[NodeGroup]:
    kept = [(group, [name for name in names_of(group) if name in members]) for group in groups]
    return [
        replace(group, nodes=format_nodes(names), count=None, state="up") for group, names in kept if names
    ]


def _read_reservations(text: str, table: NodeTable, members: Collection[str]) -> list[AdvanceReservation]:
    """Return the reservations of these nodes, for whoever Slurm lets name them."""
    rows = []
    for place, line in reservation_lines(_RESERVATIONS, text):
        with mending(place):
            row = reservation_of(line, ImportNotes(), UTC, 0.0)
            nodes = [] if row is None else [table.names[n] for n in table.indices(row.nodes)[0].tolist()]
        own = [name for name in nodes if name in members]
        if row is not None and own:
            rows.append(replace(row, nodes=(format_nodes(own),), users=(), accounts=()))
    return rows


def mark_out(cluster: Cluster, out: Collection[str]) -> Cluster:
    """Return a cluster in which these nodes are down; each node keeps its index."""
    groups: list[NodeGroup] = []
    for group in cluster.nodes:
        runs: list[list[str]] = []
        for name in names_of(group):
            if runs and (runs[-1][0] in out) == (name in out):
                runs[-1].append(name)
            else:
                runs.append([name])
        groups += [
            replace(group, nodes=format_nodes(run), count=None, state="down" if run[0] in out else "up")
            for run in runs
        ]
    return replace(cluster, nodes=tuple(groups))
