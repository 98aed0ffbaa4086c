"""A picture of a platform: switches with their hosts as tiles, storage, and links as lines.

Hosts that hang on one switch are drawn as one tile with a square per host, so 16 and 4,360 hosts are legible.
Machines with more switches than can be told apart are drawn by coarser groups of locality.
"""

import dataclasses
import math
from pathlib import Path
from typing import Any

import networkx as nx
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Rectangle
from matplotlib.patheffects import withStroke

from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.base.files import atomic_write
from bridge.platform import units
from bridge.platform.capacities import storage_capacity
from bridge.platform.graph import locality, platform_graph
from bridge.platform.model import Platform

#: More tiles and nodes than this cannot be told apart; groups are merged until fewer are left.
MAX_NODES = 48
#: Role -> colour, marker and its size.
_STYLES = {"compute": ("#4878a8", "s", 12), "storage": ("#c9772b", "o", 20), "master": ("#5b8c5a", "o", 10)}
_STYLES |= {"switch": ("#444444", "h", 13), "link": ("#8a63a8", "D", 8)}
_OTHER = ("#888888", "o", 10)
_GREY = "#8a8a8a"
_IDEAL = 1e17  # a bandwidth from here on (bytes/s) only means "no limit"
_Places = dict[str, tuple[float, float]]


@dataclasses.dataclass(slots=True)
class Piece:
    name: str
    role: str
    hosts: list[str] = dataclasses.field(default_factory=list)
    switches: list[str] = dataclasses.field(default_factory=list)
    width: float = math.inf  # bandwidth of one host's own link (bytes/s)


def pieces(platform: Platform, graph: Any) -> tuple[dict[str, Piece], Any]:
    """Merge the graph into at most `MAX_NODES` pieces, if its groups of locality allow it.

    Returns the pieces by name, and their graph; edges sum up the `bandwidth` (bytes/s) of parallel links.
    """
    groups = locality(platform)
    depth = max((len(group) for group in groups.values()), default=0)
    home: dict[str, str] = {}
    # Finest first: every switch with the hosts that hang on it; then groups of locality, from fine to coarse.
    for level in [None, *range(depth, 0, -1)]:
        home = _homes(graph, groups, level)
        if len(set(home.values())) <= MAX_NODES:
            break
    pieces_by_name: dict[str, Piece] = {}
    for name, data in graph.nodes(data=True):
        piece = pieces_by_name.setdefault(home[name], Piece(home[name], data["role"]))
        if data["role"] == "compute":
            piece.role = "compute"
            piece.hosts.append(name)
            piece.width = min([piece.width, *(graph.edges[edge]["bandwidth"] for edge in graph.edges(name))])
        elif data["kind"] == "switch":
            piece.switches.append(name)
    merged: Any = nx.Graph()
    merged.add_nodes_from(pieces_by_name)
    for a, b, bandwidth in graph.edges(data="bandwidth"):
        if home[a] != home[b]:
            before = merged.get_edge_data(home[a], home[b], {"bandwidth": 0.0})["bandwidth"]
            merged.add_edge(home[a], home[b], bandwidth=before + bandwidth)
    return pieces_by_name, merged


def _homes(graph: Any, groups: dict[str, tuple[str, ...]], level: int | None) -> dict[str, str]:
    """Graph node -> name of its piece. Level None: hosts join their only neighbour; else groups that deep."""
    home: dict[str, str] = {name: name for name in graph}
    for name, group in groups.items():
        if level is None:
            around = [other for other in graph[name] if graph.nodes[other]["kind"] == "switch"]
            home[name] = around[0] if len(around) == 1 else name
        elif group:
            home[name] = group[min(level, len(group)) - 1]
    for name, kind in graph.nodes(data="kind") if level is not None else ():
        if kind == "switch" and name not in groups:
            # A switch belongs to the group of its hosts; switches above all groups are drawn as one.
            beside = {home[other] for other in graph[name] if other in groups}
            if len(beside) == 1:
                home[name] = beside.pop()
            elif "/" in name:
                home[name] = name.partition("/")[0] + " (upper switches)"
    return home


def _contract(pieces_by_name: dict[str, Piece], merged: Any) -> None:
    """Replace link nodes between exactly two pieces by an edge, and drop what dangles without hosts."""
    for name in [
        n for n, piece in pieces_by_name.items() if piece.role in ("link", "switch") and not piece.hosts
    ]:
        around = list(merged[name])
        if len(around) == 2 and pieces_by_name[name].role == "link" and not merged.has_edge(*around):
            bandwidth = min(merged.edges[name, other]["bandwidth"] for other in around)
            merged.add_edge(*around, bandwidth=bandwidth)
        elif len(around) > 1:
            continue
        merged.remove_node(name)
        del pieces_by_name[name]


def _ring(names: list[str], radius: float, start: float = math.pi / 2) -> _Places:
    if len(names) == 1 and radius < 0.5:
        return {names[0]: (0.0, 0.0)}
    angles = (start - i * 2 * math.pi / len(names) for i in range(len(names)))
    return {n: (radius * math.cos(a), radius * math.sin(a)) for n, a in zip(names, angles, strict=True)}


def _row(names: list[str], height: float, gap: float = 1.0) -> _Places:
    return {name: ((i - (len(names) - 1) / 2) * gap, height) for i, name in enumerate(names)}


def _positions(pieces_by_name: dict[str, Piece], merged: Any) -> _Places:
    """Where to draw: a tree in rows, groups joined with each other as a ring, anything else by distances."""
    tiles = [name for name, piece in pieces_by_name.items() if len(piece.hosts) > 1]
    rest = [name for name in pieces_by_name if name not in tiles]
    alone = any(pieces_by_name[name].role == "compute" for name in rest)
    joined = any(other in tiles for name in tiles for other in merged[name])
    if alone or not tiles or (joined and len(tiles) < 4):
        if merged.number_of_nodes() < 2:
            return dict.fromkeys(pieces_by_name, (0.0, 0.0))
        layout = nx.kamada_kawai_layout(merged, weight=None)
        scale = max(1.5, (1.3 if tiles else 0.8) * math.sqrt(len(pieces_by_name)))
        return {name: (float(x) * scale, float(y) * scale) for name, (x, y) in layout.items()}
    if joined:
        radius = max(1.8, 1.25 * len(tiles) / (2 * math.pi))
        servers = [name for name in rest if pieces_by_name[name].role == "storage"]
        middle = [name for name in rest if name not in servers]
        places = _ring(tiles, radius) | _ring(middle, 0.3 if len(middle) > 1 else 0.0)
        return places | _ring(servers, max(0.7, radius * 0.4), math.pi / 2 - 0.3)
    columns = min(len(tiles), 16 if len(tiles) <= 16 else math.ceil(math.sqrt(2.5 * len(tiles))))
    places = {}
    for start in range(0, len(tiles), columns):
        places |= _row(tiles[start : start + columns], -1.25 * (start // columns))
    distance = nx.multi_source_dijkstra_path_length(merged, set(tiles), weight=None)
    for far in sorted({distance.get(name, 1) for name in rest}):
        level = [name for name in rest if distance.get(name, 1) == far]
        places |= _row(level, 0.3 + 0.7 * far, max(1.0, min(2.0, columns / len(level))))
    return places


def label(platform: Platform, piece: Piece) -> str:
    """Return the text under a piece: name, number and span of its hosts, bandwidth, capacity."""
    if piece.role == "compute":
        first, last = min(piece.hosts), max(piece.hosts)
        if first == last and not piece.switches:
            return first
        name = piece.name.removesuffix("_switch").replace("/", " · ")
        lines = [
            name,
            counted(len(piece.hosts), "host"),
            first if first == last else f"{first} … {last}",
        ]
        lines += [f"{units.human(piece.width, 'B/s')} each"] if piece.width < _IDEAL else []
        return "\n".join(lines)
    if piece.role == "storage":
        size = storage_capacity(platform, platform.hosts[piece.name])
        return piece.name if size is None else f"{piece.name}\n{units.human(size, 'B')}"
    if piece.role == "link":
        link = platform.link(piece.name)
        limit = "no limit" if link.bandwidth >= _IDEAL else units.human(link.bandwidth, "B/s")
        return f"{piece.name.removesuffix('_UP')}\n{limit}"
    return piece.name


def _tile(axes: Any, hosts: list[str], x: float, y: float, size: float, names: bool) -> None:
    columns = math.ceil(math.sqrt(len(hosts)))
    cell = size / columns
    height = cell * math.ceil(len(hosts) / columns)
    colour = _STYLES["compute"][0]
    corner = (x - size / 2 - 0.03, y - height / 2 - 0.03)
    round_box: dict[str, Any] = {"boxstyle": "round,pad=0.01,rounding_size=0.03", "fc": "#eef3f8", "lw": 1}
    axes.add_patch(FancyBboxPatch(corner, size + 0.06, height + 0.06, zorder=3, ec=colour, **round_box))
    squares = []
    for i, name in enumerate(sorted(hosts)):
        left, bottom = x - size / 2 + i % columns * cell, y + height / 2 - (i // columns + 1) * cell
        squares.append(Rectangle((left + 0.1 * cell, bottom + 0.1 * cell), 0.8 * cell, 0.8 * cell))
        if names:
            style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 6, "color": "white"}
            axes.text(left + cell / 2, bottom + cell / 2, name, zorder=5, **style)
    axes.add_collection(PatchCollection(squares, facecolor=colour, edgecolor="none", zorder=4))


def draw_platform(platform: Platform, path: str | Path) -> Path:
    """Draw the platform, but for the management network, into a PNG, SVG or PDF file (by its suffix)."""
    path = Path(path)
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        what = f"'{path.suffix}' is not a kind of picture"
        raise BridgeError(what, where=str(path), remedy="Use .png, .svg or .pdf.")
    pieces_by_name, merged = pieces(platform, platform_graph(platform, management=False))
    _contract(pieces_by_name, merged)
    places = _positions(pieces_by_name, merged)
    xs, ys = zip(*places.values(), strict=True)
    width, height = max(xs) - min(xs) + 1.8, max(ys) - min(ys) + 1.5
    inches = max(min(1.5, 22 / width, 22 / height), 6 / width)
    figure = Figure(figsize=(width * inches, height * inches + 0.9), dpi=110)
    axes = figure.add_axes((0.01, 0.01, 0.98, (height * inches) / (height * inches + 0.9)))
    axes.set(xlim=(min(xs) - 0.9, max(xs) + 0.9), ylim=(min(ys) - 1.0, max(ys) + 0.5), aspect="equal")
    axes.axis("off")
    widths = sorted(set(nx.get_edge_attributes(merged, "bandwidth").values()))
    for a, b, bandwidth in merged.edges(data="bandwidth"):
        colour = (
            _STYLES["storage"][0] if "storage" in (pieces_by_name[a].role, pieces_by_name[b].role) else _GREY
        )
        style: dict[str, Any] = {"alpha": 0.75, "zorder": 1, "solid_capstyle": "round", "color": colour}
        axes.plot(*zip(places[a], places[b], strict=True), lw=_line_width(bandwidth, widths), **style)
    _draw_pieces(axes, platform, pieces_by_name, places)
    line_widths = [(w, _line_width(w, widths)) for w in widths if w < _IDEAL][-5:]
    keys = [Line2D([], [], color=_GREY, lw=lw, label=units.human(w, "B/s")) for w, lw in line_widths]
    if keys:
        figure.legend(handles=keys, loc="upper right", fontsize=7, frameon=False, ncol=len(keys))
    title = f"{platform.root.name}: {len(platform.compute):,} compute hosts"
    figure.text(0.02, 0.985, title, ha="left", va="top", fontsize=11, weight="bold")
    with atomic_write(path) as out:
        figure.savefig(out, format=path.suffix[1:].lower())
    return path


def _draw_pieces(axes: Any, platform: Platform, pieces_by_name: dict[str, Piece], places: _Places) -> None:
    few = sum(len(piece.hosts) > 1 for piece in pieces_by_name.values()) <= 2
    style: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": 7.5 if len(pieces_by_name) <= 40 else 6}
    style["path_effects"] = [withStroke(linewidth=2.5, foreground="white")]
    for name, piece in pieces_by_name.items():
        (x, y), below = places[name], 0.14
        if len(piece.hosts) > 1:
            _tile(axes, piece.hosts, x, y, 0.72, few and len(piece.hosts) <= 36)
            below = 0.44
        else:
            colour, marker, size = _STYLES.get(piece.role, _OTHER)
            axes.plot([x], [y], marker, ms=size, color=colour, zorder=4)
        axes.text(x, y - below, label(platform, piece), zorder=6, **style)


def _line_width(bandwidth: float, widths: list[float]) -> float:
    if bandwidth >= _IDEAL:
        return 1.0
    real = [math.log(w) for w in widths if w < _IDEAL]
    low, high = min(real), max(real)
    return 2.0 if high == low else 0.9 + 3.6 * (math.log(bandwidth) - low) / (high - low)
