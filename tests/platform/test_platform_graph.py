"""Graph and groups of locality."""

from pathlib import Path

import networkx as nx
import pytest
from platform_helpers import CORPUS, SHIPPED

from bridge.base.errors import BridgeError
from bridge.platform import read_platform
from bridge.platform.graph import locality, platform_graph, write_graph


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
    expected = ["compute_switch", "storage_switch"]
    assert sorted(n for n, data in graph.nodes(data=True) if data["kind"] != "host") == expected
    assert nx.is_connected(graph)


def test_shared_links_of_a_full_zone_are_nodes() -> None:
    graph = platform_graph(read_platform(CORPUS / "good_full.xml"), management=False)
    assert nx.shortest_path(graph, "n0", "n1") == ["n0", "l0", "l1", "n1"]
    assert nx.shortest_path(graph, "n0", "pfs") == ["n0", "l0", "lp", "pfs"]
    assert graph.nodes["lp"]["bandwidth"] == 1e9


def test_fat_tree_of_zones() -> None:
    graph = platform_graph(read_platform(SHIPPED / "sp2-128.xml"), management=False)
    path = nx.shortest_path(graph, "n000", "n127")
    expected = ["n000", "switch0_switch", "up_switch0_UP", "core", "up_switch7_UP", "switch7_switch", "n127"]
    assert path == expected
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
