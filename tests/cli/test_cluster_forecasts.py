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


def what_if(*change: str, at: str = "50") -> list[tuple[float, float, int]]:
    """Return mean wait, time until the last start, and who never starts, of each rule."""
    words = ("whatif", "run", "--at", at, "--futures", "4", "--json", *change)
    rows = json.loads(run_ok(*words))["policies"]
    means = [[row["values"][name]["mean"] for name in ("wait", "drained")] for row in rows]
    return [(wait, last, row["never"]) for (wait, last), row in zip(means, rows, strict=True)]


@pytest.mark.usefixtures("run")
def test_added_nodes_are_not_there_before_and_leave_the_base_as_it_is() -> None:
    base = what_if("--policy", "fcfs+easy", "--policy", "sjf+easy")[0]
    assert what_if("--add", "n:5") == [base, (35.0, 0.0, 0)]  # both start at once: waits of 40 and 30 s
    assert what_if("--add", "n:1")[0] == what_if("--drain", "n0")[0] == base


@pytest.mark.parametrize(
    "more", ['calendar = [{ time = 20, event = "up", nodes = ["ALL"] }]', "failures = { %s }"]
)
@pytest.mark.usefixtures("run")
def test_no_other_event_brings_added_nodes_up(more: str) -> None:
    more = more.replace("%s", "mean_time_between = 1000000, repair_time = 1, seed = 1")
    Path("site.toml").write_text(more + "\n" + SITE)
    run_ok("replay", "log.swf", "--cluster", "site.toml", "--out", "run", "--force")
    assert what_if("--add", "n:5")[1] == (35.0, 0.0, 0)


@pytest.mark.usefixtures("run")
def test_nodes_are_drained_after_the_starts_of_that_time() -> None:
    base, changed = what_if("--drain", "n[0-1]", at="100")  # job 2 has begun on n0, n1 and n2
    assert base == changed


@pytest.mark.usefixtures("run")
def test_added_nodes_must_not_change_what_was() -> None:
    """Of 4 nodes job 3 is 250 by its size and job 2 180 by its age ahead; of 9 it would be 111."""
    weights = "priority = { job_size = 1000, age = 1800, max_age = 100, calculation_period = 10 }\n"
    Path("site.toml").write_text(weights + SITE)
    Path("log.swf").write_text(Path("log.swf").read_text().replace("2 -1 -1 2 300", "4 -1 -1 4 300"))
    rules = ("--cluster", "site.toml", "--policy", "multifactor+easy")
    run_ok("replay", "log.swf", *rules, "--out", "run", "--force")
    said = run_refused("whatif", "run", "--at", "110", "--add", "n:5")
    assert "on a machine of another size, its jobs would have had other starts by now" in said


@pytest.mark.usefixtures("run")
def test_jobs_that_never_start_are_not_compared_and_this_is_stated() -> None:
    text = run_ok("whatif", "run", "--at", "50", "--drain", "n[0-1]", "--futures", "4")
    assert "Compared: the 1 of 2 waiting jobs that start under every rule." in " ".join(text.split())
    assert "Compared" not in run_ok("whatif", "run", "--at", "50", "--drain", "n0", "--futures", "4")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("forecast", "run", "--at", "50", "--submit", "1:1h"),
            "a job that was not submitted is of one pool",
        ),
        (("state", "run", "--at", "50", "--out", "x.json"), "a state's file is of one pool"),
        (("whatif", "run", "--at", "50", "--drain", "n9"), "n9"),
        (
            ("whatif", "run", "--at", "-5", "--drain", "n0"),
            "what if, at -5 s: no job waits",
        ),
        (("whatif", "run", "--at", "9999", "--add", "n:1"), "Name a time or a state in which jobs wait"),
        (("forecast", "run", "--at", "50", "--plot", "x.gif"), "x.gif: pictures are saved as .png or .svg"),
        (("fidelity", "none.swf", "--plot", "x.gif"), "x.gif: pictures are saved as .png or .svg"),
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
