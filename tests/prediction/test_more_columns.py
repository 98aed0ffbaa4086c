"""Columns beyond the log's own, and learning on the way. The columns are made up here, for tests alone."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from small_submissions import submissions

from bridge.base.errors import BridgeError
from bridge.prediction.accuracy import accuracy
from bridge.prediction.features import FEATURES, features
from bridge.prediction.forest import ForestSettings
from bridge.prediction.quantiles import LEVELS, OnlineQuantiles, Quantiles
from bridge.prediction.submissions import MICRO, Submissions, encode_categories, of_workload
from bridge.workload.catalogue import read_log

SETTINGS = Quantiles(every=100, memory=1000, least=50, growth=ForestSettings(trees=10))


def with_names(n: int = 600, seed: int = 0) -> Submissions:
    """Return jobs of three users, whose names tell how long they run; after a failed one they are short."""
    rng = np.random.default_rng(seed)
    name, failed = rng.integers(0, 8, n), rng.random(n) < 0.2
    run = 10.0 * 2.0**name * np.exp(rng.normal(0, 0.1, n))
    run[1:][failed[:-1]] = 1.0
    rows = [(3600.0 * k, float(r), 7200.0, int(rng.integers(0, 3))) for k, r in enumerate(run)]
    return replace(
        submissions(rows),
        extra_columns={"name": name.astype(np.int64)},
        outcome={"exit": failed.astype(np.int64)},
    )


def test_features_of_further_columns_by_hand() -> None:
    rows = [(0, 10, 100, 3), (60, 30, 100, 3), (200, 20, 100, 3), (300, 5, 100, 3)]
    s = submissions(rows, wait=0)
    s = replace(s, extra_columns={"name": np.array([7, 8, 7, 7])}, outcome={"exit": np.array([0, 1, 0, 9])})
    found = features(s)[:, len(FEATURES) :]
    nan = np.nan
    expected = [
        [7, 0, nan, nan, nan, nan],
        [8, 0, nan, nan, 0, 0],
        [7, 1, 10, 10, 1, 1],
        [7, 2, 20, 15, 0, 0],
    ]
    assert np.array_equal(found, np.array(expected, np.float64), equal_nan=True)


def test_names_help_and_nothing_of_the_job_s_own_end_is_read() -> None:
    s = with_names()
    last = slice(300, 600)
    without = accuracy(s.run[last], SETTINGS(replace(s, extra_columns={}, outcome={}))[last])
    having = accuracy(s.run[last], SETTINGS(s)[last])
    assert having.log_error < 0.5 * without.log_error
    later = np.arange(len(s)) >= 400
    other = replace(s, outcome={"exit": np.where(later, 5, s.outcome["exit"])})
    assert (SETTINGS(other)[:400] == SETTINGS(s)[:400]).all()


def test_online_is_what_a_log_gets() -> None:
    """Jobs come one after the other's end, so that both know the same at each submission of a block."""
    s = with_names()
    batch = SETTINGS.distributions(s)
    online = OnlineQuantiles(SETTINGS)
    for first in range(0, 600, 100):
        block = s.take(slice(first, first + 1))
        found = online.predict(block)
        if first >= 100:
            assert found[0] == pytest.approx(batch[first])
        else:
            assert found[0] == pytest.approx(7200 * LEVELS)
        online.update(s.take(slice(first, first + 100)))


def test_online_grows_again_after_so_many_ends_and_remembers_so_many() -> None:
    s = with_names()
    online = OnlineQuantiles(replace(SETTINGS, memory=120))
    online.update(s.take(slice(0, 100)))
    one = online.predict(s.take(slice(500, 501)))
    online.update(s.take(slice(100, 150)))
    assert online.predict(s.take(slice(500, 501))).shape == one.shape
    assert online._ended is not None
    assert len(online._ended) == 120
    with pytest.raises(BridgeError, match="are not those of earlier jobs"):
        online.update(replace(s.take(slice(150, 151)), extra_columns={}))
    with pytest.raises(BridgeError, match="has a run time"):
        online.update(replace(s.take(slice(150, 151)), run=np.array([-1 * MICRO])))


def test_values_are_numbered_as_they_come() -> None:
    assert encode_categories(pd.Series(["b", "a", None, "b"])).tolist() == [0, 1, -1, 0]
    assert encode_categories(pd.Series([5, -1])).tolist() == [5, -1]


@pytest.mark.parametrize("name", ["run", "wait", "status", "cpu_time", "memory"])
def test_what_only_the_end_tells_is_not_known_at_submission(name: str) -> None:
    log = read_log("bundled-128")
    with pytest.raises(
        BridgeError, match=f"{name!r} is not known when a job is submitted\n  Name it as an outcome"
    ):
        of_workload(log, extra_columns=[name])
    assert [*of_workload(log, outcome=[name]).outcome] == [name]


@pytest.mark.parametrize("name", ["state", "exit_code", "suspended", "allocated_nodes"])
def test_nor_is_what_an_import_adds_of_the_end(name: str) -> None:
    log = read_log("bundled-128")
    log = replace(log, jobs=log.jobs.assign(**{name: 1, "held": 1}))
    with pytest.raises(BridgeError, match=f"{name!r} is not known when a job is submitted"):
        of_workload(log, extra_columns=["held", name])
    assert [*of_workload(log, extra_columns=["held"], outcome=[name]).outcome] == [name]
