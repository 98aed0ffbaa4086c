"""`bridge workload`: what a user types, and what comes of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli_commands import run_bridge, run_ok, run_refused
from workload_strategies import Written, record

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
    return str(written(LOG, "log.swf"))


def test_info_as_json(log: str) -> None:
    told = run_bridge("workload", "info", log, "--json")
    assert (told.status, told.err) == (0, "")
    found: dict[str, Any] = json.loads(told.out)
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


def test_info_as_tables(log: str) -> None:
    out = run_ok("workload", "info", log, "--cancelled", "keep", "--nodes", 16)
    assert "nodes 16" in out
    assert "usable jobs: 4" in out
    assert "repaired" in out


def test_info_of_a_log_without_a_usable_job(tmp_path: Path) -> None:
    (tmp_path / "none.swf").write_text("; MaxProcs: 8\n" + record(2, 15, -1, 4, 20, status=5))
    told = run_bridge("workload", "info", tmp_path / "none.swf")
    assert told.status == 1
    assert "records" in told.out
    assert "no job is left" in told.err
    (tmp_path / "size.swf").write_text(record(2, 15, 10, 4, 20))
    told = run_bridge("workload", "info", tmp_path / "size.swf")
    assert (told.status, "not stated in the log" in told.out) == (0, True)
    assert "--nodes" in told.err


def test_info_of_a_bundled_workload() -> None:
    assert "No record is dropped or repaired" in run_ok("workload", "info", "bundled-128")


def test_convert_as_logged(log: str, tmp_path: Path) -> None:
    out = run_ok("workload", "convert", log, tmp_path / "b.csv.gz", "--first", 3, "--scale", 2)
    assert f"wrote {tmp_path / 'b.csv.gz'}: 3 jobs" in out
    assert read(tmp_path / "b.csv.gz").jobs["submit"].tolist() == [10, 20, 30]


def test_a_converted_log_states_the_size_that_was_given(log: str, tmp_path: Path) -> None:
    for suffix in ("csv", "parquet", "json"):
        run_ok("workload", "convert", log, tmp_path / f"x.{suffix}", "--nodes", 33)
        made = read(tmp_path / f"x.{suffix}")
        assert (made.capacity["nodes"], made.header["MaxProcs"]) == (33, "33"), suffix


def test_convert_for_batsim_keeps_what_can_run(log: str, tmp_path: Path) -> None:
    assert "cancelled before it started" in run_ok("workload", "convert", log, tmp_path / "b.json")
    content = json.loads((tmp_path / "b.json").read_text())
    assert content["jobs"] == [
        {"id": "1", "subtime": 0, "res": 2, "profile": "delay20", "walltime": 20, "user": 1},
        {"id": "4", "subtime": 20, "res": 8, "profile": "delay10", "walltime": 10, "user": 3},
    ]


def test_convert_drops_malformed_lines_only_when_told(log: str, tmp_path: Path) -> None:
    Path(log).write_text(LOG + "5 40")
    words = ("workload", "convert", log, tmp_path / "b.swf")
    assert f"{log}:6: 2 fields" in run_refused(*words)
    assert "malformed line" in run_ok(*words, "--malformed", "drop")
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
    log: str, tmp_path: Path, words: list[str], what: str
) -> None:
    places = {"LOG": log, "OUT": str(tmp_path)}
    told = run_bridge("workload", *(places.get(w, w.replace("OUT/", f"{tmp_path}/")) for w in words))
    assert told.status != 0
    assert what in told.err
    assert "Traceback" not in told.err
    assert [path.name for path in tmp_path.iterdir()] == ["log.swf"]


def test_generate_and_replace(log: str, tmp_path: Path) -> None:
    out, generate = tmp_path / "g.swf", ("workload", "generate")
    words = (*generate, "lublin-2", "--jobs", 200, "--seed", 3, "--nodes", 32, "--users", 5, "--load", 0.5)
    run_ok(*words, "--out", out)
    first = out.read_bytes()
    made = read(out)
    assert (len(made.jobs), made.capacity, made.jobs["user"].nunique()) == (200, {"nodes": 32}, 5)
    command = "command: bridge workload generate lublin-2 --jobs 200 --seed 3 --nodes 32 --users 5 --load 0.5"
    assert command in made.header["Note"].splitlines()
    run_refused(*words, "--out", out)
    run_ok(*words, "--out", out, "--force")
    assert out.read_bytes() == first
    run_ok(*generate, "poisson", "--base", log, "--jobs", 7, "--out", tmp_path / "p.parquet")
    assert len(read(tmp_path / "p.parquet").jobs) == 7


def test_list(tmp_path: Path) -> None:
    fetched = tmp_path / "cache" / "workloads" / find("kth-sp2").file
    fetched.parent.mkdir(parents=True)
    fetched.write_bytes(b"")
    entries = {entry["name"]: entry for entry in json.loads(run_ok("workload", "list", "--json"))}
    assert entries["bundled-128"]["kind"] == "bundled"
    assert (entries["kth-sp2"]["path"], entries["kth-sp2"]["verified"]) == (str(fetched), False)
    assert (entries["sdsc-sp2"]["path"], entries["sdsc-sp2"]["verified"]) == (None, True)
    assert "unverified" in run_ok("workload", "list")


def test_fetch_of_a_log_that_is_there(log: str, tmp_path: Path) -> None:
    import gzip

    target = tmp_path / "cache" / "workloads" / find("kth-sp2").file
    target.parent.mkdir(parents=True)
    target.write_bytes(gzip.compress(Path(log).read_bytes()))
    out = run_ok("workload", "fetch", "kth-sp2")
    assert "was there already" in out
    assert "NOT verified" in out
    assert "cite: D. G. Feitelson" in out
