"""The three files that hold a jobs table: Batsim's CSV to the byte, CQSim's .rst, Parquet."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schedules import example, schedule

from bridge.base.errors import BridgeError
from bridge.judge import jobs as jobs_table
from bridge.judge.check import check_schedule
from bridge.judge.jobs import JOBS_COLUMNS, fixed_six, read_jobs, write_jobs_csv, write_rst
from bridge.judge.metrics import compute_metrics

HEADER = ",".join(JOBS_COLUMNS) + "\n"
DIGITS = "9" * 5000
ROW = (
    "a,w0,d,0.000000,2,10.000000,1,COMPLETED_SUCCESSFULLY,1.000000,2.500000,3.500000,1.000000,3.500000,"
    "1.400000,0-1,-1.000000"
)


def test_written_text(tmp_path: Path) -> None:
    table = example().iloc[[2, 4]].drop(columns="user")
    table["metadata"] = ["", 'says "x", y']
    table["profile"] = ["d,1", "d"]
    table["allocated_resources"] = ["2", ""]
    write_jobs_csv([table.assign(user=1)], tmp_path / "jobs.csv")
    assert (tmp_path / "jobs.csv").read_text() == (
        HEADER
        + 'C,w0,"d,1",2.000000,1,1000.000000,1,COMPLETED_SUCCESSFULLY,2.000000,4.000000,6.000000,'
        + '0.000000,4.000000,1.000000,2,-1.000000,""\n'
        + 'R,w0,d,6.000000,9,1000.000000,0,REJECTED,,,,,,,,,"says ""x"", y"\n'
    )
    back = read_jobs(tmp_path / "jobs.csv")
    pd.testing.assert_frame_equal(back, table.reset_index(drop=True), check_dtype=False)


def test_empty_table(tmp_path: Path) -> None:
    write_jobs_csv([schedule([])], tmp_path / "jobs.csv")
    assert (tmp_path / "jobs.csv").read_text() == HEADER
    assert len(read_jobs(tmp_path / "jobs.csv")) == 0


def test_rows_keep_their_order_over_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = schedule([(f"j{k}", k, k, 1 + k / 8, 1) for k in range(100)])
    write_jobs_csv([table], tmp_path / "one.csv")
    monkeypatch.setattr(jobs_table, "CHUNK", 7)
    write_jobs_csv([table], tmp_path / "many.csv")
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "many.csv").read_bytes()
    assert read_jobs(tmp_path / "many.csv")["job_id"].tolist() == [f"j{k}" for k in range(100)]


@given(st.lists(st.floats(-1e15, 1e15) | st.integers(-(10**9), 10**9).map(float) | st.just(float("nan"))))
def test_fixed_six_as_the_c_library_prints(values: list[float]) -> None:
    # Halves of a microsecond may be rounded either way; nudge them off the edge.
    rounded = [v if v != v else round(v, 6) for v in values]
    expected = [None if v != v else f"{v:.6f}".replace("-0.000000", "0.000000") for v in rounded]
    text = [
        None if t is None else t.replace("-0.000000", "0.000000")
        for t in fixed_six(np.array(rounded, np.float64)).to_pylist()
    ]
    for found, wanted in zip(text, expected, strict=True):
        # Beyond 2^53 µs a double does not hold single microseconds.
        if found is None or wanted is None or abs(float(wanted)) < 9e9:
            assert found == wanted
        else:
            assert float(found) == pytest.approx(float(wanted), rel=1e-15)


def test_fixed_six_hides() -> None:
    assert fixed_six(np.array([1.5, 2.0]), np.array([True, False])).to_pylist() == [None, "2.000000"]
    assert fixed_six(np.array([-0.25, 1e13])).to_pylist() == ["-0.250000", "10000000000000.000000"]


def test_files_of_batsim_come_back_to_the_byte(tmp_path: Path, golden: Path) -> None:
    paths = [p for p in sorted(golden.glob("batsim/*/_jobs.csv")) if p.stat().st_size]
    for path in paths:
        write_jobs_csv([read_jobs(path)], tmp_path / "jobs.csv")
        assert (tmp_path / "jobs.csv").read_bytes() == path.read_bytes(), path
    assert len(paths) > 30


def test_rst(tmp_path: Path) -> None:
    table = example()
    table.loc[3, ["requested_time", "submission_time", "waiting_time"]] = [100.0, 5.5, 9.5]
    path = tmp_path / "out.rst"
    write_rst(table, path)
    assert path.read_text() == (
        "C;1;1;1000.0;4.0;0.0;2.0;2.0;6.0\n"
        "A;2;2;1000.0;10.0;0.0;0.0;0.0;10.0\n"
        "B;4;4;1000.0;5.0;10.0;0.0;10.0;15.0\n"
        "D;1;1;100.0;100.0;9.5;5.5;15.0;115.0\n"
    )
    back = read_jobs(path)
    assert list(back.columns) == list(JOBS_COLUMNS)
    assert back["final_state"].tolist() == ["COMPLETED_SUCCESSFULLY"] * 3 + ["COMPLETED_WALLTIME_REACHED"]
    assert back["success"].tolist() == [1, 1, 1, 0]
    assert back["turnaround_time"].tolist() == [4.0, 10.0, 15.0, 109.5]
    write_rst(back, tmp_path / "again.rst")
    assert (tmp_path / "again.rst").read_bytes() == path.read_bytes()


def test_rst_ties_of_the_end_follow_the_starts(tmp_path: Path) -> None:
    write_rst(schedule([("x", 0, 5, 5, 1), ("y", 0, 2, 8, 1)]), tmp_path / "out.rst")
    assert [line[0] for line in (tmp_path / "out.rst").read_text().splitlines()] == ["y", "x"]


def test_columns_that_may_be_missing_or_more(tmp_path: Path) -> None:
    keep = [c for c in JOBS_COLUMNS if c not in ("metadata", "consumed_energy", "profile")]
    table = example()[keep].assign(power=[1.5, 2, 3, 4, 5])
    table.to_csv(tmp_path / "jobs.csv", index=False)
    back = read_jobs(tmp_path / "jobs.csv")
    assert list(back.columns) == [*JOBS_COLUMNS, "power"]
    assert back["consumed_energy"].tolist() == [-1.0] * 5
    assert back["power"].tolist() == [1.5, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEADER + ROW + ',""\n' + ROW + "\n", "jobs.csv:3: 16 fields, the header has 17"),
        (
            HEADER + ROW.replace("2.500000", "2.5x") + ',""\n',
            "jobs.csv:2: execution_time is not a number: '2.5x'",
        ),
        (
            HEADER + ROW.replace(",2,", ",two,") + ',""\n',
            "requested_number_of_resources is not a number: 'two'",
        ),
        (HEADER + ROW.replace(",2,", ",,") + ',""\n', "jobs.csv:2: requested_number_of_resources is empty"),
        (
            HEADER + ROW.replace(",2,", ",2.5,") + ',""\n',
            "requested_number_of_resources is not a number: '2.5'",
        ),
        (
            HEADER.replace("finish_time,", "end,") + ROW + ',""\n',
            "not a jobs table: missing column finish_time",
        ),
        ("", "the file is empty"),
        ("a b c\n1 2 3\n", "jobs.csv:1: neither a jobs CSV"),
        ("\x00\x01\x02\xff" * 50, "neither a jobs CSV"),
        ("1;2;2;5.0;4.0;0.0;0.0;0.0;4.0\n2;2;2;5.0\n", "jobs.csv:2: 4 fields, a CQSim result line has 9"),
        ("1;2;2;5.0;4.0;0.0;0.0;x;4.0\n", "jobs.csv:1: a field is not a number"),
        ("1;2;2;5.0;nan;0.0;0.0;0.0;4.0\n", "jobs.csv:1: a field is not a finite number"),
        ("1;2;2;5.0;1e30;0.0;0.0;0.0;4.0\n", "jobs.csv:1: a field is not a finite number"),
        (
            HEADER + ROW.replace(",2,", f",{DIGITS},") + ',""\n',
            "requested_number_of_resources is not a number",
        ),
        (HEADER.replace("profile", "metadata") + ROW + ',""\n', "two columns are named 'metadata'"),
        (HEADER + ROW.replace("2.500000", "inf") + ',""\n', "jobs.csv:2: execution_time is infinite"),
        (HEADER + ROW.replace("w0", "b\udcfcndled") + ',""\n', "jobs.csv:2: is not UTF-8 text"),
        (HEADER.replace("\n", ",\udcff\n") + ROW + ',"",1\n', "jobs.csv:1: is not UTF-8 text"),
    ],
)
def test_unreadable_files(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "jobs.csv"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(BridgeError) as caught:
        read_jobs(path)
    assert said in str(caught.value) and len(str(caught.value)) < 1000


def test_no_such_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="no such file"):
        read_jobs(tmp_path / "gone.csv")
    with pytest.raises(BridgeError, match="is a folder"):
        read_jobs(tmp_path)


def test_a_bad_parquet_file(tmp_path: Path) -> None:
    (tmp_path / "jobs.parquet").write_bytes(b"junk")
    with pytest.raises(BridgeError, match="is no Parquet file, or a damaged one"):
        read_jobs(tmp_path / "jobs.parquet")


def test_nothing_is_left_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("old")

    def full(*_: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(BridgeError, match="cannot write: No space left on device"):
        write_jobs_csv([example()], path)
    assert [p.name for p in tmp_path.iterdir()] == ["jobs.csv"]
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("starting_time", ["0", "1", "2", "3", "4"], "starting_time does not hold numbers alone"),
        ("success", [1.0, np.nan, 1.0, 1.0, 0.0], "success does not hold numbers alone"),
        ("profile", [1, 2, 3, 4, 5], "profile does not hold text alone"),
    ],
)
def test_parquet_of_other_kinds(tmp_path: Path, column: str, values: list[object], said: str) -> None:
    example().assign(**{column: values}).to_parquet(tmp_path / "jobs.parquet")
    with pytest.raises(BridgeError, match=said):
        read_jobs(tmp_path / "jobs.parquet")


#: What a cell may become.
NASTY = [
    *("", "nan", "inf", "-inf", "1e400", "-1", DIGITS, "1e300", "9e18", "0x10"),
    *('"', ",", "\n", "\x00", "é", "\udcff"),
]


@given(st.lists(st.tuples(st.integers(0, 400), st.sampled_from(NASTY)), min_size=1, max_size=3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_cell_holds_it_is_read_and_judged_or_refused(
    tmp_path: Path, edits: list[tuple[int, str]]
) -> None:
    path = tmp_path / "jobs.csv"
    write_jobs_csv([example()], path)
    cells = re.split("([,\n])", path.read_text())
    for place, text in edits:
        cells[2 * (place % (len(cells) // 2))] = text
    path.write_bytes("".join(cells).encode(errors="surrogateescape"))
    try:
        jobs = read_jobs(path)
        check_schedule(jobs, {"nodes": 4})
        compute_metrics(jobs, {"nodes": 4})
    except BridgeError as error:
        assert len(str(error)) < 2000
