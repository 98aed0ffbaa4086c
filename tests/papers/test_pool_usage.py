"""Holes and waits, worked out by hand on a schedule of three jobs, one of which was killed once."""

from dataclasses import replace

import numpy as np
import pytest
from small_schedule import pool_schedule

from bridge.base.errors import BridgeError
from bridge.pool.evaluate import evaluate
from bridge.pool.settings import EvaluationOptions
from bridge.pool.synthetic import synthetic
from papers.rlschert.usage import usage


def test_idle_units_waiting_jobs_and_holes_step_by_step() -> None:
    used = usage(pool_schedule(), 4)
    np.testing.assert_array_equal(used.idle, [4, 1, 0, 1, 2, 1, 3, 3, 3])
    np.testing.assert_array_equal(used.waiting, [0, 1, 1, 2, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(used.holes, [0, 1, 0, 1, 2, 0, 0, 0, 0])


def test_waits_last_until_the_start_that_counts() -> None:
    np.testing.assert_array_equal(pool_schedule().wait, [0, 3, 3])


def test_what_cannot_be_told_is_refused() -> None:
    with pytest.raises(BridgeError, match="1 job did not end"):
        usage(replace(pool_schedule(), end=np.array([4, -1, 9])), 4)
    with pytest.raises(BridgeError, match="more attempts were killed than are remembered"):
        usage(replace(pool_schedule(), kills=np.array([0, 1, 1])), 4)


def test_units_are_idle_or_run_on_and_never_more_than_there_are() -> None:
    found = evaluate(synthetic().jobs, "saf", "rule", EvaluationOptions(sequences=3))
    assert sum(s.kills.sum() for s in found.schedules) > 0
    for schedule in found.schedules:
        used = usage(schedule, 20)
        ran = schedule.units @ (schedule.end - schedule.start)
        tried = schedule.attempts["end"] - schedule.attempts["start"]
        in_vain = schedule.units[schedule.attempts["job"]] @ tried
        assert used.idle.sum() == 20 * len(used.idle) - ran - in_vain
        assert used.idle.min() >= 0
        assert used.waiting.min() >= 0
        assert used.waiting.sum() == schedule.wait.sum() - tried.sum()
