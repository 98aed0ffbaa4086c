"""Futures of a Slurm's queue under its own schedulers: readings as text, and when jobs start."""

import numpy as np
from own_slurm import NOW, read, state_of_queue

from bridge.forecasting.site_fork import open_fork
from bridge.forecasting.state import OWN_SCHEDULERS, MachineState
from bridge.forecasting.whatif import whatif, with_job
from bridge.scheduler.state import SECOND


def starts(state: MachineState, **runs: int) -> dict[str, list[float]]:
    """Return the starts of waiting jobs in twelve futures, s since 1970."""
    times = [runs[f"j{name}"] * SECOND for name in state.id]
    played = open_fork(state).simulate_futures(np.array([times] * 12, np.int64))
    return {state.id[j]: (played[:, j] / SECOND).tolist() for j in state.waiting}


def test_futures_follow_slurm_s_two_schedulers() -> None:
    forecast = starts(state_of_queue(read()), j1=298, j2=50, j3=20, j4=100)
    # backfill comes within 30 s, and starts job 4, which ends by its limit before job 1 does
    assert all(NOW <= time <= NOW + 31 for time in forecast["4"])
    # job 1 ends at 1300, its nodes are free at 1300.5, and the loop that looks each second starts job 2
    assert all(1300.5 <= time <= 1304.5 for time in forecast["2"])
    # job 3 waits for job 2, though two nodes were free beside job 4
    for second, third in zip(forecast["2"], forecast["3"], strict=True):
        assert second + 50.5 <= third <= second + 54.5
    assert len({*forecast["4"]}) > 6  # each future has its own begin of the loops


def test_a_job_is_killed_at_its_limit_by_a_check_each_half_minute() -> None:
    forecast = starts(state_of_queue(read()), j1=9999, j2=50, j3=20, j4=100)
    assert all(1602 < time <= 1602 + 30 + 1 + 4.5 for time in forecast["2"])


def test_a_job_that_is_submitted_waits_behind_all_others() -> None:
    state = with_job(state_of_queue(read()), 4, 120.0)
    forecast = starts(state, j1=298, j2=50, j3=20, j4=100, jnew=10)
    assert [third < new for third, new in zip(forecast["3"], forecast["new"], strict=True)] == [True] * 12
    assert all(new <= third + 20 + 4.5 for third, new in zip(forecast["3"], forecast["new"], strict=True))


def test_slurm_s_schedulers_are_the_base_of_what_if() -> None:
    own, easy = whatif([state_of_queue(read())], ["", "fcfs+easy"], futures=30)
    assert (own.policy, easy.policy) == (OWN_SCHEDULERS, "fcfs+easy")
    assert own.differences == {}
    # EASY starts job 4 at once, and the others when nodes are free; Slurm's passes come some seconds later
    assert -35 < easy.differences["wait"].mean < -0.5
    assert easy.better == 1.0


def test_a_job_that_is_submitted_behind_all_others_delays_nobody() -> None:
    state = state_of_queue(read())
    base, changed = whatif([state, with_job(state, 4, 120.0)], ["", ""], futures=30)
    assert (base.policy, changed.policy) == (OWN_SCHEDULERS, OWN_SCHEDULERS)
    assert abs(changed.differences["wait"].mean) < 0.2  # one more job in each pass
