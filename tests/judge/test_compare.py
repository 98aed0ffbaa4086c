"""Comparing runs: differences, first differing start, wait quantiles, warnings; and the command."""

import json
from pathlib import Path

import pandas as pd
import pytest
from cli_commands import run_ok, run_refused
from schedules import EXAMPLE, schedule

from bridge.base.errors import BridgeError
from bridge.judge.compare import FirstDifference, compare_runs
from bridge.judge.jobs import write_jobs_csv
from bridge.judge.metrics import compute_metrics
from bridge.judge.run import Run, write_run


def run_of(jobs: pd.DataFrame, name: str, nodes: int = 4, threshold: float = 10.0) -> Run:
    capacity = {"nodes": nodes}
    return Run({}, capacity, jobs, compute_metrics(jobs, capacity, bsld_threshold=threshold), name=name)


def later() -> pd.DataFrame:
    """The example with B after D: B starts at 110, D at 10."""
    rows = [*EXAMPLE]
    rows[1] = ("B", 0, 110, 5, 4)
    rows[3] = ("D", 5, 10, 100, 1)
    return schedule(rows)


def test_two_runs() -> None:
    found = compare_runs([run_of(schedule(EXAMPLE), "base"), run_of(later(), "other")])
    assert found.names == ("base", "other")
    assert found.warnings == ()
    assert found.metrics["wait.mean"] == (5.0, 28.75)
    assert found.differences["wait.mean"] == (0.0, 23.75)
    assert found.differences["users.count"] == (None, None)
    jobs = found.jobs[0]
    assert (jobs.common, jobs.only_base, jobs.only_here) == (5, 0, 0)
    assert jobs.differing_starts == 2
    # The earliest start in either run at which they part: D at 10 or B at 10, in the table's order.
    assert jobs.first == FirstDifference("B", 10.0, 110.0)
    # differences of waits: 0, 100, 0, −5
    assert jobs.wait_mean == 23.75
    assert jobs.wait_quantiles == pytest.approx(
        {"0": -5.0, "0.05": -4.25, "0.25": -1.25, "0.5": 0.0, "0.75": 25.0, "0.95": 85.0, "1": 100.0}
    )


def test_equal_runs() -> None:
    found = compare_runs([run_of(schedule(EXAMPLE), "a"), run_of(schedule(EXAMPLE), "b")])
    assert found.jobs[0].differing_starts == 0
    assert found.jobs[0].first is None
    assert all(step[1] in (0, None) for step in found.differences.values())


def test_attempts_are_not_compared() -> None:
    rows = [("1#1", 0, 2, 8, 2), ("1", 0, 20, 5, 2), ("2", 0, 10, 10, 4)]
    killed = schedule(rows)
    killed.loc[0, "final_state"] = "COMPLETED_KILLED"
    found = compare_runs([run_of(schedule(rows[1:]), "a"), run_of(killed, "b")])
    assert found.warnings == ()
    jobs = found.jobs[0]
    assert (jobs.common, jobs.only_base, jobs.only_here, jobs.differing_starts) == (2, 0, 0, 0)


def test_a_job_that_starts_in_one_run_only() -> None:
    rows = [*EXAMPLE]
    rows[2] = ("C", 2, None, 4, 1)
    found = compare_runs([run_of(schedule(EXAMPLE), "a"), run_of(schedule(rows), "b")])
    assert found.jobs[0].first == FirstDifference("C", 2.0, None)
    assert found.jobs[0].differing_starts == 1


def test_ids_match_by_their_number_and_rounding_does_not_count() -> None:
    plain = schedule([("7", 0, 0, 10, 1), ("12", 0, 5, 10, 1)])
    padded = schedule([("012", 0, 5.000001, 10, 1), ("007", 0, 0, 10, 1)])
    found = compare_runs([run_of(plain, "a"), run_of(padded, "b")])
    assert (found.jobs[0].common, found.jobs[0].differing_starts) == (2, 0)


def test_one_id_in_several_workloads() -> None:
    table = schedule([("1", 0, 0, 10, 1), ("1", 0, 5, 10, 1)])
    with pytest.raises(BridgeError, match="job w0!1 stands in the run more than once"):
        compare_runs([run_of(table, "a"), run_of(table, "b")])
    table["workload_name"] = ["w0", "w1"]
    assert compare_runs([run_of(table, "a"), run_of(table, "b")]).jobs[0].common == 2


def test_warnings() -> None:
    fewer = schedule(EXAMPLE[1:])
    found = compare_runs([run_of(schedule(EXAMPLE), "a"), run_of(fewer, "b", nodes=5, threshold=60.0)])
    assert found.warnings == (
        "a and b do not hold the same jobs, so their metrics are over different jobs: "
        "4 in both, 1 only in a, 0 only in b (such as A)",
        "a and b ran on different machines: {'nodes': 4} and {'nodes': 5}",
        "a and b bound the slowdown differently: 10 s and 60 s",
    )


def test_one_run_is_no_comparison() -> None:
    with pytest.raises(BridgeError, match="two runs or more"):
        compare_runs([run_of(schedule(EXAMPLE), "a")])


def test_command(tmp_path: Path) -> None:
    write_run(run_of(schedule(EXAMPLE), "a"), tmp_path / "a")
    write_run(run_of(later(), "b"), tmp_path / "b")
    picture = tmp_path / "waits.svg"
    said = run_ok("compare", tmp_path / "a", tmp_path / "b", "--plot", picture)
    assert "b: 2 of 5 common jobs start at another time than in a" in said
    assert "first: job B starts at 10.000000 s in a, starts at 110.000000 s here" in said
    assert "+23.75 s (+475.0 %)" in said
    assert picture.read_text().startswith("<?xml")
    data = json.loads(run_ok("compare", tmp_path / "a", tmp_path / "b", "--json"))
    assert data["differences"]["wait.mean"] == [0.0, 23.75]
    assert data["jobs"][0]["first"] == {"job": "B", "base_start": 10.0, "start": 110.0}


def test_command_on_bare_files(tmp_path: Path) -> None:
    paths = [tmp_path / name / "jobs.csv" for name in ("x", "y")]
    for path in paths:
        path.parent.mkdir()
        write_jobs_csv([schedule(EXAMPLE)], path)
    assert "y/jobs.csv: 0 of 5 common jobs" in run_ok("compare", *paths, "--nodes", 4)
    assert "Add --nodes N." in run_refused("compare", *paths)
    assert "two runs or more" in run_refused("compare", paths[0])
