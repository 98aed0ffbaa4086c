"""`bridge workload`: what a user types, and what comes of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from workload_strategies import Run, Written, record

from bridge.workload.catalogue import find
from bridge.workload.formats import read

LOG = "; MaxProcs: 8\n" + "".join(
    f"{line}\n"
    for line in (
        record(1, 10, 30, 2, 20, user=1),
        record(2, 15, -1, 4, 20, user=1, status=5),
        record(3, 20, 10, 9, 20, user=2),
        record(4, 30, 10, 8, user=3),
    )
)


@pytest.fixture
def log(written: Written) -> str:
    """Write a small log."""
    return str(written(LOG, "log.swf"))


def test_info_as_json(log: str, run: Run) -> None:
    status, out, err = run("info", log, "--json")
    assert (status, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    assert (found["records"], found["capacity"], found["span"], found["users"]) == (4, {"nodes": 8}, 20, 3)
    assert found["load"] == (2 * 30 + 9 * 10 + 8 * 10) / (8 * 20)
    assert found["selection"]["jobs"] == 2
    dropped = {t["reason"]: t["examples"] for t in found["selection"]["tally"] if t["kind"] == "dropped"}
    assert sorted(dropped.values()) == [[2], [3]]
    assert found["distributions"]["run"] == {
        "known": 3,
        "mean": pytest.approx(50 / 3),
        "min": 10,
        "q5": 10,
        "q25": 10,
        "q50": 10,
        "q75": 20,
        "q95": 28,
        "max": 30,
    }


def test_info_as_tables(log: str, run: Run) -> None:
    status, out, _ = run("info", log, "--cancelled", "keep", "--nodes", 16)
    assert status == 0
    assert "nodes 16" in out
    assert "usable jobs: 4" in out
    assert "repaired" in out


def test_info_of_a_log_without_a_usable_job(tmp_path: Path, run: Run) -> None:
    (tmp_path / "none.swf").write_text("; MaxProcs: 8\n" + record(2, 15, -1, 4, 20, status=5))
    status, out, err = run("info", tmp_path / "none.swf")
    assert status == 1
    assert "records" in out
    assert "no job is left" in err
    (tmp_path / "size.swf").write_text(record(2, 15, 10, 4, 20))
    status, out, err = run("info", tmp_path / "size.swf")
    assert (status, "not stated in the log" in out) == (0, True)
    assert "--nodes" in err


def test_info_of_a_bundled_workload(run: Run) -> None:
    status, out, _ = run("info", "bundled-128")
    assert status == 0
    assert "No record is dropped or repaired" in out


def test_convert_as_logged(log: str, tmp_path: Path, run: Run) -> None:
    status, out, _ = run("convert", log, tmp_path / "b.csv.gz", "--first", 3, "--scale", 2)
    assert status == 0
    assert f"wrote {tmp_path / 'b.csv.gz'}: 3 jobs" in out
    assert read(tmp_path / "b.csv.gz").jobs["submit"].tolist() == [10, 20, 30]


def test_a_converted_log_states_the_size_that_was_given(log: str, tmp_path: Path, run: Run) -> None:
    for suffix in ("csv", "parquet", "json"):
        assert run("convert", log, tmp_path / f"x.{suffix}", "--nodes", 33)[0] == 0
        made = read(tmp_path / f"x.{suffix}")
        assert (made.capacity["nodes"], made.header["MaxProcs"]) == (33, "33"), suffix


def test_convert_for_batsim_keeps_what_can_run(log: str, tmp_path: Path, run: Run) -> None:
    status, out, _ = run("convert", log, tmp_path / "b.json")
    assert status == 0
    assert "cancelled before it started" in out
    content = json.loads((tmp_path / "b.json").read_text())
    assert content["jobs"] == [
        {"id": "1", "subtime": 0, "res": 2, "profile": "delay20", "walltime": 20, "user": 1},
        {"id": "4", "subtime": 20, "res": 8, "profile": "delay10", "walltime": 10, "user": 3},
    ]


def test_convert_drops_malformed_lines_only_when_told(log: str, tmp_path: Path, run: Run) -> None:
    Path(log).write_text(LOG + "5 40")
    status, _, err = run("convert", log, tmp_path / "b.swf")
    assert (status, f"{log}:6: 2 fields" in err) == (1, True)
    status, out, _ = run("convert", log, tmp_path / "b.swf", "--malformed", "drop")
    assert status == 0
    assert "malformed line" in out
    assert len(read(tmp_path / "b.swf").jobs) == 4


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["convert", "LOG", "LOG"], "the file already exists"),
        (["convert", "LOG", "OUT/no/b.swf"], "its folder does not exist"),
        (["convert", "LOG", "OUT"], "tells no workload format"),
        (["convert", "LOG", "OUT/b.txt"], "tells no workload format"),
        (["convert", "LOG", "OUT/b.swf", "--scale", "0"], "is not positive"),
        (["convert", "LOG", "OUT/b.swf", "--scale", "1", "--load", "1"], "exclude each other"),
        (["convert", "nothing", "OUT/b.swf"], "neither a file nor the name"),
        (["generate", "poisson", "--out", "OUT/b.swf"], "poisson needs --base"),
        (
            ["generate", "poisson", "--base", "LOG", "--users", "3", "--out", "OUT/b.swf"],
            "no meaning for poisson",
        ),
        (["generate", "lublin-1", "--gap", "3", "--out", "OUT/b.swf"], "no meaning for lublin-1"),
        (["generate", "lublin-1", "--out", "LOG"], "the file already exists"),
        (["generate", "lublin-3", "--out", "OUT/b.swf"], "lublin-3"),
        (["fetch", "sdsc"], "the catalogue has no log 'sdsc'"),
    ],
)
def test_mistakes_end_in_one_message_and_no_file(
    log: str, tmp_path: Path, run: Run, words: list[str], what: str
) -> None:
    places = {"LOG": log, "OUT": str(tmp_path)}
    status, _, err = run(*(places.get(w, w.replace("OUT/", f"{tmp_path}/")) for w in words))
    assert status != 0
    assert what in err
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["log.swf"]


def test_generate_and_replace(log: str, tmp_path: Path, run: Run) -> None:
    out = tmp_path / "g.swf"
    words = ("generate", "lublin-2", "--jobs", 200, "--seed", 3, "--nodes", 32, "--users", 5, "--load", 0.5)
    assert run(*words, "--out", out)[0] == 0
    first = out.read_bytes()
    made = read(out)
    assert (len(made.jobs), made.capacity, made.jobs["user"].nunique()) == (200, {"nodes": 32}, 5)
    command = "command: bridge workload generate lublin-2 --jobs 200 --seed 3 --nodes 32 --users 5 --load 0.5"
    assert command in made.header["Note"].splitlines()
    assert run(*words, "--out", out)[0] == 1
    assert run(*words, "--out", out, "--force")[0] == 0
    assert out.read_bytes() == first
    assert run("generate", "poisson", "--base", log, "--jobs", 7, "--out", tmp_path / "p.parquet")[0] == 0
    assert len(read(tmp_path / "p.parquet").jobs) == 7


def test_list(tmp_path: Path, run: Run) -> None:
    fetched = tmp_path / "cache" / "workloads" / find("kth-sp2").file
    fetched.parent.mkdir(parents=True)
    fetched.write_bytes(b"")
    status, out, _ = run("list", "--json")
    entries = {entry["name"]: entry for entry in json.loads(out)}
    assert status == 0
    assert entries["bundled-128"]["kind"] == "bundled"
    assert (entries["kth-sp2"]["path"], entries["kth-sp2"]["verified"]) == (str(fetched), False)
    assert (entries["sdsc-sp2"]["path"], entries["sdsc-sp2"]["verified"]) == (None, True)
    status, out, _ = run("list")
    assert status == 0
    assert "unverified" in out


def test_fetch_of_a_log_that_is_there(log: str, tmp_path: Path, run: Run) -> None:
    import gzip

    target = tmp_path / "cache" / "workloads" / find("kth-sp2").file
    target.parent.mkdir(parents=True)
    target.write_bytes(gzip.compress(Path(log).read_bytes()))
    status, out, _ = run("fetch", "kth-sp2")
    assert status == 0
    assert "was there already" in out
    assert "NOT verified" in out
    assert "cite: D. G. Feitelson" in out
