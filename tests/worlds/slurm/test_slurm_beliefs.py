"""Run times of live jobs, learnt from accounting."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bridge.base.errors import BridgeError
from bridge.prediction.quantiles import LEVELS
from bridge.serve.observer import RunTimeModel
from bridge.workload.table import SWF_COLUMNS, Workload


def history(*, header: bool = True) -> Workload:
    """Return a log: ann's jobs take 10 s of their 600, bob's take 500; they come in turn, every minute."""
    n = 800
    table = pd.DataFrame({name: [-1] * n for name in SWF_COLUMNS})
    table["job_id"] = range(1, n + 1)
    table["submit"] = [60 * k for k in range(n)]
    table["wait"], table["req_time"], table["procs"], table["req_procs"] = 0, 600, 1, 1
    table["run"] = [10, 500] * (n // 2)
    table["user_name"] = ["ann", "bob"] * (n // 2)
    return Workload("log", table, {"nodes": 8}, {"UnixStartTime": "1800000000"} if header else {})


def test_users_are_known_by_their_ended_jobs() -> None:
    now = 1_800_000_000 + 60 * 800
    job = {"submit": now, "request": 600.0, "demand": {"nodes": 1}}
    document = {
        "running": [{**job, "user": "bob", "start": now}],
        "waiting": [{**job, "user": "ann"}, {**job, "user": "bob", "request": 300.0}],
    }
    RunTimeModel(history()).into(document)
    assert document["levels"] == LEVELS.tolist()
    middle = LEVELS.tolist().index(0.5)
    medians = [one["quantiles"][middle] for one in (*document["running"], *document["waiting"])]
    assert medians[0] == pytest.approx(500, rel=0.02)
    assert medians[1] == pytest.approx(10, rel=0.02)
    assert medians[2] == 300  # none is longer than its request


def test_without_a_history_any_part_of_a_limit_is_as_likely_as_another() -> None:
    job = {"user": "ann", "submit": 5.0, "request": 600.0, "demand": {"nodes": 1}}
    document = {"running": [{**job, "start": 6.0}], "waiting": [{**job, "request": 20.0}]}
    RunTimeModel().into(document)
    assert document["levels"] == LEVELS.tolist()
    assert document["running"][0]["quantiles"] == pytest.approx((600 * LEVELS).tolist())
    assert document["waiting"][0]["quantiles"] == pytest.approx(np.maximum(20 * LEVELS, 1.0).tolist())


def test_nothing_waits_or_runs() -> None:
    document: dict[str, object] = {"running": [], "waiting": []}
    RunTimeModel(history()).into(document)
    assert document == {"running": [], "waiting": []}


def test_a_log_without_clock_or_names_is_refused() -> None:
    with pytest.raises(BridgeError, match="does not say when it was"):
        RunTimeModel(history(header=False))
    log = history()
    with pytest.raises(BridgeError, match="whose its jobs were"):
        RunTimeModel(replace(log, jobs=log.jobs.drop(columns="user_name")))
