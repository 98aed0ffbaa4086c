"""Student's t and Kendall's τ-b are SciPy's."""

import numpy as np
import pytest
from scipy import special, stats

from bridge.judge.distributions import kendall, t_quantile


@pytest.mark.parametrize("freedom", [1, 2, 3.7, 4, 5, 8, 18, 33.3, 100, 1000, np.inf])
@pytest.mark.parametrize("probability", [0.9, 0.975, 0.9995])
def test_quantiles_of_students_t(freedom: float, probability: float) -> None:
    assert t_quantile(freedom, probability) == pytest.approx(special.stdtrit(freedom, probability), rel=1e-11)


def test_rank_agreement_with_and_without_ties() -> None:
    rng = np.random.default_rng(1)
    ties = 0
    for _ in range(300):
        n = int(rng.integers(2, 40))
        a, b = rng.integers(0, (3, 1000)[int(rng.integers(2))], (2, n)).astype(np.float64)
        expected = stats.kendalltau(a, b)
        ties += len(set(a)) < n
        np.testing.assert_allclose(kendall(a, b), (expected.statistic, expected.pvalue), rtol=1e-10)
    assert 50 < ties < 280
