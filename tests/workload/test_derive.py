"""The jobs a loading rule keeps, as a workload again."""

import pandas as pd
import pytest
from workload_strategies import small

from bridge.base.errors import BridgeError
from bridge.workload.derive import restrict_to
from bridge.workload.rules import LOAD_RULES
from bridge.workload.select import select


def test_dropped_repaired_and_rebased() -> None:
    log = small((3, 100, 30, 2, 20), (1, 90, 10, 4, -1), (2, 95, -1, 1, 5), (4, 100, 5, 9, 5))
    log.jobs["user"] = [30, 10, 20, 40]
    log.header["MaxRecords"] = "4"
    jobs = select(log, LOAD_RULES["standard"])
    kept = restrict_to(log, jobs)
    expected = [[1, 0, 10, 10, 4, 10], [3, 10, 20, 20, 2, 30]]
    assert kept.jobs[["job_id", "submit", "run", "req_time", "procs", "user"]].to_numpy().tolist() == expected
    assert (kept.header["MaxRecords"], kept.header["Note"]) == ("2", "2 of 4 records kept")
    again = select(kept, LOAD_RULES["standard"])
    assert dict(again.tally) == {}
    for name in ("id", "submit", "run", "request", "demand"):
        assert getattr(again, name).tolist() == getattr(jobs, name).tolist()


def test_fractions_of_seconds_stay() -> None:
    log = small((1, 0.5, 10, 1, 20), (2, 0.75, 1.25, 1, 20))
    kept = restrict_to(log, select(log, LOAD_RULES["standard"]))
    assert kept.jobs["submit"].tolist() == [0, 0.25]
    assert kept.jobs["run"].tolist() == [10, 1.25]
    assert kept.jobs["req_time"].dtype == "int64"


@pytest.mark.parametrize(
    ("clock", "submit", "later"),
    [
        ("1000", 86_400, "87400"),
        ("1000", 0, "1000"),
        ("1000", 0.25, "1000.250000"),
        ("in May", 7, None),
        (None, 7, None),
    ],
)
def test_the_clock_goes_with_the_submissions(clock: str | None, submit: float, later: str | None) -> None:
    log = small((1, submit, 10, 1, 20), (2, submit + 5, 10, 1, 20))
    if clock is not None:
        log.header["UnixStartTime"] = clock
    kept = restrict_to(log, select(log, LOAD_RULES["standard"]))
    assert kept.jobs["submit"].tolist() == [0, 5]
    assert kept.header.get("UnixStartTime") == later


def test_further_demands_are_the_selections() -> None:
    log = small((1, 0, 10, 1, 20))
    log.jobs["power"] = [-1]
    log.capacity["power"] = 50
    kept = restrict_to(log, select(log, LOAD_RULES["standard"]))
    assert kept.jobs["power"].tolist() == [0]
    assert kept.capacity == {"nodes": 8, "power": 50}


def test_ids_used_twice() -> None:
    log = small((1, 0, 10, 1, 20), (1, 5, 10, 1, 20))
    with pytest.raises(BridgeError, match="two jobs have the same id"):
        restrict_to(log, select(log, LOAD_RULES["standard"]))
    dropped_first = small((1, 0, -1, 1, 20), (1, 5, 10, 1, 20), (2, 0, 10, 1, 20))
    with pytest.raises(BridgeError, match="two records have the same id"):
        restrict_to(dropped_first, select(dropped_first, LOAD_RULES["standard"]))
    dropped_last = small((2, 0, 10, 1, 20), (1, 5, 10, 1, 20), (1, 7, -1, 1, 20))
    kept = restrict_to(dropped_last, select(dropped_last, LOAD_RULES["standard"]))
    pd.testing.assert_series_equal(kept.jobs["job_id"], pd.Series([2, 1], name="job_id"))
