"""The Lublin–Feitelson model: the same bits each time, and its distributions as the paper defines them."""

import numpy as np
import pytest
from scipy import stats

from bridge.base.errors import BridgeError
from bridge.workload.lublin import (
    ALL_JOBS,
    BATCH,
    DAY_BEGIN,
    INTERACTIVE,
    PRESETS,
    SLOTS,
    JobClass,
    LublinModel,
    day_weights,
    generate,
    lublin_1,
    lublin_2,
    scale_job_class,
)
from bridge.workload.lublin_day import SHARES
from bridge.workload.table import SWF_COLUMNS

KEY = ["job_id", "submit", "run", "procs", "queue"]


def test_the_same_seed_gives_the_same_bits() -> None:
    one, two = (generate(lublin_1(), 4, seed=1).jobs for _ in range(2))
    assert one.equals(two)
    assert list(one.columns) == list(SWF_COLUMNS)
    assert one[KEY].to_numpy().tolist() == PINNED_1
    assert generate(lublin_2(), 4, seed=1).jobs[KEY].to_numpy().tolist() == PINNED_2
    assert not one.equals(generate(lublin_1(), 4, seed=2).jobs)


def test_what_the_model_does_not_know_is_unknown() -> None:
    log = generate(lublin_1(64), 50, seed=3, name="n")
    assert log.capacity == {"nodes": 64}
    assert log.header["MaxProcs"] == "64"
    for name in set(SWF_COLUMNS) - set(KEY) - {"req_procs", "status"}:
        assert set(log.jobs[name]) == {-1}
    assert log.jobs["req_procs"].equals(log.jobs["procs"].rename("req_procs"))


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("nodes", [4, 100, 256])
def test_bounds(preset: str, nodes: int) -> None:
    jobs = generate(PRESETS[preset](nodes), 3000, seed=5).jobs
    assert jobs["submit"].is_monotonic_increasing
    assert jobs["submit"].min() >= 0
    assert jobs["procs"].between(1, nodes).all()
    assert jobs["run"].between(1, np.exp(12)).all()
    assert jobs["job_id"].tolist() == list(range(1, 3001))


def test_shares_of_serial_jobs_and_powers_of_two() -> None:
    size = (
        generate(LublinModel(256, (scale_job_class(ALL_JOBS, 256),)), 40_000, seed=1).jobs["procs"].to_numpy()
    )
    assert (size == 1).mean() == pytest.approx(0.244, abs=0.01)
    # A continuous size becomes 2, 4, 8, ... by rounding with a probability that the uniform gives.
    width = (np.log2(2.5) - 0.8) + sum(np.log2(2**k + 0.5) - np.log2(2**k - 0.5) for k in (2, 3, 4, 5))
    by_chance = (1 - 0.244 - 0.576) * 0.86 * width / (5.5 - 0.8)
    assert ((size & (size - 1)) == 0).mean() == pytest.approx(0.244 + 0.576 + by_chance, abs=0.01)


@pytest.mark.parametrize("job_class", [BATCH, INTERACTIVE])
def test_run_times_of_the_largest_jobs_are_from_the_second_gamma(job_class: object) -> None:
    assert isinstance(job_class, type(BATCH))
    only_large = scale_job_class(job_class, 256)
    jobs = generate(LublinModel(256, (only_large,)), 60_000, seed=2).jobs
    # p = slope·256 + base < 0, so every job on the whole machine comes from gamma(a2, b2).
    assert only_large.run_slope * 256 + only_large.run_base < 0
    log_run = np.log(jobs["run"][jobs["procs"] == 256] + 0.5)
    below = stats.gamma.cdf(12, only_large.long[0], scale=only_large.long[1])
    assert below > 0.99
    assert log_run.mean() == pytest.approx(only_large.long[0] * only_large.long[1], abs=0.1)


@pytest.mark.parametrize("job_class", [ALL_JOBS, BATCH, INTERACTIVE])
def test_the_days_shares_are_those_of_the_gamma_distribution(job_class: JobClass) -> None:
    shape, scale = job_class.day
    edges = np.arange(DAY_BEGIN, DAY_BEGIN + SLOTS + 1) - 0.5
    expected = np.diff(stats.gamma.cdf(edges, shape, scale=scale))
    np.testing.assert_allclose(SHARES[job_class.day], expected, rtol=1e-9)


def test_the_day_has_a_rush_hour_and_mean_1() -> None:
    weights = day_weights(ALL_JOBS)
    assert weights.mean() == pytest.approx(1)
    # The mode of gamma(a, b) is (a - 1)·b = 28.4 half hours, the slot of 13:30 to 14:00.
    assert int(weights.argmax()) == 27
    hours = (generate(lublin_1(), 20_000, seed=4).jobs["submit"] % 86_400) // 1800
    seen = np.bincount(hours, minlength=48) / 20_000 * 48
    assert np.corrcoef(seen, weights)[0, 1] > 0.95


def test_impossible_wishes() -> None:
    with pytest.raises(BridgeError, match="0 jobs"):
        generate(lublin_1(), 0, seed=0)
    with pytest.raises(BridgeError, match="too small"):
        generate(LublinModel(2, (ALL_JOBS,)), 1, seed=0)


PINNED_1 = [[1, 476, 1, 2, 0], [2, 940, 27, 1, 0], [3, 2263, 57, 4, 0], [4, 2402, 4934, 4, 0]]
PINNED_2 = [[1, 197, 1, 4, 0], [2, 389, 8, 1, 0], [3, 392, 23, 1, 1], [4, 477, 68, 32, 1]]
