"""Run times of futures: distributions that are hit, given what has run already."""

from dataclasses import replace

import numpy as np
import pytest
from forecast_states import make_state
from hypothesis import given
from hypothesis import strategies as st

from bridge.forecasting.starts import TOGETHER, draw, quantile_knots, run_times, share_ended
from bridge.scheduler.state import SECOND


def test_without_quantiles_a_job_runs_as_long_as_it_requests() -> None:
    state = make_state([(40, 90, 1)], [(50, 60, 1)], 4)
    assert (draw(state, 3) / SECOND).tolist() == [[90, 60]] * 3


def test_between_quantiles_run_times_are_linear_in_the_logarithm() -> None:
    state = make_state([], [(50, 10_000, 1)], 4, levels=[0.25, 0.75], quantiles=[[10, 1000]])
    v = np.array([[0.0], [0.125], [0.25], [0.5], [0.75], [1.0]])
    assert np.allclose(run_times(state, v)[:, 0] / SECOND, [1, 10**0.5, 10, 100, 1000, 10_000])


def test_no_job_outlives_its_request() -> None:
    state = make_state([], [(50, 100, 1)], 4, levels=[0.25, 0.75], quantiles=[[10, 1000]])
    v = np.array([[0.25], [0.5], [0.6], [1.0]])
    assert np.allclose(run_times(state, v)[:, 0] / SECOND, [10, 100, 100, 100])


def test_given_what_has_run_the_rest_of_the_distribution_is_left() -> None:
    """Half of its distribution is over at 100 s: v = 1/2 is the level 3/4."""
    state = make_state([(0, 10_000, 1)], [], 4, now=100, levels=[0.25, 0.75], quantiles=[[10, 1000]])
    v = np.array([[0.0], [0.5], [1.0]])
    assert np.allclose(run_times(state, v)[:, 0] / SECOND, [100, 1000, 10_000], atol=1e-5)


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_conditioning_is_exact(elapsed: int, more: int) -> None:
    """P(run > e + m | run > e) = (1 - F(e + m)) / (1 - F(e)), counted over evenly spread futures."""
    request = 20_000
    state = make_state(
        [(1e6 - elapsed, request, 1)], [], 4, now=1e6, levels=[0.2, 0.5, 0.9], quantiles=[[5, 300, 4000]]
    )
    levels, times = quantile_knots(state)

    def over(seconds: float) -> float:
        return 1.0 - float(share_ended(levels, times, np.array([float(seconds)]))[0])

    v = ((np.arange(4000) + 0.5) / 4000)[:, None]
    runs = run_times(state, v)[:, 0]
    assert runs.min() > elapsed * SECOND
    found = (runs > (elapsed + more) * SECOND).mean()
    assert abs(found - over(elapsed + more) / over(elapsed)) <= 1 / 2000


def test_an_atom_in_the_past_is_over() -> None:
    """Half of such jobs run for exactly 60 s: one that runs on is among the others."""
    state = make_state([(0, 1000, 1)], [], 4, levels=[0.25, 0.75], quantiles=[[60, 60]])
    assert share_ended(*quantile_knots(state), np.array([59.0, 60.0, 100.0][:1])) < 0.25
    assert share_ended(*quantile_knots(state), np.array([60.0])) == 0.75
    assert (run_times(state, np.array([[0.0], [1.0]]))[:, 0] / SECOND).tolist() == [100.000001, 1000]


def test_who_outlives_all_beliefs_ends_in_the_future() -> None:
    state = make_state([(0, 50, 1)], [], 4, levels=[0.5], quantiles=[[20]])
    runs = run_times(state, np.array([[0.0], [0.5], [1.0]]))[:, 0] / SECOND
    assert np.allclose(runs, [100.000001, 100 * 2**0.5, 200])


def test_the_same_seed_draws_the_same_futures_which_are_spread_evenly() -> None:
    state = make_state([], [(50, 1000, 1)] * 3, 4, levels=[0.5], quantiles=[[20]] * 3)
    runs = draw(state, 10, 7)
    assert (runs == draw(state, 10, 7)).all()
    assert ((runs <= 20 * SECOND).sum(axis=0) == 5).all()


def correlations(user: str, other: str) -> tuple[float, float]:
    """Return the rank correlations of the first job's run times with those of the second and the third."""
    state = make_state([], [(50, 1000, 1)] * 3, 4, levels=[0.5], quantiles=[[20]] * 3)
    state = replace(state, user=(user, user, other))
    ranks = draw(state, 4000, 1).argsort(axis=0).argsort(axis=0)
    found = np.corrcoef(ranks.T)[0]
    return float(found[1]), float(found[2])


def test_jobs_of_one_user_run_long_together_and_those_of_others_do_not() -> None:
    same, apart = correlations("ann", "bob")
    assert same == pytest.approx(6 / np.pi * np.arcsin(TOGETHER / 2), abs=0.03)  # of normal scores, in ranks
    assert abs(apart) < 0.05


@pytest.mark.parametrize("nobody", ["", "-1"])
def test_jobs_of_nobody_have_nothing_in_common(nobody: str) -> None:
    same, apart = correlations(nobody, "bob")
    assert abs(same) < 0.05
    assert abs(apart) < 0.05
