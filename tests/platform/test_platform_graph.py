"""Graph, groups of locality and picture."""

from pathlib import Path

import networkx as nx
import pytest
from platform_helpers import CORPUS, SHIPPED

from bridge.errors import BridgeError
from bridge.platform import read_platform
from bridge.platform.graph import locality, platform_graph, write_graph
from bridge.platform.picture import MAX_NODES, draw_platform, label, pieces


def test_star() -> None:
    graph = platform_graph(read_platform(SHIPPED / "teaching-16.xml"))
    assert nx.is_connected(graph)
    roles = [data["role"] for _, data in graph.nodes(data=True)]
    assert (roles.count("compute"), roles.count("storage"), roles.count("master")) == (16, 2, 1)
    cable = graph.edges["n00", "compute_switch"]
    assert (cable["bandwidth"], cable["link"]) == (125e6, "l_n00_UP")
    assert cable["latency"] == pytest.approx(50e-6)
    assert graph.nodes["compute_switch"]["backbone"] == 1e9
    assert graph.nodes["n00"]["speed"] == 1e10


def test_without_management() -> None:
    graph = platform_graph(read_platform(SHIPPED / "teaching-16.xml"), management=False)
    assert sorted(n for n, data in graph.nodes(data=True) if data["kind"] != "host") == [
        "compute_switch",
        "storage_switch",
    ]
    assert nx.is_connected(graph)


def test_shared_links_of_a_full_zone_are_nodes() -> None:
    graph = platform_graph(read_platform(CORPUS / "good_full.xml"), management=False)
    assert nx.shortest_path(graph, "n0", "n1") == ["n0", "l0", "l1", "n1"]
    assert nx.shortest_path(graph, "n0", "pfs") == ["n0", "l0", "lp", "pfs"]
    assert graph.nodes["lp"]["bandwidth"] == 1e9


def test_fat_tree_of_zones() -> None:
    graph = platform_graph(read_platform(SHIPPED / "sp2-128.xml"), management=False)
    path = nx.shortest_path(graph, "n000", "n127")
    assert path == [
        "n000",
        "switch0_switch",
        "up_switch0_UP",
        "core",
        "up_switch7_UP",
        "switch7_switch",
        "n127",
    ]
    assert graph.edges["switch0_switch", "up_switch0_UP"]["bandwidth"] == 880e6


@pytest.mark.parametrize(
    ("name", "switches", "edges"),
    [("fat_tree", 4 + 2, 16 + 4 * 2), ("dragonfly", 8, 16 + 4 * 1 + 2 * 2 + 1), ("torus", 0, 16 + 8 + 8)],
)
def test_native_topologies_are_drawn_out(name: str, switches: int, edges: int) -> None:
    graph = platform_graph(read_platform(CORPUS / f"good_{name}.xml"), management=False)
    assert sum(data["kind"] == "switch" for _, data in graph.nodes(data=True)) == switches
    assert graph.number_of_edges() == edges
    assert nx.is_connected(graph)


def test_locality() -> None:
    theta = locality(read_platform(SHIPPED / "theta-4360.xml"))
    assert len(theta) == 4360
    assert theta["n10000"] == theta["n10363"] == ("group00",)
    assert theta["n14359"] == ("group11",)
    fly = locality(read_platform(CORPUS / "good_dragonfly.xml"))
    assert fly["n10"][:2] == ("compute", "compute/group 0")
    assert fly["n10"] == fly["n11"] != fly["n12"]
    assert fly["n10"][:3] == fly["n12"][:3]


def test_graphml(tmp_path: Path) -> None:
    path = write_graph(read_platform(SHIPPED / "sp2-128.xml"), tmp_path / "graph.graphml")
    again = nx.read_graphml(path)
    assert again.number_of_nodes() == platform_graph(read_platform(SHIPPED / "sp2-128.xml")).number_of_nodes()
    assert [p.name for p in tmp_path.iterdir()] == ["graph.graphml"]
    with pytest.raises(BridgeError, match="cannot write"):
        write_graph(read_platform(CORPUS / "good_full.xml"), tmp_path / "no" / "graph.graphml")


@pytest.mark.parametrize(
    ("name", "tiles"), [("teaching-16", 1), ("sp2-128", 8), ("cluster-512", 16), ("theta-4360", 12)]
)
def test_pictures_have_few_pieces_that_hold_all_hosts(name: str, tiles: int) -> None:
    platform = read_platform(SHIPPED / f"{name}.xml")
    found, merged = pieces(platform, platform_graph(platform, management=False))
    with_hosts = [piece for piece in found.values() if piece.hosts]
    assert len(with_hosts) == tiles
    assert sorted(h for piece in with_hosts for h in piece.hosts) == [h.name for h in platform.compute]
    assert len(found) <= MAX_NODES
    assert nx.is_connected(merged)


def test_a_large_torus_is_drawn_by_planes(tmp_path: Path) -> None:
    text = (CORPUS / "good_torus.xml").read_text()
    path = tmp_path / "torus.xml"
    path.write_text(text.replace("4,2,2", "5,5,8").replace("10-25", "10-209"))
    platform = read_platform(path)
    found, _ = pieces(platform, platform_graph(platform, management=False))
    assert sorted(len(piece.hosts) for piece in found.values()) == [5] * 40  # rows: 40 fit, 200 do not


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_drawing(suffix: str, tmp_path: Path) -> None:
    path = draw_platform(read_platform(SHIPPED / "teaching-16.xml"), tmp_path / f"picture.{suffix}")
    head = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(head)


@pytest.mark.parametrize("name", ["full", "routing_kinds", "torus", "dragonfly", "cluster", "power"])
def test_every_kind_of_platform_can_be_drawn(name: str, tmp_path: Path) -> None:
    path = draw_platform(read_platform(CORPUS / f"good_{name}.xml"), tmp_path / "picture.png")
    assert path.stat().st_size > 5000


def test_labels() -> None:
    platform = read_platform(SHIPPED / "theta-4360.xml")
    found, _ = pieces(platform, platform_graph(platform, management=False))
    assert label(platform, found["group00_switch"]) == "group00\n364 hosts\nn10000 … n10363\n10 GB/s each"
    assert label(platform, found["bb"]) == "bb\n1.26 PB"
    assert label(platform, found["pfs"]) == "pfs"


def test_unknown_kinds_of_pictures_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="not a kind of picture"):
        draw_platform(read_platform(CORPUS / "good_full.xml"), tmp_path / "picture.gif")
