"""Quantiles of run times: ascending, within the request, and from nothing but what had ended."""

from dataclasses import replace

import numpy as np
import pytest
from small_submissions import submissions

from bridge.base.errors import BridgeError
from bridge.prediction.forest import Forest, ForestSettings
from bridge.prediction.quantiles import LEVELS, Quantiles, median
from bridge.prediction.submissions import MICRO, Submissions

SMALL = Quantiles(every=50, memory=400, least=20, growth=ForestSettings(trees=5))


def log(n: int = 300, seed: int = 0) -> Submissions:
    """Return jobs of two users: one's run for about 100 s, the other's for about 3,000 s."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, 2, n)
    run = np.where(user == 0, 100, 3000) * np.exp(rng.normal(0, 0.1, n))
    pairs = zip(run.tolist(), user.tolist(), strict=True)
    return submissions([(60 * k, length, 7200, who) for k, (length, who) in enumerate(pairs)])


def test_a_forest_returns_quantiles_of_alike_rows() -> None:
    rng = np.random.default_rng(0)
    group = np.repeat([0.0, 1.0], 2000)
    values = np.where(group == 0, 0.0, 10.0) + rng.random(4000)
    found = Forest(group[:, None], values).quantiles(np.array([[0.0], [1.0]]), np.array([0.1, 0.5, 0.9]))
    assert found == pytest.approx(np.array([[0.1, 0.5, 0.9], [10.1, 10.5, 10.9]]), abs=0.1)
    again = Forest(group[:, None], values).quantiles(np.array([[0.0], [1.0]]), np.array([0.1, 0.5, 0.9]))
    assert (found == again).all()


def test_a_forest_learns_from_something() -> None:
    with pytest.raises(BridgeError, match="one or more rows"):
        Forest(np.zeros((0, 1)), np.zeros(0))
    with pytest.raises(BridgeError, match="finite"):
        Forest(np.zeros((1, 1)), np.array([np.nan]))


def test_quantiles_tell_users_apart() -> None:
    s = log()
    found = SMALL.distributions(s)
    assert found.shape == (300, len(LEVELS))
    assert (np.diff(found, axis=1) >= 0).all()
    assert (found <= 7200).all()
    assert (found >= 1).all()
    last = np.arange(200, 300)
    assert found[last][s.user[last] == 0][:, 6] == pytest.approx(100, rel=0.2)
    assert found[last][s.user[last] == 1][:, 6] == pytest.approx(3000, rel=0.2)
    inside = (found[last, 1] <= s.run[last] / MICRO) & (s.run[last] / MICRO <= found[last, -2])
    assert inside.mean() > 0.75
    assert (SMALL(s) == median(found)).all()


def test_what_had_not_ended_is_not_read() -> None:
    s = log()
    late = s.end > s.submit[200]
    other = replace(s, run=np.where(late, s.run * 3, s.run))
    assert (SMALL.distributions(s)[:201] == SMALL.distributions(other)[:201]).all()


def test_before_anything_is_learnt_any_part_of_the_request_is_as_likely() -> None:
    assert SMALL.distributions(log())[0] == pytest.approx(7200 * LEVELS)
