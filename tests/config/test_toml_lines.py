"""Lines of a TOML text by the paths of its fields."""

import pytest

from bridge.base.errors import BridgeError
from bridge.cluster import Cluster
from bridge.config import from_tables, parse_toml
from bridge.config.toml_lines import TomlLines

TEXT = """\
name = "site"  # a comment
[[nodes]]
cores = 4
gpus = { a100 = 2 }
features = [
  "a",  # ]
  "b = 3",
]

  [[nodes]]
  "cores" = 8
[nodes.gpus]
v100 = 1
[[partitions]]
name = '''
p
q = 1
'''
max_time = 60
[priority]
tres.cores = 1.0
"""


def test_lines_of_tables_and_keys() -> None:
    lines = TomlLines.of_text(TEXT, "f.toml").lines
    assert lines == {
        "name": 1,
        "nodes[0]": 2,
        "nodes[0].cores": 3,
        "nodes[0].gpus": 4,
        "nodes[0].features": 5,
        "nodes[1]": 10,
        "nodes[1].cores": 11,
        "nodes[1].gpus": 12,
        "nodes[1].gpus.v100": 13,
        "partitions[0]": 14,
        "partitions[0].name": 15,
        "partitions[0].max_time": 19,
        "priority": 20,
        "priority.tres": 21,
        "priority.tres.cores": 21,
    }


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("nodes[1].cores", "f.toml:11"),
        ("nodes[0].gpus.a100", "f.toml:4"),
        ("nodes[0].features[1]", "f.toml:5"),
        ("nodes[0].memory", "f.toml:2"),
        ("nodes[7].memory", "f.toml"),
        ("licenses", "f.toml"),
        ("", "f.toml"),
    ],
)
def test_the_place_of_a_field_is_its_line_or_that_of_what_holds_it(path: str, place: str) -> None:
    assert TomlLines.of_text(TEXT, "f.toml").place(path) == place


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ('"cores" = 8', '"cores" = 0', 11, "nodes[1].cores cannot be 0"),
        ("v100 = 1", "v100 = 0", 13, "nodes[1].gpus.v100 cannot be 0"),
        ("max_time = 60", "max_tim = 60", 19, "unknown field 'max_tim' in partitions[0]"),
        ('  "a",', "  3,", 5, "nodes[0].features[0] cannot be 3"),
        ("tres.cores = 1.0", "tres = 4", 21, "priority.tres cannot be 4"),
    ],
)
def test_an_error_names_file_and_line(old: str, new: str, line: int, what: str) -> None:
    text = TEXT.replace(old, new)
    with pytest.raises(BridgeError) as error:
        from_tables(Cluster, parse_toml(text.encode(), "f.toml"), TomlLines.of_text(text, "f.toml"))
    assert error.value.where == f"f.toml:{line}"
    assert error.value.what == what


def test_a_missing_field_is_told_where_its_table_stands() -> None:
    text = TEXT.replace("name = '''\np\nq = 1\n'''\n", "")
    with pytest.raises(BridgeError, match=r"f\.toml:14: partitions\[0\]\.name is missing"):
        from_tables(Cluster, parse_toml(text.encode(), "f.toml"), TomlLines.of_text(text, "f.toml"))
