"""A picture of a platform: switches with their hosts as tiles, storage, and links as lines.

Hosts that hang on one switch are drawn as one tile with a square per host, so 16 and 4,360 hosts are legible.
Machines with more switches than can be told apart are drawn by coarser groups of locality.
"""

import dataclasses
import math
from pathlib import Path
from typing import Any

import networkx as nx

from bridge.errors import BridgeError
from bridge.platform import units
from bridge.platform.capacities import storage_capacity
from bridge.platform.graph import locality, platform_graph
from bridge.platform.model import Platform

#: More tiles and nodes than this cannot be told apart; groups are merged until fewer are left.
MAX_NODES = 48
_COLOURS = {
    "compute": "#4878a8",
    "storage": "#c9772b",
    "master": "#5b8c5a",
    "switch": "#444444",
    "link": "#8a63a8",
}
_IDEAL = 1e17  # a bandwidth from here on (bytes/s) only means "no limit"


@dataclasses.dataclass(slots=True)
class Piece:
    """One drawn node: the graph nodes that it stands for."""

    name: str
    role: str
    hosts: list[str] = dataclasses.field(default_factory=list)
    switches: list[str] = dataclasses.field(default_factory=list)
    width: float = math.inf  # bandwidth of one host's own link (bytes/s)


def pieces(platform: Platform, graph: Any) -> tuple[dict[str, Piece], Any]:
    """Merge the graph into at most `MAX_NODES` pieces, if its groups of locality allow it.

    Returns:
        The pieces by name, and the graph of pieces; edges sum up the `bandwidth` (bytes/s) of parallel links.
    """
    groups = locality(platform)
    depth = max((len(group) for group in groups.values()), default=0)
    home: dict[str, str] = {}
    # Finest first: every switch with the hosts that hang on it; then groups of locality, from fine to coarse.
    for level in [None, *range(depth, 0, -1)]:
        home = _homes(graph, groups, level)
        if len(set(home.values())) <= MAX_NODES:
            break
    found: dict[str, Piece] = {}
    for name, data in graph.nodes(data=True):
        piece = found.setdefault(home[name], Piece(home[name], data["role"]))
        if data["role"] == "compute":
            piece.role = "compute"
            piece.hosts.append(name)
            widths = [graph.edges[edge]["bandwidth"] for edge in graph.edges(name)]
            piece.width = min([piece.width, *widths])
        elif data["kind"] == "switch":
            piece.switches.append(name)
    merged: Any = nx.Graph()
    merged.add_nodes_from(found)
    for a, b, data in graph.edges(data=True):
        if home[a] == home[b]:
            continue
        total = merged.edges[home[a], home[b]]["bandwidth"] if merged.has_edge(home[a], home[b]) else 0.0
        merged.add_edge(home[a], home[b], bandwidth=total + data["bandwidth"])
    return found, merged


def _homes(graph: Any, groups: dict[str, tuple[str, ...]], level: int | None) -> dict[str, str]:
    """Graph node -> name of its piece. Level None: hosts join their only neighbour; else groups that deep."""
    home: dict[str, str] = {}
    for name, group in groups.items():
        if level is None:
            around = [other for other in graph[name] if graph.nodes[other]["kind"] == "switch"]
            home[name] = around[0] if len(around) == 1 else name
        else:
            home[name] = group[min(level, len(group)) - 1] if group else name
    for name, data in graph.nodes(data=True):
        if name in home:
            continue
        home[name] = name
        if level is None or data["kind"] != "switch":
            continue
        # A switch belongs to the group of its hosts; switches above all groups are drawn as one.
        beside = {home[other] for other in graph[name] if other in groups}
        if len(beside) == 1:
            home[name] = beside.pop()
        elif "/" in name:
            home[name] = name.partition("/")[0] + " (upper switches)"
    return home


def _contract(found: dict[str, Piece], merged: Any) -> None:
    """Replace link nodes between exactly two pieces by an edge, and drop what dangles without hosts."""
    for name in [n for n, piece in found.items() if piece.role in ("link", "switch") and not piece.hosts]:
        around = list(merged[name])
        if len(around) == 2 and found[name].role == "link" and not merged.has_edge(*around):
            bandwidth = min(merged.edges[name, other]["bandwidth"] for other in around)
            merged.add_edge(*around, bandwidth=bandwidth)
        elif len(around) > 1:
            continue
        merged.remove_node(name)
        del found[name]


def _ring(names: list[str], radius: float, start: float = math.pi / 2) -> dict[str, tuple[float, float]]:
    if len(names) == 1 and radius < 0.5:
        return {names[0]: (0.0, 0.0)}
    step = 2 * math.pi / max(1, len(names))
    return {
        n: (radius * math.cos(start - i * step), radius * math.sin(start - i * step))
        for i, n in enumerate(names)
    }


def _positions(found: dict[str, Piece], merged: Any) -> dict[str, tuple[float, float]]:
    """Where to draw: a tree in rows, groups joined with each other as a ring, anything else by distances."""
    tiles = [name for name, piece in found.items() if len(piece.hosts) > 1]
    rest = [name for name in found if name not in set(tiles)]
    alone = [name for name in rest if found[name].role == "compute"]
    joined = any(other in tiles for name in tiles for other in merged[name])
    if alone or not tiles or (joined and len(tiles) < 4):
        if merged.number_of_nodes() < 2:
            return dict.fromkeys(found, (0.0, 0.0))
        layout = nx.kamada_kawai_layout(merged, weight=None)
        scale = max(1.5, (1.3 if tiles else 0.8) * math.sqrt(len(found)))
        return {name: (float(x) * scale, float(y) * scale) for name, (x, y) in layout.items()}
    if joined:
        radius = max(1.8, 1.25 * len(tiles) / (2 * math.pi))
        middle = [name for name in rest if found[name].role != "storage"]
        servers = [name for name in rest if found[name].role == "storage"]
        places = _ring(tiles, radius) | _ring(middle, 0.3 if len(middle) > 1 else 0.0)
        return places | _ring(servers, max(0.7, radius * 0.4), math.pi / 2 - 0.3)
    columns = min(len(tiles), 16 if len(tiles) <= 16 else math.ceil(math.sqrt(2.5 * len(tiles))))
    places = {}
    for i, name in enumerate(tiles):
        row, column = divmod(i, columns)
        in_row = min(columns, len(tiles) - row * columns)
        places[name] = (column - (in_row - 1) / 2, -1.25 * row)
    distance: dict[str, int] = {}
    for tile in tiles:
        for name, far in nx.single_source_shortest_path_length(merged, tile).items():
            distance[name] = min(far, distance.get(name, far))
    for far in sorted({distance.get(name, 1) for name in rest}):
        level = [name for name in rest if distance.get(name, 1) == far]
        gap = max(1.0, min(2.0, columns / len(level)))
        for i, name in enumerate(level):
            places[name] = ((i - (len(level) - 1) / 2) * gap, 0.3 + 0.7 * far)
    return places


def _span(names: list[str]) -> str:
    names = sorted(names)
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"


def label(platform: Platform, piece: Piece) -> str:
    """What stands under a piece: name, number and span of its hosts, bandwidth, capacity."""
    if piece.role == "compute":
        if len(piece.hosts) == 1 and not piece.switches:
            return piece.hosts[0]
        lines = [
            piece.name.removesuffix("_switch").replace("/", " · "),
            f"{len(piece.hosts):,} hosts",
            _span(piece.hosts),
        ]
        if piece.width < _IDEAL:
            lines.append(f"{units.human_bandwidth(piece.width)} each")
        return "\n".join(lines)
    if piece.role == "storage":
        size = storage_capacity(platform, platform.hosts[piece.name])
        return piece.name if size is None else f"{piece.name}\n{units.human_size(size)}"
    if piece.role == "link":
        link = platform.link(piece.name)
        limit = "no limit" if link.bandwidth >= _IDEAL else units.human_bandwidth(link.bandwidth)
        return f"{piece.name.removesuffix('_UP')}\n{limit}"
    return piece.name


def _tile(axes: Any, piece: Piece, x: float, y: float, size: float, names: bool) -> None:
    """A box with one square per host."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import FancyBboxPatch, Rectangle

    count = len(piece.hosts)
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    cell = size / columns
    height = cell * rows
    box = (x - size / 2 - 0.03, y - height / 2 - 0.03)
    style = "round,pad=0.01,rounding_size=0.03"
    face = FancyBboxPatch(
        box, size + 0.06, height + 0.06, boxstyle=style, fc="#eef3f8", ec="#4878a8", lw=1, zorder=3
    )
    axes.add_patch(face)
    squares = []
    for i, name in enumerate(sorted(piece.hosts)):
        row, column = divmod(i, columns)
        left, bottom = x - size / 2 + column * cell, y + height / 2 - (row + 1) * cell
        squares.append(Rectangle((left + 0.1 * cell, bottom + 0.1 * cell), 0.8 * cell, 0.8 * cell))
        if names:
            middle = (left + cell / 2, bottom + cell / 2)
            axes.text(*middle, name, ha="center", va="center", fontsize=6, color="white", zorder=5)
    axes.add_collection(PatchCollection(squares, facecolor=_COLOURS["compute"], edgecolor="none", zorder=4))


def draw_platform(platform: Platform, path: str | Path) -> Path:
    """Draw the platform into a PNG, SVG or PDF file (by its suffix).

    The management network is left out: it carries no data.

    Raises:
        BridgeError: unknown suffix, unwritable file, or a machine with more cables than can be drawn.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patheffects import withStroke

    path = Path(path)
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise BridgeError(
            f"'{path.suffix}' is not a kind of picture", where=str(path), remedy="Use .png, .svg or .pdf."
        )
    found, merged = pieces(platform, platform_graph(platform, management=False))
    _contract(found, merged)
    places = _positions(found, merged)
    xs, ys = [p[0] for p in places.values()], [p[1] for p in places.values()]
    width, height = max(xs) - min(xs) + 1.8, max(ys) - min(ys) + 1.5
    inches = min(1.5, 22 / width, 22 / height)
    inches = max(inches, 6 / width)
    figure = Figure(figsize=(width * inches, height * inches + 0.9), dpi=110)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.01, 0.01, 0.98, (height * inches) / (height * inches + 0.9)))
    axes.set_xlim(min(xs) - 0.9, max(xs) + 0.9)
    axes.set_ylim(min(ys) - 1.0, max(ys) + 0.5)
    axes.set_aspect("equal")
    axes.axis("off")
    widths = sorted({data["bandwidth"] for *_, data in merged.edges(data=True)})
    for a, b, data in merged.edges(data=True):
        storage = "storage" in (found[a].role, found[b].role)
        line = (places[a], places[b])
        axes.plot(
            *zip(*line, strict=True),
            color=_COLOURS["storage"] if storage else "#8a8a8a",
            lw=_line_width(data["bandwidth"], widths),
            alpha=0.75,
            zorder=1,
            solid_capstyle="round",
        )
    tiles = [piece for piece in found.values() if len(piece.hosts) > 1]
    font = 7.5 if len(found) <= 40 else 6
    halo: dict[str, Any] = {"path_effects": [withStroke(linewidth=2.5, foreground="white")], "zorder": 6}
    for name, piece in found.items():
        x, y = places[name]
        text = label(platform, piece)
        if len(piece.hosts) > 1:
            few = len(piece.hosts) <= 36 and len(tiles) <= 2
            _tile(axes, piece, x, y, 0.72, few)
            axes.text(x, y - 0.44, text, ha="center", va="top", fontsize=font, **halo)
            continue
        marker = {"compute": "s", "storage": "o", "switch": "h", "link": "D"}.get(piece.role, "o")
        big = {"compute": 12, "storage": 20, "switch": 13, "link": 8}.get(piece.role, 10)
        axes.plot([x], [y], marker, ms=big, color=_COLOURS.get(piece.role, "#888888"), zorder=4)
        axes.text(x, y - 0.14, text, ha="center", va="top", fontsize=font, **halo)
    shown = [w for w in widths if w < _IDEAL][-5:]
    if shown:
        keys = [
            Line2D([], [], color="#8a8a8a", lw=_line_width(w, widths), label=units.human_bandwidth(w))
            for w in shown
        ]
        figure.legend(handles=keys, loc="upper right", fontsize=7, frameon=False, ncol=len(keys))
    title = f"{platform.root.name}: {len(platform.compute):,} compute hosts"
    figure.text(0.02, 0.985, title, ha="left", va="top", fontsize=11, weight="bold")
    try:
        figure.savefig(path)
    except OSError as error:
        raise BridgeError(
            f"cannot write the picture: {error.strerror}", where=str(path), remedy="Check the folder."
        ) from error
    return path


def _line_width(bandwidth: float, widths: list[float]) -> float:
    if bandwidth >= _IDEAL:
        return 1.0
    real = [w for w in widths if w < _IDEAL]
    low, high = math.log(min(real)), math.log(max(real))
    return 2.0 if high == low else 0.9 + 3.6 * (math.log(bandwidth) - low) / (high - low)
