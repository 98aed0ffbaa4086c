"""Any table by a column map: what becomes of its cells, and every mistake with its line."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bridge.base.errors import BridgeError
from bridge.cluster.table_map import open_map
from bridge.workload.mapped import read_mapped
from bridge.workload.table import Workload

MAP = """\
about = "a site"
ignore = ["node"]

[jobs]
job_id = "job"
user_name = "who"
submit = "sub"
start = { column = "beg", nothing = "never" }
end = "fin"
req_time = { column = "limit", scale = 60 }
procs = "n"
memory_per_node = "mem"
gpus_per_node = { column = "gpu", times = "milli", scale = 0.001 }
cores_per_node = { column = "tres", key = "1", per = "n", round = "up" }
status = { column = "how", codes = { ok = 1 }, otherwise = 0 }
exclusive = { value = 0 }
constraints = { column = "feature", optional = true }
"""
TABLE = """\
job,who,sub,beg,fin,limit,n,mem,gpu,milli,tres,how,node,extra
a1,eve,2026-01-01T00:00:10,2026-01-01T00:01:10,2026-01-01T01:01:10,120,2,16G,1,460,"1=7,2=5",ok,n1,x
a2,bob,2026-01-01T00:00:00,never,,60,1,512M,0,0,"2=5",bad,n2,y
a3,eve,2026-01-01T00:00:30,2026-01-01T00:00:20,2026-01-01T00:00:40,,1,,2,1000,1=4,ok,n3,z
"""


def read(folder: Path, table: str = TABLE, text: str = MAP) -> Workload:
    (folder / "map.toml").write_text(text)
    (folder / "jobs.csv").write_text(table)
    return read_mapped(folder / "jobs.csv", str(folder / "map.toml"))


def test_cells_become_columns(tmp_path: Path) -> None:
    workload = read(tmp_path)
    jobs = workload.jobs
    assert jobs["job_id"].tolist() == ["a1", "a2", "a3"]
    assert workload.header["UnixStartTime"] == "1767225600"
    assert jobs["submit"].tolist() == [10, 0, 20]  # the third was submitted at its start
    assert jobs["wait"].tolist() == [60, -1, 0]
    assert jobs["run"].tolist() == [3600, -1, 20]
    assert jobs["req_time"].tolist() == [7200, 3600, -1]
    assert jobs["procs"].tolist() == [2, 1, 1]
    assert jobs["memory_per_node"].tolist() == [16384, 512, -1]
    assert jobs["gpus_per_node"].tolist() == [0.46, 0, 2]
    assert jobs["cores_per_node"].tolist() == [4, -1, 4]
    assert jobs["status"].tolist() == [1, 0, 1]
    assert jobs["user_name"].tolist() == ["eve", "bob", "eve"]
    assert jobs["user"].tolist() == [1, 2, 1]
    assert jobs["exclusive"].tolist() == [0, 0, 0]
    assert "constraints" not in jobs


def test_nothing_is_left_out_in_silence(tmp_path: Path) -> None:
    counts = {why: (entry.kind, entry.count) for why, entry in read(tmp_path).tally.items()}
    assert counts["columns that the map does not use: extra"] == ("ignored", 3)
    assert counts["started before its submission: submitted at its start"] == ("repaired", 1)
    assert counts["run is not known"] == ("noted", 1)
    assert counts["req_time is not known"] == ("noted", 1)


@pytest.mark.parametrize(
    ("old", "new", "column", "place"),
    [
        (",120,2,", ",120,-4,", "procs", 0),
        (",120,2,", ",-120,2,", "req_time", 0),
        (",16G,1,", ",16G,-2,", "gpus_per_node", 0),
    ],
)
def test_negative_amounts_are_counted(tmp_path: Path, old: str, new: str, column: str, place: int) -> None:
    text = MAP.replace('{ column = "gpu", times = "milli", scale = 0.001 }', '"gpu"')
    workload = read(tmp_path, TABLE.replace(old, new), text)
    assert workload.jobs[column].tolist()[place] == -1
    entry = workload.tally[f"its {column} is negative: not known"]
    assert (entry.kind, entry.count, entry.examples_text) == ("repaired", 1, "a1")


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        (",120,2,", ",much,2,", 2, "limit cannot be read"),
        (",120,2,", ",120,2.5,", 2, "procs is 2.5"),
        ("2026-01-01T00:00:30", "soon", 4, "'soon' is no time"),
        ("512M", "big", 3, "'big' is no amount of memory"),
        ('"1=7,2=5"', '"1=x"', 2, "'x' is no number"),
        ('7,2=5",ok,n1,x', '7,2=5",ok,n1,x,more', None, "is no such table"),
    ],
)
def test_bad_cells_are_refused_with_their_line(
    tmp_path: Path, old: str, new: str, line: int | None, says: str
) -> None:
    assert old in TABLE
    with pytest.raises(BridgeError, match=says) as error:
        read(tmp_path, TABLE.replace(old, new))
    assert error.value.where == f"{tmp_path}/jobs.csv" + (f":{line}" if line else "")
    assert error.value.remedy


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ('end = "fin"', 'ended = "fin"', 9, "a workload has no column 'ended'"),
        ('end = "fin"', 'end = { columm = "fin" }', 9, "unknown field 'columm'"),
        ("{ value = 0 }", "{ scale = 2 }", 16, "names no column"),
        ('submit = "sub"\n', "", None, "the map has no submit"),
    ],
)
def test_mistakes_of_a_map_are_refused_with_their_line(
    tmp_path: Path, old: str, new: str, line: int | None, says: str
) -> None:
    assert old in MAP
    with pytest.raises(BridgeError, match=says) as error:
        read(tmp_path, text=MAP.replace(old, new))
    assert error.value.where == f"{tmp_path}/map.toml" + (f":{line}" if line else "")


def test_a_missing_column_names_the_map_and_the_table(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="has no column 'fin'") as error:
        read(tmp_path, TABLE.replace("fin", "over", 1))
    assert "map.toml:9" in error.value.remedy
    assert "over" in error.value.remedy


def test_an_unknown_code_is_refused_unless_the_map_knows_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="how is 'bad', which the map does not know") as error:
        read(tmp_path, text=MAP.replace(", otherwise = 0", ""))
    assert error.value.where == f"{tmp_path}/jobs.csv:3"


def test_parquet_says_the_same_as_csv(tmp_path: Path) -> None:
    """Dates, lengths and numbers of a Parquet table are what the same texts are."""
    text = """
[jobs]
submit = "sub"
start = "beg"
end = "fin"
procs = "n"
req_time = "limit"
"""
    (tmp_path / "m.toml").write_text(text)
    table = pd.DataFrame(
        {
            "sub": pd.to_datetime(["2026-01-01 00:00:00", "2026-01-01 00:00:05"]),
            "beg": pd.to_datetime(["2026-01-01 00:00:10.5", None]),
            "fin": pd.to_datetime(["2026-01-01 00:01:00", None]),
            "n": [3, 4],
            "limit": pd.to_timedelta(["1 days 02:00:00", "00:10:00"]),
        }
    )
    table.to_parquet(tmp_path / "t.parquet")
    table.assign(limit=table["limit"].astype(str)).to_csv(tmp_path / "t.csv", index=False)
    both = [read_mapped(tmp_path / name, str(tmp_path / "m.toml")) for name in ("t.parquet", "t.csv")]
    for workload in both:
        jobs = workload.jobs
        assert jobs["wait"].tolist() == [10.5, -1]
        assert jobs["run"].tolist() == [49.5, -1]
        assert jobs["req_time"].tolist() == [93_600, 600]
        assert jobs["job_id"].tolist() == [1, 2]
    assert both[0].digest() == both[1].digest()


def test_tables_without_names_and_with_another_delimiter(tmp_path: Path) -> None:
    text = 'delimiter = ";"\nnames = ["a", "b", "c"]\nclock = "relative"\n'
    text += '[jobs]\nsubmit = "a"\nrun = "b"\nreq_procs = "c"\n'
    workload = read(tmp_path, "100;7;2\n130;8;1\n", text)
    assert workload.jobs["submit"].tolist() == [0, 30]
    assert workload.jobs["run"].tolist() == [7, 8]
    assert "UnixStartTime" not in workload.header
    with pytest.raises(BridgeError, match="b cannot be read") as error:
        read(tmp_path, "100;7;2\n130;long;1\n", text)
    assert error.value.where.endswith("jobs.csv:2")


@pytest.mark.parametrize("name", ["thetagpu", "philly", "openb", "cirrus", "kestrel", "supercloud"])
def test_shipped_maps_are_valid(name: str) -> None:
    opened = open_map(name)
    assert opened.map.about
    assert {"submit"} <= opened.jobs.keys()


def test_kestrel_and_supercloud_by_their_descriptions(tmp_path: Path) -> None:
    """Rows as the public descriptions have them; no row of the data was there to try."""
    stamp = pd.Timestamp("2024-03-01 00:00:00")
    kestrel = pd.DataFrame(
        {
            "id": [7],
            "submit_time": [stamp],
            "start_time": [stamp + pd.Timedelta("60s")],
            "end_time": [stamp + pd.Timedelta("3660s")],
            "nodes_req": [2],
            "processors_req": [208],
            "gpus_requested": [np.nan],
            "wallclock_req": [7_200 * 10**9],
            "state_simple": ["COMPLETED"],
            "memory_req": ["240G"],
        }
    )
    kestrel.to_parquet(tmp_path / "k.parquet")
    row = read_mapped(tmp_path / "k.parquet", "kestrel").jobs.iloc[0]
    assert (row["wait"], row["run"], row["req_time"], row["nodes"]) == (60, 3600, 7200, 2)
    assert (row["cores_per_node"], row["gpus_per_node"], row["status"]) == (104, 0, 1)
    text = (
        "id_job,id_user,time_submit,time_eligible,time_start,time_end,timelimit,nodes_alloc,state,tres_req\n"
    )
    text += '5,9,1600000000,1600000010,1600000060,1600000160,4294967295,2,3,"1=80,2=340000,4=2,1002=4"\n'
    (tmp_path / "s.csv").write_text(text)
    jobs = read_mapped(tmp_path / "s.csv", "supercloud").jobs
    row = jobs.iloc[0]
    assert (row["wait"], row["run"], row["req_time"], row["eligible"]) == (60, 100, -1, 10)
    assert (row["cores_per_node"], row["memory_per_node"], row["gpus_per_node"]) == (40, 170_000, 2)
