"""SWF: what is read and written when nothing is wrong with the file."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from workload_strategies import Written, record, workloads

from bridge.base.errors import BridgeError
from bridge.workload.ignored import note_ignored
from bridge.workload.swf import read_swf, write_swf
from bridge.workload.table import SWF_COLUMNS, TallyEntry, Workload

LOG = f"; MaxProcs: 8\n{record(1, 0, 10, 2, 20)}\n{record(2, 5, 7.5, 4, 30)}\n"
#: The same with two further fields.
FURTHER = LOG.replace(" -1\n", " -1 70 0.5\n")


def test_fields_go_to_their_columns(written: Written) -> None:
    path = written("; MaxProcs: 8\n" + " ".join(str(n) for n in range(1, 19)) + "\n")
    log = read_swf(path)
    assert list(log.jobs.columns) == list(SWF_COLUMNS)
    assert log.jobs.iloc[0].tolist() == list(range(1, 19))
    assert set(log.jobs.dtypes) == {np.dtype("int64")}
    assert (log.name, log.capacity, log.source) == ("a", {"nodes": 8}, str(path))
    assert log.tally == {}
    assert note_ignored(log)["jobs follow another job: they arrive as logged"] == TallyEntry(
        "ignored", 1, (1,)
    )


def test_only_a_column_with_fractions_is_float(written: Written) -> None:
    jobs = read_swf(written(LOG)).jobs
    assert jobs["run"].tolist() == [10.0, 7.5]
    assert jobs.dtypes.eq("float64").to_dict() == {name: name == "run" for name in SWF_COLUMNS}


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip), (".bz2", bz2), (".xz", lzma)])
def test_compression_is_seen_from_the_suffix(tmp_path: Path, suffix: str, pack: object) -> None:
    path = tmp_path / f"a.swf{suffix}"
    path.write_bytes(pack.compress(LOG.encode()))  # type: ignore[attr-defined]
    assert read_swf(path).jobs["job_id"].tolist() == [1, 2]


def test_blanks_tabs_carriage_returns_and_late_comments_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "a.swf"
    first, second = record(1, 0, 10, 2), record(2, 5, 7, 4).replace(" ", "\t")
    path.write_bytes(f"\r\n; MaxProcs: 8\r\n  {first}  \r\n   \r\n; a note\r\n{second}".encode())
    log = read_swf(path)
    assert log.jobs["job_id"].tolist() == [1, 2]
    assert log.capacity == {"nodes": 8}
    assert log.tally == {}


def test_a_log_without_think_times_has_17_fields(written: Written) -> None:
    log = read_swf(written(LOG.replace(" -1\n", "\n")))
    assert list(log.jobs.columns) == list(SWF_COLUMNS)
    assert log.jobs["think_time"].tolist() == [-1, -1]


def test_further_fields_are_kept_by_number_or_by_name(written: Written) -> None:
    jobs = read_swf(written(FURTHER)).jobs
    assert jobs[["x19", "x20"]].to_numpy().tolist() == [[70, 0.5], [70, 0.5]]
    header = "; ExtensionFields: burst_buffer\n; Capacity: burst_buffer=100\n"
    log = read_swf(written(header + FURTHER))
    assert log.jobs[["burst_buffer", "x20"]].to_numpy().tolist() == [[70, 0.5], [70, 0.5]]
    assert log.capacity == {"nodes": 8, "burst_buffer": 100}


@pytest.mark.parametrize(
    ("names", "what"), [("a b c", "names 3 extension fields"), ("run wait", "the same name")]
)
def test_extension_names_that_cannot_be_are_refused(written: Written, names: str, what: str) -> None:
    with pytest.raises(BridgeError, match=what):
        read_swf(written(f"; ExtensionFields: {names}\n{FURTHER}"))


def test_records_stay_in_file_order_and_late_ones_are_noted(written: Written) -> None:
    rows = [(1, 0), (2, 50), (3, 20), (4, 30), (5, 50), (5, 60)]
    log = read_swf(written("".join(record(ident, submit, 1, 1) + "\n" for ident, submit in rows)))
    assert log.jobs["submit"].tolist() == [0, 50, 20, 30, 50, 60]
    assert log.jobs["job_id"].tolist() == [1, 2, 3, 4, 5, 6]
    assert log.capacity == {}
    assert log.tally == {
        "submitted before a record above it": TallyEntry("noted", 2, (3, 4)),
        "job id used again: a new one given": TallyEntry("repaired", 1, (5,)),
    }


@given(workloads())
def test_written_and_read_again_nothing_has_changed(
    tmp_path_factory: pytest.TempPathFactory, log: Workload
) -> None:
    path = tmp_path_factory.mktemp("swf") / "w.swf"
    write_swf(log, path)
    again = read_swf(path)
    pd.testing.assert_frame_equal(again.jobs, log.jobs)
    assert again.capacity == log.capacity
    stated = {label: again.header.get(label) for label in log.header}
    assert stated == log.header


def test_the_same_workload_gives_the_same_bytes(tmp_path: Path, written: Written) -> None:
    log = read_swf(written(LOG))
    one, two = tmp_path / "one.swf.gz", tmp_path / "two.swf.gz"
    write_swf(log, one)
    write_swf(log, two)
    assert one.read_bytes() == two.read_bytes()
    assert gzip.decompress(one.read_bytes()).decode().splitlines()[1] == record(1, 0, 10.0, 2, 20)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.swf", "one.swf.gz", "two.swf.gz"]


def test_what_is_no_number_cannot_be_written_and_leaves_no_file(tmp_path: Path, written: Written) -> None:
    path = written(LOG)
    log = read_swf(path)
    log.jobs["power"] = [1.0, np.nan]
    with pytest.raises(BridgeError, match="column 'power'"):
        write_swf(log, tmp_path / "b.swf")
    with pytest.raises(BridgeError, match="cannot write"):
        write_swf(read_swf(path), tmp_path / "nowhere" / "b.swf")
    assert [p.name for p in tmp_path.iterdir()] == ["a.swf"]


REAL = [
    ("SDSC-SP2-1998-4.2-cln", 59_715, 128),
    ("CTC-SP2-1996-3.1-cln", 77_222, 338),
    ("HPC2N-2002-2.2-cln", 202_871, 240),
    ("SDSC-DS-2004-2.1-cln", 96_069, 1664),
    ("LLNL-Atlas-2006-2.1-cln", 43_778, 9216),
    ("CEA-Curie-2011-2.1-cln", 312_826, 93_312),
    ("lublin_256", 10_000, 256),
    ("lublin_256_new2", 10_000, 256),
    ("theta_2022", 23_911, 4360),
]
Log = Callable[[str], Workload]


@pytest.mark.parametrize(("name", "records", "nodes"), REAL)
def test_real_logs(log: Log, name: str, records: int, nodes: int) -> None:
    found = log(name)
    assert (found.name, len(found.jobs), found.capacity) == (name, records, {"nodes": nodes})
    assert dict(found.tally) == {}


def test_a_real_header_and_record(log: Log) -> None:
    found = log("SDSC-DS-2004-2.1-cln")
    assert found.header["MaxNodes"] == "184  ( 6,  171,   7)"
    assert found.header["Copyright"].splitlines()[1].startswith("This Job Trace Repository is brought")
    assert len(found.header["Queue"].splitlines()) == 21
    expected = ["http://joblog.npaci.edu/", "http://www.cs.huji.ac.il/labs/parallel/workload/"]
    assert found.header["Information"].splitlines() == expected
    assert found.jobs["cpu_time"].iloc[0] == 969.56
    assert found.jobs["req_time"].iloc[0] == 604_800
