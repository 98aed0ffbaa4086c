"""Formats: found from the file's name, or named."""

from pathlib import Path

import pandas as pd
import pytest
from workload_strategies import record, small

from bridge.base.errors import BridgeError
from bridge.workload.formats import FORMATS, format_of, read, write


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.swf", "swf"),
        ("A.SWF.GZ", "swf"),
        ("a.b.swf.xz", "swf"),
        ("a.csv", "csv"),
        ("a.csv.bz2", "csv"),
        ("a.parquet", "parquet"),
        ("a.json", "batsim"),
        ("a.json.gz", "batsim"),
    ],
)
def test_by_name(name: str, expected: str) -> None:
    assert format_of(f"folder.csv/{name}") is FORMATS[expected]


@pytest.mark.parametrize("name", ["a", "a.txt", "a.parquet.gz", "swf", "a.gz"])
def test_other_names_tell_nothing(name: str) -> None:
    with pytest.raises(BridgeError, match=r"Known endings: \.swf, \.csv, \.parquet, \.json"):
        format_of(name)
    assert format_of(name, "swf") is FORMATS["swf"]
    with pytest.raises(BridgeError, match="unknown format 'xml'"):
        format_of(name, "xml")


@pytest.mark.parametrize("name", ["a.swf", "a.swf.gz", "a.csv", "a.csv.gz", "a.parquet", "a.json"])
def test_every_format_gives_the_table_back(tmp_path: Path, name: str) -> None:
    log = small((1, 0, 10, 2, 20), (2, 5, 7, 4, -1))
    write(log, tmp_path / name)
    again = read(tmp_path / name)
    pd.testing.assert_frame_equal(again.jobs, log.jobs)
    assert again.capacity == {"nodes": 8}
    assert read(tmp_path / name, capacity={"nodes": 4}).capacity == {"nodes": 4}


def test_malformed_lines_can_be_dropped(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(f"{record(1, 0, 1, 1)}\n1 2\n")
    assert len(read(path, "swf", malformed="drop").jobs) == 1
