"""CSV and Parquet: exact round trips, hand-made tables, and tables that cannot be jobs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from workload_strategies import Written, small, workloads

from bridge.base.errors import BridgeError
from bridge.workload.columns import complete_columns, read_csv, read_parquet, write_csv, write_parquet
from bridge.workload.table import SWF_COLUMNS, TallyEntry, Workload


@pytest.mark.parametrize(
    ("write", "read", "name"), [(write_csv, read_csv, "w.csv.gz"), (write_parquet, read_parquet, "w.parquet")]
)
@given(log=workloads(text=True))
def test_written_and_read_again(
    tmp_path_factory: pytest.TempPathFactory, write: Any, read: Any, name: str, log: Workload
) -> None:
    path = tmp_path_factory.mktemp("table") / name
    write(log, path)
    again = read(path)
    pd.testing.assert_frame_equal(again.jobs, log.jobs)
    assert (again.name, again.capacity, again.header) == ("w", log.capacity, log.header)


@pytest.mark.parametrize("writer", [write_csv, write_parquet])
def test_the_same_workload_gives_the_same_bytes(tmp_path: Path, writer: Any) -> None:
    log = small((1, 0, 10, 2, 20), (2, 5, 7, 4, 30))
    for name in ("one", "two"):
        writer(log, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one", "two"]


def test_a_csv_looks_like_this(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    log = small((1, 0, 10, 2, 20))
    log.header["Note"] = "one\ntwo"
    write_csv(log, path)
    assert path.read_text() == (
        "# capacity: nodes=8\n# Note: one\n# Note: two\n"
        f"{','.join(SWF_COLUMNS)}\n1,0,-1,10,2,-1,-1,2,20,-1,-1,-1,-1,-1,-1,-1,-1,-1\n"
    )


def test_a_table_by_hand_needs_few_columns_in_any_order(written: Written) -> None:
    log = read_csv(
        written(
            "# capacity: nodes=4 power=900\nprocs,power,run,submit,job_id\n2,300,10.5,0,7\n1,,,3,8\n", "a.csv"
        )
    )
    assert list(log.jobs.columns) == [*SWF_COLUMNS, "power"]
    expected = [[7, 0, 10.5, 2, -1], [8, 3, -1, 1, -1]]
    assert log.jobs[["job_id", "submit", "run", "procs", "req_time"]].to_numpy().tolist() == expected
    assert log.jobs["power"].iloc[0] == 300
    assert np.isnan(log.jobs["power"].iloc[1])
    assert log.capacity == {"nodes": 4, "power": 900}
    assert dict(log.tally) == {"empty cells set to -1": TallyEntry("repaired", 1, (8,))}


@pytest.mark.parametrize(
    ("text", "what", "line"),
    [
        ("submit,run\n0,1\n", "no column job_id, procs (or req_procs)", ""),
        ("job_id,submit,procs\n1,0,1\n2,,1\n", "submit is empty", ":3"),
        ("# x\njob_id,submit,procs\n1,0,1\n2,soon,1\n", "submit is 'soon', which is no number", ":4"),
        ("job_id,submit,procs\n1,0,1\n2,3,1.5\n", "procs is 1.5, but must be a whole number", ":3"),
        ("job_id,submit,procs\n1,0,1\n2,inf,1\n", "submit is infinite", ":3"),
        ("job_id,submit,procs\n", "the table has no row", ""),
        ("job_id,submit,procs\n1,2,3,4\n", "is no CSV table", ""),
        ('job_id,submit,procs\n1,2,"3\n', "is no CSV table", ""),
        ("# only a comment\n", "is no CSV table", ""),
    ],
)
def test_tables_that_are_no_jobs(written: Written, text: str, what: str, line: str) -> None:
    path = written(text, "a.csv")
    with pytest.raises(BridgeError) as caught:
        read_csv(path)
    assert caught.value.what.startswith(what)
    assert caught.value.where == f"{path}{line}"
    assert caught.value.remedy


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    column = pa.array([1])
    table = pa.Table.from_arrays([column] * 4, names=["job_id", "submit", "procs", "procs"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(BridgeError, match=r"two columns are named 'procs'|Parquet"):
        read_parquet(tmp_path / "a.parquet")


@pytest.mark.parametrize("reader", [read_csv, read_parquet])
@pytest.mark.parametrize("content", [b"", bytes(range(256)), b"PAR1 cut off"])
def test_binary_junk(tmp_path: Path, reader: Any, content: bytes) -> None:
    path = tmp_path / "junk"
    path.write_bytes(content)
    with pytest.raises(BridgeError) as caught:
        reader(path)
    assert caught.value.where.startswith(str(path))


def test_parquet_of_others_has_no_capacity(tmp_path: Path) -> None:
    table = pd.DataFrame({"job_id": [1], "submit": [0.5], "req_procs": [3]})
    table.to_parquet(tmp_path / "a.parquet")
    log = read_parquet(tmp_path / "a.parquet")
    assert log.capacity == {}
    assert log.jobs[["submit", "req_procs", "procs"]].to_numpy().tolist() == [[0.5, 3, -1]]


def test_parquet_is_read_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    user = pd.array([4, 5, 6, None, 8, 9], dtype="Int64")
    table = pd.DataFrame({"job_id": range(1, 7), "submit": 0.5, "procs": np.int8(3), "user": user})
    table.to_parquet(path)
    whole = read_parquet(path)
    monkeypatch.setattr("bridge.base.files._BATCH", 2)
    log = read_parquet(path)
    pd.testing.assert_frame_equal(log.jobs, whole.jobs)
    assert log.jobs["user"].tolist() == [4, 5, 6, -1, 8, 9]
    assert log.tally == whole.tally == {"empty cells set to -1": TallyEntry("repaired", 1, (4,))}


def test_fields_that_are_left_out_are_checked_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pd.DataFrame({"job_id": [1, 2], "submit": [0, 5], "procs": [3, 1], "group": [None, 7]})
    table.to_parquet(path)
    log = read_parquet(path, leave={"group", "memory"})
    assert set(log.jobs.columns) == set(SWF_COLUMNS) - {"group", "memory"}
    assert log.tally == {"empty cells set to -1": TallyEntry("repaired", 1, (1,))}
    table.assign(group=[0.5, 7]).to_parquet(path)
    with pytest.raises(BridgeError, match=r"group is 0\.5, but must be a whole number"):
        read_parquet(path, leave={"group"})


def test_a_quote_in_the_header_opens_no_cell(tmp_path: Path) -> None:
    table = pd.DataFrame({"job_id": [1, 2], "submit": [0, 5], "req_procs": [3, 1]})
    header = {"Note": ',"', "Computer": '"SP2'}
    write_csv(Workload("w", complete_columns(table, str, "t")[0], {"nodes": 4}, header), tmp_path / "w.csv")
    log = read_csv(tmp_path / "w.csv")
    assert (log.header, log.capacity, log.jobs["job_id"].tolist()) == (header, {"nodes": 4}, [1, 2])


@given(workloads(text=True))
def test_the_digest_is_of_the_jobs_and_capacities(
    tmp_path_factory: pytest.TempPathFactory, log: Workload
) -> None:
    folder = tmp_path_factory.mktemp("digest")
    write_csv(log, folder / "w.csv")
    write_parquet(log, folder / "w.parquet")
    same = [
        read_csv(folder / "w.csv"),
        read_parquet(folder / "w.parquet"),
        replace(log, header={"Note": "x"}),
    ]
    assert {log.digest(), *(one.digest() for one in same)} == {log.digest()}
    moved = log.jobs.assign(user=log.jobs["user"] ^ 1)
    others = [replace(log, jobs=moved), replace(log, capacity=log.capacity | {"nodes": 99_999})]
    others.append(replace(log, jobs=log.jobs.assign(more=0)))
    assert len({log.digest(), *(one.digest() for one in others)}) == 4
