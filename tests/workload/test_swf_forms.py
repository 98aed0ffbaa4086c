"""SWF as it is out there: text in place of numbers, further fields, other comments, unknown submissions."""

import gzip
from pathlib import Path

import pytest
from workload_strategies import Written, record, small

from bridge.base.errors import BridgeError
from bridge.workload.columns import read_parquet, write_parquet
from bridge.workload.derive import resample, scale_to_load
from bridge.workload.rules import LOAD_RULES
from bridge.workload.select import select
from bridge.workload.statistics import offered_load, summarise
from bridge.workload.swf import read_swf, write_swf
from bridge.workload.table import SWF_COLUMNS, TallyEntry

TWO = f"{record(1, 0, 10, 2, 20)}\n{record(2, 5, 7, 4, 30)}\n"


def test_an_unknown_submission_is_no_time(written: Written) -> None:
    rows = [record(n, 1_700_000_000 + 100 * n, 100, 8, 200) for n in range(1, 21)]
    text = "\n".join(["; MaxProcs: 16", *rows, record(21, -1, 100, 8, 200)]) + "\n"
    log = read_swf(written(text))
    assert log.tally == {}
    summary = summarise(log)
    assert (summary.span, summary.first_submit) == (1900, 1_700_000_100)
    assert offered_load(log) == summary.load == 20 * 8 * 100 / (16 * 1900)
    jobs = select(log, LOAD_RULES["standard"])
    assert len(jobs) == 20
    assert jobs.tally == {"submission unknown": TallyEntry("dropped", 1, (21,))}
    halved = scale_to_load(log, summary.load / 2)
    assert halved.jobs["submit"].tolist() == [1_700_000_100 + 200 * n for n in range(20)] + [-1]
    assert "mean gap 100 s" in resample(log, 5, seed=1).header["Note"]


def test_a_log_without_any_submission_has_no_span(written: Written) -> None:
    summary = summarise(read_swf(written(f"; MaxProcs: 4\n{record(1, -1, 10, 2, 20)}\n")))
    assert (summary.span, summary.first_submit, summary.load) == (None, None, None)


@pytest.mark.parametrize("head", ["; MaxProcs: 64\n", "# MaxProcs: 64\n", "#MaxProcs: 64\n# by hand\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_comments_begin_with_hashes_too_and_a_mark_does_no_harm(
    written: Written, head: str, mark: str
) -> None:
    log = read_swf(written(f"{mark}{head}{TWO}"))
    assert log.capacity == {"nodes": 64}
    assert log.jobs["job_id"].tolist() == [1, 2]
    late = read_swf(written(f"{mark}{head}{TWO}# the end\n"))
    assert late.digest() == log.digest()


@pytest.mark.parametrize(
    ("text", "nodes"),
    [("163,840", 163_840), ("1,024 nodes", 1024), ("1664 (72, 1368, 224)", 1664), ("12,34", 12)],
)
def test_a_machines_size_may_have_commas(written: Written, text: str, nodes: int, tmp_path: Path) -> None:
    log = read_swf(written(f"; MaxProcs: {text}\n{TWO}"))
    assert log.capacity == {"nodes": nodes}
    write_swf(log, tmp_path / "b.swf")
    assert read_swf(tmp_path / "b.swf").header["MaxProcs"] == text


@pytest.mark.parametrize(("sign", "name"), [(";", "semicolons"), (",", "commas")])
def test_fields_that_other_signs_separate_are_named(written: Written, sign: str, name: str) -> None:
    path = written(TWO.replace(" ", sign))
    with pytest.raises(BridgeError, match=f"its fields are separated by {name}") as caught:
        read_swf(path)
    assert caught.value.where == f"{path}:1"
    assert f"tr '{sign}' ' '" in caught.value.remedy


def test_users_that_are_names_are_numbered_and_kept(written: Written, tmp_path: Path) -> None:
    users = ["ann", "7", "bob", "-1", "ann"]
    rows = [record(n, n, 10, 2, 20, user=user, queue="q") for n, user in enumerate(users, 1)]  # type: ignore[arg-type]
    log = read_swf(written("\n".join(rows) + "\n"))
    assert log.jobs["user"].tolist() == [8, 7, 9, -1, 8]
    assert log.jobs["user_name"].tolist() == ["ann", "7", "bob", "", "ann"]
    assert log.jobs["queue"].tolist() == [1] * 5
    assert log.jobs["queue_name"].tolist() == ["q"] * 5
    write_swf(log, tmp_path / "b.swf")
    again = read_swf(tmp_path / "b.swf")
    assert again.jobs["user"].tolist() == log.jobs["user"].tolist()
    assert "columns of text are left out (user_name, queue_name)" in again.header["Note"]


def test_fields_19_to_21_are_gpus_soft_walltime_and_property(written: Written, tmp_path: Path) -> None:
    log = read_swf(written(TWO.replace("\n", " 2 600 fast\n")))
    assert list(log.jobs.columns) == [*SWF_COLUMNS, "gpus", "soft_walltime", "property"]
    assert log.jobs.iloc[1, 18:].tolist() == [2, 600, "fast"]
    numbers = read_swf(written(TWO.replace("\n", " 2 600 -1\n")))
    assert numbers.jobs[["gpus", "soft_walltime", "property"]].to_numpy().tolist() == [[2, 600, -1]] * 2
    for one in (log, numbers, small((1, 0, 10, 2, 20))):
        write_swf(one, tmp_path / "b.swf")
        numeric = one.jobs.select_dtypes("number")
        assert list(read_swf(tmp_path / "b.swf").jobs.columns) == list(numeric.columns)
    assert "ExtensionFields" not in read_swf(tmp_path / "b.swf").header


def test_further_fields_may_be_text(written: Written) -> None:
    log = read_swf(written(TWO.replace("\n", " q_short 1:ppn=4\n")))
    assert log.jobs[["x19", "x20"]].to_numpy().tolist() == [["q_short", "1:ppn=4"]] * 2
    path = written(TWO + record(3, 6, 7, 4, 30) + " q_short\n")
    with pytest.raises(BridgeError, match="field 19 is 'q_short', which is no number"):
        read_swf(path)


def test_a_preceding_job_is_said_to_be_ignored_once(written: Written, tmp_path: Path) -> None:
    rows = [record(n, 0, 9, 1, 9, preceding_job=n - 1 or -1, think_time=10) for n in (1, 2, 3)]
    log = read_swf(written("; MaxProcs: 8\n" + "\n".join(rows) + "\n"))
    expected = {"jobs follow another job: they arrive as logged": TallyEntry("ignored", 2, (2, 3))}
    assert log.tally == {}
    assert select(log, LOAD_RULES["standard"]).tally == expected
    write_parquet(log, tmp_path / "a.parquet")
    left = read_parquet(tmp_path / "a.parquet", leave={"think_time", "preceding_job"})
    assert left.tally == expected
    assert select(left, LOAD_RULES["standard"]).tally == expected


def test_names_of_further_fields_are_one_word_each(tmp_path: Path) -> None:
    log = small((1, 0, 10, 2, 20))
    log.jobs[["", "peak power", "peak_power", "power"]] = [[3, 90, 7, 8]]
    write_swf(log, tmp_path / "a.swf")
    again = read_swf(tmp_path / "a.swf").jobs
    assert again.iloc[0, 18:].to_dict() == {"x19": 3, "peak_power_20": 90, "peak_power": 7, "power": 8}


@pytest.mark.parametrize("name", ["a.swf", "a.swf.gz"])
def test_a_line_without_end_is_not_read(tmp_path: Path, name: str) -> None:
    text = TWO.encode() + b"3 " + b"0" * (3 << 20) + b"\n" + TWO.encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    with pytest.raises(
        BridgeError, match=rf"the line of byte {len(TWO):,} on is longer than 1,048,576 bytes"
    ):
        read_swf(path)
