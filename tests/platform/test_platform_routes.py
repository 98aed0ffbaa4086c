"""Routes: the same links and latencies as SimGrid's, in every kind of zone."""

import itertools
import random
from pathlib import Path

import pytest
from platform_helpers import CORPUS, SHIPPED, load_in_simgrid
from simgrid_available import needs_simgrid

from bridge.platform import read_platform
from bridge.platform.routes import RouteError, Routes
from bridge.platform.topologies import Dragonfly, FatTree, Torus, Wiring

HEAD = "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"


def compare(path: Path, limit: int = 2500) -> None:
    """All pairs of hosts (a sample of large ones), link by link."""
    platform = read_platform(path)
    names = sorted(platform.hosts)
    if len(names) ** 2 > limit:
        draw = random.Random(7)
        pairs = [(draw.choice(names), draw.choice(names)) for _ in range(limit)]
    else:
        pairs = list(itertools.product(names, repeat=2))
    some = names[:: max(1, len(platform.hosts) // 20)]
    loaded = load_in_simgrid(path, pairs, speeds_of=some)
    assert loaded["hosts"] == names
    for name, speeds in loaded["speeds"].items():
        assert list(platform.hosts[name].speeds) == pytest.approx(speeds, rel=1e-12)
    routes = Routes(platform)
    for (src, dst), (links, latency) in zip(pairs, loaded["routes"], strict=True):
        mine = routes.route(src, dst)
        # SimGrid's Dijkstra zones list the links of a route in another order.
        assert sorted([link.name, link.bandwidth, link.latency] for link in mine.links) == sorted(links), (
            src,
            dst,
        )
        assert mine.latency == pytest.approx(latency, abs=1e-15)


@needs_simgrid
@pytest.mark.parametrize(
    "name", ["full", "star", "cluster", "torus", "fat_tree", "dragonfly", "routing_kinds", "power"]
)
def test_corpus(name: str) -> None:
    compare(CORPUS / f"good_{name}.xml")


@needs_simgrid
@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.xml")), ids=lambda p: p.stem)
def test_shipped(path: Path) -> None:
    compare(path, 1000)


@needs_simgrid
def test_recorded_platforms(golden: Path) -> None:
    root = golden / "batsim"
    for case in ("storage_bb_pfs", "host_order_12", "master_default_loopback"):
        compare(root / case / "platform.xml")


@needs_simgrid
@pytest.mark.parametrize(
    ("topology", "parameters", "hosts", "extra"),
    [
        ("TORUS", "5", 5, ""),
        ("TORUS", "4,3,2", 24, 'limiter_link="2GBps"'),
        ("TORUS", "2,1,3", 6, 'sharing_policy="SHARED"'),
        ("FAT_TREE", "1;7;1;1", 7, ""),
        ("FAT_TREE", "2;3,4;1,3;2,2", 12, ""),
        ("FAT_TREE", "3;4,3,2;1,2,2;1,1,3", 24, 'limiter_link="2GBps" sharing_policy="SHARED"'),
        ("DRAGONFLY", "1,1;1,1;1,1;5", 5, ""),
        ("DRAGONFLY", "3,4;3,2;4,3;2", 72, 'loopback_bw="9GBps" loopback_lat="1us"'),
        ("DRAGONFLY", "4,1;2,2;5,1;1", 40, 'limiter_link="2GBps"'),
    ],
)
def test_topologies(topology: str, parameters: str, hosts: int, extra: str, tmp_path: Path) -> None:
    path = tmp_path / "platform.xml"
    path.write_text(
        f'{HEAD}<platform version="4.1">\n'
        f' <cluster id="c" prefix="n" suffix=".x" radical="100-{99 + hosts}" speed="1Gf" bw="1GBps" lat="1us"'
        f' topology="{topology}" topo_parameters="{parameters}" {extra}/>\n</platform>\n'
    )
    compare(path)


def test_links_and_cables_of_a_torus() -> None:
    torus = Torus("3,2", Wiring("t", 1e9, 1e-6, True, False))
    assert torus.size == 6
    assert torus.route(0, 1) == ["t_link_from_0_to_1_UP"]
    assert torus.route(0, 2) == ["t_link_from_2_to_0_DOWN"]  # around the ring of three
    assert torus.route(0, 4) == ["t_link_from_0_to_1_UP", "t_link_from_1_to_4_UP"]  # x first, then y
    assert len(list(torus.cables())) == 6 + 3  # two rings of three, three pairs
    assert torus.groups(4) == ("t/plane 1",)


def test_cables_of_fat_tree_and_dragonfly() -> None:
    tree = FatTree("2;4,4;1,2;1,2", Wiring("f", 1e9, 0.0, True, False))
    cables = list(tree.cables())
    assert len(cables) == 16 + 4 * 2  # leaves; four switches with two parents each
    assert {bandwidth for *_, bandwidth in cables} == {1e9, 2e9}  # two cables in parallel
    assert tree.groups(5) == ("f/level 1 group 1",)
    fly = Dragonfly("3,5;2,2;4,3;2", Wiring("d", 1e9, 0.0, True, False))
    kinds = [bandwidth for *_, bandwidth in fly.cables()]
    assert (kinds.count(1e9), kinds.count(3e9), kinds.count(2e9), kinds.count(5e9)) == (48, 6 * 6, 3 * 4, 3)
    assert fly.link_ids == 48 + 36 + 12 + 3
    assert fly.groups(0) == ("d/group 0", "d/group 0 chassis 0", "d/group 0 chassis 0 router 0")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Torus, "3,x"),
        (Torus, "0"),
        (FatTree, "2;4;1;1"),
        (FatTree, "1;4"),
        (Dragonfly, "1;1;1;1"),
        (Dragonfly, ""),
    ],
)
def test_malformed_parameters(kind: type, text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        kind(text, Wiring("z", 1e9, 0.0, True, False))


WIFI = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
 <zone id="top" routing="Full">
  <zone id="w" routing="Wifi">
   <prop id="access_point" value="ap"/>
   <host id="s0" speed="1Gf"/><host id="s1" speed="1Gf"/><router id="ap"/>
   <link id="air" bandwidth="100MBps,50MBps" latency="0s" sharing_policy="WIFI"/>
  </zone>
  <zone id="wired" routing="Full">
   <host id="m" speed="1Gf"/><host id="n" speed="1Gf"/><link id="wire" bandwidth="1GBps" latency="1ms"/>
   <route src="m" dst="n"><link_ctn id="wire"/></route>
  </zone>
  <link id="up" bandwidth="1GBps" latency="2ms"/>
  <zoneRoute src="w" dst="wired" gw_src="ap" gw_dst="m"><link_ctn id="up"/></zoneRoute>
 </zone>
</platform>"""


@needs_simgrid
def test_stations_reach_each_other_and_all_else_by_the_access_point(tmp_path: Path) -> None:
    path = tmp_path / "wifi.xml"
    path.write_text(WIFI)
    pairs = [("s0", "s1"), ("s0", "s0"), ("s0", "n"), ("n", "s1"), ("m", "n")]
    routes = Routes(read_platform(path))
    mine = [[link.name for link in routes.route(*pair).links] for pair in pairs]
    assert mine == [["air", "air"], ["air", "air"], ["air", "up", "wire"], ["wire", "up", "air"], ["wire"]]
    loaded = load_in_simgrid(path, pairs)["routes"]
    assert mine == [[name for name, _, _ in links] for links, _ in loaded]
    assert [routes.route(*pair).latency for pair in pairs] == [latency for _, latency in loaded]


def test_no_route_says_why() -> None:
    platform = read_platform(CORPUS / "good_full.xml")
    routes = Routes(platform)
    del platform.root.routes["n0", "n1"]
    with pytest.raises(RouteError, match="zone 'root' has no route from 'n0' to 'n1'"):
        routes.route("n0", "n1")


def test_numbers_of_hosts_follow_the_text(golden: Path) -> None:
    """As recorded from Batsim: node0, node1, node10, node11, node2; storage behind."""
    platform = read_platform(golden / "batsim" / "host_order_12" / "platform.xml")
    assert [host.name for host in platform.compute][:5] == ["node0", "node1", "node10", "node11", "node2"]
    ids = platform.resource_ids()
    assert (ids["node9"], ids["stA"], ids["stA10"], ids["stB"]) == (11, 12, 13, 14)
    assert platform.master is not None
    assert platform.master.name == "master_host"
