"""Clusters from tables of nodes, by a column map."""

from pathlib import Path

import pytest

from bridge.base.errors import BridgeError
from bridge.cluster.imported import ImportedCluster
from bridge.cluster.mapped_nodes import import_nodes

MAP = """\
[nodes]
name = "sn"
cores = { column = "milli", scale = 0.001 }
memory = "mem"
gpus = "gpu"
gpu_type = "model"
features = "model"
partition = "queue"
"""
TABLE = "sn,milli,mem,gpu,model,queue,rack\na0,8000,64G,2,T4,x,1\na1,8000,64G,2,T4,x,1\nb,4000,,0,,y,2\n"


def read(folder: Path, table: str = TABLE, text: str = MAP) -> ImportedCluster:
    (folder / "map.toml").write_text(text)
    (folder / "nodes.csv").write_text(table)
    return import_nodes(folder / "nodes.csv", str(folder / "map.toml"))


def test_equal_nodes_are_groups(tmp_path: Path) -> None:
    imported = read(tmp_path)
    first, second = imported.cluster.nodes
    assert (first.nodes, first.cores, first.memory, first.gpus) == ("a[0-1]", 8, 65536, {"T4": 2})
    assert first.features == ("T4",)
    assert (second.nodes, second.cores, second.memory, second.gpus) == ("b", 4, None, {})
    assert [(p.name, p.nodes, p.exclusive) for p in imported.cluster.partitions] == [
        ("x", ("a0", "a1"), False),
        ("y", ("b",), False),
    ]
    assert imported.unhonoured == {"nodes with columns that the map does not use: rack": 3}


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("a1,8000", "a1,8500", 3, "its cores is 8.5"),
        ("a1,", "a0,", 3, "node 'a0' is listed twice"),
        ("a1,8000", "a1,", 3, "a node has no cores"),
        ("a1,8000", "a1,few", 3, "'few' is no number"),
    ],
)
def test_bad_rows_are_refused_with_their_line(
    tmp_path: Path, old: str, new: str, line: int, says: str
) -> None:
    with pytest.raises(BridgeError, match=says) as error:
        read(tmp_path, TABLE.replace(old, new))
    assert error.value.where == f"{tmp_path}/nodes.csv:{line}"


def test_a_map_without_nodes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="does not tell of nodes"):
        read(tmp_path, text='[jobs]\nsubmit = "a"\n')
    with pytest.raises(BridgeError, match="a node has no field 'speed'") as error:
        read(tmp_path, text=MAP + 'speed = "mem"\n')
    assert error.value.where == f"{tmp_path}/map.toml:9"
