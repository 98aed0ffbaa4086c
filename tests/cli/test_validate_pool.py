"""`bridge validate` and `bridge decide` on the time-stepped pool: tables, files, and what is refused."""

import json
import shlex
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from cli_commands import run_bridge, run_ok
from pool_policies import RECIPE, write_checkpoint
from simgrid_available import needs_simgrid

from bridge.judge.run import read_run

EXACT, SIXTEEN = (f"--scheduler slotted --platform {name}" for name in ("exact-128", "teaching-16"))
EVENT = "--workload bundled-128 --platform sp2-128"
FEW = shlex.split(f"{EXACT} --sequences 2 --steps 20 --seed 3")


def repeat(script: Path) -> None:
    """Run a script that repeats a simulation, on a port that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        script.write_text(script.read_text().replace("28000", str(probe.getsockname()[1])))
    subprocess.run(["sh", str(script)], check=True, timeout=100, capture_output=True)


@needs_simgrid
def test_heuristics_in_both_worlds() -> None:
    told = run_bridge("validate", "saf", "saf+rule", *FEW, "--rate", 0.6, "--tolerance", 0, "--out", "runs")
    assert told.status == 0, told.err
    assert "synthetic-4870-0: 2 sequences of 20 steps, profile delay on exact-128 (simgrid)" in told.out
    assert "saf: 0 of " in told.out and "saf+rule: 0 of " in told.out
    document = json.loads(Path("runs/agreement.json").read_text())
    expected = [("saf", "none"), ("saf+rule", "rule")]
    assert [(one["policy"], one["kill"]) for one in document["policies"]] == expected
    assert {one["differing_starts"] for one in document["policies"]} == {0}
    places = [
        f"runs/{who}/{s}/{world}"
        for who in ("saf", "saf+rule")
        for s in (1, 2)
        for world in ("fast", "simgrid")
    ]
    for place in places:
        assert run_ok("check", place).startswith("valid: ")
    assert "fast: 0 of" in run_ok("compare", places[1], places[0])
    run_ok("report", *places[:2], "--html", "page.html")
    run = read_run(places[1])
    command = shlex.split(str(run.config["command"]))
    assert command[:4] == ["bridge", "validate", "saf", "saf+rule"] and "--rate" in command
    assert json.loads(run_ok(*command[1:], "--json"))["policies"] == document["policies"]


@needs_simgrid
def test_an_agents_folder_tells_what_is_played() -> None:
    agent = write_checkpoint(Path("agents/mine"), replace(RECIPE, kill="learned"), 6)
    words = shlex.split("--platform exact-128 --sequences 1 --json")
    document = json.loads(run_ok("validate", agent, "tetris", *words))
    mine, other = document["policies"]
    assert (mine["policy"], mine["kill"], mine["rate"], mine["steps"]) == ("mine", "learned", 0.5, 40)
    assert mine["pool"]["units"] == other["pool"]["units"] == 12
    assert mine["fast"]["kills"] == mine["detailed"]["kills"] > 0
    assert mine["differing_starts"] == other["differing_starts"] == 0
    assert document["problems"] == []


@needs_simgrid
def test_beyond_the_tolerance() -> None:
    words = shlex.split(f"{SIXTEEN} --pool-units 16 --profile io:0.5 --steps 30")
    told = run_bridge("validate", "saf", *words, "--sequences", 1, "--tolerance", 0.01)
    assert told.status == 1
    assert "beyond the tolerance: saf: slowdown is " in told.err
    assert "  first: job " in told.out


@needs_simgrid
def test_an_agent_that_has_learnt_with_the_oracle_clamp_is_played_without() -> None:
    clamped = replace(RECIPE, pool=replace(RECIPE.pool, oracle_clamp=True))
    agent = write_checkpoint(Path("agents/clamped"), clamped, 2)
    told = run_bridge("validate", agent, "--platform", "exact-128", "--sequences", 1, "--json")
    assert told.status == 0, told.err
    assert "clamped has learnt with the oracle clamp, and is played without it" in told.err
    one = json.loads(told.out)["policies"][0]
    assert (one["fast"]["oracle"], one["pool"]["oracle_clamp"], one["differing_starts"]) == (False, False, 0)


def test_an_agent_that_has_learnt_from_true_lengths_is_played_without_them() -> None:
    told_of = replace(RECIPE, pool=replace(RECIPE.pool, oracle_clamp=True, oracle_picture=True))
    agent = write_checkpoint(Path("agents/told"), told_of, 2)
    told = run_bridge("validate", agent, "--platform", "exact-128", "--sequences", 1, "--json")
    assert told.status == 0, told.err
    said = "told has learnt with the oracle clamp and the oracle picture, and is played without them"
    assert said in " ".join(told.err.split())
    one = json.loads(told.out)["policies"][0]
    assert (one["fast"]["oracle"], one["pool"]["oracle_picture"], one["differing_starts"]) == (
        False,
        False,
        0,
    )


def test_an_agent_for_another_pool_is_refused_before_anything_is_played() -> None:
    write_checkpoint(Path("mine"), RECIPE, 2)
    write_checkpoint(Path("large"), replace(RECIPE, pool=replace(RECIPE.pool, units=17)), 2)
    words = ("--platform", "teaching-16", "--sequences", 1, "--out", "runs")
    told = run_bridge("validate", "mine", "large", *words)
    assert told.status == 1 and "the platform has 16 compute hosts, the pool 17 units" in told.err
    assert not Path("runs").exists()


@needs_simgrid
def test_the_script_believes_what_the_workload_says(tmp_path: Path) -> None:
    agent = write_checkpoint(Path("mine"), replace(RECIPE, kill="learned", estimator="submit"), 6)
    words = shlex.split("--platform exact-128 --sequences 1 --estimator running --out runs")
    run_ok("validate", agent, *words)
    folder = tmp_path / "runs/mine/1/simgrid/detailed"
    script = folder / "again.sh"
    repeat(script)
    first, again = (
        [(row["job_id"], row["start_step"]) for row in json.loads(path.read_text())["jobs"]]
        for path in (folder / "decisions.json", folder / "again" / "decisions.json")
    )
    assert first == again
    assert sum(job.startswith("w0_again!") for job, _ in first) > 0


def test_files_alone() -> None:
    out = run_ok("validate", "saf+rule", *FEW, "--no-start", "--out", "files", "--placement", "best-fit")
    assert out == "saf+rule: 2 simulations; start one with files/saf+rule/1/again.sh\n"
    for s in (1, 2):
        folder = Path(f"files/saf+rule/{s}")
        assert {path.name for path in folder.iterdir()} == {"platform.xml", "workload.json", "again.sh"}
        text = (folder / "again.sh").read_text()
        assert "\nbridge decide saf+rule --scheduler pool --pool-units 20 --pool-slots 5 " in text
        assert "--placement best-fit --platform platform.xml" in text
        assert " --mmax 20 --enable-dynamic-jobs &\n" in text


@needs_simgrid
def test_the_script_simulates(tmp_path: Path) -> None:
    agent = write_checkpoint(Path("agents/mine"), replace(RECIPE, kill="learned"), 3)
    words = "--platform exact-128 --sequences 1 --steps 15 --no-start --out files"
    run_ok("validate", agent, *shlex.split(words))
    script = next(tmp_path.glob("files/*/1/again.sh"))
    repeat(script)
    rows = json.loads((script.parent / "again" / "decisions.json").read_text())["jobs"]
    assert {row["state"] for row in rows} == {"COMPLETED_SUCCESSFULLY", "COMPLETED_KILLED"}


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (f"fcfs {EXACT}", 1, "is no policy of the time-stepped pool"),
        ("saf --scheduler slotted", 1, "the detailed world needs a platform"),
        (f"saf {EXACT} --walltime keep", 2, "the time-stepped pool has no --walltime"),
        (f"saf {EXACT} --energy", 2, "the time-stepped pool has no --energy"),
        (f"saf {EXACT} --workload x", 2, "the time-stepped pool has no --workload"),
        (f"saf {EXACT} --oracle-clamp", 2, "No such option"),
        (f"saf {SIXTEEN}", 1, "the platform has 16 compute hosts, the pool 20 units"),
        (f"saf {EXACT} --no-start", 2, "--no-start writes to --out DIR"),
        (f"saf {EXACT} --estimator requested", 1, "have no requested time"),
        (f"saf {EXACT} --data nowhere.csv", 1, "nowhere.csv"),
        (f"fcfs+easy {EVENT} --rate 1", 2, "event-driven scheduler has no --rate"),
        (f"fcfs+easy {EVENT} --no-start", 2, "has no --no-start"),
        (f"saf {EXACT} --save-baseline b", 2, "has no --save-baseline"),
    ],
)
def test_what_validation_refuses(words: str, status: int, says: str) -> None:
    told = run_bridge("validate", *shlex.split(words))
    assert (told.status, told.out) == (status, "")
    assert says in told.err


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        ("fcfs --scheduler slotted", 1, "is no policy of the time-stepped pool"),
        ("saf --scheduler slotted --backfill easy", 2, "the time-stepped pool has no --backfill"),
        (
            "saf --scheduler pool --workload x --first 3",
            2,
            "the time-stepped pool has no --first, --workload",
        ),
        ("saf --scheduler slotted --estimator actual", 1, "cannot be had of jobs that really run"),
        ("saf --scheduler slotted --platform x.xml", 2, "first-fit does not read --platform; leave it out"),
        ("saf --scheduler slotted --resource power=1", 2, "the time-stepped pool has no --resource\n"),
        ("sjf --kill rule", 2, "the event-driven scheduler has no --kill"),
        ("agents/mine --kill rule", 2, "--kill is part of the agent agents/mine"),
        ("agents/mine --pool-units 20", 1, "has learnt on a pool of 12 units, not 20"),
        ("agents/mine --scheduler event", 1, "is an agent of the time-stepped pool"),
    ],
)
def test_what_deciding_refuses(words: str, status: int, says: str) -> None:
    write_checkpoint(Path("agents/mine"), RECIPE, 2)
    told = run_bridge("decide", *shlex.split(words))
    assert (told.status, told.out) == (status, "")
    assert says in told.err
