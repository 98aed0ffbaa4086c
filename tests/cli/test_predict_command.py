"""`bridge predict`: the file it writes, that replay believes it, and what it refuses."""

import json
from pathlib import Path

import pytest
from cli_commands import run_bridge, run_ok

from bridge.workload.formats import read

#: (submit, run, requested time, user), times in seconds.
ROWS = ((0, 10, 100, 1), (20, 30, 100, 1), (60, 55, 100, 1), (200, 5, 30, 1), (201, -1, 90, 2))
LINES = [f"{i} {s} -1 {r} 1 -1 -1 1 {q} -1 1 {u} 1 -1 1 -1 -1 -1\n" for i, (s, r, q, u) in enumerate(ROWS, 1)]


def run_predict(*words: str) -> tuple[int, str, str]:
    """Run the command in this process; return (status, output, messages)."""
    found = run_bridge("predict", *words)
    return found.status, found.out, found.err


@pytest.fixture
def log(folder: Path) -> str:
    (folder / "users.swf").write_text("; MaxProcs: 4\n" + "".join(LINES))
    return "users.swf"


def test_the_log_gets_a_column(log: str) -> None:
    status, out, err = run_predict(log, "--model", "history", "--out", "out.parquet")
    assert (status, err) == (0, "")
    assert "predicted(history, requested)" in out
    before, after = read(log), read("out.parquet")
    assert after.jobs["history"].tolist() == [100.0, 100.0, 20.0, 30.0, 90.0]
    assert after.jobs.drop(columns="history").equals(before.jobs)
    assert after.capacity == before.capacity
    assert after.header["Note"] == "command: bridge predict --model history --column history"


def test_how_good_it_is_can_be_read_by_programs(log: str) -> None:
    _, out, err = run_predict(log, "--model", "history", "--column", "guess", "--out", "out.csv", "--json")
    found = json.loads(out)
    assert "wrote out.csv" in err
    assert list(found) == ["guess", "requested"]
    # Believed 100, 100, 20 and 30 of 10, 30, 55 and 5; the fifth never ran.
    assert found["guess"]["jobs"] == found["requested"]["jobs"] == 4
    assert found["guess"]["under"] == 0.25
    assert found["guess"]["mape"] == pytest.approx((9 + 70 / 30 + 35 / 55 + 5) / 4)
    assert read("out.csv").jobs["guess"].tolist() == [100.0, 100.0, 20.0, 30.0, 90.0]


def test_replay_believes_the_column(log: str) -> None:
    run_predict(log, "--model", "history", "--out", "out.parquet")
    found = []
    for name, estimator in (("out.parquet", "predicted(history)"), (log, "predicted"), (log, "requested")):
        words = ("--nodes", "1", "--order", "sjf", "--estimator", estimator, "--json")
        found.append(json.loads(run_ok("replay", name, *words)))
    assert found[0] == found[1]
    assert not found[0]["oracle"]


def test_trees_are_repeatable() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    for out in ("one.csv", "two.csv"):
        assert run_predict("bundled-128", "--every", "500", "--memory", "400", "--out", out)[0] == 0
    assert Path("one.csv").read_bytes() == Path("two.csv").read_bytes()
    jobs = read("one.csv").jobs
    assert ((jobs["trees"] >= 1) & (jobs["trees"] <= jobs["req_time"].clip(lower=1))).all()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--out", "out.swf"), "no room for predictions"),
        (("--out", "users.csv"), "the file already exists"),
        (("--out", "none/out.csv"), "its folder does not exist"),
        (("--out", "out.csv", "--column", "a b"), "no name for a column"),
        (("--out", "out.csv", "--column", "submit"), "name is taken"),
        (("--out", "out.csv", "--column", "nodes"), "name is taken"),
        (("--out", "out.csv", "--column", "requested"), "name is taken"),
    ],
)
def test_what_cannot_be_written_is_refused(log: str, words: tuple[str, ...], says: str) -> None:
    Path("users.csv").write_text("kept")
    status, _, err = run_predict(log, "--model", "history", *words)
    assert status == 1
    assert says in err
    assert Path("users.csv").read_text() == "kept"
    assert not Path("out.csv").exists()


def test_settings_of_trees_mean_nothing_to_the_history(log: str) -> None:
    status, _, err = run_predict(log, "--model", "history", "--every", "5", "--out", "out.csv")
    assert status == 2
    assert "--every has no meaning for history" in err


def test_the_history_refuses_columns_that_it_would_ignore(log: str) -> None:
    status, _, err = run_predict(log, "--model", "history", "--with", "user", "--out", "out.csv")
    assert status == 2
    assert "--with has no meaning for history" in err
    assert not Path("out.csv").exists()


def test_beliefs_of_running_jobs_are_a_file_of_their_own(log: str) -> None:
    """Too few jobs have ended for the network: everybody's history is believed, and nothing changes."""
    status, out, err = run_predict(
        log, "--model", "series", "--series", "synthetic", "--out", "b.parquet", "--json"
    )
    assert (status, json.loads(out)) == (0, {"jobs": 5, "changing": 0, "errors": []})
    assert "--estimator 'progress(b.parquet)'" in err
    found = []
    for estimator in ("progress(b.parquet)", "predicted"):
        words = ("--nodes", "1", "--order", "sjf", "--estimator", estimator, "--json")
        found.append(json.loads(run_ok("replay", log, *words)))
    assert [one.pop("oracle") for one in found] == [True, False]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--model", "series", "--out", "b.parquet"), "no series"),
        (("--model", "series", "--series", "synthetic", "--out", "b.csv"), "are a Parquet file"),
        (
            ("--model", "series", "--series", "none.parquet", "--out", "b.parquet"),
            "cannot be read as Parquet",
        ),
        (("--model", "series", "--quantile", "0.9", "--out", "b.parquet"), "no meaning for series"),
        (("--model", "trees", "--step", "60", "--out", "b.parquet"), "no meaning for trees"),
    ],
)
def test_series_that_cannot_be_predicted_are_refused(log: str, words: tuple[str, ...], says: str) -> None:
    status, _, err = run_predict(log, *words)
    assert status != 0
    assert says in err
    assert not Path("b.parquet").exists()
