"""What each estimator believes, for whom."""

import numpy as np
import pytest

from bridge.base.errors import BridgeError
from bridge.scheduler.estimators import estimate, last_two_runs

S = 1_000_000
RUN = np.array([10, 20, 30], np.int64) * S
REQUEST = np.array([60, 20, 99], np.int64) * S


@pytest.mark.parametrize(
    ("name", "order", "waiting", "running", "oracle"),
    [
        ("requested", REQUEST, REQUEST, REQUEST, False),
        ("actual", RUN, RUN, RUN, True),
        ("cqsim", REQUEST, RUN, REQUEST, True),
        ("noisy(0)", RUN, RUN, RUN, True),
        (" predicted ", RUN + S, RUN + S, RUN + S, False),
        ("predicted(guess)", [1500000, 2, 3], [1500000, 2, 3], [1500000, 2, 3], False),
        ("predicted(requested)", RUN + S, RUN + S, REQUEST, False),
        ("predicted( guess ,requested)", [1500000, 2, 3], [1500000, 2, 3], REQUEST, False),
    ],
)
def test_who_believes_what(name: str, order: object, waiting: object, running: object, oracle: bool) -> None:
    believed = estimate(
        name, RUN, REQUEST, columns={"guess": np.array([1.5, 0.000002, 0.0000029])}, predictor=lambda: RUN + S
    )
    np.testing.assert_array_equal(believed.order, order)
    np.testing.assert_array_equal(believed.waiting, waiting)
    np.testing.assert_array_equal(believed.running, running)
    assert believed.oracle is oracle


def test_soft_walltimes_are_believed_up_to_the_request() -> None:
    """12 s are believed of the first; the second states none, the third more than it may run."""
    soft = estimate("soft", RUN, REQUEST, columns={"soft_walltime": np.array([12.0, -1.0, 200.0])})
    for believed in (soft.order, soft.waiting, soft.running):
        assert (believed / S).tolist() == [12, 20, 99]
    assert not soft.oracle
    with pytest.raises(BridgeError, match="no column 'soft_walltime'"):
        estimate("soft", RUN, REQUEST, columns={"guess": np.ones(3)})


def test_noise_is_uniform_above_the_run_time_and_the_same_for_the_same_seed() -> None:
    run = np.full(20_000, 100 * S)
    noisy = estimate("noisy(0.5, 7)", run, run).order
    assert noisy.min() >= 100 * S
    assert noisy.max() <= 150 * S
    assert abs(noisy.mean() - 125 * S) < 0.5 * S  # five standard errors
    np.testing.assert_array_equal(noisy, estimate("noisy( 5e-1 ,7 )", run, run).order)
    assert np.any(noisy != estimate("noisy(0.5, 8)", run, run).order)
    np.testing.assert_array_equal(
        estimate("noisy(0.5)", run, run).order, estimate("noisy(0.5, 0)", run, run).order
    )


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("believed", "unknown estimator"),
        ("noisy", "unknown estimator"),
        ("noisy(-1)", "from 0 up"),
        ("noisy(1e9)", "from 0 up"),
        ("noisy(1e)", "from 0 up"),
        ("noisy(0.5, -3)", "unknown estimator"),
        ("predicted", "no predictor"),
        ("predicted(nothing)", "no column 'nothing'"),
        ("predicted(requested)", "no predictor"),
        ("predicted(holes, requested)", "must be positive seconds"),
        ("predicted(holes, actual)", "unknown estimator"),
        ("predicted(holes)", "must be positive seconds"),
        ("predicted(zero)", "must be positive seconds"),
    ],
)
def test_unknown_estimators_and_columns_are_refused(name: str, says: str) -> None:
    columns = {"holes": np.array([1.0, np.nan, 2.0]), "zero": np.array([1.0, 0.0, 2.0])}
    with pytest.raises(BridgeError, match=says):
        estimate(name, RUN, REQUEST, columns=columns)


def predict(rows: list[tuple[int, int, int, int, int]]) -> list[float]:
    """Return predictions for rows of (user, submit, wait, run, request), in seconds."""
    user, submit, wait, run, request = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return [float(x) / S for x in last_two_runs(user, submit * S, run * S, request * S, wait * S)]


def test_the_last_two_runs_by_hand() -> None:
    assert predict(
        [
            (1, 0, 0, 10, 99),  # nothing known: the request
            (1, 5, 0, 30, 99),
            (2, 6, 0, 7, 99),
            (1, 12, 0, 50, 99),  # one run has ended (10)
            (1, 40, 0, 90, 99),  # ended by 40: 10 (at 10) and 30 (at 35)
            (1, 100, 0, 5, 99),  # ended by 100: … 30 (at 35), 50 (at 62); 90 ends at 130
            (1, 200, 0, 5, 30),  # the last to end: 5 (at 105), 90 (at 130); the request caps 47.5
            (2, 300, 0, 8, 99),  # another user: one run known
        ]
    ) == [99, 99, 99, 99, 20, 40, 30, 99]


def test_a_run_counts_from_the_moment_it_ended_waits_included() -> None:
    rows = [(1, 0, 0, 10, 99), (1, 0, 10, 10, 99), (1, 19, 0, 1, 99), (1, 20, 0, 1, 99)]
    # the second ends at 0 + 10 + 10 = 20: not known at 19, known at 20 (with the third: (1 + 10) / 2)
    assert predict(rows) == [99, 99, 99, 5.5]


def test_unknown_users_and_waits_and_very_short_runs() -> None:
    rows = [(-1, 0, 0, 2, 50), (-1, 10, 0, 2, 50), (-1, 20, 0, 2, 50)]
    assert predict(rows) == [50, 50, 50]
    rows = [(4, 0, -1, 0, 50), (4, 10, -1, 1, 50), (4, 20, -1, 2, 50)]
    assert predict(rows) == [50, 50, 1]  # a prediction is at least a second
