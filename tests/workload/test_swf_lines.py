"""Broken SWF files: one error that names the line, or lines dropped and counted."""

import gzip
from pathlib import Path

import pytest
from workload_strategies import Written, record

from bridge.base.errors import BridgeError
from bridge.workload.swf import read_swf
from bridge.workload.table import TallyEntry

HEAD = "; MaxProcs: 8\n"
GOOD = record(1, 0, 10, 2, 20)
NEXT = record(2, 5, 10, 2, 20)


def refused(path: Path, content: bytes | str, malformed: str = "refuse") -> BridgeError:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(BridgeError) as caught:
        read_swf(path, malformed)  # type: ignore[arg-type]
    assert caught.value.remedy
    return caught.value


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ("3 10 -1 5", "4 fields instead of 18: half a line"),
        (record(3, 10, 5, 1).rsplit(" ", 1)[0], "17 fields instead of 18: half a line"),
        (record(3, 10, 5, 1).replace("3 10", "x 10", 1), "field 1 (job_id) is 'x', which is no whole number"),
        (record(3, 10, float("nan"), 1), "field 4 (run) is 'nan', which is no number"),
        (record(3, 10, 5, 1, memory=float("inf")), "field 7 (memory) is 'inf', which is no number"),
        (record(3, 10, 5, 1, user=1.5), "field 12 (user) is '1.5', which is no whole number"),
        (record(2**63, 10, 5, 1), f"field 1 (job_id) is '{2**63}', which is no whole number"),
        (f"{record(3, 10, 5, 1)} word", "field 19 is 'word', which is no number"),
        ("half a sentence; of text", "field 1 (job_id) is 'half', which is no whole number"),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_line_that_is_no_record_is_refused_by_number_or_dropped(
    tmp_path: Path, bad: str, what: str, place: int
) -> None:
    lines = [GOOD, NEXT]
    lines.insert(place, bad)
    path = tmp_path / "a.swf"
    error = refused(path, HEAD + "\n".join(lines))
    assert (error.what, error.where) == (what, f"{path}:{place + 2}")
    assert "--malformed drop" in error.remedy

    log = read_swf(path, malformed="drop")
    assert log.jobs["job_id"].tolist() == [1, 2]
    assert dict(log.tally) == {
        "malformed line (examples are line numbers)": TallyEntry("dropped", 1, (place + 2,))
    }


def test_the_first_of_several_bad_lines_is_named(tmp_path: Path) -> None:
    error = refused(tmp_path / "a.swf", f"{GOOD}\n1 2\nx\n{NEXT}\n1 2 3\n")
    assert error.where.endswith("a.swf:2")
    assert error.what.endswith("half a line (2 more such lines)")


def test_fractions_of_memory_are_cut_and_whole_numbers_may_look_like_fractions(written: Written) -> None:
    lines = [record(1, 0, 10, 2, memory=12.75), record(2, 5, 10, 2, memory=3.0, user=7.0)]
    log = read_swf(written("\n".join(lines)))
    assert log.jobs["memory"].tolist() == [12, 3]
    assert log.jobs["user"].tolist() == [-1, 7]
    assert dict(log.tally) == {"fraction of a KB of memory cut off": TallyEntry("repaired", 1, (1,))}


def test_records_without_the_extension_are_completed(written: Written) -> None:
    log = read_swf(written(f"{GOOD} 5\n{NEXT}\n"))
    assert log.jobs["x19"].tolist() == [5, -1]
    assert dict(log.tally) == {"missing extension fields set to -1": TallyEntry("repaired", 1, (2,))}


PACKED = gzip.compress(GOOD.encode(), mtime=0)  # a test's name holds it: no time of day


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.swf", b"", "the file is empty"),
        ("a.swf", b"\n \n", "the file holds no job record"),
        ("a.swf", HEAD.encode(), "the log has a header but no job record"),
        ("a.swf", bytes(range(256)) * 4, "binary data, not an SWF log"),
        ("a.swf", f"{GOOD}\n{NEXT}\n".encode() + bytes(range(128, 256)), "field 1 (job_id) is"),
        ("a.swf.gz", GOOD.encode(), "the name ends in .gz, but the content is not compressed, or damaged"),
        ("a.swf.xz", PACKED, "the name ends in .xz, but the content is gz data"),
        (
            "a.swf",
            PACKED,
            "the content is compressed (gz), but the name does not say so",
        ),
    ],
)
def test_files_that_are_no_log(tmp_path: Path, name: str, content: bytes, what: str) -> None:
    path = tmp_path / name
    error = refused(path, content)
    assert error.what.startswith(what)
    assert error.where.startswith(str(path))


def test_text_that_is_no_log_stays_refused_when_lines_may_be_dropped(tmp_path: Path) -> None:
    assert refused(tmp_path / "a.swf", "a poem\nof two lines\n", "drop").what == "no line is a job record"


@pytest.mark.parametrize("cut", [40, 2000, -4])
@pytest.mark.parametrize("malformed", ["refuse", "drop"])
def test_a_truncated_gzip_is_refused(tmp_path: Path, cut: int, malformed: str) -> None:
    path = tmp_path / "a.swf.gz"
    text = HEAD + "".join(f"{record(n, n, n * 7919 % 997, n % 8)}\n" for n in range(1, 5000))
    error = refused(path, gzip.compress(text.encode())[:cut], malformed)
    assert error.what == "the compressed data ends early or is damaged"
    assert error.where.startswith(f"{path}:")


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="no such file"):
        read_swf(tmp_path / "none.swf")
    with pytest.raises(BridgeError, match="is a folder"):
        read_swf(tmp_path)
