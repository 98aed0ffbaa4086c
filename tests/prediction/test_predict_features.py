"""Features of hand-made jobs, number by number."""

import numpy as np
from small_submissions import submissions

from bridge.prediction.features import FEATURES, features

DAY = 86_400.0


def test_each_feature_of_a_user_s_jobs() -> None:
    # Waits of 5 s: the jobs end at 15, 60 + 5 + 20, …; the third asks for other processors.
    jobs = submissions(
        [
            (0, 10, 100, 3),
            (60, 20, 100, 3),
            (80, 30, 100, 3),
            (2 * DAY + 7, 40, 100, 3),
            (2 * DAY + 8, 1, -1, -1),
        ],
        wait=5,
        procs=[2, 2, 4, 2, 2],
    )
    found = {name: column.tolist() for name, column in zip(FEATURES, features(jobs).T, strict=True)}
    nan = np.nan
    expected = {
        "processors": [2, 2, 4, 2, 2],
        "request": [100, 100, 100, 100, nan],
        "time_of_day": [0, 60, 80, 7, 8],
        "day_of_week": [0, 0, 0, 2, 2],
        "user": [3, 3, 3, 3, nan],
        "group": [nan] * 5,
        "executable": [nan] * 5,
        "queue": [nan] * 5,
        "user_ended": [0, 1, 1, 3, 0],
        "user_last_run": [nan, 10, 10, 30, nan],
        "user_previous_run": [nan, nan, nan, 20, nan],
        "user_mean_run": [nan, 10, 10, 20, nan],
        "user_since_end": [nan, 45, 65, 2 * DAY + 7 - 115, nan],
        "user_since_submission": [nan, 60, 20, 2 * DAY + 7 - 80, nan],
        "user_submissions_of_a_day": [0, 1, 2, 0, 0],
        "alike_last_run": [nan, 10, nan, 20, nan],
        "alike_mean_run": [nan, 10, nan, 15, nan],
    }
    assert list(expected) == list(FEATURES)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)
