"""Pictures of platforms: few pieces, all hosts, labels, and the files."""

import sys
from pathlib import Path

import networkx as nx
import pytest

from bridge.base.errors import BridgeError
from bridge.platform import read_platform
from bridge.platform.graph import platform_graph
from bridge.report.platform_picture import MAX_NODES, draw_platform, label, pieces

sys.path.append(str(Path(__file__).parents[1] / "platform"))
from platform_helpers import CORPUS, SHIPPED


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
