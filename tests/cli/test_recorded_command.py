"""`--policy recorded` in commands and in Python: what happened, beside what a rule does, and refusals."""

import json
import shlex
from pathlib import Path

import pytest
from cli_commands import TINY, run_bridge, run_ok, run_refused

import bridge
from bridge.judge.run import read_run

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


CLUSTER = """
name = "two"
[[nodes]]
nodes = "n[1-4]"
cores = 2
"""


@pytest.fixture
def on_nodes(record: Path, tmp_path: Path) -> list[str]:
    """A log whose jobs 1, 3 and 4 name their nodes, and a cluster: jobs 3 and 4 were on one node."""
    log = bridge.read_workload(record)
    names = {1: "n[1-2]", 3: "n[3-4]", 4: "n4"}
    table = log.jobs.assign(ran_on=[names.get(job, "") for job in log.jobs["job_id"]])
    table.to_csv(tmp_path / "sited.csv", index=False)
    (tmp_path / "c.toml").write_text(CLUSTER)
    return [str(tmp_path / "sited.csv"), "--cluster", str(tmp_path / "c.toml")]


def test_on_a_cluster_it_has_the_nodes_of_the_log(on_nodes: list[str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    output = run_bridge(
        "replay", *on_nodes, "--policy", "recorded", "--out", run, "--plot", "--by", "partition"
    )
    assert output.status == 0
    assert "on which nodes 2 of 5 jobs ran: they are only counted" in output.err
    assert "1 node had more in use at one time than they have: n4 (4 of 2 cores)" in output.err
    assert (run / "sited-gantt.png").exists()
    table = read_run(run).jobs.set_index("job_id")
    assert table["allocated_resources"].to_dict() == {"1": "0-1", "2": "", "3": "2-3", "4": "3", "5": ""}
    assert table["waiting_time"].to_dict() == {str(job): wait for job, wait in WAITS.items()}
    checked = run_bridge("check", run)
    assert checked.status == 1
    assert "job 4 starts on host 3, which job 3 holds until" in checked.out


@pytest.mark.filterwarnings("ignore")
def test_on_a_cluster_it_stands_beside_rules(on_nodes: list[str], tmp_path: Path) -> None:
    log, _, cluster = on_nodes
    run, rule = tmp_path / "run", tmp_path / "rule"
    assert bridge.replay(log, policy="recorded", cluster=cluster).metrics["wait.mean"] == 32.0
    run_ok("replay", *on_nodes, "--policy", "recorded", "--out", run)
    run_ok("replay", *on_nodes, "--policy", "fcfs+easy", "--out", rule)
    compared = json.loads(run_ok("compare", run, rule, "--json"))
    assert compared["metrics"]["wait.mean"][0] == 32.0
    names = {*read_run(rule).metrics}
    assert {*read_run(run).metrics} >= {name for name in names if not name.startswith("reason.")}
    assert run_ok("report", run, rule, "--html", tmp_path / "page.html")
    words = ("--sequences", 2, "--length", 4, "--metric", "wait.max", "--json")
    rows = json.loads(run_ok("evaluate", *on_nodes, "--policy", "recorded", *words))["policies"]
    assert rows[0]["mean"] == 100.0
    document = json.loads(run_ok("fidelity", *on_nodes, "--policy", "recorded", "--json"))
    assert document["log_mae"] == 0.0


def test_check_names_events_of_the_calendar_that_did_nothing(record: Path, tmp_path: Path) -> None:
    """A replay writes them to the run's record."""
    run_ok("replay", record, "--policy", "fcfs+easy", "--out", tmp_path / "run")
    text = (tmp_path / "run" / "run.toml").read_text()
    event = "calendar[0] (cancel at 5 s) does nothing: no job that is played has the id '99'"
    (tmp_path / "run" / "run.toml").write_text(
        text.replace("[config]", f'[config]\nidle_events = ["{event}"]')
    )
    assert f"note: {event}" in run_ok("check", tmp_path / "run")


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
