"""Distances between waits: by hand, and what holds of all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bridge.base.errors import BridgeError
from bridge.judge.fidelity import describe, null_distance, rank_correlation, wait_distance
from bridge.judge.fidelity_groups import groups_of, hour_of_week
from bridge.workload.table import SWF_COLUMNS

waits = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=2, max_size=30)


def test_distances_by_hand() -> None:
    """Recorded 40, 940 and 5940 s; replayed 940, 40, 5940 s: the same distribution for other jobs."""
    distance = wait_distance(np.array([940.0, 40, 5940]), np.array([40.0, 940, 5940]))
    assert (distance.bias, distance.wasserstein, distance.wasserstein_relative) == (0, 0, 0)
    assert distance.log_mae == pytest.approx(2 / 3)  # log10(1000) − log10(100), twice of three
    assert distance.rank_correlation == pytest.approx(0.5)
    assert distance.within == {"60": 1 / 3, "600": 1 / 3, "3600": 1.0}
    assert describe(distance) == (
        "fidelity to the record: log-MAE 0.67, rank correlation 0.50, 100 % of the starts within 1 h, "
        "mean wait +0 % (3 jobs)"
    )


def test_a_replay_that_is_longer_by_a_constant() -> None:
    distance = wait_distance(np.array([100.0, 300]), np.array([0.0, 200]))
    assert (distance.bias, distance.wasserstein, distance.wasserstein_relative) == (1.0, 100.0, 1.0)
    assert distance.rank_correlation == pytest.approx(1.0)


def test_the_null_is_a_distribution_and_its_median() -> None:
    null = null_distance(np.array([0.0, 100, 200]), np.array([100.0, 100]))
    assert (null.replayed_mean, null.bias) == (100.0, 0.0)
    assert null.wasserstein == 50.0  # quartiles 50 and 150 against 100 twice
    assert null.log_mae == 0.0
    assert null.rank_correlation is None


def test_where_nobody_waited_no_ratio_is_defined() -> None:
    distance = wait_distance(np.zeros(2), np.zeros(2))
    assert (distance.bias, distance.wasserstein_relative, distance.rank_correlation) == (None, None, None)
    assert distance.log_mae == 0.0


def test_without_jobs_there_is_nothing_to_compare() -> None:
    with pytest.raises(BridgeError, match="no job has a recorded wait"):
        wait_distance(np.zeros(0), np.zeros(0))


@given(waits)
def test_wasserstein_is_never_below_the_bias(pairs: list[tuple[int, int]]) -> None:
    replayed, recorded = np.array(pairs, np.float64).T
    distance = wait_distance(replayed, recorded)
    assert distance.wasserstein >= abs(replayed.mean() - recorded.mean()) - 1e-6
    assert wait_distance(recorded, recorded).log_mae == 0.0


@given(waits)
def test_rank_correlation_is_spearman_s(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs, np.float64).T
    ours = rank_correlation(a, b)
    if ours is None:
        assert len(set(a)) == 1 or len(set(b)) == 1
    else:
        assert ours == pytest.approx(stats.spearmanr(a, b).statistic)


def test_hours_of_the_week_are_those_of_the_log_s_zone() -> None:
    """1970 began on a Thursday; in California it was still Wednesday, 16 h."""
    assert hour_of_week({"UnixStartTime": "0"}, np.array([0.0, 3600])).tolist() == [72, 73]
    there = {"UnixStartTime": "0", "TimeZoneString": "US/Pacific"}
    assert hour_of_week(there, np.array([0.0])).tolist() == [64]
    assert hour_of_week({}, np.array([0.0, 25 * 3600])).tolist() == [0, 25]


def test_groups_are_those_that_the_log_tells_apart() -> None:
    import pandas as pd

    table = pd.DataFrame({name: [-1, -1, -1] for name in SWF_COLUMNS}).assign(partition=[2, 1, 2])
    groups = dict(groups_of(table, {}, np.array([0.0, 0, 3600]), np.array([1, 3, 4])))
    kept = {kind: {name: places.tolist() for name, places in of.items()} for kind, of in groups.items()}
    assert kept == {
        "partition": {"1": [1], "2": [0, 2]},
        "size": {"1": [0], "3-4": [1, 2]},
        "hour_of_week": {"0": [0, 1], "1": [2]},
    }
