"""A picture of a cluster: its nodes by index, in groups, and a lane for each partition that has them."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from bridge.base.arrays import Ints
from bridge.base.counted import counted
from bridge.cluster.description import Cluster, NodeGroup
from bridge.cluster.node_table import build_node_table, partitions_of
from bridge.report.cluster_tables import duration_text, gpus_text
from bridge.report.plots import save

_COLOURS = ("#4878a8", "#c9772b", "#5b8c5a", "#8a63a8", "#b04a5a", "#6f6f6f", "#3f9c9c", "#a08a2c")
#: Nodes that take no job, and partitions that start none.
_OUT = "#d0d0d0"


def draw_cluster(cluster: Cluster, path: Path) -> None:
    """Draw a cluster to a file (.png or .svg); BridgeError: another suffix, or it cannot be written."""
    save(cluster_picture(cluster), path)


def cluster_picture(cluster: Cluster) -> Figure:
    """Return the picture: node index to the right, groups above, below them one lane a partition."""
    table, partitions = build_node_table(cluster), partitions_of(cluster)
    figure = Figure(figsize=(10, 1.6 + 0.45 * (len(partitions) + 1)), layout="constrained")
    axes = figure.add_subplot()
    for g, group in enumerate(cluster.nodes):
        members = np.flatnonzero(table.group == g)
        colour = _COLOURS[g % len(_COLOURS)] if group.state == "up" else _OUT
        axes.broken_barh(_spans(members), (-0.4, 0.8), facecolors=colour, edgecolor="white")
        middle = (int(members[0]) + int(members[-1]) + 1) / 2
        if len(members) >= len(table) / 12:
            axes.text(middle, 0, _group_text(group, len(members)), ha="center", va="center", fontsize=7)
    for p, one in enumerate(partitions, start=1):
        members, _ = table.indices(one.nodes)
        for g in np.unique(table.group[members]).tolist():
            colour = _COLOURS[g % len(_COLOURS)] if one.state == "up" else _OUT
            mine = members[table.group[members] == g]
            hatch = "" if one.exclusive else "////"
            axes.broken_barh(_spans(mine), (p - 0.35, 0.7), facecolors=colour, edgecolor="white", hatch=hatch)
    axes.set_yticks(range(len(partitions) + 1), ["nodes", *map(_partition_text, partitions)])
    axes.set_xlim(0, len(table))
    axes.invert_yaxis()
    axes.set_xlabel("node index")
    axes.set_title(
        f"{cluster.name}: {counted(len(table), 'node')}; hatched: jobs share nodes; grey: not up", fontsize=9
    )
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _spans(members: Ints) -> list[tuple[int, int]]:
    breaks = np.flatnonzero(np.diff(members) > 1) + 1
    return [(int(part[0]), len(part)) for part in np.split(members, breaks) if len(part)]


def _group_text(group: NodeGroup, count: int) -> str:
    memory = "" if group.memory is None else f"\n{group.memory / 1024:,.0f} GiB"
    gpus = f", {gpus_text(group)}" if group.gpus else ""
    return f"{group.name} ×{count:,}\n{group.cores} cores{gpus}{memory}"


def _partition_text(one: object) -> str:
    name, limit = getattr(one, "name", ""), getattr(one, "max_time", None)
    return f"{name}\n≤ {duration_text(limit)}" if limit else str(name)
