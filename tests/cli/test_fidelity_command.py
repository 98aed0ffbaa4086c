"""`bridge fidelity`: a planted record is met exactly by its own rule; the document, the picture, refusals."""

import json
from pathlib import Path

import numpy as np
import pytest
from cli_commands import run_bridge, run_ok, run_refused

import bridge
from bridge.report.fidelity_tables import replayed_reason
from bridge.workload.swf import read_swf, write_swf
from bridge.workload.table import SWF_COLUMNS, Workload

JOBS = 400
MEASURES = {"bias", "wasserstein", "wasserstein_relative", "log_mae", "rank_correlation", "within"}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log whose record is what sjf+easy does."""
    import pandas as pd

    rng = np.random.default_rng(5)
    table = pd.DataFrame({name: np.full(JOBS, -1) for name in SWF_COLUMNS})
    run = rng.integers(10, 4000, JOBS)
    table = table.assign(
        job_id=np.arange(1, JOBS + 1), submit=np.sort(rng.integers(0, 150_000, JOBS)), run=run,
        req_procs=rng.integers(1, 9, JOBS), procs=rng.integers(1, 9, JOBS), req_time=run + 60,
        user=rng.integers(1, 5, JOBS), queue=rng.integers(1, 3, JOBS), status=1,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("planted")
    write_swf(Workload("planted", table, {"nodes": 16}, {"MaxProcs": "16"}), folder / "before.swf")
    jobs = bridge.replay(folder / "before.swf", "sjf+easy").jobs
    waits = dict(zip(jobs["job_id"].astype(int), jobs["waiting_time"].astype(int), strict=True))
    table["wait"] = [waits[job] for job in table["job_id"]]
    path = folder / "planted.swf"
    write_swf(Workload("planted", table, {"nodes": 16}, {"MaxProcs": "16"}), path)
    assert read_swf(path).jobs["wait"].sum() > 0
    return path


def test_the_rule_that_made_the_record_meets_it(planted: Path) -> None:
    document = json.loads(run_ok("fidelity", planted, "--policy", "sjf+easy", "--json"))
    assert (document["bias"], document["wasserstein"], document["log_mae"]) == (0.0, 0.0, 0.0)
    assert document["rank_correlation"] == pytest.approx(1.0)
    assert document["within"] == {"60": 1.0, "600": 1.0, "3600": 1.0}
    assert document["textbook"]["policy"] == "sjf+easy"
    assert document["behind"]["verdict"]["null"]["verdict"] == "better"
    assert document["disagreements"] == []
    assert document["replayed"] == json.loads(run_ok("replay", planted, "--policy", "sjf+easy", "--json"))
    assert document["recorded"] == json.loads(run_ok("replay", planted, "--policy", "recorded", "--json"))
    shares = document["waiting"]
    reasons = ("no_room", "partition_full", "reserved", "unexplained")
    assert sum(shares[reason] for reason in reasons) == pytest.approx(1.0)
    assert document["unexplained"] == shares["unexplained"]
    assert set(document["groups"]) == {"queue", "size", "hour_of_week"}


def test_several_policies_stand_side_by_side(planted: Path, tmp_path: Path) -> None:
    picture = tmp_path / "fidelity.svg"
    words = ("--policy", "recorded", "--policy", "fcfs", "--from", 0.25, "--json", "--plot", picture)
    document = json.loads(run_ok("fidelity", planted, *words))
    assert [one["name"] for one in document["policies"]] == ["recorded", "fcfs+easy"]
    recorded, fcfs = document["policies"]
    assert recorded["log_mae"] == 0.0 < fcfs["log_mae"]
    assert recorded["jobs"] == fcfs["jobs"] == 300
    assert document["null"].keys() >= MEASURES
    assert fcfs["behind"]["verdict"]["textbook"]["verdict"] == "worse"
    assert len(fcfs["disagreements"]) == 20
    first = fcfs["disagreements"][0]
    assert abs(first["recorded_wait"] - first["replayed_wait"]) == max(
        abs(row["recorded_wait"] - row["replayed_wait"]) for row in fcfs["disagreements"]
    )
    assert picture.read_text().startswith("<?xml")


def test_windows_begin_from_the_recorded_state(planted: Path) -> None:
    document = bridge.fidelity(planted, "sjf+easy", window=50)
    assert document["windows"] == 8
    assert document["log_mae"] < document["null"]["log_mae"]
    assert "utilisation.nodes" not in document["replayed"]
    assert document["replayed"]["jobs.started"] == 400


def test_disagreements_of_windows_have_a_reason_on_both_sides(planted: Path, tmp_path: Path) -> None:
    """A window's replay says of each start how it came about, and so does one on a cluster."""
    cluster = tmp_path / "c.toml"
    cluster.write_text("nodes = [{ count = 16 }]\n")
    for more in ((), ("--cluster", cluster)):
        words = ("--policy", "fcfs+easy", "--window", 50, *more)
        document = json.loads(run_ok("fidelity", planted, *words, "--json"))
        reasons = [replayed_reason(row) for row in document["disagreements"] if row["replayed_wait"]]
        assert len(reasons) > 5
        assert {one.split(" past ")[0] for one in reasons} <= {"backfilled", "started as head of the queue"}
        assert "; replayed" in run_ok("fidelity", planted, *words)


def test_a_job_that_a_cluster_refuses_never_starts() -> None:
    row = {"replayed_wait": 60 * 86_400.0, "replayed": {"kind": "never", "overtook": None, "reserved": None}}
    assert replayed_reason(row) == "refused, or never started"


def test_people_see_the_same(planted: Path) -> None:
    told = run_ok("fidelity", planted)
    assert "Of all waiting, lack of room explains" in told
    assert "fcfs+easy: farther from the record than the textbook rule" in told.replace("\n", " ") or (
        "farther from the record than the textbook rule" in told
    )
    assert "textbook: sjf+easy, the nearest before" in told


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("bundled-128",), "does not say when its jobs started"),
        (("LOG", "--from", 0.5, "--until", 0.5), "no job is between them"),
        (("LOG", "--window", 300), "are too few for 300"),
        (("LOG", "--policy", "sjf", "--policy", "sjf"), "is named twice"),
        (("LOG", "--window", 50, "--protocol", "cqsim"), "standard protocol only"),
    ],
)
def test_what_cannot_be_compared_is_refused(words: tuple[object, ...], what: str, planted: Path) -> None:
    assert what in run_refused("fidelity", *(planted if word == "LOG" else word for word in words))


def test_python_refuses_what_it_does_not_know(planted: Path) -> None:
    with pytest.raises(bridge.base.errors.BridgeError, match="unknown option 'windows'"):
        bridge.fidelity(planted, windows=3)
    assert run_bridge("fidelity", planted, "--until", 2).status == 2


def test_runs_show_how_near_they_are_in_one_line(planted: Path, tmp_path: Path) -> None:
    """The run's folder knows the recorded waits; its page, what-if and forecasts tell the distance."""
    run, page = tmp_path / "run", tmp_path / "page.html"
    run_ok("replay", planted, "--policy", "sjf+easy", "--out", run)
    line = "fidelity to the record: log-MAE 0.00, rank correlation 1.00, 100 % of the starts within 1 h"
    run_ok("report", run, "--html", page)
    assert line in page.read_text(encoding="utf-8")
    at = ("--at", 60_000, "--futures", 2)
    assert line in run_ok("forecast", run, *at)
    policies = ("--policy", "fcfs+easy", "--policy", "sjf+easy")
    assert line in run_ok("whatif", run, *at, *policies)
    assert json.loads(run_ok("whatif", run, *at, *policies, "--json"))["fidelity"]["log_mae"] == 0.0
    judged = json.loads(run_ok("forecast", planted, "--judge", "--first", 200, "--futures", 2, "--json"))
    assert judged["fidelity"]["jobs"] == 200
    assert judged["fidelity"]["log_mae"] > 0.0


def test_a_training_on_the_record_is_refused(planted: Path, tmp_path: Path) -> None:
    words = ("train", "--fast", "rlbackfilling", "--workload", planted, "--order", "recorded")
    assert "decides nothing here" in run_refused(*words, "--out", tmp_path / "agent")
    assert not (tmp_path / "agent").exists()
