"""Predictions in the form of the pool's scheduler, in folds, and their errors while jobs run; by hand."""

import numpy as np
import pytest
from small_pools import job_set

from bridge.base.errors import BridgeError
from bridge.pool.settings import PoolConfig
from bridge.prediction.trees import Boosting
from papers.rlschert.beliefs import by_user, fit_predict_others, folds, running_accuracy, with_beliefs

#: One tree, that believes everything it sees.
ONE = Boosting(rounds=1, rate=1.0, least=5)


def test_predictions_become_beliefs_in_whole_steps_within_the_limits() -> None:
    jobs = job_set([(1, 2, 3, [3, 2]), (1, 3, 5, [5])], width=3)
    made = with_beliefs(jobs, np.array([0.2, 180.0]), np.array([[0.4, 6.6, 7.4], [500.0, 3.5, 3.0]]))
    assert made.believed.tolist() == [1, 100]
    assert made.beliefs.tolist() == [[1, 7, 7], [105, 4, 3]]
    assert (made.length.tolist(), made.id.tolist()) == ([2, 3], [101, 102])
    made.check(PoolConfig())


def test_without_a_series_the_first_belief_stays() -> None:
    jobs = job_set([(1, 2, 3, [3, 2]), (1, 3, 5, [5])], width=3)
    made = with_beliefs(jobs, np.array([6.0, 2.0]))
    assert made.beliefs.tolist() == [[6, 6, 6], [2, 2, 2]]


@pytest.mark.parametrize(
    ("believed", "totals"),
    [([1.0], None), ([1.0, np.nan], None), ([1.0, 2.0], [[1.0] * 3]), ([1.0, 2.0], [[1.0, 1.0, np.inf]] * 2)],
)
def test_predictions_of_other_jobs_are_refused(
    believed: list[float], totals: list[list[float]] | None
) -> None:
    jobs = job_set([(1, 2, 3, [3, 2]), (1, 3, 5, [5])], width=3)
    with pytest.raises(BridgeError, match="prediction"):
        with_beliefs(jobs, np.array(believed), None if totals is None else np.array(totals))


def test_users_are_believed_to_go_on_as_they_did() -> None:
    jobs = job_set([(1, length, 1, [1]) for length in (4, 8, 6, 12, 2, 9)])
    found = by_user(jobs, np.array([1, 1, 1, 2, 1, -1]))
    # At first an hour, 12 steps; then the mean of all, then of the user's last two; of no user, of all.
    assert found.tolist() == [12.0, 4.0, 6.0, 6.0, 7.0, 6.4]


def test_folds_hold_each_job_once() -> None:
    parts = folds(11, 3, seed=5)
    assert [len(part) for part in parts] == [4, 4, 3]
    assert sorted(np.concatenate(parts).tolist()) == list(range(11))
    assert [p.tolist() for p in parts] == [p.tolist() for p in folds(11, 3, seed=5)]
    assert [p.tolist() for p in parts] != [p.tolist() for p in folds(11, 3, seed=6)]
    for wrong in (1, 12):
        with pytest.raises(BridgeError, match="folds"):
            folds(11, wrong)


def test_no_job_is_predicted_from_its_own_length() -> None:
    pytest.importorskip("sklearn")
    random = np.random.default_rng(2)
    features, lengths = random.normal(size=(40, 2)), random.lognormal(size=40)
    parts = np.array_split(random.permutation(40), 4)
    before = fit_predict_others(features, lengths, parts, ONE)
    changed = lengths.copy()
    changed[parts[0]] *= 1000.0
    after = fit_predict_others(features, changed, parts, ONE)
    assert (before[parts[0]] == after[parts[0]]).all()
    assert (before[parts[1]] != after[parts[1]]).any()


def test_errors_by_progress() -> None:
    # After k steps the first job, of 10, is believed to be 10 + k; the second, of 2, to be 4 and then 3.
    totals = [[10 + k for k in range(12)], [4, 3] + [99] * 10]
    found = running_accuracy([10, 2], totals)
    first = [k / 10 for k in range(10)]
    second = [1.0] * 5 + [0.5] * 5
    assert found.deciles.tolist() == [(a + b) / 2 for a, b in zip(first, second, strict=True)]
    assert found.overall == pytest.approx((0.45 + 0.75) / 2)


def test_series_may_be_longer_than_whole_steps() -> None:
    found = running_accuracy([2.5], [[5.0, 2.5, 3.0]], np.array([3]))
    assert found.deciles.tolist() == [1.0] * 5 + [0.0] * 5
    assert found.overall == pytest.approx((1.0 + 0.0 + 0.2) / 3)


@pytest.mark.parametrize("length", [[0.5], [3.0]])
def test_series_must_be_as_long_as_the_jobs(length: list[float]) -> None:
    with pytest.raises(BridgeError):
        running_accuracy(length, [[1.0, 1.0]])
