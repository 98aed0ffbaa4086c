"""Making platforms from short descriptions: exact pieces of the XML, and everything that is refused."""

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from platform_helpers import load_in_simgrid
from simgrid_available import needs_simgrid

from bridge.base.errors import BridgeError
from bridge.platform import read_platform
from bridge.platform.author import platform_xml, write_platform
from bridge.platform.check import check_platform
from bridge.platform.model import Platform
from bridge.platform.read import inspect
from bridge.platform.routes import Routes
from bridge.platform.spec import read_spec, spec_from

BASE = """
name = "m"
[nodes]
count = 12
speed = "1Gf"
[network]
"""
CLUSTER = 'topology = "cluster"\nbandwidth = "1GBps"\nlatency = "1us"\n'
FAT_TREE = 'topology = "fat-tree"\nbandwidth = "1GBps"\nlatency = "1us"\nswitches = 3\nuplink = "4GBps"\n'
TORUS = (
    'topology = "torus"\nbandwidth = "1GBps"\nlatency = "1us"\ndimensions = [3, 2]\nring = "2GBps"\n'
    'ring_latency = "3us"\n'
)
DRAGONFLY = (
    'topology = "dragonfly"\nbandwidth = "1GBps"\nlatency = "1us"\ngroups = 4\nglobal_bandwidth = "2GBps"\n'
    'io = "3GBps"\n'
)
STORAGE = (
    '[[storage]]\nname = "pfs"\nkind = "pfs"\nbandwidth = "5GBps"\nlatency = "2us"\n'
    '[[storage]]\nname = "bb"\nkind = "burst_buffer"\nbandwidth = "9GBps"\ncount = 3\ncapacity = "30TB"\n'
)


def xml(network: str, *, nodes: str = "", rest: str = "", count: int = 12) -> bytes:
    text = BASE.replace("[network]", f"{nodes}\n[network]").replace("12", str(count)) + network + rest
    return platform_xml(spec_from(tomllib.loads(text), "spec.toml"), source="spec.toml")


def make(network: str, **more: Any) -> tuple[Platform, str]:
    data = xml(network, **more)
    assert [f.code for f in check_platform("made.xml", data=data) if f.severity == "error"] == []
    platform, _ = inspect("made.xml", data=data)
    assert platform is not None
    return platform, data.decode()


def links(platform: Platform, src: str, dst: str) -> list[str]:
    return [link.name for link in Routes(platform).route(src, dst).links]


def test_cluster() -> None:
    platform, text = make(CLUSTER, rest=STORAGE)
    assert [host.name for host in platform.compute] == [f"n{i:02}" for i in range(12)]
    assert links(platform, "n03", "n11") == ["l_n03_UP", "l_n11_DOWN"]
    assert links(platform, "n03", "n03") == ["compute_loopback"]
    assert links(platform, "n03", "pfs") == ["l_n03_UP", "fabric", "l_pfs"]
    assert links(platform, "bb1", "pfs") == ["l_bb1", "l_pfs"]
    expected = {"role": "storage", "storage_kind": "burst_buffer", "capacity": "10000000000000"}
    assert platform.hosts["bb2"].properties == expected
    assert text.startswith("<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM")
    assert "Made from spec.toml by `bridge platform new`" in text


def test_management_is_clean_by_default() -> None:
    """From each host to the master: nothing but infinitely fast links, whatever the nodes' links cost."""
    for network in (CLUSTER, FAT_TREE, TORUS, DRAGONFLY):
        platform, _ = make(network, rest=STORAGE)
        routes = Routes(platform)
        for host in [*platform.compute, platform.hosts["master_host"]]:
            route = routes.route(host.name, "master_host")
            assert route.latency == 0
            assert {link.bandwidth for link in route.links} == {1e18}
            assert {link.sharing for link in route.links} == {"FATPIPE"}


def test_management_latency_on_request() -> None:
    rest = '[master]\nmanagement = "latency"\nlatency = "1ms"\nbandwidth = "100MBps"\nname = "head"\n'
    platform, _ = make(CLUSTER, rest=rest)
    assert Routes(platform).route("n00", "head").latency == 1e-3
    assert Routes(platform).route("head", "head").latency == 1e-3
    assert platform.master is not None
    assert platform.master.name == "head"


def test_fat_tree() -> None:
    platform, _ = make(FAT_TREE, rest=STORAGE)
    assert links(platform, "n00", "n03") == ["l_n00_UP", "l_n03_DOWN"]  # four nodes to a switch
    expected = ["l_n00_UP", "up_switch0_UP", "core", "up_switch2_DOWN", "l_n11_DOWN"]
    assert links(platform, "n00", "n11") == expected
    assert links(platform, "bb0", "n11") == ["l_bb0", "core", "up_switch2_DOWN", "l_n11_DOWN"]
    assert platform.links["core"].bandwidth == 1e18
    limited, _ = make(FAT_TREE + 'core = "6GBps"\n')
    assert limited.links["core"].bandwidth == 6e9


def test_torus_goes_the_shortest_way_in_the_order_of_dimensions() -> None:
    platform, _ = make(TORUS, rest=STORAGE)  # 3 × 2 switches with two nodes each
    assert [len(zone.hosts) for zone in platform.zones.values() if zone.name.startswith("torus")] == [2] * 6
    assert links(platform, "n00", "n11") == [
        "l_n00_UP",
        "ring0_torus2-0_DOWN",  # from 0 back to 2 on the ring of three
        "ring1_torus2-0_UP",  # the only cable of a ring of two
        "l_n11_DOWN",
    ]
    expected = ["l_n11_UP", "ring1_torus2-0_DOWN", "ring0_torus2-0_UP", "l_n00_DOWN"]
    assert links(platform, "n11", "n00") == expected
    assert links(platform, "n00", "pfs") == ["l_n00_UP", "fabric", "l_pfs"]


def test_dragonfly_says_that_it_is_an_approximation() -> None:
    platform, text = make(DRAGONFLY, rest=STORAGE)
    assert links(platform, "n00", "n11") == ["l_n00_UP", "global_group0_group3_UP", "l_n11_DOWN"]
    assert links(platform, "n11", "n00") == ["l_n11_UP", "global_group0_group3_DOWN", "l_n00_DOWN"]
    assert links(platform, "n11", "pfs") == ["l_n11_UP", "io_group3_UP", "l_pfs"]
    assert "An approximation of a dragonfly" in text


def test_compact_clusters_have_names_of_one_width() -> None:
    platform, text = make(CLUSTER.replace('"1us"', '"0us"'), nodes="explicit = false")
    assert [host.name for host in platform.compute] == [f"n{i}" for i in range(100, 112)]
    assert text.count("<cluster ") == 1
    assert "<host " in text  # only the master is written out
    assert text.count("<host ") == 1


def test_ideal_has_no_network_at_all() -> None:
    platform, text = make('topology = "ideal"\n')
    route = Routes(platform).route("n100", "n111")
    assert route.latency == 0
    assert {link.bandwidth for link in route.links} == {1e18}
    assert check_platform("x", data=text.encode()) == []


@pytest.mark.parametrize(
    ("topology", "parameters"),
    [("fat-tree", "2;4,3;1,2;1,1"), ("torus", "3,2,2"), ("dragonfly", "2,1;1,1;3,1;2")],
)
def test_native_topologies_warn_of_the_gateway(topology: str, parameters: str) -> None:
    network = f'topology = "{topology}"\nnative = "{parameters}"\nbandwidth = "1GBps"\nlatency = "1us"\n'
    platform, text = make(network)
    assert len(platform.compute) == 12
    codes = [f.code for f in check_platform("x", data=text.encode())]
    assert codes == ["management-latency", "gateway-compute"]


def test_power_per_job() -> None:
    """One pstate for each 5 W from 60 to 215 W, equal speeds; master and storage have wattages too."""
    nodes = "[nodes.power]\njob = { start = 60, stop = 215 }\noff = 5\n"
    platform, _ = make(CLUSTER, nodes=nodes, rest=STORAGE)
    host = platform.hosts["n00"]
    assert host.speeds == (1e9,) * 32
    values = host.properties["wattage_per_state"].split(",")
    assert (values[0], values[1], values[-1]) == ("60:60:60", "65:65:65", "215:215:215")
    assert host.properties["wattage_off"] == "5"
    for name in ("master_host", "pfs", "bb0"):
        assert platform.hosts[name].properties["wattage_per_state"] == "0:0:0"


def test_sleep_becomes_three_pstates() -> None:
    nodes = (
        '[nodes.power]\nstates = ["60:70:120"]\n'
        "sleep = { watts = 8, off_seconds = 10, off_watts = 80, on_seconds = 100, on_watts = 110 }\n"
    )
    platform, _ = make(CLUSTER, nodes=nodes)
    host = platform.hosts["n00"]
    assert host.speeds == (1e9, 1.0, 0.1, 0.01)
    assert host.properties["sleep_pstates"] == "1:2:3"
    assert host.properties["wattage_per_state"] == "60:70:120,8:8:8,80:80:80,110:110:110"


BAD = [
    ("colour = 'red'\n", "unknown field 'colour'"),
    ("[nodes]\n", "not valid TOML"),
    ("[master]\nmanagment = 'clean'\n", "Did you mean management"),
    ("[master]\nmanagement = 'fast'\n", "one of 'clean', 'latency'"),
    ("[master]\nmanagement = 'latency'\n", "master.latency"),
    ("[master]\nlatency = '1ms'\n", "neither latency nor bandwidth"),
    ("[master]\nname = 'a b'\n", "master.name"),
    ("power_budget = 5\n", "unknown field 'power_budget'"),  # lands in [network]
    ("[[storage]]\nname = 'bb'\nkind = 'burst_buffer'\nbandwidth = '1GBps'\n", "needs a capacity"),
    ("[[storage]]\nname = 'x'\nkind = 'tape'\nbandwidth = '1GBps'\n", "one of 'pfs', 'burst_buffer'"),
    ("[[storage]]\nname = 'x'\nkind = 'pfs'\nbandwidth = '1GB'\n", "unknown unit 'GB'"),
    ("[[storage]]\nname = 'x'\nkind = 'pfs'\nbandwidth = '5'\n", "has no unit"),
    ("[[storage]]\nname = 'master_host'\nkind = 'pfs'\nbandwidth = '1GBps'\n", "the same name"),
    (
        STORAGE + STORAGE.replace("pfs", "p").replace('"bb"', '"b"').replace('kind = "p"', 'kind = "pfs"'),
        "two burst",
    ),
    (STORAGE.replace("30TB", "10B"), "split equally"),
    (STORAGE.replace("count = 3", "count = 0"), "storage[1].count cannot be 0"),
    (STORAGE.replace("count = 3", "count = true"), "Write a whole number"),
]


@pytest.mark.parametrize(("rest", "words"), BAD)
def test_bad_descriptions(rest: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(BASE + CLUSTER + rest)
    with pytest.raises(BridgeError, match=re.escape(words)) as caught:
        write_platform(path, tmp_path / "out.xml")
    assert str(path) in caught.value.where
    assert sorted(p.name for p in tmp_path.iterdir()) == ["spec.toml"]  # nothing half-written


@pytest.mark.parametrize(
    ("network", "words"),
    [
        ('topology = "ring"\n', "one of 'cluster', 'fat-tree', 'torus', 'dragonfly', 'ideal'"),
        ('topology = "cluster"\nbandwidth = "1GBps"\n', "needs latency"),
        (CLUSTER + "switches = 3\n", "no meaning for topology cluster"),
        (CLUSTER + 'native = "1"\n', "no meaning for cluster"),
        (FAT_TREE.replace("= 3", "= 13"), "13 switches for 12 nodes"),
        (FAT_TREE.replace("= 3", "= -1"), "network.switches cannot be -1"),
        (TORUS.replace("[3, 2]", "[3, 0]"), "network.dimensions[1] cannot be 0"),
        (TORUS.replace("[3, 2]", '["3"]'), "Write a whole number"),
        (FAT_TREE.replace('"1GBps"', '"fast"'), "does not begin with a number"),
        (FAT_TREE.replace('"1us"', '"-1us"'), "not positive"),
    ],
)
def test_bad_networks(network: str, words: str) -> None:
    with pytest.raises(BridgeError, match=re.escape(words)):
        make(network)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ("cores = 0", "nodes.cores"),
        ("prefix = 'n1'", "digits follow"),
        ("[nodes.power]\n", "either 'job' or 'states'"),
        ("[nodes.power]\njob = { start = 60, stop = 212 }\n", "steps of 5 W"),
        ("[nodes.power]\nstates = ['1:2:3', '4:5:6']\n", "2 nodes.power.states for 1 speed"),
        ("[nodes.power]\nstates = ['1:2:3']\noff = -1\n", "nodes.power.off cannot be -1"),
        ("[nodes.power]\nstates = ['1:x:3']\n", "is not a number of watts"),
        ("[nodes.power]\nstates = ['1:2:3']\nsleep = { watts = 1 }\n", "off_seconds is missing"),
        ("[nodes.power]\nstates = ['1:2:3']\noff = nan\n", "nodes.power.off cannot be nan"),
    ],
)
def test_bad_nodes(nodes: str, words: str) -> None:
    with pytest.raises(BridgeError, match=re.escape(words)):
        xml(CLUSTER, nodes=nodes)


def test_too_many_switches_are_refused_with_an_alternative() -> None:
    with pytest.raises(BridgeError, match=r"125 switches are too many(.|\n)*network\.native"):
        xml(TORUS.replace("[3, 2]", "[5, 5, 5]"), count=1000)


def test_large_machine_with_node_latency_and_clean_management_is_refused() -> None:
    with pytest.raises(BridgeError, match="management messages cross the node's link"):
        xml(CLUSTER, count=20000)


def test_output_is_not_overwritten(tmp_path: Path) -> None:
    spec, out = tmp_path / "spec.toml", tmp_path / "out.xml"
    spec.write_text(BASE + CLUSTER)
    assert write_platform(spec, out) == []
    before = out.read_bytes()
    with pytest.raises(BridgeError, match="exists already"):
        write_platform(spec, out)
    spec.write_text(BASE + CLUSTER.replace("1us", "2us"))
    write_platform(spec, out, force=True)
    assert out.read_bytes() != before
    with pytest.raises(BridgeError, match="cannot write"):
        write_platform(spec, tmp_path / "no" / "out.xml")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.xml", "spec.toml"]


def test_unreadable_descriptions(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="cannot be read"):
        read_spec(tmp_path / "nowhere.toml")
    (tmp_path / "junk.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BridgeError, match="no text in UTF-8"):
        read_spec(tmp_path / "junk.toml")
    (tmp_path / "list.toml").write_text("nodes = 3\nname = 'x'\nnetwork = 1\n")
    with pytest.raises(BridgeError, match="is no table"):
        read_spec(tmp_path / "list.toml")


def test_yaml_needs_pyyaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text("name: m\n")
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(BridgeError, match="PyYAML"):
        read_spec(path)


def test_yaml_with_pyyaml(tmp_path: Path) -> None:
    pytest.importorskip("yaml", reason="PyYAML is not installed")
    path = tmp_path / "spec.yaml"
    network = "{topology: cluster, bandwidth: 1GBps, latency: 1us}"
    path.write_text(f"name: m\nnodes: {{count: 12, speed: 1Gf}}\nnetwork: {network}\n")
    assert read_spec(path) == spec_from(tomllib.loads(BASE + CLUSTER), path)
    path.write_text("name: [\n")
    with pytest.raises(BridgeError, match="not valid YAML"):
        read_spec(path)


@given(
    count=st.integers(1, 60),
    parts=st.integers(1, 8),
    kind=st.sampled_from(["fat-tree", "torus", "dragonfly"]),
)
@settings(max_examples=25, deadline=None)
def test_any_size_is_sound(count: int, parts: int, kind: str) -> None:
    """All hosts are there, in the order of their numbers, spread evenly, and everyone reaches everyone."""
    parts = min(parts, count)
    network = {
        "fat-tree": FAT_TREE.replace("switches = 3", f"switches = {parts}"),
        "torus": TORUS.replace("[3, 2]", f"[{parts}]"),
        "dragonfly": DRAGONFLY.replace("groups = 4", f"groups = {parts}"),
    }[kind]
    platform, text = make(network, count=count)
    assert [f for f in check_platform("x", data=text.encode()) if f.severity != "note"] == []
    assert len(platform.compute) == count
    sizes = [len(zone.hosts) for zone in platform.zones.values() if zone.hosts and zone.name != "management"]
    assert len(sizes) == parts
    assert max(sizes) - min(sizes) <= 1


@needs_simgrid
def test_simgrid_loads_what_is_made(tmp_path: Path) -> None:
    for number, network in enumerate((CLUSTER, FAT_TREE, TORUS, DRAGONFLY, 'topology = "ideal"\n')):
        spec, out = tmp_path / f"{number}.toml", tmp_path / f"{number}.xml"
        spec.write_text(BASE + network + STORAGE)
        write_platform(spec, out)
        assert len(load_in_simgrid(out)["hosts"]) == 12 + 4 + 1
        assert len(read_platform(out).compute) == 12
