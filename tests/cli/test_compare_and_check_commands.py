"""`bridge compare` and `bridge check` as typed: runs, files of other tools, exit statuses."""

import json
from pathlib import Path

import pytest
from cli_commands import file_names, run_bridge, run_ok, run_refused


@pytest.fixture
def runs(tiny: str) -> tuple[str, str]:
    """Replay the small log with EASY and without."""
    run_ok("replay", tiny, "--out", "easy", "--rst", "easy.rst")
    run_ok("replay", tiny, "--backfill", "none", "--out", "none")
    return "easy", "none"


def test_compare_two_runs(runs: tuple[str, str]) -> None:
    out = run_ok("compare", *runs)
    row = next(line for line in out.splitlines() if "wait.max" in line)
    assert [cell.strip() for cell in row.split("│")[2:4]] == ["2 min", "2.17 min"]
    assert "none: 2 of 5 common jobs start at another time than in easy\n" in out
    assert "  first: job 3 starts at 20.000000 s in easy, starts at 150.000000 s here\n" in out


def test_compare_as_json(runs: tuple[str, str]) -> None:
    found = json.loads(run_ok("compare", *runs, "--json"))
    text = json.dumps(found)
    assert "Infinity" not in text
    assert "NaN" not in text
    assert found["jobs"][0]["differing_starts"] == 2


def test_compare_with_a_bare_file(runs: tuple[str, str]) -> None:
    assert "easy.rst: 0 of 5 common jobs start at another time than in easy\n" in run_ok(
        "compare", runs[0], "easy.rst", "--nodes", 4
    )
    assert run_refused("compare", runs[0], "easy.rst").startswith("easy.rst: a bare jobs file does not tell")


def test_compare_draws(runs: tuple[str, str], folder: Path) -> None:
    run_ok("compare", *runs, "--plot", "both.svg")
    assert (folder / "both.svg").read_text().startswith("<?xml")
    assert "saved as .png or .svg" in run_refused("compare", *runs, "--plot", "both.pdf")
    assert "both.pdf" not in file_names(folder)


def test_compare_needs_two(runs: tuple[str, str]) -> None:
    assert "two runs or more" in run_refused("compare", runs[0])
    assert "nowhere: no such run folder" in run_refused("compare", runs[0], "nowhere")


def test_check_a_run_and_every_file_of_it(runs: tuple[str, str], tiny: str) -> None:
    said = "valid: 5 jobs started; peak 4 of 4 nodes\n"
    assert run_ok("check", runs[0]) == said
    for name in ("easy/jobs.csv", "easy/jobs.parquet", "easy.rst"):
        assert run_ok("check", name, "--nodes", 4, "--workload", tiny) == said
    assert run_refused("check", "easy/jobs.csv") == (
        "easy/jobs.csv: the machine's size is not known\n  Add --nodes N.\n"
    )


def test_check_reports_the_first_violation(runs: tuple[str, str]) -> None:
    told = run_bridge("check", f"{runs[0]}/jobs.csv", "--nodes", 3)
    assert (told.status, told.err) == (1, "")
    assert told.out.splitlines()[:2] == [
        "first violation, at t = 20.000000 s [capacity:nodes]:",
        "  4 of 3 nodes in use when job 3 (2) starts; running: 1 (2)",
    ]
    told = run_bridge("check", runs[0], "--nodes", 3, "--json")
    assert told.status == 1
    found = json.loads(told.out)
    assert (found["ok"], found["first"]["time"], found["first"]["jobs"]) == (False, 20, ["3", "1"])


def test_check_against_another_log(runs: tuple[str, str], folder: Path) -> None:
    text = (folder / "tiny.swf").read_text().replace("3 1020 -1 70", "3 1020 -1 60")
    (folder / "other.swf").write_text(text)
    told = run_bridge("check", runs[0], "--workload", "other.swf")
    assert told.status == 1
    assert "job 3" in told.out


def test_check_bad_files(folder: Path) -> None:
    (folder / "empty.csv").write_text("")
    (folder / "junk.csv").write_bytes(bytes(range(256)))
    assert run_refused("check", "empty.csv", "--nodes", 4).startswith("empty.csv: the file is empty\n")
    assert run_refused("check", "junk.csv", "--nodes", 4).startswith("junk.csv:1: neither a jobs CSV")
    assert run_refused("check", "none.csv", "--nodes", 4) == "none.csv: no such file\n  Check the path.\n"


def test_runs_in_which_no_job_waits_say_so(tmp_path: Path) -> None:
    log = tmp_path / "idle.csv"
    log.write_text("job_id,submit,run,procs\n1,0,9,2\n2,20,9,2\n3,40,9,1\n")
    line = "no job waits here (at most 0 s): no policy can start a job earlier"
    for policy in ("fcfs+easy", "sjf+easy"):
        out = run_ok("replay", log, "--nodes", 2, "--policy", policy, "--out", tmp_path / policy)
        assert line in out.split("\n")
    compared = run_bridge("compare", tmp_path / "fcfs+easy", tmp_path / "sjf+easy")
    assert f"warning: {line}\n" in compared.err
    log.write_text("job_id,submit,run,procs\n1,0,9,2\n2,5,9,2\n")
    assert "no job waits" not in run_ok("replay", log, "--nodes", 2, "--policy", "fcfs+easy")
