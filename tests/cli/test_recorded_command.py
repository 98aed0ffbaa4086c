"""`--policy recorded` in commands and in Python: what happened, beside what a rule does, and refusals."""

import json
import shlex
from pathlib import Path

import pytest
from cli_commands import TINY, run_bridge, run_ok, run_refused

import bridge

#: Waits that `TINY`'s jobs had: job 4 started before job 2 did, on a machine that was full.
WAITS = {1: 0, 2: 100, 3: 0, 4: 0, 5: 60}


@pytest.fixture
def record(tmp_path: Path) -> Path:
    lines = [line.split() for line in TINY.splitlines()]
    for line in lines[1:]:
        line[2] = str(WAITS[int(line[0])])
    path = tmp_path / "tiny.swf"
    path.write_text("\n".join(map(" ".join, lines)) + "\n")
    return path


def test_the_record_is_a_run_like_any_other(record: Path, tmp_path: Path) -> None:
    run, rule = tmp_path / "recorded", tmp_path / "rule"
    metrics = json.loads(run_ok("replay", record, "--policy", "recorded", "--out", run, "--json"))
    assert metrics["wait.mean"] == 32.0
    run_ok("replay", record, "--policy", "fcfs+easy", "--out", rule)
    compared = json.loads(run_ok("compare", run, rule, "--json"))
    assert compared["metrics"]["wait.mean"] == [32.0, 52.0]
    assert compared["jobs"][0]["differing_starts"] == 3
    assert run_ok("report", run, rule, "--html", tmp_path / "page.html")
    text = (run / "run.toml").read_text()
    again = shlex.split(next(line for line in text.splitlines() if line.startswith("command"))[11:-1])
    assert json.loads(run_ok(*again[1:], "--json")) == metrics


def test_check_names_where_the_log_contradicts_itself(record: Path, tmp_path: Path) -> None:
    run_ok("replay", record, "--policy", "recorded", "--out", tmp_path / "run")
    told = run_bridge("check", tmp_path / "run")
    assert told.status == 1
    assert "first violation, at t = 30.000000 s [capacity:nodes]" in told.out
    assert "5 of 4 nodes in use when job 4 (1) starts; running: 1 (2), 3 (2)" in told.out


@pytest.mark.filterwarnings("ignore")
def test_python_knows_it(record: Path) -> None:
    assert bridge.replay(record, policy="recorded").metrics["wait.mean"] == 32.0
    table = bridge.evaluate(record, ["recorded", "fcfs+none"], sequences=2, length=4, metric="wait.max")
    assert table["mean"].index.tolist() == ["recorded", "fcfs"]
    assert table.loc["recorded", "mean"] == 100.0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("replay", "LOG", "--policy", "recorded+easy"), "no rule beside"),
        (("replay", "LOG", "--order", "recorded"), "--policy recorded"),
        (("replay", "bundled-128", "--policy", "recorded"), "does not say when its jobs started"),
        (("evaluate", "bundled-128", "--policy", "recorded"), "does not say when its jobs started"),
        (("decide", "recorded"), "decides nothing here"),
        (("validate", "recorded", "--workload", "LOG", "--platform", "sp2-128"), "Use --on fast"),
    ],
)
def test_what_it_cannot_do_is_refused_with_a_remedy(words: tuple[str, ...], what: str, record: Path) -> None:
    assert what in run_refused(*(str(record) if word == "LOG" else word for word in words))
