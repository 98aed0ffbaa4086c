"""Load scaling, Poisson resampling, added estimates and the numbers that describe a log."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from workload_strategies import small

from bridge.base.errors import BridgeError
from bridge.workload.derive import head, resample, scale_arrivals, scale_to_load
from bridge.workload.lublin import QUEUES, ROUND_VALUES, add_estimates, generate, lublin_1
from bridge.workload.statistics import offered_load, summarise
from bridge.workload.table import Workload


@pytest.fixture
def log() -> Workload:
    """Return three jobs with offered load (2·10 + 4·5 + 0) / (8·20) = 0.25."""
    return small((1, 100, 10, 2, 20), (2, 105, 5, 4, 5), (3, 120, -1, 8, 60))


def test_offered_load_by_hand(log: Workload) -> None:
    assert offered_load(log) == 0.25
    assert offered_load(small((1, 0, 10, 2, 20))) is None
    unknown = small((1, 0, 10, 2, 20), (2, 1, 10, 2, 20))
    unknown.capacity.clear()
    assert offered_load(unknown) is None


def test_the_load_of_further_resources(log: Workload) -> None:
    # (10·10^18 + 5·3·10^18) / (20 s · 5·10^18); -1 is unknown and counts as nothing
    log.jobs["burst_buffer"], log.jobs["site"] = [10**18, 3 * 10**18, -1], ["a", "b", "c"]
    log.capacity.update(burst_buffer=5 * 10**18, power=9, site=1)
    assert offered_load(log, "burst_buffer") == 0.25
    assert offered_load(log, "power") is None
    found = summarise(log)
    assert found.loads == {"burst_buffer": 0.25}
    assert found.distributions["burst_buffer"]["known"] == 2
    assert "site" not in found.distributions


def test_scaling_keeps_the_first_submission_and_whole_seconds(log: Workload) -> None:
    half = scale_arrivals(log, 0.5)
    assert half.jobs["submit"].tolist() == [100, 102, 110]
    assert half.jobs["submit"].dtype == np.int64
    assert half.header["Note"] == "time between arrivals multiplied by 0.5"
    assert log.jobs["submit"].tolist() == [100, 105, 120]
    assert offered_load(scale_to_load(log, 0.5)) == 0.5


@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=20), st.floats(1e-3, 1e3))
def test_scaling_keeps_the_order(submits: list[int], factor: float) -> None:
    log = small(*((n, submit, 1, 1, 1) for n, submit in enumerate(submits, start=1)))
    scaled = scale_arrivals(log, factor).jobs["submit"].to_numpy()
    order = np.argsort(submits, kind="stable")
    assert (np.diff(scaled[order]) >= 0).all()
    start = min(submits)
    assert scaled == pytest.approx([start + (s - start) * factor for s in submits], abs=0.5 + 1e-3)


@pytest.mark.parametrize("factor", [0, -1, float("nan"), float("inf")])
def test_senseless_scales_are_refused(log: Workload, factor: float) -> None:
    with pytest.raises(BridgeError, match="is not positive"):
        scale_arrivals(log, factor)
    with pytest.raises(BridgeError, match="cannot be scaled"):
        scale_to_load(log, factor)


def test_the_first_records(log: Workload) -> None:
    kept = head(log, 2)
    assert kept.jobs["job_id"].tolist() == [1, 2]
    assert kept.header["Note"] == "the first 2 of 3 records"
    with pytest.raises(BridgeError, match="0 records"):
        head(log, 0)


def test_resampling_draws_whole_records(log: Workload) -> None:
    log.jobs["wait"] = 77
    drawn = resample(log, 500, seed=1)
    again = resample(log, 500, seed=1)
    pd.testing.assert_frame_equal(drawn.jobs, again.jobs)
    rows = ["run", "procs", "req_time"]
    expected = {(10, 2, 20), (5, 4, 5), (-1, 8, 60)}
    assert {tuple(row) for row in drawn.jobs[rows].to_numpy().tolist()} == expected
    assert drawn.jobs["job_id"].tolist() == list(range(1, 501))
    assert set(drawn.jobs["wait"]) == {-1}
    assert drawn.jobs["submit"].is_monotonic_increasing
    assert drawn.jobs["submit"].iloc[:4].tolist() == PINNED
    # The log's mean gap is 20 s / 2; a mean of 500 exponential gaps spreads by 10 / sqrt(500) = 0.45 s.
    assert drawn.jobs["submit"].iloc[-1] / 500 == pytest.approx(10, abs=1.5)
    assert resample(log, 500, seed=1, gap=1000).jobs["submit"].iloc[-1] / 500 == pytest.approx(1000, abs=150)


def test_resampling_what_cannot_be(log: Workload) -> None:
    with pytest.raises(BridgeError, match="0 jobs"):
        resample(log, 0, seed=0)
    with pytest.raises(BridgeError, match="not positive"):
        resample(small((1, 5, 1, 1, 1)), 3, seed=0)
    with pytest.raises(BridgeError, match="not positive"):
        resample(log, 3, seed=0, gap=-1)


def test_estimates_are_round_and_enough() -> None:
    log = generate(lublin_1(64), 4000, seed=1)
    one, two = add_estimates(log, seed=7, users=10), add_estimates(log, seed=7, users=10)
    pd.testing.assert_frame_equal(one.jobs, two.jobs)
    jobs = one.jobs
    assert (jobs["req_time"] >= jobs["run"]).all()
    assert (jobs["req_time"].isin(ROUND_VALUES) | (jobs["req_time"] % 3600 == 0)).all()
    assert set(jobs["user"]) == set(range(1, 11))
    assert jobs["user"].value_counts().idxmax() == 1
    for queue, limit in QUEUES.items():
        assert (jobs["req_time"][jobs["queue"] == queue] <= limit).all() or queue == max(QUEUES)
    assert set(jobs["queue"]) == set(QUEUES)
    unchanged = ["submit", "run", "procs"]
    pd.testing.assert_frame_equal(jobs[unchanged], log.jobs[unchanged])
    with pytest.raises(BridgeError, match="0 users"):
        add_estimates(log, seed=7, users=0)


def test_summary_by_hand(log: Workload) -> None:
    log.jobs["user"] = [4, 4, 5]
    found = summarise(log)
    assert (found.records, found.span, found.load, found.users) == (3, 20, 0.25, 2)
    assert (found.serial, found.power_of_two, found.overrun) == (0, 1, 0)
    assert found.distributions["gap"]["q50"] == 10
    run = found.distributions["run"]
    assert (run["known"], run["mean"], run["max"]) == (2, 7.5, 10)
    assert found.distributions["processors"]["min"] == 2


PINNED = [4, 5, 14, 33]
