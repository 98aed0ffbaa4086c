"""`bridge forecast` and `bridge whatif` of a run on a cluster."""

import json
from pathlib import Path

import pytest
from cli_commands import run_ok, run_refused

SITE = """
partitions = [{ name = "work" }]
[[nodes]]
name = "n"
count = 4
"""
#: One job has all nodes until 100 s, of 1,000 that it asked for; two wait for 3 and for 2 of them.
LOG = [(1, 0, 100, 4, 1000), (2, 10, 100, 3, 200), (3, 20, 100, 2, 300)]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [f"{i} {s} 0 {t} {n} -1 -1 {n} {r} -1 1 1 1 1 1 1 -1 -1" for i, s, t, n, r in LOG]
    Path("log.swf").write_text("; MaxNodes: 4\n" + "\n".join(rows) + "\n")
    Path("site.toml").write_text(SITE)
    run_ok("replay", "log.swf", "--cluster", "site.toml", "--out", "run")
    return Path("run")


def test_reserved_starts_are_those_of_requests(run: Path) -> None:
    document = json.loads(run_ok("forecast", str(run), "--at", "50", "--futures", "4", "--json"))
    assert [(row["job"], row["reserved"]) for row in document["jobs"]] == [("2", 1000.0), ("3", 1200.0)]


def test_nodes_are_drained_and_added_at_that_time(run: Path) -> None:
    def waits(*change: str) -> tuple[float, int]:
        words = ("whatif", str(run), "--at", "50", "--futures", "4", "--json", *change)
        row = json.loads(run_ok(*words))["policies"][-1]
        return row["values"]["wait"]["mean"], row["never"]

    assert waits("--add", "n:2")[0] < waits("--add", "n:1")[0]
    assert waits("--drain", "n[0-1]")[1] == 1  # three of two nodes never start


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("forecast", "run", "--at", "50", "--submit", "1:1h"),
            "a job that was not submitted is of one pool",
        ),
        (("state", "run", "--at", "50", "--out", "x.json"), "a state's file is of one pool"),
        (("whatif", "run", "--at", "50", "--drain", "n9"), "n9"),
        (("whatif", "run", "--at", "50", "--add", "m:2"), "is no group of nodes"),
        (("whatif", "run", "--at", "50.5", "--drain", "n1"), "at whole seconds only"),
    ],
)
@pytest.mark.usefixtures("run")
def test_what_is_refused(words: tuple[str, ...], says: str) -> None:
    assert says in run_refused(*words)


@pytest.mark.usefixtures("run")
def test_a_log_that_has_changed_is_refused() -> None:
    text = Path("log.swf").read_text().replace("1 0 0 100 4", "1 0 0 30 4")
    Path("log.swf").write_text(text)
    assert "its log gives another schedule by now" in run_refused("forecast", "run", "--at", "150")
    Path("site.toml").write_text(SITE.replace("4", "5"))
    assert "is not the cluster of the run any more" in run_refused("forecast", "run", "--at", "150")
