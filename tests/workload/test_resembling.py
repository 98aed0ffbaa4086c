"""Sets of jobs that resemble a log: its jobs, its rate and its week."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from small_jobs import make_jobs

from bridge.scheduler.state import SECOND
from bridge.workload import derive as module
from bridge.workload.derive import sample_similar
from bridge.workload.select import Jobs

HOUR, DAY, WEEK = 3600, 86_400, 604_800


def log(submit: npt.NDArray[Any], seed: int = 1) -> Jobs:
    """Return jobs that come at these seconds: their sizes tell their lengths, nearly."""
    rng = np.random.default_rng(seed)
    n = len(submit)
    nodes = 2 ** rng.integers(0, 7, n)
    run = 100 * nodes + rng.integers(0, 90, n)
    rows = np.column_stack((np.sort(submit), run, run + rng.integers(0, 9, n), nodes, rng.integers(0, 50, n)))
    return make_jobs(
        rows.tolist(), [128, 100], users=rng.integers(0, 5, n).tolist(), extra={"guess": run.tolist()}
    )


STEADY = log(np.random.default_rng(4).uniform(0, 3 * WEEK, 5000))


def gaps(jobs: Jobs, sets: int) -> npt.NDArray[np.float64]:
    """Return the seconds between two arrivals, [sets, length - 1]."""
    return np.diff(jobs.submit.reshape(sets, -1), axis=1) / SECOND


def pairs(one: npt.NDArray[Any], two: npt.NDArray[Any]) -> set[tuple[int, ...]]:
    return {tuple(pair) for pair in np.column_stack((one, two)).tolist()}


@pytest.mark.parametrize("kind", ["sampled", "synthetic"])
def test_sets_begin_at_their_own_zero_and_arrive_at_the_logs_rate(kind: str) -> None:
    made = sample_similar(STEADY, kind, 60, 200, np.random.default_rng(1))
    assert len(made) == 12_000
    assert made.submit.reshape(60, 200)[:, 0].tolist() == [0] * 60
    between = gaps(made, 60)
    assert between.min() >= 0
    assert between.mean() == pytest.approx(3 * WEEK / 5000, rel=0.05)
    # as a Poisson process: the deviation of the distances is their mean
    assert between.std() == pytest.approx(between.mean(), rel=0.05)
    assert made.id.tolist() == list(range(12_000))
    assert (made.resources, made.capacity.tolist(), made.origin) == (STEADY.resources, [128, 100], 0)


def test_sampled_jobs_are_jobs_of_the_log() -> None:
    made = sample_similar(STEADY, "sampled", 5, 100, np.random.default_rng(1))
    known = {
        tuple(row)
        for row in np.column_stack((STEADY.demand, STEADY.run, STEADY.request, STEADY.user)).tolist()
    }
    assert {
        tuple(row) for row in np.column_stack((made.demand, made.run, made.request, made.user)).tolist()
    } <= known
    assert (made.extra["guess"] == made.run / SECOND).all()
    assert len(set(made.run.tolist())) > 300  # drawn all over the log


def test_synthetic_jobs_keep_their_demand_and_take_the_length_of_one_of_their_size() -> None:
    made = sample_similar(STEADY, "synthetic", 10, 100, np.random.default_rng(1))
    assert pairs(made.demand[:, 0], made.demand[:, 1]) <= pairs(STEADY.demand[:, 0], STEADY.demand[:, 1])
    assert pairs(made.run, made.request) <= pairs(STEADY.run, STEADY.request)
    both = {tuple(row) for row in np.column_stack((STEADY.demand, STEADY.run)).tolist()}
    mixed = [tuple(row) not in both for row in np.column_stack((made.demand, made.run)).tolist()]
    assert np.mean(mixed) > 0.7
    # seven sizes, seven classes: nobody gets the length of another size
    assert (made.run // SECOND // 100 == made.demand[:, 0]).all()
    # what is believed of a length goes with it
    assert (made.extra["guess"] == made.run / SECOND).all()
    assert (made.request >= made.run).all()


def test_classes_of_size_hold_about_as_many_jobs_each() -> None:
    jobs = log(np.arange(8000))
    jobs = replace(
        jobs, demand=np.column_stack((np.random.default_rng(1).integers(1, 129, 8000), jobs.demand[:, 1]))
    )
    which = np.arange(8000)
    other = module._alike(jobs, which, np.random.default_rng(2))
    nodes = jobs.demand[:, 0]
    assert (abs(nodes[other] - nodes) <= 18).all()  # an eighth of the sizes
    assert np.bincount(other, minlength=8000).max() < 12


def test_the_same_generator_gives_the_same_sets() -> None:
    one, two, other = (
        sample_similar(STEADY, "synthetic", 3, 50, np.random.default_rng(s)) for s in (1, 1, 2)
    )
    assert (one.submit == two.submit).all() and (one.run == two.run).all()
    assert (one.submit != other.submit).any() and (one.run != other.run).any()


# The week.


def weekly(seconds: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    return module._weekly(log(seconds))


def test_the_profile_of_a_week() -> None:
    # 500 jobs in the first and 1,500 in the third hour of each of ten weeks
    weeks = np.arange(10)[:, None] * WEEK
    first, third = np.linspace(0, HOUR - 1, 50), 2 * HOUR + np.linspace(0, HOUR - 1, 150)
    rates = weekly(np.concatenate(((weeks + first).ravel(), (weeks + third).ravel())))
    assert rates.mean() == pytest.approx(1)
    assert rates[2] / rates[0] == pytest.approx(1500.5 / 500.5)
    assert rates[0] / rates[1] == pytest.approx(500.5 / 0.5)
    assert rates[3:].max() < 0.2  # ten of them or nine, in all of which nobody came


def test_hours_that_a_log_does_not_reach_have_its_mean_rate() -> None:
    rates = weekly(np.linspace(0, 2 * DAY - 1, 4800))  # a hundred an hour for two days
    assert rates == pytest.approx(np.ones(168))
    half = weekly(np.concatenate((np.linspace(0, HOUR - 1, 300), np.linspace(HOUR, 2 * HOUR - 1, 100))))
    assert half[0] / half[1] == pytest.approx(300.5 / 100.5)
    assert half[5] / half[1] == pytest.approx(200 / (100.5 / (1 + 0.5 / 200)))


def test_an_hour_of_which_a_log_has_more_is_no_busier() -> None:
    # ten days: three of the week's come twice
    assert weekly(np.linspace(0, 10 * DAY - 1, 24_000)) == pytest.approx(np.ones(168))


def test_the_week_is_the_logs_also_where_times_were_rebased() -> None:
    jobs = log(np.repeat(np.arange(4) * WEEK, 50))
    moved = replace(jobs, origin=5 * HOUR * SECOND)
    assert module._weekly(jobs).argmax() == 0
    assert module._weekly(moved).argmax() == 5


def test_arrivals_follow_the_week_from_a_random_hour_on() -> None:
    rates = np.ones(168)
    rates[:84], rates[100] = 0.2, 30.0
    rates /= rates.mean()
    begins = set()
    for seed in range(4):
        times = module._arrivals(rates, 20.0 * SECOND, 200_000, np.random.default_rng(seed)) / SECOND
        assert (np.diff(times) >= 0).all()
        assert times[-1] / len(times) == pytest.approx(20, rel=0.05)
        whole = times[times < times[-1] // WEEK * WEEK]
        found = np.bincount((whole // HOUR).astype(int) % 168, minlength=168) / len(whole) * 168
        shift = int(found.argmax() - 100) % 168
        begins.add(shift)
        assert found == pytest.approx(np.roll(rates, shift), rel=0.3, abs=0.1)
    assert len(begins) > 1


def test_synthetic_sets_come_when_the_logs_jobs_came() -> None:
    # one busy hour a day
    rng = np.random.default_rng(1)
    busy = np.sort((np.arange(21)[:, None] * DAY + 9 * HOUR + rng.uniform(0, HOUR, (21, 200))).ravel())
    made = sample_similar(log(busy), "synthetic", 20, 400, np.random.default_rng(2))
    for times in made.submit.reshape(20, 400) / SECOND:
        hours = np.bincount((times % DAY // 60).astype(int), minlength=1440)
        within = np.convolve(np.concatenate((hours, hours[:60])), np.ones(60), "valid").max()
        assert within > 0.93 * 400
    sampled = sample_similar(log(busy), "sampled", 1, 400, np.random.default_rng(2)).submit / SECOND
    assert np.bincount((sampled % DAY // HOUR).astype(int), minlength=24).max() < 0.5 * 400
