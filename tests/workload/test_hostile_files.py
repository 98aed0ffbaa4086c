"""Whatever a file holds, a reader gives a workload or one error with the place: found cases, and fuzz."""

import bz2
import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.base import files
from bridge.base.errors import BridgeError
from bridge.workload.formats import read, write
from bridge.workload.table import Workload
from bridge.worlds.fast.scheduler_config import SchedulerConfig

DIGITS = "9" * 5000
DEEP = "[" * 100_000
REST = " -1" * 9
SWF = f"; Computer: one\n; MaxProcs: 16\n1 0 -1 50 4 -1 -1 4 100{REST}\n2 10.5 -1 50 4 -1 -1 4 100{REST}\n"
CSV = "# capacity: nodes=16\njob_id,submit,run,procs,req_time,power\n1,0,50,4,100,7\n2,10.5,50,4,100,8\n"
JOB = {"id": "1", "subtime": 0, "res": 4, "profile": "d", "walltime": 100, "user": "ann"}
BATSIM = {"nb_res": 16, "jobs": [JOB, JOB | {"id": "2"}], "profiles": {"d": {"type": "delay", "delay": 50}}}
#: What a piece of a text may become.
NASTY = [
    *(DIGITS, "-" + DIGITS, "1e9999", "1e400", "-1e18", "1e30", "18446744073709551616", "9" * 18),
    *("NaN", "nan", "inf", "-Infinity", "null", "true", "", '"', "'", "\x00", "\ufeff", "\x1a", ",", "\t"),
    *("\r", "\\ud800", "é", "\udcff", "{", "[", DEEP, '{"a":' * 5000, "0x10", "1_000", "٣", "1,5", "#", ";"),
]


def fate(path: Path) -> Workload | None:
    """Read and select; return what was read, or None after an error that names the file."""
    try:
        found = read(path)
        SchedulerConfig(nodes=16).select(found)
    except BridgeError as error:
        text = str(error)
        assert len(text) < 2000, "an error quotes no whole file"
        text.encode()  # it can be printed
        assert path.name in error.where or "nodes" in text or path.name.split(".")[0] in error.where, text
        return None
    return found


def corpus() -> dict[str, str | bytes]:
    """Return file name -> content, of what once ended in a traceback or a silent wrong answer."""
    found: dict[str, str | bytes] = {
        "digits.swf": SWF.replace("50", DIGITS),
        "digits-id.swf": SWF.replace("\n1 ", f"\n{DIGITS} "),
        "digits-header.swf": SWF.replace("16", DIGITS),
        "digits-capacity.swf": f"; Capacity: power={DIGITS}\n{SWF}",
        "digits-idle.swf": f"; Capacity: power=5\n; IdlePower: {DIGITS}\n{SWF}",
        "arabic-idle.swf": f"; Capacity: power=5\n; IdlePower: ²\n{SWF}",
        "control.swf": SWF.replace("50", "\x00"),
        "latin.swf": SWF.encode().replace(b"one", b"\xe9\xff"),
        "bom.swf": b"\xef\xbb\xbf" + SWF.encode(),
        "utf16.swf": SWF.encode("utf-16"),
        "digits.csv": CSV.replace("50", DIGITS),
        "digits-id.csv": CSV.replace("\n1,", f"\n{DIGITS},"),
        "digits-capacity.csv": CSV.replace("16", DIGITS),
        "digits-power.csv": CSV.replace(",7", f",{DIGITS}"),
        "word-capacity.csv": CSV.replace("nodes=16", "nodes"),
        "latin.csv": CSV.encode().replace(b"4", b"\xe9"),
        "nul.csv": CSV.replace("50", "\x00"),
        "quote.csv": CSV.replace("50", '"'),
        "utf16.csv": CSV.encode("utf-16"),
        "deep.json": DEEP,
        "deep-jobs.json": '{"jobs": ' + DEEP,
        "deep-object.json": '{"a":' * 5000 + "1" + "}" * 5000,
        "cut.json": '{"jobs": [{"id": "1"',
        "utf16.json": json.dumps(BATSIM).encode("utf-16"),
        "latin.json": b'{"jobs": "\xe9"}',
        "surrogate.json": json.dumps(BATSIM).replace("ann", "\\ud800"),
        "surrogate-id.json": json.dumps(BATSIM).replace('"id": "1"', '"id": "\\ud800"'),
        "nodes-nan.json": json.dumps(BATSIM | {"nb_res": float("nan")}),
        "list-user.json": json.dumps(BATSIM | {"jobs": [JOB | {"user": [1, {"a": 2}]}]}),
        "object-res.json": json.dumps(BATSIM | {"jobs": [JOB | {"res": {"a": 2}}]}),
        "true-res.json": json.dumps(BATSIM | {"jobs": [JOB | {"res": True}]}),
        "list-delay.json": json.dumps(BATSIM | {"profiles": {"d": {"type": "delay", "delay": [1]}}}),
        "power-capacity.json": json.dumps(BATSIM | {"capacity": [1, 2]}),
        "huge-capacity.json": json.dumps(BATSIM | {"capacity": {"power": 10**300}}),
    }
    for word in (DIGITS, "1e9999", "1" + "0" * 400, "NaN", "-1e400", '"x"', "null", "1e30"):
        for field in ("subtime", "res", "walltime"):
            text = json.dumps(BATSIM).replace(f'"{field}": ', f'"{field}": {word}, "x": ', 1)
            found[f"{field}-{word[:6].strip(chr(34))}-{len(word)}.json"] = text
    packed = gzip.compress(SWF.encode())
    found["cut.swf.gz"] = packed[:-12]
    found["damaged.swf.gz"] = packed[:20] + b"\xff" + packed[21:]
    found["cut.json.gz"] = gzip.compress(json.dumps(BATSIM).encode())[:-9]
    found["cut.csv.gz"] = gzip.compress(CSV.encode())[:-9]
    return found


@pytest.mark.parametrize("name", corpus())
def test_what_was_found(tmp_path: Path, name: str) -> None:
    content = corpus()[name]
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    fate(path)


@pytest.mark.parametrize("ending", ["swf.gz", "csv.gz", "json.gz", "swf.bz2", "csv.xz"])
def test_a_file_that_unpacks_without_end_is_refused(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_UNPACKED", 1 << 20)
    pack = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[ending.split(".")[1]]
    path = tmp_path / f"bomb.{ending}"
    path.write_bytes(pack(b" " * (4 << 20)))
    with pytest.raises(BridgeError, match="unpacks to more than 1,048,576 bytes") as caught:
        read(path)
    assert caught.value.where == str(path)


TABLE = {"job_id": [1, 2], "submit": [0, 10], "run": [50, 60], "procs": [4, 8]}


def parquet(path: Path, table: pa.Table, **notes: bytes) -> Path:
    metadata = {b"pandas": b"{broken", **{name.encode(): text for name, text in notes.items()}}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    return path


def test_broken_metadata_of_pandas_is_not_read(tmp_path: Path) -> None:
    path = parquet(tmp_path / "log.parquet", pa.table(TABLE))
    assert read(path).jobs["run"].tolist() == [50, 60]


def test_an_index_of_pandas_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pd.DataFrame(TABLE, index=[7, 5]).to_parquet(path)
    assert "__index_level_0__" not in read(path).jobs
    ids = [9, 4, 5]  # no range, which pandas would keep in its metadata alone
    pd.DataFrame({"job_id": ids, "submit": 0, "run": 50, "procs": 4}).set_index("job_id").to_parquet(path)
    assert read(path).jobs["job_id"].tolist() == ids


@pytest.mark.parametrize(
    "note",
    [
        b"{",
        b"[]",
        b"\xff",
        b'{"capacity": 3}',
        b'{"capacity": {"nodes": [1]}}',
        b'{"capacity": {"nodes": 1e400}}',
        f'{{"capacity": {{"nodes": {DIGITS}}}}}'.encode(),
        DEEP.encode(),
        b'{"header": {"a": "\\ud800"}}',
    ],
)
def test_broken_metadata_of_ours_is_refused(tmp_path: Path, note: bytes) -> None:
    path = parquet(tmp_path / "log.parquet", pa.table(TABLE), **{"bridge.workload": note})
    with pytest.raises(BridgeError, match="metadata for capacity and header is damaged") as caught:
        read(path)
    assert caught.value.where == str(path)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1], [2, 3]]),
        pa.array([{"a": 1}, {"a": 2}]),
        pa.array(["é", "x"]),
        pa.array([b"\xff", b"1"]),
        pa.array([1, 2], pa.decimal128(38)),
        pa.array([1, 2], pa.timestamp("ns")),
        pa.array([1, 2], pa.duration("s")),
        pa.array(["1", "2"]).dictionary_encode(),
        pa.array([True, False]),
        pa.array([None, None]),
        pa.array([2**64 - 1, 1], pa.uint64()),
        pa.array([float("inf"), float("nan")]),
    ],
    ids=lambda column: str(column.type),
)
@pytest.mark.parametrize("name", ["job_id", "submit", "run", "procs", "user", "extra"])
def test_parquet_columns_of_any_type(tmp_path: Path, name: str, column: Any) -> None:
    table = pa.table(TABLE)
    table = table.drop_columns([n for n in (name,) if n in TABLE]).append_column(name, column)
    fate(parquet(tmp_path / "log.parquet", table))


def test_text_that_is_no_utf8_in_a_parquet_file_is_refused(tmp_path: Path) -> None:
    bad = pa.StringArray.from_buffers(
        2, pa.py_buffer(np.array([0, 1, 2], np.int32).tobytes()), pa.py_buffer(b"\xff\xfe")
    )
    fate(parquet(tmp_path / "log.parquet", pa.table(TABLE | {"site": bad})))


def test_a_parquet_file_that_claims_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_CELLS", 1000)
    ones = np.ones(251, np.int64)
    with pytest.raises(BridgeError, match="claims 1,004 cells, more than 1,000"):
        read(parquet(tmp_path / "log.parquet", pa.table(dict.fromkeys(TABLE, ones))))
    assert (
        len(read(parquet(tmp_path / "log.parquet", pa.table(dict.fromkeys(TABLE, ones[:250])))).jobs) == 250
    )


@st.composite
def mangled(draw: st.DrawFn, text: str) -> bytes:
    """A text some pieces of which became something nasty, and some bytes of which something else."""
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, len(text)))
        end = min(len(text), begin + draw(st.integers(0, 6)))
        text = text[:begin] + draw(st.sampled_from(NASTY) | st.text(max_size=3)) + text[end:]
    raw = bytearray(text.encode(errors="surrogateescape" if "\udcff" in text else "replace"))
    for _ in range(draw(st.integers(0, 2)) if raw else 0):
        raw[draw(st.integers(0, len(raw) - 1))] = draw(st.integers(0, 255))
    return bytes(raw)


FUZZ = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@FUZZ
@given(data=st.data())
@pytest.mark.parametrize(("ending", "text"), [("swf", SWF), ("csv", CSV), ("json", json.dumps(BATSIM))])
def test_mangled_texts(tmp_path: Path, ending: str, text: str, data: st.DataObject) -> None:
    path = tmp_path / f"log.{ending}"
    path.write_bytes(data.draw(mangled(text)))
    found = fate(path)
    if found is not None:  # what can be read can be written
        try:
            write(found, tmp_path / "again.csv")
        except BridgeError:
            return


@FUZZ
@given(data=st.data())
def test_mangled_bytes(tmp_path: Path, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["swf.gz", "csv.gz", "parquet"]))
    whole = tmp_path / f"whole.{kind}"
    if not whole.exists():
        write(read_text(CSV, tmp_path), whole)
    raw = bytearray(whole.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / f"log.{kind}"
    path.write_bytes(bytes(raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw))
    fate(path)


def read_text(text: str, folder: Path) -> Workload:
    path = folder / "plain.csv"
    path.write_text(text)
    return read(path)
