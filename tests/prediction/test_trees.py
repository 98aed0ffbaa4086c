"""Boosted trees: what one tree must say, repeatability, and a machine without the library."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from bridge.base.errors import BridgeError
from bridge.prediction.trees import Boosting, fit

#: Two kinds of jobs, 30 of each: two thirds of the first ran for 10, one for 40; of the second for 90 and 10.
KIND = np.repeat([[0.0], [1.0]], [30, 30], axis=0)
LENGTH = np.concatenate((np.tile([10.0, 10.0, 40.0], 10), np.tile([90.0, 90.0, 10.0], 10)))
#: One tree that is believed entirely.
ONE = Boosting(rounds=1, rate=1.0, least=5)


@pytest.fixture(autouse=True)
def library() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")


@pytest.mark.parametrize(
    ("quantile", "believed"), [(0.2, [10.0, 10.0]), (0.5, [10.0, 90.0]), (0.9, [40.0, 90.0])]
)
def test_one_tree_believes_the_quantile_of_equal_jobs(quantile: float, believed: list[float]) -> None:
    found = fit(KIND, LENGTH, replace(ONE, quantile=quantile))(np.array([[0.0], [1.0]]))
    assert found == pytest.approx(believed, rel=1e-5)


def test_unknown_features_are_no_obstacle() -> None:
    nothing = np.full((60, 1), np.nan)
    found = fit(np.hstack((nothing, KIND)), LENGTH, ONE)(np.array([[5.0, 0.0]]))
    assert found == pytest.approx([10.0], rel=1e-5)
    assert fit(nothing, np.full(60, 7.0), ONE)(np.array([[1.0]])) == pytest.approx([7.0])


def test_the_same_jobs_give_the_same_trees() -> None:
    random = np.random.default_rng(1)
    features, lengths = random.normal(size=(200, 4)), random.lognormal(size=200)
    found = [fit(features, lengths)(features) for _ in range(2)]
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.parametrize("lengths", [[], [1.0, 0.0], [1.0, np.nan]])
def test_lengths_must_be_positive(lengths: list[float]) -> None:
    with pytest.raises(BridgeError, match="positive lengths"):
        fit(np.zeros((len(lengths), 1)), np.array(lengths))


@pytest.mark.parametrize(
    "wrong", [{"rounds": 0}, {"leaves": 1}, {"least": 0}, {"seed": -1}, {"rate": 0.0}, {"quantile": 1.0}]
)
def test_settings_of_trees_are_checked(wrong: dict[str, int]) -> None:
    with pytest.raises(BridgeError):
        Boosting(**wrong)  # type: ignore[arg-type]


def test_without_the_library_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(BridgeError, match="not installed") as caught:
        fit(KIND, LENGTH)
    assert "pip install scikit-learn" in caught.value.remedy
