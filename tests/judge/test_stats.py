"""Intervals against values computed by hand, or that every resample must have."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import BridgeError
from bridge.judge.stats import (
    Estimate,
    block_bootstrap,
    block_length,
    mean_ci,
    paired_difference,
    rank_agreement,
    verdict,
    window_bootstrap,
)

#: 97.5 % quantile of Student's t with two degrees of freedom, in closed form.
T_2 = 0.95 * math.sqrt(2 / (4 * 0.975 * 0.025))


def test_mean_with_t_interval() -> None:
    # s = 1
    found = mean_ci([1, 2, 3])
    assert (found.mean, found.n) == (2.0, 3)
    assert found.high == pytest.approx(2 + T_2 / math.sqrt(3), rel=1e-12)
    assert found.low == pytest.approx(2 - T_2 / math.sqrt(3), rel=1e-12)


def test_one_value_has_no_interval() -> None:
    found = mean_ci([7])
    assert found.mean == 7.0
    assert math.isnan(found.low)
    assert verdict(found) == "not distinguishable"


def test_paired_difference() -> None:
    # differences −1, −2, −3
    found = paired_difference([9, 18, 27], [10, 20, 30])
    assert found.mean == -2.0
    assert found.high == pytest.approx(-2 + T_2 / math.sqrt(3), rel=1e-12)
    with pytest.raises(BridgeError, match="differ in number: 2 and 3"):
        paired_difference([1, 2], [1, 2, 3])


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (-2, -1, "better"),
        (1, 2, "worse"),
        (-1, 1, "not distinguishable"),
        (-1, 0, "not distinguishable"),
        (0, 1, "not distinguishable"),
    ],
)
def test_verdict(low: float, high: float, word: str) -> None:
    assert verdict(Estimate((low + high) / 2, low, high, 5)) == word


@pytest.mark.parametrize("values", [[], [1.0, float("nan")], [float("inf")]])
def test_values_that_have_no_mean(values: list[float]) -> None:
    with pytest.raises(BridgeError):
        mean_ci(values)
    with pytest.raises(BridgeError):
        block_bootstrap(values, 1)


def test_block_bootstrap_of_a_series_whose_blocks_are_all_alike() -> None:
    # Every two neighbours of 0, 1, 0, 1 … sum to 1, so every resample has the mean 0.5.
    found = block_bootstrap([0, 1] * 8, 2)
    assert (found.mean, found.low, found.high) == (0.5, 0.5, 0.5)


def test_block_bootstrap_of_two_values() -> None:
    # Means 0, 0.5, 1 with probability 1/4, 1/2, 1/4: the 2.5 and 97.5 % quantiles are 0 and 1.
    found = block_bootstrap([0, 1], 1)
    assert (found.low, found.high) == (0.0, 1.0)


def test_block_bootstrap_cuts_the_last_block() -> None:
    # 5 values in blocks of 2: two whole blocks and one value, each drawn from the first four starts.
    values = [0.0, 0.0, 0.0, 0.0, 5.0]
    found = block_bootstrap(values, 2)
    assert found.mean == 1.0
    # The 5 is in one block only, which is drawn 0, 1 or 2 times of 2; the cut block never holds it.
    assert {found.low, found.high} <= {0.0, 1.0, 2.0}
    assert found.high == 2.0


def test_block_bootstrap_of_the_whole_series_says_nothing_else() -> None:
    found = block_bootstrap([1, 2, 6], 3)
    assert (found.mean, found.low, found.high) == (3.0, 3.0, 3.0)


def test_same_seed_same_interval() -> None:
    values = np.random.default_rng(1).random(50)
    assert block_bootstrap(values, 7, seed=3) == block_bootstrap(values, 7, seed=3)
    assert block_bootstrap(values, 7, seed=3) != block_bootstrap(values, 7, seed=4)


@pytest.mark.parametrize("block", [0, 4])
def test_a_block_that_does_not_fit(block: int) -> None:
    with pytest.raises(BridgeError, match="does not fit in a series of 3"):
        block_bootstrap([1, 2, 3], block)


def test_block_length() -> None:
    assert block_length([0, 10, 20, 30], 25) == 3
    assert block_length([30, 0, 20, 10], 10) == 1
    assert block_length([5, 5, 5, 100], 1) == 3


def test_window_bootstrap_orders_the_windows_by_their_starts() -> None:
    # In the order of the starts the values alternate, and two neighbours overlap: no spread.
    starts = [0, 20, 40, 60, 10, 30, 50, 70]
    found = window_bootstrap([0, 0, 0, 0, 1, 1, 1, 1], starts, 15)
    assert (found.mean, found.low, found.high) == (0.5, 0.5, 0.5)
    paired = window_bootstrap([0, 0, 0, 0, 1, 1, 1, 1], starts, 15, base=[3, 3, 3, 3, 4, 4, 4, 4])
    assert (paired.mean, paired.low, paired.high) == (-3.0, -3.0, -3.0)


def test_window_bootstrap_refuses_what_gives_no_interval() -> None:
    with pytest.raises(BridgeError, match="all windows overlap"):
        window_bootstrap([1, 2, 3], [0, 1, 2], 100)
    with pytest.raises(BridgeError, match="2 values but 3 windows"):
        window_bootstrap([1, 2], [0, 1, 2], 1)


def test_rank_agreement() -> None:
    assert rank_agreement([1, 2, 3, 4], [10, 20, 30, 40])[0] == pytest.approx(1.0)
    assert rank_agreement([1, 2, 3, 4], [4, 3, 2, 1])[0] == pytest.approx(-1.0)
    # one of six pairs is turned round: (5 − 1) / 6
    assert rank_agreement([1, 2, 3, 4], [1, 2, 4, 3])[0] == pytest.approx(4 / 6)
    with pytest.raises(BridgeError, match="two rankings"):
        rank_agreement([1], [1])


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30), st.data())
def test_interval_stays_within_the_values(values: list[float], data: st.DataObject) -> None:
    block = data.draw(st.integers(1, len(values)))
    found = block_bootstrap(values, block, resamples=200)
    slack = 1e-6 * (1 + max(map(abs, values)))
    assert min(values) - slack <= found.low <= found.high <= max(values) + slack
