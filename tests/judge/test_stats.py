"""Intervals against values computed by hand, or that every resample must have."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.base.errors import BridgeError
from bridge.judge.stats import (
    TOO_FEW,
    ConfidenceInterval,
    block_bootstrap,
    block_length,
    interval_of,
    mean_ci,
    paired_difference,
    parts,
    rank_agreement,
    series_interval,
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
    assert verdict(found) == TOO_FEW


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
    assert verdict(ConfidenceInterval((low + high) / 2, low, high, 5)) == word


@pytest.mark.parametrize("values", [[], [1.0, float("nan")], [float("inf")]])
def test_values_that_have_no_mean(values: list[float]) -> None:
    with pytest.raises(BridgeError):
        mean_ci(values)
    with pytest.raises(BridgeError):
        block_bootstrap(values, 1)


def test_block_bootstrap_of_a_series_whose_blocks_are_all_alike() -> None:
    # Every two neighbours of 0, 1, 0, 1 … sum to 1, the last and the first, too: every mean is 0.5.
    found = block_bootstrap([0, 1] * 20, 2)
    assert (found.mean, found.low, found.high, found.b, found.kind) == (0.5, 0.5, 0.5, 20, "bootstrap")


@pytest.mark.parametrize(
    ("n", "b", "kind"), [(14, 4, None), (15, 5, "t"), (59, 19, "t"), (60, 20, "bootstrap")]
)
def test_how_many_blocks_give_which_interval(n: int, b: int, kind: str | None) -> None:
    found = block_bootstrap(np.arange(n), 3)
    assert (found.mean, found.n, found.b, found.kind) == ((n - 1) / 2, n, b, kind)
    assert math.isnan(found.low) is math.isnan(found.high) is (kind is None)
    assert (verdict(found) == TOO_FEW) is (kind is None)


def test_few_blocks_have_student_s_t_over_their_means() -> None:
    # Blocks' means 1, 2, 3, 4, 5: s² = 2.5, and Student's t with four degrees of freedom is 2.7764451.
    found = block_bootstrap([0, 2, 1, 3, 2, 4, 3, 5, 4, 6], 2)
    half = 2.7764451051977934 * math.sqrt(2.5 / 5)
    assert (found.mean, found.b, found.kind) == (3.0, 5, "t")
    assert (found.low, found.high) == pytest.approx((3 - half, 3 + half), rel=1e-12)


def test_student_s_t_of_blocks_of_unequal_length_is_centred() -> None:
    # 17 values in blocks of 3: b = 5, of 3, 3, 4, 3, 4 values; deviations' sums over them count.
    values = np.arange(17.0) ** 2
    found = block_bootstrap(values, 3)
    cuts = np.split(values - values.mean(), [3, 6, 10, 13])
    half = 2.7764451051977934 * math.sqrt(5 / 4 * sum(float(cut.sum()) ** 2 for cut in cuts)) / 17
    assert found.mean == values.mean()
    assert (found.low, found.high) == pytest.approx((found.mean - half, found.mean + half), rel=1e-12)


def test_the_circle_gives_every_value_the_same_chance() -> None:
    # One large value at an end: moving blocks without wrap would hardly draw it, and their mean were less.
    values = np.zeros(200)
    values[-1] = 200.0
    (part,) = parts([values[None]], 5)
    assert part.deviations.mean() == pytest.approx(0.0, abs=0.05)  # of 9,999 resamples with deviation 1
    assert part.deviations.min() == pytest.approx(-math.sqrt(40 / 39))  # where it was not drawn
    assert part.variance == pytest.approx(40 / 39 * (39 + 39**2) / 40**2)


def test_the_last_block_is_cut() -> None:
    # 41 values in blocks of 2: twenty whole blocks and one value, so that a constant stays what it is.
    found = block_bootstrap([7.0] * 41, 2)
    assert (found.mean, found.low, found.high, found.b) == (7.0, 7.0, 7.0, 20)


def test_seeds_vary_the_mean_of_a_training() -> None:
    # Windows are all alike, so only the seeds' means 0, 1, 5 vary it: variance s² / 3 = 7 / 3, two degrees.
    rows = [np.repeat([[0.0], [1.0], [5.0]], 10, axis=1)]
    found = series_interval(rows, 1)
    half = T_2 * math.sqrt(7 / 3)
    assert (found.mean, found.b, found.kind) == (2.0, 10, "t")
    assert (found.low, found.high) == pytest.approx((2 - half, 2 + half), rel=1e-12)
    # and both: degrees of freedom are between those of either
    blocks, seeds = parts([rows[0] + np.arange(10.0)], 1)
    assert (blocks.variance, seeds.variance) == pytest.approx((55 / 6 / 10, 7 / 3))
    assert (blocks.freedom, seeds.freedom) == (9, 2)


def test_what_seeds_differ_by_window_is_counted_once() -> None:
    # The seeds' means are alike, and they differ by window: no variance of the seeds.
    rows = [np.array([[1.0, -1.0] * 5, [-1.0, 1.0] * 5])]
    blocks, seeds = parts(rows, 1)
    assert (blocks.variance, seeds.variance) == (0.0, 0.0)
    assert not seeds.deviations.any()


def test_parts_of_independent_means_add_up() -> None:
    blocks, seeds = parts([np.repeat([[0.0], [2.0]], 6, axis=1) + np.arange(6.0)], 1)
    half = interval_of(0.0, [blocks.scaled(0.5), seeds.scaled(0.5)], 6, 6)
    whole = interval_of(0.0, [blocks, seeds], 6, 6)
    assert half.high == pytest.approx(whole.high / 2, rel=1e-12)


@pytest.mark.parametrize("blocks", [5, 10, 40])
def test_coverage_of_the_mean_of_an_autoregression(blocks: int) -> None:
    # AR(1), φ = 0.5, in blocks of 10: 2,000 series of mean 0, and how many intervals hold it.
    series, length = 2_000, 10 * blocks
    noise = np.random.default_rng(blocks).standard_normal((length, series))
    values = np.empty_like(noise)
    values[0] = noise[0] / math.sqrt(1 - 0.25)  # as if it had run for ever
    for k in range(1, length):
        values[k] = 0.5 * values[k - 1] + noise[k]
    found = [block_bootstrap(one, 10, resamples=499) for one in values.T]
    assert {one.b for one in found} == {blocks}
    assert 0.92 <= np.mean([one.low <= 0 <= one.high for one in found]) <= 0.97


def test_same_seed_same_interval() -> None:
    values = np.random.default_rng(1).random(50)
    assert block_bootstrap(values, 2, seed=3) == block_bootstrap(values, 2, seed=3)
    assert block_bootstrap(values, 2, seed=3) != block_bootstrap(values, 2, seed=4)


@pytest.mark.parametrize("block", [0, 4])
def test_a_block_that_does_not_fit(block: int) -> None:
    with pytest.raises(BridgeError, match="does not fit in a series of 3"):
        block_bootstrap([1, 2, 3], block)


def test_block_length() -> None:
    assert block_length([0, 10, 20, 30], 25) == 3
    assert block_length([30, 0, 20, 10], 10) == 1
    assert block_length([5, 5, 5, 100], 1) == 3


def test_clusters_of_starts_make_fewer_blocks() -> None:
    # 40 windows far apart, and five more at the first of them: blocks of 6, of which 45 windows hold seven.
    starts = [*range(0, 4_000, 100), 5, 6, 7, 8, 9]
    assert block_length(starts, 10) == 6
    assert window_bootstrap([1.0] * 45, starts, 10).b == 7
    assert window_bootstrap([1.0] * 40, starts[:40], 10).b == 40


def test_window_bootstrap_orders_the_windows_by_their_starts() -> None:
    # In the order of the starts the values alternate, and two neighbours overlap: no spread.
    starts = [*range(0, 200, 20), *range(10, 210, 20)]
    values = [0] * 10 + [1] * 10
    found = window_bootstrap(values, starts, 15)
    assert (found.mean, found.low, found.high, found.b) == (0.5, 0.5, 0.5, 10)
    paired = window_bootstrap(values, starts, 15, base=[3] * 10 + [4] * 10)
    assert (paired.mean, paired.low, paired.high) == (-3.0, -3.0, -3.0)


def test_window_bootstrap_of_what_gives_no_interval() -> None:
    found = window_bootstrap([1, 2, 3], [0, 1, 2], 100)
    assert (found.mean, found.b, found.kind) == (2.0, 1, None)
    with pytest.raises(BridgeError, match="2 values but 3 windows"):
        window_bootstrap([1, 2], [0, 1, 2], 1)


def test_rank_agreement() -> None:
    assert rank_agreement([1, 2, 3, 4], [10, 20, 30, 40])[0] == pytest.approx(1.0)
    assert rank_agreement([1, 2, 3, 4], [4, 3, 2, 1])[0] == pytest.approx(-1.0)
    # one of six pairs is turned round: (5 − 1) / 6
    assert rank_agreement([1, 2, 3, 4], [1, 2, 4, 3])[0] == pytest.approx(4 / 6)
    with pytest.raises(BridgeError, match="two rankings"):
        rank_agreement([1], [1])


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60), st.data())
def test_an_interval_holds_its_mean_and_moves_with_the_values(
    values: list[float], data: st.DataObject
) -> None:
    block = data.draw(st.integers(1, len(values)))
    found = block_bootstrap(values, block, resamples=99)
    assert found.b == len(values) // block
    assert found.as_dict()["low"] is None or found.kind
    if found.kind == "t":
        slack = 1e-6 * (1 + max(map(abs, values)))
        assert found.low - slack <= found.mean <= found.high + slack
        turned = block_bootstrap([-value for value in values], block, resamples=99)
        assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low), abs=slack)
