"""`bridge workload import` and `machine`: what a user types, and what comes of it."""

import json
import os
from pathlib import Path

import pytest
from cli_commands import run_bridge, run_ok, run_refused

from bridge.workload.formats import read

SACCT = """\
JobID|JobIDRaw|User|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|NNodes|AllocTRES|JobName
1|1|alice|COMPLETED|100|100|110|130|20|5|2|cpu=16,mem=100M,node=2|first
1.batch|1.batch||COMPLETED|110|110|110|130|20||1|cpu=8|batch
2|2|bob|FAILED|120|125|130|140|10|UNLIMITED|1|cpu=8,mem=100M,node=1|two
lines
3|3|bob|RUNNING|120|125|130|Unknown|10|5|1|cpu=8|still
torn|row
"""
CONF = "NodeName=n[0-3] CPUs=8 RealMemory=1000\nPartitionName=agent Nodes=ALL\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "sacct.txt").write_text(SACCT)
    (tmp_path / "slurm.conf").write_text(CONF)
    return tmp_path


def imported(*words: object) -> str:
    """Run `bridge workload import WORDS…`, and return what it printed."""
    return run_ok("workload", "import", *words)


@pytest.mark.parametrize("ending", ["parquet", "csv", "swf.gz"])
def test_import_and_replay(files: Path, ending: str) -> None:
    out = files / f"log.{ending}"
    told = imported("sacct", files / "sacct.txt", "--machine", files / "slurm.conf", "--out", out)
    assert "2 jobs" in told
    assert "still running when the list was made" in told
    assert ("left out slurm_id, state" in told) == (ending == "swf.gz")
    workload = read(out)
    assert workload.capacity == {"nodes": 4, "cores": 32, "main_memory": 4000 << 20}
    names = ["job_id", "submit", "wait", "run", "procs", "req_time", "cores", "held"]
    expected = [[1, 0, 10, 20, 2, 300, 16, 0], [2, 25, 5, 10, 1, 300, 8, 5]]
    assert workload.jobs[names].to_numpy().tolist() == expected
    assert json.loads(run_ok("replay", out, "--policy", "sjf+easy", "--json"))["jobs.total"] == 2


def test_a_pipe(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (files / "sacct.txt").open() as source:
        monkeypatch.setattr("sys.stdin", source)
        assert "capacity: not known" in imported("sacct", "-", "--out", files / "log.csv", "--anonymous")
    assert "alice" not in (files / "log.csv").read_text()


def test_names_in_any_encoding(files: Path) -> None:
    (files / "sacct.txt").write_bytes(SACCT.encode().replace(b"first", b"f\xe9\xff"))
    imported("sacct", files / "sacct.txt", "--out", files / "log.csv")
    assert read(files / "log.csv").jobs["job_name"][0] == r"f\xe9\xff"


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["sacct", "gone.txt"], "no such file"),
        (["sacct", "slurm.conf"], "no column jobid, state, submit, start"),
        (["jobcomp", "sacct.txt"], "no line begins with JobId"),
        (["sacct", "sacct.txt", "--timezone", "Mars/Olympus"], "is no time zone"),
        (["sacct", "sacct.txt", "--machine", "sacct.txt"], "tells of no node"),
        (["sacct", "sacct.txt", "--partition", "gone"], "no job has ended in it"),
    ],
)
def test_errors(files: Path, words: list[str], what: str) -> None:
    assert what in run_refused("workload", "import", *words, "--out", "log.csv")
    assert not (files / "log.csv").exists()


def test_the_command_and_the_machine(files: Path) -> None:
    told = imported("command", "--from", "2026-03-01", "--to", "2026-04-01")
    assert "-S 2026-03-01 -E 2026-04-01 --format=JobID,JobIDRaw," in told
    whole = {"nodes": 4, "cores": 32, "main_memory": 4000 << 20}
    machine = json.loads(run_ok("workload", "machine", files / "slurm.conf", "--json"))
    assert machine == {"capacity": whole, "partitions": {"agent": whole}}
    assert "agent" in run_ok("workload", "machine", files / "slurm.conf")


def test_a_real_listing(tmp_path: Path) -> None:
    folder = os.environ.get("BRIDGE_GOLDEN", "")
    sample = Path(folder).parent / "data" / "sacct-sample.txt"
    if not folder or not sample.exists():
        pytest.skip("BRIDGE_GOLDEN names no folder beside which data/sacct-sample.txt lies")
    out = tmp_path / "log.parquet"
    imported("sacct", sample, "--out", out)
    jobs = read(out).jobs.set_index("slurm_id")
    assert len(jobs) == 26
    assert jobs.loc["30+1", ["job_id", "procs", "wait", "run"]].tolist() == [31, 2, 23, 1]
    assert jobs.loc["12_3", "job_id"] == 15
    assert jobs.loc["32", "job_name"] == "two\nlines|bar"
    assert jobs.loc["22", ["run", "req_time", "status", "state"]].tolist() == [80, 60, 0, "TIMEOUT"]
    assert jobs.loc["25", ["status", "req_time"]].tolist() == [5, 3600]


@pytest.mark.parametrize("word", ["2026-13-01", "x", "20260131", "2026-01-31T25:00", "now;id", "٢٠٢٦-٠١-٠١"])
def test_a_date_that_is_none(word: str) -> None:
    told = run_bridge("workload", "import", "command", "--from", word)
    assert (told.status, "is no date such as 2026-01-31" in told.err) == (2, True)


@pytest.mark.parametrize("word", ["2026-01-31", "2026-01-31T12:00:00", "now-30days", "midnight"])
def test_a_date_of_sacct(word: str) -> None:
    assert f"-S {word} -E now" in imported("command", "--from", word)


def test_a_log_without_its_machine_can_be_looked_at(files: Path) -> None:
    imported("sacct", files / "sacct.txt", "--out", files / "log.csv")
    told = run_bridge("workload", "info", files / "log.csv")
    assert told.status == 0
    assert "usable jobs are not known" in told.err
    assert "Give --nodes N" in told.err


def test_what_no_scheduler_looks_at_is_said_and_json_stays_json(files: Path) -> None:
    (files / "slurm.conf").write_text(f"{CONF}PartitionName=long Nodes=ALL QOS=low\n")
    told = run_bridge("workload", "machine", files / "slurm.conf", "--json")
    assert set(json.loads(told.out)) == {"capacity", "partitions"}
    assert "2 partitions: taken as one pool of nodes; 1 partitions with QOS" in told.err
    listing = SACCT.replace("|JobName", "|Partition|JobName").replace("node=2|", "node=2|agent|")
    (files / "sacct.txt").write_text(
        listing.replace("node=1|", "node=1|long|").replace("FAILED", "PREEMPTED")
    )
    out = files / "log.parquet"
    said = imported("sacct", files / "sacct.txt", "--machine", files / "slurm.conf", "--out", out)
    assert "all nodes are one pool" in " ".join(said.split())
    played = run_bridge("replay", out, "--policy", "fcfs+easy", "--json")
    assert json.loads(played.out)["jobs.total"] == 2
    assert played.err.count("no scheduler uses what the log says of these jobs: ") == 1
    assert "2 jobs of 2 partitions: all nodes are one pool; 1 job was preempted" in played.err
    info = json.loads(run_ok("workload", "info", out, "--json"))["selection"]
    assert [item["count"] for item in info["ignored"]] == [2, 1, 2]
    assert not any(item["kind"] == "ignored" for item in info["tally"])


def test_a_listing_without_a_line_of_names(files: Path) -> None:
    head, rows = SACCT.split("\n", 1)
    (files / "rows.txt").write_text(rows)
    names = head.replace("|", ",").replace("State", "State%20")
    imported("sacct", files / "rows.txt", "--columns", names, "--out", files / "log.csv")
    assert read(files / "log.csv").jobs["job_id"].tolist() == [1, 2]
    assert "--columns tells them" in run_refused(
        "workload", "import", "sacct", files / "rows.txt", "--out", files / "no.csv"
    )
