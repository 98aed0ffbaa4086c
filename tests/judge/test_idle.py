"""Idle node time counts where a waiting job would fit, in all of its resources."""

import numpy as np

from bridge.judge.idle import idle_fitting, idle_share


def _share(jobs: list[tuple[int, int, int, int, int]], capacity: tuple[int, int]) -> float:
    """Return the share of jobs (submit, start, end, nodes, burst buffer)."""
    submit, start, end, *demand = np.array(jobs, np.int64).T
    return idle_share(submit, start, end, np.stack(demand, 1), np.array(capacity, np.int64))


def test_nodes_are_idle_while_a_job_that_fits_waits() -> None:
    """4 nodes are free from 0 to 10, and the third job fits; from 10 to 20 there are 2, and it does not."""
    jobs = [(0, 0, 10, 6, 0), (0, 10, 20, 8, 0), (0, 20, 30, 4, 0)]
    assert _share(jobs, (10, 1)) == 4 * 10 / (10 * 30)


def test_a_job_fits_where_all_of_its_resources_are_free() -> None:
    """The second job would find nodes, but no burst buffer until 10; then it is held for 5 more."""
    jobs = [(0, 0, 10, 2, 5), (0, 15, 20, 2, 1)]
    assert _share(jobs, (10, 5)) == 10 * 5 / (10 * 20)


def test_nobody_waits() -> None:
    assert _share([(0, 0, 10, 2, 0), (12, 12, 20, 2, 0)], (10, 1)) == 0
    assert _share([(5, 5, 5, 2, 0)], (10, 1)) == 0  # it takes no time


def test_idle_node_time_adds_up_from_moment_to_moment() -> None:
    """As the first: 4 nodes from 0 to 10, and none from 10 on, where the third job does not fit."""
    submit, start, end = (np.array(when, np.int64) for when in ([0, 0, 0], [0, 10, 20], [10, 20, 30]))
    demand, capacity = np.array([[6], [8], [4]], np.int64), np.array([10], np.int64)
    times, idle = idle_fitting(submit, start, end, demand, capacity)
    assert (times.tolist(), idle) == ([0, 10, 20, 30], [0, 40, 40, 40])


def test_idle_node_time_of_a_large_machine_does_not_overflow() -> None:
    """Ten years in microseconds on a million nodes are 3.2e20 of node time, beyond 64 bits."""
    years = 10 * 365 * 24 * 3600 * 1_000_000
    when = (
        np.array([0, 0], np.int64),
        np.array([0, years], np.int64),
        np.array([years, years + 1], np.int64),
    )
    _, idle = idle_fitting(*when, np.array([[1], [1]], np.int64), np.array([1_000_000], np.int64))
    assert idle[1] == years * 999_999
