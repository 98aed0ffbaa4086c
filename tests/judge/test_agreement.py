"""Agreement of two worlds: reasons, tolerances, ranks."""

import math
from pathlib import Path

import pandas as pd
import pytest

from bridge.base.errors import BridgeError
from bridge.judge.jobs import JOBS_COLUMNS
from bridge.judge.metrics import compute_metrics
from bridge.judge.run import Run
from bridge.judge.world_agreement import (
    as_dict,
    baseline_differences,
    compare_worlds,
    exceeding_tolerance,
    nearly_equal,
    ranks,
    read_baseline,
    read_validation,
    write_document,
)


def run(rows: list[tuple[str, float, float, float]]) -> Run:
    """Return a run of one-node jobs: id, submit, start, end."""
    table = pd.DataFrame(rows, columns=["job_id", "submission_time", "starting_time", "finish_time"])
    table["execution_time"] = table["finish_time"] - table["starting_time"]
    table["waiting_time"] = table["starting_time"] - table["submission_time"]
    table["turnaround_time"] = table["finish_time"] - table["submission_time"]
    table["requested_number_of_resources"] = 1
    for name in JOBS_COLUMNS:
        if name not in table:
            table[name] = 0 if name in ("success", "requested_time", "stretch", "consumed_energy") else ""
    table["final_state"] = "COMPLETED_SUCCESSFULLY"
    return Run({}, {"nodes": 1}, table, compute_metrics(table, {"nodes": 1}))


FAST = run([("1", 0, 0, 10), ("2", 0, 10, 20)])


def test_equal_runs_have_no_reason() -> None:
    found = compare_worlds("p", FAST, run([("01", 0, 0, 10), ("02", 0, 10, 20)]))
    assert found.reason == "" and found.jobs.differing_starts == 0 and found.longer == 0
    assert exceeding_tolerance([found], 0.0) == []


def test_a_longer_job_is_the_reason() -> None:
    found = compare_worlds("p", FAST, run([("1", 0, 0, 12), ("2", 0, 12, 22)]))
    assert found.reason == (
        "job 1 held its 1 node until 12.000000 s, in the fast world until 10.000000 s: "
        "it ran 12.000000 s in place of 10.000000 s"
    )
    assert found.stretch == pytest.approx((1.1, 1.2))
    assert any(
        line.startswith("p: makespan is 22.0 on the platform, 20.0")
        for line in exceeding_tolerance([found], 0.01)
    )
    assert exceeding_tolerance([found], 10.0) == []


def test_a_late_message_is_told_from_that() -> None:
    found = compare_worlds("p", FAST, run([("1", 0, 0, 10), ("2", 0, 10.5, 20.5)]))
    assert found.reason.startswith("no job had ended at another time before; it starts +0.500000 s later")


def test_a_job_that_never_starts() -> None:
    found = compare_worlds("p", FAST, run([("1", 0, 0, 10), ("2", 0, math.nan, math.nan)]))
    assert found.reason == "it never starts on the detailed platform"


def test_ranks_need_two_policies() -> None:
    one = compare_worlds("p", FAST, FAST)
    slow = run([("1", 0, 5, 15), ("2", 0, 15, 25)])
    assert ranks([one]) == {}
    same = ranks([one, compare_worlds("q", slow, slow)])
    assert same["wait.mean"].tau == pytest.approx(1.0)
    crossed = ranks([compare_worlds("p", FAST, slow), compare_worlds("q", slow, FAST)])
    assert crossed["wait.mean"].tau == pytest.approx(-1.0)
    assert str(crossed["wait.mean"]) == "-1.00"


def test_where_all_are_tied_there_is_no_order_to_agree_with() -> None:
    both = [compare_worlds("p", FAST, FAST), compare_worlds("q", FAST, FAST)]
    found = ranks(both)["wait.mean"]
    assert found.tau is None and str(found) == "all tied"
    assert as_dict(both, {})["ranks"]["wait.mean"] == {"tau": None, "p": None}


def test_a_baseline_is_compared_policy_by_policy(tmp_path: Path) -> None:
    document = as_dict([compare_worlds("p", FAST, FAST)], {"workload": "w"})
    write_document(document, tmp_path / "b.json")
    before = read_baseline(tmp_path / "b.json")
    assert baseline_differences(document, before, 0.0) == []
    other = as_dict([compare_worlds("q", FAST, FAST)], {"workload": "v"})
    assert baseline_differences(other, before, 0.0) == [
        "workload is 'v', the baseline's is 'w'",
        "p is in the baseline only",
        "q is not in the baseline",
    ]
    moved = as_dict([compare_worlds("p", FAST, run([("1", 0, 0, 10), ("2", 0, 11, 21)]))], {"workload": "w"})
    said = baseline_differences(moved, before, 0.5)
    assert said[-1] == "p: 1 start differs between the worlds, 0 in the baseline"


def test_differing_starts_are_counted_for_each_policy_and_in_all() -> None:
    moved = run([("1", 0, 0, 10), ("2", 0, 11, 21)])
    document = as_dict(
        [compare_worlds("p", FAST, FAST), compare_worlds("q", FAST, moved), compare_worlds("r", FAST, moved)],
        {},
    )
    assert [one["differing_starts"] for one in document["policies"]] == [0, 1, 1]
    assert document["differing_starts"] == 2
    found = read_validation(document, "b.json")
    assert [one.jobs.differing_starts for one in found.policies] == [0, 1, 1]
    del document["differing_starts"], document["policies"][0]["differing_starts"]  # as older ones are
    assert read_validation(document, "b.json") == found


def test_a_baseline_must_be_one(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text("{")
    with pytest.raises(BridgeError, match="is no JSON"):
        read_baseline(tmp_path / "b.json")


def test_closeness() -> None:
    assert nearly_equal(None, None, 0) and nearly_equal(0, 0.0, 0) and nearly_equal(100, 101, 0.01)
    assert (
        not nearly_equal(None, 1, 9) and not nearly_equal(100, 102, 0.01) and not nearly_equal(0, 1e-9, 0.1)
    )
