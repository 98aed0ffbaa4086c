"""The most that jobs had at one time."""

import numpy as np

from bridge.workload.peaks import most_at_once


def test_ends_come_before_starts_and_jobs_without_length_have_nothing() -> None:
    start, end = np.array([0, 5, 5, 2, 9]), np.array([5, 9, 7, 2, 12])
    assert most_at_once(start, end, np.array([4, 3, 2, 100, 1])) == 5
    assert most_at_once(start[:0], end[:0], end[:0]) == 0


def test_no_sum_wraps_around() -> None:
    much = np.array([2**62, 2**62, 2**62])
    assert most_at_once(np.zeros(3), np.ones(3), much) == 3 * 2**62
