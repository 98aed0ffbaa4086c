"""Ids of jobs are the file's own: numbers where all are canonical, else texts, of which two are never one."""

from pathlib import Path

import pytest
from workload_strategies import Written, small

from bridge.base.errors import BridgeError
from bridge.workload.batsim import read_batsim, write_batsim
from bridge.workload.columns import read_csv, read_parquet, write_csv, write_parquet
from bridge.workload.derive import head, restrict_to
from bridge.workload.formats import read
from bridge.workload.ids import of_texts
from bridge.workload.rules import LOAD_RULES
from bridge.workload.select import select
from bridge.workload.swf import left_out, read_swf, write_swf
from bridge.workload.table import TallyEntry

AGAIN = "job id used again: a new one given"
DELAYS = {"d": {"type": "delay", "delay": 7}}


def batsim(*ids: str, **more: float) -> dict[str, object]:
    """Return a workload of jobs that are submitted together."""
    jobs = [{"id": name, "subtime": 0, "res": 1, "walltime": 9, "profile": "d", **more} for name in ids]
    return {"nb_res": 2, "jobs": jobs, "profiles": DELAYS}


@pytest.mark.parametrize(
    ("texts", "ids"),
    [
        (["3", "-1", "0"], [3, -1, 0]),
        (["9223372036854775807", "1"], [2**63 - 1, 1]),
        (["9223372036854775808", "1"], ["9223372036854775808", "1"]),
        (["01", "1"], ["01", "1"]),
        (["01", "02"], ["01", "02"]),
        (["1", "x"], ["1", "x"]),
        (["1", "+2"], ["1", "+2"]),
        (["-0", "1"], ["-0", "1"]),
        (["٣", "1"], ["٣", "1"]),
    ],
)
def test_ids_are_numbers_where_all_are_canonical(texts: list[str], ids: list[object]) -> None:
    assert of_texts(texts).tolist() == ids


@pytest.mark.parametrize(
    ("texts", "ids"),
    [(["01", "10"], [1, 10]), (["01", "1"], ["01", "1"]), (["01", "xx"], ["01", "xx"]), (["7"], [7])],
)
def test_batsims_padded_ids_are_numbers_where_they_have_one_width(
    written: Written, texts: list[str], ids: list[object]
) -> None:
    assert read_batsim(written(batsim(*texts))).jobs["job_id"].tolist() == ids


def test_a_csv_has_01_beside_1(written: Written, tmp_path: Path) -> None:
    log = read_csv(written("# capacity: nodes=2\njob_id,submit,procs,run\n1,0,1,5\n01,0,1,6\n", "a.csv"))
    assert log.jobs["job_id"].tolist() == ["1", "01"]
    assert log.tally == {}
    for name, write, again in (("b.csv", write_csv, read_csv), ("b.parquet", write_parquet, read_parquet)):
        write(log, tmp_path / name)
        assert again(tmp_path / name).jobs["job_id"].tolist() == ["1", "01"]
        assert again(tmp_path / name).digest() == log.digest()


def test_ids_beyond_64_bits_are_texts_to_the_last_digit(written: Written) -> None:
    long = "9" * 40
    log = read_csv(written(f"job_id,submit,procs\n{2**64 - 1},0,1\n{long},0,1\n", "a.csv"))
    assert log.jobs["job_id"].tolist() == [str(2**64 - 1), long]


def test_an_empty_id_among_texts_is_refused(written: Written) -> None:
    path = written("job_id,submit,procs\na,0,1\n,0,1\n", "a.csv")
    with pytest.raises(BridgeError, match="job_id is empty") as caught:
        read_csv(path)
    assert caught.value.where == f"{path}:3"


def test_ties_are_by_number_then_by_the_files_order(written: Written) -> None:
    log = read_batsim(written(batsim("zoe", "10", "9", "al", "01")))
    jobs = select(log, LOAD_RULES["standard"])
    assert jobs.id.tolist() == ["9", "10", "zoe", "al", "01"]
    assert jobs.number.tolist() == [1, 2, 3, 4, 5]
    assert [jobs.called(number) for number in (1, 3)] == ["9", "zoe"]
    numbers = select(read_batsim(written(batsim("10", "9"))), LOAD_RULES["standard"])
    assert numbers.id.tolist() == numbers.number.tolist() == [9, 10]
    assert numbers.called(10) == 10


def test_what_is_dropped_is_named_by_its_text(written: Written) -> None:
    log = read_batsim(written(batsim("a", "b") | {"profiles": {"d": {"type": "parallel_homogeneous"}}}))
    assert log.tally["run time unknown: the profile is no delay"] == TallyEntry("noted", 2, ("a", "b"))
    with pytest.raises(BridgeError, match="2 no run time"):
        select(log, LOAD_RULES["standard"])


def test_kept_jobs_keep_their_texts(written: Written, tmp_path: Path) -> None:
    log = read_batsim(written(batsim("a", "07", "7")))
    kept = restrict_to(log, select(log, LOAD_RULES["standard"], first=2))
    assert kept.jobs["job_id"].tolist() == ["7", "a"]
    assert head(log, 2).jobs["job_id"].tolist() == ["a", "07"]
    write_batsim(log, tmp_path / "b.json")
    assert read_batsim(tmp_path / "b.json").digest() == log.digest()


def test_ids_that_are_used_again_are_new_ones(written: Written) -> None:
    rows = "1 0\n8 5\n8 6\n3 7\n1 8\n"
    swf = "".join(f"{row} 0 9 1 -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1\n" for row in rows.splitlines())
    log = read_swf(written(f"; MaxProcs: 4\n{swf}"))
    assert log.jobs["job_id"].tolist() == [1, 8, 9, 3, 10]
    assert log.tally == {AGAIN: TallyEntry("repaired", 2, (8, 1))}
    rows = "a,0,1\na.2,0,1\na,0,1\na,0,1\n"
    log = read_csv(written(f"job_id,submit,procs\n{rows}", "a.csv"))
    assert log.jobs["job_id"].tolist() == ["a", "a.2", "a.3", "a.4"]
    largest = read_csv(written(f"job_id,submit,procs\n{2**63 - 1},0,1\n{2**63 - 1},0,1\n1,0,1\n", "a.csv"))
    assert largest.jobs["job_id"].tolist() == [2**63 - 1, 2, 1]


def test_swf_has_no_texts_and_says_so(written: Written, tmp_path: Path) -> None:
    log = read_batsim(written(batsim("alpha", "2", site="here")))
    write_swf(log, tmp_path / "a.swf")
    again = read(tmp_path / "a.swf")
    assert again.jobs["job_id"].tolist() == [1, 2]
    assert "site" not in again.jobs
    note = "SWF holds numbers only: columns of text are left out (site); "
    note += "ids that are texts are left out, jobs are numbered from 1 in the file's order"
    assert left_out(log.jobs) == again.header["Note"] == note
    assert left_out(small((1, 0, 10, 2, 20)).jobs) == ""
