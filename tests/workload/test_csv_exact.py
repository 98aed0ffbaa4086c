"""CSV keeps what it is given: the machine whatever a header says, texts that look like numbers, and names."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from workload_strategies import Written, record, small

from bridge.base.errors import BridgeError
from bridge.pool.jobset import read_vasp
from bridge.workload.batsim import read_batsim
from bridge.workload.columns import read_csv, read_parquet, write_csv, write_parquet
from bridge.workload.swf import read_swf

LINE = record(1, 0, 10, 2, 20)


@pytest.mark.parametrize("label", ["capacity", "capacity_", "text", "text__"])
@pytest.mark.parametrize("value", ["nodes=4", '{"user": ""}', "anything"])
def test_a_label_of_the_header_is_no_word_of_ours(
    written: Written, tmp_path: Path, label: str, value: str
) -> None:
    log = read_swf(written(f"; MaxProcs: 256\n; {label}: {value}\n{LINE}\n"))
    for one in (log, replace(log, capacity={})):
        write_csv(one, tmp_path / "a.csv")
        again = read_csv(tmp_path / "a.csv")
        assert (again.capacity, again.header) == (one.capacity, one.header)
        pd.testing.assert_frame_equal(again.jobs, one.jobs)


def test_the_capacity_may_stand_anywhere_above_the_names(written: Written) -> None:
    text = "# Computer: x\n# capacity: nodes=4\n# capacity: power=9\njob_id,submit,procs\n1,0,1\n"
    assert read_csv(written(text, "a.csv")).capacity == {"nodes": 4, "power": 9}


def test_a_comment_called_text_is_the_headers(written: Written) -> None:
    log = read_csv(written("# text: made by hand\njob_id,submit,procs\n1,0,1\n", "a.csv"))
    assert log.header == {"text": "made by hand"}


@pytest.mark.parametrize(
    "values",
    [
        ["007", "1e5"],
        ["1", "2"],
        ["", "x"],
        ["", ""],
        [None, "7"],
        ["NaN", "null"],
        ["True", "False"],
        ['é, "', " "],
    ],
)
def test_texts_stay_as_they_are(tmp_path: Path, values: list[str | None]) -> None:
    log = small((1, 0, 10, 2, 20), (2, 5, 10, 2, 20))
    log.jobs["code"] = pd.Series(values, dtype="str")
    write_csv(log, tmp_path / "a.csv.gz")
    again = read_csv(tmp_path / "a.csv.gz")
    pd.testing.assert_frame_equal(again.jobs, log.jobs)
    assert again.digest() == log.digest()
    write_parquet(again, tmp_path / "a.parquet")
    assert read_parquet(tmp_path / "a.parquet").digest() == log.digest()


def test_columns_of_text_are_named_in_a_comment(tmp_path: Path) -> None:
    log = small((1, 0, 10, 2, 20))
    log.jobs["code"] = ["007"]
    write_csv(log, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().splitlines()[:2] == [
        "# capacity: nodes=8",
        '# text: {"code": ""}',
    ]


def test_an_index_of_pandas_is_left_out(tmp_path: Path) -> None:
    table = pd.DataFrame({"job_id": [5, 6], "submit": [0, 1], "procs": [1, 2], "power": [3, 90]})
    table.to_csv(tmp_path / "a.csv")
    log = read_csv(tmp_path / "a.csv")
    table.to_csv(tmp_path / "b.csv", index=False)
    assert log.digest() == read_csv(tmp_path / "b.csv").digest()
    pd.read_csv(tmp_path / "a.csv").to_csv(tmp_path / "c.csv")  # saved twice, with two of them
    assert read_csv(tmp_path / "c.csv").digest() == log.digest()


def test_names_of_columns_have_no_blanks_around_and_are_there(written: Written) -> None:
    log = read_csv(written("job_id, submit, procs, , power\n1,0,1,7,8\n2,1,1,9,4\n", "a.csv"))
    assert log.jobs[["submit", "x4", "power"]].to_numpy().tolist() == [[0, 7, 8], [1, 9, 4]]


@pytest.mark.parametrize(
    ("row", "what"),
    [
        (f"2,0,1,{'9' * 400}", f"run is {'9' * 40!r}, which is no number"),
        (f"2,0,{'9' * 30},1", "procs does not fit 64 bits"),
        (f"2,0,1,5,{'9' * 400}", "power does not fit 64 bits"),
    ],
)
def test_numbers_beyond_64_bits_are_refused_where_they_stand(written: Written, row: str, what: str) -> None:
    row += ",1" if row.count(",") == 3 else ""
    path = written(f"job_id,submit,procs,run,power\n1,0,1,5,3\n{row}\n", "a.csv")
    with pytest.raises(BridgeError) as caught:
        read_csv(path)
    assert (caught.value.what, caught.value.where) == (what, f"{path}:3")


def test_pool_jobs_beyond_64_bits_are_refused_where_they_stand(written: Written) -> None:
    path = written(f"job_id,real,para,cores,running\n1,5,5,1,5\n{'9' * 400},5,5,1,5\n", "a.csv")
    with pytest.raises(BridgeError, match=r"job_id is '9{40}', not a number from 0 to") as caught:
        read_vasp(path)
    assert caught.value.where == f"{path}:3"


@pytest.mark.parametrize("power", ["x", True, [1], {"a": 1}])
def test_a_column_of_several_kinds_is_no_parquet(written: Written, tmp_path: Path, power: object) -> None:
    job = {"subtime": 0, "res": 1, "profile": "d", "walltime": 9}
    jobs = [{**job, "id": "1", "power": power}, {**job, "id": "2", "power": 3}]
    log = read_batsim(written({"jobs": jobs, "profiles": {"d": {"type": "delay", "delay": 5}}}))
    with pytest.raises(BridgeError, match=r"a column holds values of several kinds .*column power"):
        write_parquet(log, tmp_path / "a.parquet")
    assert not (tmp_path / "a.parquet").exists()


def test_numbers_beyond_64_bits_in_batsims_json_are_refused(written: Written) -> None:
    job = {"id": "1", "subtime": 0, "res": 1, "profile": "d", "power": 10**30}
    path = written({"jobs": [job], "profiles": {"d": {"type": "delay", "delay": 5}}})
    with pytest.raises(BridgeError, match="power does not fit 64 bits") as caught:
        read_batsim(path)
    assert caught.value.where == f"{path}, job 1"
